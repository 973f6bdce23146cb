// SPDX-License-Identifier: PostgreSQL
//! Which rows of a result are shown, and in which order.

use std::cmp::Ordering;

use view::table::{Cell, Column, Table};

/// An order of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Order {
    /// The column; `None` for the order in which the engine returned the rows.
    pub column: Option<usize>,
    /// Whether it is reversed. By default, figures are descending and texts ascending.
    pub reverse: bool,
}

impl Order {
    /// The order by the column that is this many places further among these. The engine's own order comes between
    /// the last column and the first.
    pub fn next(self, columns: &[usize], by: isize) -> Order {
        let places = columns.len() as isize + 1;
        let at = self.column.and_then(|column| columns.iter().position(|other| *other == column));
        let at = at.map_or(0, |at| at as isize + 1);
        let next = (at + by).rem_euclid(places);
        Order { column: usize::try_from(next - 1).ok().map(|at| columns[at]), reverse: false }
    }
}

fn compare(a: &Cell, b: &Cell, column: &Column) -> Ordering {
    let number = |cell: &Cell| match cell {
        Cell::Whole(n) => Some(*n as f64),
        Cell::Number(n) => Some(*n),
        _ => None,
    };
    if column.unit.is_figure() {
        // The highest first; rows without a figure last.
        return match (number(a), number(b)) {
            (Some(a), Some(b)) => b.total_cmp(&a),
            (a, b) => b.is_some().cmp(&a.is_some()),
        };
    }
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => a.exact().to_lowercase().cmp(&b.exact().to_lowercase()),
    }
}

/// The numbers of the rows that contain a text, given in lower case, in this order.
pub fn chosen(table: &Table, order: Order, filter: &str) -> Vec<usize> {
    let has = |cell: &Cell| cell.exact().to_lowercase().contains(filter);
    let rows = table.rows.iter().enumerate();
    let mut chosen: Vec<usize> = rows
        .filter(|(_, row)| filter.is_empty() || row.cells.iter().any(has))
        .map(|(at, _)| at)
        .collect();
    if let Some((at, column)) = order.column.and_then(|at| Some((at, table.columns.get(at)?))) {
        let cell = |row: &usize| table.rows[*row].cells.get(at).unwrap_or(&Cell::Empty);
        chosen.sort_by(|a, b| compare(cell(a), cell(b), column));
    }
    if order.reverse {
        chosen.reverse();
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use view::table::{Row, Unit};

    #[test]
    fn rows_are_ordered_by_any_column_and_filtered_by_any_cell() {
        let columns = vec![
            Column::new("host", "HOST", Unit::Id),
            Column::new("sessions", "SESSIONS", Unit::Sessions),
        ];
        let row = |host: &str, n: Option<f64>| Row::new("", vec![host.into(), n.into()]);
        let rows = vec![row("B", Some(1.0)), row("a", None), row("c", Some(3.0))];
        let table = Table::from_rows(columns, rows);
        let by = |column, reverse| chosen(&table, Order { column, reverse }, "");
        assert_eq!(by(None, false), [0, 1, 2]);
        assert_eq!(by(Some(0), false), [1, 0, 2]);
        assert_eq!(by(Some(1), false), [2, 0, 1]);
        assert_eq!(by(Some(1), true), [1, 0, 2]);
        assert_eq!(chosen(&table, Order::default(), "b"), [0]);
        assert_eq!(chosen(&table, Order::default(), "3"), [2]);
    }

    #[test]
    fn orders_follow_each_other_in_a_circle() {
        let order = Order::default();
        assert_eq!(order.next(&[2, 5], 1).column, Some(2));
        assert_eq!(order.next(&[2, 5], -1).column, Some(5));
        assert_eq!(order.next(&[2, 5], 1).next(&[2, 5], 2).column, None);
        assert_eq!(order.next(&[], 1).column, None);
    }
}
