// SPDX-License-Identifier: PostgreSQL
//! Count, time and extremes in seconds, as rows show them.

use crate::clock::ClockInfo;
use crate::total::Total;
use serde::Serialize;

/// Count, time and extremes of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
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
        }
    }
}
