// SPDX-License-Identifier: PostgreSQL
//! What the rows of all panes share: which to show, in which order, and short forms of columns.

use std::cmp::Ordering;
use std::collections::HashSet;

use segment::interval::Timing;

use crate::table::{Cell, Column, Unit};
use crate::Sort;

/// How to select and sort the rows of a pane.
#[derive(Debug, Clone, Default)]
pub struct RowOptions {
    /// Sort order of the rows.
    pub sort: Sort,
    /// Whether to reverse the order.
    pub reverse: bool,
    /// Only rows that contain this text, in lower case.
    pub filter: String,
    /// Whether to show idle accounts too.
    pub idle: bool,
    /// Which rows are open, such as activities with their phases.
    pub open: Open,
}

/// Which rows with details are open.
#[derive(Debug, Clone, Default)]
pub enum Open {
    /// All rows that have more than one detail row.
    #[default]
    All,
    /// The rows with these keys.
    These(HashSet<String>),
}

impl Open {
    pub(crate) fn shows(&self, key: &str) -> bool {
        match self {
            Open::All => true,
            Open::These(keys) => keys.contains(key),
        }
    }
}

pub(crate) const fn left(head: &'static str, expendable: u8) -> Column {
    Column::new("", head, Unit::Text).expendable(expendable)
}

pub(crate) const fn right(head: &'static str, expendable: u8) -> Column {
    Column::new("", head, Unit::Number).expendable(expendable)
}

pub(crate) const fn text(head: &'static str) -> Column {
    Column::new("", head, Unit::Text).elastic()
}

pub(crate) fn texts(cells: Vec<String>) -> Vec<Cell> {
    cells.into_iter().map(Cell::from).collect()
}

/// Compares the timings of two rows by the selected order; largest first.
pub(crate) fn by(sort: &Sort, a: (&Timing, &str), b: (&Timing, &str)) -> Ordering {
    let largest = |f: fn(&Timing) -> f64| f(b.0).total_cmp(&f(a.0));
    let order = match sort {
        Sort::Count => b.0.count.cmp(&a.0.count),
        Sort::Mean => largest(|t| t.mean_seconds.unwrap_or(0.0)),
        Sort::P99 => largest(|t| t.p99_seconds.unwrap_or(0.0)),
        Sort::Max => largest(|t| t.max_seconds.unwrap_or(0.0)),
        Sort::Name => a.1.cmp(b.1),
        _ => largest(|t| t.seconds),
    };
    order.then_with(|| largest(|t| t.seconds)).then_with(|| a.1.cmp(b.1))
}

pub(crate) fn sorted<T>(
    mut rows: Vec<T>,
    wish: &RowOptions,
    order: impl Fn(&T, &T) -> Ordering,
) -> Vec<T> {
    rows.sort_by(order);
    if wish.reverse {
        rows.reverse();
    }
    rows
}

pub(crate) fn accepts(wish: &RowOptions, texts: &[&str]) -> bool {
    wish.filter.is_empty() || texts.iter().any(|text| text.to_lowercase().contains(&wish.filter))
}
