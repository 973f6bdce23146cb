// SPDX-License-Identifier: PostgreSQL
//! The points of the charts: intervals, or several adjacent ones merged, and the gaps between them.

use std::collections::HashMap;
use std::sync::Arc;

use recording::{FrameRow, Grid, Range, Recording, Series};
use segment::directory::{Stat, StatKind};
use segment::interval::{instrumented_seconds, SLACK};
use segment::{own, stat_names, Frame};
use view::HostMetrics;

use super::contributions::{Contributions, Purpose};
use super::{begin, latency, seconds};
use crate::material::{Latency, Moment};
use crate::point::{Figures, Point};
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
    let contributions = Contributions::new(&lines, &sum, purpose);
    let points = points(&grid, &contributions, columns, heads);
    Ok(StatisticsOfRange { sum, latency: latency::latencies(latency), points })
}

/// The points of the charts.
fn points(
    grid: &Grid,
    contributions: &Contributions,
    columns: &Columns,
    heads: &[FrameRow],
) -> Vec<Point> {
    let mut others = vec![HostAndSessions::default(); columns.len()];
    for head in heads {
        if let Some(others) = columns.place(head).and_then(|at| others.get_mut(at)) {
            others.add(head);
        }
    }
    let point = |(at, others): (usize, &HostAndSessions)| {
        let (measured, figures) = contributions.point(grid, at).unzip();
        let measured = measured.unwrap_or(0.0);
        let figures = figures.filter(|_| measured > 0.0);
        Point {
            start: seconds(columns.bounds[at]),
            seconds: measured,
            figures: figures.map(|figures| Figures {
                host: others.host(),
                sessions: others.sessions(),
                ..figures
            }),
        }
    };
    others.iter().enumerate().map(point).collect()
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
        let [length, off, wall] =
            [head.interval_ns, head.uninstrumented_ns, head.wall_ns].map(|ns| ns as f64 * 1e-9);
        moment.seconds += instrumented_seconds(length, off, wall);
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
