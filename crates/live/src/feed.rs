// SPDX-License-Identifier: PostgreSQL
//! The intervals of a server, one after the other, across its restarts.

use std::sync::Arc;

use segment::clients::ClientTotals;
use segment::kernel::{KernelView, Watch};
use segment::{Interval, Segment, SegmentPath, Snapshot};

use crate::attachment::{Attachment, End};
use crate::watch;
use error::Error;
use view::statements::Statements;
use view::Reading;

/// The result of one step.
#[derive(Debug)]
pub enum Step {
    /// What happened since the previous step.
    Interval(Box<Reading>),
    /// Attached to the server again; intervals follow.
    Attached,
    /// There is nothing to read for now; why.
    Absent(String),
}

/// Reads the intervals of one server.
#[derive(Debug)]
pub struct Feed {
    attachment: Attachment,
    witness: bool,
    leaders: bool,
    statements: bool,
    io: bool,
    run: Option<Run>,
}

/// A run of the server, and the previous reading of it.
#[derive(Debug)]
struct Run {
    segment: Segment,
    previous: Snapshot,
    statements: Option<Arc<segment::Statements>>,
    watch: Option<Watch>,
    io: Option<watch::Watch>,
}

impl Run {
    fn begin(mut segment: Segment, witness: bool, asked: bool) -> Result<Run, Error> {
        let mut watch = witness.then(|| Watch::start(&segment));
        let previous = segment.snapshot(None)?;
        if let Some(watch) = &mut watch {
            watch.observe(None, &previous, 0.0);
        }
        let statements = statements(&mut segment, asked)?;
        Ok(Run { segment, previous, statements, watch, io: None })
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

/// Only read if asked for: reading thousands of statements takes longer than all the rest.
fn statements(
    segment: &mut Segment,
    asked: bool,
) -> Result<Option<Arc<segment::Statements>>, Error> {
    Ok(if asked { segment.statements()?.map(Arc::new) } else { None })
}

impl Feed {
    /// Attach to the segment at this path and take a first reading. An error if its server does
    /// not run. `witness`: sample the kernel's view. `leaders`: count parallel workers with their
    /// leaders. `statements`: read statements.
    pub fn open(
        path: SegmentPath,
        witness: bool,
        leaders: bool,
        statements: bool,
    ) -> Result<Feed, Error> {
        let (attachment, segment) = Attachment::open(path)?;
        if End::of(&segment) == Some(End::Stopped) {
            return Err(Error::Failed(format!(
                "{}: its server ({}) is not running any more",
                segment.path().display(),
                segment.header().host
            )));
        }
        let run = Some(Run::begin(segment, witness, statements)?);
        Ok(Feed { attachment, witness, leaders, statements, io: false, run })
    }

    /// Read the statements from now on; the first reading has their totals since the last reset.
    /// Returns false if they were read already.
    pub fn ask_for_statements(&mut self) -> bool {
        !std::mem::replace(&mut self.statements, true)
    }

    /// Watch devices, relations and I/O events from now on. Returns false if they were already.
    pub fn ask_for_io(&mut self) -> bool {
        let before = std::mem::replace(&mut self.io, true);
        self.watch_io();
        !before
    }

    fn watch_io(&mut self) {
        if let Some(run) = self.run.as_mut().filter(|run| self.io && run.io.is_none()) {
            run.io = Some(watch::Watch::start(&run.segment));
        }
    }

    /// What has happened since the last call.
    pub fn step(&mut self) -> Step {
        if let Some(mut run) = self.run.take().filter(|run| End::of(&run.segment).is_none()) {
            return match run.next(self.statements) {
                Ok(mut reading) => {
                    if self.leaders {
                        reading.interval.roll_up_workers();
                    }
                    self.run = Some(run);
                    Step::Interval(Box::new(reading))
                }
                Err(error) => Step::Absent(error.to_string()),
            };
        }
        let (witness, statements) = (self.witness, self.statements);
        match self.attachment.attach(|segment, _| Run::begin(segment, witness, statements)) {
            Ok(run) => {
                self.run = Some(run);
                self.watch_io();
                Step::Attached
            }
            Err(absent) => Step::Absent(absent.waiting()),
        }
    }
}
