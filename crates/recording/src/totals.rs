// SPDX-License-Identifier: PostgreSQL
//! The figures of `statistics` that are summed.

use crate::statistics::StatRow;
use crate::table::{columns, unsigned, Column, Columns};

/// Sums of some series in some intervals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatTotals {
    /// Events that ended.
    pub count: u64,
    /// Time in ns, or the sum of values in the series' unit.
    pub total: u64,
    /// Bytes.
    pub amount: u64,
    /// Events that continued where the previous one had ended.
    pub follows: u64,
}

impl StatTotals {
    pub(crate) fn from_row(row: &StatRow) -> StatTotals {
        let StatRow { count, total, amount, follows, .. } = *row;
        StatTotals { count, total, amount, follows }
    }

    /// Add other sums.
    pub fn add(&mut self, more: StatTotals) {
        self.count = self.count.saturating_add(more.count);
        self.total = self.total.saturating_add(more.total);
        self.amount = self.amount.saturating_add(more.amount);
        self.follows = self.follows.saturating_add(more.follows);
    }
}

/// The columns of `statistics` that are summed.
pub(crate) fn number_columns() -> Vec<Column> {
    columns::<StatRow>(&["frame", "series", "count", "total", "bytes", "follows"])
}

/// These columns of a row group.
pub(crate) struct Numbers<'c> {
    pub frame: &'c [i64],
    pub series: &'c [i64],
    /// The columns of [`StatTotals`].
    totals: [&'c [i64]; 4],
}

impl<'c> Numbers<'c> {
    /// `None`: a column is missing or too short.
    pub fn from_columns(columns: &'c Columns) -> Option<Numbers<'c>> {
        let column = |name| {
            let cells = columns.longs(name);
            (cells.len() == columns.rows).then_some(cells)
        };
        Some(Numbers {
            frame: column("frame")?,
            series: column("series")?,
            totals: [column("count")?, column("total")?, column("bytes")?, column("follows")?],
        })
    }

    pub fn totals(&self, row: usize) -> StatTotals {
        let [count, total, amount, follows] = self.totals.map(|cells| unsigned(cells[row]));
        StatTotals { count, total, amount, follows }
    }
}
