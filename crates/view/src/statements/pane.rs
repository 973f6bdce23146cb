// SPDX-License-Identifier: PostgreSQL
//! The table of statements.

use crate::choose;
use std::cmp::Ordering;

use segment::statements::{StatementCounters, WaitClass};

use super::{SecondsSource, Split, StatementFigures, StatementsTable, FIELDS};
use crate::rows::{accepts, left, right, sorted, text, RowOptions};
use crate::table::field::Picked;
use crate::table::{Column, Row, Table, Tone, Unit};
use crate::units::{count, duration};
use crate::Sort;

/// A note above the table, or the reason why the table is empty.
pub fn note(statements: Option<&StatementsTable>) -> Option<String> {
    let Some(statements) = statements else {
        return Some(
            "statements are not collected: pg_tally.max_statements is 0, or the server runs a version of \
             pg_tally without them; set it to 5000, for example, and restart the server"
                .to_string(),
        );
    };
    if statements.paused {
        return Some(
            "statement statistics are paused while tally cost measures their overhead".to_string(),
        );
    }
    let of_named = |row: &&StatementFigures| row.queryid.is_some();
    if statements.rows.iter().any(|row| of_named(&row)) {
        return statements.sample_seconds.map(|distance| {
            let is_counted = |row: &StatementFigures| {
                row.seconds_source == Some(SecondsSource::PgStatStatements)
            };
            let has_calls = statements.rows.iter().any(|row| row.known_calls().is_some());
            let others = match statements.rows.iter().any(is_counted) {
                true => "; otherwise it is execution alone, as pg_stat_statements counts it",
                false if has_calls => "; calls and rows are those of pg_stat_statements",
                false => {
                    "; calls and rows are not known: pg_stat_statements has counted none in this database"
                }
            };
            format!(
                "sampled {}/s: TIME with ~ is an estimate, ± half of its 95 % interval{others}; install pg_tally for exact \
                 figures",
                count((10.0 / distance).round() / 10.0)
            )
        });
    }
    if statements.sample_seconds.is_some() {
        return Some("no sample has seen a statement".to_string());
    }
    Some(match (statements.rows.is_empty(), statements.interval_seconds) {
        (false, _) => {
            "no statement could be identified because compute_query_id is off (set it to auto \
                       or on)"
                .to_string()
        }
        (true, Some(seconds)) if statements.table.used > 0 => {
            format!("no statement was active in {}", duration(seconds))
        }
        (true, _) => "no statements have been counted: no measured session has run one yet, or \
                      pg_tally.statements is none (set it to top or all)"
            .to_string(),
    })
}

/// Compares rows by the selected order; largest first.
fn order(sort: &Sort, a: &StatementFigures, b: &StatementFigures) -> Ordering {
    let largest = |f: &dyn Fn(&StatementFigures) -> f64| f(b).total_cmp(&f(a));
    let class = |class: WaitClass| largest(&|row| row.split.class(class));
    let order = match sort {
        Sort::Time => Ordering::Equal,
        Sort::Count => b.calls.cmp(&a.calls),
        Sort::Mean => largest(&|row| row.execution.mean_seconds.unwrap_or(0.0)),
        Sort::P99 => largest(&|row| row.quantiles.p99_seconds.unwrap_or(0.0)),
        Sort::Max => largest(&|row| row.execution.max_seconds.unwrap_or(0.0)),
        Sort::Rows => b.rows.cmp(&a.rows),
        Sort::Cpu => class(WaitClass::Cpu),
        Sort::Io => class(WaitClass::Io),
        Sort::Lock => class(WaitClass::Lock),
        Sort::Lwlock => class(WaitClass::Lwlock),
        Sort::Client => class(WaitClass::Client),
        Sort::Ipc => class(WaitClass::Ipc),
        Sort::Name => a.text().cmp(b.text()),
        Sort::Activity(name) => largest(&|row| row.seconds_in(name)),
    };
    order.then_with(|| b.seconds.total_cmp(&a.seconds)).then_with(|| a.key.cmp(&b.key))
}

/// The selected statements in order: those that clients sent and, with idle accounts, also nested statements and
/// tally's own.
pub fn ordered<'s>(
    statements: &'s StatementsTable,
    wish: &RowOptions,
) -> Vec<&'s StatementFigures> {
    let shown = |row: &&StatementFigures| {
        let id = row.queryid.map(|id| id.to_string()).unwrap_or_default();
        let application = row.application.name().unwrap_or_default();
        (wish.idle || row.toplevel && !row.own)
            && accepts(wish, &[row.text(), &row.database, &row.user, application, &id])
    };
    let rows = statements.rows.iter().filter(shown).collect();
    sorted(rows, wish, |a, b| order(&wish.sort, a, b))
}

/// The table of all selected statements.
pub fn statements(statements: &StatementsTable, wish: &RowOptions) -> Table {
    table(statements, &ordered(statements, wish), wish)
}

/// A table of these statements. If they are sorted by an activity, it has a column.
pub fn table(statements: &StatementsTable, rows: &[&StatementFigures], wish: &RowOptions) -> Table {
    let activity = match &wish.sort {
        Sort::Activity(name) => Some(name),
        _ => None,
    };
    // In an interval, it shows the rate of calls, otherwise their number.
    macro_rules! columns {
        ($calls:literal) => {
            choose!(
                FIELDS,
                concat!(
                    "database:8, user:9, ",
                    $calls,
                    ", seconds, share, per_call_seconds:25, mean_seconds, p50_seconds:10, \
                     p95_seconds:11, p99_seconds:2, max_seconds:6, rows_per_call:7, hit_share:7, \
                     cpu_share:3, io_share:3, lock_share:4, lwlock_share:5, client_share:12, \
                     ipc_share:13, other_share:13"
                )
            )
        };
    }
    let figures = Picked::of_pane(match statements.interval_seconds {
        Some(_) => columns!("per_second"),
        None => columns!("calls"),
    });
    // Between these and the query, where statements are told apart by it.
    let named = rows.iter().any(|row| row.application.name().is_some());
    let mut columns = figures.columns.clone();
    for (at, class) in most_waited_for(rows).into_iter().enumerate() {
        let column = columns.iter_mut().find(|column| column.key == share_of(class));
        column.into_iter().for_each(|column| column.expendable = CLASSES[at].1);
    }
    if named {
        columns.push(left("APPLICATION", 8));
    }
    if activity.is_some() {
        columns.push(Column::new("activity_share", "%ACTIVITY", Unit::Share));
    }
    if wish.idle {
        columns.push(left("LEVEL", 1));
    }
    columns.extend([right("QUERY ID", 14), text("QUERY")]);
    let row = |row: &&StatementFigures| {
        let mut cells = figures.cells(row, statements.interval_seconds.unwrap_or(1.0));
        cells.extend(named.then(|| row.application.name().into()));
        cells.extend(activity.map(|name| super::fields::share_of_time(row, row.seconds_in(name))));
        if wish.idle {
            cells.push(if row.toplevel { "top" } else { "nested" }.into());
        }
        cells.push(row.queryid.map(|id| id.to_string()).into());
        cells.push(one_line(row.text()).into());
        Row { tone: tone(row), branches: true, ..Row::new(row.name(), cells) }
    };
    let own = own(statements).filter(|own| !wish.idle && accepts(wish, &[own.text()]));
    let own = own.iter().map(|own| Row {
        branches: false,
        tone: Tone::Faint,
        ..Row { key: OWN.to_string(), ..row(&own) }
    });
    Table::from_rows(columns, rows.iter().map(row).chain(own).collect())
        .keeping(ordered_by(&wish.sort))
}

/// The classes of a statement's time. Number n says how early the column of the class with the n-th most
/// time is dropped, 0 being never: the first class stays, because that is what a reader looks for; if
/// possible, so does the second, because the first is often the CPU.
const CLASSES: [(WaitClass, u8); 7] = [
    (WaitClass::Cpu, 0),
    (WaitClass::Io, 1),
    (WaitClass::Lock, 4),
    (WaitClass::Lwlock, 5),
    (WaitClass::Client, 12),
    (WaitClass::Ipc, 13),
    (WaitClass::Other, 13),
];

/// The classes, those first in which these statements spend most time.
fn most_waited_for(rows: &[&StatementFigures]) -> [WaitClass; 7] {
    let mut classes = CLASSES.map(|(class, _)| class);
    let seconds =
        |class: &WaitClass| -> f64 { rows.iter().map(|row| row.split.class(*class)).sum() };
    classes.sort_by(|a, b| seconds(b).total_cmp(&seconds(a)));
    classes
}

/// The column with a class's share.
fn share_of(class: WaitClass) -> &'static str {
    match class {
        WaitClass::Cpu => "cpu_share",
        WaitClass::Io => "io_share",
        WaitClass::Lock => "lock_share",
        WaitClass::Lwlock => "lwlock_share",
        WaitClass::Client => "client_share",
        WaitClass::Ipc => "ipc_share",
        _ => "other_share",
    }
}

/// Columns of the figure by which statements are ordered.
fn ordered_by(sort: &Sort) -> &'static [&'static str] {
    match sort {
        Sort::Time => &["seconds"],
        Sort::Count => &["calls", "per_second"],
        Sort::Mean => &["mean_seconds"],
        Sort::P99 => &["p99_seconds"],
        Sort::Max => &["max_seconds"],
        Sort::Rows => &["rows_per_call"],
        Sort::Cpu => &["cpu_share"],
        Sort::Io => &["io_share"],
        Sort::Lock => &["lock_share"],
        Sort::Lwlock => &["lwlock_share"],
        Sort::Client => &["client_share"],
        Sort::Ipc => &["ipc_share"],
        Sort::Name | Sort::Activity(_) => &[],
    }
}

/// Key of the row that stands for tally's own statements.
const OWN: &str = "tally";

/// One row for all of tally's own statements; `None` if there are none.
pub fn own(statements: &StatementsTable) -> Option<StatementFigures> {
    let rows: Vec<_> = statements.rows.iter().filter(|row| row.toplevel && row.own).collect();
    if rows.is_empty() {
        return None;
    }
    let mut activities = Vec::new();
    rows.iter().for_each(|row| activities.extend(row.activities.iter().cloned()));
    let text = match rows.len() {
        1 => "tally's own: 1 statement".to_string(),
        n => format!("tally's own: {n} statements"),
    };
    Some(StatementFigures {
        toplevel: true,
        query: Some(text.as_str().into()),
        calls: rows.iter().map(|row| row.calls).sum(),
        counters: StatementCounters {
            rows: rows.iter().map(|row| row.rows).sum(),
            ..StatementCounters::default()
        },
        seconds: rows.iter().map(|row| row.seconds).sum(),
        half_width_seconds: rows.iter().map(|row| row.half_width_seconds).sum(),
        seconds_source: rows.first().and_then(|row| row.seconds_source),
        share: rows.iter().map(|row| row.share).sum(),
        split: Split::from_activities(&activities),
        ..StatementFigures::default()
    })
}

/// The class in which a statement spends the most time.
fn tone(row: &StatementFigures) -> Tone {
    let most = |a: &WaitClass, b: &WaitClass| row.split.class(*a).total_cmp(&row.split.class(*b));
    match WaitClass::ALL.into_iter().max_by(|a, b| most(a, b)) {
        _ if row.seconds <= 0.0 => Tone::Faint,
        class => class.map_or(Tone::Plain, Tone::from_class),
    }
}

/// Shows the whole text of these statements, whose table it is, on one line.
pub fn with_whole_texts(table: &mut Table, rows: &[&StatementFigures]) {
    for (line, row) in table.rows.iter_mut().zip(rows) {
        let words: Vec<&str> = row.text().split_whitespace().collect();
        line.cells.last_mut().into_iter().for_each(|cell| *cell = words.join(" ").into());
    }
}

/// Longer than any terminal is wide.
const BEGINNING: usize = 500;

/// The start of a text, on one line.
pub fn one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > BEGINNING {
            break;
        }
    }
    line.chars().take(BEGINNING).collect()
}

/// The same for a sentence: at most this many characters, with "…" at the end if there are more.
pub fn beginning(text: &str, most: usize) -> String {
    let line = one_line(text);
    let mut shown: String = line.chars().take(most).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    shown
}

/// A statement in a sentence: the beginning of its text, at most this many characters, then its query ID. A text that was not
/// kept, or that the reader may not see, is `None`.
pub fn named(text: Option<&str>, queryid: Option<i64>, most: usize) -> String {
    match (text, queryid) {
        (Some(text), Some(id)) => format!("\"{}\" (query ID {id})", beginning(text, most)),
        (Some(text), None) => format!("\"{}\"", beginning(text, most)),
        (None, Some(id)) => format!("statement {id} (text not kept)"),
        (None, None) => "a statement that is not identified".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Open;
    use crate::sample;
    use crate::statements::ActivityRow;

    fn wish(sort: Sort) -> RowOptions {
        RowOptions { sort, reverse: false, filter: String::new(), idle: false, open: Open::All }
    }

    #[test]
    fn every_order_puts_its_largest_first() {
        let all = sample::statements();
        let first = |sort| ordered(&all, &wish(sort))[0].key.id;
        let (update, select) = (0xC0FF_EE00_C0FF_EE00, 4242);
        for (sort, id) in [
            (Sort::Time, update),
            (Sort::Count, update),
            (Sort::Mean, select),
            (Sort::Max, update),
            (Sort::P99, update),
            (Sort::Rows, update),
            (Sort::Cpu, update),
            (Sort::Io, update),
            (Sort::Lock, update),
            (Sort::Lwlock, update),
            (Sort::Name, 0),
            (Sort::Activity("io:datafileread".into()), select),
        ] {
            assert_eq!(first(sort.clone()), id, "{sort:?}");
        }
        let mut reversed = wish(Sort::Time);
        reversed.reverse = true;
        assert_eq!(ordered(&all, &reversed)[0].key.id, 0);
    }

    #[test]
    fn the_table_of_all_statements() {
        let all = sample::statements();
        let mut with_nested = wish(Sort::Time);
        with_nested.idle = true;
        insta::assert_snapshot!(format!(
            "{}{}",
            statements(&all, &wish(Sort::Activity("io:walsync".into()))).text(240),
            statements(&all, &with_nested).text(100)
        ));
    }

    #[test]
    fn on_eighty_columns_the_class_that_takes_the_time_and_the_order_are_shown() {
        let mut all = sample::statements();
        for row in &mut all.rows {
            let seconds = row.seconds * 0.97;
            row.activities = vec![ActivityRow {
                phase: "execute".into(),
                activity: "Lock:transactionid".into(),
                class: WaitClass::Lock,
                count: 1,
                seconds,
            }];
            row.split = Split::from_activities(&row.activities);
        }
        let text = statements(&all, &wish(Sort::Rows)).text(80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let heading: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
        assert!(heading.contains(&"%LOCK") && heading.contains(&"ROWS/CALL"), "{text}");
        assert!(text.contains("97.0"), "{text}");
    }

    #[test]
    fn the_filter_matches_visible_text() {
        let all = sample::statements();
        for (filter, found) in [("orders", 1), ("4242", 1), ("shop", 3), ("bob", 0)] {
            let wish = RowOptions { filter: filter.into(), ..wish(Sort::Time) };
            assert_eq!(ordered(&all, &wish).len(), found, "{filter}");
        }
    }

    #[test]
    fn an_empty_table_has_a_reason() {
        assert!(note(None).unwrap().contains("pg_tally.max_statements"));
        let mut all = sample::statements();
        assert_eq!(note(Some(&all)), None);
        all.rows.retain(|row| row.queryid.is_none());
        assert!(note(Some(&all)).unwrap().contains("compute_query_id"));
        all.rows.clear();
        assert!(note(Some(&all)).unwrap().contains("in 1 s"));
        all.table.used = 0;
        assert!(note(Some(&all)).unwrap().contains("pg_tally.statements"));
        all.paused = true;
        assert!(note(Some(&all)).unwrap().contains("tally cost"));
    }

    #[test]
    fn a_text_is_joined_into_one_line() {
        assert_eq!(one_line("select\n\t1,\n  2  "), "select 1, 2");
        assert_eq!(one_line(&"x ".repeat(5000)).len(), BEGINNING);
        assert_eq!(one_line(&"é".repeat(5000)).chars().count(), BEGINNING);
    }
}
