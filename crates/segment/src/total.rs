// SPDX-License-Identifier: PostgreSQL
//! The change of one statistic in an interval: count, sum, extremes, histogram.

use crate::directory::StatKind;
use crate::histogram::Histogram;
use crate::layout::bucket_middle;
use std::borrow::Cow;

/// The change of one statistic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Change {
    /// Events that ended.
    pub count: u64,
    /// For accounts: ticks in the interval. Otherwise the sum of the events.
    pub total: u64,
    /// The minimum of the events: exact if it is the lowest ever or the only value, otherwise the middle of its
    /// bucket (accurate to 6.25 %).
    pub min: Extreme,
    /// The maximum of the events, as accurate as `min`; for accounts, including the running event so far.
    pub max: Extreme,
    /// Bytes transferred by these events.
    pub amount: u64,
    /// Events that continued where the previous one had ended.
    pub follows: u64,
}

/// The minimum or maximum of some values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Extreme {
    /// There are no values.
    #[default]
    None,
    /// Unknown: a statistic without a histogram, in an interval without a new extreme.
    Unknown,
    /// This value.
    Of(u64),
}

impl Extreme {
    /// The value, if known.
    pub fn known(self) -> Option<u64> {
        match self {
            Extreme::Of(value) => Some(value),
            Extreme::None | Extreme::Unknown => None,
        }
    }

    pub(crate) fn join(self, other: Extreme, better: fn(u64, u64) -> u64) -> Extreme {
        match (self, other) {
            (Extreme::None, one) | (one, Extreme::None) => one,
            (Extreme::Of(a), Extreme::Of(b)) => Extreme::Of(better(a, b)),
            _ => Extreme::Unknown,
        }
    }
}

impl Change {
    /// Whether nothing happened.
    pub fn is_zero(&self) -> bool {
        self.count == 0 && self.total == 0
    }

    pub(crate) fn add(&mut self, other: &Change) {
        self.count = self.count.saturating_add(other.count);
        self.total = self.total.saturating_add(other.total);
        self.min = self.min.join(other.min, u64::min);
        self.max = self.max.join(other.max, u64::max);
        self.amount = self.amount.saturating_add(other.amount);
        self.follows = self.follows.saturating_add(other.follows);
    }
}

/// The change of one statistic, added up over all sessions.
#[derive(Debug, Clone, Default)]
pub struct Total {
    /// Count, sum and extremes.
    pub change: Change,
    /// The histogram of the events.
    pub histogram: Histogram,
}

impl Total {
    /// A quantile of the events, in ticks. `None` if the histogram has less than half of the events, because
    /// not all writers keep one.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let Change { count, min, max, .. } = &self.change;
        self.histogram.quantile_of(*count, q, min.known(), max.known())
    }

    /// The same in ticks of a clock that is `ratio` times as fast. Buckets do not change if the clocks
    /// are nearly equal, such as the same clock measured twice.
    pub(crate) fn rescaled(&self, ratio: f64, kind: StatKind) -> Cow<'_, Total> {
        if ratio == 1.0 || kind == StatKind::Value {
            return Cow::Borrowed(self);
        }
        let ticks = |n| scaled(n, ratio);
        let extreme = |value| match value {
            Extreme::Of(n) => Extreme::Of(ticks(n)),
            other => other,
        };
        let histogram = if (ratio - 1.0).abs() < 0.01 {
            self.histogram.clone()
        } else {
            self.histogram.rescaled(ratio)
        };
        let change = &self.change;
        let change = Change {
            total: ticks(change.total),
            min: extreme(change.min),
            max: extreme(change.max),
            ..*change
        };
        Cow::Owned(Total { change, histogram })
    }

    /// Add another one.
    pub fn merge(&mut self, other: &Total) {
        self.change.add(&other.change);
        self.histogram.merge(&other.histogram);
    }
}

/// Converts a number of ticks to ticks of another clock.
pub(crate) fn scaled(ticks: u64, ratio: f64) -> u64 {
    if ratio == 1.0 {
        ticks
    } else {
        (ticks as f64 * ratio).round() as u64
    }
}

/// The minimum and maximum in an interval, derived from the lowest and highest bucket that grew, and from the
/// all-time extremes at its end and, if there were events, at its start. A new extreme is exact.
pub(crate) fn extremes(
    growth: (Option<usize>, Option<usize>),
    now: (u64, u64),
    then: Option<(u64, u64)>,
) -> (Extreme, Extreme) {
    let within = |b: usize| Extreme::Of(bucket_middle(b).min(now.1).max(now.0.min(now.1)));
    let min = match then {
        Some((min, _)) if now.0 >= min => growth.0.map_or(Extreme::Unknown, within),
        _ => Extreme::Of(now.0),
    };
    let max = match then {
        Some((_, max)) if now.1 <= max => growth.1.map_or(Extreme::Unknown, within),
        _ => Extreme::Of(now.1),
    };
    (min, max)
}
