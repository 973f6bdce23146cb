// SPDX-License-Identifier: PostgreSQL
//! The last few minutes in memory, for the page.
//!
//! Intervals are kept as points of the charts and added up in blocks; the oldest block is dropped when there are
//! too many. Therefore tables and charts cover the same time, and memory is bounded.

use std::collections::hash_map::{Entry, HashMap};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use segment::interval::SLACK;
use segment::statements::{Statement, StatementRecord, StatementsDelta, WaitClass};
use segment::{Frame, Histogram, Interval, StatementKey, StatementsReading};
use view::blocking::{Blockers, Forest};
use view::HostMetrics;

use report::histories;
use report::material::{Latency, Moment};
use report::point::{Figures, Point};
use report::rankings::{self, session_name, SessionTimes};
use report::statement_id::{statement_id, statement_key, StatementId};
use report::sums::{share_key, StatementParts, StatementSums};
use view::document::{Axis, Gap, Histories, Mark, Ranking, StatementHistory};
use view::events::Row;
use view::settings::SettingChange;
use view::statements::StatementsTable;

/// Number of blocks to keep, besides the current one.
const BLOCKS: u32 = 10;
/// Number of events to keep.
const EVENTS: usize = 500;
/// Number of marks and of gaps to keep.
const NOTES: usize = 200;
/// A clock that goes back by more than this has been set, seconds.
const SET_BACK: f64 = 0.05;
/// With a reason, time between two intervals is a gap if it is longer than this, not only from `SLACK` on, seconds.
const MOMENT: f64 = 0.001;
/// Maximum number of points of statements.
const POINTS: usize = 720;
/// Number of statements, those with the most time between two readings, whose executions are kept besides their time.
const COUNTED: usize = 100;
/// A statement's time by class is shown if it is at least this share of its time.
const KNOWN: f64 = 0.999;

/// The last minutes.
#[derive(Debug)]
pub struct LiveHistory {
    /// Length of a block, seconds.
    block: f64,
    /// Length of a column of the heat map, seconds.
    detail: f64,
    blocks: VecDeque<Block>,
    /// Sum of all blocks except the current one.
    closed: Option<Frame>,
    latency: Option<Latency>,
    /// Readings of the statements, oldest first: at the start of each block, and at both ends of each run of the
    /// server.
    statements: VecDeque<(f64, Arc<StatementsReading>)>,
    /// The latest reading whose statements are counted in a block.
    reading: Option<Arc<StatementsReading>>,
    /// Events, oldest first.
    pub events: VecDeque<Row>,
    /// Marks on the charts.
    pub marks: VecDeque<Mark>,
    /// Changes of the server's settings, oldest first.
    pub setting_changes: VecDeque<SettingChange>,
    /// Times in which nothing was measured.
    pub gaps: VecDeque<Gap>,
    /// Start of the current gap, and its reason.
    silence: Option<(f64, String)>,
    end: Option<f64>,
    level: Option<segment::Level>,
}

/// Consecutive intervals.
#[derive(Debug)]
struct Block {
    begin: f64,
    sum: Option<Frame>,
    points: Vec<Point>,
    moments: Vec<Moment>,
    latency: Vec<Latency>,
    /// Busy time of sessions in each of `points`.
    sessions: SessionTimes,
    blockers: Blockers,
    statements: Vec<StatementTimes>,
}

/// The time of statements between two readings, or a gap without time.
#[derive(Debug, Default)]
struct StatementTimes {
    start: f64,
    seconds: f64,
    times: HashMap<StatementId, StatementTime>,
    /// The executions of those with the most time.
    executions: HashMap<StatementId, Executions>,
}

/// The time of a statement between two readings.
#[derive(Debug, Clone, Copy, Default)]
struct StatementTime {
    seconds: f64,
    calls: u64,
    exec_seconds: f64,
}

/// Executions of a statement between two readings.
#[derive(Debug, Default)]
struct Executions {
    calls: u64,
    seconds: f64,
    /// Seconds per tick of the histogram's values.
    seconds_per_tick: f64,
    histogram: Histogram,
    classes: Vec<(WaitClass, f64)>,
}

impl Executions {
    fn add(&mut self, statement: &Statement, reading: &StatementsReading) {
        self.calls += statement.calls();
        self.seconds += statement.exec().seconds;
        self.seconds_per_tick = 1.0 / reading.clock().ticks_per_second();
        self.histogram.merge(statement.histogram());
        self.classes.extend(statement.split(reading.directory()).classes);
    }
}

impl Block {
    fn new(begin: f64) -> Block {
        Block {
            begin,
            sum: None,
            points: Vec::new(),
            moments: Vec::new(),
            latency: Vec::new(),
            sessions: SessionTimes::default(),
            blockers: Blockers::default(),
            statements: Vec::new(),
        }
    }

    fn add_sessions(&mut self, frame: &Frame) {
        let point = self.points.len();
        for row in &frame.sessions {
            let pid = i64::from(row.pid);
            let (user, database) = (row.user.as_deref(), row.database.as_deref());
            let name = || session_name(&row.application, &row.kind, pid, user, database);
            self.sessions.add((pid, &row.application), name, point, row.busy_seconds);
        }
    }
}

impl LiveHistory {
    /// A history of at least `length`, with heat map columns of `detail`.
    pub fn new(length: Duration, detail: Duration) -> LiveHistory {
        LiveHistory {
            block: length.as_secs_f64() / f64::from(BLOCKS),
            detail: detail.as_secs_f64(),
            blocks: VecDeque::new(),
            closed: None,
            latency: None,
            statements: VecDeque::new(),
            reading: None,
            events: VecDeque::new(),
            marks: VecDeque::new(),
            setting_changes: VecDeque::new(),
            gaps: VecDeque::new(),
            silence: None,
            end: None,
            level: None,
        }
    }

    /// Adds an interval. `statements` is the latest reading, from which a new block counts.
    pub fn push(
        &mut self,
        frame: &Frame,
        host: Option<HostMetrics>,
        statements: Option<Arc<StatementsReading>>,
    ) {
        let interval = Interval::from_frame(frame);
        let (end, length) = (interval.time, interval.interval_seconds);
        if self.end.is_some_and(|last| end < last - SET_BACK) {
            self.forget();
            self.mark(
                end,
                "clock step",
                "the time of day was set back; earlier intervals were dropped",
            );
        }
        let begin = self.end.map_or(end - length, |last| last.max(end - length));
        let reason = self.silence.take().map(|(_, why)| why);
        // Without a reason, it may only be a late reading.
        let slack = if reason.is_some() { MOMENT } else { SLACK * length };
        if let Some(last) = self.end.filter(|last| begin - last > slack) {
            let reason = reason.unwrap_or_else(|| "the machine slept".to_string());
            self.gap(last, begin, reason);
        }
        if self.level.replace(interval.level).is_some_and(|level| level != interval.level) {
            self.mark(end, "level", &interval.level.to_string());
        }
        if self.blocks.back().is_none_or(|block| begin >= block.begin + self.block) {
            self.turn(begin, statements.clone());
        }
        if let Some(now) = &statements {
            self.add_statements(now);
        }
        self.spread(frame, begin, length);
        let Some(block) = self.blocks.back_mut() else { return };
        block.add_sessions(frame);
        let measured = interval.instrumented_seconds;
        let figures = (measured > 0.0).then(|| Figures {
            host,
            sessions: sessions(frame),
            sums: report::parts::sums(&interval),
            ..Figures::from_interval(&interval)
        });
        block.points.push(Point { start: begin, seconds: measured, figures });
        let (commands, commits) = (interval.commands_handled, Some(interval.commits.count));
        block.moments.push(Moment { start: begin, seconds: measured, commands, commits });
        match &mut block.sum {
            Some(sum) => sum.merge(frame),
            None => {
                let mut sum = frame.clone();
                sum.sessions.clear();
                block.sum = Some(sum);
            }
        }
        self.end = Some(end);
    }

    /// Adds who blocked whom at the end of the interval that was added last.
    pub fn blocked(&mut self, forest: &Forest) {
        let (Some(time), Some(block)) = (self.end, self.blocks.back_mut()) else { return };
        let length = block.points.last().map_or(0.0, |point| time - point.start);
        block.blockers.add(forest, time, length);
    }

    /// The sessions that blocked others.
    pub fn blockers(&self) -> Blockers {
        let mut all = Blockers::default();
        for block in &self.blocks {
            all.append(&block.blockers);
        }
        all
    }

    /// Starts a new block and drops the oldest.
    fn turn(&mut self, begin: f64, statements: Option<Arc<StatementsReading>>) {
        self.blocks.push_back(Block::new(begin));
        if self.blocks.len() > BLOCKS as usize + 1 {
            self.blocks.pop_front();
        }
        let first = self.blocks.front().map_or(begin, |block| block.begin);
        self.statements.extend(statements.map(|reading| (begin, reading)));
        while self.statements.get(1).is_some_and(|(time, _)| *time <= first) {
            self.statements.pop_front();
        }
        self.gaps.retain(|gap| gap.to > first);
        self.marks.retain(|mark| mark.until.unwrap_or(mark.time) >= first);
        self.setting_changes.retain(|change| change.time >= first);
        self.closed = None;
        let count = self.blocks.len();
        for sum in self.blocks.iter().take(count - 1).filter_map(|block| block.sum.as_ref()) {
            match &mut self.closed {
                Some(closed) => closed.merge(sum),
                None => self.closed = Some(sum.clone()),
            }
        }
    }

    /// Adds what statements have done since the previous reading.
    fn add_statements(&mut self, now: &Arc<StatementsReading>) {
        if self.reading.as_ref().is_some_and(|before| Arc::ptr_eq(before, now)) {
            return;
        }
        let before = self.reading.replace(now.clone());
        let before = before.filter(|before| now.continues(before));
        let (Some(before), Some(block)) = (before, self.blocks.back_mut()) else { return };
        let delta = StatementsDelta::between(&before, now);
        let mut times: HashMap<StatementId, StatementTime> = HashMap::new();
        for statement in delta.statements() {
            let sum = times.entry(statement_id(&statement.key)).or_default();
            sum.seconds += statement.seconds();
            sum.calls += statement.calls();
            sum.exec_seconds += statement.exec().seconds;
        }
        let mut most: Vec<(StatementId, f64)> =
            times.iter().map(|(id, time)| (*id, time.seconds)).collect();
        most.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut executions: HashMap<StatementId, Executions> =
            most.iter().take(COUNTED).map(|(id, _)| (*id, Executions::default())).collect();
        for statement in delta.statements() {
            if let Some(sum) = executions.get_mut(&statement_id(&statement.key)) {
                sum.add(statement, now);
            }
        }
        // Between two segments, nothing was measured.
        let (from, seconds) = match now.is_of_segment_of(&before) {
            true => (before.realtime_ns(), now.seconds_since(&before)),
            false => (now.realtime_ns(), 0.0),
        };
        let start = from as f64 * 1e-9;
        block.statements.push(StatementTimes { start, seconds, times, executions });
    }

    /// Adds the times of commands to the current column of the heat map.
    fn spread(&mut self, frame: &Frame, begin: f64, length: f64) {
        let seconds_per_tick = 1.0 / frame.clock.ticks_per_second;
        let done = |latency: &mut Latency| {
            latency.seconds + length / 2.0 > self.detail || begin > latency.start + self.detail
        };
        if let Some(full) = self.latency.take_if(|latency| done(latency)) {
            if let Some(block) = self.blocks.back_mut() {
                block.latency.push(full);
            }
        }
        let column = self.latency.get_or_insert_with(|| Latency {
            start: begin,
            seconds: 0.0,
            seconds_per_tick,
            histogram: Histogram::new(),
        });
        column.seconds += length;
        for found in &frame.statistics {
            if found.command().is_some_and(|(_, handle)| handle) {
                column.histogram.merge(&found.total.histogram);
            }
        }
    }

    /// Starts a gap, or updates its reason.
    pub fn silent(&mut self, why: &str) {
        let now = segment::clock::realtime_ns() as f64 * 1e-9;
        match &mut self.silence {
            Some((_, known)) => *known = why.to_string(),
            None => self.silence = Some((self.end.unwrap_or(now), why.to_string())),
        }
    }

    /// Why nothing can be read now.
    pub fn silence(&self) -> Option<&str> {
        self.silence.as_ref().map(|(_, why)| why.as_str())
    }

    /// Records that another run of the server is being read.
    pub fn restarted(&mut self, what: &str) {
        self.latency = None;
        if self.end.is_some() {
            self.mark(segment::clock::realtime_ns() as f64 * 1e-9, "server start", what);
        }
    }

    /// Starts reading a run of the server: `start` holds its statements at the server's start if they are known,
    /// and `now` the current ones.
    pub fn begin_statements(
        &mut self,
        start: Option<Arc<StatementsReading>>,
        now: Option<&Arc<StatementsReading>>,
    ) {
        let Some(now) = now else { return };
        let last = self.statements.back();
        // Statements that the server has kept continue to count.
        let begun = start.filter(|_| last.is_some_and(|(_, last)| !now.continues(last)));
        let kept = self.reading.take().filter(|kept| now.continues(kept));
        self.reading = begun.clone().or(kept).or_else(|| Some(now.clone()));
        let time = last.map_or(0.0, |(time, _)| *time);
        self.statements
            .extend(begun.into_iter().chain([now.clone()]).map(|reading| (time, reading)));
    }

    /// The run that was being read has ended, with these statements.
    pub fn end_statements(&mut self, last: Option<&Arc<StatementsReading>>) {
        let time = self.end.unwrap_or(0.0);
        if let Some(last) = last {
            self.add_statements(last);
        }
        self.statements.extend(last.map(|last| (time, last.clone())));
    }

    /// The activity of statements since the first reading that is kept, in all runs of the server.
    pub fn statements(
        &self,
        latest: Option<&Arc<StatementsReading>>,
    ) -> Option<view::statements::StatementsTable> {
        let all: Vec<&Arc<StatementsReading>> =
            self.statements.iter().map(|(_, reading)| reading).chain(latest).collect();
        let (first, last) = (all.first()?, all.last()?);
        let pairs = || all.windows(2).map(|pair| (pair[0], pair[1]));
        // Between two segments, nothing was measured.
        let seconds =
            pairs().map(|(a, b)| if a.is_of_segment_of(b) { b.seconds_since(a) } else { 0.0 });
        let seconds = seconds.fold(0.0, |sum, more| sum + more);
        let mut found = if pairs().all(|(a, b)| b.continues(a)) {
            view::statements::StatementsTable::between(Some(first), last)
        } else {
            let (mut records, mut begin) = (HashMap::<StatementKey, StatementRecord>::new(), 0);
            for end in 1..=all.len() {
                if end < all.len() && all[end].continues(all[end - 1]) {
                    continue;
                }
                for record in StatementsReading::records(all[begin], all[end - 1]) {
                    match records.entry(record.key) {
                        Entry::Occupied(mut known) => known.get_mut().merge(&record),
                        Entry::Vacant(place) => {
                            place.insert(record);
                        }
                    }
                }
                begin = end;
            }
            let records = records.into_values().collect();
            let sums = StatementsReading::of_records(last.realtime_ns(), *last.clock(), records);
            let mut found = view::statements::StatementsTable::between(None, &Arc::new(sums));
            let now = view::statements::StatementsTable::between(Some(last), last);
            (found.table, found.paused, found.current) = (now.table, now.paused, now.current);
            found
        };
        found.interval_seconds = Some(seconds);
        Some(found)
    }

    /// Adds events.
    pub fn note(&mut self, events: Vec<Row>) {
        self.events.extend(events);
        self.events.drain(..self.events.len().saturating_sub(EVENTS));
    }

    /// Adds a mark.
    pub fn mark(&mut self, time: f64, kind: &str, text: &str) {
        let (kind, text) = (kind.to_string(), text.to_string());
        self.marks.push_back(Mark { time, until: None, kind, text });
        self.marks.drain(..self.marks.len().saturating_sub(NOTES));
    }

    /// Marks the new plans of these statements, whose run of the server has ended, and with it its plans.
    pub fn mark_plans(&mut self, all: &StatementsTable) {
        let Some(from) = self.blocks.front().map(|block| block.begin) else { return };
        for mark in histories::plan_changes(all, from) {
            if !self.marks.contains(&mark) {
                self.marks.push_back(mark);
            }
        }
        self.marks.drain(..self.marks.len().saturating_sub(NOTES));
    }

    /// Adds changes of the server's settings, which are later than those before.
    pub fn changed_settings(&mut self, changes: Vec<SettingChange>) {
        self.setting_changes.extend(changes);
        self.setting_changes.drain(..self.setting_changes.len().saturating_sub(NOTES));
    }

    /// Adds a gap: a time in which nothing was measured.
    pub fn gap(&mut self, from: f64, to: f64, reason: String) {
        if let Some(block) = self.blocks.back_mut() {
            block.points.push(Point { start: from, seconds: 0.0, figures: None });
            block.moments.push(Moment { start: from, ..Moment::default() });
            block.statements.push(StatementTimes { start: from, ..StatementTimes::default() });
        }
        self.gaps.push_back(Gap { from, to, reason });
        self.gaps.drain(..self.gaps.len().saturating_sub(NOTES));
    }

    fn forget(&mut self) {
        *self = LiveHistory {
            blocks: VecDeque::new(),
            closed: None,
            latency: None,
            statements: VecDeque::new(),
            reading: self.reading.take(),
            end: None,
            gaps: VecDeque::new(),
            marks: VecDeque::new(),
            setting_changes: VecDeque::new(),
            events: std::mem::take(&mut self.events),
            silence: self.silence.take(),
            ..*self
        };
    }

    /// Everything that is kept; `None` if there is nothing yet.
    pub fn all(&self) -> Option<HistoryExtract> {
        let running = self.blocks.back()?.sum.as_ref()?;
        let sum = match &self.closed {
            None => running.clone(),
            Some(closed) => {
                let mut sum = closed.clone();
                sum.merge(running);
                sum
            }
        };
        let first = self.blocks.front()?;
        let end = self.end?;
        let mut gaps: Vec<Gap> = self.gaps.iter().cloned().collect();
        let mut points: Vec<Point> = self.each(|block| &block.points).cloned().collect();
        let mut moments: Vec<Moment> = self.each(|block| &block.moments).copied().collect();
        let mut to = end;
        if let Some((from, why)) = &self.silence {
            to = (segment::clock::realtime_ns() as f64 * 1e-9).max(end);
            gaps.push(Gap { from: *from, to, reason: why.clone() });
            points.push(Point { start: *from, seconds: 0.0, figures: None });
            moments.push(Moment { start: *from, ..Moment::default() });
        }
        let latency = self.each(|block| &block.latency).chain(&self.latency).cloned().collect();
        let from = first.begin;
        Some(HistoryExtract { from, to, sum, gaps, points, moments, latency })
    }

    /// What took the most time: sessions in these points, which are those of [`LiveHistory::all`], and the statements of `all`, of
    /// which as much is known as was read.
    pub fn rankings(&self, points: &[Point], all: Option<&StatementsTable>) -> Vec<Ranking> {
        let mut times = SessionTimes::default();
        let mut first = 0;
        for block in &self.blocks {
            times.append(&block.sessions, first);
            first += block.points.len();
        }
        let sessions = times.ranking(report::main_axis(points));
        let statements = all.and_then(|all| self.statement_ranking(all));
        statements
            .into_iter()
            .chain([sessions])
            .filter(|ranking| !ranking.rows.is_empty())
            .collect()
    }

    /// The times of statements, and the gap that lasts.
    fn silence_of_statements(&self) -> Option<StatementTimes> {
        let (start, _) = self.silence.as_ref()?;
        Some(StatementTimes { start: *start, ..StatementTimes::default() })
    }

    fn statement_ranking(&self, all: &StatementsTable) -> Option<Ranking> {
        let silence = self.silence_of_statements();
        let stretches: Vec<&StatementTimes> =
            self.each(|block| &block.statements).chain(&silence).collect();
        let each = stretches.len().div_ceil(POINTS).max(1);
        let axis = axis_of(&stretches, each);
        let times = |id: &StatementId| {
            let of = |some: &[&StatementTimes]| -> f64 {
                some.iter().filter_map(|one| Some(one.times.get(id)?.seconds)).sum()
            };
            Some(stretches.chunks(each).map(of).collect::<Vec<f64>>())
        };
        (!stretches.is_empty()).then(|| rankings::statements(axis, all, times))
    }

    /// The sums of statements over time, as far as they were read.
    pub fn statement_parts(&self) -> Option<StatementParts> {
        let silence = self.silence_of_statements();
        let stretches: Vec<&StatementTimes> =
            self.each(|block| &block.statements).chain(&silence).collect();
        let each = stretches.len().div_ceil(POINTS).max(1);
        let axis = axis_of(&stretches, each);
        let points = axis.time.len();
        let mut sums: BTreeMap<StatementId, StatementSums> = BTreeMap::new();
        for (at, one) in stretches
            .chunks(each)
            .enumerate()
            .flat_map(|(at, some)| some.iter().map(move |one| (at, one)))
        {
            for (id, time) in &one.times {
                let sum = sums.entry(*id).or_insert_with(|| StatementSums::with_points(points));
                sum.seconds[at] += time.seconds;
                sum.calls[at] += time.calls as f64;
                sum.exec_seconds[at] += time.exec_seconds;
                for (class, time) in one.executions.get(id).into_iter().flat_map(|one| &one.classes)
                {
                    let class = sum.classes.entry(share_key(*class));
                    class.or_insert_with(|| vec![0.0; points])[at] += time;
                }
            }
        }
        // Only the statements with the most time between two readings have classes.
        for sum in sums.values_mut() {
            let total = |all: &Vec<f64>| all.iter().sum::<f64>();
            let known: f64 = sum.classes.values().map(total).sum();
            if known < KNOWN * total(&sum.seconds) {
                sum.classes.clear();
            }
        }
        (!stretches.is_empty()).then_some(StatementParts { axis, sums })
    }

    /// What the statements with the most time did over time, as far as it was read.
    pub fn statement_histories(&self, all: &StatementsTable) -> Option<Histories> {
        let silence = self.silence_of_statements();
        let stretches: Vec<&StatementTimes> =
            self.each(|block| &block.statements).chain(&silence).collect();
        let each = stretches.len().div_ceil(histories::POINTS).max(1);
        let axis = axis_of(&stretches, each);
        let statements =
            histories::most(all).iter().map(|id| history_of(id, &stretches, each)).collect();
        (!stretches.is_empty()).then_some(Histories { axis, statements })
    }

    fn each<'h, T: 'h>(
        &'h self,
        of: impl Fn(&'h Block) -> &'h Vec<T>,
    ) -> impl Iterator<Item = &'h T> {
        self.blocks.iter().flat_map(of)
    }
}

/// The times of points that consist of `each` of these.
fn axis_of(stretches: &[&StatementTimes], each: usize) -> Axis {
    Axis {
        time: stretches.iter().step_by(each).map(|one| one.start).collect(),
        seconds: stretches
            .chunks(each)
            .map(|some| some.iter().map(|one| one.seconds).sum())
            .collect(),
    }
}

/// A statement over time.
fn history_of(id: &StatementId, stretches: &[&StatementTimes], each: usize) -> StatementHistory {
    let mut history =
        StatementHistory { statement: statement_key(id), ..StatementHistory::default() };
    let mut classes = Vec::new();
    for (at, some) in stretches.chunks(each).enumerate() {
        let (mut calls, mut seconds, mut second) = (0, 0.0, 0.0);
        let mut histogram = Histogram::new();
        for executions in some.iter().filter_map(|one| one.executions.get(id)) {
            calls += executions.calls;
            seconds += executions.seconds;
            second = executions.seconds_per_tick;
            histogram.merge(&executions.histogram);
            classes.extend(executions.classes.iter().map(|(class, time)| (*class, at, *time)));
        }
        history.calls.push(calls);
        history.exec_seconds.push(seconds);
        let p99 = histogram.quantile(0.99, 0, u64::MAX);
        history.p99_seconds.push(p99.map(|ticks| ticks as f64 * second));
    }
    history.classes = histories::by_class(history.calls.len(), classes);
    history
}

/// Everything that is kept.
#[derive(Debug)]
pub struct HistoryExtract {
    /// Start, seconds since 1970.
    pub from: f64,
    /// End, seconds since 1970.
    pub to: f64,
    /// Sum of all intervals.
    pub sum: Frame,
    /// Times in which nothing was measured.
    pub gaps: Vec<Gap>,
    /// Figures of each interval.
    pub points: Vec<Point>,
    /// Commands and commits of each interval.
    pub moments: Vec<Moment>,
    /// Command latency.
    pub latency: Vec<Latency>,
}

/// Processes by state, as in recordings.
fn sessions(frame: &Frame) -> Vec<(String, f64)> {
    let count = |state: &str| {
        let of = frame.population.iter().filter(|row| row.state == state);
        of.fold(0.0, |sum, row| sum + f64::from(row.sessions))
    };
    ["active", "idle", "idle in transaction"]
        .map(|state| (state.to_string(), count(state)))
        .to_vec()
}

#[cfg(test)]
mod tests {
    use segment::frame::ServerInfo;
    use segment::interval::{ClockInfo, SessionRow};
    use segment::statements::{AccountRecord, Sums, Times};
    use segment::{Application, Clock, ClockKind, EventKind, Level};
    use view::blocking::{Party, Wait};

    use super::*;

    /// An interval that ends at this time and has this length, seconds.
    fn frame(end: f64, length: f64) -> Frame {
        let ticks = (length * 1e9) as u64;
        let clock = ClockInfo { kind: "monotonic", ticks_per_second: 1e9 };
        Frame {
            realtime_ns: (end * 1e9) as u64,
            ticks,
            wall: ticks,
            ..Frame::empty(clock, Level::Waits, ServerInfo::default())
        }
    }

    /// Blocks of a little less than a second, with these intervals.
    fn history(intervals: impl IntoIterator<Item = (f64, f64)>) -> LiveHistory {
        let mut history = LiveHistory::new(Duration::from_millis(9_990), Duration::from_secs(1));
        intervals
            .into_iter()
            .for_each(|(end, length)| history.push(&frame(end, length), None, None));
        history
    }

    fn session(pid: i32, busy_seconds: f64) -> SessionRow {
        SessionRow {
            pid,
            leader_pid: None,
            kind: "client backend".into(),
            database: Some("orders".into()),
            user: Some("app".into()),
            application: "shop".into(),
            client_address: None,
            phase: "execute".into(),
            activity: "cpu".into(),
            class: segment::WaitClass::Cpu,
            since_seconds: 0.0,
            transaction_seconds: None,
            age_seconds: None,
            state: "active",
            lived_seconds: 1.0,
            busy_seconds,
            cpu_seconds: Some(0.0),
            commands: 0,
            slot: 0,
            generation: 0,
            holding_count: 0,
            holding: Vec::new(),
            accounts: Vec::new(),
            pauses: None,
        }
    }

    /// A reading in which a statement has had this many calls of 2 ms, half of the time in a lock.
    fn reading(second: u64, calls: u64) -> Arc<StatementsReading> {
        let mut histogram = Histogram::new();
        histogram.add(2_000_000, calls);
        let exec = Times { count: calls, total: 2_000_000 * calls, ..Times::default() };
        let part = |account: &str| AccountRecord {
            account: account.into(),
            count: calls,
            ticks: 1_000_000 * calls as i64,
        };
        let record = StatementRecord {
            key: StatementKey {
                id: 7,
                database_id: 5,
                user_id: 10,
                toplevel: true,
                application: Application::default(),
            },
            database: "orders".into(),
            user: "app".into(),
            text: None,
            sums: Sums { exec, histogram, ..Sums::default() },
            parts: vec![part("execute::cpu"), part("execute::wait::Lock:tuple")],
        };
        let clock = Clock::recorded(ClockKind::Monotonic, 1e9);
        let reading = StatementsReading::of_records(second * 1_000_000_000, clock, vec![record]);
        Arc::new(reading)
    }

    #[test]
    fn changes_of_settings_are_dropped_with_the_time_that_they_belong_to() {
        let change = |time: f64| SettingChange {
            time,
            name: format!("at {time}"),
            before: "1".into(),
            after: "2".into(),
        };
        let mut history = history((1..=3).map(|n| (f64::from(n), 1.0)));
        history.changed_settings(vec![change(1.5), change(2.5)]);
        assert_eq!(history.setting_changes, [change(1.5), change(2.5)]);
        (4..=13).for_each(|n| history.push(&frame(f64::from(n), 1.0), None, None));
        assert_eq!(history.setting_changes, [change(2.5)]);
        history.changed_settings((0..2 * NOTES).map(|n| change(13.0 + n as f64)).collect());
        assert_eq!(history.setting_changes.len(), NOTES);
    }

    #[test]
    fn blocking_that_has_ended_is_kept_with_its_interval() {
        let mut history = LiveHistory::new(Duration::from_millis(9_990), Duration::from_secs(1));
        let wait = Some(Wait { seconds: 9.0, ..Wait::default() });
        let waiter = Party { wait, ..Party::default() };
        let blocks = vec![waiter.clone(), waiter];
        let root = Party { pid: 7, waiters: 2, blocks, ..Party::default() };
        let blocked = Forest { blocked: 2, roots: vec![root], ..Forest::default() };
        let nobody = Forest::default();
        for end in 1..=4 {
            history.push(&frame(f64::from(end), 1.0), None, None);
            history.blocked(if end == 4 { &nobody } else { &blocked });
        }
        let blockers = history.blockers();
        let blocker = blockers.main().unwrap();
        assert_eq!((blocker.waiters, blocker.waiting_seconds), (2, 6.0));
        assert_eq!(blocker.stretches, [(0.0, 3.0)]);
        for end in 5..=15 {
            history.push(&frame(f64::from(end), 1.0), None, None);
        }
        assert_eq!(history.blockers().main(), None, "its blocks are dropped");
    }

    #[test]
    fn a_statement_has_its_executions_between_any_two_readings() {
        let mut history = LiveHistory::new(Duration::from_millis(9_990), Duration::from_secs(1));
        for (second, calls) in [(1, 10), (2, 30), (3, 30), (4, 35)] {
            history.push(&frame(second as f64, 1.0), None, Some(reading(second, calls)));
        }
        let all = history.statements(Some(&reading(4, 35))).unwrap();
        let histories = history.statement_histories(&all).unwrap();
        let [found] = &histories.statements[..] else { panic!("{histories:?}") };
        assert_eq!(found.statement, "7.5.10");
        assert_eq!(found.calls, [20, 0, 5]);
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        for (seconds, calls) in found.exec_seconds.iter().zip(&found.calls) {
            near(*seconds, *calls as f64 * 2e-3);
        }
        let p99 = &found.p99_seconds;
        assert!(p99[1].is_none() && (p99[0].unwrap() / 2e-3 - 1.0).abs() <= 0.0625, "{p99:?}");
        let classes: Vec<&str> = found.classes.iter().map(|one| one.class).collect();
        assert_eq!(classes, ["cpu", "lock"]);
        for one in &found.classes {
            near(one.seconds.iter().sum(), 25e-3);
        }
    }

    fn ms(time: f64) -> u64 {
        (time * 1e3).round() as u64
    }

    #[test]
    fn tables_and_charts_cover_the_same_eleven_blocks() {
        for n in 1..30u32 {
            let history = history((1..=n).map(|end| (100.0 + f64::from(end), 1.0)));
            let (kept, all) = (n.min(11), history.all().unwrap());
            assert_eq!((all.points.len(), all.moments.len()), (kept as usize, kept as usize));
            assert_eq!(all.sum.ticks, u64::from(kept) * 1_000_000_000, "of {n}");
            assert_eq!(
                [all.from, all.to].map(ms),
                [100_000 + 1000 * u64::from(n - kept), 100_000 + 1000 * u64::from(n)]
            );
        }
    }

    #[test]
    fn time_is_measured_once_a_gap_is_more_than_half_an_interval_and_goes_with_its_block() {
        let starts = |history: &LiveHistory| -> Vec<u64> {
            history.each(|history| &history.points).map(|point| ms(point.start)).collect()
        };
        assert_eq!(starts(&history([(101.0, 1.0), (101.5, 1.0)])), [100_000, 101_000]);
        assert_eq!(history([(101.0, 1.0), (102.4, 1.0)]).gaps.len(), 0);
        let mut history = history([(101.0, 1.0)]);
        history.silent("it ended");
        history.silent("it is absent");
        assert_eq!(history.silence(), Some("it is absent"));
        history.push(&frame(102.75, 1.0), None, None);
        let gaps: Vec<_> = history
            .gaps
            .iter()
            .map(|gap| (ms(gap.from), ms(gap.to), gap.reason.as_str()))
            .collect();
        assert_eq!((gaps, history.silence()), (vec![(101_000, 101_750, "it is absent")], None));
        // With a reason, a short time is a gap as well: covered time and gaps add up to everything.
        history.silent("it stopped");
        history.push(&frame(103.35, 0.5), None, None);
        let gap = history.gaps.back().unwrap();
        assert_eq!((ms(gap.from), ms(gap.to)), (102_750, 102_850));
        let (all, gaps) =
            (history.all().unwrap(), history.gaps.iter().map(|gap| gap.to - gap.from));
        let covered = all.sum.clock.seconds(all.sum.ticks);
        assert_eq!(ms(covered + gaps.sum::<f64>()), ms(all.to - all.from));
        (1..=12).for_each(|n| history.push(&frame(103.35 + f64::from(n), 1.0), None, None));
        assert!(history.gaps.is_empty());
    }

    #[test]
    fn sessions_have_their_time_in_the_points_of_the_charts() {
        let mut history = history([]);
        for n in 1..=25u32 {
            let mut frame = frame(100.0 + f64::from(n), 1.0);
            if n != 20 {
                frame.sessions.push(session(7, f64::from(n) / 100.0));
            }
            history.push(&frame, None, None);
            if n == 22 {
                history.silent("it ended");
            }
        }
        let all = history.all().unwrap();
        let rankings = history.rankings(&all.points, None);
        assert_eq!(rankings.iter().map(|one| one.id).collect::<Vec<_>>(), ["sessions"]);
        let row = &rankings[0].rows[0];
        assert_eq!(row.name, "shop (7, app@orders)");
        for (point, time) in all.points.iter().zip(&row.seconds) {
            let n = (point.start - 99.0).round();
            let expected = if n == 20.0 || point.seconds == 0.0 { 0.0 } else { n / 100.0 };
            assert!((time - expected).abs() < 1e-9, "{n}: {time}");
        }
        assert_eq!(rankings[0].axis.time.len(), all.points.len());
    }

    #[test]
    fn a_clock_that_was_set_back_begins_again() {
        assert_eq!(history([(101.0, 1.0), (100.96, 1.0)]).all().unwrap().points.len(), 2);
        let history = history([(101.0, 1.0), (100.9, 1.0)]);
        let all = history.all().unwrap();
        assert_eq!((all.points.len(), history.marks[0].kind.as_str()), (1, "clock step"));
    }

    #[test]
    fn the_last_events_are_kept_and_the_columns_are_of_handling_alone() {
        let mut history = history([]);
        let row = |number| Row {
            number,
            time: None,
            pid: 0,
            process: None,
            database: None,
            user: None,
            kind: EventKind::Note,
            text: String::new(),
            payload: None,
            lost: 0,
        };
        (0..6).for_each(|n| history.note((n * 100..n * 100 + 100).map(row).collect()));
        assert_eq!((history.events.len(), history.events[0].number), (EVENTS, 100));
        let mut frame = frame(101.0, 1.0);
        for (name, n) in [("command::Query::read", 5), ("command::Query::handle", 3)] {
            let stat = segment::directory::Stat::new(
                name.into(),
                segment::directory::StatKind::Timer,
                "ticks".into(),
            );
            let mut total = segment::delta::Total::default();
            total.histogram.add(1000, n);
            let process = "client backend".into();
            frame.statistics.push(segment::frame::FrameStat {
                process,
                stat: Arc::new(stat),
                total,
            });
        }
        history.push(&frame, None, None);
        let counts = history
            .all()
            .unwrap()
            .latency
            .iter()
            .map(|moment| moment.histogram.buckets().map(|bucket| bucket.1).sum::<u64>())
            .collect::<Vec<_>>();
        assert_eq!(counts, [3]);
    }
}
