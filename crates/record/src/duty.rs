// SPDX-License-Identifier: PostgreSQL
//! `--duty 60s/300s`: the level is on for the first part of each period and off for the rest.
//!
//! The end of the level is stored in the segment, so that a killed recorder leaves it off. A clean
//! end restores the former level.

use std::time::Duration;

use segment::{Level, LevelEnd, LevelSetting, LevelSwitch, SegmentPath};

use super::args::Duty as Period;
use error::Error;

/// Switches the level of one segment on and off.
#[derive(Debug)]
pub struct Duty {
    length: Period,
    switch: Option<LevelSwitch>,
    /// The former level, to be restored.
    before: Option<LevelSetting>,
    level: Level,
    /// The period in which the level was last switched on, counted from 1970.
    period: Option<u128>,
}

impl Duty {
    /// A duty that is not attached to a segment yet.
    pub fn new(length: Period) -> Duty {
        Duty { length, switch: None, before: None, level: Level::Waits, period: None }
    }

    /// From now on, switches the level of this segment.
    pub fn attach(&mut self, path: &SegmentPath) -> Result<(), Error> {
        let switch = LevelSwitch::open(path)?;
        let before = switch.level_setting();
        if before.level != Level::Off {
            self.level = before.level;
        }
        (self.before, self.period) = (Some(before), None);
        self.switch = Some(switch);
        Ok(())
    }

    /// Switches the level if it is time to do so, and returns the new level.
    pub fn turn(&mut self, since_1970: Duration) -> Option<Level> {
        let switch = self.switch.as_ref()?;
        let every = self.length.every.as_nanos().max(1);
        let (period, within) = (since_1970.as_nanos() / every, since_1970.as_nanos() % every);
        let left = self.length.on.as_nanos().checked_sub(within).filter(|left| *left > 0);
        match left {
            Some(left) if self.period != Some(period) => {
                self.period = Some(period);
                let clock = switch.clock();
                let tick = clock.now() + clock.ticks(left as f64 * 1e-9);
                let end = Some(LevelEnd { tick, then: Level::Off });
                switch.apply(LevelSetting { level: self.level, end });
                Some(self.level)
            }
            None if switch.level() != Level::Off => {
                // No server process has noticed the end yet.
                switch.set(Level::Off);
                Some(Level::Off)
            }
            _ => None,
        }
    }
}

impl Drop for Duty {
    /// Restores the former level.
    fn drop(&mut self) {
        if let (Some(switch), Some(before)) = (self.switch.take(), self.before.take()) {
            switch.apply(before);
        }
    }
}
