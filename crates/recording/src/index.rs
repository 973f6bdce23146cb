// SPDX-License-Identifier: PostgreSQL
//! The intervals of a range by number, and frames without statistics that are made from them.

use crate::commit::Commit;
use crate::error::Error;
use crate::range::Range;
use crate::recording::Recording;
use crate::rows::{FrameRow, ServerRow};
use crate::statistics::StatRow;
use crate::table::{columns, Cell, Table};
use segment::interval::{ClockInfo, ServerInfo};
use segment::kernel::KernelView;
use segment::{ClockKind, Frame, Level, Overflows, Population};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// Intervals by number, and runs of the server.
#[derive(Debug)]
pub(crate) struct Index<'f> {
    /// Intervals by number.
    pub frames: Cow<'f, [FrameRow]>,
    pub servers: HashMap<u32, ServerRow>,
    first: u64,
    /// The run of the server of each interval, in a separate array, because millions of rows look it up.
    runs: Vec<u32>,
    /// The position in `frames` of each number, plus one; empty if the numbers are too sparse.
    positions: Vec<u32>,
}

impl<'f> Index<'f> {
    fn new(mut frames: Cow<'f, [FrameRow]>, servers: Vec<ServerRow>) -> Index<'f> {
        if !frames.is_sorted_by(|a, b| a.frame < b.frame) {
            let mut sorted = frames.into_owned();
            sorted.sort_by_key(|row| row.frame);
            sorted.dedup_by_key(|row| row.frame);
            frames = Cow::Owned(sorted);
        }
        let first = frames.first().map_or(0, |row| row.frame);
        let positions = positions(frames.iter().map(|row| row.frame));
        let servers = servers.into_iter().map(|row| (row.server, row)).collect();
        let runs = frames.iter().map(|row| row.server).collect();
        Index { frames, servers, first, runs, positions }
    }

    /// The position of an interval in `frames`.
    pub fn position(&self, frame: u64) -> Option<usize> {
        if self.positions.is_empty() {
            return self.frames.binary_search_by_key(&frame, |row| row.frame).ok();
        }
        position(&self.positions, self.first, frame)
    }

    /// The interval of this number.
    pub fn get(&self, frame: u64) -> Option<&FrameRow> {
        self.frames.get(self.position(frame)?)
    }

    /// The run of the server of the interval of this number.
    pub fn run(&self, frame: u64) -> Option<u32> {
        self.runs.get(self.position(frame)?).copied()
    }

    /// Ticks per second in the interval of this number.
    pub fn ticks_per_second(&self, frame: u64) -> f64 {
        self.get(frame).map_or(1e9, |row| rate(row.ticks_per_second))
    }

    /// The frame of consecutive intervals of one run of a server, without statistics. `None`: no
    /// intervals.
    pub fn frame_of(&self, frames: &[&FrameRow]) -> Option<Frame> {
        let last = frames.last()?;
        let server = self.servers.get(&last.server);
        let rate = rate(last.ticks_per_second);
        let sum = |of: fn(&FrameRow) -> u64| {
            frames.iter().fold(0u64, |sum, row| sum.saturating_add(of(row)))
        };
        let ticks = |of| ticks(sum(of), rate);
        Some(Frame {
            realtime_ns: u64::try_from(last.time_us).unwrap_or(0).saturating_mul(1000),
            monotonic_ns: last.monotonic_ns,
            ticks: ticks(|row| row.interval_ns),
            clock: ClockInfo { kind: clock_kind(server).name(), ticks_per_second: rate },
            level: level(&last.level),
            level_end: last.level_left_ns.map(|left| segment::frame::LevelRemaining {
                left: self::ticks(left, rate),
                then: level(last.level_then.as_deref().unwrap_or_default()),
            }),
            server: server_info(server),
            cores: last.cores as usize,
            wall: ticks(|row| row.wall_ns),
            locks_ticks: ticks(|row| row.locks_ns),
            torn_sessions: frames.iter().map(|row| row.torn_sessions).max().unwrap_or(0) as usize,
            nameless: frames.iter().map(|row| row.nameless).max().unwrap_or(0),
            overflow: Overflows::default(),
            overflow_in_interval: FrameRow::overflows(sum),
            memory: None,
            functions_probed: last.functions_probed as usize,
            sessions: Vec::new(),
            population: population(last),
            ended_sessions: sum(|row| row.ended_sessions),
            ended_ticks: ticks(|row| row.ended_ns),
            ended_origins: Vec::new(),
            client_waits: Vec::new(),
            statistics: Vec::new(),
            kernel: KernelView::unavailable(
                "in a recording, the kernel's figures are not part of the intervals",
            ),
        })
    }
}

/// The position of each of these ascending numbers, plus one, from the first number on; empty if they are too sparse.
fn positions(
    numbers: impl ExactSizeIterator<Item = u64> + DoubleEndedIterator + Clone,
) -> Vec<u32> {
    let (Some(first), Some(last)) = (numbers.clone().next(), numbers.clone().next_back()) else {
        return Vec::new();
    };
    let span = (last - first) as usize + 1;
    let mut positions = Vec::new();
    if span <= 64 * numbers.len() + 1024 {
        positions.resize(span, 0);
        for (at, number) in (1u32..).zip(numbers) {
            if let Some(position) = positions.get_mut((number - first) as usize) {
                *position = at;
            }
        }
    }
    positions
}

/// What the sums of statements need of an interval, of which a whole row takes ten times the memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IntervalRate {
    pub frame: u64,
    pub time_us: i64,
    pub server: u32,
    pub ticks_per_second: f64,
    pub statements_kept: u64,
    pub statements_capacity: u64,
    pub statements_evicted: u64,
}

/// Ticks per second in the intervals of a range.
#[derive(Debug)]
pub(crate) struct TickRates {
    /// The numbers of the intervals, if they are too sparse for `positions`.
    numbers: Vec<u64>,
    first: u64,
    /// As in [`Index`].
    positions: Vec<u32>,
    rates: Vec<f64>,
}

impl TickRates {
    /// Those of these intervals, whose numbers ascend.
    pub fn of_intervals(intervals: &[IntervalRate]) -> TickRates {
        let numbers = intervals.iter().map(|interval| interval.frame);
        let positions = positions(numbers.clone());
        TickRates {
            numbers: if positions.is_empty() { numbers.collect() } else { Vec::new() },
            first: intervals.first().map_or(0, |interval| interval.frame),
            positions,
            rates: intervals.iter().map(|interval| interval.ticks_per_second).collect(),
        }
    }

    /// Ticks per second in the interval of this number.
    pub fn ticks_per_second(&self, frame: u64) -> f64 {
        let at = match self.positions.is_empty() {
            true => self.numbers.binary_search(&frame).ok(),
            false => position(&self.positions, self.first, frame),
        };
        at.and_then(|at| self.rates.get(at)).copied().unwrap_or(1e9)
    }
}

fn position(positions: &[u32], first: u64, frame: u64) -> Option<usize> {
    let at = usize::try_from(frame.checked_sub(first)?).ok()?;
    (*positions.get(at)? as usize).checked_sub(1)
}

fn rate(ticks_per_second: f64) -> f64 {
    // Other values are corrupt.
    Some(ticks_per_second).filter(|rate| *rate >= 1.0 && rate.is_finite()).unwrap_or(1e9)
}

/// Converts nanoseconds to ticks.
pub(crate) fn ticks(ns: u64, ticks_per_second: f64) -> u64 {
    if ticks_per_second == 1e9 {
        return ns;
    }
    (ns as f64 * ticks_per_second * 1e-9).round() as u64
}

fn level(name: &str) -> Level {
    name.parse().unwrap_or_else(|_| {
        let number = name.strip_prefix("level ").and_then(|number| number.parse().ok());
        Level::Other(number.unwrap_or(u8::MAX))
    })
}

/// The clock of a run of a server.
pub(crate) fn clock_kind(server: Option<&ServerRow>) -> ClockKind {
    server.and_then(|row| ClockKind::of_name(&row.clock)).unwrap_or(ClockKind::Monotonic)
}

fn server_info(server: Option<&ServerRow>) -> ServerInfo {
    let known = |n: u32| (n != 0).then_some(n);
    let text = |of: fn(&ServerRow) -> &Arc<str>| server.map_or("", |row| &**of(row)).to_string();
    ServerInfo {
        name: text(|row| &row.name),
        host: text(|row| &row.data_directory),
        segment: text(|row| &row.segment),
        pid: server.and_then(|row| known(row.pid)),
        port: server.and_then(|row| known(row.port)),
        producer: text(|row| &row.producer),
        created: server.map_or(0.0, |row| row.created_us as f64 * 1e-6),
    }
}

/// The sessions of an interval's row; the table `sessions` has them by kind of process.
fn population(row: &FrameRow) -> Vec<Population> {
    [
        ("client backend", "active", row.sessions_active),
        ("client backend", "idle", row.sessions_idle),
        ("client backend", "idle in transaction", row.sessions_idle_in_transaction),
        ("background", "background", row.sessions_background),
        ("client backend", "dead", row.sessions_dead),
    ]
    .into_iter()
    .filter(|(.., sessions)| *sessions > 0)
    .map(|(process, state, sessions)| Population { process: process.into(), state, sessions })
    .collect()
}

impl Recording {
    /// The intervals of a range.
    pub(crate) fn index(&self, range: Range) -> Result<Index<'static>, Error> {
        Ok(Index::new(self.frame_rows(range)?.into(), self.servers()?))
    }

    /// What the sums of statements need of the intervals of a range, in the order of their numbers.
    pub(crate) fn interval_rates(&self, range: Range) -> Result<Vec<IntervalRate>, Error> {
        let names = [
            "frame",
            "time",
            "server",
            "ticks_per_second",
            "statements_kept",
            "statements_capacity",
            "statements_evicted",
        ];
        let mut intervals = Vec::new();
        let mut add = |interval: IntervalRate| {
            if range.contains(interval.time_us) {
                let ticks_per_second = rate(interval.ticks_per_second);
                intervals.push(IntervalRate { ticks_per_second, ..interval });
            }
        };
        let wanted = columns::<FrameRow>(&names);
        let journal = self.each_columns::<FrameRow>(range, &wanted, |columns| {
            let [frame, time, server, rate, kept, capacity, evicted] =
                names.map(|name| columns.find(name));
            (0..columns.rows).for_each(|row| {
                add(IntervalRate {
                    frame: Cell::get(frame, row),
                    time_us: Cell::get(time, row),
                    server: Cell::get(server, row),
                    ticks_per_second: Cell::get(rate, row),
                    statements_kept: Cell::get(kept, row),
                    statements_capacity: Cell::get(capacity, row),
                    statements_evicted: Cell::get(evicted, row),
                })
            });
        })?;
        for row in &journal.frames {
            add(IntervalRate {
                frame: row.frame,
                time_us: row.time_us,
                server: row.server,
                ticks_per_second: row.ticks_per_second,
                statements_kept: row.statements_kept,
                statements_capacity: row.statements_capacity,
                statements_evicted: row.statements_evicted,
            });
        }
        intervals.sort_by_key(|interval| interval.frame);
        intervals.dedup_by_key(|interval| interval.frame);
        Ok(intervals)
    }

    /// These intervals.
    pub(crate) fn index_of<'f>(&self, frames: &'f [FrameRow]) -> Result<Index<'f>, Error> {
        Ok(Index::new(frames.into(), self.servers()?))
    }

    /// Report missing files: intervals with active sessions but without statistics.
    pub(crate) fn report_missing(&self, index: &Index<'_>, range: Range) {
        let commit = match Commit::unfinished(&self.store) {
            Ok(commit) => commit,
            Err(error) => return self.problem(error.to_string()),
        };
        let files = |table| commit.applied_to(&self.store, table, self.store.files(table));
        let statistics = files(StatRow::NAME);
        for (file, path) in files(FrameRow::NAME) {
            // While an hour is being replaced in a bucket, its statistics arrive first.
            let same = statistics.iter().any(|(other, _)| {
                (&other.date, &other.time, other.compaction)
                    == (&file.date, &file.time, file.compaction)
                    || other.hour() == file.hour() && other.compaction > file.compaction
            });
            let lived = |row: &FrameRow| {
                row.wall_ns > 0 && (file.begin_us..=file.end_us()).contains(&row.time_us)
            };
            // The recorder may be replacing the file at this moment.
            let wanted = !same && range.meets(file.begin_us, file.end_us()) && path.exists();
            if wanted && index.frames.iter().any(lived) {
                let begin = format!("{}, {}", file.date, file.time);
                self.problem(format!("the statistics file that begins at {begin} is missing"));
            }
        }
    }
}
