// SPDX-License-Identifier: PostgreSQL
//! The frames of a range, one after the other.

use crate::error::Error;
use crate::index::Index;
use crate::range::Range;
use crate::recording::Recording;
use crate::rows::{FrameRow, SessionsRow};
use crate::series::Series;
use crate::statistics::{HistogramRow, StatRow};
use crate::sum::SeriesSum;
use crate::totals::StatTotals;
use segment::delta::Extreme;
use segment::frame::FrameStat;
use segment::{Frame, Population};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of intervals to read at a time.
const CHUNK: usize = 3600;
const HOUR_US: i64 = 3_600_000_000;

/// Frames in chronological order.
#[derive(Debug)]
pub struct Frames<'r> {
    recording: &'r Recording,
    index: Index<'static>,
    /// The length of a frame, microseconds.
    step: Option<i64>,
    /// Index of the next interval to read.
    next: usize,
    ready: VecDeque<Frame>,
    /// The number of a step and its frame so far, to which the next frames of the step are added.
    open: Option<(i64, Frame)>,
}

impl Recording {
    /// The frames of a range. With a step, the intervals of one step of time ([`crate::step_of`]) are merged into one
    /// frame, which has histograms if the step is at least a detail interval.
    pub fn frames(&self, range: Range, step: Option<Duration>) -> Result<Frames<'_>, Error> {
        Ok(Frames {
            recording: self,
            index: self.index(range)?,
            step: step.map(|step| i64::try_from(step.as_micros()).unwrap_or(i64::MAX).max(1)),
            next: 0,
            ready: VecDeque::new(),
            open: None,
        })
    }
}

/// The static name of a state.
fn state(name: &str) -> &'static str {
    let states = ["active", "idle", "idle in transaction", "background"];
    states.into_iter().find(|known| *known == name).unwrap_or("dead")
}

/// Rows of some intervals, by their numbers.
#[derive(Default)]
struct FrameRows {
    statistics: HashMap<u64, Vec<StatRow>>,
    histograms: HashMap<u64, Vec<(Arc<Series>, SeriesSum)>>,
    population: HashMap<u64, Vec<Population>>,
}

impl Frames<'_> {
    /// Number of remaining intervals.
    pub fn len(&self) -> usize {
        self.ready.len() + self.index.frames.len() - self.next
    }

    /// Whether no frames remain.
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.open.is_none()
    }

    fn has_histograms(&self) -> bool {
        let detail = i64::try_from(self.recording.about().detail_ns / 1000).unwrap_or(i64::MAX);
        self.step.is_some_and(|step| step >= detail)
    }

    fn read_chunk(&mut self) -> Result<(), Error> {
        let rows = &self.index.frames[self.next..];
        let Some(first) = rows.first() else { return Ok(()) };
        let hour = |row: &FrameRow| row.time_us.div_euclid(HOUR_US);
        let length = rows.iter().take(CHUNK).take_while(|row| hour(row) == hour(first)).count();
        let rows = &rows[..length.max(1)];
        let chunk = self.chunk(rows)?;
        self.next += rows.len();
        let number = |row: &FrameRow| self.step.map(|step| row.step(step));
        let frames: Vec<(Option<i64>, Frame)> =
            rows.iter().filter_map(|row| Some((number(row), self.frame(row, &chunk)?))).collect();
        for (number, frame) in frames {
            self.take(number, frame);
        }
        Ok(())
    }

    fn chunk(&self, rows: &[FrameRow]) -> Result<FrameRows, Error> {
        let times = || rows.iter().map(|row| row.time_us);
        let range =
            Range { from_us: times().min().unwrap_or(0) - 1, to_us: times().max().unwrap_or(0) };
        let numbers = (rows.first(), rows.last());
        let (Some(first), Some(last)) = numbers else { return Ok(FrameRows::default()) };
        let within = |frame: u64| (first.frame..=last.frame).contains(&frame);
        let mut chunk = FrameRows::default();
        let add = |row: StatRow| {
            if within(row.frame) {
                chunk.statistics.entry(row.frame).or_default().push(row);
            }
        };
        self.recording.each_row(range, add)?;
        for row in self.recording.rows::<SessionsRow>(range)? {
            chunk.population.entry(row.frame).or_default().push(Population {
                process: row.process,
                state: state(&row.state),
                sessions: row.sessions,
            });
        }
        if self.has_histograms() {
            self.recording.each_row(range, |row: HistogramRow| {
                let mut sum = SeriesSum::default();
                sum.add_histogram(&row);
                chunk.histograms.entry(row.frame).or_default().push((row.series, sum));
            })?;
        }
        Ok(chunk)
    }

    fn frame(&self, row: &FrameRow, chunk: &FrameRows) -> Option<Frame> {
        let mut frame = self.index.frame_of(&[row])?;
        let rate = frame.clock.ticks_per_second;
        let has_histograms = self.has_histograms();
        let mut histograms: HashMap<&Arc<Series>, &SeriesSum> = chunk
            .histograms
            .get(&row.frame)
            .into_iter()
            .flatten()
            .map(|(s, sum)| (s, sum))
            .collect();
        let rows = chunk.statistics.get(&row.frame).into_iter().flatten();
        let mut add = |series: &Arc<Series>, sum: SeriesSum| {
            let mut total = sum.total(series, rate);
            // The minimum and maximum come with the last interval of the detail.
            for extreme in [&mut total.change.min, &mut total.change.max] {
                if has_histograms && *extreme == Extreme::Unknown {
                    *extreme = Extreme::None;
                }
            }
            let (process, stat) = (series.process.clone(), series.stat.clone());
            frame.statistics.push(FrameStat { process, stat, total });
        };
        for row in rows {
            let mut sum = histograms.remove(&row.series).cloned().unwrap_or_default();
            sum.totals = StatTotals::from_row(row);
            add(&row.series, sum);
        }
        // Histograms of earlier intervals of the detail, without events in the last one.
        for (series, sum) in histograms {
            add(series, sum.clone());
        }
        if let Some(population) = chunk.population.get(&row.frame) {
            frame.population.clone_from(population);
        }
        Some(frame)
    }

    /// `number`: the number of the frame's step, if there are steps.
    fn take(&mut self, number: Option<i64>, frame: Frame) {
        let Some(number) = number else {
            self.ready.push_back(frame);
            return;
        };
        match &mut self.open {
            Some((known, open)) if *known == number => open.merge(&frame),
            open => self.ready.extend(open.replace((number, frame)).map(|(_, frame)| frame)),
        }
    }
}

impl Iterator for Frames<'_> {
    type Item = Result<Frame, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && self.next < self.index.frames.len() {
            if let Err(error) = self.read_chunk() {
                // Another attempt would also fail.
                self.next = self.index.frames.len();
                return Some(Err(error));
            }
        }
        self.ready.pop_front().or_else(|| self.open.take().map(|(_, frame)| frame)).map(Ok)
    }
}
