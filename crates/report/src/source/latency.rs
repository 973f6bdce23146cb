// SPDX-License-Identifier: PostgreSQL
//! The latencies of commands.

use crate::material::Latency;
use crate::source::time::seconds;
use recording::Series;
use segment::own;

/// Whether the values of a series are times of commands of clients.
pub(super) fn is_command(series: &Series) -> bool {
    own::is_client(&series.process) && series.stat.command().is_some_and(|(_, handle)| handle)
}

/// The latency of commands in each detail interval.
pub(super) fn latencies(all: Vec<recording::Latency>) -> Vec<Latency> {
    let latency = |detail: recording::Latency| {
        let length = detail.interval_ns as f64 * 1e-9;
        Latency {
            start: seconds(detail.time_us) - length,
            seconds: length,
            seconds_per_tick: detail.seconds_per_tick,
            histogram: detail.histogram,
        }
    };
    all.into_iter().map(latency).collect()
}
