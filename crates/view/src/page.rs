// SPDX-License-Identifier: PostgreSQL
//! The page: the template that web/ builds, with the report in it, as one file that needs
//! nothing else.
//!
//! The template brings script, style and a content security policy that names both by their
//! hashes and allows nothing besides. The report goes in as data: HTML that is escaped, and
//! JSON in which no tag can begin.

use super::document::Document;
use super::html;
use crate::escape;
use error::Error;

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

    #[test]
    fn what_is_put_in_cannot_be_a_place_itself() {
        let page = fill("<a>1<b>2<c>3", &[("<a>", "x<b>"), ("<b>", "y<c>"), ("<c>", "z<a>")]);
        assert_eq!(page.unwrap(), "x<b>1y<c>2z<a>3");
        assert!(fill("<a>", &[("<b>", "")]).is_err());
    }
}
