// SPDX-License-Identifier: PostgreSQL
//! A report as HTML. It contains all text and figures, so that it can be read, searched and printed without
//! scripts. The page's script draws the charts into the figures and enhances the tables; docs/reference-json.md
//! describes the attributes by which it finds them.

use jiff::tz::TimeZone;
use jiff::Timestamp;
use maud::{html, Markup, Render};

use crate::escape::visible;

use super::document::{
    Cell, Column, Document, Fact, Finding, Remedy, Section, Table, Tone, Trace, Unit, Weight,
};

/// Text in a page. All text is untrusted: a statement may contain anything. It goes only between tags or inside
/// double quotes. Characters that are invisible or change the direction of text are made visible.
#[derive(Debug, Clone, Copy)]
pub struct Visible<T>(pub T);

impl<T: AsRef<str>> Render for Visible<T> {
    fn render_to(&self, page: &mut String) {
        for letter in visible(self.0.as_ref()).chars() {
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
}

/// Elements of their own, which the page's script finds by these ids; it would rewrite a section that had one of them.
const OWN_IDS: [&str; 10] = [
    "head", "verdict", "advice", "figures", "facts", "contents", "findings", "measured", "traced",
    "rankings",
];

/// The body of the page.
pub fn body(document: &Document) -> Markup {
    let is_lead = |section: &&Section| document.lead == Some(section.id);
    html! {
        header id="head" {
            h1 { (title(&document.title)) } "\n"
            @if !document.elsewhere.is_empty() {
                p class="elsewhere" {
                    @for link in &document.elsewhere { a href=(Visible(&link.url)) { (Visible(&link.title)) } " " }
                } "\n"
            }
            @if let Some(verdict) = &document.verdict {
                p id="verdict" class=(weight(verdict.weight)) {
                    (sentence(&verdict.text, worst(document).and_then(|finding| finding.statement.as_deref())))
                } "\n"
                (first_advice(document))
            }
            @if document.load.is_empty() { (facts("facts", &document.measured.facts)) }
            @else { (facts("figures", &document.load)) }
        } "\n"
        @for section in document.sections.iter().filter(is_lead) { (of_section(document, section)) }
        @if !document.findings.is_empty() { (findings(document)) }
        @if document.sections.len() > 1 || !document.load.is_empty() { (contents(document)) }
        @for section in document.sections.iter().filter(|section| !is_lead(section)) {
            (of_section(document, section))
        }
        @if !document.load.is_empty() {
            section id="measured" { h2 { (MEASURED) } "\n" (facts("facts", &document.measured.facts)) } "\n"
        }
    }
}

/// What to do about the worst problem, in short, below the verdict.
fn first_advice(document: &Document) -> Markup {
    let remedy = worst(document).and_then(|finding| finding.remedy.as_ref());
    html! {
        p id="advice" hidden[remedy.is_none()] {
            @if let Some(remedy) = remedy { b { "What to do: " } (advice(remedy)) }
        } "\n"
    }
}

/// The worst problem.
fn worst(document: &Document) -> Option<&Finding> {
    let is_problem =
        |finding: &&Finding| finding.weight == Weight::Warning && finding.remedy.is_some();
    document.findings.iter().find(is_problem)
}

/// What follows a quoted statement ([`crate::statements::named`]).
const ID: &str = "\" (query ID ";
/// What stands before it. Names in quotation marks are behind other words, such as "on".
const BEFORE: [&str; 6] = [": ", " by ", " for ", " in ", " of ", " often "];

/// A quoted statement in a sentence.
struct Quote<'t> {
    before: &'t str,
    /// With its quotation marks.
    statement: &'t str,
    /// "(query ID 4711)".
    id: &'t str,
    after: &'t str,
}

impl<'t> Quote<'t> {
    /// The first one.
    fn find(text: &'t str) -> Option<Quote<'t>> {
        let end = text.find(ID)? + 1;
        let opens = |at: &usize| BEFORE.iter().any(|word| text[..*at].ends_with(word));
        let begin = text[..end - 1].match_indices('"').map(|(at, _)| at).find(opens)?;
        let id = &text[end + 1..];
        let (id, after) = id.split_at(id.find(')')? + 1);
        Some(Quote { before: &text[..begin], statement: &text[begin..end], id, after })
    }
}

/// A sentence. The statements that it quotes are code, so that a reader who has seconds finds them; the first one links to the page of the statement with this key.
fn sentence(text: &str, key: Option<&str>) -> Markup {
    html! {
        @if let Some(quote) = Quote::find(text) {
            (Visible(quote.before))
            @match key {
                Some(key) => a class="quote" href={ "#statement-" (Visible(key)) } { code { (Visible(quote.statement)) } },
                None => code { (Visible(quote.statement)) },
            }
            " " span class="query-id" { (Visible(quote.id)) }
            (sentence(quote.after, None))
        } @else { (Visible(text)) }
    }
}

/// What to do; its commands are code. `web/src/sentence.ts` makes the same of newer sentences of a live page.
fn advice(remedy: &Remedy) -> Markup {
    fn marked(text: &str, commands: &[&str]) -> Markup {
        let found = commands.iter().filter_map(|sql| Some((text.find(sql)?, *sql)));
        // Of two that begin at one place, the longer one.
        let first = found.min_by_key(|(at, sql)| (*at, usize::MAX - sql.len()));
        html! {
            @if let Some((at, sql)) = first {
                (Visible(&text[..at])) code { (Visible(sql)) } (marked(&text[at + sql.len()..], commands))
            } @else { (Visible(text)) }
        }
    }
    let commands: Vec<&str> = remedy.sql.iter().map(|sql| sql.trim_end_matches(';')).collect();
    let commands: Vec<&str> = commands.into_iter().filter(|sql| !sql.is_empty()).collect();
    marked(&remedy.text, &commands)
}

/// A title; a line does not end within a date or a version.
fn title(text: &str) -> Markup {
    html! {
        @for (at, word) in text.split(' ').enumerate() {
            @if at > 0 { " " }
            @if word.contains('-') { span class="unbroken" { (Visible(word)) } } @else { (Visible(word)) }
        }
    }
}

/// The sections in the order of the page: the leading one comes first.
fn in_order(document: &Document) -> impl Iterator<Item = &Section> {
    let (first, others): (Vec<_>, Vec<_>) =
        document.sections.iter().partition(|section| document.lead == Some(section.id));
    first.into_iter().chain(others)
}

fn contents(document: &Document) -> Markup {
    html! {
        nav id="contents" aria-label="Contents" {
            ul { "\n"
                @for section in in_order(document) { li { (link(section)) } "\n" }
                @if !document.load.is_empty() { li { a href="#measured" { (MEASURED) } } "\n" }
            }
        } "\n"
    }
}

/// The heading of the facts, if they do not come first.
pub(crate) const MEASURED: &str = "What was measured";

fn facts(id: &str, facts: &[Fact]) -> Markup {
    html! {
        dl class="facts" id=(id) { "\n"
            @for fact in facts { dt { (Visible(fact.name)) } dd { (Visible(&fact.text)) } "\n" }
        } "\n"
    }
}

fn link(section: &Section) -> Markup {
    html! { a href={ "#" (section.id) } { (Visible(section.title)) } }
}

fn weight(weight: Weight) -> &'static str {
    match weight {
        Weight::Note => "note",
        Weight::Warning => "warning",
    }
}

fn findings(document: &Document) -> Markup {
    let section = |id| document.sections.iter().find(|section| section.id == id);
    html! {
        section id="findings" { h2 { "Findings" } "\n"
            ul { "\n"
                @for finding in &document.findings {
                    li class=(weight(finding.weight)) {
                        @if let Some(section) = section(finding.section) { (link(section)) " " }
                        (of_finding(finding))
                    } "\n"
                }
            }
        } "\n"
    }
}

/// The sentence, what to do about it, and the evidence, folded.
fn of_finding(finding: &Finding) -> Markup {
    html! {
        span class="what" { (sentence(&finding.text, None)) }
        @if let Some(statement) = &finding.statement {
            a class="statement-link" href={ "#statement-" (Visible(statement)) } { "The statement" }
        }
        @if let Some(remedy) = &finding.remedy {
            p class="remedy" { b { "What to do: " } (advice(remedy)) " "
                span class="confidence" { (Visible(remedy.confidence_sentence())) }
            }
            @for sql in &remedy.sql { pre class="sql" { code { (Visible(sql)) } } }
        }
        @if !finding.details.is_empty() {
            details {
                summary { "Evidence" }
                ul { @for text in &finding.details { li { (Visible(text)) } } }
            }
        }
    }
}

fn note(text: Option<&String>) -> Markup {
    html! { @if let Some(text) = text { p class="note" { (Visible(text)) } "\n" } }
}

fn of_section(document: &Document, section: &Section) -> Markup {
    debug_assert!(!OWN_IDS.contains(&section.id), "{}", section.id);
    html! {
        section id=(section.id) { h2 { (Visible(section.title)) } "\n"
            (note(section.note.as_ref()))
            @if section.id == Trace::SECTION && document.trace.is_some() {
                div id="traced" { p class="without-script" { (NOT_DRAWN) } } "\n"
            }
            @for chart in section.charts.iter().filter_map(|id| document.chart(id)) {
                figure class="chart" id={ "chart-" (chart.id) } data-chart=(chart.id) {
                    (caption(chart.title, chart.note.as_ref()))
                } "\n"
            }
            @for pairs in section.pairs.iter().filter_map(|id| document.pairs(id)) {
                figure class="pairs" id={ "pairs-" (pairs.id) } data-pairs=(pairs.id) {
                    (caption(pairs.title, pairs.note.as_ref()))
                } "\n"
            }
            @if document.lead == Some(section.id) && !document.load.is_empty() && !document.elapsed { div id="rankings" {} "\n" }
            @for map in section.heatmaps.iter().filter_map(|id| document.heatmap(id)) {
                figure class="heatmap" id={ "heatmap-" (map.id) } data-heatmap=(map.id) {
                    (caption(map.title, map.note.as_ref()))
                } "\n"
            }
            @for table in section.tables.iter().filter_map(|id| document.table(id)) { (of_table(table)) }
            @for text in section.texts.iter().filter_map(|id| document.text(id)) {
                div class="plain" id={ "text-" (Visible(&text.id)) } data-text=(Visible(&text.id)) {
                    h3 { (Visible(&text.title)) } "\n"
                    (note(text.note.as_ref()))
                    pre tabindex="0" { (Visible(&text.text)) }
                } "\n"
            }
        } "\n"
    }
}

const NOT_DRAWN: &str =
    "A script draws this, and it has not run here; the tables contain the totals.";

fn caption(title: &str, text: Option<&String>) -> Markup {
    html! {
        figcaption { (Visible(title)) } "\n"
        (note(text))
        p class="without-script" { (NOT_DRAWN) }
    }
}

/// A table; row i is row i of the JSON.
fn of_table(table: &Table) -> Markup {
    html! {
        div class="table" {
            table id={ "table-" (table.id) } data-table=(table.id) {
                caption { (Visible(&table.title)) } "\n"
                (head_and_body(table))
            } "\n"
            (note(table.note.as_ref()))
        } "\n"
    }
}

/// The content of a table element without a caption. A cell has the classes of its column and of its tone.
pub fn head_and_body(table: &Table) -> Markup {
    let classes = table.classes();
    let class_of = |row: usize| classes.as_ref().and_then(|classes| classes.get(row));
    html! {
        thead { tr {
            @for column in &table.columns {
                th scope="col" class=(class(column)) data-key=(column.key) title=[column.help.map(Visible)] {
                    (Visible(&column.title))
                }
            }
        } } "\n"
        tbody { "\n"
            @for (at, row) in table.rows.iter().enumerate() {
                tr class=[class_of(at)] {
                    @for (at, (cell, column)) in row.cells.iter().zip(&table.columns).enumerate() {
                        @let class = [class(column), tone(cell)].concat();
                        @let value = linked(table.address(row, column), &value(cell, column));
                        @if at == 0 { th scope="row" class=(class) { (value) } }
                        @else { td class=(class) { (value) } }
                    }
                } "\n"
            }
        }
    }
}

fn tone(cell: &Cell) -> &'static str {
    match cell {
        Cell::Rounded { tone: Tone::Good, .. } => " good",
        Cell::Rounded { tone: Tone::Bad, .. } => " bad",
        Cell::Rounded { tone: Tone::Faint, .. } => " faint",
        _ => "",
    }
}

fn class(column: &Column) -> &'static str {
    match column.unit {
        Unit::Text if matches!(column.key, "query" | "statement") => "text query",
        Unit::Text => "text",
        Unit::Id => "text id",
        Unit::Time => "text time",
        _ => "num",
    }
}

fn linked(address: Option<String>, text: &Markup) -> Markup {
    html! {
        @match address {
            Some(address) => a href=(Visible(address)) { (text) },
            None => (text),
        }
    }
}

fn value(cell: &Cell, column: &Column) -> Markup {
    let text = Visible(cell.shown(column.unit, &TimeZone::UTC));
    html! {
        @match (cell, column.unit) {
            (Cell::Number(at), Unit::Time) => time datetime=(iso(*at)) { (text) },
            _ => (text),
        }
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
    use crate::document::{Fact, Finding, MeasuredTime, Plain, Verdict};

    #[test]
    fn no_text_can_escape_its_element() {
        let escape = |text| Visible(text).render().into_string();
        let hostile = "</td><script>alert(1)</script>\" onx='1' & \u{0}\u{1b}[2J";
        let safe = escape(hostile);
        assert!(!safe.contains(['<', '>', '"', '\'', '\u{0}', '\u{1b}']), "{safe}");
        assert!(safe.starts_with("&lt;/td&gt;&lt;script&gt;"), "{safe}");
        assert_eq!(escape("a\u{202e}b\u{200b}"), "a\\u202Eb\\u200B");
    }

    #[test]
    fn every_text_of_a_document_is_made_visible() {
        let bad = || "</h1>\u{202e}".to_string();
        let column = Column { title: bad().into(), ..Column::new("query", "", Unit::Text) };
        let mut table = Table::new("t", bad(), vec![column]).noted(Some(bad()));
        table.push(Tone::Plain, vec![bad().into()]);
        let section = Section {
            note: Some(bad()),
            tables: vec!["t"],
            texts: vec!["x".into()],
            ..Section::default()
        };
        let document = Document {
            title: bad(),
            measured: MeasuredTime {
                facts: vec![Fact { name: "Server", text: bad() }],
                ..MeasuredTime::default()
            },
            findings: vec![Finding {
                section: "",
                weight: Weight::Note,
                text: bad(),
                remedy: Some(Remedy { text: bad(), sql: vec![bad()], confidence: "likely" }),
                details: vec![bad()],
                statement: None,
                times: Vec::new(),
            }],
            verdict: Some(Verdict { weight: Weight::Warning, text: bad() }),
            sections: vec![section],
            tables: vec![table],
            texts: vec![Plain { id: "x".into(), title: bad(), note: Some(bad()), text: bad() }],
            ..Document::default()
        };
        let page = body(&document).into_string();
        assert_eq!(page.matches("&lt;/h1&gt;\\u202E").count(), 15, "{page}");
        assert!(!page.contains('\u{202e}') && page.matches("</h1>").count() == 1, "{page}");
    }

    #[test]
    fn a_quoted_statement_is_code_and_links_to_its_page() {
        let text = "No index on \"S\".t: \"select \"A\" from t\" (query ID -7) reads, most of it by \"x\" (query ID 8).";
        assert_eq!(
            sentence(text, Some("-7.1.1")).into_string(),
            "No index on &quot;S&quot;.t: <a class=\"quote\" href=\"#statement--7.1.1\"><code>&quot;select &quot;A&quot; from t&quot;</code></a> \
             <span class=\"query-id\">(query ID -7)</span> reads, most of it by <code>&quot;x&quot;</code> \
             <span class=\"query-id\">(query ID 8)</span>."
        );
        for plain in
            ["Nothing is wrong.", "In \"x\" (query ID", "by \"x\" (query ID 7", "\" (query ID 7)"]
        {
            assert_eq!(
                sentence(plain, None).into_string(),
                html! { (Visible(plain)) }.into_string(),
                "{plain}"
            );
        }
    }

    #[test]
    fn the_commands_of_an_advice_are_code() {
        let remedy = Remedy {
            text: "End it: SELECT f(7). Or SELECT f(70), then SELECT f(7).".into(),
            sql: vec!["SELECT f(7);".into(), "SELECT f(70);".into(), ";".into()],
            confidence: "certain",
        };
        assert_eq!(
            advice(&remedy).into_string(),
            "End it: <code>SELECT f(7)</code>. Or <code>SELECT f(70)</code>, then <code>SELECT f(7)</code>."
        );
    }

    #[test]
    fn a_date_is_not_broken() {
        assert_eq!(
            title("15 on db-1, 2026-03-01 to").into_string(),
            "15 on <span class=\"unbroken\">db-1,</span> <span class=\"unbroken\">2026-03-01</span> to"
        );
    }
}
