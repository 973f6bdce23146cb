// SPDX-License-Identifier: PostgreSQL
//! The current run of the server, since its start: the source of metrics and of the statements table.

use std::sync::Arc;

use error::Error;
use live::blocking::Blocking;
use live::target::SegmentSource;
use live::vacuum::Watch;
use segment::{Frame, Rising, Segment, StatementsReading};

use view::blocking::Forest;
use view::statements::PlanRow;
use view::vacuum::Vacuum;

/// A second reader of the segment, in addition to the one for intervals.
#[derive(Debug)]
pub struct Run {
    segment: Segment,
    blocking: Blocking,
    vacuum: Watch,
    previous: Option<segment::Snapshot>,
    rising: Rising,
    /// How often totals were reset, and since when they count, seconds since 1970.
    counted: (u32, f64),
    statements: Option<Arc<StatementsReading>>,
    /// Rate of the clock, constant while the segment is read.
    ticks_per_second: f64,
}

/// Significant digits to which repeated measurements of the clock's rate agree.
const DIGITS: i32 = 5;

/// Rounds a rate. Counters must not fall: if a restarted `tally serve` measured the rate a millionth higher,
/// constant counters would fall a little, and a scraper would take that as a reset.
fn steady(rate: f64) -> f64 {
    if rate.is_finite() && rate > 0.0 {
        let unit = 10f64.powi(rate.log10().floor() as i32 - DIGITS + 1);
        (rate / unit).round() * unit
    } else {
        rate
    }
}

impl Run {
    /// Opens the segment at `place`.
    pub fn open(place: &SegmentSource) -> Result<Run, Error> {
        let segment = place.open()?;
        let ticks_per_second = steady(segment.clock().ticks_per_second());
        let mut run = Run {
            counted: (0, segment.header().created_realtime_ns as f64 * 1e-9),
            segment,
            blocking: Blocking::default(),
            vacuum: Watch::served(),
            previous: None,
            rising: Rising::default(),
            statements: None,
            ticks_per_second,
        };
        run.read_statements()?;
        Ok(run)
    }

    /// How far vacuum is behind, as far as the server has reported it.
    pub fn vacuum(&mut self) -> Option<Vacuum> {
        self.vacuum.next(&self.segment)
    }

    /// Since when the totals of the last reading count, seconds since 1970: the segment's creation, or the last
    /// reset.
    pub fn counted(&self) -> f64 {
        self.counted.1
    }

    /// Totals since the start, none of which ever falls.
    pub fn frame(&mut self) -> Result<Frame, segment::Error> {
        self.segment.refresh()?;
        let snapshot = self.segment.snapshot(self.previous.as_ref())?;
        if snapshot.resets != self.counted.0 {
            // Computed once, because it is not exactly the same each time.
            let ago = snapshot.clock.seconds(snapshot.tick.saturating_sub(snapshot.reset_tick));
            self.counted = (snapshot.resets, snapshot.realtime_ns as f64 * 1e-9 - ago);
        }
        let mut frame = Frame::between(&self.segment, None, &snapshot);
        frame.clock.ticks_per_second = self.ticks_per_second;
        self.rising.hold(snapshot.resets, &mut frame);
        self.previous = Some(snapshot);
        Ok(frame)
    }

    /// The plans of the statements.
    pub fn plans(&self) -> Result<Vec<PlanRow>, segment::Error> {
        PlanRow::all(&self.segment)
    }

    /// Who blocks whom now.
    pub fn blocking(&mut self) -> Result<Forest, Error> {
        Ok(self.blocking.read(&mut self.segment)?.0)
    }

    /// Number of events since the start.
    pub fn events(&self) -> Result<u64, segment::Error> {
        self.segment.event_count()
    }

    /// Reads the statements again.
    pub fn read_statements(&mut self) -> Result<(), segment::Error> {
        self.statements = self.segment.statements()?.map(Arc::new);
        Ok(())
    }

    /// Totals of the statements. Times use the constant rate and are rounded to nanoseconds, so that a constant
    /// total always gives the same number.
    pub fn statements_so_far(&self) -> Option<view::statements::StatementsTable> {
        let latest = self.statements.as_ref()?;
        let to_ns = latest.clock().ticks_per_second() / self.ticks_per_second * 1e9;
        let mut so_far = view::statements::StatementsTable::between(None, latest);
        for row in &mut so_far.rows {
            row.seconds = (row.seconds * to_ns).round() * 1e-9;
        }
        Some(so_far)
    }

    /// The statements at the segment's creation; `None` if it started with those of an earlier segment.
    pub fn statements_at_start(&self) -> Option<Arc<StatementsReading>> {
        self.segment.statements_at_creation().ok().flatten().map(Arc::new)
    }

    /// The latest reading of the statements.
    pub fn statements(&self) -> Option<&Arc<StatementsReading>> {
        self.statements.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_measurements_of_a_rate_round_to_the_same_value() {
        assert_eq!(steady(1e9), 1e9);
        assert_eq!(steady(2_399_998_765.0), steady(2_400_001_234.0));
        assert!((steady(2_445_432_101.0) - 2.4454e9).abs() < 1.0);
        assert_eq!(steady(0.0), 0.0);
    }
}
