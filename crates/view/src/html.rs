// SPDX-License-Identifier: PostgreSQL
//! A report as HTML. All text and figures are there, so that it can be read, searched and
//! printed without scripts. The page's script draws the charts into the figures and
//! enhances the tables; docs/reference-json.md describes the attributes by which it finds them.
//!
//! All text is untrusted: a statement may contain anything. [`escape`] is the only way in, and the text
//! goes only between tags or within double quotes. Characters that are invisible or change the text's
//! direction are made visible.

use std::fmt::Write;

use jiff::tz::TimeZone;
use jiff::Timestamp;

use crate::escape::visible;

use super::document::{Cell, Column, Document, Section, Table, Unit, Weight};

/// Escapes text for use between tags or in quotes.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    push(&mut safe, text);
    safe
}

fn push(page: &mut String, text: &str) {
    for letter in visible(text).chars() {
        match letter {
            '&' => page.push_str("&amp;"),
            '<' => page.push_str("&lt;"),
            '>' => page.push_str("&gt;"),
            '"' => page.push_str("&quot;"),
            '\'' => page.push_str("&#39;"),
            c => page.push(c),
        }
    }
}

/// The body of the page.
pub fn body(document: &Document) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_body(document, &mut page);
    page
}

fn write_body(document: &Document, page: &mut String) -> std::fmt::Result {
    write!(page, "<header class=\"measured\" id=\"measured\"><h1>")?;
    push(page, &document.title);
    page.push_str("</h1>\n<dl>\n");
    for fact in &document.measured.facts {
        writeln!(page, "<dt>{}</dt><dd>{}</dd>", escape(fact.name), escape(&fact.text))?;
    }
    page.push_str("</dl></header>\n");
    findings(document, page)?;
    page.push_str("<nav id=\"contents\" aria-label=\"Contents\"><ul>\n");
    for section in &document.sections {
        writeln!(page, "<li><a href=\"#{}\">{}</a></li>", section.id, escape(section.title))?;
    }
    page.push_str("</ul></nav>\n");
    for section in &document.sections {
        write_section(document, section, page)?;
    }
    Ok(())
}

fn findings(document: &Document, page: &mut String) -> std::fmt::Result {
    if document.findings.is_empty() {
        return Ok(());
    }
    page.push_str("<section id=\"findings\"><h2>Findings</h2>\n<ul>\n");
    for finding in &document.findings {
        let class = match finding.weight {
            Weight::Note => "note",
            Weight::Warning => "warning",
        };
        let section = document.sections.iter().find(|section| section.id == finding.section);
        write!(page, "<li class=\"{class}\">")?;
        if let Some(section) = section {
            write!(page, "<a href=\"#{}\">{}</a> ", section.id, escape(section.title))?;
        }
        writeln!(page, "<span>{}</span></li>", escape(&finding.text))?;
    }
    page.push_str("</ul></section>\n");
    Ok(())
}

fn note(page: &mut String, note: Option<&String>) {
    if let Some(text) = note {
        page.push_str("<p class=\"note\">");
        push(page, text);
        page.push_str("</p>\n");
    }
}

fn write_section(document: &Document, section: &Section, page: &mut String) -> std::fmt::Result {
    writeln!(page, "<section id=\"{}\"><h2>{}</h2>", section.id, escape(section.title))?;
    note(page, section.note.as_ref());
    for chart in section.charts.iter().filter_map(|id| document.chart(id)) {
        figure(page, "chart", chart.id, chart.title, chart.note.as_ref())?;
    }
    for map in section.heatmaps.iter().filter_map(|id| document.heatmap(id)) {
        figure(page, "heatmap", map.id, map.title, map.note.as_ref())?;
    }
    for it in section.tables.iter().filter_map(|id| document.table(id)) {
        table(page, it)?;
    }
    for text in section.texts.iter().filter_map(|id| document.text(id)) {
        let (id, title) = (escape(&text.id), escape(&text.title));
        writeln!(
            page,
            "<div class=\"plain\" id=\"text-{id}\" data-text=\"{id}\"><h3>{title}</h3>"
        )?;
        note(page, text.note.as_ref());
        page.push_str("<pre tabindex=\"0\">");
        push(page, &text.text);
        page.push_str("</pre></div>\n");
    }
    page.push_str("</section>\n");
    Ok(())
}

fn figure(
    page: &mut String,
    kind: &str,
    id: &str,
    title: &str,
    text: Option<&String>,
) -> std::fmt::Result {
    write!(page, "<figure class=\"{kind}\" id=\"{kind}-{id}\" data-{kind}=\"{id}\"><figcaption>")?;
    push(page, title);
    page.push_str("</figcaption>\n");
    note(page, text);
    page.push_str(
        "<p class=\"without-script\">This is drawn by a script, which has not run here; the tables \
         hold the sums.</p></figure>\n",
    );
    Ok(())
}

/// A table; its row i is row i in the JSON.
pub fn table(page: &mut String, table: &Table) -> std::fmt::Result {
    write!(
        page,
        "<div class=\"table\"><table id=\"table-{0}\" data-table=\"{0}\"><caption>",
        table.id
    )?;
    push(page, &table.title);
    page.push_str("</caption>\n<thead><tr>");
    for column in &table.columns {
        write!(page, "<th scope=\"col\" class=\"{}\" data-key=\"{}\"", class(column), column.key)?;
        if let Some(help) = column.help {
            write!(page, " title=\"{}\"", escape(help))?;
        }
        write!(page, ">{}</th>", escape(&column.title))?;
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    let classes = table.classes();
    for (at, row) in table.rows.iter().enumerate() {
        match classes.as_ref().and_then(|classes| classes.get(at)) {
            Some(class) => write!(page, "<tr class=\"{}\">", escape(class))?,
            None => page.push_str("<tr>"),
        }
        for (at, (cell, column)) in row.cells.iter().zip(&table.columns).enumerate() {
            let (tag, scope) = if at == 0 { ("th", " scope=\"row\"") } else { ("td", "") };
            write!(page, "<{tag}{scope} class=\"{}\">", class(column))?;
            value(page, cell, column)?;
            write!(page, "</{tag}>")?;
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table>\n");
    note(page, table.note.as_ref());
    page.push_str("</div>\n");
    Ok(())
}

fn class(column: &Column) -> &'static str {
    match column.unit {
        Unit::Text if column.key == "query" => "text query",
        Unit::Text => "text",
        Unit::Id => "text id",
        Unit::Time => "text time",
        _ => "num",
    }
}

fn value(page: &mut String, cell: &Cell, column: &Column) -> std::fmt::Result {
    let text = escape(&cell.shown(column.unit, &TimeZone::UTC));
    match (cell, column.unit) {
        (Cell::Number(at), Unit::Time) => {
            write!(page, "<time datetime=\"{}\">{text}</time>", iso(*at))
        }
        _ => page.write_str(&text),
    }
}

/// "2026-03-01T17:30:00.123Z".
fn iso(seconds: f64) -> String {
    Timestamp::from_millisecond((seconds * 1e3).floor() as i64)
        .map_or_else(|_| String::new(), |at| at.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_escape_its_element() {
        let hostile = "</td><script>alert(1)</script>\" onx='1' & \u{0}\u{1b}[2J";
        let safe = escape(hostile);
        assert!(!safe.contains(['<', '>', '"', '\'', '\u{0}', '\u{1b}']), "{safe}");
        assert!(safe.starts_with("&lt;/td&gt;&lt;script&gt;"), "{safe}");
        assert_eq!(escape("a\u{202e}b\u{200b}"), "a\\u202Eb\\u200B");
    }
}
