// SPDX-License-Identifier: PostgreSQL
//! Times of recorded frames.

use recording::FrameRow;

/// Converts microseconds since 1970 to seconds.
pub(super) fn seconds(time_us: i64) -> f64 {
    time_us as f64 * 1e-6
}

/// When an interval started, microseconds since 1970.
pub(super) fn begin(head: &FrameRow) -> i64 {
    head.time_us - (head.interval_ns / 1_000) as i64
}
