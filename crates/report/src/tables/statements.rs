// SPDX-License-Identifier: PostgreSQL
//! The statements, with what can be opened of each.

use segment::interval::Interval;
use segment::statements::WaitClass;

use super::rate;
use crate::charts::ORDER;
use view::document::{Cell, Column, Details, Row, Table, Tone, Unit};
use view::statements::{StatementRow, Statements};

/// Statements, most time first.
pub fn statements(all: &Statements, interval: &Interval) -> Table {
    let share = |key, title| Column::new(key, title, Unit::Share);
    let seconds = |key, title| Column::new(key, title, Unit::Seconds);
    let columns = vec![
        Column::new("query", "Statement", Unit::Text).elastic(),
        Column::new("database", "Database", Unit::Text).expendable(20),
        Column::new("user", "User", Unit::Text).expendable(21),
        Column::new("calls", "Calls", Unit::Count),
        Column::new("per_second", "Rate", Unit::PerSecond).expendable(13),
        seconds("seconds", "Time").help("server time: parse, plan, execute, commit"),
        share("share", "Share")
            .help("of all statements' time; a nested statement's time is part of its caller's"),
        seconds("mean_seconds", "Mean").help("of an execution"),
        seconds("p50_seconds", "p50").expendable(12),
        seconds("p95_seconds", "p95").expendable(14),
        seconds("p99_seconds", "p99").expendable(3),
        seconds("max_seconds", "Max").expendable(4),
        Column::new("rows_per_call", "Rows a call", Unit::Number).expendable(15),
        share("hit_share", "Buffer hits").expendable(16),
        share("cpu_share", "cpu").expendable(5),
        share("io_share", "IO").expendable(6),
        share("lwlock_share", "LWLock").expendable(7),
        share("lock_share", "Lock").expendable(8),
        share("client_share", "Client").expendable(9),
        share("ipc_share", "IPC").expendable(10),
        share("other_share", "Other").expendable(11),
        Column::new("wal_bytes", "WAL", Unit::Bytes).expendable(17),
        Column::new("temp_bytes", "Temporary", Unit::Bytes).expendable(22),
        Column::new("errors", "Errors", Unit::Count).expendable(18),
        Column::new("cancels", "Cancelled", Unit::Count).expendable(23),
        Column::new("queryid", "Query id", Unit::Id).expendable(19),
        Column::new("level", "Asked for", Unit::Text)
            .help("sent by the client, or nested in another statement")
            .expendable(24),
    ];
    let mut table = Table::new("statements", "Statements", columns).sorted("seconds");
    for row in &all.rows {
        let details = Some(details(row));
        let tone = Tone::Class(class(row));
        table.rows.push(Row { tone, details, ..Row::new("", cells(row, interval)) });
    }
    table
}

fn cells(row: &StatementRow, interval: &Interval) -> Vec<Cell> {
    let part = |class| (row.seconds > 0.0).then(|| row.split.class(class) / row.seconds);
    let mut cells = vec![
        row.text().into(),
        row.database.as_str().into(),
        row.user.as_str().into(),
        row.calls.into(),
        rate(row.calls as f64, interval).into(),
        row.seconds.into(),
        row.share.into(),
        row.execution.mean_seconds.into(),
        row.quantiles.p50_seconds.into(),
        row.quantiles.p95_seconds.into(),
        row.quantiles.p99_seconds.into(),
        row.execution.max_seconds.into(),
        row.rows_per_call().into(),
        row.blocks.hit_ratio().into(),
    ];
    cells.extend(ORDER.map(|class| Cell::from(part(class))));
    cells.extend([
        row.wal.bytes.into(),
        row.temp_bytes.into(),
        row.errors.into(),
        row.cancels.into(),
        row.queryid.map(|id| id.to_string()).into(),
        if row.toplevel { "by the client" } else { "within another" }.into(),
    ]);
    cells
}

/// The class in which it spends most.
fn class(row: &StatementRow) -> WaitClass {
    let most = |a: &WaitClass, b: &WaitClass| row.split.class(*a).total_cmp(&row.split.class(*b));
    WaitClass::ALL
        .into_iter()
        .max_by(most)
        .filter(|_| row.seconds > 0.0)
        .unwrap_or(WaitClass::Other)
}

fn details(row: &StatementRow) -> Details {
    Details {
        text: row.query.clone(),
        cut: row.query_cut,
        histogram: row
            .histogram
            .iter()
            .map(|bucket| (bucket.from_seconds.into(), bucket.to_seconds.into(), bucket.count))
            .collect(),
        activities: row
            .activities
            .iter()
            .map(|it| (it.phase.clone(), it.activity.clone(), it.seconds.into(), it.count))
            .collect(),
    }
}
