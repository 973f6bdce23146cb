// SPDX-License-Identifier: PostgreSQL
//! A clock as the tests see it, so that they can run on simulated clocks with known faults.

use crate::steps::Steps;

/// Whose time a clock shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The machine's: readings on different processors are comparable.
    Machine,
    /// The reading thread's or process's own processor time.
    Own,
}

/// A clock. Readings are ticks, which should never decrease.
pub trait Source: Sync {
    /// Its short name, in tables and JSON.
    fn name(&self) -> &str;

    /// How a program reads it.
    fn call(&self) -> &str;

    /// Whose time it shows.
    fn scope(&self) -> Scope;

    /// Nanoseconds in a tick, where they are defined; otherwise they are measured.
    fn ns_per_tick(&self) -> Option<f64>;

    /// The time in ticks, read as a user of this clock reads it.
    fn read(&self) -> u64;

    /// The time in ticks, read after all earlier instructions. A processor may otherwise read its
    /// counter early, which would look as if processors disagreed.
    fn read_in_order(&self) -> u64 {
        self.read()
    }

    /// Read it in a loop and add the step from each reading to the next. `long` is called with the
    /// ticks of each long step, outside of what is measured. A method of this trait, so that the loop
    /// is compiled for each kind of source.
    fn loop_over(&self, readings: u64, steps: &mut Steps, long: &mut dyn FnMut(u64)) {
        steps.take(readings, || self.read(), long);
    }
}
