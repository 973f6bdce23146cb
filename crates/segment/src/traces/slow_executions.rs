// SPDX-License-Identifier: PostgreSQL
//! Slow executions of all sessions, with their parameters, while a reader asks for them and `pg_tally.trace_parameters`
//! allows it.
//!
//! Concurrency contract. A session borrows the ring for the records of one execution: its own record, then those of its
//! parameters. So these are next to each other, but a reading may end between them. A session that is killed meanwhile
//! leaves an execution without all of its records, which is ignored, and a ring that nobody returns, which is armed again.

use super::{ExecutionParameters, TraceKind, TraceReader, TraceRequest, TraceState, TraceSwitch};
use crate::error::Error;
use crate::segment::Segment;
use crate::statements::{FileKey, StatementKey};

/// An execution that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowExecution {
    /// Its statement.
    pub statement: StatementKey,
    /// PID of the session.
    pub pid: i32,
    /// When it ended, tick.
    pub end: u64,
    /// How long it took, ticks.
    pub ticks: u64,
    /// Its parameters.
    pub parameters: ExecutionParameters,
}

/// An execution whose records have not all been read.
#[derive(Debug)]
struct OpenExecution {
    statement: FileKey,
    pid: i32,
    end: u64,
    ticks: u64,
    parameters: Option<ExecutionParameters>,
    /// Number of records to come.
    left: u32,
}

impl OpenExecution {
    /// Whether all of its records are there, and have parameters.
    fn whole(self, segment: &Segment) -> Result<Option<SlowExecution>, Error> {
        let Some(parameters) = self.parameters.filter(|_| self.left == 0) else { return Ok(None) };
        Ok(Some(SlowExecution {
            statement: segment.statement_key(self.statement)?,
            pid: self.pid,
            end: self.end,
            ticks: self.ticks,
            parameters,
        }))
    }
}

/// Asks all sessions for their slow executions until it is dropped.
///
/// Requires permission to write the segment, so only the server's user and root can do this.
#[derive(Debug)]
pub struct SlowExecutions {
    switch: TraceSwitch,
    /// `None`: another reader has the ring, and no other one was free.
    reader: Option<TraceReader>,
    open: Option<OpenExecution>,
    /// Number of records at the last renewal, if a session was writing.
    written: Option<u64>,
    /// Executions that were missed in this ring, as far as they were reported.
    missed: u64,
}

fn request() -> TraceRequest {
    TraceRequest { slow: true, ..TraceRequest::default() }
}

impl SlowExecutions {
    /// Asks for them from now on; `None`: all rings are in use by traces.
    pub fn start(segment: &Segment) -> Result<Option<SlowExecutions>, Error> {
        let mut switch = TraceSwitch::open(segment)?;
        let reader = switch.arm(&request(), 1)?.pop();
        Ok(reader.map(|reader| SlowExecutions {
            switch,
            reader: Some(reader),
            open: None,
            written: None,
            missed: 0,
        }))
    }

    /// Renews the request; call this once a second. If the ring is no longer usable, takes another one.
    pub fn renew(&mut self, segment: &Segment) -> Result<(), Error> {
        self.switch.renew();
        if let Some(reader) = &self.reader {
            let (written, _) = reader.counts(segment)?;
            let state = reader.state(segment)?;
            let before = self.written.take();
            match state {
                TraceState::Armed => return Ok(()),
                // The session that has borrowed it has ended, or does not run.
                TraceState::Running if before == Some(written) => {}
                TraceState::Running => {
                    self.written = Some(written);
                    return Ok(());
                }
                TraceState::Free | TraceState::Ended => {}
            }
        }
        let again = match self.reader.take() {
            Some(reader) => self.switch.again(&reader)?,
            None => None,
        };
        self.reader = match again {
            Some(reader) => Some(reader),
            None => self.switch.arm(&request(), 1)?.pop(),
        };
        (self.open, self.missed) = (None, 0);
        Ok(())
    }

    /// Passes the executions since the last call to `see`. Returns the number of executions that were missed, as far as
    /// it is known: at least one if records were overwritten before they were read.
    pub fn poll(
        &mut self,
        segment: &Segment,
        mut see: impl FnMut(SlowExecution),
    ) -> Result<u64, Error> {
        let Some(reader) = &mut self.reader else { return Ok(0) };
        let open = &mut self.open;
        let mut whole = Vec::new();
        let mut missed = 0;
        let lost = reader.poll(segment, |lost, record| {
            if lost > 0 {
                *open = None;
                missed += 1;
            }
            match record.kind {
                TraceKind::Execution { id, database_id, user_id, application, pid, records } => {
                    missed += u64::from(open.is_some());
                    *open = Some(OpenExecution {
                        statement: FileKey::of_client(id, database_id, user_id, application),
                        pid,
                        end: record.tick,
                        ticks: record.ticks,
                        parameters: None,
                        left: records,
                    });
                }
                TraceKind::Parameter { number, count, part } => {
                    let Some(execution) = open else { return };
                    execution.left = execution.left.saturating_sub(1);
                    match &mut execution.parameters {
                        Some(parameters) => drop(parameters.add(number, part)),
                        none => *none = ExecutionParameters::begin(number, count, part),
                    }
                }
                _ => {}
            }
            if open.as_ref().is_some_and(|execution| execution.left == 0) {
                whole.extend(open.take());
            }
        })?;
        if lost > 0 {
            *open = None;
            missed += 1;
        }
        let (_, passed_over) = reader.counts(segment)?;
        missed = passed_over.saturating_sub(self.missed).saturating_add(missed);
        self.missed = passed_over;
        for execution in whole {
            if let Some(execution) = execution.whole(segment)? {
                see(execution);
            }
        }
        Ok(missed)
    }
}
