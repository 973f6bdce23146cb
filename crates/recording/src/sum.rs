// SPDX-License-Identifier: PostgreSQL
//! All intervals of a range added up.

use crate::error::Error;
use crate::index::{ticks, Index};
use crate::merge;
use crate::range::Range;
use crate::recording::Recording;
use crate::rows::FrameRow;
use crate::series::Series;
use crate::statement;
use crate::statistics::{HistogramRow, StatRow};
use crate::table::{columns, Column, Columns};
use segment::delta::{Change, Extreme, Total};
use segment::frame::FrameStat;
use segment::{Frame, Histogram};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// How the values of some series are spread in a detail interval.
#[derive(Debug, Clone)]
pub struct Latency {
    /// When it ended, microseconds since 1970.
    pub time_us: i64,
    /// Its length, ns; time of which nothing is known is not in it.
    pub interval_ns: u64,
    /// Seconds of a tick, of which the histogram is.
    pub seconds_per_tick: f64,
    /// The values; those of plain numbers are not of ticks.
    pub histogram: Histogram,
}

/// What one series did, as it is added up.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sum {
    pub count: u64,
    /// ns, or what the unit says.
    pub total: u64,
    pub amount: u64,
    pub follows: u64,
    min: Option<u64>,
    max: Option<u64>,
    histogram: Histogram,
}

impl Sum {
    /// What it means, in ticks.
    pub fn total(self, series: &Series, ticks_per_second: f64) -> Total {
        let scale = |n| if series.is_time() { ticks(n, ticks_per_second) } else { n };
        // The spread of a part of them is told, but not that of none.
        let extreme = |known: Option<u64>| match known {
            _ if self.count == 0 && known.is_none() => Extreme::None,
            Some(n) => Extreme::Of(scale(n)),
            None => Extreme::Unknown,
        };
        Total {
            change: Change {
                count: self.count,
                total: scale(self.total),
                min: extreme(self.min),
                max: extreme(self.max),
                amount: self.amount,
                follows: self.follows,
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
    places: HashMap<Arc<Series>, usize>,
    sums: Vec<(Arc<Series>, Sum)>,
}

impl Sums {
    fn place(&mut self, series: &Arc<Series>) -> usize {
        if let Some(&at) = self.places.get(series) {
            return at;
        }
        self.places.insert(series.clone(), self.sums.len());
        self.sums.push((series.clone(), Sum::default()));
        self.sums.len() - 1
    }

    fn of(&mut self, series: &Arc<Series>) -> &mut Sum {
        let at = self.place(series);
        &mut self.sums[at].1
    }
}

/// The columns of statistics that are added up.
pub(crate) fn number_columns() -> Vec<Column> {
    columns::<StatRow>(&["frame", "series", "count", "total", "bytes", "follows"])
}

/// The numbers of those columns.
pub(crate) struct Numbers<'c> {
    pub frame: &'c [i64],
    pub series: &'c [i64],
    pub count: &'c [i64],
    pub total: &'c [i64],
    pub amount: &'c [i64],
    pub follows: &'c [i64],
}

impl<'c> Numbers<'c> {
    /// `None`: one of them is missing or shorter than it should be.
    pub fn of(columns: &'c Columns) -> Option<Numbers<'c>> {
        let column = |name| {
            let cells = columns.longs(name);
            (cells.len() == columns.rows).then_some(cells)
        };
        Some(Numbers {
            frame: column("frame")?,
            series: column("series")?,
            count: column("count")?,
            total: column("total")?,
            amount: column("bytes")?,
            follows: column("follows")?,
        })
    }
}

fn natural(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

impl Recording {
    /// Everything that the intervals of a range hold, histograms too.
    pub fn sum(&self, range: Range) -> Result<Frame, Error> {
        let index = self.index(range)?;
        self.report_missing(&index, range);
        let mut sums: BTreeMap<u32, Sums> = BTreeMap::new();
        let see = |columns: &Columns| add_columns(&mut sums, &index, columns);
        let journal = self.each_columns::<StatRow>(range, &number_columns(), see)?;
        for row in &journal.statistics {
            if let Some(head) = index.get(row.frame) {
                let sum = sums.entry(head.server).or_default().of(&row.series);
                sum.count = sum.count.saturating_add(row.count);
                sum.total = sum.total.saturating_add(row.total);
                sum.amount = sum.amount.saturating_add(row.amount);
                sum.follows = sum.follows.saturating_add(row.follows);
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

    /// How the values of the wanted series, all together, are spread in each detail interval.
    pub fn latencies(
        &self,
        range: Range,
        wanted: impl Fn(&Series) -> bool,
    ) -> Result<Vec<Latency>, Error> {
        let index = self.index(range)?;
        let mut spreads: BTreeMap<u64, Latency> = BTreeMap::new();
        // Also where none of the wanted has done anything there is an interval.
        self.each_row(range, |row: HistogramRow| {
            let latency = spreads.entry(row.frame).or_insert_with(|| Latency {
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
        for (frame, latency) in &mut spreads {
            while let Some(head) = frames.next_if(|head| head.frame <= *frame) {
                latency.interval_ns = latency.interval_ns.saturating_add(head.interval_ns);
            }
        }
        Ok(spreads.into_values().collect())
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

/// Add a group of rows of a part.
fn add_columns(sums: &mut BTreeMap<u32, Sums>, index: &Index, columns: &Columns) {
    let Some(numbers) = Numbers::of(columns) else { return };
    // Rows of a series lie together, as do those of a run of the server.
    let mut at: Option<(i64, u32, usize)> = None;
    for row in 0..columns.rows {
        let Some(head) = index.get(natural(numbers.frame[row])) else { continue };
        let number = numbers.series[row];
        let place = match at {
            Some((series, server, place)) if (series, server) == (number, head.server) => place,
            _ => {
                let Some(series) = columns.series.get(natural(number) as usize) else { continue };
                let place = sums.entry(head.server).or_default().place(series);
                at = Some((number, head.server, place));
                place
            }
        };
        let Some(sums) = sums.get_mut(&head.server) else { continue };
        let sum = &mut sums.sums[place].1;
        sum.count = sum.count.saturating_add(natural(numbers.count[row]));
        sum.total = sum.total.saturating_add(natural(numbers.total[row]));
        sum.amount = sum.amount.saturating_add(natural(numbers.amount[row]));
        sum.follows = sum.follows.saturating_add(natural(numbers.follows[row]));
    }
}
