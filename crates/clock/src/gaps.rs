// SPDX-License-Identifier: PostgreSQL
//! Gaps: periods in which a thread that reads a clock as fast as possible does not run, because of the
//! scheduler, an interrupt or the hypervisor.

use serde::Serialize;

use crate::platform::Platform;

/// The shortest time between two readings that counts as a gap, ns.
pub const GAP_NS: f64 = 10_000.0;

/// Gaps of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct GapSum {
    /// Their number.
    pub count: u64,
    /// Their sum, s.
    pub seconds: f64,
    /// The longest, s.
    pub longest_seconds: f64,
}

impl GapSum {
    fn add(&mut self, seconds: f64) {
        self.count += 1;
        self.seconds += seconds;
        self.longest_seconds = self.longest_seconds.max(seconds);
    }
}

/// All gaps, by cause.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Gaps {
    /// How long the clock was read, s.
    pub watched_seconds: f64,
    /// Another thread ran: the scheduler dispatched this one again.
    pub scheduler: GapSum,
    /// No dispatch: an interrupt, or the hypervisor ran something else.
    pub hypervisor: GapSum,
    /// The kernel does not count dispatches, so the cause is unknown.
    pub unknown: GapSum,
}

impl Gaps {
    /// All kinds together.
    pub fn all(&self) -> GapSum {
        let kinds = [self.scheduler, self.hypervisor, self.unknown];
        GapSum {
            count: kinds.iter().map(|gap| gap.count).sum(),
            seconds: kinds.iter().map(|gap| gap.seconds).sum(),
            longest_seconds: kinds.iter().map(|gap| gap.longest_seconds).fold(0.0, f64::max),
        }
    }
}

/// Classifies the gaps of one thread.
pub struct Watch<'a> {
    platform: &'a dyn Platform,
    dispatches: Option<u64>,
}

impl<'a> Watch<'a> {
    /// Starts watching the calling thread.
    pub fn new(platform: &'a dyn Platform) -> Self {
        Self { platform, dispatches: platform.dispatches() }
    }

    /// Adds a step of this length if it is a gap.
    pub fn note(&mut self, ns: f64, gaps: &mut Gaps) {
        if ns < GAP_NS {
            return;
        }
        let now = self.platform.dispatches();
        let kind = match (self.dispatches, now) {
            (Some(before), Some(now)) if now != before => &mut gaps.scheduler,
            (Some(_), Some(_)) => &mut gaps.hypervisor,
            _ => &mut gaps.unknown,
        };
        kind.add(ns * 1e-9);
        self.dispatches = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, Ordering};

    /// Dispatches so far; negative if the kernel does not count them.
    struct Counted(AtomicI64);

    impl Platform for Counted {
        fn processors(&self) -> std::io::Result<Vec<u32>> {
            Ok(vec![0])
        }

        fn pin(&self, _: u32) -> std::io::Result<()> {
            Ok(())
        }

        fn dispatches(&self) -> Option<u64> {
            u64::try_from(self.0.load(Ordering::Relaxed)).ok()
        }
    }

    #[test]
    fn a_gap_belongs_to_the_scheduler_only_if_it_dispatched_the_thread_since_the_last_one() {
        let platform = Counted(AtomicI64::new(7));
        let (mut watch, mut gaps) = (Watch::new(&platform), Gaps::default());
        for (dispatches, ns) in [
            (7, 9_999.0),
            (7, 10_000.0),
            (8, 30_000.0),
            (8, 20_000.0),
            (9, 10_000.0),
            (-1, 50_000.0),
        ] {
            platform.0.store(dispatches, Ordering::Relaxed);
            watch.note(ns, &mut gaps);
        }
        let sum = |gap: &GapSum| {
            (gap.count, (gap.seconds * 1e6).round(), (gap.longest_seconds * 1e6).round())
        };
        assert_eq!(sum(&gaps.scheduler), (2, 40.0, 30.0));
        assert_eq!(sum(&gaps.hypervisor), (2, 30.0, 20.0));
        assert_eq!(sum(&gaps.unknown), (1, 50.0, 50.0));
        assert_eq!(sum(&gaps.all()), (5, 120.0, 50.0));
    }
}
