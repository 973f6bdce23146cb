// SPDX-License-Identifier: PostgreSQL
//! Probed functions, events, settings, gaps, and statistics that have no table of
//! their own.

use segment::interval::Interval;
use segment::EventKind;

use super::{rate, MAX, MEAN, P50, P99};
use crate::material::Setting;
use view::document::{Cell, Column, Gap, Table, Tone, Unit};
use view::events::Row;
use view::functions;

/// Probed functions, by phase.
pub fn functions(interval: &Interval) -> Table {
    let columns = vec![
        Column::new("name", "Function", Unit::Text),
        Column::new("phase", "Phase", Unit::Text).expendable(5),
        Column::new("calls", "Calls", Unit::Count),
        Column::new("per_second", "Rate", Unit::PerSecond).expendable(6),
        Column::new("seconds", "Inclusive", Unit::Seconds).help("including what it called"),
        MEAN,
        P50,
        P99,
        MAX,
        Column::new("exclusive_seconds", "Exclusive", Unit::Seconds)
            .help("without the probed functions that it called"),
        Column::new("exclusive_mean_seconds", "Mean exclusive", Unit::Seconds).expendable(4),
        Column::new("counted", "Not timed", Unit::Count)
            .help("counted, not timed: called too often")
            .expendable(8),
    ];
    let mut table = Table::new("functions", "Probed functions", columns)
        .sorted("seconds")
        .noted(functions::note(interval));
    for row in &interval.functions {
        let of = &row.inclusive;
        let cells = vec![
            (&row.name).into(),
            (&row.phase).into(),
            row.calls.into(),
            rate(row.calls as f64, interval).into(),
            of.seconds.into(),
            of.mean_seconds.into(),
            of.p50_seconds.into(),
            of.p99_seconds.into(),
            of.max_seconds.into(),
            row.exclusive_seconds.into(),
            row.exclusive_mean_seconds.into(),
            row.counted.into(),
        ];
        table.push(Tone::Plain, cells);
    }
    table
}

/// Who calls whom.
pub fn edges(interval: &Interval) -> Table {
    let columns = vec![
        Column::new("caller", "Caller", Unit::Text),
        Column::new("callee", "Called", Unit::Text),
        Column::new("count", "Calls", Unit::Count),
        Column::new("seconds", "Time", Unit::Seconds),
        MEAN,
        MAX,
    ];
    let mut table = Table::new("edges", "Who calls whom", columns).sorted("seconds");
    for row in &interval.edges {
        let cells = vec![
            (&row.caller).into(),
            (&row.callee).into(),
            row.timing.count.into(),
            row.timing.seconds.into(),
            row.timing.mean_seconds.into(),
            row.timing.max_seconds.into(),
        ];
        table.push(Tone::Plain, cells);
    }
    table
}

/// Statistics of writers that we know nothing of.
pub fn statistics(interval: &Interval) -> Table {
    let columns = vec![
        Column::new("name", "Name", Unit::Text),
        Column::new("unit", "Unit", Unit::Text),
        Column::new("count", "Count", Unit::Count),
        Column::new("total", "Total", Unit::Number),
        Column::new("mean", "Average", Unit::Number),
        Column::new("p50", "p50", Unit::Number).expendable(2),
        Column::new("p99", "p99", Unit::Number).expendable(1),
        Column::new("max", "Max", Unit::Number),
    ];
    let mut table = Table::new("statistics", "Other statistics", columns).sorted("name");
    for row in &interval.statistics {
        let cells = vec![
            row.name.as_str().into(),
            row.unit.as_str().into(),
            row.count.into(),
            row.total.into(),
            super::each(row.total, row.count).into(),
            row.p50.into(),
            row.p99.into(),
            row.max.into(),
        ];
        table.push(Tone::Plain, cells);
    }
    table
}

/// Events that are neither checkpoints nor slow operations: those have tables of their own.
pub fn events(events: &[Row], from: f64) -> Table {
    let others = events.iter().filter(|row| {
        !matches!(row.kind, EventKind::Slow | EventKind::Checkpoint)
            && row.time.is_some_and(|time| time >= from)
    });
    event_table("events", "Other events", others)
}

/// A table of events.
pub fn event_table<'e>(
    id: &'static str,
    title: &'static str,
    events: impl Iterator<Item = &'e Row>,
) -> Table {
    let columns = vec![
        Column::new("time", "Time", Unit::Time),
        Column::new("kind", "Kind", Unit::Text).expendable(3),
        Column::new("pid", "Process", Unit::Id).expendable(2),
        Column::new("process", "Kind of process", Unit::Text).expendable(1),
        Column::new("database", "Database", Unit::Text).expendable(4),
        Column::new("user", "User", Unit::Text).expendable(5),
        Column::new("text", "What", Unit::Text).elastic(),
    ];
    let mut table = Table::new(id, title, columns).sorted("time");
    for row in events {
        let cells: Vec<Cell> = vec![
            row.time.into(),
            row.kind.to_string().into(),
            row.pid.to_string().into(),
            row.process.as_deref().into(),
            row.database.as_deref().into(),
            row.user.as_deref().into(),
            row.text.as_str().into(),
        ];
        table.push(Tone::Plain, cells);
    }
    table
}

/// Where nothing was measured.
pub fn gaps(gaps: &[Gap]) -> Table {
    let columns = vec![
        Column::new("from", "From", Unit::Time),
        Column::new("to", "To", Unit::Time),
        Column::new("seconds", "Length", Unit::Seconds),
        Column::new("reason", "Reason", Unit::Text),
    ];
    let mut table = Table::new("gaps", "Gaps", columns).sorted("from");
    for gap in gaps {
        let length = (gap.to - gap.from).max(0.0);
        let cells = vec![gap.from.into(), gap.to.into(), length.into(), gap.reason.as_str().into()];
        table.push(Tone::Plain, cells);
    }
    table
}

/// The settings of server, machine and recorder.
pub fn settings(settings: &[Setting]) -> Table {
    let columns = vec![
        Column::new("group", "Of", Unit::Text),
        Column::new("name", "Setting", Unit::Text),
        Column::new("value", "Value", Unit::Text).elastic(),
        Column::new("changed", "Changed", Unit::Time).help("empty: since the start"),
    ];
    let mut table = Table::new("settings", "Settings", columns);
    for it in settings {
        table.push(
            Tone::Plain,
            vec![
                it.group.as_str().into(),
                it.name.as_str().into(),
                it.value.as_str().into(),
                it.changed.into(),
            ],
        );
    }
    table
}
