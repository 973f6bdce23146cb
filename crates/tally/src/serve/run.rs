// SPDX-License-Identifier: PostgreSQL
//! The run of the server that is read now, all of it since its begin: what the metrics and the
//! table of statements are made from.

use std::sync::Arc;

use segment::{Frame, Segment, SegmentPath, Statements};

/// A segment of our own, beside the one that intervals are read from.
#[derive(Debug)]
pub struct Run {
    segment: Segment,
    previous: Option<segment::Snapshot>,
    statements: Option<Arc<Statements>>,
    /// Of the clock, kept for as long as the segment is read.
    ticks_per_second: f64,
}

/// To so many digits the clock's rate is the same each time it is measured.
const DIGITS: i32 = 5;

/// Counters must not fall: a rate that is measured again, and found a millionth higher, would let
/// what does not grow fall a little, and a scraper take that for a new beginning.
fn steady(rate: f64) -> f64 {
    if rate.is_finite() && rate > 0.0 {
        let unit = 10f64.powi(rate.log10().floor() as i32 - DIGITS + 1);
        (rate / unit).round() * unit
    } else {
        rate
    }
}

impl Run {
    /// The segment at a place.
    pub fn open(place: &SegmentPath) -> Result<Run, segment::Error> {
        let segment = Segment::open(place)?;
        let ticks_per_second = steady(segment.clock().ticks_per_second());
        let mut run = Run { segment, previous: None, statements: None, ticks_per_second };
        run.read_statements()?;
        Ok(run)
    }

    /// When it was made, seconds since 1970.
    pub fn created(&self) -> f64 {
        self.segment.header().created_realtime_ns as f64 * 1e-9
    }

    /// Everything until now.
    pub fn frame(&mut self) -> Result<Frame, segment::Error> {
        let snapshot = self.segment.snapshot(self.previous.as_ref())?;
        let mut frame = Frame::between(&self.segment, None, &snapshot);
        frame.clock.ticks_per_second = self.ticks_per_second;
        self.previous = Some(snapshot);
        Ok(frame)
    }

    /// Events that were ever noted.
    pub fn events(&self) -> Result<u64, segment::Error> {
        self.segment.event_count()
    }

    /// Read the statements anew.
    pub fn read_statements(&mut self) -> Result<(), segment::Error> {
        self.statements = self.segment.statements()?.map(Arc::new);
        Ok(())
    }

    /// The same since their figures began, their times by the steady rate, in whole nanoseconds:
    /// what does not grow is the same number each time.
    pub fn statements_so_far(&self) -> Option<view::statements::Statements> {
        let latest = self.statements.as_ref()?;
        let to_ns = latest.clock().ticks_per_second() / self.ticks_per_second * 1e9;
        let mut so_far = view::statements::Statements::between(None, latest);
        for row in &mut so_far.rows {
            row.seconds = (row.seconds * to_ns).round() * 1e-9;
        }
        Some(so_far)
    }

    /// The statements as read last.
    pub fn statements(&self) -> Option<&Arc<Statements>> {
        self.statements.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_is_measured_again_is_the_same() {
        assert_eq!(steady(1e9), 1e9);
        assert_eq!(steady(2_399_998_765.0), steady(2_400_001_234.0));
        assert!((steady(2_445_432_101.0) - 2.4454e9).abs() < 1.0);
        assert_eq!(steady(0.0), 0.0);
    }
}
