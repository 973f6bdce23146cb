// SPDX-License-Identifier: PostgreSQL
//! The last minutes in memory, for the page.
//!
//! Intervals are kept as points of the charts and summed in blocks; the oldest block is dropped when
//! there are too many. So tables and charts cover the same time, and memory is bounded.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use segment::{Frame, Histogram, Interval, Statements};
use view::HostMetrics;

use report::material::{Latency, Moment};
use report::point::{Figures, Point};
use view::document::{Gap, Mark};
use view::events::Row;

/// Blocks that are kept in addition to the current one.
const BLOCKS: u32 = 10;
/// Events that are kept.
const EVENTS: usize = 500;
/// Marks and gaps that are kept.
const NOTES: usize = 200;
/// A clock that goes back by more than this was set, seconds.
const SET_BACK: f64 = 0.05;
/// Time between two intervals is a gap if it is longer than this share of an interval.
const SLACK: f64 = 0.5;

/// The last minutes.
#[derive(Debug)]
pub struct History {
    /// Length of a block, seconds.
    block: f64,
    /// Length of a column of the heat map, seconds.
    detail: f64,
    blocks: VecDeque<Block>,
    /// Sum of all blocks but the current one.
    closed: Option<Frame>,
    latency: Option<Latency>,
    /// Events, oldest first.
    pub events: VecDeque<Row>,
    /// Marks on the charts.
    pub marks: VecDeque<Mark>,
    /// Where nothing was measured.
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
    /// The statements at its start.
    statements: Option<Arc<Statements>>,
    points: Vec<Point>,
    moments: Vec<Moment>,
    latency: Vec<Latency>,
}

impl Block {
    fn new(begin: f64, statements: Option<Arc<Statements>>) -> Block {
        let (points, moments, latency) = (Vec::new(), Vec::new(), Vec::new());
        Block { begin, sum: None, statements, points, moments, latency }
    }
}

impl History {
    /// A history of at least `length`, with heat map columns of `detail`.
    pub fn new(length: Duration, detail: Duration) -> History {
        History {
            block: length.as_secs_f64() / f64::from(BLOCKS),
            detail: detail.as_secs_f64(),
            blocks: VecDeque::new(),
            closed: None,
            latency: None,
            events: VecDeque::new(),
            marks: VecDeque::new(),
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
        statements: Option<Arc<Statements>>,
    ) {
        let interval = Interval::of(frame);
        let (end, length) = (interval.time, interval.interval_seconds);
        if self.end.is_some_and(|last| end < last - SET_BACK) {
            self.forget();
            self.mark(
                end,
                "clock step",
                "the time of day was set back; earlier intervals are dropped",
            );
        }
        let begin = self.end.map_or(end - length, |last| last.max(end - length));
        let reason = self.silence.take().map(|(_, why)| why);
        if let Some(last) = self.end.filter(|last| begin - last > SLACK * length) {
            let reason = reason.unwrap_or_else(|| "the machine slept".to_string());
            self.gap(last, begin, reason);
        }
        if self.level.replace(interval.level).is_some_and(|level| level != interval.level) {
            self.mark(end, "level", &interval.level.to_string());
        }
        if self.blocks.back().is_none_or(|block| begin >= block.begin + self.block) {
            self.turn(begin, statements);
        }
        self.spread(frame, begin, length);
        let Some(block) = self.blocks.back_mut() else { return };
        let measured = interval.instrumented_seconds;
        let figures = (measured > 0.0).then(|| Figures {
            host,
            sessions: sessions(frame),
            ..Figures::of(&interval)
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

    /// Starts a new block and drops the oldest.
    fn turn(&mut self, begin: f64, statements: Option<Arc<Statements>>) {
        self.blocks.push_back(Block::new(begin, statements));
        if self.blocks.len() > BLOCKS as usize + 1 {
            self.blocks.pop_front();
        }
        let first = self.blocks.front().map_or(begin, |block| block.begin);
        self.gaps.retain(|gap| gap.to > first);
        self.marks.retain(|mark| mark.until.unwrap_or(mark.time) >= first);
        self.closed = None;
        let count = self.blocks.len();
        for sum in self.blocks.iter().take(count - 1).filter_map(|block| block.sum.as_ref()) {
            match &mut self.closed {
                Some(closed) => closed.merge(sum),
                None => self.closed = Some(sum.clone()),
            }
        }
    }

    /// Adds the times of commands to the current column of the heat map.
    fn spread(&mut self, frame: &Frame, begin: f64, length: f64) {
        let seconds_per_tick = 1.0 / frame.clock.ticks_per_second;
        let done = |it: &mut Latency| {
            it.seconds + length / 2.0 > self.detail || begin > it.start + self.detail
        };
        if let Some(full) = self.latency.take_if(|it| done(it)) {
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
        for it in &frame.statistics {
            if it.stat.command().is_some_and(|(_, handle)| handle) {
                column.histogram.merge(&it.total.histogram);
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

    /// Why there is nothing to read now.
    pub fn silence(&self) -> Option<&str> {
        self.silence.as_ref().map(|(_, why)| why.as_str())
    }

    /// Another run of the server is being read.
    pub fn restarted(&mut self, what: &str) {
        self.latency = None;
        if self.end.is_some() {
            self.mark(segment::clock::realtime_ns() as f64 * 1e-9, "server start", what);
        }
    }

    /// Replaces the statements of an earlier run in all blocks.
    pub fn forget_statements(&mut self, now: Option<&Arc<Statements>>) {
        for block in &mut self.blocks {
            block.statements = now.cloned();
        }
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

    /// Adds a gap: nothing was measured in this time.
    pub fn gap(&mut self, from: f64, to: f64, reason: String) {
        if let Some(block) = self.blocks.back_mut() {
            block.points.push(Point { start: from, seconds: 0.0, figures: None });
            block.moments.push(Moment { start: from, ..Moment::default() });
        }
        self.gaps.push_back(Gap { from, to, reason });
        self.gaps.drain(..self.gaps.len().saturating_sub(NOTES));
    }

    fn forget(&mut self) {
        *self = History {
            blocks: VecDeque::new(),
            closed: None,
            latency: None,
            end: None,
            gaps: VecDeque::new(),
            marks: VecDeque::new(),
            events: std::mem::take(&mut self.events),
            silence: self.silence.take(),
            ..*self
        };
    }

    /// Everything that is kept; `None` if there is nothing yet.
    pub fn all(&self) -> Option<Kept<'_>> {
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
        let statements = first.statements.as_deref();
        Some(Kept { from, to, sum, gaps, points, moments, latency, statements })
    }

    fn each<'h, T: 'h>(
        &'h self,
        of: impl Fn(&'h Block) -> &'h Vec<T>,
    ) -> impl Iterator<Item = &'h T> {
        self.blocks.iter().flat_map(of)
    }
}

/// Everything that is kept.
#[derive(Debug)]
pub struct Kept<'h> {
    /// Start, seconds since 1970.
    pub from: f64,
    /// End, seconds since 1970.
    pub to: f64,
    /// Sum of all intervals.
    pub sum: Frame,
    /// Where nothing was measured.
    pub gaps: Vec<Gap>,
    /// Figures of each interval.
    pub points: Vec<Point>,
    /// Commands and commits of each interval.
    pub moments: Vec<Moment>,
    /// Command latency.
    pub latency: Vec<Latency>,
    /// The statements at the start.
    pub statements: Option<&'h Statements>,
}

/// Processes by state, as in recordings.
fn sessions(frame: &Frame) -> Vec<(String, f64)> {
    let count = |state: &str| {
        let of = frame.population.iter().filter(|it| it.state == state);
        of.map(|it| f64::from(it.sessions)).sum::<f64>()
    };
    ["active", "idle", "idle in transaction"]
        .map(|state| (state.to_string(), count(state)))
        .to_vec()
}
