// SPDX-License-Identifier: PostgreSQL

//! What is toggled, changed for the time being: the level that was found is put back on every
//! way out, and statements go on.

use segment::{Level, LevelSetting, LevelSwitch, Segment};

use error::Error;
use study::cost::CostOf;

/// A switch that remembers what it found.
pub struct Toggle {
    switch: LevelSwitch,
    of: CostOf,
    level: Level,
    found: LevelSetting,
}

impl Toggle {
    /// For this segment; needs the right to write it. `level` is the one whose cost is asked,
    /// or the one that stays in force while something else is toggled.
    pub fn new(segment: &Segment, of: CostOf, level: Level) -> Result<Self, Error> {
        let switch = segment.level_switch()?;
        let toggle = Self { found: switch.level_setting(), switch, of, level };
        toggle.switch.set(level);
        // A run that was killed may have left them paused.
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

    /// Whether all still is as we have set it, and not as somebody else has.
    pub fn is(&self, on: bool) -> bool {
        let level = if on || self.of != CostOf::Level { self.level } else { Level::Off };
        let paused = !on && self.of != CostOf::Level;
        self.switch.level() == level && self.switch.statements_paused() == paused
    }

    /// The level that was found.
    pub fn found(&self) -> Level {
        self.found.level
    }
}

impl Drop for Toggle {
    fn drop(&mut self) {
        // A panic comes by here as well.
        self.switch.pause_statements(false);
        self.switch.apply(self.found);
    }
}
