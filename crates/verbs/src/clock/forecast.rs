// SPDX-License-Identifier: PostgreSQL
//! Estimates the cost of timing on this machine: the number of clock readings times the cost of a reading, plus
//! the remaining work of each timing.

use ::clock::Report;
use serde::Serialize;

use super::verify::{COUNT_READINGS, ROWS};

/// The estimated cost of one kind of timing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Forecast {
    /// What is timed, and the unit that it is counted by.
    pub what: String,
    /// Name of the clock that is read.
    pub clock: String,
    /// Number of clock readings.
    pub readings: f64,
    /// Time of these readings, as measured in a loop.
    pub clock_seconds: f64,
    /// Time of all remaining work, as measured elsewhere; `None` if unknown.
    pub besides_seconds: Option<f64>,
}

// Work other than reading the clock, ns: what was measured on servers under load (docs/results.md), less the readings.
// A select of 30.2 us costs 305 ns, 28 of them for two readings: figure waits-select: +1.01 % ± 0.24
const SELECT_OTHER: f64 = 277.0;
// A TPC-B of 379 us costs 7.1 us, 0.3 of them for 22 readings: figure waits-tpcb: +1.87 % ± 0.15
const TPCB_OTHER: f64 = 6_800.0;
// A select of 26.8 us with 15 locks, less level waits, costs 25 ns a lock, 18 of them for readings: figure locks-select: +2.51 % ± 0.19
const LOCK_OTHER: f64 = 7.0;
// A call, 18 ns of it for readings: figure function-probe: 32.8 ns (27.2 .. 34.8)
const FUNCTION_OTHER: f64 = 15.0;
// What EXPLAIN ANALYZE adds with TIMING OFF, 3.3 to 4.0 ms for 900,000 rows.
const ROW_OTHER: f64 = 4.0;

/// All estimates, except those of clocks that cannot be read.
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
    add("server", "EXPLAIN ANALYZE, per row of a node", 2.0, Some(ROW_OTHER));
    add("server", "EXPLAIN ANALYZE, count of 900,000 rows", COUNT_READINGS, Some(rows * ROW_OTHER));
    add("server", "track_io_timing, per block read or written", 2.0, None);
    add("server", "track_wal_io_timing, per WAL write or sync", 2.0, None);
    add("pgtally", "level waits, per select (1 command, 1 wait)", 2.0, Some(SELECT_OTHER));
    add("pgtally", "level waits, per TPC-B (7 commands, 11 waits)", 22.0, Some(TPCB_OTHER));
    add("pgtally", "level locks, per lightweight lock held", 2.0, Some(LOCK_OTHER));
    add("pgtally", "pg_tally.functions, per call", 2.0, Some(FUNCTION_OTHER));
    all
}
