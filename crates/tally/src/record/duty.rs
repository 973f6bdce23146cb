// SPDX-License-Identifier: PostgreSQL
//! `--duty 60s/300s`: the level is on for the first part of each period and off for the rest.
//!
//! Each time it is switched on with its end, so that a recorder that is killed leaves it off
//! and not on. Who ends in good order restores what was in force before.

use std::time::Duration;

use segment::{Level, LevelEnd, LevelSetting, LevelSwitch, SegmentPath};

use super::args::Duty as Period;
use error::Error;

/// Switches the level of one segment on and off.
#[derive(Debug)]
pub struct Duty {
    length: Period,
    switch: Option<LevelSwitch>,
    /// What was in force, to be restored.
    before: Option<LevelSetting>,
    level: Level,
    /// The period that it was switched on for, counted from 1970.
    period: Option<u128>,
}

impl Duty {
    /// One that has not begun.
    pub fn new(length: Period) -> Duty {
        Duty { length, switch: None, before: None, level: Level::Waits, period: None }
    }

    /// Take over a segment: from now on it is this one that is switched.
    pub fn attach(&mut self, place: &SegmentPath) -> Result<(), Error> {
        let switch = LevelSwitch::open(place)?;
        let before = switch.level_setting();
        if before.level != Level::Off {
            self.level = before.level;
        }
        (self.before, self.period) = (Some(before), None);
        self.switch = Some(switch);
        Ok(())
    }

    /// Switch it on where it is time to. `Some`: whether it was.
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
                // Nobody has run into the end yet.
                switch.set(Level::Off);
                Some(Level::Off)
            }
            _ => None,
        }
    }
}

impl Drop for Duty {
    /// Restore what was in force before.
    fn drop(&mut self) {
        if let (Some(switch), Some(before)) = (self.switch.take(), self.before.take()) {
            switch.apply(before);
        }
    }
}
