// SPDX-License-Identifier: PostgreSQL
//! Sinks of a trace, and the context that they may use.

use crate::names::Names;
use crate::story::{Story, Unit};
use error::Error;
use segment::{Segment, Traced};

/// The context of a sink.
pub(super) struct Context {
    /// The server's segment.
    pub segment: Segment,
    /// Names for the numbers in records.
    pub names: Names,
    /// The tick that output counts from.
    pub origin: u64,
    /// The time of the origin, ns since 1970.
    pub origin_realtime_ns: u64,
}

impl Context {
    /// Nanoseconds from the origin to a tick; negative if the tick is earlier.
    pub fn ns(&self, tick: u64) -> i64 {
        let clock = self.segment.clock();
        let ns = |ticks: u64| (clock.seconds(ticks) * 1e9).round() as i64;
        if tick >= self.origin {
            ns(tick - self.origin)
        } else {
            -ns(self.origin - tick)
        }
    }

    /// The time of a tick, ns since 1970.
    pub fn realtime_ns(&self, tick: u64) -> u64 {
        self.origin_realtime_ns.saturating_add_signed(self.ns(tick))
    }

    /// Converts a length to nanoseconds.
    pub fn length_ns(&self, ticks: u64) -> i64 {
        (self.segment.clock().seconds(ticks) * 1e9).round() as i64
    }
}

/// A destination of a trace.
pub(super) trait Sink {
    /// The trace of a process begins.
    fn session(&mut self, context: &mut Context, who: &Traced) -> Result<(), Error>;
    /// A message of it is over, or a part of a message.
    fn unit(&mut self, context: &mut Context, who: &Traced, unit: &Unit) -> Result<(), Error>;
    /// The same for a message that the user did not ask for.
    fn left_out(
        &mut self,
        _context: &mut Context,
        _who: &Traced,
        _unit: &Unit,
    ) -> Result<(), Error> {
        Ok(())
    }
    /// The trace of a process is over.
    fn ended(&mut self, _context: &mut Context, _who: &Traced) -> Result<(), Error> {
        Ok(())
    }
    /// False if the sink is complete, so that the trace may end.
    fn wants_more(&self) -> bool {
        true
    }
    /// Prints everything that can be printed now.
    fn flush(&mut self) -> Result<(), Error>;
    /// The trace is over.
    fn finish(&mut self, context: &mut Context, stories: &[Story]) -> Result<(), Error>;
}

/// Formats milliseconds, to the microsecond.
pub(super) fn ms(context: &Context, ticks: u64) -> String {
    format!("{:.3}", context.length_ns(ticks) as f64 * 1e-6)
}

/// Formats the time of day of an instant, ns since 1970.
pub(super) fn time_of_day(ns: u64) -> String {
    jiff::Timestamp::from_nanosecond(ns.into()).map_or(String::new(), |time| {
        time.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M:%S.%6f").to_string()
    })
}
