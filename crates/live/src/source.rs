// SPDX-License-Identifier: PostgreSQL
//! The server that is recorded, across its restarts: one frame after the other, and if there is
//! nothing to read, why.

use segment::kernel::{KernelView, Watch};
use segment::statements::StatementRecord;
use segment::{Frame, Header, RelationRow, Relations, Segment, SegmentPath, Snapshot, Statements};

use crate::attachment::{Attachment, End};
use crate::events::Tail;
use error::Error;
use view::events::Row;

/// One result of a look.
#[derive(Debug)]
pub enum Found {
    /// Reading of a run of a server begins.
    Server(Box<Server>),
    /// An interval.
    Taken(Box<Taken>),
    /// The run has ended; why.
    Ended(&'static str),
    /// There is nothing to read; why.
    Nothing(String),
}

/// A run of a server, as its segment describes it.
#[derive(Debug, Clone)]
pub struct Server {
    /// The header of its segment.
    pub header: Header,
    /// The path of its segment.
    pub path: SegmentPath,
    /// Whether it started after the run read before: then the first interval covers all its time.
    pub fresh: bool,
}

/// An interval, and what was read with it.
#[derive(Debug)]
pub struct Taken {
    /// The interval.
    pub frame: Frame,
    /// Whether totals were reset within it; the time before the reset is lost.
    pub reset: bool,
    /// New events of the server's processes.
    pub events: Vec<Row>,
    /// With details: statements since the previous details, and how long that was, ns.
    pub statements: Option<(Vec<StatementRecord>, u64)>,
    /// With details: I/O on the files of relations, and over how many ns.
    pub relations: Option<(Vec<RelationRow>, u64)>,
    /// With details: the kernel's view, and over how many ns.
    pub kernel: Option<(KernelView, u64)>,
}

/// Reads the frames of one server.
#[derive(Debug)]
pub struct Source {
    attachment: Attachment,
    run: Option<Run>,
}

/// A run of a server that is being read.
#[derive(Debug)]
struct Run {
    segment: Segment,
    previous: Option<Snapshot>,
    tail: Tail,
    detail: Detail,
}

/// What is read only with details, as it was last time.
#[derive(Debug)]
struct Detail {
    statements: Option<Statements>,
    relations: Option<Relations>,
    watch: Watch,
    snapshot: Option<Snapshot>,
    /// When that was, CLOCK_MONOTONIC in ns.
    since: u64,
}

impl Source {
    /// Of the segment at this path, which need not exist yet.
    pub fn new(path: SegmentPath) -> Source {
        Source { attachment: Attachment::new(path), run: None }
    }

    /// The segment's path.
    pub fn path(&self) -> &SegmentPath {
        self.attachment.path()
    }

    /// What has happened since the last look; with `detail`, also what only details have.
    pub fn look(&mut self, detail: bool) -> Vec<Found> {
        let mut found = Vec::new();
        if let Some(mut run) = self.run.take() {
            let end = End::of(&run.segment);
            match run.take(detail || end.is_some(), end.is_some()) {
                Ok(taken) => found.push(Found::Taken(Box::new(taken))),
                Err(error) => {
                    found.push(Found::Ended("the segment cannot be read"));
                    found.push(Found::Nothing(error.to_string()));
                    return found;
                }
            }
            match end {
                None => {
                    self.run = Some(run);
                    return found;
                }
                Some(end) => found.push(Found::Ended(end.reason())),
            }
        }
        match self.attach() {
            Ok(server) => found.push(Found::Server(Box::new(server))),
            Err(why) => found.push(Found::Nothing(why)),
        }
        found
    }

    fn attach(&mut self) -> Result<Server, String> {
        let (run, fresh) = self
            .attachment
            .attach(|segment, fresh| Ok((Run::begin(segment, fresh)?, fresh)))
            .map_err(|absent| absent.to_string())?;
        let (header, path) = (run.segment.header().clone(), self.path().clone());
        self.run = Some(run);
        Ok(Server { header, path, fresh })
    }
}

impl Run {
    /// A fresh run is read from its start, another one from now on.
    fn begin(mut segment: Segment, fresh: bool) -> Result<Run, Error> {
        let after = if fresh { 0 } else { segment.event_count()? };
        let mut watch = Watch::without_samples(&segment);
        let (mut previous, mut statements, mut relations) = (None, None, None);
        if !fresh {
            let snapshot = segment.snapshot(None)?;
            watch.observe(None, &snapshot, 0.0);
            previous = Some(snapshot);
            statements = segment.statements()?;
            relations = segment.relations()?;
        }
        let detail = Detail {
            statements,
            relations,
            watch,
            snapshot: previous.clone(),
            since: segment::clock::monotonic_ns(),
        };
        Ok(Run { segment, previous, tail: Tail::after(after), detail })
    }

    fn take(&mut self, detail: bool, ends: bool) -> Result<Taken, Error> {
        let snapshot = self.segment.snapshot(self.previous.as_ref())?;
        let frame = Frame::between(&self.segment, self.previous.as_ref(), &snapshot);
        let reset = self.previous.as_ref().is_some_and(|p| p.resets != snapshot.resets);
        let (statements, relations, kernel) = (None, None, None);
        let events = self.tail.rows(&self.segment, ends)?;
        let mut taken = Taken { frame, reset, events, statements, relations, kernel };
        if detail {
            self.detail.take(&mut self.segment, &snapshot, &mut taken)?;
        }
        self.previous = Some(snapshot);
        Ok(taken)
    }
}

impl Detail {
    fn take(
        &mut self,
        segment: &mut Segment,
        snapshot: &Snapshot,
        taken: &mut Taken,
    ) -> Result<(), Error> {
        let now = segment::clock::monotonic_ns();
        let length = now.saturating_sub(self.since);
        let witness = self.watch.observe(self.snapshot.as_ref(), snapshot, 0.0);
        if witness.available && self.snapshot.is_some() {
            taken.kernel = Some((witness, length));
        }
        self.snapshot = Some(snapshot.clone());
        if let Some(statements) = segment.statements()? {
            let records = Statements::records(self.statements.as_ref(), &statements);
            self.statements = Some(statements);
            taken.statements = Some((records, length));
        }
        if let Some(relations) = segment.relations()? {
            taken.relations = Some((relations.since(self.relations.as_ref()), length));
            self.relations = Some(relations);
        }
        self.since = now;
        Ok(())
    }
}
