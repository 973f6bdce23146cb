// SPDX-License-Identifier: PostgreSQL
//! The tables of a report: the rows of its interval with their figures as they are, so that
//! they can be ordered, filtered and taken away.

mod ledger;
mod locks;
mod others;
mod relations;
mod statements;
mod storage;

use segment::interval::{Interval, Timing};

use super::material::Material;
use view::document::{Cell, Column, Table, Unit};

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
    tables.extend(material.statements.as_ref().map(|all| statements::statements(all, interval)));
    tables.extend([
        storage::files(interval),
        storage::processes(interval),
        relations::relations(&material.relations, interval),
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

/// By the time in which the level was not off.
fn rate(n: f64, interval: &Interval) -> f64 {
    n / interval.instrumented_seconds.max(1e-9)
}

/// Of the time that sessions were not idle.
fn share(seconds: f64, interval: &Interval) -> Option<f64> {
    (interval.busy_seconds > 0.0).then(|| seconds / interval.busy_seconds)
}

/// For each of so many, if there are any.
fn each(seconds: f64, of: u64) -> Option<f64> {
    (of > 0).then(|| seconds / of as f64)
}

const COUNT: Column = Column::new("count", "Count", Unit::Count).expendable(4);
const RATE: Column = Column::new("per_second", "Rate", Unit::PerSecond).expendable(5);
const SECONDS: Column = Column::new("seconds", "Time", Unit::Seconds);
const MEAN: Column = Column::new("mean_seconds", "Mean", Unit::Seconds).expendable(1);
const P50: Column = Column::new("p50_seconds", "p50", Unit::Seconds).expendable(7);
const P99: Column = Column::new("p99_seconds", "p99", Unit::Seconds).expendable(2);
const MAX: Column = Column::new("max_seconds", "Max", Unit::Seconds).expendable(3);

/// Count, rate, mean, median, 99th percentile, maximum.
const TIMING: [Column; 6] = [COUNT, RATE, MEAN, P50, P99, MAX];

/// The cells of those columns.
fn timing(timing: &Timing, interval: &Interval) -> [Cell; 6] {
    [
        timing.count.into(),
        rate(timing.count as f64, interval).into(),
        timing.mean_seconds.into(),
        timing.p50_seconds.into(),
        timing.p99_seconds.into(),
        timing.max_seconds.into(),
    ]
}
