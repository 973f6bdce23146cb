// SPDX-License-Identifier: PostgreSQL
//! Timed functions, events, settings, gaps, and statistics without a table of their own.

use segment::functions::EdgeRow;
use segment::interval::{Interval, StatisticRow};
use segment::EventKind;

use crate::material::Setting;
use view::document::{Cell, Column, Gap, OverTime, Table, Tone, Unit};
use view::events::Row;
use view::functions;
use view::settings::SettingChange;
use view::table::field::{Field, Picked};

/// Timed functions, by phase.
pub fn functions(interval: &Interval) -> Table {
    let name = ("functions", "Timed functions");
    Picked::all(functions::FIELDS)
        .table(name, &interval.functions, interval.instrumented_seconds, Tone::Plain)
        .sorted("seconds")
        .noted(functions::note(interval))
}

/// Who calls whom.
pub fn edges(interval: &Interval) -> Table {
    type F = Field<EdgeRow>;
    const FIELDS: &[F] = &[
        F::new("caller", "Caller", Unit::Text, |row, _| (&row.caller).into()),
        F::new("callee", "Called", Unit::Text, |row, _| (&row.callee).into()),
        F::new("count", "Calls", Unit::Count, |row, _| row.timing.count.into()),
        F::new("seconds", "Time", Unit::Seconds, |row, _| row.timing.seconds.into()),
        F::new("mean_seconds", "Mean", Unit::Seconds, |row, _| row.timing.mean_seconds.into())
            .expendable(1),
        F::new("max_seconds", "Max", Unit::Seconds, |row, _| row.timing.max_seconds.into())
            .expendable(3),
    ];
    let name = ("edges", "Who calls whom");
    Picked::all(FIELDS).table(name, &interval.edges, 0.0, Tone::Plain).sorted("seconds")
}

/// Statistics of writers that are unknown to tally.
pub fn statistics(interval: &Interval) -> Table {
    type F = Field<StatisticRow>;
    const FIELDS: &[F] = &[
        F::new("name", "Name", Unit::Text, |row, _| row.name.as_str().into()),
        F::new("unit", "Unit", Unit::Text, |row, _| row.unit.as_str().into()),
        F::new("count", "Count", Unit::Count, |row, _| row.count.into()),
        F::new("total", "Total", Unit::Number, |row, _| row.total.into()),
        F::new("mean", "Average", Unit::Number, |row, _| super::each(row.total, row.count).into()),
        F::new("p50", "p50", Unit::Number, |row, _| row.p50.into()).expendable(2),
        F::new("p99", "p99", Unit::Number, |row, _| row.p99.into()).expendable(1),
        F::new("max", "Max", Unit::Number, |row, _| row.max.into()),
    ];
    let name = ("statistics", "Other statistics");
    Picked::all(FIELDS).table(name, &interval.statistics, 0.0, Tone::Plain).sorted("name")
}

/// Events other than checkpoints and slow operations, which have tables of their own.
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
        Column::new("text", "What", Unit::Text).wrapped(),
    ];
    let mut table =
        Table::new(id, title, columns).sorted("time").over_time(OverTime::Rows("time", "time"));
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

/// Times in which nothing was measured.
pub fn gaps(gaps: &[Gap]) -> Table {
    type F = Field<Gap>;
    const FIELDS: &[F] = &[
        F::new("from", "From", Unit::Time, |row, _| row.from.into()),
        F::new("to", "To", Unit::Time, |row, _| row.to.into()),
        F::new("seconds", "Length", Unit::Seconds, |row, _| (row.to - row.from).max(0.0).into()),
        F::new("reason", "Reason", Unit::Text, |row, _| row.reason.as_str().into()),
    ];
    Picked::all(FIELDS)
        .table(("gaps", "Gaps"), gaps, 0.0, Tone::Plain)
        .sorted("from")
        .over_time(OverTime::Rows("from", "to"))
}

/// Changes of the server's settings.
pub fn setting_changes(changes: &[SettingChange]) -> Table {
    type F = Field<SettingChange>;
    const FIELDS: &[F] = &[
        F::new("time", "Time", Unit::Time, |row, _| row.time.into())
            .help("when the server loaded it or, in a recording, when the recorder found it, up to a minute later"),
        F::new("name", "Setting", Unit::Text, |row, _| row.name.as_str().into()),
        F::new("before", "Before", Unit::Text, |row, _| row.before.as_str().into()).wrapped(),
        F::new("after", "After", Unit::Text, |row, _| row.after.as_str().into()).wrapped(),
    ];
    let name = ("setting_changes", "Changed settings");
    Picked::all(FIELDS)
        .table(name, changes, 0.0, Tone::Plain)
        .sorted("time")
        .over_time(OverTime::Rows("time", "time"))
}

/// The settings of server, machine and recorder.
pub fn settings(settings: &[Setting]) -> Table {
    type F = Field<Setting>;
    const FIELDS: &[F] = &[
        F::new("group", "Of", Unit::Text, |row, _| row.group.as_str().into()),
        F::new("name", "Setting", Unit::Text, |row, _| row.name.as_str().into()),
        F::new("value", "Value", Unit::Text, |row, _| row.value.as_str().into()).wrapped(),
        F::new("changed", "Changed", Unit::Time, |row, _| row.changed.into())
            .help("empty if set since the start"),
    ];
    Picked::all(FIELDS)
        .table(("settings", "Settings"), settings, 0.0, Tone::Plain)
        .over_time(OverTime::Always)
}
