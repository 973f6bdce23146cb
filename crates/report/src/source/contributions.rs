// SPDX-License-Identifier: PostgreSQL
//! What each statistic contributes to a point of the charts and of the tables over time.
//!
//! Everything that a point shows is a sum over statistics, or a quotient of such sums. So an interval that contains only one
//! statistic shows which figures it contributes to, and this is looked up once for the whole recording. A point is then
//! added up from the recording's grid, without an interval of its own. Its figures are still those of [`Interval`] and of
//! the tables.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use recording::{Grid, StatTotals};
use segment::delta::{Change, Total};
use segment::directory::{Stat, StatKind};
use segment::frame::{FrameStat, ServerInfo};
use segment::interval::{instrumented_seconds, ClockInfo};
use segment::{own, Frame, Histogram, Interval};

use crate::parts;
use crate::point::{FigureMut, Figures};
use crate::sums::{PointSums, RowId};

/// What the points are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Charts.
    Charts,
    /// Charts, and tables for any part of the time.
    ChartsAndTables,
}

/// Number of bits of a figure that show how often it contains one number of a statistic.
const BITS: u32 = 12;
/// The numbers of a statistic while it is looked up, at one tick per second: each has its own bits of a figure.
const LOOKED_UP: StatTotals =
    StatTotals { count: 1, follows: 1 << BITS, amount: 1 << (2 * BITS), total: 1 << (3 * BITS) };

/// What a statistic contributes to a figure.
#[derive(Debug)]
struct Contribution {
    /// The place of the figure.
    place: usize,
    /// How often the figure contains each number of the statistic.
    factors: StatTotals,
}

impl Contribution {
    /// `figure` is that of an interval in which only this statistic is looked up; `None`: it contributes nothing.
    fn looked_up((place, figure): (usize, u64)) -> Option<Contribution> {
        let factor = |at: u32| (figure >> (at * BITS)) & ((1 << BITS) - 1);
        let [count, follows, amount, total] = [0, 1, 2, 3].map(factor);
        let factors = StatTotals { count, follows, amount, total };
        (figure > 0).then_some(Contribution { place, factors })
    }
}

/// The sum of a figure.
#[derive(Debug, Clone, Copy, Default)]
struct FigureSum {
    /// Events or bytes.
    number: u64,
    ns: u64,
}

impl FigureSum {
    fn add(&mut self, cell: &StatTotals, factors: &StatTotals) {
        let add = |sum: u64, n: u64, factor: u64| sum.saturating_add(n.saturating_mul(factor));
        self.number = add(self.number, cell.count, factors.count);
        self.number = add(self.number, cell.follows, factors.follows);
        self.number = add(self.number, cell.amount, factors.amount);
        self.ns = add(self.ns, cell.total, factors.total);
    }

    /// The time, divided as by a clock of nanoseconds.
    fn seconds(self) -> f64 {
        self.ns as f64 / 1e9
    }
}

/// The contributions of all lines of a grid.
pub struct Contributions {
    lines: Vec<(usize, Vec<Contribution>)>,
    /// The places of activities.
    activities: HashMap<Arc<str>, usize>,
    /// The places of the columns of tables' rows.
    rows: HashMap<RowId, Range<usize>>,
    /// Number of places. The first ones are those of [`numbers`].
    places: usize,
}

impl Contributions {
    /// Of these statistics with their lines.
    pub fn new(lines: &HashMap<Arc<Stat>, usize>, sum: &Frame, purpose: Purpose) -> Contributions {
        let mut all = Contributions {
            lines: Vec::with_capacity(lines.len()),
            activities: HashMap::new(),
            rows: HashMap::new(),
            places: numbers(&mut [0.0; 2], &mut Figures::default()).count(),
        };
        for (stat, line) in lines {
            let found = all.look_up(&alone(stat, sum), purpose);
            let contributions = found.into_iter().filter_map(Contribution::looked_up);
            all.lines.push((*line, contributions.collect()));
        }
        all
    }

    /// The figures of an interval with one statistic, with their places.
    fn look_up(&mut self, interval: &Interval, purpose: Purpose) -> Vec<(usize, u64)> {
        let mut figures = Figures::from_interval(interval);
        let mut lived = [interval.uninstrumented_seconds, interval.wall_seconds];
        let numbers = numbers(&mut lived, &mut figures).map(FigureMut::whole);
        let mut found: Vec<(usize, u64)> = numbers.enumerate().collect();
        for (activity, seconds) in figures.activities {
            let place = *self.activities.entry(activity).or_insert(self.places);
            self.places = self.places.max(place + 1);
            found.push((place, seconds as u64));
        }
        let sums = match purpose {
            Purpose::Charts => PointSums::default(),
            Purpose::ChartsAndTables => parts::sums(interval),
        };
        for (row, values) in sums.0 {
            let new = self.places..self.places + values.len();
            let places = self.rows.entry(row).or_insert(new).clone();
            self.places = self.places.max(places.end);
            found.extend(places.zip(values.iter().map(|value| *value as u64)));
        }
        found
    }

    /// The time of a column that was measured, in seconds, and its figures; `None` in a gap.
    pub fn point(&self, grid: &Grid, column: usize) -> Option<(f64, Figures)> {
        let covered_ns = grid.covered_ns.get(column).filter(|ns| **ns > 0)?;
        let mut sums = vec![FigureSum::default(); self.places];
        for (line, contributions) in &self.lines {
            let cell = grid.cells.get(*line).and_then(|cells| cells.get(column));
            let Some(cell) = cell.filter(|cell| **cell != StatTotals::default()) else { continue };
            for one in contributions {
                sums[one.place].add(cell, &one.factors);
            }
        }
        let (mut lived, mut figures) = ([0.0; 2], Figures::default());
        for (figure, sum) in numbers(&mut lived, &mut figures).zip(&sums) {
            figure.set(sum.number, sum.seconds());
        }
        let activities = self.activities.iter();
        let activities = activities.map(|(name, place)| (name.clone(), sums[*place].seconds()));
        figures.activities = activities.filter(|(_, seconds)| *seconds > 0.0).collect();
        figures.activities.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let values = |sum: &FigureSum| sum.number as f64 + sum.seconds();
        let rows = self.rows.iter();
        let rows = rows.map(|(row, places)| (*row, sums[places.clone()].iter().map(values)));
        let rows = rows.filter(|(_, values)| values.clone().any(|value| value != 0.0));
        figures.sums = PointSums(rows.map(|(row, values)| (row, values.collect())).collect());
        let [uninstrumented, wall] = lived;
        let length = FigureSum { number: 0, ns: *covered_ns }.seconds();
        Some((instrumented_seconds(length, uninstrumented, wall), figures))
    }
}

/// The figures with a place of their own; `lived` is the time of sessions at level off, and at any level.
fn numbers<'f>(
    lived: &'f mut [f64; 2],
    figures: &'f mut Figures,
) -> impl Iterator<Item = FigureMut<'f>> {
    lived.iter_mut().map(FigureMut::Seconds).chain(figures.numbers())
}

/// An interval in which only this statistic has changed.
fn alone(stat: &Arc<Stat>, sum: &Frame) -> Interval {
    let StatTotals { count, total, amount, follows } = LOOKED_UP;
    let change = Change { count, total, amount, follows, ..Change::default() };
    // A line of commands contains only those of clients.
    let process = if stat.command().is_some() { own::CLIENT } else { "" };
    let statistic = FrameStat {
        process: process.into(),
        stat: stat.clone(),
        total: Total { change, histogram: Histogram::new() },
    };
    let clock = ClockInfo { ticks_per_second: 1.0, ..sum.clock };
    Interval::from_frame(&Frame {
        ticks: total,
        wall: if stat.kind == StatKind::Account { total } else { 0 },
        statistics: vec![statistic],
        ..Frame::empty(clock, sum.level, ServerInfo::default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Statistics of every table over time; several of them are in one row, or in none.
    const NAMES: [&str; 35] = [
        "execute::cpu",
        "parse::cpu",
        "execute::wait::IO:DataFileRead",
        "commit::wait::IO:DataFileRead",
        "execute::wait::BufferPin:BufferPin",
        "idle::wait::Client:ClientRead",
        "execute::wait::Client:ClientRead",
        "off::uninstrumented",
        "command::Query::handle",
        "command::Query::read",
        "command::Execute::handle",
        "commit::leader",
        "commit::group_committed",
        "commit::asynchronous",
        "commit::sync",
        "commit::queue",
        "lwlock::ProcArray::held::execute::shared",
        "lwlock::ProcArray::acquire::execute::shared",
        "lwlock::ProcArray::wait::execute::shared",
        "lwlock::ProcArray::failed::execute::shared",
        "lwlock::ProcArray::wait::parse::shared",
        "lock::relation::wait::execute::ShareLock",
        "lock::deadlock::check::execute",
        "spin::delay::execute",
        "file::main::read::execute",
        "file::main::read::parse",
        "file::main::read failed::execute",
        "file::temporary::extend::execute",
        "file::wal::write::commit",
        "file::wal::sync::commit",
        "function::ExecSort::inclusive::execute",
        "function::ExecSort::exclusive::execute",
        "function::ExecSort::counted::execute",
        "edge::ExecSort::ExecScan",
        "stop::garbage collection",
    ];

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
    }

    #[test]
    fn a_point_has_the_figures_of_an_interval_with_all_its_statistics() {
        let (_, sum) = crate::sample::frames().next().unwrap();
        let sum = sum.unwrap();
        let mut lines: HashMap<Arc<Stat>, usize> = HashMap::new();
        let mut frame = Frame { ticks: 10_000_000_000, statistics: Vec::new(), ..sum.clone() };
        frame.wall = 0;
        let mut grid = Grid { cells: Vec::new(), covered_ns: vec![0, frame.ticks] };
        for (line, name) in NAMES.into_iter().enumerate() {
            let is_account = line < 8;
            let kind = if is_account { StatKind::Account } else { StatKind::Timer };
            let stat = Arc::new(Stat::new(name.to_string(), kind, "ticks".to_string()));
            let n = line as u64 + 1;
            let cell =
                StatTotals { count: n, total: n * 1_234_567, amount: n << 20, follows: n / 2 };
            let StatTotals { count, total, amount, follows } = cell;
            let change = Change { count, total, amount, follows, ..Change::default() };
            let process = if stat.command().is_some() { own::CLIENT } else { "" };
            let total = Total { change, histogram: Histogram::new() };
            frame.wall += if is_account { change.total } else { 0 };
            frame.statistics.push(FrameStat { process: process.into(), stat: stat.clone(), total });
            grid.cells.push(vec![StatTotals::default(), cell]);
            lines.insert(stat, line);
        }
        let interval = Interval::from_frame(&frame);
        assert_eq!(interval.statistics.len(), 1, "only the pause has no table of its own");
        let mut expected = Figures::from_interval(&interval);
        let contributions = Contributions::new(&lines, &sum, Purpose::ChartsAndTables);
        assert!(contributions.point(&grid, 0).is_none(), "a gap");
        let (seconds, mut figures) = contributions.point(&grid, 1).unwrap();
        assert!(close(seconds, interval.instrumented_seconds) && seconds < 9.9, "{seconds}");
        for ((name, seconds), (known, wanted)) in
            figures.activities.iter().zip(&expected.activities)
        {
            assert!(name == known && close(*seconds, *wanted), "{name} {known}");
        }
        assert_eq!(figures.activities.len(), expected.activities.len());
        let text = |figures: &mut Figures| -> Vec<String> {
            let figures = figures.numbers().into_iter();
            figures.map(|figure| format!("{figure:.9?}")).collect()
        };
        assert_eq!(text(&mut figures), text(&mut expected));
        let rows: HashMap<RowId, Box<[f64]>> = figures.sums.0.into_iter().collect();
        let wanted = parts::sums(&interval).0;
        assert_eq!(rows.len(), wanted.len());
        for (row, values) in wanted {
            let same = rows[&row].iter().zip(&values).all(|(a, b)| close(*a, *b));
            assert!(same && rows[&row].len() == values.len(), "{:?} {values:?}", rows[&row]);
        }
        let charts = Contributions::new(&lines, &sum, Purpose::Charts).point(&grid, 1).unwrap().1;
        assert!(charts.sums.0.is_empty() && charts.commands == expected.commands);
    }
}
