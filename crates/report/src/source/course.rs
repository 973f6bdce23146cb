// SPDX-License-Identifier: PostgreSQL
//! One side of a comparison over time, from its start.

use recording::{FrameRow, Range, Recording};

use super::columns::{self, StatisticsOfRange};
use super::contributions::Purpose;
use crate::material::Latency;
use crate::point::Point;
use error::Error;

/// Maximum number of points of a side.
const POINTS: i64 = 600;

/// One side over time; times are seconds since its start.
#[derive(Debug, Clone, Default)]
pub struct Course {
    /// The length of a point, seconds.
    pub step: f64,
    /// The points, each `step` long.
    pub points: Vec<Point>,
    /// Command latency.
    pub latency: Vec<Latency>,
    /// Number of CPUs of the machine.
    pub cores: usize,
}

/// The length of the points of both sides, microseconds.
pub fn step(sides: [(Range, &[FrameRow]); 2]) -> i64 {
    let length = |range: Range| range.to_us.saturating_sub(range.from_us);
    let longest = sides.iter().map(|side| length(side.0)).max().unwrap_or(0);
    let interval = sides.iter().map(|side| usual(side.1)).max().unwrap_or(1);
    columns::step(longest, interval, POINTS)
}

/// The median length of an interval, rounded to a millisecond; microseconds.
fn usual(heads: &[FrameRow]) -> i64 {
    let mut lengths: Vec<u64> = heads.iter().map(|head| head.interval_ns).collect();
    lengths.sort_unstable();
    let length = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
    ((length + 500_000) / 1_000_000 * 1_000).max(1_000) as i64
}

/// Reads a side of a comparison, in points of `step` microseconds.
pub fn course(
    recording: &Recording,
    range: Range,
    heads: &[FrameRow],
    step: i64,
) -> Result<Course, Error> {
    let columns = columns::Columns::since_beginning(range, step, usual(heads));
    let StatisticsOfRange { sum, mut latency, mut points } =
        columns::statistics(recording, range, (&columns, Purpose::Charts), heads)?;
    let seconds = step as f64 * 1e-6;
    for (at, point) in points.iter_mut().enumerate() {
        point.start = at as f64 * seconds;
    }
    latency.iter_mut().for_each(|latency| latency.start -= range.from_us as f64 * 1e-6);
    Ok(Course { step: seconds, points, latency, cores: sum.cores })
}
