// SPDX-License-Identifier: PostgreSQL
//! The slowest executions of statements with their parameters, from a recording with `--parameters`.

use recording::SlowExecutionRow;
use segment::{Application, StatementKey};
use serde::Serialize;

use crate::json_id::id;
use crate::table::PaneSection;
use crate::units::duration;

/// An execution of a statement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlowExecutionFigures {
    /// The statement.
    #[serde(skip)]
    pub key: StatementKey,
    /// Its query ID.
    #[serde(serialize_with = "id")]
    pub queryid: i64,
    /// PID of the session.
    pub pid: i64,
    /// When it ended, seconds since 1970.
    pub ended: f64,
    /// How long it took.
    pub seconds: f64,
    /// Its parameters, as in the server's log: `$1 = '42', $2 = NULL`.
    pub parameters: String,
}

impl SlowExecutionFigures {
    /// The executions of a part of a recording, in the same order.
    pub fn recorded(rows: Vec<SlowExecutionRow>) -> Vec<SlowExecutionFigures> {
        let figures = |row: SlowExecutionRow| SlowExecutionFigures {
            key: StatementKey {
                id: row.queryid as u64,
                database_id: row.database_id,
                user_id: row.user_id,
                toplevel: row.toplevel,
                application: Application::from_name(&row.application),
            },
            queryid: row.queryid,
            pid: row.pid,
            ended: row.end_us as f64 * 1e-6,
            seconds: row.exec_ns as f64 * 1e-9,
            parameters: row.parameters.to_string(),
        };
        rows.into_iter().map(figures).collect()
    }

    /// Its line in a page. A value may contain line feeds.
    fn line(&self, now: f64) -> String {
        let ago = duration((now - self.ended).max(0.0));
        let parameters = self.parameters.replace('\n', "\\u000A");
        format!("{}, {ago} ago, PID {}: {parameters}", duration(self.seconds), self.pid)
    }
}

/// The section of a page about these executions; `None` if there are none.
pub(super) fn section<'s>(
    executions: impl Iterator<Item = &'s SlowExecutionFigures>,
    now: f64,
) -> Option<PaneSection> {
    let lines: Vec<String> = executions.map(|execution| execution.line(now)).collect();
    let title = "Slowest executions, with their parameters".to_string();
    (!lines.is_empty()).then_some(PaneSection { title, lines, table: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_times_and_parameters() {
        let row = |exec_ns: u64, parameters: &str| SlowExecutionRow {
            queryid: -7,
            pid: 4711,
            end_us: 990_000_000,
            exec_ns,
            parameters: parameters.into(),
            ..SlowExecutionRow::default()
        };
        let executions = SlowExecutionFigures::recorded(vec![
            row(512_000_000, "$1 = '42', $2 = NULL"),
            row(37_500_000, "$1 = 'two\nlines', $2 = '1'"),
        ]);
        assert_eq!((executions[0].key.query_id(), executions[0].queryid), (-7, -7));
        let section = section(executions.iter(), 1000.0).unwrap();
        assert_eq!(
            section.lines,
            [
                "512 ms, 10 s ago, PID 4711: $1 = '42', $2 = NULL",
                "37.5 ms, 10 s ago, PID 4711: $1 = 'two\\u000Alines', $2 = '1'",
            ]
        );
        assert!(super::section([].iter(), 1000.0).is_none());
    }
}
