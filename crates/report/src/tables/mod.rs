// SPDX-License-Identifier: PostgreSQL
//! The tables of a report: the rows of its interval with their figures as they are, so that
//! they can be ordered, filtered and taken away.

mod ledger;
mod locks;
mod others;
mod relations;
mod sessions;
mod statements;
mod storage;

use segment::interval::{Interval, Timing};

use super::material::Material;
use view::document::{Column, Table, Unit};
use view::table::field::Picked;
use view::timing::FIELDS;

pub use storage::ended as checkpoints;

/// All of them.
pub fn tables(material: &Material) -> Vec<Table> {
    let interval = &material.whole;
    let mut tables = vec![
        ledger::ledger(interval),
        ledger::idle(interval),
        ledger::waits(interval),
        ledger::commands(interval),
        locks::lwlocks(interval),
        locks::locks(interval),
    ];
    let all = material.statements.as_ref();
    tables.extend(
        all.map(|all| statements::statements(all, instrumented(interval, all.interval_seconds))),
    );
    if let Some(history) = &material.sessions {
        tables.extend(sessions::sessions(history, interval.instrumented_seconds));
    }
    tables.extend([
        storage::files(interval),
        storage::processes(interval),
        relations::relations(
            &material.relations,
            instrumented(interval, Some(material.relations_seconds)),
        ),
        storage::commits(interval),
        storage::wal(interval),
        storage::checkpoints(&material.events, material.from),
        storage::slow(&material.events, material.from),
        storage::devices(&material.devices),
        others::functions(interval),
        others::edges(interval),
        others::statistics(interval),
        others::events(&material.events, material.from),
        others::gaps(&material.gaps),
        others::settings(&material.settings),
    ]);
    tables
}

/// The instrumented part of the time that some figures are of, seconds; `None`: of the whole interval.
fn instrumented(interval: &Interval, seconds: Option<f64>) -> f64 {
    let part = interval.instrumented_seconds / interval.interval_seconds.max(1e-9);
    seconds.map_or(interval.instrumented_seconds, |seconds| seconds * part)
}

/// Of the time that sessions were not idle.
fn share(seconds: f64, interval: &Interval) -> Option<f64> {
    (interval.busy_seconds > 0.0).then(|| seconds / interval.busy_seconds)
}

/// Per item; `None` without items.
fn each(seconds: f64, of: u64) -> Option<f64> {
    (of > 0).then(|| seconds / of as f64)
}

const SECONDS: Column = Column::new("seconds", "Time", Unit::Seconds);

/// Count, rate, mean, median, 99th percentile, maximum.
fn timing() -> Picked<Timing> {
    Picked::of_document(
        FIELDS,
        "count:4, per_second:5, mean_seconds:1, p50_seconds:7, p99_seconds:2, max_seconds:3",
    )
}
