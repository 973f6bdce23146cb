// SPDX-License-Identifier: PostgreSQL
//! The rows of `statistics` and `histograms`.
//!
//! The column `series` has the number of the row's series within the file; the texts of the series are in
//! every row. For speed, our reader takes the texts from the first row of each series and ignores the
//! others. Format 1 also had them in the file's metadata.

use crate::series::{Series, SeriesText};
use crate::table::{column, merging, Cell, Cells, Column, Columns, Shape, Table, Unit};
use std::collections::HashMap;
use std::sync::Arc;

const FIRST: [Column; 7] = [
    Column { name: "frame", shape: Shape::Long, unit: Unit::Id },
    Column { name: "time", shape: Shape::Long, unit: Unit::Time },
    Column { name: "series", shape: Shape::Long, unit: Unit::Id },
    Column { name: "process", shape: Shape::Text, unit: Unit::Text },
    Column { name: "name", shape: Shape::Text, unit: Unit::Text },
    Column { name: "kind", shape: Shape::Text, unit: Unit::Text },
    Column { name: "unit", shape: Shape::Text, unit: Unit::Text },
];
/// The texts of a series, in the order of [`SeriesText`].
pub(crate) const TEXTS: [&str; 4] = ["process", "name", "kind", "unit"];

/// Series by number, in the order of their first rows.
#[derive(Default)]
struct SeriesNumbers {
    by_series: HashMap<Arc<Series>, usize>,
    texts: Vec<SeriesText>,
}

impl SeriesNumbers {
    fn number(&mut self, series: &Arc<Series>) -> usize {
        if let Some(&number) = self.by_series.get(series) {
            return number;
        }
        self.by_series.insert(series.clone(), self.texts.len());
        self.texts.push(series.text());
        self.texts.len() - 1
    }
}

/// The columns [`FIRST`] of rows with these intervals, ends and series.
fn first_columns<'r>(rows: impl Iterator<Item = (u64, i64, &'r Arc<Series>)>) -> Vec<Cells> {
    let mut all = FIRST.map(|column| Cells::new(column.shape));
    let mut numbers = SeriesNumbers::default();
    for (frame, time_us, series) in rows {
        let number = numbers.number(series);
        let text = &numbers.texts[number];
        let [frames, times, series, texts @ ..] = &mut all;
        frame.put(frames);
        time_us.put(times);
        (number as u64).put(series);
        for (cells, text) in
            texts.iter_mut().zip([&text.process, &text.name, &text.kind, &text.unit])
        {
            text.put(cells);
        }
    }
    all.into()
}

/// The series in the metadata of a file of format 1.
pub(crate) fn of_metadata(text: &str) -> Vec<Arc<Series>> {
    let texts: Vec<SeriesText> = serde_json::from_str(text).unwrap_or_default();
    texts.iter().map(|text| Arc::new(Series::of_text(text))).collect()
}

/// The series with the texts in the columns [`TEXTS`].
pub(crate) fn of_texts([process, name, kind, unit]: [Arc<str>; 4]) -> Arc<Series> {
    Arc::new(Series::of_text(&SeriesText { process, name, kind, unit }))
}

/// Defines a row of a series.
macro_rules! series_table {
    (
        $(#[$doc:meta])*
        $row:ident in $name:literal $(, histogram $buckets:ident $counts:ident)?;
        $($field:ident in $column:literal: $type:ty, $unit:ident $(, $rule:ident)?, $meaning:literal;)*
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $row {
            /// The number of the interval, or of the last one in the detail interval.
            pub frame: u64,
            /// When that interval ended, microseconds since 1970.
            pub time_us: i64,
            /// The series.
            pub series: Arc<Series>,
            $(#[doc = $meaning] pub $field: $type,)*
        }

        impl Table for $row {
            const NAME: &'static str = $name;

            fn columns() -> Vec<Column> {
                let own = [$(Column {
                    name: $column,
                    shape: <$type as Cell>::SHAPE,
                    unit: Unit::$unit,
                }),*];
                FIRST.into_iter().chain(own).collect()
            }

            fn rules() -> &'static [(&'static str, &'static str)] {
                &[$($(($column, stringify!($rule)),)?)*]
            }

            fn repeats() -> &'static [&'static str] {
                &TEXTS
            }

            fn store(rows: &[Self]) -> Vec<Cells> {
                let first = rows.iter().map(|row| (row.frame, row.time_us, &row.series));
                let mut all = first_columns(first);
                all.extend([$(column(rows, |row| &row.$field)),*]);
                all
            }

            fn load(columns: &Columns) -> Vec<Self> {
                let [frame, time, series] =
                    ["frame", "time", "series"].map(|name| columns.find(name));
                $(let $field = columns.find($column);)*
                let load = |row| {
                    Some($row {
                        frame: Cell::get(frame, row),
                        time_us: Cell::get(time, row),
                        series: columns.series.get(u64::get(series, row) as usize)?.clone(),
                        $($field: Cell::get($field, row),)*
                    })
                };
                (0..columns.rows).filter_map(load).collect()
            }

            fn sort(rows: &mut [Self]) {
                rows.sort_by(|a, b| {
                    (a.series.order(), a.frame).cmp(&(b.series.order(), b.frame))
                });
            }

            merging! { $([$buckets $counts])? $($($rule $field;)?)* }
        }
    };
}

series_table! {
    /// What one series did in an interval.
    StatRow in "statistics";
    count in "count": u64, Count, sum, "Events that ended.";
    total in "total": u64, Given, sum, "Time in ns, or the sum of values in the series' unit.";
    amount in "bytes": u64, Bytes, sum, "Bytes moved by these events.";
    follows in "follows": u64, Count, sum, "Events that continued where the previous one had ended.";
}

series_table! {
    /// The distribution of the values of one series in a detail interval.
    HistogramRow in "histograms", histogram buckets counts;
    min in "min": Option<u64>, Given, min, "The minimum, if known: ns, or the series' unit.";
    max in "max": Option<u64>, Given, max, "The maximum, if known: ns, or the series' unit.";
    buckets in "buckets": Vec<u64>, Id, "Numbers of the buckets that are not empty.";
    counts in "counts": Vec<u64>, Count, "Number of values in each of these buckets.";
}
