// SPDX-License-Identifier: PostgreSQL
//! `tally clock --verify`: compares the estimated cost of timing with the measured cost on a scratch server.
//!
//! The server runs the same work with and without timing, in random order, and the CPU time of both is compared
//! (/proc/PID/schedstat, as in `tally cost`). The cost of a clock reading is measured anew in every round,
//! because the speed of a shared machine varies from minute to minute.

use std::fs::File;

use pq::Client;
use rand::seq::SliceRandom;
use scratch::Cluster;
use serde::Serialize;

use error::Error;
use process::Schedstat;
use stats::Estimate;

/// Rows of the counted table (docs/clock.md).
pub const ROWS: u32 = 900_000;
/// Clock readings in EXPLAIN ANALYZE of that count: one before and one after each call of a node. The scan is
/// called once per row and once more, the aggregate once.
pub const COUNT_READINGS: f64 = 2.0 * (ROWS + 2) as f64;
/// An estimate holds if the measured value differs from it by at most this factor.
pub const TOLERANCE: f64 = 1.5;

const EXPLAIN_ROUNDS: u32 = 60;
const IO_ROUNDS: u32 = 500;
/// Blocks of clock readings in each round, which take a few milliseconds.
const BLOCKS: u32 = 99;

/// One estimate and its measurement.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// What is timed.
    pub what: &'static str,
    /// Number of clock readings.
    pub readings: f64,
    /// Number of readings times their cost in a loop, as measured in the same rounds.
    pub estimated_seconds: f64,
    /// Additional CPU time with timing on.
    pub measured_seconds: f64,
    /// Half-width of its 95 % confidence interval.
    pub half_width_seconds: f64,
    /// Whether the estimate holds.
    pub verdict: EstimateVerdict,
}

/// The verdict of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EstimateVerdict {
    /// The interval lies within the tolerance.
    Holds,
    /// The interval lies outside.
    Fails,
    /// Neither of the two.
    Inconclusive,
}

/// All checks.
#[derive(Debug, Serialize)]
pub struct Verified {
    /// PostgreSQL's version.
    pub server: String,
    /// [`TOLERANCE`].
    pub tolerance: f64,
    /// The checks.
    pub checks: Vec<Check>,
    /// What EXPLAIN ANALYZE adds to the count, without and with timing.
    pub explain: Explain,
    /// What could not be checked, and why.
    pub notes: Vec<String>,
}

/// The count of 900,000 rows.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Explain {
    /// CPU time of the count itself.
    pub plain_seconds: f64,
    /// What EXPLAIN (ANALYZE, TIMING OFF) adds to it.
    pub counting_seconds: f64,
    /// What EXPLAIN ANALYZE adds to it.
    pub analyze_seconds: f64,
}

/// Starts a scratch server and measures. `progress` receives the current step and the share that is done.
pub fn run(mut progress: impl FnMut(&'static str, f64)) -> Result<Verified, Error> {
    progress("starting a scratch server", 0.0);
    let mut cluster = Cluster::builder()
        .settings([
            ("shared_buffers", "256MB"),
            ("max_parallel_workers_per_gather", "0"),
            ("jit", "off"),
            ("autovacuum", "off"),
        ])
        .start()?;
    progress("filling a table of 900,000 rows", 0.05);
    let mut client = cluster.client()?;
    for sql in [
        "create table counted (id integer)",
        &format!("insert into counted select generate_series(1, {ROWS})"),
        "vacuum analyze counted",
        "checkpoint",
    ] {
        client.batch_execute(sql)?;
    }
    let server: String = client.query_one("show server_version", &[])?.get(0)?;
    let mut notes = Vec::new();
    let (check, explain) = explain(client, |done| {
        progress("counting with and without EXPLAIN ANALYZE", 0.1 + 0.5 * done);
    })?;
    let mut checks = vec![check];
    cluster.append_config("shared_buffers = '4MB'\n")?;
    cluster.restart()?;
    let mut client = cluster.client()?;
    match client.batch_execute("create extension pg_prewarm") {
        Ok(()) => checks.push(io(client, |done| {
            progress("reading with and without track_io_timing", 0.6 + 0.4 * done);
        })?),
        Err(error) => notes.push(format!(
            "track_io_timing could not be checked: pg_prewarm is not installed ({})",
            Error::from(error)
        )),
    }
    Ok(Verified {
        server: format!("PostgreSQL {server}"),
        tolerance: TOLERANCE,
        checks,
        explain,
        notes,
    })
}

/// A session whose CPU time can be read.
struct Session {
    client: Client,
    schedstat: File,
}

impl Session {
    fn new(mut client: Client) -> Result<Self, Error> {
        let pid: i32 = client.query_one("select pg_backend_pid()", &[])?.get(0)?;
        let path = format!("/proc/{pid}/schedstat");
        let schedstat = File::open(&path).map_err(|error| {
            Error::Failed(format!("could not read CPU time from {path}: {error}"))
        })?;
        Ok(Self { client, schedstat })
    }

    /// CPU time of `sql`, seconds. The kernel updates the figure when the session leaves its CPU, shortly after
    /// it has sent its response.
    fn cpu(&mut self, sql: &str) -> Result<f64, Error> {
        self.client.batch_execute("")?;
        let before = self.now()?;
        self.client.batch_execute(sql)?;
        Ok((self.now()? - before) as f64 * 1e-9)
    }

    fn now(&self) -> Result<u64, Error> {
        let ended = || Error::Failed("the scratch server's session has ended".into());
        Schedstat::read_open(&self.schedstat).map(|stat| stat.on_cpu_ns).ok_or_else(ended)
    }
}

fn reading() -> Result<f64, Error> {
    ::clock::server_clock_cost(BLOCKS)
        .ok_or_else(|| Error::Failed("the server's clock, CLOCK_MONOTONIC, cannot be read".into()))
}

/// Times the plain count, with rows counted, and with nodes timed.
fn explain(client: Client, mut progress: impl FnMut(f64)) -> Result<(Check, Explain), Error> {
    let mut session = Session::new(client)?;
    let arms = [
        "select count(*) from counted",
        "explain (analyze, timing off) select count(*) from counted",
        "explain (analyze) select count(*) from counted",
    ];
    for sql in arms {
        session.cpu(sql)?;
    }
    let mut found: [Vec<f64>; 3] = Default::default();
    let mut clock = Vec::new();
    for round in 0..EXPLAIN_ROUNDS {
        progress(f64::from(round) / f64::from(EXPLAIN_ROUNDS));
        let mut order = [0, 1, 2];
        order.shuffle(&mut rand::rng());
        for arm in order {
            found[arm].push(session.cpu(arms[arm])?);
        }
        clock.push(reading()?);
    }
    let [plain, counting, timing] = &found;
    let what = "EXPLAIN ANALYZE of the count, clock only";
    let check = check(what, COUNT_READINGS, &clock, counting, timing, 1.0)?;
    let explain = Explain {
        plain_seconds: middle(plain),
        counting_seconds: estimate(plain, counting)?.mean,
        analyze_seconds: estimate(plain, timing)?.mean,
    };
    Ok((check, explain))
}

/// Reads the table block by block from the kernel's cache, with track_io_timing off and on.
fn io(client: Client, mut progress: impl FnMut(f64)) -> Result<Check, Error> {
    let mut session = Session::new(client)?;
    let blocks: i64 =
        session.client.query_one("select pg_relation_size('counted') / 8192", &[])?.get(0)?;
    let arms = ["off", "on"].map(|to| {
        (format!("set track_io_timing = {to}"), "select pg_prewarm('counted', 'buffer')")
    });
    let mut found: [Vec<f64>; 2] = Default::default();
    let mut clock = Vec::new();
    for round in 0..IO_ROUNDS {
        progress(f64::from(round) / f64::from(IO_ROUNDS));
        // Off, on, on, off, or the reverse, so that a drift affects both equally.
        let first = usize::from(rand::random::<bool>());
        let mut sum = [0.0; 2];
        for arm in [first, 1 - first, 1 - first, first] {
            session.client.batch_execute(&arms[arm].0)?;
            sum[arm] += session.cpu(arms[arm].1)?;
        }
        (0..2).for_each(|arm| found[arm].push(sum[arm] / 2.0));
        clock.push(reading()?);
    }
    let [off, on] = &found;
    check("track_io_timing, per block read", 2.0, &clock, off, on, blocks as f64)
}

/// The cost that timing added per event, for work with `events` timed events.
fn check(
    what: &'static str,
    readings: f64,
    clock: &[f64],
    without: &[f64],
    with: &[f64],
    events: f64,
) -> Result<Check, Error> {
    let difference = estimate(without, with)?;
    let estimated_seconds = readings * middle(clock);
    let (measured_seconds, half_width_seconds) =
        (difference.mean / events, difference.half_width / events);
    let verdict = judge(estimated_seconds, measured_seconds, half_width_seconds);
    Ok(Check { what, readings, estimated_seconds, measured_seconds, half_width_seconds, verdict })
}

/// Compares the confidence interval with the tolerance around the estimate.
fn judge(estimated: f64, measured: f64, half_width: f64) -> EstimateVerdict {
    let (min, max) = (estimated / TOLERANCE, estimated * TOLERANCE);
    let (low, high) = (measured - half_width, measured + half_width);
    match () {
        () if low >= min && high <= max => EstimateVerdict::Holds,
        () if high < min || low > max => EstimateVerdict::Fails,
        () => EstimateVerdict::Inconclusive,
    }
}

/// Estimates the difference, round by round.
fn estimate(without: &[f64], with: &[f64]) -> Result<Estimate, Error> {
    let differences: Vec<f64> =
        with.iter().zip(without).map(|(with, without)| with - without).collect();
    Estimate::from_values(&differences)
        .ok_or_else(|| Error::Failed("too few rounds were measured".into()))
}

fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_holds_only_if_the_whole_interval_is_within_the_tolerance() {
        assert_eq!(judge(100.0, 140.0, 5.0), EstimateVerdict::Holds);
        assert_eq!(judge(100.0, 71.0, 3.0), EstimateVerdict::Holds);
        assert_eq!(judge(100.0, 145.0, 10.0), EstimateVerdict::Inconclusive);
        assert_eq!(judge(100.0, 170.0, 10.0), EstimateVerdict::Fails);
        assert_eq!(judge(100.0, 50.0, 10.0), EstimateVerdict::Fails);
        assert_eq!(judge(100.0, 0.0, 500.0), EstimateVerdict::Inconclusive);
    }
}
