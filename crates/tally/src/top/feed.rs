// SPDX-License-Identifier: PostgreSQL
//! One interval after the other from a server, across its restarts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use segment::kernel::{Watch, Witness};
use segment::{Interval, Segment, Snapshot};
use serde::Serialize;

use crate::error::Error;
use crate::model::statements::Statements;

/// What happened since the reading before.
#[derive(Debug, Serialize)]
pub struct Reading {
    /// Everything but the statements.
    #[serde(flatten)]
    pub interval: Interval,
    /// The statements; `None`: the segment keeps none.
    pub statements: Option<Statements>,
}

/// What came of waiting for an interval.
#[derive(Debug)]
pub enum Step {
    /// What happened since the step before.
    Interval(Box<Reading>),
    /// The first reading of a segment that has replaced the one before; intervals follow.
    Attached,
    /// There is nothing to read; the reason. It may come back.
    Gone(String),
}

/// Where intervals come from.
#[derive(Debug)]
pub struct Feed {
    path: PathBuf,
    witness: bool,
    leaders: bool,
    source: Option<Source>,
}

#[derive(Debug)]
struct Source {
    segment: Segment,
    previous: Snapshot,
    statements: Option<Arc<segment::Statements>>,
    watch: Option<Watch>,
}

impl Source {
    fn open(path: &Path, witness: bool) -> Result<Source, Error> {
        let mut segment = Segment::open(path)?;
        let mut watch = witness.then(|| Watch::start(&segment));
        let previous = segment.snapshot(None)?;
        if let Some(watch) = &mut watch {
            watch.observe(None, &previous, 0.0);
        }
        let statements = segment.statements()?.map(Arc::new);
        Ok(Source { segment, previous, statements, watch })
    }

    fn next(&mut self) -> Result<Reading, Error> {
        let snapshot = self.segment.snapshot(Some(&self.previous))?;
        let mut interval = Interval::between(&self.segment, Some(&self.previous), &snapshot);
        interval.kernel = match &mut self.watch {
            Some(watch) => watch.observe(Some(&self.previous), &snapshot, interval.busy_seconds),
            None => Witness::not_asked("--no-witness was given"),
        };
        self.previous = snapshot;
        let before = self.statements.take();
        self.statements = self.segment.statements()?.map(Arc::new);
        let statements =
            self.statements.as_ref().map(|now| Statements::between(before.as_deref(), now));
        Ok(Reading { interval, statements })
    }
}

impl Feed {
    /// Attach to the segment at `path` and take a first reading.
    /// `leaders`: parallel workers are counted with their leaders.
    pub fn open(path: PathBuf, witness: bool, leaders: bool) -> Result<Feed, Error> {
        let source = Source::open(&path, witness)?;
        if source.segment.server_runs() == Some(false) {
            return Err(Error::Failed(format!(
                "{}: its server ({}) does not run any more",
                path.display(),
                source.segment.header().host
            )));
        }
        Ok(Feed { path, witness, leaders, source: Some(source) })
    }

    /// What has happened since the last call.
    pub fn next(&mut self) -> Step {
        if let Some(source) = &mut self.source {
            let gone = source.segment.server_runs() == Some(false);
            // A server that has restarted in between may go on in the same file.
            if !gone && !source.segment.replaced() && !source.segment.server_changed() {
                match source.next() {
                    Ok(mut reading) => {
                        if self.leaders {
                            reading.interval.roll_up_workers();
                        }
                        return Step::Interval(Box::new(reading));
                    }
                    Err(error) => {
                        self.source = None;
                        return Step::Gone(error.to_string());
                    }
                }
            }
            self.source = None;
        }
        match Source::open(&self.path, self.witness) {
            Ok(source) if source.segment.server_runs() == Some(false) => {
                Step::Gone("the server has stopped; waiting for it to come back".to_string())
            }
            Ok(source) => {
                self.source = Some(source);
                Step::Attached
            }
            Err(Error::Segment(segment::Error::NotFound { .. })) => {
                Step::Gone("the server has gone; waiting for it to come back".to_string())
            }
            Err(error) => Step::Gone(error.to_string()),
        }
    }
}
