// SPDX-License-Identifier: PostgreSQL
//! `--parameters`: the slowest executions with their values, for the page of a statement and for JSON.

use error::Error;
use live::follower::{Follower, Step};
use live::slow_executions::RecentSlowExecutions;
use view::statements::SlowExecutionFigures;

use crate::history::SECONDS;

/// Follows the slow executions of a server, as long as the view that shows them runs.
#[derive(Debug)]
pub struct SlowExecutionWatch {
    recent: RecentSlowExecutions,
}

impl SlowExecutionWatch {
    /// Asks the server's sessions.
    ///
    /// # Errors
    ///
    /// Whoever runs this may not write the segment, or all rings are in use.
    pub fn start(follower: &Follower) -> Result<SlowExecutionWatch, Error> {
        let mut recent = RecentSlowExecutions::default();
        if let Some(segment) = follower.segment() {
            recent.attach(segment)?;
        }
        Ok(SlowExecutionWatch { recent })
    }

    /// Reads what the sessions have recorded; call this at least once a second.
    ///
    /// # Errors
    ///
    /// It cannot be read. Nothing more is read until the server is restarted.
    pub fn follow(&mut self, follower: &Follower) -> Result<(), Error> {
        follower.segment().map_or(Ok(()), |segment| self.recent.follow(segment))
    }

    /// Adds the slowest executions to an interval, and asks the sessions of the next run of the server.
    ///
    /// # Errors
    ///
    /// See [`SlowExecutionWatch::start`].
    pub fn take_in(&mut self, step: &mut Step, follower: &Follower) -> Result<(), Error> {
        match step {
            Step::Attached { .. } => {
                return follower.segment().map_or(Ok(()), |segment| self.recent.attach(segment));
            }
            Step::Ended(_) => self.recent.detach(),
            Step::Interval(reading) => {
                self.recent.keep();
                if let Some(statements) = &mut reading.statements {
                    let rows = self.recent.since(reading.interval.time - SECONDS);
                    statements.slow_executions = SlowExecutionFigures::recorded(rows);
                }
            }
            Step::Absent(_) | Step::Events(_) | Step::Frame(_) => {}
        }
        Ok(())
    }
}
