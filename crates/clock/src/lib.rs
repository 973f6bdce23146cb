// SPDX-License-Identifier: PostgreSQL
//! Clocks, tested: what a reading costs, how fine it is, whether it ever goes back, whether
//! processors agree on it, how steadily it goes, and who takes the processor meanwhile.
//!
//! A [`Source`] is anything that can be read, a [`Platform`] the processors that threads can be
//! sent to. [`measure()`] runs all tests over some sources, [`Report::new`] makes figures of what
//! was found and judges them. [`here()`] does both with the clocks of this machine. A made-up
//! clock, or machine, with a known fault goes the same way: that is how the tests are tested.
//!
//! Nothing here writes anything, changes a setting or needs a right; threads are bound to
//! processors only while they measure.

pub mod counter;
pub mod gaps;
pub mod kernel_clock;
pub mod measure;
pub mod pair;
pub mod platform;
pub mod rate;
pub mod report;
pub mod source;
pub mod sources;
pub mod steps;
pub mod system;
pub mod verdict;

pub use gaps::{GapSum, Gaps};
pub use measure::{measure, Bench, Findings};
pub use platform::{Platform, ThisMachine};
pub use report::{ClockReport, Report};
pub use source::{Scope, Source};
pub use sources::{pgtally_clock_cost, server_clock_cost, test_clocks, Refused, Roles};
pub use system::System;
pub use verdict::{Fault, FaultKind};
