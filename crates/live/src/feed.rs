// SPDX-License-Identifier: PostgreSQL
//! One interval after the other from a server, across its restarts.

use std::sync::Arc;

use segment::clients::ClientTotals;
use segment::kernel::{KernelView, Watch};
use segment::{Interval, Segment, SegmentPath, Snapshot};

use super::watch;
use error::Error;
use view::statements::Statements;
use view::Reading;

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
    place: SegmentPath,
    witness: bool,
    leaders: bool,
    statements: bool,
    io: bool,
    source: Option<Source>,
}

#[derive(Debug)]
struct Source {
    segment: Segment,
    previous: Snapshot,
    statements: Option<Arc<segment::Statements>>,
    watch: Option<Watch>,
    io: Option<watch::Watch>,
}

impl Source {
    fn open(place: &SegmentPath, witness: bool, asked: bool) -> Result<Source, Error> {
        let mut segment = Segment::open(place)?;
        let mut watch = witness.then(|| Watch::start(&segment));
        let previous = segment.snapshot(None)?;
        if let Some(watch) = &mut watch {
            watch.observe(None, &previous, 0.0);
        }
        let statements = statements(&mut segment, asked)?;
        Ok(Source { segment, previous, statements, watch, io: None })
    }

    fn next(&mut self, asked: bool) -> Result<Reading, Error> {
        let snapshot = self.segment.snapshot(Some(&self.previous))?;
        let mut interval = Interval::between(&self.segment, Some(&self.previous), &snapshot);
        interval.kernel = match &mut self.watch {
            Some(watch) => watch.observe(Some(&self.previous), &snapshot, interval.busy_seconds),
            None => KernelView::unavailable("--no-witness was given"),
        };
        let io = match &mut self.io {
            Some(io) => Some(io.next(&self.segment, &interval, &ClientTotals::of(&snapshot))?),
            None => None,
        };
        self.previous = snapshot;
        let before = self.statements.take();
        self.statements = statements(&mut self.segment, asked)?;
        let statements =
            self.statements.as_ref().map(|now| Statements::between(before.as_deref(), now));
        Ok(Reading { interval, statements, io, asked, recorded: None })
    }
}

/// Reading thousands of them takes longer than all the rest: only for who asks.
fn statements(
    segment: &mut Segment,
    asked: bool,
) -> Result<Option<Arc<segment::Statements>>, Error> {
    Ok(if asked { segment.statements()?.map(Arc::new) } else { None })
}

impl Feed {
    /// Attach to the segment at a place and take a first reading.
    /// `leaders`: parallel workers are counted with their leaders. `statements`: they are read.
    pub fn open(
        place: SegmentPath,
        witness: bool,
        leaders: bool,
        statements: bool,
    ) -> Result<Feed, Error> {
        let source = Source::open(&place, witness, statements)?;
        if source.segment.server_runs() == Some(false) {
            return Err(Error::Failed(format!(
                "{}: its server ({}) does not run any more",
                place.path().display(),
                source.segment.header().host
            )));
        }
        Ok(Feed { place, witness, leaders, statements, io: false, source: Some(source) })
    }

    /// Read the statements from now on; the first reading has them since the last reset.
    /// Returns whether that is new.
    pub fn ask_for_statements(&mut self) -> bool {
        !std::mem::replace(&mut self.statements, true)
    }

    /// Watch the storage side from now on. Returns whether that is new.
    pub fn ask_for_io(&mut self) -> bool {
        let before = std::mem::replace(&mut self.io, true);
        self.watch_io();
        !before
    }

    fn watch_io(&mut self) {
        if let Some(source) = self.source.as_mut().filter(|source| self.io && source.io.is_none()) {
            source.io = Some(watch::Watch::start(&source.segment));
        }
    }

    /// What has happened since the last call.
    pub fn next(&mut self) -> Step {
        if let Some(source) = &mut self.source {
            let gone = source.segment.server_runs() == Some(false);
            // A server that has restarted in between may go on in the same file.
            if !gone && !source.segment.replaced() && !source.segment.server_changed() {
                match source.next(self.statements) {
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
        match Source::open(&self.place, self.witness, self.statements) {
            Ok(source) if source.segment.server_runs() == Some(false) => {
                Step::Gone("the server has stopped; waiting for it to come back".to_string())
            }
            Ok(source) => {
                self.source = Some(source);
                self.watch_io();
                Step::Attached
            }
            Err(Error::Segment(segment::Error::NotFound { .. })) => {
                Step::Gone("the server has gone; waiting for it to come back".to_string())
            }
            Err(error) => Step::Gone(error.to_string()),
        }
    }
}
