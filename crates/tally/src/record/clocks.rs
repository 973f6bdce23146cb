// SPDX-License-Identifier: PostgreSQL
//! The machine's clocks, and what can be told from their going: that the clock was set, that
//! the machine slept, that we did not get to run.
//!
//! Intervals are measured by CLOCK_MONOTONIC, which nobody sets; the time of day only names
//! them. So a clock that is set changes no figure, and is marked.

use std::time::Duration;

/// One reading of the clocks, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    /// Time of day, since 1970.
    pub realtime: u64,
    /// Since boot, without the time that the machine slept.
    pub monotonic: u64,
    /// Since boot.
    pub boottime: u64,
}

/// What happened between two readings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    /// The time of day was set forward, or back, by so much.
    Set {
        /// How far.
        by: Duration,
        /// Whether back.
        back: bool,
    },
    /// The machine slept so long.
    Slept(Duration),
    /// We did not get to run for so long.
    Late(Duration),
}

/// The clock may be slewed by 0.05 %, and two clocks are not read at the same instant.
const LEAST_SET: u64 = 50_000_000;
const SLEWED: u64 = 1000;
/// Time zones of the kernel's: the two clocks differ by less when the machine did not sleep.
const LEAST_SLEEP: u64 = 20_000_000;

impl Clocks {
    /// Now.
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

    /// What happened since an earlier reading, after which the next was to follow in `interval`.
    pub fn since(&self, before: &Clocks, interval: Duration) -> Vec<Happening> {
        let mut found = Vec::new();
        let ran = self.monotonic.saturating_sub(before.monotonic);
        let slept = self.boottime.saturating_sub(before.boottime).saturating_sub(ran);
        let slept = if slept >= LEAST_SLEEP { slept } else { 0 };
        if slept > 0 {
            found.push(Happening::Slept(Duration::from_nanos(slept)));
        }
        let expected = before.realtime.saturating_add(ran).saturating_add(slept);
        let by = self.realtime.abs_diff(expected);
        if by > LEAST_SET.max(ran / SLEWED) {
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
    fn a_clock_that_is_set_a_sleeping_machine_and_a_late_reading_are_told_apart() {
        let begin = Clocks {
            realtime: 1_700_000_000 * SECOND,
            monotonic: 9 * SECOND,
            boottime: 9 * SECOND,
        };
        let interval = Duration::from_secs(1);
        let told = |ran, slept, set| after(begin, ran, slept, set).since(&begin, interval);
        assert_eq!(told(SECOND, 0, 0), []);
        assert_eq!(told(SECOND, 0, 400_000), [], "slewed");
        let hour = Duration::from_secs(3600);
        assert_eq!(
            told(SECOND, 0, -(3600 * SECOND as i64)),
            [Happening::Set { by: hour, back: true }]
        );
        assert_eq!(
            told(SECOND, 0, 3600 * SECOND as i64),
            [Happening::Set { by: hour, back: false }]
        );
        assert_eq!(told(SECOND, 3600 * SECOND, 0), [Happening::Slept(hour)]);
        assert_eq!(told(6 * SECOND, 0, 0), [Happening::Late(Duration::from_secs(5))]);
        assert_eq!(
            told(SECOND, 3600 * SECOND, -(3600 * SECOND as i64)),
            [Happening::Slept(hour), Happening::Set { by: hour, back: true }]
        );
    }

    #[test]
    fn the_clocks_of_this_machine_go_evenly() {
        let before = Clocks::now();
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(Clocks::now().since(&before, Duration::from_secs(60)), []);
    }
}
