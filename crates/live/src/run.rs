// SPDX-License-Identifier: PostgreSQL
//! Reads one run of a server: the requested figures, and their differences from the previous reading.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use segment::clients::ClientTotals;
use segment::kernel::{KernelView, Watch};
use segment::{
    Frame, Interval, Parts, Plan, RelationRow, Relations, Segment, Snapshot, StatementsReading,
};

use crate::blocking::Blocking;
use crate::coverage::Count;
use crate::devices::{DeviceReading, DeviceWatch};
use crate::io::IoWatch;
use crate::recent::Recent;
use crate::session_samples::{self, SessionSample};
use crate::vacuum;
use error::Error;
use view::blocking::{Blocker, Blockers, Forest};
use view::session::{Opened, SessionId};
use view::vacuum::Vacuum;
use view::{statements, Reading};

/// How often a recording resolves the devices again.
const DEVICES_ANEW: Duration = Duration::from_secs(60);

/// What to read of a server.
#[derive(Debug, Clone, Copy, Default)]
pub struct FollowOptions {
    /// The form of the figures.
    pub figures: Figures,
    /// Read events after this number; `None`: only new events. Intervals have no events.
    pub after: Option<u64>,
    /// Read the kernel's view: with samples for intervals, without for frames.
    pub kernel: bool,
    /// Read statements. Reading thousands of them takes longer than everything else.
    pub statements: bool,
    /// Read the plans of statements.
    pub plans: bool,
    /// Read relations and devices, and for intervals everything that the I/O pane shows.
    pub storage: bool,
    /// Read the sessions' activity at the end of each frame.
    pub sessions: bool,
    /// Count parallel workers with their leaders, in intervals.
    pub leaders: bool,
    /// For intervals, read who blocks whom and how many processes are not covered.
    pub blocking: bool,
    /// Ask the server how far vacuum is behind.
    pub vacuum: bool,
    /// For intervals, read details of this session.
    pub opened: Option<SessionId>,
    /// With each interval, also deliver the last seconds before its end; `None`: do not.
    pub recent: Option<Duration>,
}

impl FollowOptions {
    /// Intervals with everything that the rules of diagnoses use, except how far vacuum is behind: the caller
    /// decides when to ask for that.
    pub fn of_diagnoses() -> FollowOptions {
        FollowOptions {
            figures: Figures::Intervals,
            kernel: true,
            statements: true,
            plans: true,
            storage: true,
            blocking: true,
            ..FollowOptions::default()
        }
    }
}

/// The form of figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Figures {
    /// None, only events.
    #[default]
    None,
    /// Frames, which cover each new run from start to end.
    Frames,
    /// Intervals between two steps, for the panes.
    Intervals,
}

/// A frame and the other figures of the same reading.
#[derive(Debug)]
pub struct FrameReading {
    /// The frame.
    pub frame: Frame,
    /// Whether the totals were reset within it; counts before the reset are lost.
    pub reset: bool,
    /// Details, if the step has them.
    pub details: Option<Details>,
    /// The devices, and their counters.
    pub devices: Option<DeviceReading>,
    /// The sessions that were not idle; `None`: not requested.
    pub sessions: Option<Vec<SessionSample>>,
    /// How far vacuum is behind, if the server has answered since the last frame.
    pub vacuum: Option<Vacuum>,
}

/// Figures that only steps with details have, since the previous details.
#[derive(Debug, Default)]
pub struct Details {
    /// Time since the previous details, ns.
    pub length_ns: u64,
    /// The previous and the current reading of statements.
    pub statements: Option<(Option<Arc<StatementsReading>>, Arc<StatementsReading>)>,
    /// The plans that the segment has now.
    pub plans: Option<Vec<Plan>>,
    /// I/O on the files of relations.
    pub relations: Option<Vec<RelationRow>>,
    /// The kernel's view.
    pub kernel: Option<KernelView>,
}

/// Where the reading of a run begins.
#[derive(Debug, Default)]
pub(crate) struct Beginning {
    /// Whether the run started after the previous one. If so, its frames begin at its start, otherwise now.
    pub fresh: bool,
    /// The last reading of the statements of the previous run, if this is another run.
    pub statements: Option<Arc<StatementsReading>>,
}

/// Who blocked whom at some time.
#[derive(Debug)]
struct Look {
    forest: Forest,
    /// Seconds since 1970.
    time: f64,
    /// Since the previous look, seconds.
    length: f64,
}

/// A run of a server that is being read, with its previous readings.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) segment: Segment,
    previous: Option<Arc<Snapshot>>,
    /// The snapshot at the previous details.
    detailed: Option<Arc<Snapshot>>,
    /// Time of the previous details, tick.
    since: u64,
    kernel: Option<Watch>,
    statements: Option<Arc<StatementsReading>>,
    relations: Option<Relations>,
    devices: Option<DeviceWatch>,
    io: Option<IoWatch>,
    blocking: Blocking,
    /// Who blocked whom at some times of the last seconds, or since the last interval: oldest first.
    looks: VecDeque<Look>,
    /// Time of the last look, or of the beginning, seconds since 1970.
    looked: f64,
    uncovered: Count,
    vacuum: Option<vacuum::Watch>,
    recent: Option<Recent>,
}

impl FollowOptions {
    /// The parts of the segment that are needed for this.
    fn parts(&self) -> Parts {
        let statements = self.statements || self.opened.is_some() || self.sessions;
        Parts::STATEMENTS
            .when(statements)
            .and(Parts::PLANS.when(self.plans))
            .and(Parts::RELATIONS.when(self.storage))
    }
}

impl Run {
    /// Begins to read a run.
    pub(crate) fn begin(
        segment: Segment,
        wanted: &FollowOptions,
        beginning: Beginning,
    ) -> Result<Run, Error> {
        let mut segment = segment;
        segment.want(wanted.parts())?;
        let kernel = wanted.kernel.then(|| match wanted.figures {
            Figures::Intervals => Watch::start(&segment),
            _ => Watch::without_samples(&segment),
        });
        let mut run = Run {
            segment,
            previous: None,
            detailed: None,
            since: 0,
            kernel,
            statements: None,
            relations: None,
            devices: None,
            io: None,
            blocking: Blocking::default(),
            looks: VecDeque::new(),
            looked: 0.0,
            uncovered: Count::default(),
            vacuum: wanted.vacuum.then(|| match wanted.figures {
                Figures::Frames => vacuum::Watch::recorder(),
                _ => vacuum::Watch::live(),
            }),
            recent: None,
        };
        let from_now = match wanted.figures {
            Figures::None => false,
            Figures::Frames => !beginning.fresh,
            Figures::Intervals => true,
        };
        let snapshot = from_now.then(|| run.segment.snapshot(None)).transpose()?.map(Arc::new);
        if let Some((kernel, snapshot)) = run.kernel.as_mut().zip(snapshot.as_ref()) {
            kernel.observe(None, snapshot, 0.0);
        }
        if wanted.figures != Figures::None {
            run.statements = run.first_statements(wanted, beginning)?;
        }
        run.since = match &snapshot {
            Some(snapshot) => snapshot.tick,
            None => run.segment.header().clock_tick0,
        };
        if let Some(snapshot) = snapshot {
            run.recent = wanted
                .recent
                .map(|length| Recent::start(length, snapshot.clone(), run.statements.clone()));
            run.looked = run.segment.realtime_ns() as f64 * 1e-9;
            if wanted.blocking {
                run.uncovered.next(&run.segment)?;
            }
            (run.previous, run.detailed) = (Some(snapshot.clone()), Some(snapshot));
        }
        if wanted.storage {
            run.watch_storage(wanted);
        }
        // The answer should have arrived by the first interval.
        run.ask_vacuum();
        Ok(run)
    }

    /// Called when the run has ended, according to this segment and the one that is now in its place.
    pub(crate) fn end(&mut self, next: Option<&Segment>) -> Result<(), Error> {
        if let Some(end) = self.segment.end_of_run(next)? {
            // The last reading may be later than the end that the server wrote.
            self.segment.end_at(end.max(self.previous.as_ref().map_or(0, |last| last.tick)));
        }
        Ok(())
    }

    /// From now on, also read what has been added to the segment.
    pub(crate) fn refresh(&mut self, wanted: &FollowOptions) -> Result<(), Error> {
        self.segment.refresh()?;
        Ok(self.segment.want(wanted.parts())?)
    }

    fn ask_vacuum(&mut self) -> Option<Vacuum> {
        self.vacuum.as_mut()?.next(&self.segment)
    }

    /// Start watching storage. If relations cannot be read now, the first step reports the error.
    pub(crate) fn watch_storage(&mut self, wanted: &FollowOptions) {
        if self.previous.is_some() {
            self.relations = self.segment.relations().ok().flatten();
        }
        match wanted.figures {
            Figures::Intervals => self.io = Some(IoWatch::start(&self.segment)),
            _ => self.devices = DeviceWatch::start(&self.segment, DEVICES_ANEW).ok(),
        }
    }

    /// The reading from which statements are counted: the last one of the previous run, if its figures were handed on;
    /// otherwise the start of the run, if it started without statements. In all other cases, counting starts now.
    fn first_statements(
        &mut self,
        wanted: &FollowOptions,
        beginning: Beginning,
    ) -> Result<Option<Arc<StatementsReading>>, Error> {
        if wanted.figures == Figures::Frames && wanted.statements {
            let before = beginning.statements;
            match before {
                Some(before) if self.segment.continues_statements(&before)? => {
                    return Ok(Some(before));
                }
                _ if beginning.fresh => {
                    if let Some(nothing) = self.segment.statements_at_creation()? {
                        return Ok(Some(Arc::new(nothing)));
                    }
                }
                _ => {}
            }
        }
        self.read_statements(wanted)
    }

    /// The last reading of the statements.
    pub(crate) fn statements(&self) -> Option<&Arc<StatementsReading>> {
        self.statements.as_ref()
    }

    fn read_statements(
        &mut self,
        wanted: &FollowOptions,
    ) -> Result<Option<Arc<StatementsReading>>, Error> {
        Ok(if wanted.statements { self.segment.statements()?.map(Arc::new) } else { None })
    }

    pub(crate) fn frame(
        &mut self,
        wanted: &FollowOptions,
        details: bool,
    ) -> Result<FrameReading, Error> {
        // Read before the snapshot, which shows which of these waits have ended.
        let blocked = wanted.sessions.then(|| self.segment.blocked()).transpose()?;
        let (snapshot, frame) = self.next()?;
        let sessions = blocked
            .map(|blocked| {
                session_samples::sample_sessions(&self.segment, &snapshot, &frame, blocked)
            })
            .transpose()?;
        let resets = self.previous.as_ref().map_or(0, |previous| previous.resets);
        let reset = resets != snapshot.resets;
        let details = details.then(|| self.details(wanted, &frame, &snapshot)).transpose()?;
        let devices = self.devices.as_mut().and_then(|devices| {
            devices.ask(details.is_some());
            devices.answer().ok()
        });
        self.previous = Some(snapshot);
        let vacuum = self.vacuum.as_mut().and_then(|watch| watch.news(&self.segment)).cloned();
        Ok(FrameReading { frame, reset, details, devices, sessions, vacuum })
    }

    pub(crate) fn interval(&mut self, wanted: &FollowOptions) -> Result<Reading, Error> {
        // The snapshot shows which of these waits have ended.
        let blocked = wanted.blocking.then(|| self.segment.blocked()).transpose()?;
        let (snapshot, frame) = self.next()?;
        let details = self.details(wanted, &frame, &snapshot)?;
        let mut interval = Interval::from(frame);
        let without = || KernelView::unavailable("--no-witness was given");
        interval.kernel = details.kernel.unwrap_or_else(without);
        let statements_now = details.statements.as_ref().map(|(_, now)| now);
        let recent = self
            .recent
            .as_mut()
            .map(|recent| recent.next(&self.segment, &snapshot, statements_now, &interval.kernel));
        let (mut blocking, mut blocker, mut uncovered) = (None, None, None);
        if let Some(blocked) = blocked {
            let (segment, sessions) = (&mut self.segment, &interval.sessions);
            let statements = statements_now.cloned();
            let forest =
                self.blocking.forest(segment, &blocked, sessions, &snapshot, statements)?;
            uncovered = self.uncovered.next(segment)?;
            blocker = self.blocker(&forest, interval.time, wanted.recent);
            blocking = Some(forest);
        }
        let opened = wanted.opened.map(|id| self.opened(id, &snapshot, statements_now.cloned()));
        let opened = opened.transpose()?;
        let clients = ClientTotals::from_snapshot(&snapshot);
        let io = self.io.as_mut();
        let io = io.map(|io| io.next(&self.segment, &interval, &clients, details.relations));
        self.previous = Some(snapshot);
        if wanted.leaders {
            interval.roll_up_workers();
        }
        let between = |(before, now): (Option<Arc<_>>, Arc<_>)| {
            statements::StatementsTable::between(before.as_deref(), &now)
        };
        let mut statements = details.statements.map(between);
        if let Some((statements, plans)) = statements.as_mut().zip(details.plans) {
            statements.plans = statements::PlanRow::of_all(plans, &self.segment);
        }
        Ok(Reading {
            interval,
            statements,
            io: io.transpose()?,
            blocking,
            blocker,
            uncovered_processes: uncovered,
            recent: recent.map(Box::new),
            deadlocks: self.io.as_ref().map_or_else(Vec::new, IoWatch::deadlocks),
            asked: wanted.statements,
            vacuum: self.ask_vacuum(),
            opened,
            recorded: None,
        })
    }

    /// Looks at who blocks whom within an interval.
    pub(crate) fn look(&mut self) -> Result<(), Error> {
        let (forest, time) = self.blocking.read(&mut self.segment)?;
        self.note(forest, time);
        Ok(())
    }

    fn note(&mut self, forest: Forest, time: f64) {
        let length = (time - std::mem::replace(&mut self.looked, time)).max(0.0);
        self.looks.push_back(Look { forest, time, length });
    }

    /// The session for which others waited most of the time, in the last seconds or since the last interval; `forest` is at
    /// the end.
    fn blocker(&mut self, forest: &Forest, time: f64, recent: Option<Duration>) -> Option<Blocker> {
        self.note(forest.clone(), time);
        let from = recent.map(|length| time - length.as_secs_f64());
        while self.looks.front().is_some_and(|look| from.is_some_and(|from| look.time <= from)) {
            self.looks.pop_front();
        }
        let mut blockers = Blockers::default();
        for look in &self.looks {
            blockers.add(&look.forest, look.time, look.length);
        }
        if recent.is_none() {
            self.looks.clear();
        }
        blockers.main().cloned()
    }

    /// A session's accounts and its current or last statement.
    fn opened(
        &self,
        id: SessionId,
        snapshot: &Snapshot,
        statements: Option<Arc<StatementsReading>>,
    ) -> Result<Opened, Error> {
        let statement = self.segment.session_statement(id.slot)?;
        let key = statement.key();
        let known = key.as_ref().zip(statements.as_deref());
        let known = known.and_then(|(key, all)| all.get(key)?.text.as_ref());
        let known = statement.message().or(known);
        Ok(Opened {
            id,
            accounts: snapshot.accounts_of(id.slot, id.generation),
            queryid: key.map(|key| key.query_id()),
            query: known.map(|text| text.shown.to_string()),
        })
    }

    fn next(&mut self) -> Result<(Arc<Snapshot>, Frame), Error> {
        let snapshot = self.segment.snapshot(self.previous.as_deref())?;
        let frame = Frame::between(&self.segment, self.previous.as_deref(), &snapshot);
        Ok((Arc::new(snapshot), frame))
    }

    fn details(
        &mut self,
        wanted: &FollowOptions,
        frame: &Frame,
        snapshot: &Arc<Snapshot>,
    ) -> Result<Details, Error> {
        let mut details = Details::default();
        let before = self.detailed.replace(snapshot.clone());
        if let Some(kernel) = &mut self.kernel {
            let view = kernel.observe(before.as_deref(), snapshot, frame.busy_seconds());
            details.kernel = before.map(|_| view);
        }
        let since = std::mem::replace(&mut self.since, snapshot.tick);
        let length = snapshot.clock.seconds(snapshot.tick.saturating_sub(since));
        details.length_ns = (length * 1e9) as u64;
        if let Some(now) = self.read_statements(wanted)? {
            let before = self.statements.replace(now.clone());
            details.statements = Some((before, now));
        }
        if wanted.plans {
            details.plans = Some(self.segment.plans()?);
        }
        if let Some(now) = if wanted.storage { self.segment.relations()? } else { None } {
            details.relations = Some(now.since(self.relations.as_ref()));
            self.relations = Some(now);
        }
        Ok(details)
    }
}
