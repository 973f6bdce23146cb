// SPDX-License-Identifier: PostgreSQL
//! The segment's clock: reads it, and converts its ticks to seconds.
//!
//! The header has one instant in ticks and in nanoseconds of CLOCK_MONOTONIC. A second pair, read
//! now, gives the length of a tick without calibration at startup. The older the segment, the more
//! precise the result.

use crate::error::Error;
use crate::layout::clock_kind;
use crate::moment::Moment;
use rustix::time::{clock_gettime, ClockId};
use serde::Serialize;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

/// The source of ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockKind {
    /// `clock_gettime(CLOCK_MONOTONIC)`: a tick is a nanosecond.
    Monotonic,
    /// The time-stamp counter of x86-64.
    Tsc,
    /// The virtual counter of aarch64.
    Cntvct,
    /// A word of the segment, which tests advance: a tick is a nanosecond.
    #[cfg(feature = "test-hooks")]
    Virtual,
}

impl ClockKind {
    /// All kinds, with their numbers in a header.
    const ALL: &[(u32, ClockKind)] = &[
        (clock_kind::MONOTONIC, ClockKind::Monotonic),
        (clock_kind::TSC, ClockKind::Tsc),
        (clock_kind::CNTVCT, ClockKind::Cntvct),
        #[cfg(feature = "test-hooks")]
        (clock_kind::VIRTUAL, ClockKind::Virtual),
    ];

    /// The kind with this name.
    pub fn of_name(name: &str) -> Option<ClockKind> {
        ClockKind::ALL.iter().find(|(_, kind)| kind.name() == name).map(|(_, kind)| *kind)
    }

    /// The kind with this number in a header; `None`: this reader does not know it.
    pub(crate) fn of_number(number: u32) -> Option<ClockKind> {
        ClockKind::ALL.iter().find(|(n, _)| *n == number).map(|(_, kind)| *kind)
    }

    /// Its name in JSON: "monotonic", "tsc" or "cntvct".
    pub fn name(self) -> &'static str {
        match self {
            ClockKind::Monotonic => "monotonic",
            ClockKind::Tsc => "tsc",
            ClockKind::Cntvct => "cntvct",
            #[cfg(feature = "test-hooks")]
            ClockKind::Virtual => "virtual",
        }
    }

    /// The plausible lengths of a tick of a CPU counter, ns. `None`: the clock is not a counter.
    fn tick_lengths(self) -> Option<RangeInclusive<f64>> {
        match self {
            ClockKind::Monotonic => None,
            #[cfg(feature = "test-hooks")]
            ClockKind::Virtual => None,
            // Between 50 MHz and 50 GHz.
            ClockKind::Tsc => Some(0.02..=20.0),
            // Between 1 MHz and 10 GHz: 24 MHz is common, and Armv8.6 and later require 1 GHz.
            ClockKind::Cntvct => Some(0.1..=1000.0),
        }
    }

    /// The counter's current value. `None`: this processor does not have the counter.
    fn count(self) -> Option<u64> {
        match self {
            ClockKind::Monotonic => None,
            // SAFETY: every x86-64 processor has rdtsc, which does not touch memory. A process that may
            // not use it (PR_SET_TSC) is killed by SIGSEGV, not corrupted.
            #[cfg(target_arch = "x86_64")]
            ClockKind::Tsc => Some(unsafe { core::arch::x86_64::_rdtsc() }),
            #[cfg(target_arch = "aarch64")]
            ClockKind::Cntvct => {
                let ticks;
                // SAFETY: Linux lets programs read this register, which does not touch memory.
                unsafe {
                    core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack))
                };
                Some(ticks)
            }
            _ => None,
        }
    }
}

/// Maximum difference between the clocks of two processors, in ticks (`TALLY_CLOCK_SLIP`): a clock that goes back
/// further has restarted.
pub(crate) const CLOCK_SLIP: u64 = 1 << 28;

/// Pairs of readings closer than this do not give a precise length of a tick.
const BASE: Duration = Duration::from_millis(50);

/// The clock of one segment, as currently known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clock {
    kind: ClockKind,
    tick0: u64,
    ns0: u64,
    ns_per_tick: f64,
    /// For an image: when it was complete; for a virtual clock: its last reading.
    moment: Option<u64>,
}

/// Everything before is done before anything after begins, readings of the clock included: fences order only accesses to memory.
pub(crate) fn wait_for_loads() {
    // SAFETY: every x86-64 processor has lfence, which waits for earlier instructions and changes nothing.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::x86_64::_mm_lfence()
    };
    // SAFETY: the barriers wait for earlier loads and instructions, and change nothing.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!("dsb ishld", "isb", options(nostack, preserves_flags))
    };
    std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
}

/// Nanoseconds of CLOCK_MONOTONIC.
pub fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Nanoseconds of CLOCK_BOOTTIME: since boot, including sleep.
pub fn boottime_ns() -> u64 {
    nanoseconds(ClockId::Boottime)
}

/// Nanoseconds since 1970.
pub fn realtime_ns() -> u64 {
    nanoseconds(ClockId::Realtime)
}

fn nanoseconds(id: ClockId) -> u64 {
    let t = clock_gettime(id);
    (t.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec as u64)
}

impl Clock {
    /// The clock of a writer that recorded the instant (`tick0`, `ns0`). A `live` one is measured now,
    /// which takes up to 50 ms if the segment is new. A counter of another boot is taken as 1 GHz.
    pub fn new(
        path: &Path,
        kind: ClockKind,
        tick0: u64,
        ns0: u64,
        live: bool,
    ) -> Result<Clock, Error> {
        let mut clock = Clock { kind, tick0, ns0, ns_per_tick: 1.0, moment: None };
        if clock.is_virtual() {
            clock.moment = Some(tick0);
        } else if kind != ClockKind::Monotonic && live {
            if kind.count().is_none() {
                return Err(Error::Clock { path: path.to_path_buf() });
            }
            let age = Duration::from_nanos(monotonic_ns().saturating_sub(ns0));
            if let Some(short) = BASE.checked_sub(age) {
                std::thread::sleep(short);
            }
            clock.measure();
        }
        Ok(clock)
    }

    /// The clock of a recording, which only has the length of a tick.
    pub fn recorded(kind: ClockKind, ticks_per_second: f64) -> Clock {
        Clock { kind, tick0: 0, ns0: 0, ns_per_tick: 1e9 / ticks_per_second, moment: None }
    }

    /// The clock of another machine, at the moment of an image.
    pub(crate) fn of_moment(kind: ClockKind, tick0: u64, ns0: u64, moment: &Moment) -> Clock {
        let mut clock = Clock { kind, tick0, ns0, ns_per_tick: 1.0, moment: None };
        clock.set_moment(moment);
        clock
    }

    /// Whether the clock is virtual: a word in the segment, for tests.
    pub(crate) fn is_virtual(&self) -> bool {
        #[cfg(feature = "test-hooks")]
        return self.kind == ClockKind::Virtual;
        #[cfg(not(feature = "test-hooks"))]
        false
    }

    /// Set the current reading of a virtual clock.
    pub(crate) fn set_now(&mut self, tick: u64) {
        self.moment = Some(tick);
    }

    /// Set the instant at which the clock started or restarted.
    pub(crate) fn set_origin(&mut self, tick0: u64, ns0: u64) {
        (self.tick0, self.ns0) = (tick0, ns0);
    }

    /// Set a later moment of the same clock.
    pub(crate) fn set_moment(&mut self, moment: &Moment) {
        self.moment = Some(moment.tick);
        self.set_pair(moment.tick, moment.monotonic_ns);
    }

    /// Read the second pair again.
    pub fn measure(&mut self) {
        if self.moment.is_some() || self.kind.count().is_none() {
            return;
        }
        let (tick, ns) = self.beside(monotonic_ns);
        self.set_pair(tick, ns);
    }

    /// A tick, and the time of day at that tick, ns since 1970.
    pub fn time_of_day(&self) -> (u64, u64) {
        self.beside(realtime_ns)
    }

    /// A tick, and another clock's reading at that tick.
    fn beside(&self, other: fn() -> u64) -> (u64, u64) {
        // Each attempt reads a tick between two readings of the other clock; the tightest attempt is used.
        let attempt = |_| {
            let before = other();
            let tick = self.now();
            let width = other().saturating_sub(before);
            (width, tick, before + width / 2)
        };
        let best = (0..5).map(attempt).min_by_key(|(width, ..)| *width);
        best.map_or_else(|| (self.now(), other()), |(_, tick, ns)| (tick, ns))
    }

    /// Set the second pair, which determines the length of a tick.
    fn set_pair(&mut self, tick: u64, ns: u64) {
        let Some(lengths) = self.kind.tick_lengths() else { return };
        if tick > self.tick0 && ns > self.ns0 {
            let ns_per_tick = (ns - self.ns0) as f64 / (tick - self.tick0) as f64;
            // Otherwise the header's instant does not belong to this clock.
            if lengths.contains(&ns_per_tick) {
                self.ns_per_tick = ns_per_tick;
            }
        }
    }

    /// Now, in ticks.
    pub fn now(&self) -> u64 {
        if let Some(moment) = self.moment {
            return moment;
        }
        match self.kind {
            ClockKind::Monotonic => monotonic_ns(),
            counter => counter.count().unwrap_or(0),
        }
    }

    /// Whether ticks of the two clocks are comparable: they are of the same kind and length, except for errors of
    /// measurement.
    pub(crate) fn is_like(&self, other: &Clock) -> bool {
        self.kind == other.kind && (self.ns_per_tick / other.ns_per_tick - 1.0).abs() < 1e-3
    }

    /// The source of ticks.
    pub fn kind(&self) -> ClockKind {
        self.kind
    }

    /// Ticks per second.
    pub fn ticks_per_second(&self) -> f64 {
        1e9 / self.ns_per_tick
    }

    /// Convert a number of ticks to seconds.
    pub fn seconds(&self, ticks: u64) -> f64 {
        ticks as f64 / self.ticks_per_second()
    }

    /// Convert an instant in ticks to nanoseconds of CLOCK_MONOTONIC.
    pub fn ns_of(&self, tick: u64) -> u64 {
        let ns = |ticks: u64| (ticks as f64 * self.ns_per_tick) as u64;
        if tick >= self.tick0 {
            self.ns0.saturating_add(ns(tick - self.tick0))
        } else {
            self.ns0.saturating_sub(ns(self.tick0 - tick))
        }
    }

    /// Convert seconds to a number of ticks.
    pub fn ticks(&self, seconds: f64) -> u64 {
        (seconds * 1e9 / self.ns_per_tick) as u64
    }
}

/// The clock of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClockInfo {
    /// "tsc", "cntvct" or "monotonic".
    pub kind: &'static str,
    /// Ticks per second.
    pub ticks_per_second: f64,
}

impl ClockInfo {
    /// Convert a number of ticks to seconds.
    pub fn seconds(&self, ticks: u64) -> f64 {
        ticks as f64 / self.ticks_per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_tick_agrees_with_the_other_clock() {
        let path = Path::new("x");
        for kind in [ClockKind::Monotonic, ClockKind::Tsc, ClockKind::Cntvct] {
            if kind != ClockKind::Monotonic && kind.count().is_none() {
                continue;
            }
            // Two readings between which this thread lost its CPU are not a pair.
            let (tick0, ns0) = loop {
                let before = monotonic_ns();
                let tick = kind.count().unwrap_or(before);
                if monotonic_ns() - before < 5_000 {
                    break (tick, before);
                }
            };
            let clock = Clock::new(path, kind, tick0, ns0, true).unwrap();
            // A tick, and an earlier and a later time of the other clock.
            let read = || {
                let before = monotonic_ns();
                (clock.now(), before, monotonic_ns())
            };
            let a = read();
            std::thread::sleep(Duration::from_millis(20));
            let b = read();
            let seconds = clock.seconds(b.0 - a.0);
            let [min, max] = [b.1 - a.2, b.2 - a.1].map(|ns| ns as f64 * 1e-9);
            assert!((0.98 * min..=1.02 * max).contains(&seconds), "{min} {seconds} {max}");
            let back = clock.ns_of(b.0);
            assert!(b.1 - 2_000_000 <= back && back <= b.2 + 2_000_000, "{b:?} {back}");
        }
    }
}
