// SPDX-License-Identifier: PostgreSQL
//! What a table is: rows, their columns, and the cells of a column while it is written or read.

use crate::series::Series;
use std::sync::Arc;

/// What a column holds, as docs/reference-recording.md describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Time of day, UTC: microseconds since 1970 here, milliseconds in files.
    Time,
    /// Nanoseconds.
    Ns,
    /// How many.
    Count,
    /// Bytes.
    Bytes,
    /// A number that stands for something.
    Id,
    /// Words.
    Text,
    /// Yes or no.
    Flag,
    /// Square nanoseconds.
    NsSquared,
    /// A share, 0 to 1.
    Share,
    /// As another column of the row says.
    Given,
}

/// How the cells of a column are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A whole number.
    Long,
    /// A whole number, or nothing.
    OptLong,
    /// A number.
    Double,
    /// Yes or no.
    Bool,
    /// Words.
    Text,
    /// Words, or nothing.
    OptText,
    /// Some whole numbers.
    Longs,
}

/// A column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// How its cells are kept.
    pub shape: Shape,
    /// What they mean.
    pub unit: Unit,
}

/// The cells of a column, one for each row.
#[derive(Debug, Clone)]
pub enum Cells {
    /// See [`Shape::Long`].
    Long(Vec<i64>),
    /// See [`Shape::OptLong`].
    OptLong(Vec<Option<i64>>),
    /// See [`Shape::Double`].
    Double(Vec<f64>),
    /// See [`Shape::Bool`].
    Bool(Vec<bool>),
    /// See [`Shape::Text`].
    Text(Vec<Arc<str>>),
    /// See [`Shape::OptText`].
    OptText(Vec<Option<Arc<str>>>),
    /// See [`Shape::Longs`].
    Longs(Vec<Vec<i64>>),
}

impl Cells {
    /// A column without rows.
    pub fn new(shape: Shape) -> Cells {
        match shape {
            Shape::Long => Cells::Long(Vec::new()),
            Shape::OptLong => Cells::OptLong(Vec::new()),
            Shape::Double => Cells::Double(Vec::new()),
            Shape::Bool => Cells::Bool(Vec::new()),
            Shape::Text => Cells::Text(Vec::new()),
            Shape::OptText => Cells::OptText(Vec::new()),
            Shape::Longs => Cells::Longs(Vec::new()),
        }
    }
}

/// What may stand in a cell.
pub trait Cell: Default {
    /// How it is kept.
    const SHAPE: Shape;
    /// Add it to its column.
    fn put(&self, cells: &mut Cells);
    /// The cell of a row; the default where the column is another one than it should be.
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

/// Numbers that are counted do not come near 2^63.
fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn unsigned(n: i64) -> u64 {
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
cell!(Vec<u64>, Longs, |all: &Vec<u64>| all.iter().map(|n| signed(*n)).collect(), |all: &Vec<
    i64,
>| all
    .iter()
    .map(|n| unsigned(*n))
    .collect());

/// The cells of a column that is not there.
pub static NOTHING: Cells = Cells::Long(Vec::new());

/// Columns that have been read, by name.
#[derive(Debug, Default)]
pub struct Columns {
    /// Rows.
    pub rows: usize,
    /// Each column.
    pub cells: Vec<(String, Cells)>,
    /// The series that the part's metadata names.
    pub series: Vec<Arc<Series>>,
}

impl Columns {
    /// A column; one without cells, which all have their default, where a file of an earlier
    /// version lacks it.
    pub fn find(&self, name: &str) -> &Cells {
        self.cells.iter().find(|(known, _)| known == name).map_or(&NOTHING, |(_, cells)| cells)
    }

    /// A column of whole numbers; empty where the file lacks it.
    pub fn longs(&self, name: &str) -> &[i64] {
        match self.find(name) {
            Cells::Long(cells) => cells,
            _ => &[],
        }
    }
}

/// A row of a table.
pub trait Table: Sized + Clone + 'static {
    /// The table's name: that of its folder.
    const NAME: &'static str;
    /// Its columns.
    fn columns() -> Vec<Column>;
    /// Columns that are there for others: we have what they say from the metadata.
    fn repeats() -> &'static [&'static str] {
        &[]
    }
    /// What the metadata of a part with these rows says beside them.
    fn metadata(_rows: &[Self]) -> Option<String> {
        None
    }
    /// The rows as columns, in the order of [`Table::columns`].
    fn store(rows: &[Self]) -> Vec<Cells>;
    /// The rows of these columns.
    fn load(columns: &Columns) -> Vec<Self>;
    /// Bring rows into the order in which they are kept best.
    fn sort(rows: &mut [Self]);
    /// The interval that the row is of, or that it came with.
    fn frame(&self) -> u64;
    /// When that was, or when it happened: microseconds since 1970.
    fn time_us(&self) -> i64;
}

/// Defines a row whose columns are its fields.
macro_rules! table {
    (
        $(#[$doc:meta])*
        $row:ident in $name:literal by $key:expr;
        $($(#[$field_doc:meta])* $field:ident: $type:ty, $unit:ident;)*
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $row {
            /// The number of the interval in whose row this is, or with which it came.
            pub frame: u64,
            /// When that interval ended, or when this happened.
            pub time_us: i64,
            $($(#[$field_doc])* pub $field: $type,)*
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

            fn store(rows: &[Self]) -> Vec<Cells> {
                let mut all: Vec<Cells> =
                    Self::columns().iter().map(|column| Cells::new(column.shape)).collect();
                for row in rows {
                    let mut cells = all.iter_mut();
                    let mut put = |value: &dyn Fn(&mut Cells)| {
                        if let Some(cells) = cells.next() {
                            value(cells);
                        }
                    };
                    put(&|cells| row.frame.put(cells));
                    put(&|cells| row.time_us.put(cells));
                    $(put(&|cells| row.$field.put(cells));)*
                }
                all
            }

            fn load(columns: &Columns) -> Vec<Self> {
                let all: Vec<&Cells> =
                    Self::columns().iter().map(|column| columns.find(column.name)).collect();
                let load = |row: usize| {
                    let mut cells = all.iter().copied();
                    let mut next = || cells.next().unwrap_or(&$crate::table::NOTHING);
                    $row {
                        frame: Cell::get(next(), row),
                        time_us: Cell::get(next(), row),
                        $($field: Cell::get(next(), row),)*
                    }
                };
                (0..columns.rows).map(load).collect()
            }

            fn sort(rows: &mut [Self]) {
                let key: fn(&Self, &Self) -> std::cmp::Ordering = $key;
                rows.sort_by(key);
            }

            fn frame(&self) -> u64 {
                self.frame
            }

            fn time_us(&self) -> i64 {
                self.time_us
            }
        }
    };
}

pub(crate) use table;
