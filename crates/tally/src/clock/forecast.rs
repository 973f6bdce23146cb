// SPDX-License-Identifier: PostgreSQL
//! What timing costs on this machine: how often a thing reads the clock, times what a reading
//! takes here, and what else it does each time.

use ::clock::Report;
use serde::Serialize;

use super::verify::{COUNT_READINGS, ROWS};

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
    /// What is done besides, as measured elsewhere; None where that is not known.
    pub besides_seconds: Option<f64>,
}

// What is done besides reading the clock, ns, where it was measured on servers at work
// (docs/results.md). Of the level waits: a select pays 70 ns, of which two readings were 28, a
// TPC-B 1.9 us, of which 22 were 300. Of locks: 35 ns for each of a select's fifteen, of which two
// readings were 18. Of functions: 33 ns, of which they were 18. Of EXPLAIN ANALYZE: what it adds
// with TIMING OFF, 3.3 to 4.0 ms for 900,000 rows.
const SELECT_BESIDES: f64 = 42.0;
const TPCB_BESIDES: f64 = 1_600.0;
const LOCK_BESIDES: f64 = 17.0;
const FUNCTION_BESIDES: f64 = 15.0;
const ROW_BESIDES: f64 = 4.0;

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
    let rows = f64::from(ROWS);
    add("server", "EXPLAIN ANALYZE, a row of a node", 2.0, Some(ROW_BESIDES));
    add(
        "server",
        "EXPLAIN ANALYZE, a count of 900,000 rows",
        COUNT_READINGS,
        Some(rows * ROW_BESIDES),
    );
    add("server", "track_io_timing, a block read or written", 2.0, None);
    add("server", "track_wal_io_timing, a write or sync of WAL", 2.0, None);
    add("pgtally", "level waits, a select (1 command, 1 wait)", 2.0, Some(SELECT_BESIDES));
    add("pgtally", "level waits, a TPC-B (7 commands, 11 waits)", 22.0, Some(TPCB_BESIDES));
    add("pgtally", "level locks, a lightweight lock held", 2.0, Some(LOCK_BESIDES));
    add("pgtally", "pg_tally.functions, a call", 2.0, Some(FUNCTION_BESIDES));
    all
}
