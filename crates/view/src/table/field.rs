// SPDX-License-Identifier: PostgreSQL
//! The columns of a subject, defined once; each table of it picks some.

use super::{Cell, Column, Row, Table, Tone, Unit};

/// The cell of a row; rates are over this time, seconds.
type Value<R> = fn(&R, f64) -> Cell;

/// A column and its cell for a row.
#[derive(Debug)]
pub struct Field<R: 'static> {
    column: Column,
    head: &'static str,
    value: Value<R>,
}

impl<R> Field<R> {
    /// A field with this key, title in documents and unit.
    pub const fn new(key: &'static str, title: &'static str, unit: Unit, value: Value<R>) -> Self {
        Self { column: Column::new(key, title, unit), head: "", value }
    }

    /// Sets the heading in a terminal; without it, the title in capitals.
    pub const fn head(mut self, head: &'static str) -> Self {
        self.head = head;
        self
    }

    /// Adds a note for the reader of a document.
    pub const fn help(mut self, help: &'static str) -> Self {
        self.column.help = Some(help);
        self
    }

    /// Sets when a document drops it in a narrow text.
    pub const fn expendable(mut self, rank: u8) -> Self {
        self.column.expendable = rank;
        self
    }

    /// Lets the column take the remaining width.
    pub const fn elastic(mut self) -> Self {
        self.column.elastic = true;
        self
    }
}

/// The columns that a table picked.
#[derive(Debug)]
pub struct Picked<R: 'static> {
    /// The columns.
    pub columns: Vec<Column>,
    values: Vec<Value<R>>,
}

impl<R> Picked<R> {
    /// All columns, for a document.
    pub fn all(fields: &[Field<R>]) -> Self {
        let columns = fields.iter().map(|field| field.column.clone()).collect();
        Self { columns, values: fields.iter().map(|field| field.value).collect() }
    }

    /// Columns of a document: `keys` as in "seconds, per_second:5", each with its priority for dropping it.
    pub fn of_document(fields: &[Field<R>], keys: &str) -> Self {
        Self::new(fields, keys, |field| field.column.title.to_string())
    }

    /// Columns of a pane. A key may have another heading than its field: "seconds=TIME:5".
    pub fn of_pane(fields: &[Field<R>], keys: &str) -> Self {
        Self::new(fields, keys, |field| match field.head {
            "" => field.column.title.to_uppercase(),
            head => head.to_string(),
        })
    }

    fn new(fields: &[Field<R>], keys: &str, title: fn(&Field<R>) -> String) -> Self {
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for wanted in keys.split(',').map(str::trim) {
            let (name, priority) = wanted.rsplit_once(':').unwrap_or((wanted, "0"));
            let (key, head) = name.split_once('=').unwrap_or((name, ""));
            let found = fields.iter().find(|field| field.column.key == key);
            debug_assert!(found.is_some() && priority.parse::<u8>().is_ok(), "{wanted}");
            columns.extend(found.map(|field| Column {
                title: if head.is_empty() { title(field) } else { head.to_string() }.into(),
                expendable: priority.parse().unwrap_or(0),
                ..field.column.clone()
            }));
            values.extend(found.map(|field| field.value));
        }
        Self { columns, values }
    }

    /// A table of a document with these rows, all of one tone.
    pub fn table<'r>(
        self,
        (id, title): (&'static str, &'static str),
        rows: impl IntoIterator<Item = &'r R>,
        seconds: f64,
        tone: Tone,
    ) -> Table {
        let row = |row| Row { tone, ..Row::new("", self.cells(row, seconds)) };
        let rows = rows.into_iter().map(row).collect();
        Table { rows, ..Table::new(id, title, self.columns) }
    }

    /// Its columns after others.
    pub fn columns_after(&self, others: impl IntoIterator<Item = Column>) -> Vec<Column> {
        others.into_iter().chain(self.columns.iter().cloned()).collect()
    }

    /// The cells of a row after others.
    pub fn cells_after(
        &self,
        others: impl IntoIterator<Item = Cell>,
        row: &R,
        seconds: f64,
    ) -> Vec<Cell> {
        others.into_iter().chain(self.cells(row, seconds)).collect()
    }

    /// The cells of a row.
    pub fn cells(&self, row: &R, seconds: f64) -> Vec<Cell> {
        self.values.iter().map(|value| value(row, seconds)).collect()
    }
}

/// A rate per second.
pub fn rate(n: u64, seconds: f64) -> Cell {
    per(n as f64, seconds)
}

/// Seconds, or something else, per second.
pub fn per(n: f64, seconds: f64) -> Cell {
    (n / seconds.max(1e-9)).into()
}
