// SPDX-License-Identifier: PostgreSQL
//! Sums of tables' rows and of statements, by point of the charts.

use std::collections::hash_map::DefaultHasher;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use view::document::{Axis, Cell, Column, Row, Table, Unit};

use crate::statement_id::StatementId;

/// A row of a table: the hash of the table and the row's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowId(u64);

impl RowId {
    /// Of this row.
    pub fn new(table: &Table, row: &Row) -> RowId {
        let mut hash = DefaultHasher::new();
        table.id.hash(&mut hash);
        for (column, cell) in table.columns.iter().zip(&row.cells) {
            if let (false, Cell::Text(name)) = (column.unit.is_figure(), cell) {
                (column.key, name).hash(&mut hash);
            }
        }
        RowId(hash.finish())
    }
}

/// The sums of the rows of all tables in one point.
#[derive(Debug, Clone, Default)]
pub struct PointSums(pub Vec<(RowId, Box<[f64]>)>);

impl PointSums {
    /// The cells of these tables.
    pub fn from_tables(tables: &[Table]) -> PointSums {
        let mut sums = Vec::new();
        for table in tables {
            let columns = sum_columns(&table.columns);
            for row in &table.rows {
                let values: Box<[f64]> = columns.iter().map(|at| value(&row.cells[*at])).collect();
                if values.iter().any(|value| *value != 0.0) {
                    sums.push((RowId::new(table, row), values));
                }
            }
        }
        PointSums(sums)
    }
}

/// Maximum number of points of tables over time, besides those of gaps. With these, the page of a day with 500 statements is
/// smaller than 10 MB.
pub const POINTS: usize = 360;

/// Statements over time, all applications together.
#[derive(Debug, Clone, Default)]
pub struct StatementParts {
    /// The points.
    pub axis: Axis,
    /// Sums by point of each statement, added up in this order.
    pub sums: BTreeMap<StatementId, StatementSums>,
}

/// Sums of a statement in each point. Those that are unknown are empty.
#[derive(Debug, Clone, Default)]
pub struct StatementSums {
    /// All its time in the server.
    pub seconds: Vec<f64>,
    /// Executions without an error.
    pub calls: Vec<f64>,
    /// Total time of these executions.
    pub exec_seconds: Vec<f64>,
    /// Of its time, that in each class of activity, by the key of its column: "cpu_share".
    pub classes: BTreeMap<&'static str, Vec<f64>>,
}

impl StatementSums {
    /// Zeros for this number of points.
    pub fn with_points(points: usize) -> StatementSums {
        StatementSums {
            seconds: vec![0.0; points],
            calls: vec![0.0; points],
            exec_seconds: vec![0.0; points],
            classes: BTreeMap::new(),
        }
    }
}

/// The key of the column with the share of a class.
pub fn share_key(class: segment::WaitClass) -> &'static str {
    use segment::WaitClass as C;
    match class.shown_as() {
        C::Cpu => "cpu_share",
        C::Io => "io_share",
        C::Lwlock => "lwlock_share",
        C::Lock => "lock_share",
        C::Client => "client_share",
        C::Ipc => "ipc_share",
        _ => "other_share",
    }
}

/// The columns whose cells can be added up.
pub fn sum_columns(columns: &[Column]) -> Vec<usize> {
    (0..columns.len()).filter(|at| is_sum(&columns[*at])).collect()
}

/// Whether the cells of a column can be added up.
pub fn is_sum(column: &Column) -> bool {
    match column.unit {
        Unit::Count => column.key != "sessions",
        Unit::Bytes => true,
        Unit::Seconds => {
            (column.key == "seconds" || column.key.ends_with("_seconds"))
                && ![
                    "mean",
                    "p50",
                    "p95",
                    "p99",
                    "max",
                    "min",
                    "per_command",
                    "per_commit",
                    "per_call",
                ]
                .iter()
                .any(|kind| column.key.contains(kind))
        }
        _ => false,
    }
}

fn value(cell: &Cell) -> f64 {
    match cell {
        Cell::Whole(n) => *n as f64,
        Cell::Number(n) => *n,
        Cell::Estimate(estimate) => estimate.value,
        Cell::Rounded { exact, .. } => exact.unwrap_or(0.0),
        Cell::Empty | Cell::Text(_) => 0.0,
    }
}
