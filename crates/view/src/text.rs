// SPDX-License-Identifier: PostgreSQL
//! A report as text: header, findings, charts as lines of small bars, and tables that fit the width.

use std::io::{self, IsTerminal, Write};

use jiff::tz::TimeZone;

use super::document::{
    number, Chart, ChartKind, Document, Fact, Heatmap, Plain, Table, Unit, Weight,
};
use super::html::MEASURED;
use crate::escape::{process_stdout, terminal_width, visible};
use crate::statements::one_line;
use crate::table::{speaks_utf8, wrap, Row};

/// Maximum number of rows of a table.
const ROWS: usize = 20;
/// Maximum number of points of a chart.
const POINTS: usize = 48;
/// Heights of a bar, lowest first.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Maximum number of rows of a heat map.
const HEIGHT: usize = 16;
/// Shades of non-empty cells of a heat map, lightest first.
const SHADES: [char; 4] = ['░', '▒', '▓', '█'];
const SHADES_ASCII: [char; 4] = ['.', ':', '+', '#'];
const ASCII: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];

/// How to draw the text.
#[derive(Debug, Clone)]
pub struct Style {
    /// Line width of sentences, in characters.
    pub width: usize,
    /// Line width of tables: if the output is not a terminal, nothing is left out.
    pub tables: usize,
    /// Whether bars are ASCII.
    pub ascii: bool,
    /// Whether titles and warnings are highlighted.
    pub color: bool,
    /// Time zone for times of day.
    pub zone: TimeZone,
}

/// Line width without a terminal.
pub const WIDTH: usize = 132;

impl Style {
    /// The style that suits standard output.
    pub fn of_terminal(color: bool) -> Style {
        let stdout = process_stdout();
        let on_terminal = stdout.is_terminal();
        let width = terminal_width();
        Style {
            width: width.unwrap_or(WIDTH),
            tables: width.unwrap_or(usize::MAX),
            ascii: on_terminal && !speaks_utf8(),
            color,
            zone: TimeZone::system(),
        }
    }
}

/// Writes the whole report.
pub fn write(document: &Document, style: &Style, out: &mut impl Write) -> io::Result<()> {
    let strong = |text: &str| match style.color {
        true => format!("\x1b[1m{text}\x1b[0m"),
        false => text.to_string(),
    };
    writeln!(out, "{}", strong(&clean(&document.title)))?;
    writeln!(out)?;
    let first = if document.load.is_empty() { &document.measured.facts } else { &document.load };
    facts(out, first, style)?;
    if !document.findings.is_empty() {
        writeln!(out)?;
        writeln!(out, "{}", strong("Findings"))?;
        for finding in &document.findings {
            let sign = match (finding.weight, style.color) {
                (Weight::Note, _) => "- ",
                (Weight::Warning, false) => "! ",
                (Weight::Warning, true) => "\x1b[33m!\x1b[0m ",
            };
            hanging(out, sign, &clean(&finding.text), style.width)?;
            if let Some(remedy) = &finding.remedy {
                let advice = format!("What to do: {}", remedy.text);
                hanging(out, "    ", &clean(&advice), style.width)?;
                hanging(out, "    ", &clean(&remedy.confidence_sentence()), style.width)?;
            }
            for text in &finding.details {
                hanging(out, "    ", &clean(text), style.width)?;
            }
        }
    }
    for section in &document.sections {
        writeln!(out)?;
        writeln!(out, "{}", strong(section.title))?;
        for text in section.note.iter() {
            paragraph(out, text, style.width)?;
        }
        for picture in section.charts.iter().filter_map(|id| document.chart(id)) {
            chart(out, picture, document, style)?;
        }
        for picture in section.heatmaps.iter().filter_map(|id| document.heatmap(id)) {
            heatmap(out, picture, style)?;
        }
        for table in section.tables.iter().filter_map(|id| document.table(id)) {
            // A single table needs no title besides the section's.
            if table.title != section.title {
                writeln!(out)?;
                writeln!(out, "{}", table.title)?;
            }
            for text in table.note.iter() {
                paragraph(out, text, style.width)?;
            }
            rows(out, table, style)?;
        }
        for text in section.texts.iter().filter_map(|id| document.text(id)) {
            plain(out, text, style.width)?;
        }
    }
    if !document.load.is_empty() {
        writeln!(out)?;
        writeln!(out, "{}", strong(MEASURED))?;
        facts(out, &document.measured.facts, style)?;
    }
    out.flush()
}

fn facts(out: &mut impl Write, facts: &[Fact], style: &Style) -> io::Result<()> {
    let names = facts.iter().map(|fact| fact.name.len()).max().unwrap_or(0);
    for fact in facts {
        hanging(out, &format!("{:<names$}  ", fact.name), &clean(&fact.text), style.width)?;
    }
    Ok(())
}

/// Removes control characters and makes invisible characters visible.
fn clean(text: &str) -> String {
    visible(text).replace('\t', " ")
}

fn paragraph(out: &mut impl Write, text: &str, width: usize) -> io::Result<()> {
    wrap(&clean(text), width).iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// A text whose continuation lines are indented to its first word.
fn hanging(out: &mut impl Write, head: &str, text: &str, width: usize) -> io::Result<()> {
    // Colour codes have no width.
    let indent = if head.contains('\x1b') { 2 } else { head.chars().count() };
    for (at, line) in wrap(text, width.saturating_sub(indent).max(20)).iter().enumerate() {
        match at {
            0 => writeln!(out, "{head}{line}")?,
            _ => writeln!(out, "{:indent$}{line}", "")?,
        }
    }
    Ok(())
}

fn plain(out: &mut impl Write, text: &Plain, width: usize) -> io::Result<()> {
    writeln!(out)?;
    writeln!(out, "{}", clean(&text.title))?;
    for note in text.note.iter() {
        paragraph(out, note, width)?;
    }
    text.text.lines().try_for_each(|line| writeln!(out, "{}", clean(line)))
}

/// Mean, minimum and maximum of each series, and its course.
fn chart(
    out: &mut impl Write,
    chart: &Chart,
    document: &Document,
    style: &Style,
) -> io::Result<()> {
    writeln!(out)?;
    writeln!(out, "{}", clean(chart.title))?;
    let seconds = &document.axis(chart.axis).seconds;
    let mut table = Table::with_headings(&["", "MEAN", "MIN", "MAX", "OVER TIME"], 1..4);
    // The series of a stack share one scale, so that they can be compared.
    let most = |values: &[Option<f64>]| values.iter().flatten().copied().fold(0.0, f64::max);
    let common = chart.series.iter().map(|s| most(&s.values)).fold(0.0, f64::max);
    for series in &chart.series {
        let values = &series.values;
        let scale = if chart.kind == ChartKind::Stack { common } else { most(values) };
        let min = values.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        let shown = |n: f64| match n.is_finite() {
            true => number(n, chart.unit),
            false => "-".to_string(),
        };
        table.push_texts([
            clean(&series.name),
            shown(mean(values, seconds)),
            shown(min),
            shown(most(values)),
            bars(values, seconds, scale, style.ascii),
        ]);
    }
    if let Some(reference) = chart.reference {
        let value = number(reference.value, Unit::Number);
        table.push_texts([reference.name.to_string(), value]);
    }
    out.write_all(table.drawn(style.tables, style.ascii).as_bytes())
}

/// A heat map in shades, with the longest times on top; a slash means that nothing was measured.
fn heatmap(out: &mut impl Write, map: &Heatmap, style: &Style) -> io::Result<()> {
    let shades = if style.ascii { SHADES_ASCII } else { SHADES };
    let rows = map.bounds.len().saturating_sub(1);
    let (high, wide) = (rows.min(HEIGHT), map.columns.len().min(POINTS));
    if high == 0 || wide == 0 {
        return Ok(());
    }
    let mut cells = vec![vec![0u64; wide]; high];
    let mut measured = vec![false; wide];
    for (at, column) in map.columns.iter().enumerate() {
        let x = at * wide / map.columns.len();
        let Some(column) = column else { continue };
        measured[x] = true;
        let first = column.first().map_or(0, |first| *first as usize);
        for (row, count) in (first..).zip(column.iter().skip(1)) {
            let cell = &mut cells[(row * high / rows).min(high - 1)][x];
            *cell = cell.saturating_add(*count);
        }
    }
    let most = cells.iter().flatten().copied().max().unwrap_or(0).max(1) as f64;
    writeln!(out)?;
    writeln!(out, "{}", clean(map.title))?;
    for (y, row) in cells.iter().enumerate().rev() {
        let from = number(map.bounds[y * rows / high], map.unit);
        let line: String = row
            .iter()
            .zip(&measured)
            .map(|(count, measured)| match (count, measured) {
                (_, false) => '/',
                (0, true) => ' ',
                // A single count must be visible next to a million.
                (n, true) => {
                    let share = (*n as f64).ln_1p() / most.ln_1p();
                    shades[((share * shades.len() as f64) as usize).min(shades.len() - 1)]
                }
            })
            .collect();
        writeln!(out, "{from:>8} |{line}|")?;
    }
    Ok(())
}

/// Averages weighted by measured time.
fn mean(values: &[Option<f64>], seconds: &[f64]) -> f64 {
    let known = values.iter().zip(seconds).filter_map(|(v, s)| Some(((*v)?, *s)));
    let (sum, all) = known.fold((0.0, 0.0), |(sum, all), (v, s)| (sum + v * s, all + s));
    sum / all
}

/// Values as a line of bars; a gap is a blank.
fn bars(values: &[Option<f64>], seconds: &[f64], most: f64, ascii: bool) -> String {
    let shapes = if ascii { ASCII } else { BARS };
    let number = values.len().min(POINTS);
    let edge = |at: usize| at * values.len() / number.max(1);
    (0..number)
        .map(|at| {
            let (from, to) = (edge(at), edge(at + 1));
            let value = mean(&values[from..to], seconds.get(from..to).unwrap_or(&[]));
            match value.is_finite() && most > 0.0 {
                true => shapes[((value / most * 8.0) as usize).min(7)],
                false => ' ',
            }
        })
        .collect()
}

fn rows(out: &mut impl Write, of: &Table, style: &Style) -> io::Result<()> {
    // Of rows sorted by time, the latest matter the most.
    let by_time = of.columns.iter().any(|c| Some(c.key) == of.sort && c.unit == Unit::Time);
    let skipped = if by_time { of.rows.len().saturating_sub(ROWS) } else { 0 };
    let line = |row: &Row| {
        let cells = row.cells.iter().zip(&of.columns);
        let shown = cells.map(|(cell, column)| cell.shown(column.unit, &style.zone));
        Row::new("", shown.map(|text| clean(&one_line(&text)).into()).collect())
    };
    let drawn = Table {
        columns: of.columns.clone(),
        rows: of.rows.iter().skip(skipped).take(ROWS).map(line).collect(),
        sort: of.sort,
        ..Table::default()
    };
    out.write_all(drawn.drawn(style.tables, style.ascii).as_bytes())?;
    let left = of.rows.len().saturating_sub(ROWS);
    if left > 0 {
        let which = if by_time { "earlier" } else { "more" };
        writeln!(out, "... {left} {which}; use --json or -o report.html to see them")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_and_means_weight_values_by_their_time_and_gaps_are_blank() {
        let known = [Some(1.0), None, Some(4.0)];
        assert_eq!(mean(&known, &[3.0, 5.0, 1.0]), 7.0 / 4.0);
        assert_eq!(
            bars(&[Some(0.0), Some(4.0), None, Some(7.9), Some(8.0)], &[1.0; 5], 8.0, true),
            "_= ##"
        );
        assert_eq!(bars(&[Some(0.0)], &[1.0], 0.0, true), " ", "nothing to compare with");
        // 96 values are 48 points of two.
        let many: Vec<Option<f64>> =
            (0..96).map(|at| (at != 95).then_some(f64::from(at))).collect();
        let line = bars(&many, &[1.0; 96], 94.0, true);
        assert_eq!((line.len(), &line[..1], &line[47..]), (POINTS, "_", "#"));
        assert_eq!(&line[23..25], "-=", "46.5 and 48.5 of 94");
    }

    #[test]
    fn what_is_shown_has_no_control_characters_and_is_indented_to_its_first_word() {
        assert_eq!(clean("a\tb\u{1b}[2J\u{202e}c"), visible("a b\u{1b}[2J\u{202e}c"));
        let drawn = |head: &str| {
            let mut out = Vec::new();
            hanging(&mut out, head, "alpha beta gamma delta epsilon", 24).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(drawn("- "), "- alpha beta gamma delta\n  epsilon\n");
        // Codes of a colour have no width.
        let coloured = drawn("\u{1b}[33m!\u{1b}[0m ");
        assert!(coloured.ends_with("alpha beta gamma delta\n  epsilon\n"), "{coloured}");
    }
}
