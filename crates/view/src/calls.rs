// SPDX-License-Identifier: PostgreSQL
//! The statements of a Java client: their table, and problems with how they are executed.

use crate::choose;
use std::cmp::Ordering;

use segment::calls::CallRow;

use crate::statements::one_line;
use crate::table::field::{Field, Picked};
use crate::table::{Row, Table, Unit};
use crate::units::whole;

/// Number of rows from which a fetch size would save memory.
const MANY_ROWS: u64 = 10_000;
/// Savepoints that a transaction may have without cost: the server keeps this many subtransactions of a
/// session in shared memory (PGPROC_MAX_CACHED_SUBXIDS).
const MANY_SAVEPOINTS: u64 = 64;
/// Maximum length of a quoted statement, in characters.
const QUOTED: usize = 80;

/// Sort order of statements; highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum CallSort {
    /// By elapsed time: execution, fetches and decoding
    Time,
    /// By number of executions
    Count,
    /// By time to wait for the server and the network
    Wait,
    /// By time to decode rows
    Decode,
    /// By rows received
    Rows,
    /// By round trips
    Trips,
    /// By bytes received
    Bytes,
    /// By executions that ended with an exception
    Failed,
}

impl CallSort {
    fn figure(self, row: &CallRow) -> f64 {
        match self {
            CallSort::Time => row.elapsed_seconds(),
            CallSort::Count => row.execute.count as f64,
            CallSort::Wait => row.wait_seconds,
            CallSort::Decode => row.decode_seconds,
            CallSort::Rows => row.rows as f64,
            CallSort::Trips => row.round_trips as f64,
            CallSort::Bytes => row.bytes_received as f64,
            CallSort::Failed => row.failed as f64,
        }
    }

    /// The column that has its figure.
    fn key(self) -> &'static str {
        match self {
            CallSort::Time => "elapsed",
            CallSort::Count => "count",
            CallSort::Wait => "wait",
            CallSort::Decode => "decode",
            CallSort::Rows => "rows",
            CallSort::Trips => "trips",
            CallSort::Bytes => "received",
            CallSort::Failed => "failed",
        }
    }

    /// The rows in this order, equal ones by text.
    pub fn sorted(self, rows: &[CallRow]) -> Vec<&CallRow> {
        let mut rows: Vec<&CallRow> = rows.iter().collect();
        rows.sort_by(|a, b| match self.figure(b).total_cmp(&self.figure(a)) {
            Ordering::Equal => (&a.text, &a.id).cmp(&(&b.text, &b.id)),
            order => order,
        });
        rows
    }
}

type F = Field<CallRow>;

const FIELDS: &[F] = &[
    F::new("count", "Count", Unit::Count, |row, _| row.execute.count.into()),
    F::new("failed", "Failed", Unit::Count, |row, _| row.failed.into()),
    F::new("elapsed", "Elapsed", Unit::Seconds, |row, _| row.elapsed_seconds().into()),
    F::new("mean", "Mean", Unit::Seconds, |row, _| row.execute.mean_seconds.into()),
    F::new("p99", "p99", Unit::Seconds, |row, _| row.execute.p99_seconds.into()),
    F::new("execute", "Execute", Unit::Seconds, |row, _| row.execute.seconds.into()),
    F::new("fetch", "Fetch", Unit::Seconds, |row, _| row.fetch.seconds.into()),
    F::new("decode", "Decode", Unit::Seconds, |row, _| row.decode_seconds.into()),
    F::new("wait", "Wait", Unit::Seconds, |row, _| row.wait_seconds.into()),
    F::new("rows", "Rows", Unit::Count, |row, _| row.rows.into()),
    F::new("trips", "Trips", Unit::Count, |row, _| row.round_trips.into()),
    F::new("messages", "Messages", Unit::Count, |row, _| row.messages.into()),
    F::new("sent", "Sent", Unit::Bytes, |row, _| row.bytes_sent.into()),
    F::new("received", "Received", Unit::Bytes, |row, _| row.bytes_received.into()),
    F::new("statement", "Statement", Unit::Text, |row, _| one_line(&row.text).into()).elastic(),
];

const KEYS: &str =
    "count:3, failed:8, elapsed, mean:2, p99:4, execute:6, fetch:7, decode:5, wait:1, rows:9, \
                    trips:10, messages:13, sent:12, received:11, statement";

/// The first `top` rows in this order.
pub fn table(rows: &[CallRow], sort: CallSort, top: usize) -> Table {
    let figures = Picked::of_pane(choose!(FIELDS, KEYS));
    let lines = sort.sorted(rows).into_iter().take(top);
    let lines = lines.map(|row| Row::new(row.id.clone(), figures.cells(row, 0.0))).collect();
    Table::from_rows(figures.columns.clone(), lines).sorted(sort.key())
}

/// The problems, one sentence each.
pub fn findings(rows: &[CallRow]) -> Vec<String> {
    let mut findings = Vec::new();
    for row in CallSort::Time.sorted(rows) {
        if row.repeated > 0 {
            let transactions = match row.repeating_transactions {
                // It began before the interval.
                0 | 1 => "a transaction".to_string(),
                n => format!(
                    "{} transactions (at most {} in one)",
                    whole(n),
                    whole(row.max_repeated)
                ),
            };
            findings.push(format!(
                "executed repeatedly with other parameters: {} times in {transactions}; use one statement or a batch \
                 instead (N+1 problem): {}",
                whole(row.repeated),
                quoted(&row.text)
            ));
        }
        if row.max_savepoints > MANY_SAVEPOINTS {
            findings.push(format!(
                "the driver sets a savepoint for each execution (autosave): {} of them, up to {} in a transaction; more than \
                 {MANY_SAVEPOINTS} make every snapshot of the server slower, and each may take space in its table of locks; set \
                 cleanupSavepoints=true, or autosave=never: {}",
                whole(row.savepoints),
                whole(row.max_savepoints),
                quoted(&row.text)
            ));
        }
        if row.ignored_fetch_sizes > 0 {
            findings.push(format!(
                "its fetch size was ignored {}, because autocommit is on or the result can be scrolled: up to {} rows at \
                 once: {}",
                match row.ignored_fetch_sizes {
                    1 => "once".to_string(),
                    n => format!("{} times", whole(n)),
                },
                whole(row.max_rows),
                quoted(&row.text)
            ));
        } else if row.max_rows >= MANY_ROWS && !row.is_copy() {
            findings.push(format!(
                "{} rows at once in the client's memory; with autocommit off, setFetchSize fetches them in \
                 parts: {}",
                whole(row.max_rows),
                quoted(&row.text)
            ));
        }
    }
    findings
}

fn quoted(text: &str) -> String {
    crate::statements::beginning(&one_line(text), QUOTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str, rows: u64, repeated: u64) -> CallRow {
        CallRow {
            text: text.into(),
            max_rows: rows,
            repeated,
            max_repeated: repeated,
            repeating_transactions: u64::from(repeated > 0),
            ..CallRow::default()
        }
    }

    #[test]
    fn many_rows_at_once_and_repeated_statements_are_found() {
        assert!(findings(&[row("a", 9_999, 0)]).is_empty());
        let found = findings(&[row("a", 10_000, 0), row("b", 1, 11)]);
        assert!(found[0].contains("setFetchSize") && found[0].ends_with(": a"), "{found:?}");
        assert!(found[1].contains("11 times in a transaction;") && found[1].ends_with(": b"));
        assert!(findings(&[row("COPY t to stdout", 10_000, 0)]).is_empty(), "row by row");
        let going_on = CallRow { repeating_transactions: 0, ..row("c", 1, 30) };
        assert!(findings(&[going_on])[0].contains("30 times in a transaction;"));
        let several = CallRow { repeating_transactions: 3, max_repeated: 12, ..row("c", 1, 33) };
        assert!(findings(&[several])[0].contains("33 times in 3 transactions (at most 12 in one);"));
    }

    #[test]
    fn savepoints_of_the_driver_and_ignored_fetch_sizes_are_found() {
        let few = CallRow { savepoints: 900, max_savepoints: 64, ..row("a", 1, 0) };
        assert!(findings(&[few]).is_empty());
        let many = CallRow { savepoints: 900, max_savepoints: 65, ..row("a", 1, 0) };
        let found = findings(&[many]);
        assert!(found[0].contains("900 of them, up to 65 in a transaction"), "{found:?}");
        let ignored = CallRow { ignored_fetch_sizes: 1, ..row("b", 20_000, 0) };
        let found = findings(&[ignored]);
        assert!(found[0].contains("ignored once, because autocommit is on"), "{found:?}");
        assert_eq!(found.len(), 1, "it has a fetch size: {found:?}");
    }

    #[test]
    fn statements_are_sorted_by_the_figure_then_by_text() {
        let rows = [row("b", 1, 0), row("a", 1, 0)];
        let texts: Vec<&str> = CallSort::Time.sorted(&rows).iter().map(|row| &*row.text).collect();
        assert_eq!(texts, ["a", "b"]);
    }
}
