// SPDX-License-Identifier: PostgreSQL
//! The page of an answer: one HTML file without scripts or requests. All text is untrusted and goes
//! through [`Visible`].

use maud::{html, Markup, PreEscaped, DOCTYPE};

use view::html::{head_and_body, Visible};
use view::table::Table;

const STYLE: &str = include_str!("page.css");

/// A finished chart.
#[derive(Debug, Clone)]
pub struct Drawn {
    /// Heading.
    pub title: String,
    /// The drawing, with its legend.
    pub svg: Markup,
    /// Text below it.
    pub caption: String,
}

/// Puts a frame around a page's body.
pub fn frame(title: &str, body: Markup) -> String {
    let policy = "default-src 'none'; style-src 'unsafe-inline'";
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (Visible(title)) }
                style { (PreEscaped(STYLE)) }
            } "\n"
            body { main { (body) } }
        } "\n"
    };
    page.into_string()
}

/// Charts with headings and captions.
pub fn figures(charts: &[Drawn]) -> Markup {
    html! {
        @for Drawn { title, svg, caption } in charts {
            figure {
                figcaption { h2 { (Visible(title)) } } (svg) p.faint { (Visible(caption)) }
            } "\n"
        }
    }
}

/// Tables, each a section.
pub fn table_sections(tables: &[Table]) -> Markup {
    html! {
        @for table in tables {
            section { h2 { (Visible(&table.title)) }
                div.scroll { table { (head_and_body(table)) } }
            } "\n"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_open_no_tag_and_a_page_loads_nothing() {
        let odd = "<script>".to_string();
        let drawn = Drawn { title: odd.clone(), svg: html! {}, caption: odd.clone() };
        let table = Table { title: odd.clone().into(), ..Table::with_headings(&[&*odd], 0..0) };
        let page = frame(&odd, html! { (figures(&[drawn])) (table_sections(&[table])) });
        assert!(!page.contains(&odd), "{page}");
        assert!(
            page.contains(r#"content="default-src 'none'; style-src 'unsafe-inline'""#),
            "{page}"
        );
    }
}
