// SPDX-License-Identifier: PostgreSQL
//! The points of the charts: intervals, or several adjacent ones merged, and the gaps between them.

use std::collections::HashMap;
use std::sync::Arc;

use recording::{FrameRow, Grid, Range, Recording, Series};
use segment::delta::{Change, Total};
use segment::directory::{Stat, StatKind};
use segment::frame::{Frame, FrameStat};
use segment::interval::{ClockInfo, SLACK};
use segment::kernel::KernelView;
use segment::{own, stat_names, Histogram, Interval};
use view::HostMetrics;

use super::{begin, latency, seconds};
use crate::material::{Latency, Moment};
use crate::parts;
use crate::point::{Figures, Point};
use crate::sums::PointSums;
use error::Error;

/// Maximum number of points in a chart that is drawn as a whole.
pub const MAIN: usize = 1_500;
/// Maximum number of points of the throughput: a day of seconds.
const FINE: usize = 90_000;
/// Round lengths of steps, seconds.
const STEPS: [i64; 16] =
    [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600];

/// Bounds of points, microseconds since 1970: a point holds the intervals that end after its first bound and no
/// later than its second.
#[derive(Debug, PartialEq)]
pub struct Columns {
    bounds: Vec<i64>,
}

impl Columns {
    /// For these intervals, at most this number.
    pub fn fitting(heads: &[FrameRow], range: Range, most: usize) -> Columns {
        let single = single(heads);
        if single.len() <= most + 1 {
            return Columns { bounds: single };
        }
        let all = range.to_us.saturating_sub(range.from_us).max(1);
        let longest = heads.iter().map(|head| head.interval_ns / 1_000).max().unwrap_or(0) as i64;
        let fits = |step: i64| step >= longest && all / step < most as i64;
        let step = STEPS.iter().map(|s| s * 1_000_000).find(|step| fits(*step));
        let step = step.unwrap_or_else(|| longest.max(all / most as i64 + 1));
        let first = range.from_us.div_euclid(step);
        let last = (range.to_us - 1).div_euclid(step) + 1;
        Columns { bounds: (first..=last).map(|at| at * step).collect() }
    }

    /// For a range, from its start, each `step` microseconds long. They end half an interval later, so that an
    /// interval that ends a little late still falls into its point.
    pub fn since_beginning(range: Range, step: i64, interval: i64) -> Columns {
        let mut bounds = vec![range.from_us];
        let mut bound = range.from_us.saturating_add(step + interval / 2);
        while bound < range.to_us {
            bounds.push(bound);
            bound = bound.saturating_add(step);
        }
        bounds.push(range.to_us);
        Columns { bounds }
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.bounds.len().saturating_sub(1)
    }

    /// The point to which an interval belongs.
    pub fn place(&self, head: &FrameRow) -> Option<usize> {
        let at = self.bounds.partition_point(|bound| *bound < head.time_us);
        at.checked_sub(1).filter(|at| *at < self.len())
    }
}

/// One point for each interval and for each gap.
fn single(heads: &[FrameRow]) -> Vec<i64> {
    // After a clock was set back, intervals are not in the order of their times.
    let mut spans: Vec<(i64, i64)> = heads.iter().map(|h| (h.time_us, begin(h))).collect();
    spans.sort_unstable();
    let mut bounds: Vec<i64> = Vec::with_capacity(spans.len() + 1);
    for (end, begin) in spans {
        match bounds.last() {
            None => bounds.push(begin),
            Some(last) if (begin - last) as f64 > SLACK * (end - begin) as f64 => {
                bounds.push(begin)
            }
            Some(_) => {}
        }
        if bounds.last().is_some_and(|last| *last < end) {
            bounds.push(end);
        }
    }
    bounds
}

/// What the points are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Charts.
    Charts,
    /// Charts, and tables for any part of the time.
    ChartsAndTables,
}

/// Whether tables over time need this statistic, besides those of the charts.
fn is_in_tables(stat: &Stat) -> bool {
    [stat_names::LWLOCK, stat_names::LOCK, stat_names::SPIN_DELAY, stat_names::FUNCTION]
        .iter()
        .any(|begin| stat.name.starts_with(begin))
}

/// Whether the charts need this statistic.
fn is_drawn(stat: &Stat) -> bool {
    stat.kind == StatKind::Account
        || stat.command().is_some()
        || stat.name.starts_with("commit::")
        || stat.name.starts_with(stat_names::FILE)
        || stat.name == stat_names::COLLECTION_STOP
}

/// The length of points for several ranges, microseconds: that of an interval, or longer if there would be more
/// than `most` points.
pub fn step(longest_range: i64, interval: i64, most: i64) -> i64 {
    if longest_range / interval.max(1) <= most {
        return interval.max(1);
    }
    let fits = |step: &i64| *step >= interval && longest_range / step <= most;
    let step = STEPS.iter().map(|s| s * 1_000_000).find(fits);
    step.unwrap_or_else(|| interval.max(longest_range / most + 1))
}

/// What is computed from the statistics of a range.
pub struct StatisticsOfRange {
    /// The sum of the range.
    pub sum: Frame,
    /// The latency of commands in each detail interval; times without a detail interval are gaps.
    pub latency: Vec<Latency>,
    /// The points of the charts.
    pub points: Vec<Point>,
}

/// Reads the statistics of a range, once.
pub fn statistics(
    recording: &Recording,
    range: Range,
    (columns, purpose): (&Columns, Purpose),
    heads: &[FrameRow],
) -> Result<StatisticsOfRange, Error> {
    let mut lines: HashMap<Arc<Stat>, usize> = HashMap::new();
    let counts =
        |series: &Series| series.stat.command().is_none() || own::is_client(&series.process);
    let (sum, latency, grid) =
        recording.sum_and_grid((range, heads), latency::is_command, &columns.bounds, |series| {
            let next = lines.len();
            let tables = purpose == Purpose::ChartsAndTables && is_in_tables(&series.stat);
            let drawn = (is_drawn(&series.stat) || tables) && counts(series);
            drawn.then(|| *lines.entry(series.stat.clone()).or_insert(next))
        })?;
    // In the order of the sum.
    let mut stats: Vec<(usize, Arc<Stat>)> = Vec::new();
    for statistic in &sum.statistics {
        if let Some((stat, line)) = lines.remove_entry(&statistic.stat) {
            stats.push((line, stat));
        }
    }
    let points = points((&grid, &stats), (columns, purpose), &sum, heads);
    Ok(StatisticsOfRange { sum, latency: latency::latencies(latency), points })
}

/// The points of the charts.
fn points(
    (grid, stats): (&Grid, &[(usize, Arc<Stat>)]),
    (columns, purpose): (&Columns, Purpose),
    sum: &Frame,
    heads: &[FrameRow],
) -> Vec<Point> {
    let mut sums = vec![HostAndSessions::default(); columns.len()];
    for head in heads {
        if let Some(sums) = columns.place(head).and_then(|at| sums.get_mut(at)) {
            sums.add(head);
        }
    }
    let point = |(at, sums): (usize, &HostAndSessions)| {
        let start = seconds(columns.bounds[at]);
        let covered = grid.covered_ns.get(at).copied().unwrap_or(0);
        if covered == 0 {
            return Point { start, seconds: 0.0, figures: None };
        }
        let interval = Interval::from_frame(&frame(grid, at, covered, stats, sum));
        let measured = interval.instrumented_seconds;
        let figures = (measured > 0.0).then(|| Figures {
            host: sums.host(),
            sessions: sums.sessions(),
            sums: match purpose {
                Purpose::Charts => PointSums::default(),
                Purpose::ChartsAndTables => parts::sums(&interval),
            },
            ..Figures::from_interval(&interval)
        });
        Point { start, seconds: measured, figures }
    };
    // A point takes as long as a few thousand rows of statistics, so each processor computes some of them.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let each = sums.len().div_ceil(cores).max(1);
    let all: Vec<(usize, &HostAndSessions)> = sums.iter().enumerate().collect();
    std::thread::scope(|scope| {
        let parts: Vec<_> = all
            .chunks(each)
            .map(|part| {
                scope.spawn(move || part.iter().copied().map(point).collect::<Vec<Point>>())
            })
            .collect();
        let join = |part: std::thread::ScopedJoinHandle<'_, Vec<Point>>| {
            part.join().unwrap_or_else(|e| std::panic::resume_unwind(e))
        };
        parts.into_iter().flat_map(join).collect()
    })
}

/// A column as a frame of its own, in nanoseconds; without histograms.
fn frame(
    grid: &Grid,
    column: usize,
    covered_ns: u64,
    stats: &[(usize, Arc<Stat>)],
    sum: &Frame,
) -> Frame {
    let mut statistics = Vec::new();
    for (line, stat) in stats {
        let Some(cell) = grid.cells.get(*line).and_then(|cells| cells.get(column)) else {
            continue;
        };
        if cell.count == 0 && cell.total == 0 {
            continue;
        }
        let (count, total) = (cell.count, cell.total);
        let (amount, follows) = (cell.amount, cell.follows);
        let change = Change { count, total, amount, follows, ..Change::default() };
        // It contains only the commands of clients.
        let process = if stat.command().is_some() { own::CLIENT } else { "" };
        statistics.push(FrameStat {
            process: process.into(),
            stat: stat.clone(),
            total: Total { change, histogram: Histogram::new() },
        });
    }
    let accounts = statistics.iter().filter(|statistic| statistic.stat.kind == StatKind::Account);
    Frame {
        realtime_ns: sum.realtime_ns,
        monotonic_ns: sum.monotonic_ns,
        ticks: covered_ns,
        clock: ClockInfo { ticks_per_second: 1e9, ..sum.clock },
        level: sum.level,
        level_end: None,
        server: sum.server.clone(),
        cores: sum.cores,
        wall: accounts.fold(0, |sum, account| sum.saturating_add(account.total.change.total)),
        locks_ticks: 0,
        torn_sessions: 0,
        nameless: 0,
        overflow: sum.overflow,
        overflow_in_interval: sum.overflow_in_interval,
        memory: None,
        functions_probed: 0,
        sessions: Vec::new(),
        population: Vec::new(),
        ended_sessions: 0,
        ended_origins: Vec::new(),
        client_waits: Vec::new(),
        ended_ticks: 0,
        statistics,
        kernel: KernelView::default(),
    }
}

/// The figures of a point's intervals besides their statistics.
#[derive(Debug, Clone, Copy, Default)]
struct HostAndSessions {
    intervals: f64,
    seconds: f64,
    busy: f64,
    idle: f64,
    iowait: f64,
    runnable: f64,
    sessions: [f64; 3],
}

impl HostAndSessions {
    fn add(&mut self, head: &FrameRow) {
        let s = |ns: u64| ns as f64 * 1e-9;
        self.intervals += 1.0;
        self.seconds += s(head.interval_ns);
        self.busy += s(head.host_user_ns) + s(head.host_system_ns);
        self.idle += s(head.host_idle_ns);
        self.iowait += s(head.host_iowait_ns);
        self.runnable += head.host_runnable as f64;
        let states = [head.sessions_active, head.sessions_idle, head.sessions_idle_in_transaction];
        for (sum, sessions) in self.sessions.iter_mut().zip(states) {
            *sum += f64::from(sessions);
        }
    }

    /// The kernel's figures; `None` if they were not read.
    fn host(&self) -> Option<HostMetrics> {
        (self.busy + self.idle > 0.0 && self.seconds > 0.0).then(|| HostMetrics {
            busy: self.busy / self.seconds,
            iowait: self.iowait / self.seconds,
            runnable: Some(self.runnable / self.intervals),
        })
    }

    fn sessions(&self) -> Vec<(String, f64)> {
        let names = ["active", "idle", "idle in transaction"];
        let mean = |sum: f64| sum / self.intervals.max(1.0);
        names.iter().zip(self.sessions).map(|(name, sum)| (name.to_string(), mean(sum))).collect()
    }
}

/// Each interval by itself, if there are few enough. Commits are known only for the points.
pub fn moments(heads: &[FrameRow], range: Range, main: &Columns, points: &[Point]) -> Vec<Moment> {
    let columns = Columns::fitting(heads, range, FINE);
    let mut moments: Vec<Moment> = columns.bounds[..columns.len()]
        .iter()
        .map(|bound| Moment { start: seconds(*bound), ..Moment::default() })
        .collect();
    for head in heads {
        let Some(moment) = columns.place(head).and_then(|at| moments.get_mut(at)) else {
            continue;
        };
        // If the level was off for a part, the rate covers the rest.
        let off = match head.wall_ns {
            0 => 0.0,
            wall => head.uninstrumented_ns as f64 / wall as f64,
        };
        moment.seconds += head.interval_ns as f64 * 1e-9 * (1.0 - off).max(0.0);
        moment.commands = moment.commands.saturating_add(head.commands);
    }
    if columns == *main {
        for (moment, point) in moments.iter_mut().zip(points) {
            moment.commits = point.figures.as_ref().map(|figures| figures.commits);
        }
    }
    moments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(end_ms: i64, length_ms: u64) -> FrameRow {
        FrameRow {
            time_us: end_ms * 1_000,
            interval_ns: length_ms * 1_000_000,
            ..FrameRow::default()
        }
    }

    fn bounds(heads: &[FrameRow], most: usize) -> Vec<i64> {
        let range = Range {
            from_us: heads.iter().map(begin).min().unwrap(),
            to_us: heads.iter().map(|h| h.time_us).max().unwrap(),
        };
        Columns::fitting(heads, range, most).bounds.iter().map(|us| us / 1_000).collect()
    }

    #[test]
    fn each_interval_has_a_point_and_a_gap_has_one_too() {
        let heads = [head(1_000, 1_000), head(2_003, 1_000), head(9_000, 1_000)];
        assert_eq!(bounds(&heads, 100), [0, 1_000, 2_003, 8_000, 9_000]);
    }

    #[test]
    fn a_clock_that_was_set_back_makes_no_point_of_negative_length() {
        let heads = [head(10_000, 1_000), head(11_000, 1_000), head(9_500, 1_000)];
        assert_eq!(bounds(&heads, 100), [8_500, 9_500, 10_000, 11_000]);
    }

    #[test]
    fn too_many_intervals_are_put_together_by_steps_that_people_think_in() {
        let heads: Vec<FrameRow> = (1..=1_000).map(|s| head(s * 1_000, 1_000)).collect();
        let bounds = bounds(&heads, 60);
        assert_eq!((bounds[0], bounds[1], bounds.len()), (0, 20_000, 51));
        let range = Range { from_us: 0, to_us: 1_000_000_000 };
        let columns = Columns::fitting(&heads, range, 60);
        assert_eq!(columns.place(&heads[0]), Some(0));
        assert_eq!(columns.place(&heads[19]), Some(0), "what ends with a point is in it");
        assert_eq!(columns.place(&heads[20]), Some(1));
        assert_eq!(columns.place(&heads[999]), Some(49));
    }

    #[test]
    fn no_point_is_shorter_than_the_longest_interval() {
        let mut heads: Vec<FrameRow> = (1..=600).map(|s| head(s * 1_000, 1_000)).collect();
        heads.extend((11..=60).map(|m| head(m * 60_000, 60_000)));
        let bounds = bounds(&heads, 100);
        assert_eq!(bounds[1] - bounds[0], 60_000);
    }
}
