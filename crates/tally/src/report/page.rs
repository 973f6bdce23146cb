// SPDX-License-Identifier: PostgreSQL
//! The page: the template that web/ builds, with the report in it, as one file that needs
//! nothing else.
//!
//! The template brings script, style and a content security policy that names both by their
//! hashes and allows nothing besides. The report goes in as data: HTML that is escaped, and
//! JSON in which no tag can begin.

use super::document::Document;
use super::html;
use crate::error::Error;
use crate::escape;

/// Made by the build script: web's page, or a bare one where that was not built.
const TEMPLATE: &str = include_str!(concat!(env!("OUT_DIR"), "/report.html"));

const TITLE: &str = "<!--pgtally:title-->";
const BODY: &str = "<!--pgtally:body-->";
const DATA: &str = "<!--pgtally:data-->";

/// The report as a page.
pub fn page(document: &Document) -> Result<String, Error> {
    let json = data(document)?;
    let body = html::body(document);
    fill(TEMPLATE, &[(TITLE, &html::escape(&document.title)), (BODY, &body), (DATA, &json)])
}

/// The report as JSON in which no tag begins.
fn data(document: &Document) -> Result<String, Error> {
    Ok(escape::json(&serde_json::to_string(document)?).replace('<', "\\u003c"))
}

/// The template with something in each of its places, which come in this order. What is put in
/// is not looked at again: it may hold the name of a place.
fn fill(template: &str, places: &[(&str, &str)]) -> Result<String, Error> {
    let size = places.iter().map(|(_, text)| text.len()).sum::<usize>();
    let mut page = String::with_capacity(template.len() + size);
    let mut rest = template;
    for (place, text) in places {
        let Some((before, after)) = rest.split_once(place) else {
            return Err(Error::Failed(format!("the page's template lacks {place}; build it anew")));
        };
        page.push_str(before);
        page.push_str(text);
        rest = after;
    }
    page.push_str(rest);
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn what_is_put_in_cannot_be_a_place_itself() {
        let page = fill("<a>1<b>2<c>3", &[("<a>", "x<b>"), ("<b>", "y<c>"), ("<c>", "z<a>")]);
        assert_eq!(page.unwrap(), "x<b>1y<c>2z<a>3");
        assert!(fill("<a>", &[("<b>", "")]).is_err());
    }

    #[test]
    fn nothing_of_a_statement_becomes_a_tag() {
        let mut material = sample::material();
        let statements = material.statements.as_mut().unwrap();
        let hostile = "select '</script><script>alert(1)</script><!--pgtally:data--><b>'";
        statements.rows[0].query = Some(hostile.into());
        let document = sample::document(material);
        let page = page(&document).unwrap();
        assert!(!page.contains("<script>alert"), "a statement became a script");
        assert!(page.contains("&lt;/script&gt;&lt;script&gt;alert(1)"), "it is not shown");
        assert!(page.contains("\\u003c/script>\\u003cscript>alert(1)"), "it is not in the data");
        let start = page.find("application/json").unwrap();
        let start = start + page[start..].find('>').unwrap() + 1;
        let end = start + page[start..].find("</script>").unwrap();
        let read: serde_json::Value = serde_json::from_str(&page[start..end]).unwrap();
        let table = read["tables"].as_array().unwrap().iter();
        let table = table.clone().find(|table| table["id"] == "statements").unwrap();
        assert_eq!(table["rows"][0][0], hostile);
        assert_eq!(table["details"][0]["text"], hostile);
    }

    #[test]
    fn the_page_allows_nothing_but_its_own_script_and_style() {
        let page = page(&sample::document(sample::material())).unwrap();
        assert!(page.contains("http-equiv=\"Content-Security-Policy\""));
        assert!(page.contains("default-src 'none'"));
        assert!(!page.contains(" style=\"") && !page.contains(" onclick="));
    }
}
