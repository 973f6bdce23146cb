// SPDX-License-Identifier: PostgreSQL
//! Count, time and extremes in seconds, as rows show them.

use crate::clock::ClockInfo;
use crate::sampling::{Sampling, Spread};
use crate::total::Total;
use serde::{Serialize, Serializer};

/// Count, time and extremes of events.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Timing {
    /// Number of events that ended.
    pub count: u64,
    /// Their total time; for accounts, the time in the interval.
    pub seconds: f64,
    /// `seconds / count`; `None` without a count.
    pub mean_seconds: Option<f64>,
    /// The shortest event that ended; `None` if unknown.
    pub min_seconds: Option<f64>,
    /// The longest event that ended; for accounts, including the running one; `None` if unknown, as for `cpu`,
    /// which has no histogram.
    pub max_seconds: Option<f64>,
    /// The median, accurate to 6.25 %.
    pub p50_seconds: Option<f64>,
    /// The 99th percentile, accurate to 6.25 %.
    pub p99_seconds: Option<f64>,
    /// If `seconds` was estimated from samples: half the width of its 95 % interval. Only `seconds` is known then.
    pub half_width_seconds: Option<f64>,
    /// The part of the half-width that is not chance: sessions had just changed their state when samples saw them.
    pub doubt_seconds: f64,
    /// Samples cannot distinguish it from other activities: `seconds` is what they have seen; it counts in
    /// sums, but is not shown.
    pub refused: bool,
}

/// The form in JSON: what samples do not show is null, and only samples have a half-width.
#[derive(Serialize)]
struct TimingJson {
    count: Option<u64>,
    seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    half_width_seconds: Option<f64>,
    mean_seconds: Option<f64>,
    min_seconds: Option<f64>,
    max_seconds: Option<f64>,
    p50_seconds: Option<f64>,
    p99_seconds: Option<f64>,
}

impl Serialize for Timing {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Timing { half_width_seconds, mean_seconds, min_seconds, max_seconds, .. } = *self;
        let Timing { p50_seconds, p99_seconds, .. } = *self;
        let (count, seconds) = (self.known_count(), (!self.refused).then_some(self.seconds));
        let json = TimingJson {
            count,
            seconds,
            half_width_seconds,
            mean_seconds,
            min_seconds,
            max_seconds,
            p50_seconds,
            p99_seconds,
        };
        json.serialize(to)
    }
}

/// Sorts rows by a field in descending order, and equal rows by the fields after it.
macro_rules! most_first {
    ($rows:expr, $($by:ident).+ $(, $name:ident)*) => {
        $rows.sort_by(|a, b| {
            let most = b.$($by).+.total_cmp(&a.$($by).+);
            most.then_with(|| ($(&a.$name,)*).cmp(&($(&b.$name,)*)))
        })
    };
}

pub(crate) use most_first;

impl Timing {
    pub(crate) fn from_total(total: &Total, clock: &ClockInfo) -> Timing {
        Timing::with(total, |ticks| clock.seconds(ticks))
    }

    pub(crate) fn with(total: &Total, seconds: impl Fn(u64) -> f64) -> Timing {
        let sum = seconds(total.change.total);
        Timing {
            count: total.change.count,
            seconds: sum,
            mean_seconds: (total.change.count > 0).then(|| sum / total.change.count as f64),
            min_seconds: total.change.min.known().map(&seconds),
            max_seconds: total.change.max.known().map(&seconds),
            p50_seconds: total.quantile(0.50).map(&seconds),
            p99_seconds: total.quantile(0.99).map(&seconds),
            half_width_seconds: None,
            doubt_seconds: 0.0,
            refused: false,
        }
    }

    /// The time as an estimate, without what samples do not show.
    pub(crate) fn with_spread(self, spread: Spread, sampling: &Sampling) -> Timing {
        let (half_width, doubt) = spread.half_width(sampling);
        Timing {
            seconds: self.seconds,
            half_width_seconds: Some(half_width),
            doubt_seconds: doubt,
            ..Timing::default()
        }
    }

    /// The time as one that samples cannot tell apart.
    pub(crate) fn refuse(self) -> Timing {
        Timing { seconds: self.seconds, refused: true, ..Timing::default() }
    }

    /// The number of events that ended; `None`: samples do not show it.
    pub fn known_count(&self) -> Option<u64> {
        let sampled = self.half_width_seconds.is_some() || self.refused;
        (self.count > 0 || !sampled).then_some(self.count)
    }
}
