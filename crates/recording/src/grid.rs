// SPDX-License-Identifier: PostgreSQL
//! Statistics over time: a grid whose lines are groups of series and whose columns are spans of time.

use crate::error::Error;
use crate::index::Index;
use crate::range::Range;
use crate::recording::Recording;
use crate::rows::FrameRow;
use crate::series::Series;
use crate::statistics::StatRow;
use crate::table::{unsigned, Columns};
use crate::totals::{number_columns, Numbers, StatTotals};
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
    index: &'i Index<'i>,
    /// The column of each interval in the index.
    columns: Vec<Option<usize>>,
    line_of: P,
    lines: HashMap<Arc<Series>, Option<usize>>,
    /// The series of the batch before, and their lines: the batches of a file have the same.
    batch: (Vec<Arc<Series>>, Vec<Option<usize>>),
}

impl<P: FnMut(&Series) -> Option<usize>> CellFinder<'_, P> {
    fn line(&mut self, series: &Arc<Series>) -> Option<usize> {
        if let Some(line) = self.lines.get(series) {
            return *line;
        }
        let line = (self.line_of)(series);
        self.lines.insert(series.clone(), line);
        line
    }

    /// The lines of a batch's series.
    fn lines(&mut self, series: &[Arc<Series>]) -> &[Option<usize>] {
        let is_same = series.len() == self.batch.0.len()
            && series.iter().zip(&self.batch.0).all(|(a, b)| Arc::ptr_eq(a, b));
        if !is_same {
            let lines = series.iter().map(|series| self.line(series)).collect();
            self.batch = (series.to_vec(), lines);
        }
        &self.batch.1
    }

    fn column(&self, frame: u64) -> Option<usize> {
        self.columns.get(self.index.position(frame)?).copied().flatten()
    }
}

/// A grid that is filled row by row.
pub(crate) struct GridBuilder<'i, P> {
    grid: Grid,
    width: usize,
    finder: CellFinder<'i, P>,
}

impl<'i, P: FnMut(&Series) -> Option<usize>> GridBuilder<'i, P> {
    /// An empty grid with this number of columns; `column_of` returns the column of an interval, if it has one.
    pub fn new(
        index: &'i Index<'i>,
        width: usize,
        line_of: P,
        column_of: impl Fn(&FrameRow) -> Option<usize>,
    ) -> GridBuilder<'i, P> {
        let mut covered_ns = vec![0u64; width];
        let columns: Vec<Option<usize>> = index.frames.iter().map(column_of).collect();
        for (row, column) in index.frames.iter().zip(&columns) {
            if let Some(covered) = column.and_then(|at| covered_ns.get_mut(at)) {
                *covered = covered.saturating_add(row.interval_ns);
            }
        }
        let (lines, batch) = Default::default();
        let finder = CellFinder { index, columns, line_of, lines, batch };
        GridBuilder { grid: Grid { cells: Vec::new(), covered_ns }, width, finder }
    }

    /// Have at least this many lines.
    fn cover(&mut self, lines: usize) {
        if self.grid.cells.len() < lines {
            let width = self.width;
            self.grid.cells.resize_with(lines, || vec![StatTotals::default(); width]);
        }
    }

    /// Add a row group.
    pub fn add_columns(&mut self, columns: &Columns, numbers: &Numbers<'_>) {
        let lines = self.finder.lines(&columns.series);
        let count = lines.iter().flatten().max().map_or(0, |line| line + 1);
        self.cover(count);
        let lines = &self.finder.batch.1;
        numbers.each_sum(
            |frame| self.finder.column(frame),
            |series, column, sum| {
                let line = lines.get(unsigned(series) as usize).copied().flatten();
                let cells = line.and_then(|line| self.grid.cells.get_mut(line));
                if let Some(cell) = cells.and_then(|cells| cells.get_mut(column)) {
                    cell.add(sum);
                }
            },
        );
    }

    /// Add a row.
    pub fn add_row(&mut self, row: &StatRow) {
        let Some(line) = self.finder.line(&row.series) else { return };
        self.cover(line + 1);
        let column = self.finder.column(row.frame);
        if let Some(cell) = column.and_then(|column| self.grid.cells[line].get_mut(column)) {
            cell.add(StatTotals::from_row(row));
        }
    }

    /// The grid, with at least this many lines.
    pub fn finish(mut self, lines: usize) -> Grid {
        self.cover(lines);
        self.grid
    }
}

/// Finds the column of an interval: column `i` has the intervals that end after `bounds_us[i]` and not after
/// `bounds_us[i + 1]`.
pub(crate) fn column_by_bounds(bounds_us: &[i64]) -> impl Fn(&FrameRow) -> Option<usize> + '_ {
    let width = bounds_us.len().saturating_sub(1);
    move |row| {
        let at = bounds_us.partition_point(|bound| *bound < row.time_us);
        at.checked_sub(1).filter(|at| *at < width)
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
        self.grid_by(range, (lines, width), line_of, column_by_bounds(bounds_us))
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
        let line_of = |series: &Series| line_of(series).filter(|line| *line < lines);
        let mut grid = GridBuilder::new(&index, width, line_of, column_of);
        let see = |columns: &Columns| {
            if let Some(numbers) = Numbers::from_columns(columns) {
                grid.add_columns(columns, &numbers);
            }
        };
        let journal = self.each_columns::<StatRow>(range, &number_columns(), see)?;
        journal.statistics.iter().for_each(|row| grid.add_row(row));
        Ok(grid.finish(lines))
    }
}
