// SPDX-License-Identifier: PostgreSQL
//! Tests of clocks: the cost of a reading, the size of the steps, whether the clock ever goes back, whether
//! processors agree, how steady the rate is, and what else uses the processor meanwhile.
//!
//! A [`Source`] is a clock, a [`Platform`] the processors on which threads run. [`measure()`] runs all tests on some
//! sources, and [`Report::new`] computes figures from the findings and assesses them. [`test_clocks()`] does both for
//! this machine. The crate's own tests use simulated clocks and machines with known faults.
//!
//! Nothing here writes, changes a setting or needs a privilege. Threads are bound to processors
//! only while they measure.

mod advice;
pub mod counter;
pub mod fault;
pub mod gaps;
pub mod kernel_clock;
pub mod measure;
pub mod pair;
pub mod platform;
pub mod rate;
pub mod report;
pub mod roles;
pub mod source;
pub mod sources;
pub mod steps;
pub mod system;
mod text;
pub mod verdict;

pub use fault::{Fault, FaultKind};
pub use gaps::{GapSum, Gaps};
pub use measure::{measure, Findings, Setup};
pub use platform::{Platform, ThisMachine};
pub use report::{ClockReport, Report};
pub use roles::{Refused, Roles};
pub use source::{Scope, Source};
pub use sources::{pgtally_clock_cost, server_clock_cost, test_clocks};
pub use system::System;
