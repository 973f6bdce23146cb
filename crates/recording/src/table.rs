// SPDX-License-Identifier: PostgreSQL
//! Tables: rows, columns, and the cells of a column while it is written or read.

use crate::series::Series;
use std::ops::Range;
use std::sync::Arc;

/// The unit of a column, as in docs/reference-recording.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A time of day, UTC: microseconds since 1970 here, milliseconds in files.
    Time,
    /// Nanoseconds.
    Ns,
    /// A count.
    Count,
    /// Bytes.
    Bytes,
    /// An identifier.
    Id,
    /// A text.
    Text,
    /// True or false.
    Flag,
    /// Square nanoseconds.
    NsSquared,
    /// A share, 0 to 1.
    Share,
    /// The unit of the row's series.
    Given,
}

macro_rules! shapes {
    ($($(#[$doc:meta])* $shape:ident($type:ty),)*) => {
        /// The type of a column's cells.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Shape {
            $($(#[$doc])* $shape,)*
        }

        /// The cells of a column, one for each row.
        #[derive(Debug, Clone)]
        pub enum Cells {
            $($(#[$doc])* $shape($type),)*
        }

        impl Cells {
            /// A column without rows.
            pub fn new(shape: Shape) -> Cells {
                match shape {
                    $(Shape::$shape => Cells::$shape(<$type>::new()),)*
                }
            }
        }
    };
}

shapes! {
    /// A whole number.
    Long(Vec<i64>),
    /// A whole number or null.
    OptLong(Vec<Option<i64>>),
    /// A floating-point number.
    Double(Vec<f64>),
    /// True or false.
    Bool(Vec<bool>),
    /// A text.
    Text(Vec<Arc<str>>),
    /// A text or null.
    OptText(Vec<Option<Arc<str>>>),
    /// A list of whole numbers.
    Longs(Lists),
}

/// Lists of whole numbers, one for each row, in one piece of memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lists {
    values: Vec<i64>,
    /// The number of values up to the end of each list.
    ends: Vec<usize>,
}

impl Lists {
    /// No rows.
    pub fn new() -> Lists {
        Lists::default()
    }

    /// These values; each of `ends` is the number of values up to the end of a list.
    pub(crate) fn from_ends(values: Vec<i64>, ends: Vec<usize>) -> Lists {
        Lists { values, ends }
    }

    /// The values of all rows and the ends of the lists.
    pub(crate) fn into_ends(self) -> (Vec<i64>, Vec<usize>) {
        (self.values, self.ends)
    }

    /// Append the list of another row.
    pub fn push(&mut self, list: impl IntoIterator<Item = i64>) {
        self.values.extend(list);
        self.ends.push(self.values.len());
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The list of a row.
    pub fn get(&self, row: usize) -> Option<&[i64]> {
        let begin = match row.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.values.get(begin..*self.ends.get(row)?)
    }

    /// The lists, row by row.
    pub fn iter(&self) -> impl Iterator<Item = &[i64]> {
        (0..self.len()).filter_map(|row| self.get(row))
    }

    /// The values of all rows.
    pub(crate) fn values(&self) -> &[i64] {
        &self.values
    }
}

/// A column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// The type of its cells.
    pub shape: Shape,
    /// Their unit.
    pub unit: Unit,
}

/// A type of cells.
pub trait Cell: Default {
    /// Its column's type.
    const SHAPE: Shape;
    /// Append the cell to a column.
    fn put(&self, cells: &mut Cells);
    /// The cell of a row; the default if the column has another type.
    fn get(cells: &Cells, row: usize) -> Self;
}

macro_rules! cell {
    ($type:ty, $shape:ident, $put:expr, $get:expr) => {
        impl Cell for $type {
            const SHAPE: Shape = Shape::$shape;

            fn put(&self, cells: &mut Cells) {
                if let Cells::$shape(cells) = cells {
                    cells.push($put(self));
                }
            }

            fn get(cells: &Cells, row: usize) -> Self {
                match cells {
                    Cells::$shape(cells) => cells.get(row).map($get).unwrap_or_default(),
                    _ => Self::default(),
                }
            }
        }
    };
}

/// A column of these rows.
pub(crate) fn column<R, T: Cell>(rows: &[R], cell: impl Fn(&R) -> &T) -> Cells {
    let mut cells = Cells::new(T::SHAPE);
    rows.iter().for_each(|row| cell(row).put(&mut cells));
    cells
}

/// Parquet's signed type for a counter; counters do not reach 2^63.
fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

pub(crate) fn unsigned(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

cell!(i64, Long, |n: &i64| *n, |n: &i64| *n);
cell!(u64, Long, |n: &u64| signed(*n), |n: &i64| unsigned(*n));
cell!(u32, Long, |n: &u32| i64::from(*n), |n: &i64| u32::try_from(*n).unwrap_or(0));
cell!(Option<i64>, OptLong, |n: &Option<i64>| *n, |n: &Option<i64>| *n);
cell!(Option<u64>, OptLong, |n: &Option<u64>| n.map(signed), |n: &Option<i64>| n.map(unsigned));
cell!(f64, Double, |n: &f64| *n, |n: &f64| *n);
cell!(bool, Bool, |b: &bool| *b, |b: &bool| *b);
cell!(Arc<str>, Text, Arc::clone, Arc::clone);
cell!(Option<Arc<str>>, OptText, Option::clone, Option::clone);

impl Cell for Vec<u64> {
    const SHAPE: Shape = Shape::Longs;

    fn put(&self, cells: &mut Cells) {
        if let Cells::Longs(lists) = cells {
            lists.push(self.iter().map(|n| signed(*n)));
        }
    }

    fn get(cells: &Cells, row: usize) -> Self {
        match cells {
            Cells::Longs(lists) => {
                lists.get(row).unwrap_or(&[]).iter().map(|n| unsigned(*n)).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The cells of a missing column.
pub static NOTHING: Cells = Cells::Long(Vec::new());

/// Columns that have been read, by name.
#[derive(Debug, Default)]
pub struct Columns {
    /// Number of rows.
    pub rows: usize,
    /// The columns by name.
    pub cells: Vec<(String, Cells)>,
    /// The columns of numbers that are 0 in all rows; not in `cells`.
    pub zeros: Vec<&'static str>,
    /// The cells of each of them.
    pub zero_cells: Option<Cells>,
    /// The file's series, by number.
    pub series: Vec<Arc<Series>>,
}

impl Columns {
    /// The column of this name; without cells if the file lacks it, as files of earlier versions do, so that all
    /// cells get their defaults.
    pub fn find(&self, name: &str) -> &Cells {
        if let Some(zeros) = self.zero_cells.as_ref().filter(|_| self.zeros.contains(&name)) {
            return zeros;
        }
        self.cells.iter().find(|(known, _)| known == name).map_or(&NOTHING, |(_, cells)| cells)
    }

    /// Whether the file lacks this column, or all its cells are 0.
    pub(crate) fn is_zero(&self, name: &str) -> bool {
        self.zeros.contains(&name) || !self.cells.iter().any(|(known, _)| known == name)
    }

    /// The lists of the column of this name; without rows if the file lacks it.
    pub(crate) fn lists(&self, name: &str) -> &Lists {
        static NONE: Lists = Lists { values: Vec::new(), ends: Vec::new() };
        match self.find(name) {
            Cells::Longs(lists) => lists,
            _ => &NONE,
        }
    }

    /// The column of whole numbers of this name; empty if the file lacks it.
    pub fn longs(&self, name: &str) -> &[i64] {
        match self.find(name) {
            Cells::Long(cells) => cells,
            _ => &[],
        }
    }
}

/// A row of a table.
pub trait Table: Sized + Clone + 'static {
    /// The table's name, and that of its directory.
    const NAME: &'static str;
    /// Its columns.
    fn columns() -> Vec<Column>;
    /// How columns are merged, by name: `sum`, `min`, `max`, `last`, `earliest`, `all` or `any`. The other columns
    /// identify a row.
    fn rules() -> &'static [(&'static str, &'static str)];
    /// Columns that only other readers use; ours takes them from [`Columns::series`].
    fn repeats() -> &'static [&'static str] {
        &[]
    }
    /// The rows as columns, in the order of [`Table::columns`].
    fn store(rows: &[Self]) -> Vec<Cells>;
    /// The rows of these columns.
    fn load(columns: &Columns) -> Vec<Self>;
    /// Sort rows for the smallest file.
    fn sort(rows: &mut [Self]);
    /// Merge a later row into this one; the result belongs to the later interval.
    fn add(&mut self, later: Self);
    /// The number of the row's interval, or of the interval with which it came.
    fn frame(&self) -> u64;
    /// The end of that interval, or the time of an event; microseconds since 1970.
    fn time_us(&self) -> i64;
}

/// A row whose figures are added up column by column, without making rows.
pub(crate) trait AddColumns: Table {
    /// Merge rows into sums, by the rule of each column, in the order of the rows. `places` has consecutive rows and the
    /// position of their sum; other rows are left out. Columns without a rule and histograms are left to the caller.
    fn add_columns(sums: &mut [Self], places: &[(Range<usize>, usize)], columns: &Columns);
}

/// The columns of a table that have one of these names.
pub(crate) fn columns<T: Table>(names: &[&str]) -> Vec<Column> {
    T::columns().into_iter().filter(|column| names.contains(&column.name)).collect()
}

/// Defines how rows are merged: histograms by bucket, fields by their rules.
macro_rules! merging {
    ($([$buckets:ident $counts:ident])? $($rule:ident $field:ident;)*) => {
        fn add(&mut self, later: Self) {
            $($crate::merge::buckets(
                (&mut self.$buckets, &mut self.$counts),
                (&later.$buckets, &later.$counts),
            );)?
            (self.frame, self.time_us) = (later.frame, later.time_us);
            $($crate::merge::$rule(&mut self.$field, later.$field);)*
        }

        fn frame(&self) -> u64 {
            self.frame
        }

        fn time_us(&self) -> i64 {
            self.time_us
        }
    };
}

pub(crate) use merging;

/// Defines a row whose columns are its fields.
macro_rules! table {
    (
        $(#[$doc:meta])*
        $row:ident in $name:literal by $key:expr $(, histogram $buckets:ident $counts:ident)?;
        $($(#[$attribute:meta])* $field:ident: $type:ty, $unit:ident $(, $rule:ident)? $(, $meaning:literal)?;)*
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $row {
            /// The number of the interval, or of the one with which the row came.
            pub frame: u64,
            /// The end of the interval, or the time of the event; microseconds since 1970.
            pub time_us: i64,
            $($(#[$attribute])* $(#[doc = $meaning])? pub $field: $type,)*
        }

        impl Table for $row {
            const NAME: &'static str = $name;

            fn columns() -> Vec<Column> {
                vec![
                    Column { name: "frame", shape: <u64 as Cell>::SHAPE, unit: Unit::Id },
                    Column { name: "time", shape: <i64 as Cell>::SHAPE, unit: Unit::Time },
                    $(Column {
                        name: stringify!($field),
                        shape: <$type as Cell>::SHAPE,
                        unit: Unit::$unit,
                    },)*
                ]
            }

            fn rules() -> &'static [(&'static str, &'static str)] {
                &[$($((stringify!($field), stringify!($rule)),)?)*]
            }

            fn store(rows: &[Self]) -> Vec<Cells> {
                vec![
                    $crate::table::column(rows, |row| &row.frame),
                    $crate::table::column(rows, |row| &row.time_us),
                    $($crate::table::column(rows, |row| &row.$field)),*
                ]
            }

            fn load(columns: &Columns) -> Vec<Self> {
                let [frame, time] = ["frame", "time"].map(|name| columns.find(name));
                $(let $field = columns.find(stringify!($field));)*
                let load = |row| $row {
                    frame: Cell::get(frame, row),
                    time_us: Cell::get(time, row),
                    $($field: Cell::get($field, row),)*
                };
                (0..columns.rows).map(load).collect()
            }

            fn sort(rows: &mut [Self]) {
                let key: fn(&Self, &Self) -> std::cmp::Ordering = $key;
                rows.sort_by(key);
            }

            $crate::table::merging! { $([$buckets $counts])? $($($rule $field;)?)* }
        }

        impl $crate::table::AddColumns for $row {
            fn add_columns(
                sums: &mut [Self],
                places: &[(std::ops::Range<usize>, usize)],
                columns: &Columns,
            ) {
                let [frame, time] = ["frame", "time"].map(|name| columns.find(name));
                for (rows, at) in places {
                    if let (Some(sum), Some(row)) = (sums.get_mut(*at), rows.clone().last()) {
                        (sum.frame, sum.time_us) = (Cell::get(frame, row), Cell::get(time, row));
                    }
                }
                $($(
                    // A sum does not change by zeros, and most columns are zero in most files.
                    if stringify!($rule) != "sum" || !columns.is_zero(stringify!($field)) {
                        let cells = columns.find(stringify!($field));
                        for (rows, at) in places {
                            let Some(sum) = sums.get_mut(*at) else { continue };
                            for row in rows.clone() {
                                let cell: $type = Cell::get(cells, row);
                                $crate::merge::$rule(&mut sum.$field, cell);
                            }
                        }
                    }
                )?)*
            }
        }
    };
}

pub(crate) use table;
