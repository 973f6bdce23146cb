// SPDX-License-Identifier: PostgreSQL

//! When a call of a statement takes longer than before, by its own executions: the bounds that the comparison of
//! two recordings and of two windows of a fleet share. `crates/diff/src/calls.rs` says why.

/// Fewer executions on a side say nothing.
pub const FEWEST: u64 = 10;
/// A call has to take this many times as long, or as short.
pub const FACTOR: f64 = 2.0;
/// Neighbouring executions resemble each other: factor of the standard error.
pub const LIKENESS: f64 = 3.0;
/// From this many statements on, what all of them did is taken for the machine.
pub const COMMON: usize = 3;
/// The probability that any statement is called changed by chance.
pub const FALSE_ALARMS: f64 = 0.005;
