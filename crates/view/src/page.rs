// SPDX-License-Identifier: PostgreSQL
//! Pages: a template built by web/, with a report, a profile or a trace in it, as one self-contained file.
//!
//! The template contains script, style and a content security policy that names the hashes of both and allows
//! nothing else. The report is inserted as data: escaped HTML, and JSON in which no tag can start.

use super::document::Document;
use super::html::{self, Visible};
use crate::escape;
use error::Error;
use maud::Render;
use serde::Serialize;

/// From the build script: the page built by web/, or a bare one if there is none.
const TEMPLATE: &str = include_str!(concat!(env!("OUT_DIR"), "/report.html"));
/// The same for profiles.
const FLAME: &str = include_str!(concat!(env!("OUT_DIR"), "/flame.html"));
/// The same for traces.
const WATERFALL: &str = include_str!(concat!(env!("OUT_DIR"), "/waterfall.html"));

const TITLE: &str = "<!--pgtally:title-->";
const BODY: &str = "<!--pgtally:body-->";
const DATA: &str = "<!--pgtally:data-->";

/// A report as a page.
pub fn page(document: &Document) -> Result<String, Error> {
    let json = data(document)?;
    let (title, body) = (Visible(&document.title).render(), html::body(document));
    fill(TEMPLATE, &[(TITLE, &title.0), (BODY, &body.0), (DATA, &json)])
}

/// A profile as a page: its title, the figures as text, and the data of the flame graph.
pub fn flame(title: &str, text: &str, profile: &impl Serialize) -> Result<String, Error> {
    drawing(FLAME, "flames", title, text, profile)
}

/// A trace as a page: its title, the totals as text, and the data of the waterfalls.
pub fn waterfall(title: &str, text: &str, trace: &impl Serialize) -> Result<String, Error> {
    drawing(WATERFALL, "traced", title, text, trace)
}

/// A page with one drawing above its figures as text.
fn drawing(
    template: &str,
    id: &str,
    title: &str,
    text: &str,
    of: &impl Serialize,
) -> Result<String, Error> {
    let json = data(of)?;
    let body = maud::html! { h1 { (Visible(title)) } div id=(id) {} pre { (Visible(text)) } };
    fill(template, &[(TITLE, &Visible(title).render().0), (BODY, &body.0), (DATA, &json)])
}

/// A value as JSON in which no tag can start.
fn data(value: &impl Serialize) -> Result<String, Error> {
    Ok(escape::json(&serde_json::to_string(value)?).replace('<', "\\u003c"))
}

/// Fills in the template's markers, which come in this order. Inserted text is not searched again, because it may
/// contain the name of a marker.
fn fill(template: &str, markers: &[(&str, &str)]) -> Result<String, Error> {
    let size = markers.iter().map(|(_, text)| text.len()).sum::<usize>();
    let mut page = String::with_capacity(template.len() + size);
    let mut rest = template;
    for (marker, text) in markers {
        let Some((before, after)) = rest.split_once(marker) else {
            return Err(Error::Failed(format!(
                "the template of the page lacks {marker}; rebuild it"
            )));
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
    fn inserted_text_is_not_searched_for_markers() {
        let page = fill("<a>1<b>2<c>3", &[("<a>", "x<b>"), ("<b>", "y<c>"), ("<c>", "z<a>")]);
        assert_eq!(page.unwrap(), "x<b>1y<c>2z<a>3");
        assert!(fill("<a>", &[("<b>", "")]).is_err());
    }
}
