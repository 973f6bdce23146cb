// SPDX-License-Identifier: PostgreSQL
//! When an event happened: ticks of a segment's clock as times of day.

use jiff::tz::TimeZone;
use jiff::Timestamp;
use segment::{Clock, ClockKind, Segment};

/// What ticks are measured against.
#[derive(Debug)]
pub struct When {
    clock: Clock,
    /// One instant in ticks ...
    tick: u64,
    /// ... and in seconds since 1970.
    seconds: f64,
}

impl When {
    /// The times of a segment's events. `None`: it is of another boot, whose clock cannot be told.
    pub fn of(segment: &Segment) -> Option<When> {
        let mut clock = *segment.clock();
        let header = segment.header();
        if segment.is_of_this_boot() {
            // From now on backwards: that is right for what is fresh, however long ago the segment
            // was made and whatever the system's time has been set to since.
            clock.measure();
            let seconds = segment::clock::realtime_ns() as f64 / 1e9;
            return Some(When { tick: clock.now(), clock, seconds });
        }
        let seconds = header.created_realtime_ns as f64 / 1e9;
        let told = clock.kind() == ClockKind::Monotonic;
        told.then_some(When { clock, tick: header.clock_tick0, seconds })
    }

    /// A tick in seconds since 1970.
    pub fn seconds(&self, tick: u64) -> f64 {
        if tick >= self.tick {
            self.seconds + self.clock.seconds(tick - self.tick)
        } else {
            self.seconds - self.clock.seconds(self.tick - tick)
        }
    }
}

/// Seconds since 1970 as the server's log has them: "2026-03-01 17:30:00.123 CET". What is no time
/// at all, as in a damaged segment, is "-".
pub fn local(seconds: f64, zone: &TimeZone) -> String {
    let milliseconds = (seconds * 1e3).floor();
    // A conversion of what is out of range gives the last number, which is out of it too.
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
