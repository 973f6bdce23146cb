// SPDX-License-Identifier: PostgreSQL
//! The counts of a statement in the file: counters, parts of its time, histogram. Entries of the table and
//! local entries of caches have the same counts, which are added up here.

use super::account_ticks::AccountTicks;
use super::counted::Unit;
use super::counters::{counter, COUNTER, COUNTERS};
use crate::histogram::{Counts, Histogram};
use crate::layout::{
    self, bucket, bucket_middle, counts, f64_at, local_statement, moments, part, rest, statement,
    u32_at, u64_at,
};

/// Count, sum and extremes of times, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Times {
    /// Number of times.
    pub count: u64,
    /// Their sum.
    pub total: u64,
    /// Their minimum; `None` if there were none, or if unknown.
    pub min: Option<u64>,
    /// Their maximum; `None` if there were none, or if unknown.
    pub max: Option<u64>,
    /// The sum of their squares.
    pub squares: f64,
}

impl Times {
    fn decode(bytes: &[u8], at: usize) -> Times {
        let count = u64_at(bytes, at + moments::COUNT);
        Times {
            count,
            total: u64_at(bytes, at + moments::TOTAL),
            min: (count > 0).then(|| u64_at(bytes, at + moments::MIN)),
            max: (count > 0).then(|| u64_at(bytes, at + moments::MAX)),
            squares: f64_at(bytes, at + moments::SQUARES),
        }
    }

    fn add(&mut self, other: &Times) {
        let either = |a: Option<u64>, b: Option<u64>, better: fn(u64, u64) -> u64| match (a, b) {
            (Some(a), Some(b)) => Some(better(a, b)),
            _ => a.or(b),
        };
        self.count = self.count.saturating_add(other.count);
        self.total = self.total.saturating_add(other.total);
        self.min = either(self.min, other.min, u64::min);
        self.max = either(self.max, other.max, u64::max);
        self.squares += other.squares;
    }

    /// The growth since `earlier`. `growth` is the lowest and the highest bucket that grew, if there is a
    /// histogram. A new extreme is exact.
    fn since(&self, earlier: &Times, growth: (Option<usize>, Option<usize>)) -> Times {
        let count = self.count.saturating_sub(earlier.count);
        let total = self.total.saturating_sub(earlier.total);
        let bounds = (self.min.unwrap_or(0), self.max.unwrap_or(u64::MAX));
        let within = |b: usize| bucket_middle(b).min(bounds.1).max(bounds.0.min(bounds.1));
        let new = |now: Option<u64>, then: Option<u64>| now.filter(|_| now != then);
        let (min, max) = match count {
            0 => (None, None),
            1 => (Some(total), Some(total)),
            _ => (
                new(self.min, earlier.min).or(growth.0.map(within)),
                new(self.max, earlier.max).or(growth.1.map(within)),
            ),
        };
        let squares = match count {
            0 => 0.0,
            _ => (self.squares - earlier.squares).max(0.0),
        };
        Times { count, total, min, max, squares }
    }
}

/// The first `used` parts in `bytes`.
pub(super) fn parts_of(
    bytes: &[u8],
    at: usize,
    used: usize,
) -> impl Iterator<Item = AccountTicks> + '_ {
    let bytes = bytes.get(at..).unwrap_or(&[]);
    bytes
        .chunks_exact(part::SIZE)
        .take(used.min(layout::PARTS))
        .map(|b| AccountTicks {
            stat: u32_at(b, part::STAT),
            count: u64_at(b, part::COUNT),
            ticks: u64_at(b, part::TICKS),
        })
        .filter(|part| part.stat != 0)
}

/// The parts of an entry, and of its rest.
pub(super) fn parts_of_entry(near: &[u8], far: Option<&[u8]>) -> Vec<AccountTicks> {
    let mut parts: Vec<AccountTicks> =
        parts_of(near, statement::PARTS, layout::NEAR_PARTS).collect();
    let more = far.map(|far| parts_of(far, rest::PARTS, layout::PARTS));
    more.into_iter().flatten().for_each(|part| part.add_to(&mut parts));
    parts
}

/// All counts of a statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Sums {
    /// Executions.
    pub exec: Times,
    /// Planning.
    pub plan: Times,
    /// Plain numbers, indexed as in [`counter`]; [`COUNTER`] has their units.
    pub counters: [u64; COUNTERS],
    /// Start of the first execution, microseconds since 1970; 0: unknown.
    pub first_us: i64,
    /// Start of the last execution, microseconds since 1970.
    pub last_us: i64,
    /// Execution times.
    pub histogram: Histogram,
}

impl Default for Sums {
    fn default() -> Sums {
        let (exec, plan) = (Times::default(), Times::default());
        Sums {
            exec,
            plan,
            counters: [0; COUNTERS],
            first_us: 0,
            last_us: 0,
            histogram: Histogram::new(),
        }
    }
}

impl Sums {
    /// The counts in a local entry of a cache.
    pub(super) fn of_local(bytes: &[u8]) -> Sums {
        let mut sums = Sums::of_counts(bytes, local_statement::COUNTS);
        let exec = sums.exec;
        if exec.count == 1 {
            // The writer has not used the histogram yet.
            exec.max.into_iter().for_each(|max| sums.histogram.add(max, 1));
        } else {
            sums.add_buckets(|b| u64::from(u32_at(bytes, local_statement::HIST + 4 * b)));
        }
        sums
    }

    /// The counts in an entry, and in its rest if that is in use.
    pub(super) fn of_entry(near: &[u8], far: Option<&[u8]>) -> Sums {
        let (exec, first_us) = (statement::EXEC, statement::FIRST_US);
        let mut sums = far.map_or_else(Sums::default, |far| Sums::of_counts(far, rest::COUNTS));
        sums.exec = Times::decode(near, exec);
        sums.counters[counter::ROWS] = u64_at(near, statement::ROWS);
        sums.counters[counter::SHARED_HIT] = u64_at(near, statement::HITS);
        sums.last_us = u64_at(near, statement::LAST_US) as i64;
        sums.first_us = u64_at(near, first_us) as i64;
        if let Some(far) = far {
            sums.add_buckets(|b| u64_at(far, rest::HIST + 8 * b));
        }
        let base = u32_at(near, statement::BASE) as usize;
        let most = layout::HIST_BUCKETS.saturating_sub(base).min(layout::NEAR_BUCKETS);
        if sums.exec.count > 0 && most > 0 {
            let bucket = |i| u64::from(u32_at(near, statement::HIST + 4 * i));
            let counts: Vec<u64> = (0..most).map(bucket).collect();
            sums.histogram.add_counts(base, Counts::Wide(&counts));
        }
        sums
    }

    /// The counts at `at`.
    fn of_counts(bytes: &[u8], at: usize) -> Sums {
        let counters = COUNTER.each_ref().map(|counter| match counter.wide {
            true => u64_at(bytes, at + counter.at),
            false => u64::from(u32_at(bytes, at + counter.at)),
        });
        let [first_us, last_us] = [counts::FIRST_US, counts::LAST_US];
        let [first_us, last_us] = [first_us, last_us].map(|field| u64_at(bytes, at + field) as i64);
        Sums {
            exec: Times::decode(bytes, at + counts::EXEC),
            plan: Times::decode(bytes, at + counts::PLAN),
            counters,
            first_us: if first_us != 0 { first_us } else { last_us },
            last_us,
            histogram: Histogram::new(),
        }
    }

    /// Add the buckets of the histogram of executions that are between the extremes.
    fn add_buckets(&mut self, bucket_count: impl Fn(usize) -> u64) {
        let (Some(min), Some(max)) = (self.exec.min, self.exec.max) else {
            return;
        };
        if min <= max {
            let counts: Vec<u64> = (bucket(min)..=bucket(max)).map(bucket_count).collect();
            self.histogram.add_counts(bucket(min), Counts::Wide(&counts));
        }
    }

    pub(super) fn add(&mut self, other: &Sums) {
        self.exec.add(&other.exec);
        self.plan.add(&other.plan);
        for (sum, more) in self.counters.iter_mut().zip(other.counters) {
            *sum = sum.saturating_add(more);
        }
        if other.first_us != 0 && (self.first_us == 0 || other.first_us < self.first_us) {
            self.first_us = other.first_us;
        }
        self.last_us = self.last_us.max(other.last_us);
        self.histogram.merge(&other.histogram);
    }

    /// Whether these can be `earlier` plus more counts.
    pub(super) fn continues(&self, earlier: &Sums) -> bool {
        self.exec.count >= earlier.exec.count
            && self.plan.count >= earlier.plan.count
            && self.exec.total >= earlier.exec.total
            && self.counters.iter().zip(earlier.counters).all(|(now, then)| *now >= then)
    }

    /// Whether these can be `earlier` plus more counts, in ticks that may have been converted.
    pub(super) fn continues_counts(&self, earlier: &Sums) -> bool {
        let mut counters = (0..COUNTERS).filter(|at| COUNTER[*at].unit == Unit::Count);
        self.exec.count >= earlier.exec.count
            && self.plan.count >= earlier.plan.count
            && (earlier.first_us == 0 || self.first_us <= earlier.first_us)
            && counters.all(|at| self.counters[at] >= earlier.counters[at])
    }

    /// The growth since `earlier`.
    pub(super) fn since(&self, earlier: &Sums) -> Sums {
        let mut histogram = Histogram::new();
        let growth = histogram.add_growth(self.histogram.whole(), earlier.histogram.whole());
        let mut counters = self.counters;
        for (counter, then) in counters.iter_mut().zip(earlier.counters) {
            *counter = counter.saturating_sub(then);
        }
        Sums {
            exec: self.exec.since(&earlier.exec, growth),
            plan: self.plan.since(&earlier.plan, (None, None)),
            counters,
            first_us: self.first_us,
            last_us: self.last_us,
            histogram,
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.exec.count == 0 && self.plan.count == 0 && self.counters.iter().all(|&n| n == 0)
    }
}
