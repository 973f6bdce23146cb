// SPDX-License-Identifier: PostgreSQL
//! Follows a server across its restarts: attaches to its segment, reads the requested figures step
//! by step, notices when that run of the server ends, and attaches to the next one.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use segment::{Segment, StatementsReading};

use crate::run::{Beginning, Run};
pub use crate::run::{Details, Figures, FollowOptions, FrameReading};
use crate::segment_source::SegmentSource;
use crate::tail::Tail;
use error::Error;
use view::events::Row;
use view::session::SessionId;
use view::Reading;

/// A result of a step.
#[derive(Debug)]
pub enum Step {
    /// The follower has attached to a run of the server.
    Attached {
        /// Whether this run started after the previous one.
        fresh: bool,
    },
    /// New events, oldest first.
    Events(Vec<Row>),
    /// A frame.
    Frame(Box<FrameReading>),
    /// An interval.
    Interval(Box<Reading>),
    /// The run has ended or cannot be read, for this reason.
    Ended(Cow<'static, str>),
    /// There is nothing to read for now.
    Absent(Absent),
}

/// Why there is nothing to attach to.
#[derive(Debug)]
pub enum Absent {
    /// The segment's server does not run.
    Stopped,
    /// There is no segment.
    Ended,
    /// The segment cannot be read.
    Unreadable(Error),
}

impl Absent {
    /// The reason in words, for a reader that waits for the server.
    pub fn waiting(&self) -> String {
        match self {
            Absent::Unreadable(error) => error.to_string(),
            _ => format!("{self}; waiting for it to come back"),
        }
    }
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Absent::Stopped => f.write_str(End::Stopped.reason()),
            Absent::Ended => f.write_str("the server has ended"),
            Absent::Unreadable(error) => error.fmt(f),
        }
    }
}

/// Why a run of a server can no longer be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Its postmaster has ended.
    Stopped,
    /// The path now names another file, or none.
    Replaced,
    /// Another postmaster continues in the same file.
    Restarted,
}

impl End {
    /// Why the run in this segment has ended; `None` while it continues. Call this before the last
    /// reading, so that everything written before the end is read.
    fn detect(segment: &Segment) -> Option<End> {
        if segment.server_runs() == Some(false) {
            Some(End::Stopped)
        } else if segment.replaced() {
            Some(End::Replaced)
        } else {
            segment.server_changed().then_some(End::Restarted)
        }
    }

    fn reason(self) -> &'static str {
        match self {
            End::Stopped => "the server has stopped",
            End::Replaced => "the segment was replaced",
            End::Restarted => "the server was restarted",
        }
    }
}

/// Follows one server.
#[derive(Debug)]
pub struct Follower {
    place: SegmentSource,
    wanted: FollowOptions,
    /// When the last segment was created, which distinguishes it from its successors.
    created: Option<u64>,
    /// The postmaster of the last run; 0: it has ended.
    server_pid: u32,
    /// The last reading of the statements of that run: the next run may continue them.
    statements: Option<Arc<StatementsReading>>,
    run: Option<Run>,
    tail: Option<Tail>,
}

impl Follower {
    /// A follower of the segment at this place, which need not exist yet.
    pub fn new(place: impl Into<SegmentSource>, wanted: FollowOptions) -> Follower {
        let tail = wanted.after.map(Tail::after);
        let place = place.into();
        Follower { place, wanted, created: None, server_pid: 0, statements: None, run: None, tail }
    }

    /// A follower that is already attached. Fails if there is no segment, or if figures are requested and
    /// its server does not run.
    pub fn open(place: impl Into<SegmentSource>, wanted: FollowOptions) -> Result<Follower, Error> {
        let place = place.into();
        let segment = place.open()?;
        if wanted.figures != Figures::None && End::detect(&segment) == Some(End::Stopped) {
            return Err(Error::Failed(format!(
                "{}: its server ({}) is no longer running",
                segment.path().display(),
                segment.header().host
            )));
        }
        let mut follower = Follower::new(place, wanted);
        follower.begin(segment)?;
        Ok(follower)
    }

    /// The segment that is being read.
    pub fn segment(&self) -> Option<&Segment> {
        self.run.as_ref().map(|run| &run.segment)
    }

    /// Whether events are held back because an earlier one is missing.
    pub fn waits(&self) -> bool {
        self.tail.as_ref().is_some_and(Tail::waits)
    }

    /// How many events the last segment keeps.
    pub fn event_capacity(&self) -> u32 {
        self.tail.as_ref().map_or(0, |tail| tail.capacity)
    }

    /// Read the statements from now on; the first reading has their totals since the last reset.
    /// Returns false if they were already being read.
    pub fn want_statements(&mut self) -> bool {
        !std::mem::replace(&mut self.wanted.statements, true)
    }

    /// From now on, read details of this session, or of none. Returns whether this is a change.
    pub fn want_session(&mut self, id: Option<SessionId>) -> bool {
        std::mem::replace(&mut self.wanted.opened, id) != id
    }

    /// Read relations, devices and I/O events from now on. Returns false if they were already being read.
    pub fn want_storage(&mut self) -> bool {
        let before = std::mem::replace(&mut self.wanted.storage, true);
        if let Some(run) = self.run.as_mut().filter(|_| !before) {
            run.watch_storage(&self.wanted);
        }
        !before
    }

    /// What has happened since the last step, with `details` including details.
    /// Intervals and the last frame of a run always have details.
    pub fn step(&mut self, details: bool) -> Vec<Step> {
        let mut found = Vec::new();
        let mut next = None;
        if let Some(mut run) = self.run.take() {
            let refreshed = run.refresh(&self.wanted);
            let end = End::detect(&run.segment);
            let ended = end.map_or(Ok(()), |_| {
                // Its successor bounds the end of the run, so that no time is in both.
                let opened = next.insert(self.place.open());
                run.end(opened.as_ref().ok())
            });
            let read =
                refreshed.and(ended).and_then(|()| self.read(&mut run, details, end, &mut found));
            if read.is_err() || end.is_some() {
                self.statements = run.statements().cloned();
            }
            if end.is_some() {
                self.server_pid = 0;
            }
            if let Err(error) = read {
                // If only our session has ended, another one works; otherwise attaching reports the reason, such as a
                // dropped database.
                found.push(Step::Ended(format!("could not read the segment: {error}").into()));
                found.push(self.attached(next));
                return found;
            }
            let Some(end) = end else {
                self.run = Some(run);
                return found;
            };
            found.push(Step::Ended(end.reason().into()));
        }
        found.push(self.attached(next));
        found
    }

    fn attached(&mut self, next: Option<Result<Segment, Error>>) -> Step {
        match self.attach(next) {
            Ok(fresh) => Step::Attached { fresh },
            Err(absent) => Step::Absent(absent),
        }
    }

    /// Looks at who blocks whom, for the diagnoses of an interval of some seconds: at its end alone, the session that others
    /// waited for may be gone. If this fails, the next step reports why.
    pub fn look(&mut self) {
        if let Some(run) = &mut self.run {
            let _ = run.refresh(&self.wanted).and_then(|()| run.look());
        }
    }

    /// The interval since the last step, if the run of the server is the same.
    pub fn interval(&mut self) -> Result<Box<Reading>, Error> {
        match self.step(true).pop() {
            Some(Step::Interval(reading)) => Ok(reading),
            Some(Step::Absent(why)) => Err(Error::Failed(why.to_string())),
            _ => Err(Error::Failed("the server has a new segment".into())),
        }
    }

    fn read(
        &mut self,
        run: &mut Run,
        details: bool,
        end: Option<End>,
        found: &mut Vec<Step>,
    ) -> Result<(), Error> {
        let figures = match self.wanted.figures {
            Figures::None => None,
            Figures::Frames => {
                let taken = run.frame(&self.wanted, details || end.is_some())?;
                Some(Step::Frame(Box::new(taken)))
            }
            Figures::Intervals if end.is_some() => None,
            Figures::Intervals => Some(Step::Interval(Box::new(run.interval(&self.wanted)?))),
        };
        if let Some(tail) = &mut self.tail {
            // Another postmaster writes to the same file.
            let ended = end.is_some_and(|end| end != End::Restarted);
            found.push(Step::Events(tail.rows(&run.segment, ended)?));
        }
        found.extend(figures);
        Ok(())
    }

    /// Returns whether the run started after the previous one. `opened` is the segment at the place, if it was opened
    /// already.
    fn attach(&mut self, opened: Option<Result<Segment, Error>>) -> Result<bool, Absent> {
        match opened.unwrap_or_else(|| self.place.open()) {
            // A segment that was opened before its next server took it over would be read as the previous run. The next
            // step finds that server.
            Ok(segment) if End::detect(&segment).is_some() => Err(Absent::Stopped),
            Ok(segment) => self.begin(segment).map_err(Absent::Unreadable),
            Err(error) => Err(match error.cause() {
                Some(segment::Error::NotFound { .. }) => Absent::Ended,
                _ => Absent::Unreadable(error),
            }),
        }
    }

    fn begin(&mut self, segment: Segment) -> Result<bool, Error> {
        let header = segment.header();
        let (created, server_pid) = (header.created_realtime_ns, header.server_pid);
        let fresh = self.created.is_some_and(|known| known != created);
        // If the run is the same, counts from the time when it could not be read are part of the gap.
        let another = fresh || self.server_pid != server_pid;
        let statements = self.statements.clone().filter(|_| another);
        if self.wanted.figures != Figures::Intervals && (fresh || self.tail.is_none()) {
            let after = if fresh { 0 } else { segment.event_count()? };
            self.tail = Some(Tail::after(after));
        }
        self.run = Some(Run::begin(segment, &self.wanted, Beginning { fresh, statements })?);
        // If attaching fails, the next attempt compares with the same values.
        (self.created, self.server_pid, self.statements) = (Some(created), server_pid, None);
        Ok(fresh)
    }
}
