// SPDX-License-Identifier: PostgreSQL

//! When calls of a statement count as slower than before, based on their executions: the limits shared by the
//! comparison of two recordings and of two windows of a fleet. `crates/diff/src/calls.rs` says why.

/// Minimum number of executions on each side.
pub const FEWEST: u64 = 10;
/// A call must take this many times longer or shorter.
pub const FACTOR: f64 = 2.0;
/// Factor of the standard error, because neighbouring executions resemble each other.
pub const LIKENESS: f64 = 3.0;
/// With at least this many statements, a change common to all is attributed to the machine.
pub const COMMON: usize = 3;
/// The probability that any statement is reported as changed by chance.
pub const FALSE_ALARMS: f64 = 0.005;
