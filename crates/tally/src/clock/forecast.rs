// SPDX-License-Identifier: PostgreSQL
//! What timing costs on this machine: how often a thing reads the clock, times what a reading
//! takes here, and what else it does each time.

use ::clock::Report;
use serde::Serialize;

use super::verify::ROWS;

/// What something costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Forecast {
    /// The thing, and one what of it.
    pub what: String,
    /// The name of the clock that it reads.
    pub clock: String,
    /// Readings of it.
    pub readings: f64,
    /// What they take here, in a loop.
    pub clock_seconds: f64,
    /// What is done besides, as measured on the machines of docs/results.md; None where nobody
    /// has measured it alone.
    pub besides_seconds: Option<f64>,
}

/// Events of the loads whose cost `tally cost` has told (docs/results.md).
const SELECT_READINGS: f64 = 2.0;
const TPCB_READINGS: f64 = 22.0;

/// All of them; of clocks that cannot be read there is none.
pub fn of(report: &Report) -> Vec<Forecast> {
    let mut all = Vec::new();
    let mut add = |user, what: &str, readings: f64, besides_ns: Option<f64>| {
        if let Some(clock) = report.used_by(user) {
            all.push(Forecast {
                what: what.into(),
                clock: clock.name.clone(),
                readings,
                clock_seconds: readings * clock.loop_cost.typical_seconds,
                besides_seconds: besides_ns.map(|ns| ns * 1e-9),
            });
        }
    };
    add("server", "EXPLAIN ANALYZE, a row of a node", 2.0, None);
    add("server", "EXPLAIN ANALYZE, a count of 900,000 rows", 2.0 * f64::from(ROWS + 2), None);
    add("server", "track_io_timing, a block read or written", 2.0, None);
    add("server", "track_wal_io_timing, a write or sync of the log", 2.0, None);
    add("pgtally", "level waits, a select (1 command, 1 wait)", SELECT_READINGS, Some(42.0));
    add("pgtally", "level waits, a TPC-B (7 commands, 11 waits)", TPCB_READINGS, Some(1_600.0));
    add("pgtally", "level locks, a lightweight lock held, on top", 2.0, Some(17.0));
    add("pgtally", "pg_tally.functions, a call", 2.0, Some(15.0));
    all
}
