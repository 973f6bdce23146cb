// SPDX-License-Identifier: PostgreSQL
//! Statistics over time: which statistic of which kind of process, and its rows.
//!
//! A part of these tables names its series once more in its metadata, by the number in the
//! column `series`, so that who reads millions of rows need not look at words.

use crate::table::{Cell, Cells, Column, Columns, Shape, Table, Unit};
use segment::directory::{Stat, StatKind};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;

/// A statistic of the processes of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Series {
    /// "client backend", ...
    pub process: Arc<str>,
    /// Its name, kind and unit. Times have the unit "ticks" here as in segments, while the
    /// tables have them in "ns".
    pub stat: Arc<Stat>,
}

/// A series in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SeriesText {
    pub process: Arc<str>,
    pub name: Arc<str>,
    pub kind: Arc<str>,
    pub unit: Arc<str>,
}

fn kind_name(kind: StatKind) -> &'static str {
    match kind {
        StatKind::Account => "account",
        StatKind::Timer => "timer",
        StatKind::Value => "value",
    }
}

impl Series {
    /// Whether its totals are times.
    pub fn is_time(&self) -> bool {
        self.stat.kind != StatKind::Value
    }

    pub(crate) fn text(&self) -> SeriesText {
        let unit = if self.is_time() { "ns" } else { &self.stat.unit };
        SeriesText {
            process: self.process.clone(),
            name: self.stat.name.as_str().into(),
            kind: kind_name(self.stat.kind).into(),
            unit: unit.into(),
        }
    }

    pub(crate) fn of_text(text: &SeriesText) -> Series {
        let kind = match &*text.kind {
            "account" => StatKind::Account,
            "timer" => StatKind::Timer,
            _ => StatKind::Value,
        };
        let unit = if kind == StatKind::Value { &*text.unit } else { "ticks" };
        let stat = Stat::new(text.name.to_string(), kind, unit.to_string());
        Series { process: text.process.clone(), stat: Arc::new(stat) }
    }

    /// The order in which series lie in a part.
    fn order(&self) -> (&str, &str, &'static str) {
        (&self.stat.name, &self.process, kind_name(self.stat.kind))
    }
}

/// What one series did in an interval.
#[derive(Debug, Clone)]
pub struct StatRow {
    /// The number of the interval.
    pub frame: u64,
    /// When it ended.
    pub time_us: i64,
    /// Which.
    pub series: Arc<Series>,
    /// Events that ended.
    pub count: u64,
    /// Time in ns, or what the unit says.
    pub total: u64,
    /// Bytes that these events moved.
    pub amount: u64,
    /// How many of them went on where the one before had ended.
    pub follows: u64,
}

/// The values of one series in a detail interval: how they are spread.
#[derive(Debug, Clone)]
pub struct HistogramRow {
    /// The number of the last interval in it.
    pub frame: u64,
    /// When that ended.
    pub time_us: i64,
    /// Which.
    pub series: Arc<Series>,
    /// The least, where it is known: ns, or what the unit says.
    pub min: Option<u64>,
    /// The greatest, where it is known.
    pub max: Option<u64>,
    /// The buckets that hold something ...
    pub buckets: Vec<u64>,
    /// ... and how many each.
    pub counts: Vec<u64>,
}

const FRAME: Column = Column { name: "frame", shape: Shape::Long, unit: Unit::Id };
const TIME: Column = Column { name: "time", shape: Shape::Long, unit: Unit::Time };
const NAMES: [Column; 5] = [
    Column { name: "series", shape: Shape::Long, unit: Unit::Id },
    Column { name: "process", shape: Shape::Text, unit: Unit::Text },
    Column { name: "name", shape: Shape::Text, unit: Unit::Text },
    Column { name: "kind", shape: Shape::Text, unit: Unit::Text },
    Column { name: "unit", shape: Shape::Text, unit: Unit::Text },
];
/// Columns that only repeat what the metadata says.
const WORDS: [&str; 4] = ["process", "name", "kind", "unit"];

/// Series by number, in the order of their first rows.
#[derive(Default)]
struct Numbers {
    by_series: HashMap<Arc<Series>, usize>,
    texts: Vec<SeriesText>,
}

impl Numbers {
    fn of(&mut self, series: &Arc<Series>) -> usize {
        if let Some(&number) = self.by_series.get(series) {
            return number;
        }
        self.by_series.insert(series.clone(), self.texts.len());
        self.texts.push(series.text());
        self.texts.len() - 1
    }
}

/// The columns that all tables of series begin with.
fn store_names<'r>(
    rows: impl Iterator<Item = (u64, i64, &'r Arc<Series>)>,
    shapes: &[Column],
) -> Vec<Cells> {
    let mut all: Vec<Cells> = shapes.iter().map(|column| Cells::new(column.shape)).collect();
    let mut numbers = Numbers::default();
    for (frame, time_us, series) in rows {
        let number = numbers.of(series);
        let text = &numbers.texts[number];
        let mut cells = all.iter_mut();
        let mut next = |put: &dyn Fn(&mut Cells)| {
            if let Some(cells) = cells.next() {
                put(cells);
            }
        };
        next(&|cells| frame.put(cells));
        next(&|cells| time_us.put(cells));
        next(&|cells| (number as u64).put(cells));
        for word in [&text.process, &text.name, &text.kind, &text.unit] {
            next(&|cells| word.put(cells));
        }
    }
    all
}

fn metadata<'r>(rows: impl Iterator<Item = &'r Arc<Series>>) -> Option<String> {
    let mut numbers = Numbers::default();
    rows.for_each(|series| {
        numbers.of(series);
    });
    serde_json::to_string(&numbers.texts).ok()
}

/// The series that the metadata of a part names.
pub(crate) fn of_metadata(text: &str) -> Vec<Arc<Series>> {
    let texts: Vec<SeriesText> = serde_json::from_str(text).unwrap_or_default();
    texts.iter().map(|text| Arc::new(Series::of_text(text))).collect()
}

fn columns(own: &[Column]) -> Vec<Column> {
    [FRAME, TIME].iter().chain(&NAMES).chain(own).copied().collect()
}

/// What the tables of series have in common beside their first columns.
macro_rules! of_series {
    () => {
        fn repeats() -> &'static [&'static str] {
            &WORDS
        }

        fn metadata(rows: &[Self]) -> Option<String> {
            metadata(rows.iter().map(|row| &row.series))
        }

        fn sort(rows: &mut [Self]) {
            rows.sort_by(|a, b| {
                a.series.order().cmp(&b.series.order()).then_with(|| a.frame.cmp(&b.frame))
            });
        }

        fn frame(&self) -> u64 {
            self.frame
        }

        fn time_us(&self) -> i64 {
            self.time_us
        }
    };
}

impl Table for StatRow {
    const NAME: &'static str = "statistics";

    fn columns() -> Vec<Column> {
        columns(&[
            Column { name: "count", shape: Shape::Long, unit: Unit::Count },
            Column { name: "total", shape: Shape::Long, unit: Unit::Given },
            Column { name: "bytes", shape: Shape::Long, unit: Unit::Bytes },
            Column { name: "follows", shape: Shape::Long, unit: Unit::Count },
        ])
    }

    of_series!();

    fn store(rows: &[Self]) -> Vec<Cells> {
        let names = rows.iter().map(|row| (row.frame, row.time_us, &row.series));
        let mut cells = store_names(names, &columns(&[]));
        let numbers: [fn(&StatRow) -> u64; 4] =
            [|row| row.count, |row| row.total, |row| row.amount, |row| row.follows];
        for number in numbers {
            let mut column = Cells::new(Shape::Long);
            rows.iter().for_each(|row| number(row).put(&mut column));
            cells.push(column);
        }
        cells
    }

    fn load(columns: &Columns) -> Vec<Self> {
        let [frame, time, series] = ["frame", "time", "series"].map(|name| columns.find(name));
        let [count, total, amount, follows] =
            ["count", "total", "bytes", "follows"].map(|name| columns.find(name));
        let row = |row| {
            Some(StatRow {
                frame: Cell::get(frame, row),
                time_us: Cell::get(time, row),
                series: columns.series.get(u64::get(series, row) as usize)?.clone(),
                count: Cell::get(count, row),
                total: Cell::get(total, row),
                amount: Cell::get(amount, row),
                follows: Cell::get(follows, row),
            })
        };
        (0..columns.rows).filter_map(row).collect()
    }
}

impl Table for HistogramRow {
    const NAME: &'static str = "histograms";

    fn columns() -> Vec<Column> {
        columns(&[
            Column { name: "min", shape: Shape::OptLong, unit: Unit::Given },
            Column { name: "max", shape: Shape::OptLong, unit: Unit::Given },
            Column { name: "buckets", shape: Shape::Longs, unit: Unit::Id },
            Column { name: "counts", shape: Shape::Longs, unit: Unit::Count },
        ])
    }

    of_series!();

    fn store(rows: &[Self]) -> Vec<Cells> {
        let names = rows.iter().map(|row| (row.frame, row.time_us, &row.series));
        let mut cells = store_names(names, &columns(&[]));
        for extreme in [|row: &HistogramRow| row.min, |row: &HistogramRow| row.max] {
            let mut column = Cells::new(Shape::OptLong);
            rows.iter().for_each(|row| extreme(row).put(&mut column));
            cells.push(column);
        }
        for list in
            [|row: &HistogramRow| row.buckets.clone(), |row: &HistogramRow| row.counts.clone()]
        {
            let mut column = Cells::new(Shape::Longs);
            rows.iter().for_each(|row| list(row).put(&mut column));
            cells.push(column);
        }
        cells
    }

    fn load(columns: &Columns) -> Vec<Self> {
        let [frame, time, series] = ["frame", "time", "series"].map(|name| columns.find(name));
        let [min, max, buckets, counts] =
            ["min", "max", "buckets", "counts"].map(|name| columns.find(name));
        let row = |row| {
            Some(HistogramRow {
                frame: Cell::get(frame, row),
                time_us: Cell::get(time, row),
                series: columns.series.get(u64::get(series, row) as usize)?.clone(),
                min: Cell::get(min, row),
                max: Cell::get(max, row),
                buckets: Cell::get(buckets, row),
                counts: Cell::get(counts, row),
            })
        };
        (0..columns.rows).filter_map(row).collect()
    }
}
