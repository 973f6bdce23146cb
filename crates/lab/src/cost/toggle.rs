// SPDX-License-Identifier: PostgreSQL

//! The switch of the level or of statements. The former level is restored and statements resume
//! however the run ends.

use segment::{Level, LevelSetting, LevelSwitch, Segment};

use crate::study::cost::CostOf;
use error::Error;

/// A switch that restores the former level when it is dropped.
pub struct Toggle {
    switch: LevelSwitch,
    of: CostOf,
    level: Level,
    found: LevelSetting,
}

impl Toggle {
    /// Opens the switch of a segment, which requires write access. `level` is the measured level, or the
    /// fixed level if something else is toggled.
    pub fn new(segment: &Segment, of: CostOf, level: Level) -> Result<Self, Error> {
        let switch = segment.level_switch()?;
        let toggle = Self { found: switch.level_setting(), switch, of, level };
        toggle.switch.set(level);
        // A run that was killed may have left statements paused.
        toggle.switch.pause_statements(false);
        Ok(toggle)
    }

    pub fn set(&self, on: bool) {
        match self.of {
            CostOf::Level => {
                self.switch.set(if on { self.level } else { Level::Off });
            }
            CostOf::Statements | CostOf::Outside => self.switch.pause_statements(!on),
        }
    }

    /// Whether level and pause are still as set by [`Toggle::set`].
    pub fn is(&self, on: bool) -> bool {
        let level = if on || self.of != CostOf::Level { self.level } else { Level::Off };
        let paused = !on && self.of != CostOf::Level;
        self.switch.level() == level && self.switch.statements_paused() == paused
    }

    /// The former level.
    pub fn found(&self) -> Level {
        self.found.level
    }
}

impl Drop for Toggle {
    fn drop(&mut self) {
        // This also runs after a panic.
        self.switch.pause_statements(false);
        self.switch.apply(self.found);
    }
}
