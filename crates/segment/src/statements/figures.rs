// SPDX-License-Identifier: PostgreSQL
//! The figures of a statement, in the units of the output.

use super::account_ticks::AccountTicks;
use super::key::StatementKey;
use super::last::MessageText;
use super::split::Split;
use super::sums::{counter, Sums, Times};
use crate::directory::Directory;
use crate::histogram::Histogram;
use crate::layout::bucket_low;
use crate::statement_text::Text;
use serde::Serialize;
use std::collections::BTreeMap;

/// A statement: since the start of its figures, or, in a [`super::StatementsDelta`], in the interval.
#[derive(Debug, Clone)]
pub struct Statement {
    /// Its key.
    pub key: StatementKey,
    /// Its text, if it is kept.
    pub text: Option<Text>,
    /// When it was added to the table, tick; 0: only sessions have it.
    pub born: u64,
    /// Since when it counts, microseconds since 1970, across restarts; 0: only sessions have it.
    pub since_us: i64,
    pub(super) sums: Sums,
    pub(super) parts: Vec<AccountTicks>,
    /// Seconds of a tick.
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
    /// Their minimum: in an interval exact if it is the lowest ever or the only one, else within 6.25 %.
    /// `None` if there were none, or it is unknown.
    pub min: Option<f64>,
    /// Their maximum, likewise.
    pub max: Option<f64>,
    /// Their population standard deviation; `None` if there were none.
    pub stddev: Option<f64>,
}

/// Blocks of the server's buffers and files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Blocks {
    /// Found in shared buffers.
    pub shared_hit: u64,
    /// Read into shared buffers.
    pub shared_read: u64,
    /// Shared buffers dirtied.
    pub shared_dirtied: u64,
    /// Shared buffers written.
    pub shared_written: u64,
    /// Found in local buffers.
    pub local_hit: u64,
    /// Read into local buffers.
    pub local_read: u64,
    /// Local buffers dirtied.
    pub local_dirtied: u64,
    /// Local buffers written.
    pub local_written: u64,
    /// Read from temporary files.
    pub temp_read: u64,
    /// Written to temporary files.
    pub temp_written: u64,
}

impl Blocks {
    /// The share of shared blocks that were found in the buffers.
    pub fn hit_ratio(&self) -> Option<f64> {
        let (hit, read) = (self.shared_hit as f64, self.shared_read as f64);
        (hit + read > 0.0).then(|| hit / (hit + read))
    }
}

/// Time of reading and writing blocks, seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct IoTimes {
    /// Reading data files.
    pub read: f64,
    /// Writing them.
    pub write: f64,
    /// Reading temporary files.
    pub temp_read: f64,
    /// Writing them.
    pub temp_write: f64,
    /// Of `read`, local blocks, where the server timed them.
    pub server_local_read: f64,
    /// Of `write`, likewise.
    pub server_local_write: f64,
}

/// CPU time, seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct CpuTimes {
    /// In user mode.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
}

/// WAL written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Wal {
    /// Records.
    pub records: u64,
    /// Full-page images.
    pub fpi: u64,
    /// Bytes.
    pub bytes: u64,
}

/// JIT compilation; times in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Jit {
    /// Functions compiled.
    pub functions: u64,
    /// Generating code.
    pub generation: f64,
    /// Executions that inlined.
    pub inlinings: u64,
    /// Inlining.
    pub inlining: f64,
    /// Executions that optimized.
    pub optimizations: u64,
    /// Optimizing.
    pub optimization: f64,
    /// Executions that emitted code.
    pub emissions: u64,
    /// Emitting code.
    pub emission: f64,
    /// Executions that compiled the deforming of tuples.
    pub deformings: u64,
    /// Compiling that, which is part of generating code.
    pub deforming: f64,
}

impl Jit {
    /// Whether nothing was compiled.
    pub fn is_zero(&self) -> bool {
        *self == Jit::default()
    }
}

/// Why executions failed: the class of their SQLSTATE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// 08.
    Connection,
    /// 22.
    Data,
    /// 23.
    Integrity,
    /// 25: the state of the transaction.
    Transaction,
    /// 40: serialization failures and deadlocks.
    Rollback,
    /// 42: syntax and access.
    Syntax,
    /// 53 and 54: no resources, limits of the server.
    Resources,
    /// 55: the state of an object, such as a lock not available.
    Object,
    /// 57 and 58: intervention, and the operating system.
    System,
    /// All others.
    Other,
}

impl Failure {
    /// In the order of the file.
    pub const ALL: [Failure; 10] = [
        Failure::Connection,
        Failure::Data,
        Failure::Integrity,
        Failure::Transaction,
        Failure::Rollback,
        Failure::Syntax,
        Failure::Resources,
        Failure::Object,
        Failure::System,
        Failure::Other,
    ];

    /// The class that it stands for; of several, the first.
    pub fn class(self) -> &'static str {
        match self {
            Failure::Connection => "08",
            Failure::Data => "22",
            Failure::Integrity => "23",
            Failure::Transaction => "25",
            Failure::Rollback => "40",
            Failure::Syntax => "42",
            Failure::Resources => "53",
            Failure::Object => "55",
            Failure::System => "57",
            Failure::Other => "other",
        }
    }
}

/// Executions with about the same time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bucket {
    /// Lower bound of their time, seconds.
    pub from: f64,
    /// Upper bound, exclusive.
    pub to: f64,
    /// Number of executions.
    pub count: u64,
}

const NANO: f64 = 1e-9;

macro_rules! counters {
    ($($name:ident: $counter:ident, $doc:literal;)*) => {
        impl Statement {
            $(#[doc = $doc] pub fn $name(&self) -> u64 { self.counter(counter::$counter) })*
        }
    };
}

counters! {
    rows: ROWS, "Rows returned or changed.";
    temp_files: TEMP_FILES, "Temporary files created.";
    temp_bytes: TEMP_BYTES, "Their bytes.";
    errors: ERRORS, "Executions ended by an error.";
    cancels: CANCELS, "Executions cancelled or timed out.";
    workers: WORKERS, "Parallel workers that took part.";
    wal_buffers_full: WAL_BUFFERS_FULL, "How often it found the buffers of the WAL full (PostgreSQL 18).";
    workers_planned: WORKERS_PLANNED, "Parallel workers that it was to have (PostgreSQL 18).";
    workers_launched: WORKERS_LAUNCHED, "Parallel workers that were launched for it (PostgreSQL 18).";
    generic_plans: GENERIC_PLANS, "Executions of a generic plan (PostgreSQL 19).";
    custom_plans: CUSTOM_PLANS, "Executions of a custom plan of a cached statement (PostgreSQL 19).";
}

impl Statement {
    fn counter(&self, at: usize) -> u64 {
        self.sums.counters.get(at).copied().unwrap_or(0)
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

    /// Their times.
    pub fn exec(&self) -> Moments {
        self.moments(&self.sums.exec)
    }

    /// Plannings.
    pub fn plan(&self) -> Moments {
        self.moments(&self.sums.plan)
    }

    /// The quantile `q` of execution times, seconds, within 6.25 %.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let Times { min, max, .. } = self.sums.exec;
        let ticks = self.sums.histogram.quantile(q, min.unwrap_or(0), max.unwrap_or(u64::MAX))?;
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

    /// Rows of an execution.
    pub fn rows_per_call(&self) -> Option<f64> {
        (self.calls() > 0).then(|| self.rows() as f64 / self.calls() as f64)
    }

    /// Blocks of buffers and files.
    pub fn blocks(&self) -> Blocks {
        let block = |at| self.counter(counter::BLOCKS + at);
        Blocks {
            shared_hit: block(0),
            shared_read: block(1),
            shared_dirtied: block(2),
            shared_written: block(3),
            local_hit: block(4),
            local_read: block(5),
            local_dirtied: block(6),
            local_written: block(7),
            temp_read: block(8),
            temp_written: block(9),
        }
    }

    /// Time of reading and writing blocks.
    pub fn io(&self) -> IoTimes {
        let time = |at| {
            let (ticks, ns) =
                (self.counter(counter::IO_TICKS + at), self.counter(counter::IO_NS + at));
            ticks as f64 * self.second + ns as f64 * NANO
        };
        let local = |at| self.counter(counter::IO_NS + 4 + at) as f64 * NANO;
        IoTimes {
            read: time(0),
            write: time(1),
            temp_read: time(2),
            temp_write: time(3),
            server_local_read: local(0),
            server_local_write: local(1),
        }
    }

    /// WAL written.
    pub fn wal(&self) -> Wal {
        Wal {
            records: self.counter(counter::WAL),
            fpi: self.counter(counter::WAL + 1),
            bytes: self.counter(counter::WAL + 2),
        }
    }

    /// Lifetime of these workers.
    pub fn worker_seconds(&self) -> f64 {
        self.counter(counter::WORKER_TICKS) as f64 * self.second
    }

    /// CPU time as the kernel tells it; `None`: not measured.
    pub fn cpu_times(&self) -> Option<CpuTimes> {
        let [user, system] = [counter::USER_NS, counter::SYSTEM_NS].map(|at| self.counter(at));
        let seconds = |ns| ns as f64 * NANO;
        (user != 0 || system != 0)
            .then(|| CpuTimes { user: seconds(user), system: seconds(system) })
    }

    /// Executions ended by an error, by [`Failure`].
    pub fn failed(&self) -> [u64; Failure::ALL.len()] {
        Failure::ALL.map(|failure| self.counter(counter::FAILED + failure as usize))
    }

    /// The same by the class of their SQLSTATE, without those of which there was none.
    pub fn failed_by_class(&self) -> BTreeMap<&'static str, u64> {
        let all = Failure::ALL.into_iter().map(Failure::class).zip(self.failed());
        all.filter(|(_, count)| *count > 0).collect()
    }

    /// JIT compilation.
    pub fn jit(&self) -> Jit {
        let count = |at| self.counter(counter::JIT + at);
        let time = |at| count(at) as f64 * NANO;
        Jit {
            functions: count(0),
            generation: time(1),
            inlinings: count(2),
            inlining: time(3),
            optimizations: count(4),
            optimization: time(5),
            emissions: count(6),
            emission: time(7),
            deformings: count(8),
            deforming: time(9),
        }
    }

    /// When it was first executed, seconds since 1970.
    pub fn first_seen(&self) -> Option<f64> {
        (self.sums.first_us != 0).then_some(self.sums.first_us as f64 * 1e-6)
    }

    /// When it was last executed, seconds since 1970.
    pub fn last_seen(&self) -> Option<f64> {
        (self.sums.last_us != 0).then_some(self.sums.last_us as f64 * 1e-6)
    }

    /// Its time by account of the ledger.
    pub fn parts(&self) -> &[AccountTicks] {
        &self.parts
    }

    /// Its time in the ledger, all accounts together.
    pub fn seconds(&self) -> f64 {
        self.parts.iter().fold(0u64, |sum, p| sum.saturating_add(p.ticks)) as f64 * self.second
    }

    /// The same by account, class of wait, and phase.
    pub fn split(&self, directory: &Directory) -> Split {
        Split::from_parts(&self.parts, directory, self.second)
    }

    /// Whether nothing was counted.
    pub fn is_zero(&self) -> bool {
        self.sums.is_zero() && self.parts.iter().all(|p| p.count == 0 && p.ticks == 0)
    }
}

/// The current statement of a session.
#[derive(Debug, Clone)]
pub struct InFlight {
    /// The session's slot.
    pub slot: u32,
    /// How often that was claimed.
    pub generation: u32,
    /// Its process.
    pub pid: i32,
    /// The statement; its id is 0 as long as that is unknown.
    pub key: StatementKey,
    /// What its message says, if that was published because the statement is not known.
    pub message: Option<MessageText>,
    /// When it began, tick.
    pub begun: u64,
    /// Time since its start.
    pub age_seconds: f64,
    pub(super) parts: Vec<AccountTicks>,
    pub(super) second: f64,
}

impl InFlight {
    /// Its time so far by account, including the running one.
    pub fn parts(&self) -> &[AccountTicks] {
        &self.parts
    }

    /// The same by account, class of wait, and phase.
    pub fn split(&self, directory: &Directory) -> Split {
        Split::from_parts(&self.parts, directory, self.second)
    }
}
