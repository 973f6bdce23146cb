// SPDX-License-Identifier: PostgreSQL
//! The server that is recorded, across its restarts: one frame after the other, and when there
//! is nothing to read, why.

use std::time::Instant;

use segment::kernel::{KernelView, Watch};
use segment::statements::StatementRecord;
use segment::{Frame, Header, RelationRow, Relations, Segment, SegmentPath, Snapshot, Statements};

use crate::events::{Item, Tail};
use error::Error;
use view::events::{rows, Row};

/// What is found at one look.
#[derive(Debug)]
pub enum Found {
    /// A run of a server begins to be read.
    Server(Box<Server>),
    /// An interval.
    Taken(Box<Taken>),
    /// The run that was read has ended; why.
    Ended(&'static str),
    /// There is nothing to read; why.
    Nothing(String),
}

/// A run of a server, as its segment tells of it.
#[derive(Debug, Clone)]
pub struct Server {
    /// The header of its segment.
    pub header: Header,
    /// Where its segment is.
    pub place: SegmentPath,
    /// Whether it began after what was read before: then its first interval has all of it.
    pub fresh: bool,
}

/// An interval, and what was read beside it.
#[derive(Debug)]
pub struct Taken {
    /// The interval.
    pub frame: Frame,
    /// Whether everything was set to zero within it: what was before that is lost.
    pub reset: bool,
    /// What the server's processes have noted.
    pub events: Vec<Row>,
    /// At a detail: what the statements did since the last one, which was so many ns ago.
    pub statements: Option<(Vec<StatementRecord>, u64)>,
    /// At a detail: what was done to the files of relations, since as long.
    pub relations: Option<(Vec<RelationRow>, u64)>,
    /// At a detail: what the kernel says, since as long.
    pub kernel: Option<(KernelView, u64)>,
}

/// Where frames come from.
#[derive(Debug)]
pub struct Source {
    place: SegmentPath,
    run: Option<Run>,
    /// When the segment that was read last was made.
    made: Option<u64>,
}

/// A run of a server that is being read.
#[derive(Debug)]
struct Run {
    segment: Segment,
    previous: Option<Snapshot>,
    tail: Tail,
    detail: Detail,
}

/// What is read at a detail only.
#[derive(Debug)]
struct Detail {
    statements: Option<Statements>,
    relations: Option<Relations>,
    watch: Watch,
    snapshot: Option<Snapshot>,
    /// When that was, ns of CLOCK_MONOTONIC.
    since: u64,
}

impl Source {
    /// The segment at a place, whether it is there already or not.
    pub fn new(place: SegmentPath) -> Source {
        Source { place, run: None, made: None }
    }

    /// The segment's place.
    pub fn place(&self) -> &SegmentPath {
        &self.place
    }

    /// What has happened since the last look; with everything that is only read at a detail.
    pub fn look(&mut self, detail: bool) -> Vec<Found> {
        let mut found = Vec::new();
        if let Some(mut run) = self.run.take() {
            // Looked at first, so that what was written before the end is read.
            let end = run.end();
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
                Some(why) => found.push(Found::Ended(why)),
            }
        }
        match self.attach() {
            Ok(server) => found.push(Found::Server(Box::new(server))),
            Err(why) => found.push(Found::Nothing(why)),
        }
        found
    }

    fn attach(&mut self) -> Result<Server, String> {
        let segment = match Segment::open(&self.place) {
            Ok(segment) if segment.server_runs() == Some(false) => {
                return Err("the server has stopped".to_string())
            }
            Ok(segment) => segment,
            Err(segment::Error::NotFound { .. }) => return Err("the server has gone".to_string()),
            Err(error) => return Err(error.to_string()),
        };
        let made = segment.header().created_realtime_ns;
        let fresh = self.made.is_some_and(|known| known != made);
        let server = Server { header: segment.header().clone(), place: self.place.clone(), fresh };
        let run = Run::begin(segment, fresh).map_err(|error| error.to_string())?;
        self.made = Some(made);
        self.run = Some(run);
        Ok(server)
    }
}

impl Run {
    /// A fresh one is read from its begin on, another one from now on.
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

    /// Why there will not be more of it.
    fn end(&self) -> Option<&'static str> {
        if self.segment.server_runs() == Some(false) {
            Some("the server has stopped")
        } else if self.segment.server_changed() {
            Some("the server was restarted")
        } else if self.segment.replaced() {
            Some("the segment was replaced")
        } else {
            None
        }
    }

    fn take(&mut self, detail: bool, ends: bool) -> Result<Taken, Error> {
        let snapshot = self.segment.snapshot(self.previous.as_ref())?;
        let frame = Frame::between(&self.segment, self.previous.as_ref(), &snapshot);
        let reset = self.previous.as_ref().is_some_and(|p| p.resets != snapshot.resets);
        let (statements, relations, kernel) = (None, None, None);
        let events = self.events(ends)?;
        let mut taken = Taken { frame, reset, events, statements, relations, kernel };
        if detail {
            self.detail.take(&mut self.segment, &snapshot, &mut taken)?;
        }
        self.previous = Some(snapshot);
        Ok(taken)
    }

    fn events(&mut self, ends: bool) -> Result<Vec<Row>, Error> {
        let (mut events, mut losses, mut lost) = (Vec::new(), Vec::new(), 0);
        for item in self.tail.read(&self.segment, Instant::now(), ends)? {
            match item {
                Item::Lost(number) => lost += number,
                Item::Event(event) => {
                    losses.push(std::mem::take(&mut lost));
                    events.push(event);
                }
            }
        }
        let mut rows = rows(&self.segment, events)?;
        for (row, lost) in rows.iter_mut().zip(losses) {
            row.lost = lost;
        }
        Ok(rows)
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
