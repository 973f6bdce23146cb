// SPDX-License-Identifier: PostgreSQL
//! A recording as a source of intervals, or of steps that merge several intervals, with the figures that belong
//! to each.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use recording::{Detail, GapRow, KernelRow, MarkRow, Recording, SessionHistoryRow, StatementTexts};
use segment::clients::ClientTotals;
use segment::interval::{SessionRow, SLACK};
use segment::kernel::KernelView;
use segment::{Frame, Interval};

use super::{machine, Frames, Scene};
use crate::args::DIAGNOSED;
use crate::views;
use crate::View;
use error::Error;
use report::source::health::{self, HealthHistory};
use report::Edge;
use view::blocking::{Blocker, Blockers, Forest};
use view::deadlocks::Deadlock;
use view::events::Row;
use view::io::{Device, RecordedIo, RelationNames, Server, StorageEvents};
use view::session::{Opened, SessionId};
use view::statements::{CurrentRow, PlanRow, SlowExecutionFigures, StatementsTable};
use view::{Reading, Recent, Recorded};

/// The kinds of marks that interrupt the continuity of figures.
const BREAKS: [&str; 5] = ["server start", "reset", "clock step", "segment replaced", "suspend"];
/// Number of latest events to search for slow operations and the checkpoint.
const EVENTS: usize = 5000;

/// A recording, or a time range of one.
#[derive(Debug)]
pub struct RecordingSource {
    recording: Recording,
    range: recording::Range,
    /// Its intervals, ordered by their ends.
    heads: Vec<StepHead>,
    /// The intervals merged into each step.
    steps: Vec<Range<usize>>,
    step: Option<Duration>,
    /// What is recorded with some intervals only and covers several of them.
    details: Vec<Detail>,
    gaps: Vec<GapRow>,
    marks: Vec<MarkRow>,
    /// All events, and the location of the server's files; read on demand.
    asked: Option<RecordedNotes>,
    /// The texts of statements, read on demand.
    texts: Option<StatementTexts>,
    /// The frames of the steps that were read last, for diagnoses of more than one of them.
    frames: BTreeMap<usize, Frame>,
}

/// Read once, on demand.
#[derive(Debug)]
struct RecordedNotes {
    events: Vec<Row>,
    places: Vec<String>,
    health: HealthHistory,
}

/// How far back to read what a session did that has been executing a statement for long, microseconds.
const RUNNING_US: i64 = 60_000_000;
/// How far before the range events are read, because the running checkpoint may have started then.
const EARLIER_US: i64 = 3_600_000_000;

/// The details of an interval.
#[derive(Debug, Clone, Copy)]
struct Details {
    range: recording::Range,
    /// Recorded time of their intervals, seconds.
    seconds: f64,
    /// The same, if they cover more than the interval.
    of_seconds: Option<f64>,
    /// Time of sessions in these intervals that was not idle, ns.
    busy_ns: u64,
}

/// The kernel's figures in some details, whose rows are among `rows`.
fn witness(rows: &[KernelRow], of: Option<Details>) -> KernelView {
    let of_them = |row: &&KernelRow| of.is_some_and(|details| details.range.contains(row.time_us));
    let (busy_ns, of_seconds) =
        of.map_or((0, None), |details| (details.busy_ns, details.of_seconds));
    machine::witness(rows.iter().filter(of_them), busy_ns, of_seconds)
}

/// An interval as the last seconds, without the sessions of its end.
fn itself(reading: &Reading) -> Recent {
    let interval = Interval { sessions: Vec::new(), ..reading.interval.clone() };
    Recent { interval, statements: reading.statements.clone() }
}

/// Start and end of an interval, microseconds since 1970, and its length.
#[derive(Debug, Clone, Copy)]
struct StepHead {
    begin_us: i64,
    end_us: i64,
    interval_ns: u64,
}

fn seconds(us: i64) -> f64 {
    us as f64 * 1e-6
}

impl RecordingSource {
    /// Opens a time range of a recording; `step` merges intervals to this length.
    pub fn open(
        recording: Recording,
        (from, to): (Option<Edge>, Option<Edge>),
        step: Option<Duration>,
    ) -> Result<RecordingSource, Error> {
        let end = seconds(recording.range().to_us);
        let edge = |edge: Option<Edge>| edge.map(|edge| (edge.resolve(end) * 1e6).round() as i64);
        let range = recording.clip(edge(from), edge(to))?;
        let head = |row: recording::FrameRow| StepHead {
            begin_us: row.time_us - i64::try_from(row.interval_ns / 1000).unwrap_or(0),
            end_us: row.time_us,
            interval_ns: row.interval_ns,
        };
        let mut heads: Vec<StepHead> = recording.frame_rows(range)?.into_iter().map(head).collect();
        // A clock that was set back puts them out of order.
        heads.sort_by_key(|head| head.end_us);
        heads.dedup_by_key(|head| head.end_us);
        let (gaps, marks) = (recording.gaps(range)?, recording.marks(range)?);
        let steps = Vec::new();
        let details = recording.details_until(range)?;
        let mut recording = RecordingSource {
            recording,
            range,
            heads,
            details,
            steps,
            step: None,
            gaps,
            marks,
            asked: None,
            texts: None,
            frames: BTreeMap::new(),
        };
        recording.regroup(step);
        Ok(recording)
    }

    /// Length of an interval as recorded.
    pub fn interval(&self) -> Duration {
        Duration::from_nanos(self.recording.about().interval_ns)
    }

    /// The whole range as one interval.
    pub fn whole(&mut self) -> Result<Reading, Error> {
        let frame = self.recording.sum(self.range)?;
        let range = self.range;
        let details = self.details(range, frame.clock.seconds(frame.ticks));
        let kernel = details.map(|details| self.recording.kernel(details.range)).transpose()?;
        let mut reading = self.reading(&frame, 0, true);
        reading.interval.kernel = witness(&kernel.unwrap_or_default(), details);
        self.fill_statements(&mut reading, details)?;
        self.fill_io(&mut reading, range, details)?;
        reading.vacuum = health::health(&self.recording, range)?;
        reading.blocking = self.last_blocking()?;
        reading.recent = Some(Box::new(itself(&reading)));
        Ok(reading)
    }

    /// Who blocked whom at the end of the range, if anybody was blocked.
    fn last_blocking(&mut self) -> Result<Option<Forest>, Error> {
        let Some(last) = self.heads.last() else { return Ok(None) };
        let range = recording::Range { from_us: last.end_us - 1, to_us: last.end_us };
        let rows = self.recording.session_history(range)?;
        if !rows.iter().any(SessionHistoryRow::is_blocked) {
            return Ok(None);
        }
        Ok(Some(Forest::recorded(&rows, self.texts().map_err(Error::Failed)?)))
    }

    /// The time range of some steps.
    fn range_of(&self, steps: Range<usize>) -> Option<recording::Range> {
        let steps = self.steps.get(steps)?;
        let (first, last) = (steps.first()?.start, steps.last()?.end.checked_sub(1)?);
        let (first, last) = (self.heads.get(first)?, self.heads.get(last)?);
        Some(recording::Range { from_us: first.end_us - 1, to_us: last.end_us })
    }

    /// Whether percentiles are known for intervals of the shown length.
    fn has_spread(&self) -> bool {
        let detail = Duration::from_nanos(self.recording.about().detail_ns);
        self.step.is_some_and(|step| step >= detail)
    }

    fn reading(&self, frame: &Frame, index: usize, has_spread: bool) -> Reading {
        let interval = Interval::with_others(frame);
        let detail_seconds = self.recording.about().detail_ns as f64 * 1e-9;
        let spread_from = (!has_spread).then_some(detail_seconds);
        let recorded = Some(Recorded { index, spread_from_seconds: spread_from });
        Reading { recorded, ..Reading::new(interval) }
    }

    /// Why a step does not directly follow the previous one.
    fn gap_before(&self, step: usize) -> Option<String> {
        let first = self.steps.get(step)?.start;
        let (before, this) = (self.heads.get(first.checked_sub(1)?)?, self.heads.get(first)?);
        let missing = this.begin_us - before.end_us;
        if missing as f64 > SLACK * (this.end_us - this.begin_us) as f64 {
            let of_it = |gap: &&GapRow| gap.from_us < this.end_us && gap.time_us > before.end_us;
            let reason = self.gaps.iter().find(of_it).map(|gap| gap.reason.to_string());
            let length = view::units::duration(seconds(missing));
            return Some(match reason {
                Some(reason) => format!("{reason}; nothing was recorded for {length}"),
                None => format!("nothing was recorded for {length}"),
            });
        }
        let here = recording::Range { from_us: before.end_us, to_us: this.end_us };
        let breaks = |mark: &&MarkRow| here.contains(mark.time_us) && BREAKS.contains(&&*mark.kind);
        self.marks.iter().find(breaks).map(|mark| match mark.text.is_empty() {
            true => mark.kind.to_string(),
            false => format!("{}: {}", mark.kind, mark.text),
        })
    }

    /// The sessions that were not idle, by the end of each interval. Those of several intervals cannot be added
    /// up.
    fn sessions(&self, range: recording::Range) -> Result<HashMap<i64, Vec<SessionRow>>, Error> {
        let mut sessions: HashMap<i64, Vec<SessionRow>> = HashMap::new();
        if self.step.is_none() {
            for row in self.recording.session_history(range)? {
                sessions.entry(row.time_us).or_default().push(row.session());
            }
        }
        Ok(sessions)
    }

    /// The statements in these details.
    fn fill_statements(&mut self, reading: &mut Reading, of: Option<Details>) -> Result<(), Error> {
        reading.asked = true;
        reading.statements = self.statements(of)?;
        Ok(())
    }

    fn statements(&mut self, of: Option<Details>) -> Result<Option<StatementsTable>, Error> {
        let Some(Details { range, seconds, .. }) = of else { return Ok(None) };
        let Some(found) = self.recording.statements(range)? else { return Ok(None) };
        let mut statements = StatementsTable::between(None, &Arc::new(found));
        statements.interval_seconds = Some(seconds);
        statements.plans = PlanRow::recorded(self.recording.plans(range)?);
        statements.slow_executions =
            SlowExecutionFigures::recorded(self.recording.slow_executions(range)?);
        // Its readings start with the range, so totals since the last reset are unknown.
        statements.forget_source();
        statements.current = self.running(range.to_us)?;
        Ok(Some(statements))
    }

    /// The first of the steps that diagnoses cover, which end with this one and follow each other directly.
    fn diagnosed_from(&self, step: usize) -> usize {
        // Intervals are not exactly as long as requested.
        let long_enough = self.end(step) - 0.95 * DIAGNOSED.as_secs_f64();
        let mut first = step;
        while self.end(first) - self.seconds(first) > long_enough
            && first > 0
            && self.gap_before(first).is_none()
        {
            first -= 1;
        }
        first
    }

    /// The last seconds up to the end of a step, as a live view has them: no less than the step itself.
    fn recent(&mut self, step: usize, reading: &Reading) -> Result<Recent, Error> {
        let steps = self.diagnosed_from(step)..step + 1;
        let Some(range) = self.range_of(steps.clone()).filter(|_| steps.len() > 1) else {
            return Ok(itself(reading));
        };
        let mut sum: Option<Frame> = None;
        let mut add = |frame: &Frame| match &mut sum {
            Some(sum) => sum.merge(frame),
            none => *none = Some(frame.clone()),
        };
        match steps.clone().map(|step| self.frames.get(&step)).collect::<Option<Vec<_>>>() {
            Some(frames) => frames.into_iter().for_each(add),
            None => {
                for frame in self.recording.frames(range, self.step)? {
                    add(&frame?);
                }
            }
        }
        let Some(sum) = sum else { return Ok(itself(reading)) };
        let details = self.details(range, steps.map(|step| self.seconds(step)).sum());
        let kernel = details.map(|details| self.recording.kernel(details.range)).transpose()?;
        let mut interval = Interval::with_others(&sum);
        interval.kernel = witness(&kernel.unwrap_or_default(), details);
        Ok(Recent { interval, statements: self.statements(details)? })
    }

    /// The session for which others waited most of the time in those seconds. A step that is longer has too many sessions.
    fn blocker(&mut self, step: usize) -> Result<Option<Blocker>, String> {
        let first = self.diagnosed_from(step);
        let range = self.range_of(first..step + 1).filter(|_| self.step.is_none());
        let Some(range) = range else { return Ok(None) };
        let rows = self.recording.session_history(range).map_err(|error| error.to_string())?;
        let texts = self.texts()?;
        let mut blockers = Blockers::default();
        for rows in rows.chunk_by(|a, b| a.time_us == b.time_us) {
            let [row, ..] = rows else { continue };
            let length = row.interval_ns as f64 * 1e-9;
            blockers.add(&Forest::recorded(rows, texts), seconds(row.time_us), length);
        }
        Ok(blockers.main().cloned())
    }

    /// The statements that sessions had been executing for long at the end of details.
    fn running(&mut self, end_us: i64) -> Result<Vec<CurrentRow>, Error> {
        let within = |from_us: i64| recording::Range { from_us, to_us: end_us };
        let mut rows = self.recording.session_history(within(end_us - 1))?;
        rows.retain(|row| row.statement_ns.is_some());
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let earlier = self.recording.session_history(within(end_us - RUNNING_US))?;
        let texts = self.texts().map_err(Error::Failed)?;
        Ok(CurrentRow::recorded(&rows, &earlier, Some(texts)))
    }

    /// The details of a step.
    fn details_of(&self, step: usize) -> Option<Details> {
        let heads = self.heads.get(self.steps.get(step)?.clone())?;
        let range =
            recording::Range { from_us: heads.first()?.begin_us, to_us: heads.last()?.end_us };
        self.details(range, self.seconds(step))
    }

    /// The details of a range in which this many seconds were recorded: those within it or, if it is shorter, the
    /// latest ones before.
    fn details(&self, range: recording::Range, seconds: f64) -> Option<Details> {
        let first = self.details.partition_point(|detail| detail.middle_us() <= range.from_us);
        let end = self.details.partition_point(|detail| detail.to_us <= range.to_us);
        let within = match self.details.get(first..end).unwrap_or_default() {
            [] => {
                let last = self.details.get(end.checked_sub(1)?..end)?;
                let lasts =
                    |detail: &Detail| range.to_us - detail.to_us < detail.to_us - detail.from_us;
                last.iter().all(lasts).then_some(last)?
            }
            within => within,
        };
        let covered = Detail::seconds(within);
        Some(Details {
            range: Detail::range(within)?,
            seconds: covered,
            busy_ns: within.iter().fold(0, |sum, detail| sum.saturating_add(detail.busy_ns)),
            of_seconds: (covered > (1.0 + SLACK) * seconds).then_some(covered),
        })
    }

    fn ask(&mut self) -> Result<&RecordedNotes, Error> {
        let asked = match self.asked.take() {
            Some(asked) => asked,
            None => {
                let from_us = self.range.from_us.saturating_sub(EARLIER_US);
                let rows = self.recording.events(recording::Range { from_us, ..self.range })?;
                let settings = self.recording.settings(self.range)?;
                RecordedNotes {
                    events: rows.into_iter().map(Row::from).collect(),
                    places: machine::places(&settings),
                    health: HealthHistory::read(&self.recording, self.range)?,
                }
            }
        };
        Ok(&*self.asked.insert(asked))
    }

    /// The texts of statements, read once.
    fn texts(&mut self) -> Result<&StatementTexts, String> {
        if self.texts.is_none() {
            let texts = self.recording.statement_texts(self.range);
            self.texts = Some(texts.map_err(|error| error.to_string())?);
        }
        Ok(self.texts.get_or_insert_default())
    }

    /// Adds the slow operations, the deadlocks, the checkpoint and the server's answers up to then, and the relations and devices
    /// of the range.
    fn fill_io(
        &mut self,
        reading: &mut Reading,
        range: recording::Range,
        details: Option<Details>,
    ) -> Result<(), Error> {
        let is_start =
            |mark: &&MarkRow| &*mark.kind == "server start" && mark.time_us <= range.to_us;
        let started = self.marks.iter().rfind(is_start).map_or(i64::MIN, |mark| mark.time_us);
        let asked = self.ask()?;
        let until = |row: &Row| row.time.is_none_or(|time| time <= reading.interval.time);
        let seen = asked.events.partition_point(until);
        let mut events = StorageEvents::default();
        for row in &asked.events[seen.saturating_sub(EVENTS)..seen] {
            events.note(row.clone());
        }
        // A recording does not contain their sums: an impossible number of resets marks them as unknown.
        let unknown = ClientTotals { resets: u32::MAX, ..ClientTotals::default() };
        reading.deadlocks = asked.events[..seen].iter().filter_map(Deadlock::from_event).collect();
        reading.vacuum = asked.health.at(range.to_us, started);
        let mut io = events.io(&reading.interval, &unknown);
        let places = asked.places.clone();
        let of_details = details.map(|details| details.range);
        let relations =
            of_details.map(|range| self.recording.relations(range)).transpose()?.flatten();
        (io.relations, io.relation_names) = relations.map_or_else(Default::default, |relations| {
            (Some(relations.rows), RelationNames(relations.names))
        });
        io.relations_seconds = details.and_then(|details| details.of_seconds);
        let server =
            of_details.map(|range| self.recording.server_io_sum(range)).transpose()?.flatten();
        io.recorded = Some(RecordedIo {
            places,
            devices: self.recording.device_sums(range)?.iter().map(Device::from_row).collect(),
            server: server.as_ref().map(Server::from_row),
        });
        reading.io = Some(io);
        Ok(())
    }
}

impl Frames for RecordingSource {
    fn len(&self) -> usize {
        self.steps.len()
    }

    fn end(&self, step: usize) -> f64 {
        let last = self.steps.get(step).and_then(|heads| self.heads.get(heads.end - 1));
        last.map_or(0.0, |head| seconds(head.end_us))
    }

    fn seconds(&self, step: usize) -> f64 {
        let heads = self.steps.get(step).and_then(|heads| self.heads.get(heads.clone()));
        heads.map_or(0.0, |heads| {
            heads.iter().map(|head| seconds(head.end_us - head.begin_us)).sum()
        })
    }

    fn read(&mut self, steps: Range<usize>) -> Result<Vec<Scene>, String> {
        let Some(range) = self.range_of(steps.clone()) else { return Ok(Vec::new()) };
        let first = self.diagnosed_from(steps.start);
        let with_recent = self.range_of(first..steps.end).unwrap_or(range);
        let frames =
            self.recording.frames(with_recent, self.step).map_err(|error| error.to_string())?;
        let mut by_end = HashMap::new();
        for frame in frames {
            let frame = frame.map_err(|error| error.to_string())?;
            by_end.insert(frame.realtime_ns / 1000, frame);
        }
        let has_spread = self.has_spread();
        let of: Vec<Option<Details>> = steps.clone().map(|step| self.details_of(step)).collect();
        let begins = of.iter().flatten().map(|details| details.range.from_us);
        let from_us = begins.fold(range.from_us, i64::min);
        let earlier = recording::Range { from_us, ..range };
        let kernel = self.recording.kernel(earlier).map_err(|error| error.to_string())?;
        let sessions = self.sessions(range).map_err(|error| error.to_string())?;
        let scene = |(step, of): (usize, Option<Details>)| {
            let last = self.heads.get(self.steps.get(step)?.end - 1)?;
            let frame = by_end.get(&u64::try_from(last.end_us).ok()?)?;
            let mut reading = Box::new(self.reading(frame, step, has_spread));
            reading.interval.kernel = witness(&kernel, of);
            reading.interval.sessions = sessions.get(&last.end_us).cloned().unwrap_or_default();
            Some(Scene { reading, gap: self.gap_before(step) })
        };
        let scenes = steps.clone().zip(of).filter_map(scene).collect();
        self.frames.retain(|step, _| (first..steps.end).contains(step));
        for step in first..steps.end {
            let end_us = self.steps.get(step).and_then(|heads| self.heads.get(heads.end - 1));
            let end_us = end_us.and_then(|head| u64::try_from(head.end_us).ok());
            if let Some(frame) = end_us.and_then(|end_us| by_end.remove(&end_us)) {
                self.frames.insert(step, frame);
            }
        }
        Ok(scenes)
    }

    fn problems(&self) -> Vec<String> {
        self.recording.problems()
    }

    fn fill_sessions(
        &mut self,
        reading: &mut Reading,
        id: Option<SessionId>,
    ) -> Result<(), String> {
        if reading.blocking.is_some() && reading.opened.as_ref().map(|opened| opened.id) == id {
            return Ok(());
        }
        let index = reading.recorded.as_ref().map_or(0, |recorded| recorded.index);
        // Sessions of several intervals cannot be added up.
        let Some(range) = self.range_of(index..index + 1).filter(|_| self.step.is_none()) else {
            return Ok(());
        };
        let rows = self.recording.session_history(range).map_err(|error| error.to_string())?;
        let texts = self.texts()?;
        reading.blocking = Some(Forest::recorded(&rows, texts));
        reading.opened = id.and_then(|id| {
            let row = rows.iter().find(|row| SessionId::from_row(&row.session()) == id)?;
            let text = row.statement().and_then(|key| texts.get(&key));
            let query = text.map(|text| text.text.to_string());
            Some(Opened { id, accounts: Vec::new(), queryid: row.queryid, query })
        });
        Ok(())
    }

    fn regroup(&mut self, step: Option<Duration>) {
        self.step = step.filter(|step| *step > self.interval());
        let length = self.step.and_then(|step| i64::try_from(step.as_micros()).ok());
        let number = |head: &StepHead| {
            length.map(|length| recording::step_of(head.end_us, head.interval_ns, length))
        };
        self.steps.clear();
        self.frames.clear();
        for at in 0..self.heads.len() {
            match self.steps.last_mut() {
                Some(open)
                    if length.is_some()
                        && number(&self.heads[open.start]) == number(&self.heads[at]) =>
                {
                    open.end = at + 1;
                }
                _ => self.steps.push(at..at + 1),
            }
        }
    }

    fn fill(&mut self, reading: &mut Reading, view: View) -> Result<(), String> {
        let index = reading.recorded.as_ref().map_or(0, |recorded| recorded.index);
        if views::of_statements(view) && !reading.asked {
            let details = self.details_of(index);
            self.fill_statements(reading, details).map_err(|error| error.to_string())?;
        }
        if views::of_io(view) && reading.io.is_none() {
            let range = self.range_of(index..index + 1).unwrap_or(self.range);
            let details = self.details_of(index);
            self.fill_io(reading, range, details).map_err(|error| error.to_string())?;
        }
        if matches!(view, View::Diagnoses | View::All) && reading.recent.is_none() {
            let recent = self.recent(index, reading).map_err(|error| error.to_string())?;
            reading.recent = Some(Box::new(recent));
            reading.blocker = self.blocker(index)?;
        }
        Ok(())
    }
}
