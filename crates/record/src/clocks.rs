// SPDX-License-Identifier: PostgreSQL
//! Compares the machine's clocks to detect that the time of day was set, that the machine slept, or that
//! this process did not run.
//!
//! Intervals are measured by CLOCK_MONOTONIC, which cannot be set; the time of day only labels them.
//! Setting the clock therefore changes no figure; it is recorded as a mark.

use std::time::Duration;

/// One reading of the clocks, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    /// Time of day, ns since 1970.
    pub realtime: u64,
    /// Time since boot without sleep.
    pub monotonic: u64,
    /// Time since boot.
    pub boottime: u64,
}

/// An event between two readings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    /// The time of day was set.
    Set {
        /// By how much.
        by: Duration,
        /// Whether it was set back.
        back: bool,
    },
    /// The machine slept this long.
    Slept(Duration),
    /// This process did not run for this long.
    Late(Duration),
}

/// Smaller differences do not count as a clock that was set, because the clocks are not read at the same
/// instant; ns.
const MIN_SET: u64 = 50_000_000;
/// A slewed clock deviates by less than one part in this number.
const SLEWED: u64 = 1000;
/// Smaller differences do not count as sleep, because the two clocks are not read at the same instant; ns.
const MIN_SLEEP: u64 = 20_000_000;

impl Clocks {
    /// Reads the clocks.
    pub fn now() -> Clocks {
        Clocks {
            realtime: segment::clock::realtime_ns(),
            monotonic: segment::clock::monotonic_ns(),
            boottime: segment::clock::boottime_ns(),
        }
    }

    /// Time of day, microseconds since 1970.
    pub fn micros(&self) -> i64 {
        recording::time_us(self.realtime)
    }

    /// What happened since the reading `before`; this reading was due after `interval`.
    pub fn since(&self, before: &Clocks, interval: Duration) -> Vec<Happening> {
        let mut found = Vec::new();
        let ran = self.monotonic.saturating_sub(before.monotonic);
        let slept = self.boottime.saturating_sub(before.boottime).saturating_sub(ran);
        let slept = if slept >= MIN_SLEEP { slept } else { 0 };
        if slept > 0 {
            found.push(Happening::Slept(Duration::from_nanos(slept)));
        }
        let expected = before.realtime.saturating_add(ran).saturating_add(slept);
        let by = self.realtime.abs_diff(expected);
        if by > MIN_SET.max(ran / SLEWED) {
            let back = self.realtime < expected;
            found.push(Happening::Set { by: Duration::from_nanos(by), back });
        }
        let ran = Duration::from_nanos(ran);
        if ran > interval * 2 + Duration::from_millis(500) {
            found.push(Happening::Late(ran - interval));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn after(before: Clocks, ran: u64, slept: u64, set: i64) -> Clocks {
        Clocks {
            realtime: (before.realtime + ran + slept).saturating_add_signed(set),
            monotonic: before.monotonic + ran,
            boottime: before.boottime + ran + slept,
        }
    }

    #[test]
    fn a_set_clock_sleep_and_a_late_reading_are_distinguished() {
        let begin = Clocks {
            realtime: 1_700_000_000 * SECOND,
            monotonic: 9 * SECOND,
            boottime: 9 * SECOND,
        };
        let interval = Duration::from_secs(1);
        let happened = |ran, slept, set| after(begin, ran, slept, set).since(&begin, interval);
        assert_eq!(happened(SECOND, 0, 0), []);
        assert_eq!(happened(SECOND, 0, 400_000), [], "slewed");
        let hour = Duration::from_secs(3600);
        assert_eq!(
            happened(SECOND, 0, -(3600 * SECOND as i64)),
            [Happening::Set { by: hour, back: true }]
        );
        assert_eq!(
            happened(SECOND, 0, 3600 * SECOND as i64),
            [Happening::Set { by: hour, back: false }]
        );
        assert_eq!(happened(SECOND, 3600 * SECOND, 0), [Happening::Slept(hour)]);
        assert_eq!(happened(6 * SECOND, 0, 0), [Happening::Late(Duration::from_secs(5))]);
        assert_eq!(
            happened(SECOND, 3600 * SECOND, -(3600 * SECOND as i64)),
            [Happening::Slept(hour), Happening::Set { by: hour, back: true }]
        );
    }

    #[test]
    fn nothing_happens_to_the_clocks_of_this_machine_in_20_ms() {
        let before = Clocks::now();
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(Clocks::now().since(&before, Duration::from_secs(60)), []);
    }
}
