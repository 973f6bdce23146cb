// SPDX-License-Identifier: PostgreSQL
//! The figures of a statement, in the units of the output.

use super::account_ticks::AccountTicks;
use super::counters::{counter, Blocks, Jit, StatementCounters, COUNTERS};
use super::key::StatementKey;
use super::last::MessageText;
use super::split::Split;
use super::sums::{Sums, Times};
use crate::directory::Directory;
use crate::histogram::Histogram;
use crate::layout::bucket_low;
use crate::statement_text::Text;
use serde::Serialize;

/// The figures of a statement: since they began, or in the interval of a [`super::StatementsDelta`].
#[derive(Debug, Clone)]
pub struct Statement {
    /// Its key.
    pub key: StatementKey,
    /// Its text, if known.
    pub text: Option<Text>,
    /// When its entry in the table was created, tick; 0: only sessions have the statement.
    pub born: u64,
    /// Start of its counts, microseconds since 1970, across restarts; 0: only sessions have the statement.
    pub since_us: i64,
    pub(super) sums: Sums,
    pub(super) parts: Vec<AccountTicks>,
    /// Length of a tick, seconds.
    pub(super) second: f64,
}

/// Count, sum and extremes of times, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Moments {
    /// Number of times.
    pub count: u64,
    /// Their sum.
    pub seconds: f64,
    /// Their mean; `None` if there were none.
    pub mean: Option<f64>,
    /// Their minimum. In an interval it is exact if it is the lowest ever or the only value, otherwise accurate
    /// to 6.25 %. `None` if there were none, or if unknown.
    pub min: Option<f64>,
    /// Their maximum, in the same way.
    pub max: Option<f64>,
    /// Their population standard deviation; `None` if there were none.
    pub stddev: Option<f64>,
}

impl Blocks {
    /// The share of shared blocks that were cache hits.
    pub fn hit_ratio(&self) -> Option<f64> {
        let (hit, read) = (self.shared_hit as f64, self.shared_read as f64);
        (hit + read > 0.0).then(|| hit / (hit + read))
    }
}

impl Jit {
    /// Whether nothing was compiled.
    pub fn is_zero(&self) -> bool {
        *self == Jit::default()
    }
}

/// Executions with similar times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bucket {
    /// Lower bound of the times, seconds.
    pub from: f64,
    /// Upper bound of the times, exclusive, seconds.
    pub to: f64,
    /// Number of executions.
    pub count: u64,
}

impl Statement {
    /// The counters, indexed as in [`counter`].
    pub fn counted(&self) -> &[u64; COUNTERS] {
        &self.sums.counters
    }

    /// The counters in the units of the output.
    pub fn counters(&self) -> StatementCounters {
        StatementCounters::from_counters(&self.sums.counters, self.second)
    }

    /// Rows returned or changed.
    pub fn rows(&self) -> u64 {
        self.sums.counters[counter::ROWS]
    }

    fn moments(&self, times: &Times) -> Moments {
        let seconds = |ticks: u64| ticks as f64 * self.second;
        let count = times.count as f64;
        let known = times.count > 0;
        let mean = times.total as f64 / count;
        let variance = times.squares / count - mean * mean;
        // The difference may be below the precision of the two terms.
        let stddev = if variance > 0.0 { variance.sqrt() } else { 0.0 };
        Moments {
            count: times.count,
            seconds: seconds(times.total),
            mean: known.then_some(mean * self.second),
            min: times.min.map(seconds),
            max: times.max.map(seconds),
            stddev: known.then_some(stddev * self.second),
        }
    }

    /// Executions that ended without an error.
    pub fn calls(&self) -> u64 {
        self.sums.exec.count
    }

    /// The times of these executions.
    pub fn exec(&self) -> Moments {
        self.moments(&self.sums.exec)
    }

    /// Planning times.
    pub fn plan(&self) -> Moments {
        self.moments(&self.sums.plan)
    }

    /// The quantile `q` of execution times, seconds, accurate to 6.25 %.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let Times { count, min, max, .. } = self.sums.exec;
        let ticks = self.sums.histogram.quantile_of(count, q, min, max)?;
        Some(ticks as f64 * self.second)
    }

    /// The histogram of execution times, in ticks.
    pub fn histogram(&self) -> &Histogram {
        &self.sums.histogram
    }

    /// The same in seconds: the buckets that are not empty.
    pub fn buckets(&self) -> Vec<Bucket> {
        let seconds = |bucket| bucket_low(bucket) as f64 * self.second;
        self.sums
            .histogram
            .buckets()
            .map(|(bucket, count)| Bucket { from: seconds(bucket), to: seconds(bucket + 1), count })
            .collect()
    }

    /// Mean number of rows per execution.
    pub fn rows_per_call(&self) -> Option<f64> {
        (self.calls() > 0).then(|| self.rows() as f64 / self.calls() as f64)
    }

    /// Start of its first execution, seconds since 1970.
    pub fn first_seen(&self) -> Option<f64> {
        (self.sums.first_us != 0).then_some(self.sums.first_us as f64 * 1e-6)
    }

    /// Start of its last execution, seconds since 1970.
    pub fn last_seen(&self) -> Option<f64> {
        (self.sums.last_us != 0).then_some(self.sums.last_us as f64 * 1e-6)
    }

    /// Its time by account of the ledger.
    pub fn parts(&self) -> &[AccountTicks] {
        &self.parts
    }

    /// Its total time in the ledger.
    pub fn seconds(&self) -> f64 {
        self.parts.iter().fold(0u64, |sum, p| sum.saturating_add(p.ticks)) as f64 * self.second
    }

    /// The same by account, class of wait, and phase.
    pub fn split(&self, directory: &Directory) -> Split {
        Split::from_parts(&self.parts, directory, self.second)
    }

    /// Whether nothing has been counted.
    pub fn is_zero(&self) -> bool {
        self.sums.is_zero() && self.parts.iter().all(|p| p.count == 0 && p.ticks == 0)
    }
}

/// The current statement of a session.
#[derive(Debug, Clone)]
pub struct InFlight {
    /// The session's slot.
    pub slot: u32,
    /// Number of times that the slot was claimed.
    pub generation: u32,
    /// Its process.
    pub pid: i32,
    /// The statement; its id is 0 while unknown.
    pub key: StatementKey,
    /// The text of its message, if published because the statement is not known.
    pub message: Option<MessageText>,
    /// When it began, tick.
    pub begun: u64,
    /// Time since its start.
    pub age_seconds: f64,
    pub(super) parts: Vec<AccountTicks>,
    pub(super) second: f64,
}

impl InFlight {
    /// Its time so far by account, including the running account.
    pub fn parts(&self) -> &[AccountTicks] {
        &self.parts
    }

    /// The same by account, class of wait, and phase.
    pub fn split(&self, directory: &Directory) -> Split {
        Split::from_parts(&self.parts, directory, self.second)
    }
}
