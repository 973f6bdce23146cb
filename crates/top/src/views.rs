// SPDX-License-Identifier: PostgreSQL
//! The contents of each view: a table or a page of several tables, and a note.

use segment::Interval;
use view::Sort;

use super::orders::of_heading;
use super::{TopArgs, View};
use view::blocking::Forest;
use view::panes;
use view::rows::{Open, RowOptions};
use view::table::{Column, PaneSection, Table};
use view::units::duration;
use view::{functions, io, locks, population, statements};
use view::{Reading, Recorded};

/// The panes, in order: name, a shorter one that fits into 80 columns, and what it shows. The key of the first ten is their
/// digit.
pub const PANES: [(&str, &str, View); 10] = [
    ("Diagnoses", "Diag", View::Diagnoses),
    ("Ledger", "Ledger", View::Ledger),
    ("Waits", "Waits", View::Waits),
    ("Commands", "Cmds", View::Commands),
    ("Sessions", "Sess", View::Sessions),
    ("LWLocks", "LWLocks", View::Lwlocks),
    ("Locks", "Locks", View::Locks),
    ("Functions", "Funcs", View::Functions),
    ("Statements", "Stmts", View::Statements),
    ("IO", "IO", View::Io),
];

/// Whether a view shows statements.
pub fn of_statements(view: View) -> bool {
    matches!(view, View::Diagnoses | View::Statements | View::Sessions | View::All)
}

/// Whether a view shows who blocks whom.
pub fn of_blocking(view: View) -> bool {
    matches!(view, View::Diagnoses | View::Locks | View::All)
}

/// Whether a view shows the storage side.
pub fn of_io(view: View) -> bool {
    matches!(view, View::Diagnoses | View::Io | View::All)
}

/// Why a view is empty if the server is sampled.
const NOT_SAMPLED: &str =
    "not known from samples: this needs pg_tally on the server (docs/any-server.md)";

/// The page of a view that has several tables.
pub fn page(view: View, reading: &Reading, wish: &RowOptions) -> Option<Vec<PaneSection>> {
    let storage = || match reading.interval.sampling {
        None => io::page(&reading.interval, reading.io.as_ref(), wish),
        Some(_) => vec![PaneSection {
            title: "Files, commits, checkpoints, devices".to_string(),
            lines: vec![NOT_SAMPLED.to_string()],
            table: None,
        }],
    };
    (view == View::Io).then(storage)
}

/// A note about a view's figures.
pub fn remark(view: View, reading: &Reading) -> Option<String> {
    let interval = &reading.interval;
    let of_view = of_view(view, reading);
    of_view
        .or_else(|| reading.recorded.as_ref().and_then(|recorded| kept(view, interval, recorded)))
}

/// The data of this view that a recording does not contain.
fn kept(view: View, interval: &Interval, recorded: &Recorded) -> Option<String> {
    let few = interval.sessions.is_empty();
    match (view, recorded.spread_from_seconds) {
        (View::Sessions, _) if few => {
            Some("only the number of sessions is recorded in this interval".to_string())
        }
        (View::Sessions, _) => Some("only sessions that were not idle are recorded".to_string()),
        (View::Ledger | View::Waits | View::Commands | View::Lwlocks, Some(seconds)) => {
            let length = duration(seconds);
            Some(format!("minima, maxima and percentiles are recorded per {length}; to see them, press d {seconds}"))
        }
        _ => None,
    }
}

fn of_view(view: View, reading: &Reading) -> Option<String> {
    let interval = &reading.interval;
    match view {
        View::Locks if interval.sampling.is_some() && tree(reading).is_some() => None,
        View::Commands | View::Lwlocks | View::Locks | View::Functions
            if interval.sampling.is_some() =>
        {
            Some(NOT_SAMPLED.to_string())
        }
        View::Lwlocks | View::Locks => locks::note(interval),
        View::Functions => functions::note(interval),
        View::Statements if !reading.asked => Some("reading statements".to_string()),
        View::Statements if reading.recorded.is_some() && reading.statements.is_none() => {
            Some("no statements were recorded in this interval".to_string())
        }
        View::Statements => statements::note(reading.statements.as_ref()),
        _ => None,
    }
}

/// The table of a view. The column by which its rows are ordered is never dropped.
pub fn table(view: View, reading: &Reading, wish: &RowOptions) -> Table {
    let mut table = whole(view, reading, wish);
    let ordered =
        |column: &&mut Column| of_heading(view, &column.title).as_ref() == Some(&wish.sort);
    if let Some(column) = table.columns.iter_mut().find(ordered) {
        column.expendable = 0;
    }
    table
}

fn whole(view: View, reading: &Reading, wish: &RowOptions) -> Table {
    let interval = &reading.interval;
    match view {
        View::Waits => panes::waits(interval, wish),
        View::Commands => panes::commands(interval, wish),
        View::Sessions if interval.sessions.is_empty() => population::population(interval, wish),
        View::Sessions => panes::sessions(interval, reading.statements.as_ref(), wish),
        View::Lwlocks => locks::lwlocks(interval, wish),
        View::Locks => match tree(reading) {
            Some(forest) => forest.table(wish),
            None => locks::locks(interval, wish),
        },
        View::Functions => functions::functions(interval, wish),
        View::Statements => match &reading.statements {
            Some(statements) => statements::statements(statements, wish),
            None => Table::default(),
        },
        View::Diagnoses => Table::default(),
        View::Ledger | View::Io | View::All => panes::ledger(interval, wish),
    }
}

/// Who blocks whom, if anybody is blocked.
pub fn tree(reading: &Reading) -> Option<&Forest> {
    reading.blocking.as_ref().filter(|forest| !forest.roots.is_empty())
}

/// The section below the table of a view: the waits for locks, if the tree of blocked sessions is above.
pub fn below(view: View, reading: &Reading, wish: &RowOptions) -> Option<PaneSection> {
    // Samples show waits, but not by lock.
    let known = view == View::Locks && reading.interval.sampling.is_none();
    tree(reading).filter(|_| known)?;
    let table = locks::locks(&reading.interval, wish);
    Some(PaneSection {
        title: "Waits for locks in this interval".to_string(),
        lines: locks::note(&reading.interval).into_iter().collect(),
        table: (!table.rows.is_empty()).then_some(table),
    })
}

/// The row options of the command line, with these rows open.
pub fn wish(args: &TopArgs, open: Open) -> RowOptions {
    RowOptions {
        sort: args.sort.clone().unwrap_or(Sort::Time),
        reverse: args.reverse,
        filter: args.filter.as_deref().unwrap_or("").to_lowercase(),
        idle: args.idle,
        open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn each_view_is_a_pane() {
        let panes: Vec<View> = PANES.iter().map(|pane| pane.2).chain([View::All]).collect();
        assert_eq!(panes, View::value_variants());
    }
}
