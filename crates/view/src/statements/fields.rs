// SPDX-License-Identifier: PostgreSQL
//! The columns of statements.

use segment::statements::WaitClass;

use super::StatementRow;
use crate::table::field::{rate, Field};
use crate::table::{Cell, Unit};

type F = Field<StatementRow>;

/// The columns of reports and of the pane.
pub const FIELDS: &[F] = &[
    F::new("query", "Statement", Unit::Text, |it, _| it.text().into()).elastic(),
    F::new("database", "Database", Unit::Text, |it, _| it.database.as_str().into()),
    F::new("user", "User", Unit::Text, |it, _| it.user.as_str().into()),
    F::new("calls", "Calls", Unit::Count, |it, _| it.calls.into()),
    F::new("per_second", "Rate", Unit::PerSecond, |it, s| rate(it.calls, s)).head("CALLS/S"),
    F::new("seconds", "Time", Unit::Seconds, |it, _| it.seconds.into())
        .help("server time: parse, plan, execute, commit"),
    F::new("share", "Share", Unit::Share, |it, _| it.share.into())
        .head("%TIME")
        .help("of all statements' time; a nested statement's time is part of its caller's"),
    F::new("per_call_seconds", "Time a call", Unit::Seconds, |it, _| it.seconds_per_call().into())
        .head("TIME/CALL")
        .help("of the server: parse, plan, execute, commit, all waits and parallel workers"),
    F::new("mean_seconds", "Execution mean", Unit::Seconds, |it, _| {
        it.execution.mean_seconds.into()
    })
    .head("MEAN")
    .help("of executing alone, as in pg_stat_statements; p50 to max likewise"),
    F::new("p50_seconds", "p50", Unit::Seconds, |it, _| it.quantiles.p50_seconds.into()),
    F::new("p95_seconds", "p95", Unit::Seconds, |it, _| it.quantiles.p95_seconds.into()),
    F::new("p99_seconds", "p99", Unit::Seconds, |it, _| it.quantiles.p99_seconds.into()),
    F::new("max_seconds", "Max", Unit::Seconds, |it, _| it.execution.max_seconds.into()),
    F::new("rows_per_call", "Rows a call", Unit::Number, |it, _| it.rows_per_call().into())
        .head("ROWS/CALL"),
    F::new("hit_share", "Buffer hits", Unit::Share, |it, _| it.blocks.hit_ratio().into())
        .head("%HIT"),
    F::new("cpu_share", "cpu", Unit::Share, |it, _| part(it, WaitClass::Cpu)).head("%CPU"),
    F::new("io_share", "IO", Unit::Share, |it, _| part(it, WaitClass::Io)).head("%IO"),
    F::new("lwlock_share", "LWLock", Unit::Share, |it, _| part(it, WaitClass::Lwlock))
        .head("%LWLOCK"),
    F::new("lock_share", "Lock", Unit::Share, |it, _| part(it, WaitClass::Lock)).head("%LOCK"),
    F::new("client_share", "Client", Unit::Share, |it, _| part(it, WaitClass::Client))
        .head("%CLIENT"),
    F::new("ipc_share", "IPC", Unit::Share, |it, _| part(it, WaitClass::Ipc)).head("%IPC"),
    F::new("other_share", "Other", Unit::Share, |it, _| part(it, WaitClass::Other)).head("%OTHER"),
    F::new("wal_bytes", "WAL", Unit::Bytes, |it, _| it.wal.bytes.into()),
    F::new("temp_bytes", "Temporary", Unit::Bytes, |it, _| it.temp_bytes.into()),
    F::new("errors", "Errors", Unit::Count, |it, _| it.errors.into()),
    F::new("cancels", "Cancelled", Unit::Count, |it, _| it.cancels.into()),
    F::new("queryid", "Query id", Unit::Id, |it, _| it.queryid.map(|id| id.to_string()).into()),
    F::new("level", "Asked for", Unit::Text, |it, _| {
        if it.toplevel { "by the client" } else { "within another" }.into()
    })
    .help("sent by the client, or nested in another statement"),
];

fn part(row: &StatementRow, class: WaitClass) -> Cell {
    (row.seconds > 0.0).then(|| row.split.class(class) / row.seconds).into()
}
