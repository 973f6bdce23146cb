// SPDX-License-Identifier: PostgreSQL
//! `tally clock --verify`: what timing costs a real server, beside what was estimated.
//!
//! A scratch server runs the same work with and without its clock, in random order, and its
//! processor time is compared (/proc/PID/schedstat, as in `tally cost`). The clock's loop cost is
//! taken again in every round, for a machine that others use changes its pace from minute to
//! minute.

use std::fs::File;

use postgres::Client;
use rand::seq::SliceRandom;
use scratch::Cluster;
use serde::Serialize;

use error::Error;
use stats::Estimate;
use study::cost::meter::on_cpu_ns;

/// Rows of the counted table, as in the study that first asked (docs/clock.md).
pub const ROWS: u32 = 900_000;
/// Readings in EXPLAIN ANALYZE of that count: the scan is asked for each row and once more, the
/// aggregate once; before and after.
pub const COUNT_READINGS: f64 = 2.0 * (ROWS + 2) as f64;
/// An estimate holds when what is measured is no more than so many times as much, or as little.
pub const TOLERANCE: f64 = 1.5;

const EXPLAIN_ROUNDS: u32 = 60;
const IO_ROUNDS: u32 = 500;
/// Blocks of readings of the clock in each round, some milliseconds' worth.
const BLOCKS: u32 = 99;

/// One estimate beside its measurement.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// What costs it.
    pub what: &'static str,
    /// Readings of the clock in it.
    pub readings: f64,
    /// Readings times their cost in a loop, meanwhile.
    pub estimated_seconds: f64,
    /// Processor time that it took more with them.
    pub measured_seconds: f64,
    /// Half the width of that figure's 95 % interval.
    pub half_width_seconds: f64,
    /// What the estimate comes to.
    pub verdict: Verdict,
}

/// What a check says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The interval lies within the tolerance.
    Holds,
    /// It lies outside.
    Fails,
    /// Neither can be said.
    Inconclusive,
}

/// All of them.
#[derive(Debug, Serialize)]
pub struct Verified {
    /// PostgreSQL's version.
    pub server: String,
    /// How many times as much, or as little, still counts.
    pub tolerance: f64,
    /// The checks.
    pub checks: Vec<Check>,
    /// What EXPLAIN ANALYZE adds to the count in all, without and with the clock.
    pub explain: Explain,
    /// What could not be checked, and why.
    pub notes: Vec<String>,
}

/// The count of 900,000 rows.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Explain {
    /// Processor time of the count itself.
    pub plain_seconds: f64,
    /// What EXPLAIN (ANALYZE, TIMING OFF) adds to it.
    pub counting_seconds: f64,
    /// What EXPLAIN ANALYZE adds to it.
    pub analyze_seconds: f64,
}

/// Make a server and measure; `progress` is told what is under way and which share is done.
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
    let mut client = cluster.connect()?;
    for sql in [
        "create table counted (id integer)",
        &format!("insert into counted select generate_series(1, {ROWS})"),
        "vacuum analyze counted",
        "checkpoint",
    ] {
        client.batch_execute(sql)?;
    }
    let server: String = client.query_one("show server_version", &[])?.get(0);
    let mut notes = Vec::new();
    let (check, explain) = explain(client, |done| {
        progress("counting with and without EXPLAIN ANALYZE", 0.1 + 0.5 * done);
    })?;
    let mut checks = vec![check];
    cluster.append_config("shared_buffers = '4MB'\n")?;
    cluster.restart()?;
    let mut client = cluster.connect()?;
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

/// A session whose processor time can be read.
struct Session {
    client: Client,
    schedstat: File,
}

impl Session {
    fn new(mut client: Client) -> Result<Self, Error> {
        let pid: i32 = client.query_one("select pg_backend_pid()", &[])?.get(0);
        let path = format!("/proc/{pid}/schedstat");
        let schedstat = File::open(&path)
            .map_err(|error| Error::Failed(format!("{path}: {error}; needed for CPU time")))?;
        Ok(Self { client, schedstat })
    }

    /// Processor time that this takes, seconds. A session that has answered is soon off its
    /// processor, which brings its figure up to date.
    fn cpu(&mut self, sql: &str) -> Result<f64, Error> {
        self.client.simple_query("")?;
        let before = self.now()?;
        self.client.simple_query(sql)?;
        Ok((self.now()? - before) as f64 * 1e-9)
    }

    fn now(&self) -> Result<u64, Error> {
        let gone = || Error::Failed("the scratch server's session has ended".into());
        on_cpu_ns(&self.schedstat).ok_or_else(gone)
    }
}

fn reading() -> Result<f64, Error> {
    ::clock::server_clock_cost(BLOCKS)
        .ok_or_else(|| Error::Failed("the server's clock, CLOCK_MONOTONIC, cannot be read".into()))
}

/// The count plainly, with its rows counted, and with its nodes timed.
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
    let what = "EXPLAIN ANALYZE of the count, its clock alone";
    let check = check(what, COUNT_READINGS, &clock, counting, timing, 1.0)?;
    let explain = Explain {
        plain_seconds: middle(plain),
        counting_seconds: estimate(plain, counting)?.mean,
        analyze_seconds: estimate(plain, timing)?.mean,
    };
    Ok((check, explain))
}

/// The table read block by block, from the kernel's cache.
fn io(client: Client, mut progress: impl FnMut(f64)) -> Result<Check, Error> {
    let mut session = Session::new(client)?;
    let blocks: i64 =
        session.client.query_one("select pg_relation_size('counted') / 8192", &[])?.get(0);
    let arms = ["off", "on"].map(|to| {
        (format!("set track_io_timing = {to}"), "select pg_prewarm('counted', 'buffer')")
    });
    let mut found: [Vec<f64>; 2] = Default::default();
    let mut clock = Vec::new();
    for round in 0..IO_ROUNDS {
        progress(f64::from(round) / f64::from(IO_ROUNDS));
        // Off, on, on, off, or the reverse: a drift falls on both alike.
        let first = usize::from(rand::random::<bool>());
        let mut sum = [0.0; 2];
        for arm in [first, 1 - first, 1 - first, first] {
            session.client.simple_query(&arms[arm].0)?;
            sum[arm] += session.cpu(arms[arm].1)?;
        }
        (0..2).for_each(|arm| found[arm].push(sum[arm] / 2.0));
        clock.push(reading()?);
    }
    let [off, on] = &found;
    check("track_io_timing, a block read", 2.0, &clock, off, on, blocks as f64)
}

/// What the work with its clock took more than without, for each of so many events in it.
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

/// Where the interval lies.
fn judge(estimated: f64, measured: f64, half_width: f64) -> Verdict {
    let (least, most) = (estimated / TOLERANCE, estimated * TOLERANCE);
    let (low, high) = (measured - half_width, measured + half_width);
    match () {
        () if low >= least && high <= most => Verdict::Holds,
        () if high < least || low > most => Verdict::Fails,
        () => Verdict::Inconclusive,
    }
}

/// Of the differences, round by round.
fn estimate(without: &[f64], with: &[f64]) -> Result<Estimate, Error> {
    let differences: Vec<f64> =
        with.iter().zip(without).map(|(with, without)| with - without).collect();
    Estimate::of(&differences).ok_or_else(|| Error::Failed("too few rounds were measured".into()))
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
    fn an_estimate_holds_only_if_the_whole_interval_is_near_it() {
        assert_eq!(judge(100.0, 140.0, 5.0), Verdict::Holds);
        assert_eq!(judge(100.0, 71.0, 3.0), Verdict::Holds);
        assert_eq!(judge(100.0, 145.0, 10.0), Verdict::Inconclusive);
        assert_eq!(judge(100.0, 170.0, 10.0), Verdict::Fails);
        assert_eq!(judge(100.0, 50.0, 10.0), Verdict::Fails);
        assert_eq!(judge(100.0, 0.0, 500.0), Verdict::Inconclusive);
    }
}
