// SPDX-License-Identifier: PostgreSQL
//! Active session history: which sessions were active, who blocked others, and who kept a transaction open.

use crate::material::{Active, Open, SessionHistory};
use segment::sampling::time_half_width;
use segment::Interval;
use view::blocking::Blocker;
use view::document::{Cell, OverTime, Table, Tone, Unit};
use view::measured::Measured;
use view::table::field::{Field, Picked};

/// The three tables.
pub fn sessions(history: &SessionHistory, interval: &Interval) -> [Table; 3] {
    let mut active = active(&history.active, interval.instrumented_seconds);
    if let Some(sampling) = &interval.sampling {
        estimate(&mut active, interval.instrumented_seconds, 1.0 / sampling.per_second);
    }
    [active, blockers(&history.blockers), open(&history.open)]
}

/// Makes the times of the active sessions estimates, from samples at this mean distance.
fn estimate(active: &mut Table, length: f64, distance: f64) {
    let Table { columns, rows, .. } = active;
    for (cell, column) in rows.iter_mut().flat_map(|row| row.cells.iter_mut().zip(columns.iter())) {
        let (Cell::Number(value), length) = (&*cell, length.max(1e-9)) else { continue };
        let value = *value;
        let half_width = match column.key {
            "busy_seconds" | "cpu_seconds" => time_half_width(value, distance),
            "average" => time_half_width(value * length, distance) / length,
            _ => continue,
        };
        *cell = Cell::Estimate(Measured::new(value, half_width));
    }
}

fn active(rows: &[Active], interval_seconds: f64) -> Table {
    type F = Field<Active>;
    const FIELDS: &[F] = &[
        F::new("application", "Application", Unit::Text, |row, _| row.application.as_str().into()),
        F::new("user", "User", Unit::Text, |row, _| row.user.as_deref().into()),
        F::new("database", "Database", Unit::Text, |row, _| row.database.as_deref().into()),
        F::new("process", "Kind of process", Unit::Text, |row, _| row.process.as_str().into())
            .expendable(2),
        F::new("sessions", "Sessions", Unit::Count, |row, _| row.sessions.into()).expendable(1),
        F::new("busy_seconds", "Busy", Unit::Seconds, |row, _| row.busy_seconds.into()),
        F::new("average", "Active sessions", Unit::Sessions, |row, seconds| {
            (seconds > 0.0).then(|| row.busy_seconds / seconds).into()
        })
        .help("average number of busy sessions"),
        F::new("cpu_seconds", "CPU", Unit::Seconds, |row, _| row.cpu_seconds.into()),
        F::new("blocked_seconds", "Blocked", Unit::Seconds, |row, _| row.blocked_seconds.into())
            .help(
                "time blocked by locks of other sessions, from samples at the end of each interval",
            ),
        F::new("idle_in_transaction_seconds", "Idle in transaction", Unit::Seconds, |row, _| {
            row.idle_in_transaction_seconds.into()
        })
        .help("from samples at the end of each interval"),
    ];
    Picked::all(FIELDS)
        .table(("active_sessions", "Active sessions"), rows, interval_seconds, Tone::Plain)
        .sorted("busy_seconds")
}

fn blockers(rows: &[Blocker]) -> Table {
    type F = Field<Blocker>;
    const FIELDS: &[F] = &[
        F::new("pid", "Process", Unit::Id, |row, _| row.root.pid.to_string().into()),
        F::new("application", "Application", Unit::Text, |row, _| {
            row.root.application.as_deref().into()
        }),
        F::new("user", "User", Unit::Text, |row, _| row.root.user.as_deref().into()).expendable(2),
        F::new("database", "Database", Unit::Text, |row, _| row.root.database.as_deref().into())
            .expendable(3),
        F::new("waiters", "Blocked sessions", Unit::Count, |row, _| (row.waiters as u64).into())
            .help("maximum at one time"),
        F::new("waiting_seconds", "Their time", Unit::Seconds, |row, _| row.waiting_seconds.into()),
        F::new("from", "From", Unit::Time, |row, _| row.from().into()),
        F::new("to", "To", Unit::Time, |row, _| row.to().into()).expendable(1),
        F::new("doing", "Its state", Unit::Text, |row, _| row.root.doing().into())
            .help("when most sessions waited"),
        F::new("query", "Its statement", Unit::Text, |row, _| row.root.query.as_deref().into())
            .help("the statement that it executed then, otherwise its last one")
            .elastic(),
    ];
    Picked::all(FIELDS)
        .table(("blockers", "Sessions that blocked others"), rows, 0.0, Tone::Plain)
        .sorted("waiting_seconds")
        .over_time(OverTime::RowsOfAll(
            "from",
            "to",
            "the time of a blocking session is counted from its beginning to its end",
        ))
}

fn open(rows: &[Open]) -> Table {
    type F = Field<Open>;
    const FIELDS: &[F] = &[
        F::new("pid", "Process", Unit::Id, |row, _| row.pid.to_string().into()),
        F::new("application", "Application", Unit::Text, |row, _| row.application.as_str().into()),
        F::new("user", "User", Unit::Text, |row, _| row.user.as_deref().into()).expendable(1),
        F::new("database", "Database", Unit::Text, |row, _| row.database.as_deref().into())
            .expendable(2),
        F::new("seconds", "Longest", Unit::Seconds, |row, _| row.seconds.into()),
        F::new("until", "Until", Unit::Time, |row, _| row.until.into()),
        F::new("query", "Its last statement", Unit::Text, |row, _| row.query.as_deref().into())
            .elastic(),
    ];
    Picked::all(FIELDS)
        .table(("idle_in_transaction", "Idle in transaction"), rows, 0.0, Tone::Plain)
        .sorted("seconds")
        .over_time(OverTime::Whole("of each session, only its longest time is kept"))
}
