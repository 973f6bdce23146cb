// SPDX-License-Identifier: PostgreSQL
//! The tables of a report: the rows of its interval with unrounded figures, so that they can be sorted, filtered
//! and exported.

mod ledger;
mod locks;
mod others;
mod relations;
pub mod server_log;
mod sessions;
mod shares;
pub mod statements;
mod storage;

use segment::interval::Interval;

use super::material::Material;
use view::document::Table;

use shares::{each, share, timing, SECONDS};
pub use storage::ended as checkpoints;

/// The tables that [`of_interval`] makes.
pub const OF_INTERVAL: [&str; 9] =
    ["ledger", "idle", "waits", "commands", "lwlocks", "locks", "files", "commits", "functions"];

/// The tables that are made from an interval alone, and that are known over time.
pub fn of_interval(interval: &Interval) -> [Table; OF_INTERVAL.len()] {
    [
        ledger::ledger(interval),
        ledger::idle(interval),
        ledger::waits(interval),
        ledger::commands(interval),
        locks::lwlocks(interval),
        locks::locks(interval),
        storage::files(interval),
        storage::commits(interval),
        others::functions(interval),
    ]
}

/// All tables.
pub fn tables(material: &Material) -> Vec<Table> {
    let interval = &material.whole;
    let mut tables = Vec::from(of_interval(interval));
    let all = material.statements.as_ref();
    tables.extend(
        all.map(|all| statements::statements(all, instrumented(interval, all.interval_seconds))),
    );
    if let Some(history) = &material.sessions {
        tables.extend(sessions::sessions(history, interval));
    }
    tables.extend([
        storage::processes(interval),
        relations::relations(
            &material.relations,
            instrumented(interval, Some(material.relations.seconds)),
        ),
        storage::wal(interval),
        storage::checkpoints(&material.events, material.measured.from),
        storage::slow(&material.events, material.measured.from),
        storage::devices(&material.devices),
        server_log::errors(material),
        server_log::messages(material),
        others::edges(interval),
        others::statistics(interval),
        others::events(&material.events, material.measured.from),
        others::gaps(&material.gaps),
        others::setting_changes(&material.setting_changes),
        others::settings(&material.settings),
    ]);
    tables.extend(material.vacuum.iter().flat_map(view::health::tables));
    tables
}

/// The part of the time, in seconds, that was measured for some figures; `None` means the whole interval.
fn instrumented(interval: &Interval, seconds: Option<f64>) -> f64 {
    let part = interval.instrumented_seconds / interval.interval_seconds.max(1e-9);
    seconds.map_or(interval.instrumented_seconds, |seconds| seconds * part)
}
