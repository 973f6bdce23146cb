// SPDX-License-Identifier: PostgreSQL
//! Figures that were estimated from samples, because the server does not load pg_tally.
//!
//! The sampler (crates/live/src/sampled) is a writer like any other: a session's account changes in the
//! middle between two samples. For each account it also stores the variance of the total and the time in
//! doubt, under the account's name with a prefix, and it counts its samples. So snapshots, frames and
//! recordings contain these without special code, and an interval with samples shows estimates.

use serde::Serialize;
use stats::Z95;

use crate::clock::ClockInfo;
use crate::directory::{Stat, StatKind};
use crate::frame_totals::FrameTotals;
use std::collections::HashMap;

pub use crate::wait_class::{tells_cpu_apart, UNKNOWN};

/// The kind of process whose statistics the sampler's own ones are.
pub const PROCESS: &str = "sampler";
/// Before the name of an account: the variance of its total, in [`VARIANCE_UNIT`]; its count is the number of
/// stretches that only one sample has seen.
pub const VARIANCE: &str = "sampled::";
/// Before the name of an account: a timer of the time represented by samples that saw a session in the
/// account just after it had changed its state. At the instant that was drawn, it may have been in another
/// account.
pub const DOUBT: &str = "doubted::";
/// In place of an account's name: the sum for all accounts without their own statistic.
pub const OTHERS: &str = "*";
/// Square milliseconds.
pub const VARIANCE_UNIT: &str = "ms2";
/// A timer of the time represented by samples that saw a process shortly after its start, weighted with the
/// part of its life that no sample can see: the server shows a process only from the time it has connected
/// until it begins to end.
pub const YOUNG: &str = "sampler::young";
/// A timer: from one sample to the next.
pub const GAP: &str = "sampler::gap";
/// A timer: how much later a sample was taken than the instant that was drawn for it.
pub const LATE: &str = "sampler::late";
/// A timer: from one sample to the next, while samples come too late to tell CPU time apart.
pub const UNTOLD: &str = "sampler::untold";
/// A timer: how long the server took for a sample.
pub const READ: &str = "sampler::read";
/// A timer: CPU time of the server for a sample; if that cannot be seen, how long the server took.
pub const COST: &str = "sampler::cost";

/// An account in which sessions were seen only once may have had one more such stretch, or one less. This
/// adds to its variance; the unit is the square of the mean distance between samples.
const UNSURE: f64 = 0.5;

/// How an interval was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sampling {
    /// Number of samples.
    pub samples: u64,
    /// The time that was sampled; the rest of the interval was measured.
    pub sampled_seconds: f64,
    /// Samples per second of that time.
    pub per_second: f64,
    /// The longest time between two samples; `None`: not known.
    pub longest_gap_seconds: Option<f64>,
    /// How late a sample was on average.
    pub late_seconds: f64,
    /// The part of `sampled_seconds` in which samples came so late that CPU time could not be distinguished
    /// from waits: on a busy machine, a sample is taken when the sessions have just lost the CPUs.
    pub untold_seconds: f64,
    /// Whether CPU time is shown: not if `untold_seconds` are more than a small part of the time without a
    /// wait event.
    pub cpu_told_apart: bool,
    /// The time of sessions that had just changed their state when samples saw them.
    #[serde(skip)]
    pub doubt_seconds: f64,
    /// How long the server took for a sample on average.
    pub read_seconds: f64,
    /// What sampling cost the server: seconds of CPU time per second, or of elapsed time if CPU time could not be seen.
    pub cost_share: f64,
}

/// The producer of a segment that is made of this many samples per second.
pub fn producer(per_second: u32) -> String {
    format!("tally {}, {per_second} samples/s", env!("CARGO_PKG_VERSION"))
}

/// The mean distance of the samples of which this producer makes a segment, in seconds; `None`: it measures.
pub fn distance_of(producer: &str) -> Option<f64> {
    let rate = producer.strip_suffix(" samples/s")?.rsplit(' ').next()?.parse::<f64>().ok()?;
    (rate > 0.0).then(|| 1.0 / rate)
}

/// Whether a statistic is one of the sampler's own.
pub(crate) fn is_of_sampler(stat: &Stat) -> bool {
    ["sampler::", VARIANCE, DOUBT].iter().any(|prefix| stat.name.starts_with(prefix))
}

/// Half the width of a 95 % interval from this many samples, by Student's t. The quantile is approximated by
/// the first two terms of its expansion (Peiser, 1943).
pub fn half_width(variance: f64, samples: f64) -> f64 {
    let quantile = Z95 + (Z95.powi(3) + Z95) / (4.0 * samples.max(2.0));
    quantile * variance.max(0.0).sqrt()
}

/// Half the width of the 95 % interval of a time that samples at this mean distance have seen: their number varies at most
/// as that of independent events does, and one more may have been missed.
pub fn time_half_width(seconds: f64, distance: f64) -> f64 {
    let variance = distance * (seconds + distance);
    // One may be seen by few samples, however many there are.
    half_width(variance, (seconds / distance).max(1.0))
}

/// The same for the share of a part in a time that samples have seen for so many seconds.
pub fn share_half_width(share: f64, seconds: f64, distance: f64) -> f64 {
    let samples = (seconds / distance).max(1.0);
    let variance = (share * (1.0 - share) + 1.0 / samples) / samples;
    half_width(variance, samples).min(1.0)
}

/// The uncertainty of a time that was estimated from samples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Spread {
    /// By chance: the variance, square seconds.
    variance: f64,
    /// Because sessions had just changed: seconds.
    doubt: f64,
    /// The time of processes that begin and end that samples do not see, seconds. It is the same for all
    /// accounts.
    unseen: f64,
}

impl Spread {
    pub(crate) fn add(&mut self, other: Spread) {
        self.variance += other.variance;
        self.doubt += other.doubt;
        self.unseen = self.unseen.max(other.unseen);
    }

    /// Half the width of the 95 % interval, and the part of it that is doubt: what may have been counted here, or elsewhere
    /// instead of here.
    pub(crate) fn half_width(self, sampling: &Sampling) -> (f64, f64) {
        let elsewhere = (sampling.doubt_seconds - self.doubt).max(0.0);
        let doubt = self.doubt.min(elsewhere) + self.unseen;
        (half_width(self.variance, sampling.samples as f64) + doubt, doubt)
    }
}

/// The uncertainty of accounts, by their names.
#[derive(Debug)]
pub(crate) struct Spreads<'f> {
    variances: HashMap<&'f str, f64>,
    doubts: HashMap<&'f str, f64>,
    unseen: f64,
}

impl Spreads<'_> {
    /// The uncertainty of an account. For an account without its own statistic, it is an upper limit: the sum
    /// of all such accounts.
    pub(crate) fn of_account(&self, account: &str) -> Spread {
        let of = |all: &HashMap<&str, f64>| {
            all.get(account).or_else(|| all.get(OTHERS)).copied().unwrap_or(0.0)
        };
        // A process that begins or ends works, or waits for its client.
        let begins = account.ends_with("::cpu") || account.contains("::Client:");
        let unseen = if begins { self.unseen } else { 0.0 };
        Spread { variance: of(&self.variances), doubt: of(&self.doubts), unseen }
    }
}

/// How a frame was sampled, and the uncertainty of its accounts; `None`: it was not sampled.
pub(crate) fn of_totals<'f>(sums: &FrameTotals<'f>) -> Option<(Sampling, Spreads<'f>)> {
    let clock: &ClockInfo = sums.clock();
    let timer = |name: &str| {
        let is = |stat: &Stat| stat.kind == StatKind::Timer && stat.name == name;
        sums.changed().find(|(stat, _)| is(stat)).map(|(_, total)| total.change)
    };
    let gaps = timer(GAP).filter(|gaps| gaps.count > 0)?;
    let mean = |name: &str| {
        timer(name).map_or(0.0, |all| clock.seconds(all.total) / all.count.max(1) as f64)
    };
    let of = |activity: &str| -> f64 {
        let accounts = sums.changed().filter(|(stat, _)| stat.kind == StatKind::Account);
        let those = accounts.filter(|(stat, _)| **stat.activity() == *activity);
        those.map(|(_, total)| clock.seconds(total.change.total)).sum()
    };
    let timers = sums.changed().filter(|(stat, _)| stat.kind == StatKind::Timer);
    let doubts: HashMap<&str, f64> = timers
        .filter_map(|(stat, total)| {
            Some((stat.name.strip_prefix(DOUBT)?, clock.seconds(total.change.total)))
        })
        .collect();
    let sampling = Sampling {
        samples: gaps.count,
        sampled_seconds: clock.seconds(gaps.total),
        per_second: gaps.count as f64 / clock.seconds(gaps.total).max(1e-9),
        longest_gap_seconds: gaps.max.known().map(|ticks| clock.seconds(ticks)),
        late_seconds: mean(LATE),
        untold_seconds: timer(UNTOLD).map_or(0.0, |all| clock.seconds(all.total)),
        cpu_told_apart: tells_cpu_apart(of("cpu"), of(UNKNOWN)),
        read_seconds: mean(READ),
        doubt_seconds: doubts.values().sum(),
        cost_share: mean(COST) * gaps.count as f64 / clock.seconds(gaps.total).max(1e-9),
    };
    let variances = sums.changed().filter(|(stat, _)| stat.kind == StatKind::Value);
    let unsure = UNSURE / sampling.per_second.powi(2);
    let variances = variances.filter_map(|(stat, total)| {
        let more = if total.change.count > 0 { unsure } else { 0.0 };
        Some((stat.name.strip_prefix(VARIANCE)?, total.change.total as f64 * 1e-6 + more))
    });
    let unseen = timer(YOUNG).map_or(0.0, |all| clock.seconds(all.total));
    Some((sampling, Spreads { variances: variances.collect(), doubts, unseen }))
}
