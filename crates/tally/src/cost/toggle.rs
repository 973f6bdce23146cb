// SPDX-License-Identifier: PostgreSQL

//! The level, changed for the time being: what was found is put back on every way out.

use segment::{Level, LevelSwitch, Segment, Standing};

use crate::error::Error;

/// A switch that remembers what it found.
pub(crate) struct Toggle {
    switch: LevelSwitch,
    found: Standing,
}

impl Toggle {
    /// For this segment; needs the right to write it.
    pub(crate) fn new(segment: &Segment) -> Result<Self, Error> {
        let switch = segment.level_switch()?;
        Ok(Self { found: switch.standing(), switch })
    }

    pub(crate) fn set(&self, level: Level) {
        self.switch.set(level);
    }

    /// Whether the level still is what we have set, and not somebody else's.
    pub(crate) fn is(&self, level: Level) -> bool {
        self.switch.level() == level
    }

    /// The level that was found.
    pub(crate) fn found(&self) -> Level {
        self.found.level
    }
}

impl Drop for Toggle {
    fn drop(&mut self) {
        // A panic comes by here as well.
        self.switch.put(self.found);
    }
}
