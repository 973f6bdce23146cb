// SPDX-License-Identifier: PostgreSQL
//! Converts the time of an event from ticks of a segment's clock to a time of day.

use jiff::tz::TimeZone;
use jiff::Timestamp;
use segment::{Clock, ClockKind, Segment};

/// The reference for a conversion of ticks.
#[derive(Debug)]
pub struct When {
    clock: Clock,
    /// One instant in ticks.
    tick: u64,
    /// The same instant in seconds since 1970.
    seconds: f64,
}

impl When {
    /// The clock of a segment's events; `None` if the segment is from another boot, so that its clock is unknown.
    pub fn from_segment(segment: &Segment) -> Option<When> {
        let mut clock = *segment.clock();
        let header = segment.header();
        if segment.is_of_this_boot() {
            // Counted back from now, so that recent events are right however old the segment is, and even if the
            // system's time has been changed since.
            clock.measure();
            let seconds = segment.realtime_ns() as f64 / 1e9;
            return Some(When { tick: clock.now(), clock, seconds });
        }
        let seconds = header.created_realtime_ns as f64 / 1e9;
        let known = clock.kind() == ClockKind::Monotonic;
        known.then_some(When { clock, tick: header.clock_tick0, seconds })
    }

    /// Converts ticks to seconds since 1970.
    pub fn seconds(&self, tick: u64) -> f64 {
        if tick >= self.tick {
            self.seconds + self.clock.seconds(tick - self.tick)
        } else {
            self.seconds - self.clock.seconds(self.tick - tick)
        }
    }
}

/// Formats seconds since 1970 like the server's log: "2026-03-01 17:30:00.123 CET". A value that is out of range,
/// as in a damaged segment, becomes "-".
pub fn local(seconds: f64, zone: &TimeZone) -> String {
    let milliseconds = (seconds * 1e3).floor();
    // An out-of-range conversion saturates, and the result is out of jiff's range as well.
    match Timestamp::from_millisecond(milliseconds as i64) {
        Ok(at) => at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S%.3f %Z").to_string(),
        Err(_) => "-".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_local_with_milliseconds() {
        let zone = TimeZone::get("Europe/Berlin").unwrap_or(TimeZone::UTC);
        let summer = match zone == TimeZone::UTC {
            true => "2026-07-01 12:00:00.004 UTC",
            false => "2026-07-01 14:00:00.004 CEST",
        };
        assert_eq!(local(1_782_907_200.004_9, &zone), summer);
        assert_eq!(local(0.9999, &TimeZone::UTC), "1970-01-01 00:00:00.999 UTC");
        assert_eq!(local(-0.0001, &TimeZone::UTC), "1969-12-31 23:59:59.999 UTC");
        for odd in [f64::NAN, f64::INFINITY, -1e18, 1e18] {
            let text = local(odd, &TimeZone::UTC);
            assert!(text == "-" || odd.is_nan(), "{odd}: {text}");
        }
    }
}
