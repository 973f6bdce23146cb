// SPDX-License-Identifier: PostgreSQL
//! Gaps: time that passes while a thread reads a clock as fast as possible and does not run, because
//! of the scheduler, an interrupt or the hypervisor.

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
    /// Start for the calling thread.
    pub fn new(platform: &'a dyn Platform) -> Self {
        Self { platform, dispatches: platform.dispatches() }
    }

    /// Add a step of this length if it is a gap.
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
