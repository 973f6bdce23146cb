// SPDX-License-Identifier: PostgreSQL
//! `--parameters`: follows the slow executions of a server with their parameters, and keeps the slowest.

use std::time::{Duration, Instant};

use error::Error;
use recording::SlowExecutionRow;
use segment::{Producer, Segment, SlowExecutions};

/// Maximum number of executions to keep until they are taken.
const MOST: usize = 100;
/// Maximum number of executions that a live view keeps.
const KEPT: usize = 2000;
/// How often to renew the request.
pub const RENEW: Duration = Duration::from_secs(1);

/// Collects the slowest executions of statements.
#[derive(Debug, Default)]
pub struct SlowExecutionFollower {
    requested: Option<SlowExecutions>,
    /// When the request was last renewed.
    renewed: Option<Instant>,
    /// The slowest executions since they were last taken.
    rows: Vec<SlowExecutionRow>,
    /// Executions since then that could not be read.
    missed: u64,
}

impl SlowExecutionFollower {
    /// Asks the sessions of this run of the server for their slow executions. The segment of a client has none.
    pub fn attach(&mut self, segment: &Segment) -> Result<(), Error> {
        self.requested = None;
        if segment.producer() != Producer::Server {
            return Ok(());
        }
        let requested = SlowExecutions::start(segment)?.ok_or_else(|| {
            Error::Failed(
                "could not record parameters: all trace rings are in use (pg_tally.max_traces)"
                    .into(),
            )
        })?;
        self.requested = Some(requested);
        self.renewed = Some(Instant::now());
        Ok(())
    }

    /// The run of the server has ended.
    pub fn detach(&mut self) {
        self.requested = None;
    }

    /// Reads what the sessions have recorded since the last call, and renews the request if it is time to do so. Call this
    /// at least every [`RENEW`].
    pub fn follow(&mut self, segment: &Segment) -> Result<(), Error> {
        let Some(requested) = &mut self.requested else { return Ok(()) };
        let clock = segment.clock();
        let (now, now_us) = (clock.now(), recording::time_us(segment::clock::realtime_ns()));
        let rows = &mut self.rows;
        let missed = requested.poll(segment, |execution| {
            let ago = clock.seconds(now.saturating_sub(execution.end)) * 1e6;
            let key = execution.statement;
            rows.push(SlowExecutionRow {
                queryid: key.query_id(),
                database_id: key.database_id,
                user_id: key.user_id,
                toplevel: key.toplevel,
                application: key.application.name().unwrap_or_default().into(),
                pid: execution.pid.into(),
                end_us: now_us.saturating_sub(ago.round() as i64),
                exec_ns: (clock.seconds(execution.ticks) * 1e9).round() as u64,
                parameters: execution.parameters.to_string().into(),
                ..SlowExecutionRow::default()
            });
        })?;
        self.missed = self.missed.saturating_add(missed);
        SlowExecutionRow::keep_slowest(rows);
        // Later ones do not bring back what is cut off here.
        rows.truncate(MOST);
        if self.renewed.is_none_or(|renewed| renewed.elapsed() >= RENEW) {
            requested.renew(segment)?;
            self.renewed = Some(Instant::now());
        }
        Ok(())
    }

    /// The slowest executions since the last call, with neither number nor end of an interval, and the number of those
    /// that could not be read.
    pub fn take(&mut self) -> (Vec<SlowExecutionRow>, u64) {
        (std::mem::take(&mut self.rows), std::mem::take(&mut self.missed))
    }
}

/// The slowest executions of the last while, for a live view.
#[derive(Debug, Default)]
pub struct RecentSlowExecutions {
    follower: SlowExecutionFollower,
    /// The slowest ones of each interval, oldest first.
    rows: Vec<SlowExecutionRow>,
}

impl RecentSlowExecutions {
    /// Asks the sessions of this run of the server for their slow executions.
    pub fn attach(&mut self, segment: &Segment) -> Result<(), Error> {
        self.follower.attach(segment)
    }

    /// The run of the server has ended. Its executions are kept.
    pub fn detach(&mut self) {
        self.keep();
        self.follower.detach();
    }

    /// Reads what the sessions have recorded since the last call; call this at least every [`RENEW`]. After an error, nothing
    /// is read until the next run of the server.
    pub fn follow(&mut self, segment: &Segment) -> Result<(), Error> {
        let followed = self.follower.follow(segment);
        if followed.is_err() {
            self.follower.detach();
        }
        followed
    }

    /// Ends an interval: keeps the slowest executions in it.
    pub fn keep(&mut self) {
        let (mut rows, _) = self.follower.take();
        rows.sort_by_key(|row| row.end_us);
        self.rows.append(&mut rows);
        let surplus = self.rows.len().saturating_sub(KEPT);
        self.rows.drain(..surplus);
    }

    /// The slowest executions of each statement that ended at this time or later, seconds since 1970.
    pub fn since(&self, from: f64) -> Vec<SlowExecutionRow> {
        let is_since = |row: &&SlowExecutionRow| row.end_us as f64 * 1e-6 >= from;
        let mut rows = self.rows.iter().filter(is_since).cloned().collect();
        SlowExecutionRow::keep_slowest(&mut rows);
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_view_has_the_slowest_since_a_time_and_keeps_the_newest() {
        let mut recent = RecentSlowExecutions::default();
        let row = |end_us: i64, exec_ns: u64| SlowExecutionRow {
            queryid: 1,
            end_us,
            exec_ns,
            ..SlowExecutionRow::default()
        };
        recent.follower.rows = vec![row(1_000_000, 50)];
        recent.keep();
        recent.follower.rows = (1..=4).map(|n| row(2_000_000 + n, 10 + n as u64)).collect();
        // Those of a run that has ended are kept.
        recent.detach();
        let slowest =
            |from: f64| -> Vec<u64> { recent.since(from).iter().map(|row| row.exec_ns).collect() };
        assert_eq!(slowest(0.0), [50, 14, 13]);
        assert_eq!(slowest(1.5), [14, 13, 12]);
        assert!(slowest(3.0).is_empty());
        for end_us in 0..=KEPT as i64 {
            recent.follower.rows = vec![row(3_000_000 + end_us, 1)];
            recent.keep();
        }
        assert_eq!(recent.rows.len(), KEPT);
        assert_eq!(recent.rows[0].end_us, 3_000_001);
    }
}
