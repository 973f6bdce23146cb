// SPDX-License-Identifier: PostgreSQL
//! The sum of a range, and the latencies of its frames.

use crate::material::Latency;
use crate::source::time::seconds;
use error::Error;
use recording::{Range, Recording};
use segment::{own, Frame};

/// The sum of a range, and the latency of commands in each detail interval; times without a detail interval are
/// gaps.
pub(super) fn sum_and_latency(
    recording: &Recording,
    range: Range,
) -> Result<(Frame, Vec<Latency>), Error> {
    let (sum, all) = recording.sum_and_latencies(range, |series| {
        own::is_client(&series.process) && series.stat.command().is_some_and(|(_, handle)| handle)
    })?;
    let latency = all.into_iter().map(|detail| {
        let length = detail.interval_ns as f64 * 1e-9;
        Latency {
            start: seconds(detail.time_us) - length,
            seconds: length,
            seconds_per_tick: detail.seconds_per_tick,
            histogram: detail.histogram,
        }
    });
    Ok((sum, latency.collect()))
}
