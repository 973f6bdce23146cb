// SPDX-License-Identifier: PostgreSQL
//! Estimates what timing costs on this machine: clock readings times the cost of a reading here,
//! plus the other work of each timing.

use ::clock::Report;
use serde::Serialize;

use super::verify::{COUNT_READINGS, ROWS};

/// The estimated cost of one kind of timing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Forecast {
    /// What is timed, and per what.
    pub what: String,
    /// Name of the clock that is read.
    pub clock: String,
    /// Number of clock readings.
    pub readings: f64,
    /// Time of these readings, measured here in a loop.
    pub clock_seconds: f64,
    /// Time of all other work, measured elsewhere; `None` if unknown.
    pub besides_seconds: Option<f64>,
}

// Work other than reading the clock, ns, measured on servers under load (docs/results.md):
// level waits: a select costs 70 ns, 28 of them for two readings; a TPC-B 1.9 us, 300 ns of them for
// 22 readings. Level locks: 35 ns for each of a select's 15 locks, 18 of them for two readings.
// Functions: 33 ns a call, 18 of them for readings. EXPLAIN ANALYZE: what it adds with TIMING OFF,
// 3.3 to 4.0 ms for 900,000 rows.
const SELECT_OTHER: f64 = 42.0;
const TPCB_OTHER: f64 = 1_600.0;
const LOCK_OTHER: f64 = 17.0;
const FUNCTION_OTHER: f64 = 15.0;
const ROW_OTHER: f64 = 4.0;

/// All estimates, without those for clocks that cannot be read.
pub fn forecast_clocks(report: &Report) -> Vec<Forecast> {
    let mut all = Vec::new();
    let mut add = |user, what: &str, readings: f64, other_ns: Option<f64>| {
        if let Some(clock) = report.used_by(user) {
            all.push(Forecast {
                what: what.into(),
                clock: clock.name.clone(),
                readings,
                clock_seconds: readings * clock.loop_cost.typical_seconds,
                besides_seconds: other_ns.map(|ns| ns * 1e-9),
            });
        }
    };
    let rows = f64::from(ROWS);
    add("server", "EXPLAIN ANALYZE, a row of a node", 2.0, Some(ROW_OTHER));
    add(
        "server",
        "EXPLAIN ANALYZE, a count of 900,000 rows",
        COUNT_READINGS,
        Some(rows * ROW_OTHER),
    );
    add("server", "track_io_timing, a block read or written", 2.0, None);
    add("server", "track_wal_io_timing, a write or sync of WAL", 2.0, None);
    add("pgtally", "level waits, a select (1 command, 1 wait)", 2.0, Some(SELECT_OTHER));
    add("pgtally", "level waits, a TPC-B (7 commands, 11 waits)", 22.0, Some(TPCB_OTHER));
    add("pgtally", "level locks, a lightweight lock held", 2.0, Some(LOCK_OTHER));
    add("pgtally", "pg_tally.functions, a call", 2.0, Some(FUNCTION_OTHER));
    all
}
