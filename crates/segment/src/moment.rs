// SPDX-License-Identifier: PostgreSQL
//! When the image of a segment was created, by several clocks.

/// The number of CPUs of a machine of which it is unknown.
pub const UNKNOWN_PROCESSORS: u32 = u32::MAX;

/// The instants of an image.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Moment {
    /// When it was complete, tick of the segment's clock ...
    pub tick: u64,
    /// ... ns of the other machine's CLOCK_MONOTONIC ...
    pub monotonic_ns: u64,
    /// ... and ns since 1970 by its clock.
    pub realtime_ns: u64,
    /// For each slot, the tick at which its running account was observed; 0 if the slot has no owner.
    pub slots: Vec<u64>,
    /// CPUs of that machine; 0: as many as this machine has; [`UNKNOWN_PROCESSORS`]: not known.
    pub processors: u32,
    /// Whether the image has all sessions and statements, not only those that a role may see.
    pub complete: bool,
    /// If the image is made of samples: the mean time between two of them so far.
    pub sample_seconds: Option<f64>,
}
