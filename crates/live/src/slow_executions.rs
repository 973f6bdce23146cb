// SPDX-License-Identifier: PostgreSQL
//! `--parameters`: follows the slow executions of a server with their parameters, and keeps the slowest.

use std::time::{Duration, Instant};

use error::Error;
use recording::SlowExecutionRow;
use segment::{Segment, SlowExecutions};

/// Maximum number of executions to keep until they are taken.
const MOST: usize = 100;
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
    /// Asks the sessions of this run of the server for their slow executions.
    pub fn attach(&mut self, segment: &Segment) -> Result<(), Error> {
        self.requested = None;
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
