// SPDX-License-Identifier: PostgreSQL
//! The columns of statements.

use segment::interval::Timing;
use segment::statements::WaitClass;

use super::StatementFigures;
use crate::measured::Measured;
use crate::table::field::{rate, Field};
use crate::table::{Cell, Unit};

type F = Field<StatementFigures>;

/// The columns of reports and of the pane.
pub const FIELDS: &[F] = &[
    F::new("query", "Statement", Unit::Text, |row, _| row.text().into()).elastic(),
    F::new("database", "Database", Unit::Text, |row, _| row.database.as_str().into()),
    F::new("user", "User", Unit::Text, |row, _| row.user.as_str().into()),
    F::new("application", "Application", Unit::Text, |row, _| row.application.name().into()),
    F::new("calls", "Calls", Unit::Count, |row, _| row.known_calls().into()),
    F::new("per_second", "Rate", Unit::PerSecond, |row, s| {
        row.known_calls().map_or(Cell::Empty, |calls| rate(calls, s))
    })
    .head("CALLS/S"),
    F::new("seconds", "Time", Unit::Seconds, |row, _| time(row))
        .help("server time: parse, plan, execute, commit"),
    F::new("share", "Share", Unit::Share, |row, _| share(row))
        .head("%TIME")
        .help("share of all statements' time; a nested statement's time is part of its caller's"),
    F::new("per_call_seconds", "Time per call", Unit::Seconds, |row, _| time_per_call(row))
        .head("TIME/CALL")
        .help("server time per call: parse, plan, execute, commit, all waits and parallel workers"),
    F::new("mean_seconds", "Execution mean", Unit::Seconds, |row, _| {
        row.execution.mean_seconds.into()
    })
    .head("MEAN")
    .help("execution alone, as in pg_stat_statements; the same for p50 to max"),
    F::new("p50_seconds", "p50", Unit::Seconds, |row, _| row.quantiles.p50_seconds.into()),
    F::new("p95_seconds", "p95", Unit::Seconds, |row, _| row.quantiles.p95_seconds.into()),
    F::new("p99_seconds", "p99", Unit::Seconds, |row, _| row.quantiles.p99_seconds.into()),
    F::new("max_seconds", "Max", Unit::Seconds, |row, _| row.execution.max_seconds.into()),
    F::new("rows_per_call", "Rows per call", Unit::Number, |row, _| row.rows_per_call().into())
        .head("ROWS/CALL"),
    F::new("hit_share", "Buffer hits", Unit::Share, |row, _| row.blocks.hit_ratio().into())
        .head("%HIT"),
    F::new("cpu_share", "cpu", Unit::Share, |row, _| match row.hides_cpu() {
        true => crate::timing::refused(),
        false => part(row, WaitClass::Cpu),
    })
    .head("%CPU"),
    F::new("io_share", "IO", Unit::Share, |row, _| part(row, WaitClass::Io)).head("%IO"),
    F::new("lwlock_share", "LWLock", Unit::Share, |row, _| part(row, WaitClass::Lwlock))
        .head("%LWLOCK"),
    F::new("lock_share", "Lock", Unit::Share, |row, _| part(row, WaitClass::Lock)).head("%LOCK"),
    F::new("client_share", "Client", Unit::Share, |row, _| part(row, WaitClass::Client))
        .head("%CLIENT"),
    F::new("ipc_share", "IPC", Unit::Share, |row, _| part(row, WaitClass::Ipc)).head("%IPC"),
    F::new("other_share", "Other", Unit::Share, |row, _| part(row, WaitClass::Other))
        .head("%OTHER"),
    F::new("wal_bytes", "WAL", Unit::Bytes, |row, _| {
        row.known_calls().map(|_| row.wal.bytes).into()
    }),
    F::new("temp_bytes", "Temporary", Unit::Bytes, |row, _| counted(row, row.temp_bytes)),
    F::new("errors", "Errors", Unit::Count, |row, _| counted(row, row.errors)),
    F::new("cancels", "Cancelled", Unit::Count, |row, _| counted(row, row.cancels)),
    F::new("queryid", "Query ID", Unit::Id, |row, _| row.queryid.map(|id| id.to_string()).into()),
    F::new("level", "Sent", Unit::Text, |row, _| {
        if row.toplevel { "by the client" } else { "within another" }.into()
    })
    .help("sent by the client, or nested in another statement"),
];

/// The time; of samples, with its half-width.
fn time(row: &StatementFigures) -> Cell {
    let timing = Timing {
        seconds: row.seconds,
        half_width_seconds: row.half_width_seconds,
        ..Timing::default()
    };
    crate::timing::seconds(&timing)
}

/// The share of its time in that of all statements.
fn share(row: &StatementFigures) -> Cell {
    match row.seconds_source {
        None => row.share.into(),
        Some(_) => Cell::Estimate(Measured::new(row.share, row.share_half_width)),
    }
}

fn time_per_call(row: &StatementFigures) -> Cell {
    let (Some(each), Some(half)) = (row.seconds_per_call(), row.half_width_seconds) else {
        return row.seconds_per_call().into();
    };
    Cell::Estimate(Measured::new(each, half / row.calls as f64))
}

/// A count that only pg_tally has.
fn counted(row: &StatementFigures, count: u64) -> Cell {
    row.seconds_source.is_none().then_some(count).into()
}

fn part(row: &StatementFigures, class: WaitClass) -> Cell {
    share_of_time(row, row.split.class(class))
}

/// The share of a part in its time.
pub(super) fn share_of_time(row: &StatementFigures, part: f64) -> Cell {
    let share = (row.seconds > 0.0).then(|| part / row.seconds);
    match row.seconds_source {
        None => share.into(),
        // If no sample has seen it, nothing divides its time.
        Some(_) => match share.zip(row.share_of_time_half_width(part)) {
            Some((share, half)) => Cell::Estimate(Measured::new(share, half)),
            None => Cell::Empty,
        },
    }
}
