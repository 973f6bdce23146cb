// SPDX-License-Identifier: PostgreSQL
//! Time that passed while somebody read a clock as fast as possible, and could not: taken by the
//! scheduler, or by an interrupt or the hypervisor.

use serde::Serialize;

use crate::platform::Platform;

/// Between two readings so much must have passed to be called a gap, ns.
pub const GAP_NS: f64 = 10_000.0;

/// Gaps of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct GapSum {
    /// How many.
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

/// All gaps, by who took the processor.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Gaps {
    /// How long was watched, s.
    pub watched_seconds: f64,
    /// Another thread ran: the scheduler gave us the processor anew.
    pub scheduler: GapSum,
    /// The scheduler knows of nothing: an interrupt, or the hypervisor ran something else.
    pub hypervisor: GapSum,
    /// The kernel does not tell which of the two.
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

/// Tells gaps apart while one thread reads.
pub struct Watch<'a> {
    platform: &'a dyn Platform,
    dispatches: Option<u64>,
}

impl<'a> Watch<'a> {
    /// From now on, for the calling thread.
    pub fn new(platform: &'a dyn Platform) -> Self {
        Self { platform, dispatches: platform.dispatches() }
    }

    /// A step that took so long: a gap, or nothing of note.
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
