// SPDX-License-Identifier: PostgreSQL
//! The tables of a report.

use serde::Serialize;

use super::{Cell, Unit};

/// Rows under headings.
#[derive(Debug, Clone, Serialize)]
pub struct Table {
    /// Names it.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// What has to be known to read it.
    pub note: Option<String>,
    /// Its columns.
    pub columns: Vec<Column>,
    /// The column that the rows are ordered by: figures from the greatest, words and times
    /// from the first; `None`: in an order of its own.
    pub sort: Option<&'static str>,
    /// The rows, a cell for each column.
    pub rows: Vec<Vec<Cell>>,
    /// Of each row its class of activity, for its colour.
    pub classes: Option<Vec<&'static str>>,
    /// Of each row what there is to open.
    pub details: Option<Vec<Details>>,
}

/// A column.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Column {
    /// Names it.
    pub key: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// Of its cells.
    pub unit: Unit,
    /// What has to be known to read it.
    pub help: Option<&'static str>,
    /// In a text too narrow for all columns the one with the highest number goes; 0 stays.
    #[serde(skip)]
    pub expendable: u8,
}

impl Column {
    /// One that stays.
    pub const fn new(key: &'static str, title: &'static str, unit: Unit) -> Column {
        Column { key, title, unit, help: None, expendable: 0 }
    }

    /// The same, with what has to be known to read it.
    pub const fn help(self, help: &'static str) -> Column {
        Column { help: Some(help), ..self }
    }

    /// The same, to go where there is no room.
    pub const fn expendable(self, rank: u8) -> Column {
        Column { expendable: rank, ..self }
    }
}

/// What can be opened of a statement.
#[derive(Debug, Clone, Serialize)]
pub struct Details {
    /// Its text; `None` where it is not known.
    pub text: Option<std::sync::Arc<str>>,
    /// Whether that is only the beginning.
    pub cut: bool,
    /// Executions: from, to, how many.
    pub histogram: Vec<(Cell, Cell, u64)>,
    /// Phase, activity, seconds, count; most first.
    pub activities: Vec<(std::sync::Arc<str>, std::sync::Arc<str>, Cell, u64)>,
}

impl Table {
    /// One without rows.
    pub fn new(id: &'static str, title: &'static str, columns: Vec<Column>) -> Table {
        let (note, sort, rows, classes, details) = (None, None, Vec::new(), None, None);
        Table { id, title, note, columns, sort, rows, classes, details }
    }

    /// The same, ordered by that column.
    pub fn sorted(self, key: &'static str) -> Table {
        Table { sort: Some(key), ..self }
    }

    /// The same with a note.
    pub fn noted(self, note: Option<String>) -> Table {
        Table { note, ..self }
    }

    /// One more row of this class.
    pub fn push(&mut self, class: Option<&'static str>, row: Vec<Cell>) {
        debug_assert_eq!(row.len(), self.columns.len(), "{}", self.id);
        self.rows.push(row);
        if let Some(class) = class {
            self.classes.get_or_insert_default().push(class);
        }
    }
}
