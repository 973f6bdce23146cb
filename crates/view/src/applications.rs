// SPDX-License-Identifier: PostgreSQL
//! The sessions' time by application.

use std::collections::BTreeMap;

use segment::interval::{Interval, SessionRow};

use crate::choose;
use crate::rows::{accepts, sorted, RowOptions};
use crate::table::field::{per, rate, Field, Picked};
use crate::table::{Row, Table, Tone, Unit};
use crate::timing;
use crate::Sort;

/// The sessions of one application.
#[derive(Debug, Default)]
struct Application {
    name: String,
    sessions: u64,
    busy_seconds: f64,
    /// `None`: samples could not tell it apart in one of them.
    cpu_seconds: Option<f64>,
    commands: u64,
}

type F = Field<Application>;

/// The columns of applications.
const APPLICATIONS: &[F] = &[
    F::new("application", "Application", Unit::Text, |row, _| row.name.as_str().into()),
    F::new("sessions", "Sessions", Unit::Count, |row, _| row.sessions.into()),
    F::new("seconds", "Total", Unit::Seconds, |row, _| row.busy_seconds.into()),
    F::new("per_second", "S/S", Unit::Sessions, |row, s| per(row.busy_seconds, s)),
    F::new("cpu", "CPU", Unit::Seconds, |row, _| {
        row.cpu_seconds.map_or_else(timing::refused, Into::into)
    }),
    F::new("commands", "CMD/S", Unit::PerSecond, |row, s| rate(row.commands, s)),
];

fn by_application<'s>(sessions: impl Iterator<Item = &'s SessionRow>) -> Vec<Application> {
    let mut all: BTreeMap<&str, Application> = BTreeMap::new();
    for session in sessions {
        let row = all.entry(&session.application).or_insert_with(|| Application {
            name: session.application.clone(),
            cpu_seconds: Some(0.0),
            ..Application::default()
        });
        row.sessions += 1;
        row.busy_seconds += session.busy_seconds;
        row.cpu_seconds = row.cpu_seconds.zip(session.cpu_seconds).map(|(a, b)| a + b);
        row.commands += session.commands;
    }
    all.into_values().collect()
}

/// The table. Processes without an application are one row, which has an empty name; they, and applications that were idle,
/// only on request.
pub fn applications(interval: &Interval, wish: &RowOptions) -> Table {
    let figures = Picked::of_pane(choose!(
        APPLICATIONS,
        "application, sessions, seconds, per_second:2, cpu:3, commands:4"
    ));
    let shown = by_application(interval.sessions.iter()).into_iter().filter(|row| {
        (wish.idle || row.busy_seconds > 0.0 && !row.name.is_empty()) && accepts(wish, &[&row.name])
    });
    let all = sorted(shown.collect(), wish, |a, b| {
        let order = match &wish.sort {
            Sort::Count => b.commands.cmp(&a.commands),
            Sort::Name => a.name.cmp(&b.name),
            _ => b.busy_seconds.total_cmp(&a.busy_seconds),
        };
        order.then_with(|| a.name.cmp(&b.name))
    });
    let rows = all.iter().map(|row| Row {
        tone: Tone::Plain,
        ..Row::new(&*row.name, figures.cells(row, interval.instrumented_seconds))
    });
    Table::from_rows(figures.columns.clone(), rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_time_of_an_applications_sessions_is_added_up() {
        let interval = sample::interval();
        let busy: f64 = interval.sessions.iter().map(|session| session.busy_seconds).sum();
        let all = by_application(interval.sessions.iter());
        let sum: f64 = all.iter().map(|row| row.busy_seconds).sum();
        assert!((busy - sum).abs() < 1e-9, "{busy}, not {sum}");
        let sessions: u64 = all.iter().map(|row| row.sessions).sum();
        assert_eq!(sessions as usize, interval.sessions.len());
        let text = applications(&interval, &RowOptions::default()).text(80);
        assert!(text.starts_with("APPLICATION") && text.contains("pgbench"), "{text}");
        assert!(!text.contains("checkpointer"), "{text}");
    }
}
