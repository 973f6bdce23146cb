// SPDX-License-Identifier: PostgreSQL
//! The tables of a report.

use serde::Serialize;

use super::{Cell, Unit};

/// Rows under headings.
#[derive(Debug, Clone, Serialize)]
pub struct Table {
    /// Its key, unique in the report.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// A note for the reader.
    pub note: Option<String>,
    /// Its columns.
    pub columns: Vec<Column>,
    /// The column by which the rows are ordered: numbers descending, text and times
    /// ascending; `None`: another order.
    pub sort: Option<&'static str>,
    /// The rows, with one cell for each column.
    pub rows: Vec<Vec<Cell>>,
    /// The class of activity of each row, for its colour.
    pub classes: Option<Vec<&'static str>>,
    /// The details of each row that can be opened.
    pub details: Option<Vec<Details>>,
}

/// A column.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Column {
    /// Its key, unique in the table.
    pub key: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// The unit of its cells.
    pub unit: Unit,
    /// A note for the reader.
    pub help: Option<&'static str>,
    /// Where a text is too narrow, the column with the highest number is dropped first; 0 is kept.
    #[serde(skip)]
    pub expendable: u8,
}

impl Column {
    /// A column that is never dropped.
    pub const fn new(key: &'static str, title: &'static str, unit: Unit) -> Column {
        Column { key, title, unit, help: None, expendable: 0 }
    }

    /// Adds a note for the reader.
    pub const fn help(self, help: &'static str) -> Column {
        Column { help: Some(help), ..self }
    }

    /// Sets when to drop it in a narrow text.
    pub const fn expendable(self, rank: u8) -> Column {
        Column { expendable: rank, ..self }
    }
}

/// Details of a statement.
#[derive(Debug, Clone, Serialize)]
pub struct Details {
    /// Its text; `None`: not known.
    pub text: Option<std::sync::Arc<str>>,
    /// Whether the text is cut.
    pub cut: bool,
    /// Execution times: from, to, count.
    pub histogram: Vec<(Cell, Cell, u64)>,
    /// Phase, activity, seconds, count; longest first.
    pub activities: Vec<(std::sync::Arc<str>, std::sync::Arc<str>, Cell, u64)>,
}

impl Table {
    /// A table without rows.
    pub fn new(id: &'static str, title: &'static str, columns: Vec<Column>) -> Table {
        let (note, sort, rows, classes, details) = (None, None, Vec::new(), None, None);
        Table { id, title, note, columns, sort, rows, classes, details }
    }

    /// Orders the rows by this column.
    pub fn sorted(self, key: &'static str) -> Table {
        Table { sort: Some(key), ..self }
    }

    /// Adds a note.
    pub fn noted(self, note: Option<String>) -> Table {
        Table { note, ..self }
    }

    /// Adds a row of this class.
    pub fn push(&mut self, class: Option<&'static str>, row: Vec<Cell>) {
        debug_assert_eq!(row.len(), self.columns.len(), "{}", self.id);
        self.rows.push(row);
        if let Some(class) = class {
            self.classes.get_or_insert_default().push(class);
        }
    }
}
