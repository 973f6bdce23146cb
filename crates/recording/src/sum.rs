// SPDX-License-Identifier: PostgreSQL
//! The sum of all intervals of a range.

use crate::error::Error;
use crate::grid::{column_by_bounds, Grid, GridBuilder};
use crate::index::{ticks, Index};
use crate::merge;
use crate::range::Range;
use crate::recording::Recording;
use crate::rows::FrameRow;
use crate::series::Series;
use crate::statement;
use crate::statistics::{HistogramRow, StatRow};
use crate::table::{columns, unsigned, Cells, Column, Columns, Lists};
use crate::totals::{number_columns, Numbers, StatTotals};
use segment::delta::{Change, Extreme, Total};
use segment::frame::FrameStat;
use segment::{Frame, Histogram};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The distribution of the values of some series in a detail interval.
#[derive(Debug, Clone)]
pub struct Latency {
    /// The end of the detail interval, microseconds since 1970.
    pub time_us: i64,
    /// The recorded time of the detail interval, without gaps, ns.
    pub interval_ns: u64,
    /// The unit of the histogram of times, seconds.
    pub seconds_per_tick: f64,
    /// The values: times in ticks, or numbers.
    pub histogram: Histogram,
}

/// The sum of one series.
#[derive(Debug, Clone, Default)]
pub(crate) struct SeriesSum {
    pub totals: StatTotals,
    min: Option<u64>,
    max: Option<u64>,
    histogram: Histogram,
}

impl SeriesSum {
    /// The sum in ticks.
    pub fn total(self, series: &Series, ticks_per_second: f64) -> Total {
        let scale = |n| if series.is_time() { ticks(n, ticks_per_second) } else { n };
        // The extremes may be known for some of the values; if they are known for none, there are none.
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
        let buckets = statement::buckets(&row.buckets, &row.counts);
        self.add_spread([row.min, row.max], buckets);
    }

    /// Add the distribution of other values.
    fn merge_spread(&mut self, more: SeriesSum) {
        merge::min(&mut self.min, more.min);
        merge::max(&mut self.max, more.max);
        match self.histogram.is_empty() {
            true => self.histogram = more.histogram,
            false => self.histogram.merge(&more.histogram),
        }
    }

    fn add_spread(
        &mut self,
        [min, max]: [Option<u64>; 2],
        buckets: impl Iterator<Item = (usize, u64)>,
    ) {
        merge::min(&mut self.min, min);
        merge::max(&mut self.max, max);
        self.histogram.add_buckets(buckets);
    }
}

/// Rows of `statistics`, as they are read.
enum StatRows<'r> {
    /// A row group.
    Columns(&'r Columns, &'r Numbers<'r>),
    /// A row of the journal.
    Row(&'r StatRow),
}

/// The sums of one run of a server.
#[derive(Debug, Default)]
struct RunSums {
    positions: HashMap<Arc<Series>, usize>,
    sums: Vec<(Arc<Series>, SeriesSum)>,
}

impl RunSums {
    fn position(&mut self, series: &Arc<Series>) -> usize {
        if let Some(&at) = self.positions.get(series) {
            return at;
        }
        self.positions.insert(series.clone(), self.sums.len());
        self.sums.push((series.clone(), SeriesSum::default()));
        self.sums.len() - 1
    }

    fn entry(&mut self, series: &Arc<Series>) -> &mut SeriesSum {
        let at = self.position(series);
        &mut self.sums[at].1
    }
}

/// The columns of `histograms` that are merged.
fn spread_columns() -> Vec<Column> {
    columns::<HistogramRow>(&["frame", "time", "series", "min", "max", "buckets", "counts"])
}

/// These columns of a row group of `histograms`.
struct Spreads<'c> {
    frame: &'c [i64],
    time: &'c [i64],
    series: &'c [i64],
    extremes: [&'c [Option<i64>]; 2],
    buckets: &'c Lists,
    counts: &'c Lists,
}

impl<'c> Spreads<'c> {
    /// `None`: a column is missing or too short.
    fn from_columns(columns: &'c Columns) -> Option<Spreads<'c>> {
        let whole = |len: usize| (len == columns.rows).then_some(());
        let longs = |name| {
            let cells = columns.longs(name);
            whole(cells.len()).map(|()| cells)
        };
        let extreme = |name| match columns.find(name) {
            Cells::OptLong(cells) => whole(cells.len()).map(|()| cells.as_slice()),
            _ => None,
        };
        let lists = |name| {
            let lists = columns.lists(name);
            whole(lists.len()).map(|()| lists)
        };
        Some(Spreads {
            frame: longs("frame")?,
            time: longs("time")?,
            series: longs("series")?,
            extremes: [extreme("min")?, extreme("max")?],
            buckets: lists("buckets")?,
            counts: lists("counts")?,
        })
    }

    fn extremes(&self, row: usize) -> [Option<u64>; 2] {
        self.extremes.map(|cells| cells[row].map(unsigned))
    }

    fn buckets(&self, row: usize) -> impl Iterator<Item = (usize, u64)> + 'c {
        buckets_of(self.buckets, self.counts, row)
    }
}

/// The buckets of a row with their counts.
pub(crate) fn buckets_of<'c>(
    buckets: &'c Lists,
    counts: &'c Lists,
    row: usize,
) -> impl Iterator<Item = (usize, u64)> + 'c {
    let [buckets, counts] = [buckets, counts].map(|lists| lists.get(row).unwrap_or(&[]));
    let buckets = buckets.iter().map(|bucket| unsigned(*bucket) as usize);
    buckets.zip(counts.iter().map(|count| unsigned(*count)))
}

/// The distributions of the selected series in each detail interval, by the position of its last interval.
struct Latencies<'i, W> {
    index: &'i Index<'i>,
    wanted: W,
    by_position: Vec<Option<Latency>>,
}

impl<'i, W: Fn(&Series) -> bool> Latencies<'i, W> {
    fn new(index: &'i Index<'i>, wanted: W) -> Latencies<'i, W> {
        Latencies { index, wanted, by_position: vec![None; index.frames.len()] }
    }

    /// The histogram of a detail interval, if its last interval is in the range. An interval without values of the
    /// selected series also gets one.
    fn histogram_at(&mut self, frame: u64, time_us: i64) -> Option<&mut Histogram> {
        let latency = self.by_position.get_mut(self.index.position(frame)?)?;
        let latency = latency.get_or_insert_with(|| Latency {
            time_us,
            interval_ns: 0,
            seconds_per_tick: 1.0 / self.index.ticks_per_second(frame),
            histogram: Histogram::new(),
        });
        Some(&mut latency.histogram)
    }

    /// The distributions, with the length of each detail interval.
    fn finish(self) -> Vec<Latency> {
        let mut interval_ns = 0u64;
        let mut latencies = Vec::new();
        for (head, latency) in self.index.frames.iter().zip(self.by_position) {
            interval_ns = interval_ns.saturating_add(head.interval_ns);
            if let Some(latency) = latency {
                let interval_ns = std::mem::take(&mut interval_ns);
                latencies.push(Latency { interval_ns, ..latency });
            }
        }
        latencies
    }
}

/// Finds the sums of rows. The rows of a series are adjacent, and so are those of a run of the server.
struct SumFinder<'s> {
    sums: &'s mut BTreeMap<u32, RunSums>,
    /// Run, series, and the position of its sum.
    last: Option<(u32, i64, usize)>,
}

impl SumFinder<'_> {
    /// The sum of the series of this number in the file.
    fn sum(&mut self, run: u32, number: i64, series: &[Arc<Series>]) -> Option<&mut SeriesSum> {
        let at = match self.last {
            Some((known_run, known, at)) if (known_run, known) == (run, number) => at,
            _ => {
                let series = series.get(unsigned(number) as usize)?;
                let at = self.sums.entry(run).or_default().position(series);
                self.last = Some((run, number, at));
                at
            }
        };
        Some(&mut self.sums.get_mut(&run)?.sums.get_mut(at)?.1)
    }
}

/// Add a row group of a file of `histograms` without materializing its rows: most of the time would be spent
/// on memory for their lists.
fn add_spreads<W: Fn(&Series) -> bool>(
    sums: &mut BTreeMap<u32, RunSums>,
    latencies: &mut Latencies<'_, W>,
    columns: &Columns,
) {
    let Some(spreads) = Spreads::from_columns(columns) else { return };
    let wanted: Vec<bool> =
        columns.series.iter().map(|series| (latencies.wanted)(series)).collect();
    let mut sums = SumFinder { sums, last: None };
    for row in 0..columns.rows {
        let frame = unsigned(spreads.frame[row]);
        let number = spreads.series[row];
        let Some(run) = latencies.index.run(frame) else { continue };
        let Some(sum) = sums.sum(run, number, &columns.series) else { continue };
        sum.add_spread(spreads.extremes(row), spreads.buckets(row));
        let latency = latencies.histogram_at(frame, spreads.time[row]);
        if let Some(latency) = latency.filter(|_| wanted[unsigned(number) as usize]) {
            latency.add_buckets(spreads.buckets(row));
        }
    }
}

impl Recording {
    /// The sum of all intervals of a range, with histograms.
    pub fn sum(&self, range: Range) -> Result<Frame, Error> {
        Ok(self.sum_and_latencies(range, |_| false)?.0)
    }

    /// The same, and the distribution of all values of the selected series in each detail interval. Each
    /// file is read once.
    pub fn sum_and_latencies(
        &self,
        range: Range,
        wanted: impl Fn(&Series) -> bool + Send,
    ) -> Result<(Frame, Vec<Latency>), Error> {
        let index = self.index(range)?;
        self.sum_of(&index, range, wanted, |_| {})
    }

    /// The same of these intervals of a range, and sums over time: `line_of` returns the line of a series in the grid, from 0 on, if it has one;
    /// column `i` has the intervals that end after `bounds_us[i]` and not after `bounds_us[i + 1]`. Bounds are ascending, in
    /// microseconds since 1970. Each file is read once.
    pub fn sum_and_grid(
        &self,
        (range, frames): (Range, &[FrameRow]),
        wanted: impl Fn(&Series) -> bool + Send,
        bounds_us: &[i64],
        line_of: impl FnMut(&Series) -> Option<usize>,
    ) -> Result<(Frame, Vec<Latency>, Grid), Error> {
        let index = self.index_of(frames)?;
        let width = bounds_us.len().saturating_sub(1);
        let mut grid = GridBuilder::new(&index, width, line_of, column_by_bounds(bounds_us));
        let (frame, latencies) = self.sum_of(&index, range, wanted, |rows| match rows {
            StatRows::Columns(columns, numbers) => grid.add_columns(columns, numbers),
            StatRows::Row(row) => grid.add_row(row),
        })?;
        Ok((frame, latencies, grid.finish(0)))
    }

    /// The same of the intervals of an index; `see` gets all rows of `statistics`.
    fn sum_of(
        &self,
        index: &Index<'_>,
        range: Range,
        wanted: impl Fn(&Series) -> bool + Send,
        mut see: impl FnMut(StatRows<'_>),
    ) -> Result<(Frame, Vec<Latency>), Error> {
        self.report_missing(index, range);
        // Nearly all of the time is spent on decoding, so both tables are read in parallel.
        let (mut sums, spreads, latencies) = std::thread::scope(|scope| -> Result<_, Error> {
            let spreads = scope.spawn(|| self.spreads(index, range, wanted));
            let mut sums: BTreeMap<u32, RunSums> = BTreeMap::new();
            let mut add = |columns: &Columns| {
                if let Some(numbers) = Numbers::from_columns(columns) {
                    add_columns(&mut sums, index, (columns, &numbers));
                    see(StatRows::Columns(columns, &numbers));
                }
            };
            let journal = self.each_columns::<StatRow>(range, &number_columns(), &mut add)?;
            for row in &journal.statistics {
                see(StatRows::Row(row));
                if let Some(head) = index.get(row.frame) {
                    let sum = sums.entry(head.server).or_default().entry(&row.series);
                    sum.totals.add(StatTotals::from_row(row));
                }
            }
            let spreads = spreads.join().unwrap_or_else(|e| std::panic::resume_unwind(e));
            let (spreads, latencies) = spreads?;
            Ok((sums, spreads, latencies))
        })?;
        for (run, spreads) in spreads {
            let sums = sums.entry(run).or_default();
            for (series, spread) in spreads.sums {
                sums.entry(&series).merge_spread(spread);
            }
        }
        let mut whole: Option<Frame> = None;
        for frames in runs(index) {
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
        let mut whole =
            whole.ok_or_else(|| Error::Empty { path: self.directory().to_path_buf() })?;
        self.add_client_waits(range, &mut whole)?;
        Ok((whole, latencies))
    }

    /// The distributions of all series in a range, by run of the server, and those of the selected series in each detail
    /// interval.
    fn spreads(
        &self,
        index: &Index<'_>,
        range: Range,
        wanted: impl Fn(&Series) -> bool,
    ) -> Result<(BTreeMap<u32, RunSums>, Vec<Latency>), Error> {
        let mut sums: BTreeMap<u32, RunSums> = BTreeMap::new();
        let mut latencies = Latencies::new(index, wanted);
        let see = |columns: &Columns| add_spreads(&mut sums, &mut latencies, columns);
        let journal = self.each_columns::<HistogramRow>(range, &spread_columns(), see)?;
        for row in &journal.histograms {
            let Some(head) = index.get(row.frame) else { continue };
            sums.entry(head.server).or_default().entry(&row.series).add_histogram(row);
            let wanted = (latencies.wanted)(&row.series);
            let latency = latencies.histogram_at(row.frame, row.time_us);
            if let Some(latency) = latency.filter(|_| wanted) {
                latency.add_buckets(statement::buckets(&row.buckets, &row.counts));
            }
        }
        Ok((sums, latencies.finish()))
    }
}

/// The intervals of each run of a server, in the order of the runs.
fn runs<'i>(index: &'i Index<'_>) -> Vec<Vec<&'i FrameRow>> {
    let mut runs: BTreeMap<u32, Vec<&FrameRow>> = BTreeMap::new();
    for row in index.frames.iter() {
        runs.entry(row.server).or_default().push(row);
    }
    runs.into_values().collect()
}

/// Add a row group of a file.
fn add_columns(
    sums: &mut BTreeMap<u32, RunSums>,
    index: &Index<'_>,
    (columns, numbers): (&Columns, &Numbers<'_>),
) {
    let mut sums = SumFinder { sums, last: None };
    numbers.each_sum(
        |frame| index.run(frame),
        |series, run, sum| {
            if let Some(known) = sums.sum(run, series, &columns.series) {
                known.totals.add(sum);
            }
        },
    );
}
