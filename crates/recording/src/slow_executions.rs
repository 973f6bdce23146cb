// SPDX-License-Identifier: PostgreSQL
//! The slowest executions of statements, with their parameters (`tally record --parameters`). These are the only data of users
//! in a recording.

use crate::error::Error;
use crate::range::Range;
use crate::recording::Recording;
use crate::rows::{statement_key, RecordedStatementKey};
use crate::table::{table, Cell, Cells, Column, Columns, Table, Unit};
use segment::Application;
use std::collections::HashMap;
use std::sync::Arc;

/// Number of executions of a statement to keep.
const SLOWEST: usize = 3;

table! {
    /// An execution of a statement, with its parameters.
    SlowExecutionRow in "slow_executions" by |a, b| (a.key(), a.end_us).cmp(&(b.key(), b.end_us));
    queryid: i64, Id, "As in `statements`.";
    database_id: u32, Id, "As in `statements`.";
    user_id: u32, Id, "As in `statements`.";
    toplevel: bool, Flag, "As in `statements`.";
    application: Arc<str>, Text, "As in `statements`.";
    pid: i64, Id, "PID of the session.";
    end_us: i64, Time, "When it ended.";
    exec_ns: u64, Ns, "How long it took.";
    parameters: Arc<str>, Text, "Its parameters, as in the server's log: `$1 = '42', $2 = NULL`.";
}

statement_key! { key: SlowExecutionRow }

impl SlowExecutionRow {
    /// Keeps the slowest executions of each statement: first the slowest one of each, then the second one of each, and so on.
    pub fn keep_slowest(rows: &mut Vec<SlowExecutionRow>) {
        rows.sort_by(|a, b| b.exec_ns.cmp(&a.exec_ns).then_with(|| b.end_us.cmp(&a.end_us)));
        let mut counts: HashMap<RecordedStatementKey, usize> = HashMap::new();
        let mut ranked: Vec<Vec<SlowExecutionRow>> = vec![Vec::new(); SLOWEST];
        for row in rows.drain(..) {
            let count = counts.entry(row.key()).or_default();
            if let Some(rank) = ranked.get_mut(*count) {
                rank.push(row);
            }
            *count += 1;
        }
        rows.extend(ranked.into_iter().flatten());
    }
}

impl Recording {
    /// The slowest executions of each statement in a range, those of a statement by their length, the slowest first.
    pub fn slow_executions(&self, range: Range) -> Result<Vec<SlowExecutionRow>, Error> {
        let mut rows = self.rows::<SlowExecutionRow>(range)?;
        SlowExecutionRow::keep_slowest(&mut rows);
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_of_each_statement_are_kept() {
        let row = |queryid: i64, application: &str, exec_ns: u64| SlowExecutionRow {
            queryid,
            application: application.into(),
            exec_ns,
            ..SlowExecutionRow::default()
        };
        let mut rows: Vec<SlowExecutionRow> = (1..=5).map(|ns| row(1, "a", ns)).collect();
        rows.extend([row(1, "b", 2), row(2, "a", 3)]);
        SlowExecutionRow::keep_slowest(&mut rows);
        let kept: Vec<(i64, &str, u64)> =
            rows.iter().map(|row| (row.queryid, &*row.application, row.exec_ns)).collect();
        assert_eq!(kept, [(1, "a", 5), (2, "a", 3), (1, "b", 2), (1, "a", 4), (1, "a", 3)]);
    }

    /// As a recorder does, which cuts what it keeps after each look.
    #[test]
    fn what_is_cut_off_early_would_not_be_kept_at_the_end() {
        let row = |n: u64| SlowExecutionRow {
            queryid: (n * n % 7) as i64,
            exec_ns: n * 37 % 101,
            ..SlowExecutionRow::default()
        };
        let all: Vec<SlowExecutionRow> = (1..=100).map(row).collect();
        let kept = |looks: usize| {
            let mut rows = Vec::new();
            for seen in all.chunks(all.len() / looks) {
                rows.extend_from_slice(seen);
                SlowExecutionRow::keep_slowest(&mut rows);
                rows.truncate(6);
            }
            rows.iter().map(|row| (row.queryid, row.exec_ns)).collect::<Vec<_>>()
        };
        for looks in [5, 20, 100] {
            assert_eq!(kept(looks), kept(1));
        }
    }
}
