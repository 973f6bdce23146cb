// SPDX-License-Identifier: PostgreSQL

//! The level, changed for the time being: what was found is put back on every way out.

use segment::{Level, LevelSwitch, Segment};

use crate::error::Error;

/// A switch that remembers what it found.
pub(crate) struct Toggle {
    switch: LevelSwitch,
    found: Level,
}

impl Toggle {
    /// For this segment; needs the right to write it.
    pub(crate) fn new(segment: &Segment) -> Result<Self, Error> {
        let switch = segment.level_switch()?;
        Ok(Self { found: switch.get()?, switch })
    }

    pub(crate) fn set(&self, level: Level) -> Result<(), Error> {
        Ok(self.switch.set(level)?)
    }

    /// Whether the level still is what we have set, and not somebody else's.
    pub(crate) fn is(&self, level: Level) -> Result<bool, Error> {
        Ok(self.switch.get()? == level)
    }

    /// The level that was found.
    pub(crate) fn found(&self) -> Level {
        self.found
    }
}

impl Drop for Toggle {
    fn drop(&mut self) {
        // A panic comes by here as well. If it fails the file has gone, and the level with it.
        let _ = self.switch.set(self.found);
    }
}
