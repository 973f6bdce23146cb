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

    fn totals(&self, row: usize) -> StatTotals {
        let [count, total, amount, follows] = self.totals.map(|cells| unsigned(cells[row]));
        StatTotals { count, total, amount, follows }
    }

    /// Pass the sums of neighbouring rows of one series to `see`, whose intervals have one place: the rows of a series are
    /// adjacent, so there are few sums. `place_of` returns the place of an interval; rows without one are left out.
    pub fn each_sum<P: Copy + PartialEq>(
        &self,
        place_of: impl Fn(u64) -> Option<P>,
        mut see: impl FnMut(i64, P, StatTotals),
    ) {
        let mut open: Option<((i64, P), StatTotals)> = None;
        for (row, (frame, series)) in self.frame.iter().zip(self.series).enumerate() {
            let Some(place) = place_of(unsigned(*frame)) else { continue };
            match &mut open {
                Some((of, sum)) if *of == (*series, place) => sum.add(self.totals(row)),
                _ => {
                    if let Some(((series, place), sum)) =
                        open.replace(((*series, place), self.totals(row)))
                    {
                        see(series, place, sum);
                    }
                }
            }
        }
        if let Some(((series, place), sum)) = open {
            see(series, place, sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn neighbours_are_added_up_and_rows_without_a_place_left_out() {
        let frame: Vec<i64> = (0..40).map(|row| row % 10).collect();
        let series: Vec<i64> = (0..40).map(|row| row / 12).collect();
        let totals = [1, 2, 3, 4].map(|n| (0..40).map(|row| n * row).collect::<Vec<i64>>());
        let numbers = Numbers {
            frame: &frame,
            series: &series,
            totals: totals.each_ref().map(Vec::as_slice),
        };
        let place_of = |frame: u64| (frame != 3).then_some(frame / 5);
        let mut found: HashMap<(i64, u64), StatTotals> = HashMap::new();
        let mut passed = 0;
        numbers.each_sum(place_of, |series, place, sum| {
            passed += 1;
            found.entry((series, place)).or_default().add(sum);
        });
        // Four times two places, and three series that begin within one.
        assert_eq!(passed, 11);
        let mut expected: HashMap<(i64, u64), StatTotals> = HashMap::new();
        for row in (0..40).filter(|row| row % 10 != 3) {
            let place = (row % 10 / 5) as u64;
            expected.entry((row as i64 / 12, place)).or_default().add(numbers.totals(row));
        }
        assert_eq!(found, expected);
    }
}
