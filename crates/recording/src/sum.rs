// SPDX-License-Identifier: PostgreSQL
//! The sum of all intervals of a range.

use crate::error::Error;
use crate::index::{ticks, Index};
use crate::merge;
use crate::range::Range;
use crate::recording::Recording;
use crate::rows::FrameRow;
use crate::series::Series;
use crate::statement;
use crate::statistics::{HistogramRow, StatRow};
use crate::table::{columns, unsigned, Column, Columns};
use segment::delta::{Change, Extreme, Total};
use segment::frame::FrameStat;
use segment::{Frame, Histogram};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The distribution of the values of some series in a detail interval.
#[derive(Debug, Clone)]
pub struct Latency {
    /// Its end, microseconds since 1970.
    pub time_us: i64,
    /// Its recorded time, ns, without gaps.
    pub interval_ns: u64,
    /// The unit of the histogram of times, seconds.
    pub seconds_per_tick: f64,
    /// The values: times in ticks, or numbers.
    pub histogram: Histogram,
}

/// Sums of some series in some intervals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatTotals {
    /// Events that ended.
    pub count: u64,
    /// Time in ns, or the sum of values in the series' unit.
    pub total: u64,
    /// Bytes.
    pub amount: u64,
    /// Events that continued where the event before had ended.
    pub follows: u64,
}

impl StatTotals {
    pub(crate) fn of(row: &StatRow) -> StatTotals {
        let StatRow { count, total, amount, follows, .. } = *row;
        StatTotals { count, total, amount, follows }
    }

    pub(crate) fn add(&mut self, more: StatTotals) {
        self.count = self.count.saturating_add(more.count);
        self.total = self.total.saturating_add(more.total);
        self.amount = self.amount.saturating_add(more.amount);
        self.follows = self.follows.saturating_add(more.follows);
    }
}

/// The sum of one series.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sum {
    pub totals: StatTotals,
    min: Option<u64>,
    max: Option<u64>,
    histogram: Histogram,
}

impl Sum {
    /// The sum in ticks.
    pub fn total(self, series: &Series, ticks_per_second: f64) -> Total {
        let scale = |n| if series.is_time() { ticks(n, ticks_per_second) } else { n };
        // The extremes of some of the values are given, but not of none.
        let extreme = |known: Option<u64>| match known {
            _ if self.totals.count == 0 && known.is_none() => Extreme::None,
            Some(n) => Extreme::Of(scale(n)),
            None => Extreme::Unknown,
        };
        Total {
            change: Change {
                count: self.totals.count,
                total: scale(self.totals.total),
                min: extreme(self.min),
                max: extreme(self.max),
                amount: self.totals.amount,
                follows: self.totals.follows,
            },
            histogram: self.histogram,
        }
    }

    pub fn add_histogram(&mut self, row: &HistogramRow) {
        merge::min(&mut self.min, row.min);
        merge::max(&mut self.max, row.max);
        self.histogram.merge(&statement::histogram(&row.buckets, &row.counts));
    }
}

/// The sums of one run of a server.
#[derive(Debug, Default)]
struct Sums {
    positions: HashMap<Arc<Series>, usize>,
    sums: Vec<(Arc<Series>, Sum)>,
}

impl Sums {
    fn position(&mut self, series: &Arc<Series>) -> usize {
        if let Some(&at) = self.positions.get(series) {
            return at;
        }
        self.positions.insert(series.clone(), self.sums.len());
        self.sums.push((series.clone(), Sum::default()));
        self.sums.len() - 1
    }

    fn of(&mut self, series: &Arc<Series>) -> &mut Sum {
        let at = self.position(series);
        &mut self.sums[at].1
    }
}

/// The columns of `statistics` that are summed.
pub(crate) fn number_columns() -> Vec<Column> {
    columns::<StatRow>(&["frame", "series", "count", "total", "bytes", "follows"])
}

/// These columns of a row group.
pub(crate) struct Numbers<'c> {
    pub frame: &'c [i64],
    pub series: &'c [i64],
    /// The columns of [`StatTotals`].
    totals: [&'c [i64]; 4],
}

impl<'c> Numbers<'c> {
    /// `None`: a column is missing or too short.
    pub fn of(columns: &'c Columns) -> Option<Numbers<'c>> {
        let column = |name| {
            let cells = columns.longs(name);
            (cells.len() == columns.rows).then_some(cells)
        };
        Some(Numbers {
            frame: column("frame")?,
            series: column("series")?,
            totals: [column("count")?, column("total")?, column("bytes")?, column("follows")?],
        })
    }

    pub fn totals(&self, row: usize) -> StatTotals {
        let [count, total, amount, follows] = self.totals.map(|cells| unsigned(cells[row]));
        StatTotals { count, total, amount, follows }
    }
}

impl Recording {
    /// The sum of all intervals of a range, with histograms.
    pub fn sum(&self, range: Range) -> Result<Frame, Error> {
        let index = self.index(range)?;
        self.report_missing(&index, range);
        let mut sums: BTreeMap<u32, Sums> = BTreeMap::new();
        let see = |columns: &Columns| add_columns(&mut sums, &index, columns);
        let journal = self.each_columns::<StatRow>(range, &number_columns(), see)?;
        for row in &journal.statistics {
            if let Some(head) = index.get(row.frame) {
                let sum = sums.entry(head.server).or_default().of(&row.series);
                sum.totals.add(StatTotals::of(row));
            }
        }
        self.each_row(range, |row: HistogramRow| {
            if let Some(head) = index.get(row.frame) {
                sums.entry(head.server).or_default().of(&row.series).add_histogram(&row);
            }
        })?;
        let mut whole: Option<Frame> = None;
        for frames in runs(&index) {
            let Some(mut frame) = index.frame_of(&frames) else { continue };
            let server = frames.last().map_or(0, |row| row.server);
            let rate = frame.clock.ticks_per_second;
            for (series, sum) in sums.remove(&server).unwrap_or_default().sums {
                let total = sum.total(&series, rate);
                if !total.change.is_zero() {
                    let (process, stat) = (series.process.clone(), series.stat.clone());
                    frame.statistics.push(FrameStat { process, stat, total });
                }
            }
            match &mut whole {
                Some(whole) => whole.merge(&frame),
                None => whole = Some(frame),
            }
        }
        whole.ok_or_else(|| Error::Empty { path: self.directory().to_path_buf() })
    }

    /// The distribution of all values of the wanted series in each detail interval.
    pub fn latencies(
        &self,
        range: Range,
        wanted: impl Fn(&Series) -> bool,
    ) -> Result<Vec<Latency>, Error> {
        let index = self.index(range)?;
        let mut latencies: BTreeMap<u64, Latency> = BTreeMap::new();
        // An interval without values of the wanted series counts too.
        self.each_row(range, |row: HistogramRow| {
            let latency = latencies.entry(row.frame).or_insert_with(|| Latency {
                time_us: row.time_us,
                interval_ns: 0,
                seconds_per_tick: 1.0 / index.ticks_per_second(row.frame),
                histogram: Histogram::new(),
            });
            if wanted(&row.series) {
                latency.histogram.merge(&statement::histogram(&row.buckets, &row.counts));
            }
        })?;
        let mut frames = index.frames.iter().peekable();
        for (frame, latency) in &mut latencies {
            while let Some(head) = frames.next_if(|head| head.frame <= *frame) {
                latency.interval_ns = latency.interval_ns.saturating_add(head.interval_ns);
            }
        }
        Ok(latencies.into_values().collect())
    }
}

/// The intervals of each run of a server, in the order of the runs.
fn runs(index: &Index) -> Vec<Vec<&FrameRow>> {
    let mut runs: BTreeMap<u32, Vec<&FrameRow>> = BTreeMap::new();
    for row in &index.frames {
        runs.entry(row.server).or_default().push(row);
    }
    runs.into_values().collect()
}

/// Add a row group of a file.
fn add_columns(sums: &mut BTreeMap<u32, Sums>, index: &Index, columns: &Columns) {
    let Some(numbers) = Numbers::of(columns) else { return };
    // The rows of a series are adjacent, and so are those of a run of the server.
    let mut at: Option<(i64, u32, usize)> = None;
    for row in 0..columns.rows {
        let Some(head) = index.get(unsigned(numbers.frame[row])) else { continue };
        let number = numbers.series[row];
        let position = match at {
            Some((series, server, at)) if (series, server) == (number, head.server) => at,
            _ => {
                let Some(series) = columns.series.get(unsigned(number) as usize) else { continue };
                let position = sums.entry(head.server).or_default().position(series);
                at = Some((number, head.server, position));
                position
            }
        };
        let Some(sums) = sums.get_mut(&head.server) else { continue };
        sums.sums[position].1.totals.add(numbers.totals(row));
    }
}
