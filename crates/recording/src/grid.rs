// SPDX-License-Identifier: PostgreSQL
//! Statistics over time: a grid whose lines are groups of series and whose columns are spans of time.

use crate::error::Error;
use crate::index::Index;
use crate::range::Range;
use crate::recording::Recording;
use crate::rows::FrameRow;
use crate::series::Series;
use crate::statistics::StatRow;
use crate::sum::{number_columns, Numbers, StatTotals};
use crate::table::{unsigned, Columns};
use std::collections::HashMap;
use std::sync::Arc;

/// Sums by line of series and column of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid {
    /// Sums by line, then by column.
    pub cells: Vec<Vec<StatTotals>>,
    /// Recorded time in each column, ns; 0: a gap.
    pub covered_ns: Vec<u64>,
}

/// Finds the cell of a row.
struct CellFinder<'i, P> {
    index: &'i Index,
    /// The column of each interval in the index.
    columns: Vec<Option<usize>>,
    line_of: P,
    lines: HashMap<Arc<Series>, Option<usize>>,
}

impl<P: Fn(&Series) -> Option<usize>> CellFinder<'_, P> {
    fn line(&mut self, series: &Arc<Series>) -> Option<usize> {
        if let Some(line) = self.lines.get(series) {
            return *line;
        }
        let line = (self.line_of)(series);
        self.lines.insert(series.clone(), line);
        line
    }

    fn column(&self, frame: u64) -> Option<usize> {
        self.columns.get(self.index.position(frame)?).copied().flatten()
    }
}

impl Grid {
    fn add(&mut self, line: usize, column: usize, more: StatTotals) {
        if let Some(cell) = self.cells.get_mut(line).and_then(|line| line.get_mut(column)) {
            cell.add(more);
        }
    }

    fn add_columns<P: Fn(&Series) -> Option<usize>>(
        &mut self,
        cells: &mut CellFinder<'_, P>,
        columns: &Columns,
    ) {
        let Some(numbers) = Numbers::from_columns(columns) else { return };
        let lines: Vec<Option<usize>> =
            columns.series.iter().map(|series| cells.line(series)).collect();
        for row in 0..columns.rows {
            let line = lines.get(unsigned(numbers.series[row]) as usize).copied().flatten();
            let Some(line) = line else { continue };
            let Some(column) = cells.column(unsigned(numbers.frame[row])) else { continue };
            self.add(line, column, numbers.totals(row));
        }
    }
}

impl Recording {
    /// Sums over time, computed in one pass. `line_of` returns the line of a series, from 0 to
    /// `lines` - 1, if it has one. Column `i` has the intervals that end after `bounds_us[i]` and not
    /// after `bounds_us[i + 1]`. Bounds are ascending, in microseconds since 1970.
    pub fn grid(
        &self,
        range: Range,
        bounds_us: &[i64],
        lines: usize,
        line_of: impl Fn(&Series) -> Option<usize>,
    ) -> Result<Grid, Error> {
        let width = bounds_us.len().saturating_sub(1);
        let column_of = |row: &FrameRow| {
            let at = bounds_us.partition_point(|bound| *bound < row.time_us);
            at.checked_sub(1).filter(|at| *at < width)
        };
        self.grid_by(range, (lines, width), line_of, column_of)
    }

    /// The same with `width` columns; `column_of` returns the column of an interval, from 0 to `width` - 1, if it has
    /// one.
    pub fn grid_by(
        &self,
        range: Range,
        (lines, width): (usize, usize),
        line_of: impl Fn(&Series) -> Option<usize>,
        column_of: impl Fn(&FrameRow) -> Option<usize>,
    ) -> Result<Grid, Error> {
        let index = self.index(range)?;
        self.report_missing(&index, range);
        let mut grid = Grid {
            cells: vec![vec![StatTotals::default(); width]; lines],
            covered_ns: vec![0; width],
        };
        let columns: Vec<Option<usize>> = index.frames.iter().map(column_of).collect();
        for (row, column) in index.frames.iter().zip(&columns) {
            if let Some(covered) = column.and_then(|at| grid.covered_ns.get_mut(at)) {
                *covered = covered.saturating_add(row.interval_ns);
            }
        }
        let mut cells = CellFinder { index: &index, columns, line_of, lines: HashMap::new() };
        let see = |columns: &Columns| grid.add_columns(&mut cells, columns);
        let journal = self.each_columns::<StatRow>(range, &number_columns(), see)?;
        for row in &journal.statistics {
            let to = cells.line(&row.series).zip(cells.column(row.frame));
            if let Some((line, column)) = to {
                grid.add(line, column, StatTotals::from_row(row));
            }
        }
        Ok(grid)
    }
}
