// SPDX-License-Identifier: PostgreSQL
//! A clock that can be read: all that the tests know of one, so that a made-up clock with a
//! known fault goes through them like a real one.

use crate::steps::Steps;

/// Whose time a clock tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The machine's: its readings on any two processors can be compared.
    Machine,
    /// The reading thread's or process's own processor time.
    Own,
}

/// A clock. Readings are ticks, which should never be less than those before.
pub trait Source: Sync {
    /// Its short name, in tables and JSON.
    fn name(&self) -> &str;

    /// How a program reads it.
    fn call(&self) -> &str;

    /// Whose time it tells.
    fn scope(&self) -> Scope;

    /// Nanoseconds in a tick, where that is so by definition; else it is found by comparison.
    fn ns_per_tick(&self) -> Option<f64>;

    /// The time in ticks, read as who measures with this clock reads it.
    fn read(&self) -> u64;

    /// The same, but not before what precedes it in the program is done. A processor may
    /// otherwise read its counter early, which would look as if processors disagreed.
    fn read_in_order(&self) -> u64 {
        self.read()
    }

    /// Read it in a loop and note the step from each reading to the next. `long` is told of each
    /// that is long, with its ticks, outside of what is measured. It stands here so that the loop
    /// is compiled for each kind of source by itself.
    fn loop_over(&self, readings: u64, steps: &mut Steps, long: &mut dyn FnMut(u64)) {
        steps.take(readings, || self.read(), long);
    }
}
