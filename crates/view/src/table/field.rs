// SPDX-License-Identifier: PostgreSQL
//! The columns of a subject, defined once; each of its tables picks some of them.

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

    /// Its key.
    pub fn key(&self) -> &'static str {
        self.column.key
    }

    /// Its title in documents.
    pub fn title(&self) -> &str {
        &self.column.title
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

    /// Sets the priority for dropping it in a narrow text of a document.
    pub const fn expendable(mut self, rank: u8) -> Self {
        self.column.expendable = rank;
        self
    }

    /// Lets the column take the remaining width.
    pub const fn elastic(mut self) -> Self {
        self.column.elastic = true;
        self
    }

    /// Lets the column take the remaining width and as many lines as it needs.
    pub const fn wrapped(mut self) -> Self {
        self.column.elastic = true;
        self.column.wrapped = true;
        self
    }
}

/// Fields by their keys, made by [`choose!`](crate::choose).
#[derive(Debug)]
pub struct Choice<R: 'static> {
    fields: &'static [Field<R>],
    keys: &'static str,
}

impl<R> Clone for Choice<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Choice<R> {}

impl<R> Choice<R> {
    /// For [`choose!`](crate::choose), where the compiler evaluates it. Panics if a key does not belong to any
    /// field, or if a priority is not a number from 1 to 255.
    #[doc(hidden)]
    pub const fn new(fields: &'static [Field<R>], keys: &'static str) -> Self {
        let bytes = keys.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            while at < bytes.len() && bytes[at] == b' ' {
                at += 1;
            }
            let begin = at;
            while at < bytes.len() && !matches!(bytes[at], b',' | b'=' | b':') {
                at += 1;
            }
            assert!(is_key(fields, bytes, begin, at), "a key that no field has");
            while at < bytes.len() && !matches!(bytes[at], b',' | b':') {
                at += 1;
            }
            if at < bytes.len() && bytes[at] == b':' {
                let mut priority = 0u8;
                let digits = at + 1;
                at = digits;
                while at < bytes.len() && bytes[at] != b',' {
                    assert!(bytes[at].is_ascii_digit(), "a priority is a number");
                    priority = priority * 10 + (bytes[at] - b'0');
                    at += 1;
                }
                assert!(at > digits && priority > 0, "a priority is a number above 0");
            }
            at += 1;
        }
        Self { fields, keys }
    }
}

/// Whether any field has this part of `bytes` as its key.
const fn is_key<R>(fields: &[Field<R>], bytes: &[u8], begin: usize, end: usize) -> bool {
    let mut field = 0;
    while field < fields.len() {
        let key = fields[field].column.key.as_bytes();
        let mut same = if key.len() == end - begin { 0 } else { usize::MAX };
        while same < key.len() && key[same] == bytes[begin + same] {
            same += 1;
        }
        if same == key.len() {
            return true;
        }
        field += 1;
    }
    false
}

/// Fields by their keys, as in "seconds, per_second:5", each with its priority for dropping it if space is short.
/// In a pane, a key may have a title that differs from its field's: "seconds=TIME:5". A key that no field has
/// does not compile, nor does a priority that is no number.
#[macro_export]
macro_rules! choose {
    ($fields:expr, $keys:expr) => {
        const { $crate::table::field::Choice::new($fields, $keys) }
    };
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

    /// The columns of a document.
    pub fn of_document(choice: Choice<R>) -> Self {
        Self::new(choice, |field| field.column.title.to_string())
    }

    /// The columns of a pane.
    pub fn of_pane(choice: Choice<R>) -> Self {
        Self::new(choice, |field| match field.head {
            "" => field.column.title.to_uppercase(),
            head => head.to_string(),
        })
    }

    fn new(Choice { fields, keys }: Choice<R>, title: fn(&Field<R>) -> String) -> Self {
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for wanted in keys.split(',').map(str::trim) {
            let (name, priority) = wanted.rsplit_once(':').unwrap_or((wanted, "0"));
            let (key, head) = name.split_once('=').unwrap_or((name, ""));
            let found = fields.iter().find(|field| field.column.key == key);
            columns.extend(found.map(|field| Column {
                title: if head.is_empty() { title(field) } else { head.to_string() }.into(),
                expendable: priority.parse().unwrap_or(0),
                ..field.column.clone()
            }));
            values.extend(found.map(|field| field.value));
        }
        Self { columns, values }
    }

    /// A table of a document with these rows, all of the same tone.
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

    /// Other columns, followed by its own.
    pub fn columns_after(&self, others: impl IntoIterator<Item = Column>) -> Vec<Column> {
        others.into_iter().chain(self.columns.iter().cloned()).collect()
    }

    /// Other cells, followed by those of a row.
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

/// Seconds, or another quantity, per second.
pub fn per(n: f64, seconds: f64) -> Cell {
    (n / seconds.max(1e-9)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &[Field<f64>] =
        &[Field::new("seconds", "Time", Unit::Seconds, |row, _| (*row).into())];

    #[test]
    fn a_key_has_its_title_or_another_one() {
        let titles = |choice| Picked::of_pane(choice).columns.remove(0).title.to_string();
        assert_eq!(titles(choose!(FIELDS, "seconds")), "TIME");
        assert_eq!(titles(choose!(FIELDS, "seconds=TOTAL:5")), "TOTAL");
    }

    #[test]
    fn keys_without_a_field_and_invalid_priorities_do_not_compile() {
        for keys in [
            "second",
            "secondss",
            "seconds, s",
            "seconds:x",
            "seconds:",
            "seconds:0",
            "seconds:256",
        ] {
            // `choose!` has the compiler do this.
            let refused = std::panic::catch_unwind(|| Choice::new(FIELDS, keys)).is_err();
            assert!(refused, "{keys}");
        }
    }
}
