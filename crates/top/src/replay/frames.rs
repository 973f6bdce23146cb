// SPDX-License-Identifier: PostgreSQL
//! The source of a replay.

use crate::View;
use std::ops::Range;
use std::time::Duration;
use view::session::SessionId;
use view::Reading;

/// Intervals that can be read in any order, numbered from 0.
pub trait Frames {
    /// Their number.
    fn len(&self) -> usize;
    /// When an interval ended, seconds since 1970.
    fn end(&self, index: usize) -> f64;
    /// The length of an interval.
    fn seconds(&self, index: usize) -> f64;
    /// Reads these intervals; unreadable ones are left out.
    fn read(&mut self, intervals: Range<usize>) -> Result<Vec<Scene>, String>;
    /// Messages about what could not be read so far.
    fn problems(&self) -> Vec<String>;
    /// Merges intervals to this length and renumbers them.
    fn regroup(&mut self, length: Option<Duration>);
    /// Adds to a reading what this view shows besides the interval.
    fn fill(&mut self, reading: &mut Reading, view: View) -> Result<(), String>;
    /// Adds who blocks whom, and what a session executes.
    fn fill_sessions(&mut self, reading: &mut Reading, id: Option<SessionId>)
        -> Result<(), String>;
}

/// An interval of a recording.
#[derive(Debug)]
pub struct Scene {
    /// The interval.
    pub reading: Box<Reading>,
    /// Why it does not directly follow the previous one; `None` if it does.
    pub gap: Option<String>,
}
