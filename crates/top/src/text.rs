// SPDX-License-Identifier: PostgreSQL
//! An interval as plain text.

use diagnose::Diagnoses;

use super::views::{self, PANES};
use super::View;
use view::blocking::Forest;
use view::headline::{self, Weight};
use view::rows::RowOptions;
use view::table::{wrap, PaneSection, Table};
use view::units::duration;
use view::Reading;

/// Width of sentences when the output is not a terminal.
const DEFAULT_WIDTH: usize = 160;

/// The interval, `width` characters wide; `None`: no terminal, so tables have all columns, as wide as they are.
pub fn render(
    reading: &Reading,
    answer: &Diagnoses,
    wish: &RowOptions,
    view: View,
    width: Option<usize>,
    color: bool,
) -> String {
    let (width, tables) = (width.unwrap_or(DEFAULT_WIDTH), width.unwrap_or(usize::MAX));
    let interval = &reading.interval;
    let seconds = interval.interval_seconds;
    let mut out = head(reading, width, color);
    for (name, _, at) in PANES.iter().filter(|pane| view == pane.2 || view == View::All) {
        let title = match at {
            View::Diagnoses => {
                out.push_str(&heading(name, color));
                out.push_str(&diagnoses(answer, width, color));
                continue;
            }
            View::Io => {
                let page = views::page(*at, reading, wish).unwrap_or_default();
                out.push_str(&sections(&page, (width, tables), color));
                continue;
            }
            View::Ledger => {
                let sign = if interval.sampling.is_some() { "~" } else { "" };
                format!("{name}: {seconds:.2} s, {sign}{:.2} s not idle", interval.busy_seconds)
            }
            View::Locks if views::tree(reading).is_some() => "Blocked sessions".to_string(),
            View::Functions => format!("{name}: {} timed", interval.functions_probed),
            _ => name.to_string(),
        };
        let table = views::table(*at, reading, wish);
        let below = views::below(*at, reading, wish);
        let note = views::remark(*at, reading).filter(|_| below.is_none());
        // Data that was not collected: the reason is printed only if this view was requested.
        if view == *at || !(table.rows.is_empty() && note.is_some()) {
            section(&mut out, &title, note.as_deref(), &table, (width, tables), color);
            let shown = below.filter(|below| view == *at || below.table.is_some());
            out.push_str(&sections(shown.as_slice(), (width, tables), color));
        }
    }
    out.push('\n');
    out
}

/// The time that was diagnosed, and what was not covered.
pub fn watched(answer: &Diagnoses) -> String {
    let missing = answer.uncovered().map_or_else(String::new, |text| format!(" {text}."));
    format!("The last {}.{missing}", duration(answer.diagnosed_seconds))
}

fn diagnoses(answer: &Diagnoses, width: usize, color: bool) -> String {
    let indented = width.saturating_sub(2);
    let mut out = String::new();
    for line in wrap(&watched(answer), indented) {
        out.push_str(&format!("  {line}\n"));
    }
    for line in answer.lines(indented) {
        match color && line.strong {
            true => out.push_str(&format!("  \x1b[1m{}\x1b[0m\n", line.text)),
            false => out.push_str(&format!("  {}\n", line.text)),
        }
    }
    out
}

/// The lines above the tables.
pub fn head(reading: &Reading, width: usize, color: bool) -> String {
    let mut out = String::new();
    if let Some(blocked) = reading.blocking.as_ref().and_then(Forest::headline) {
        for part in wrap(&blocked, width) {
            match color {
                true => out.push_str(&format!("\x1b[1;31m{part}\x1b[0m\n")),
                false => out.push_str(&format!("! {part}\n")),
            }
        }
    }
    for line in headline::lines(&reading.interval) {
        for part in wrap(&line.text, width) {
            match line.weight {
                Weight::Warning if color => out.push_str(&format!("\x1b[1;33m{part}\x1b[0m\n")),
                Weight::Warning => out.push_str(&format!("! {part}\n")),
                Weight::Plain => out.push_str(&format!("{part}\n")),
            }
        }
    }
    out
}

/// A page of several tables; the widths of sentences and of tables.
pub fn sections(page: &[PaneSection], (width, tables): (usize, usize), color: bool) -> String {
    let mut out = String::new();
    for part in page {
        out.push_str(&heading(&part.title, color));
        for line in part.lines.iter().flat_map(|line| wrap(line, width.saturating_sub(2))) {
            out.push_str(&format!("  {line}\n"));
        }
        if let Some(table) = &part.table {
            out.push_str(&table.text(tables));
        }
    }
    out
}

/// An empty line and a title.
fn heading(title: &str, color: bool) -> String {
    if color {
        format!("\n\x1b[1m{title}\x1b[0m\n")
    } else {
        format!("\n{title}\n")
    }
}

fn section(
    out: &mut String,
    title: &str,
    note: Option<&str>,
    table: &Table,
    (width, tables): (usize, usize),
    color: bool,
) {
    out.push_str(&heading(title, color));
    for line in note.map_or_else(Vec::new, |note| wrap(note, width.saturating_sub(2))) {
        out.push_str(&format!("  {line}\n"));
    }
    if !table.rows.is_empty() {
        out.push_str(&table.text(tables));
    } else if note.is_none() {
        out.push_str("  nothing\n");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use view::rows::Open;
    use view::sample;
    use view::Sort;

    fn render(
        reading: &Reading,
        wish: &RowOptions,
        view: View,
        width: Option<usize>,
        color: bool,
    ) -> String {
        super::render(reading, &Diagnoses::examine(reading), wish, view, width, color)
    }

    fn wish() -> RowOptions {
        RowOptions {
            sort: Sort::Time,
            reverse: false,
            filter: String::new(),
            idle: false,
            open: Open::All,
        }
    }

    #[test]
    fn the_text_of_an_interval() {
        insta::assert_snapshot!(render(&sample::reading(), &wish(), View::All, None, false));
    }

    #[test]
    fn the_text_on_eighty_columns() {
        let text = render(&sample::reading(), &wish(), View::All, Some(80), false);
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        insta::assert_snapshot!(text);
    }

    #[test]
    fn warnings_are_visible_without_colour() {
        let mut reading = sample::reading();
        reading.interval.overflow.slots = 12;
        reading.interval.uninstrumented_seconds = 0.5;
        reading.interval.kernel.unexplained_share = 0.05;
        let text = render(&reading, &wish(), View::Ledger, None, false);
        let loud: Vec<&str> = text.lines().filter(|l| l.starts_with("! ")).collect();
        assert_eq!(loud.len(), 3, "{text}");
        assert!(loud.iter().any(|l| l.contains("12 sessions have no slot")));
    }

    #[test]
    fn those_who_wait_are_above_the_locks() {
        let reading = Reading { blocking: Some(sample::blocking()), ..sample::reading() };
        let text = render(&reading, &wish(), View::Locks, Some(160), false);
        assert!(
            text.starts_with("! 8 sessions wait for session 4304 (psql, joe@shop), idle"),
            "{text}"
        );
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
        assert!(at("\nBlocked sessions\n") < at("\n4304 psql, joe@shop "));
        assert!(at("  4310 shop") < at("Waits for locks in this interval"));
        assert!(at("Waits for locks in this interval") < at("transactionid"));
    }

    fn names(text: &str) -> Vec<&str> {
        let names = text.lines().filter_map(|line| line.split_whitespace().next());
        names.skip_while(|name| *name != "ACTIVITY").skip(1).collect()
    }

    #[test]
    fn rows_are_sorted_filtered_and_opened_on_request() {
        let reading = sample::reading();
        let shown = |change: &dyn Fn(&mut RowOptions)| {
            let mut wish = RowOptions { open: Open::These(HashSet::new()), ..wish() };
            change(&mut wish);
            let text = render(&reading, &wish, View::Ledger, None, false);
            names(&text).into_iter().map(String::from).collect::<Vec<_>>()
        };
        let all = ["cpu", "LWLock:WALWrite", "IO:WALSync", "Lock:transactionid"];
        assert_eq!(shown(&|_| ()), all);
        assert_eq!(shown(&|w| w.sort = Sort::Name)[0], "IO:WALSync");
        assert_eq!(shown(&|w| w.reverse = true)[0], "Lock:transactionid");
        assert_eq!(shown(&|w| w.sort = Sort::Mean)[0], "cpu");
        assert_eq!(shown(&|w| w.filter = "wal".into()), ["LWLock:WALWrite", "IO:WALSync"]);
        assert_eq!(shown(&|w| w.filter = "sync".into()), ["IO:WALSync"]);
        let idle = shown(&|w| w.idle = true);
        assert!(idle.contains(&"Client:ClientRead".to_string()), "{idle:?}");
        let open = HashSet::from(["cpu".to_string()]);
        let opened = shown(&|w| w.open = Open::These(open.clone()));
        assert_eq!(opened[..3], ["cpu", "execute", "parse"]);
    }
}
