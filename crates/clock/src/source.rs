// SPDX-License-Identifier: PostgreSQL
//! The interface of a clock, so that tests can run on simulated clocks with known faults.

use crate::steps::Steps;

/// The scope of a clock's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The machine's: readings on different processors are comparable.
    Machine,
    /// CPU time of the reading thread or process.
    Own,
}

/// A clock. Readings are ticks, which should never decrease.
pub trait Source: Sync {
    /// Its short name, in tables and JSON.
    fn name(&self) -> &str;

    /// How a program reads it.
    fn call(&self) -> &str;

    /// The scope of its time.
    fn scope(&self) -> Scope;

    /// Nanoseconds per tick, if defined; otherwise they are measured.
    fn ns_per_tick(&self) -> Option<f64>;

    /// The time in ticks, read as the users of this clock read it.
    fn read(&self) -> u64;

    /// The time in ticks, read after all earlier instructions. Otherwise a processor may read its counter early,
    /// which would look as if processors disagreed.
    fn read_in_order(&self) -> u64 {
        self.read()
    }

    /// Reads it in a loop and adds the step from each reading to the next. Calls `long` with the ticks of each
    /// long step, outside the measurement. This is a method of the trait so that the loop is compiled for each
    /// kind of source.
    fn loop_over(&self, readings: u64, steps: &mut Steps, long: &mut dyn FnMut(u64)) {
        steps.take(readings, || self.read(), long);
    }
}
