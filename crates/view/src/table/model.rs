// SPDX-License-Identifier: PostgreSQL
//! The parts of a table: columns, rows, cells, tones.

use crate::statement_example::StatementExample;
use crate::table::cell::{Cell, Unit};
use crate::table::tone::Tone;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Rows under column titles.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Its key, unique in a document.
    pub id: &'static str,
    /// Its title.
    pub title: Cow<'static, str>,
    /// A note for the reader.
    pub note: Option<String>,
    /// Its columns; bars are not among them.
    pub columns: Vec<Column>,
    /// The column by which the rows are sorted: numbers descending, text and times ascending; `None` for another
    /// order.
    pub sort: Option<&'static str>,
    /// The rows.
    pub rows: Vec<Row>,
    /// The column after which bars are drawn; `None` for no bars.
    pub bars_after: Option<usize>,
    /// What a page shows of it for a part of the document's time.
    pub over_time: OverTime,
}

/// What is shown of a table for a part of the document's time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OverTime {
    /// The sums of its rows over that time, if the document has them.
    #[default]
    Sums,
    /// The rows whose time is in it, as these columns say: from and to.
    Rows(&'static str, &'static str),
    /// The same, but their figures are those of the whole time, for this reason.
    RowsOfAll(&'static str, &'static str, &'static str),
    /// All of it, because it belongs to no time.
    Always,
    /// All of it, although its figures are those of the whole time, for this reason.
    Whole(&'static str),
}

/// A column.
#[derive(Debug, Clone, Serialize)]
pub struct Column {
    /// Its key, unique in the table.
    pub key: &'static str,
    /// Its title.
    pub title: Cow<'static, str>,
    /// The unit of its cells.
    pub unit: Unit,
    /// A note for the reader.
    pub help: Option<&'static str>,
    /// The URL to which a page links its cells: `?host={host}`, with the keys of other cells of the row in
    /// braces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<&'static str>,
    /// If space is short, the column with the highest number is dropped first; 0 is never dropped.
    #[serde(skip)]
    pub expendable: u8,
    /// Whether it takes the remaining width: running text.
    #[serde(skip)]
    pub elastic: bool,
    /// Whether running text continues on the next lines; otherwise it is shortened.
    #[serde(skip)]
    pub wrapped: bool,
}

impl Column {
    /// A column that is never dropped.
    pub const fn new(key: &'static str, title: &'static str, unit: Unit) -> Column {
        let title = Cow::Borrowed(title);
        Column {
            key,
            title,
            unit,
            help: None,
            link: None,
            expendable: 0,
            elastic: false,
            wrapped: false,
        }
    }

    /// Adds a note for the reader.
    pub const fn help(mut self, help: &'static str) -> Column {
        self.help = Some(help);
        self
    }

    /// Links its cells in a page.
    pub const fn link(mut self, address: &'static str) -> Column {
        self.link = Some(address);
        self
    }

    /// Sets the priority for dropping it in a narrow text.
    pub const fn expendable(mut self, rank: u8) -> Column {
        self.expendable = rank;
        self
    }

    /// Lets it take the remaining width.
    pub const fn elastic(mut self) -> Column {
        self.elastic = true;
        self
    }

    /// Lets it take the remaining width and as many lines as it needs.
    pub const fn wrapped(mut self) -> Column {
        (self.elastic, self.wrapped) = (true, true);
        self
    }

    /// Whether it is aligned right, as numbers are.
    pub fn right(&self) -> bool {
        self.unit.is_figure()
    }
}

/// A row.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// Its key, stable from one interval to the next.
    pub key: String,
    /// One cell for each column.
    pub cells: Vec<Cell>,
    /// Length of its bar, 0 to 1; `None` for no bar.
    pub bar: Option<f64>,
    /// Its colour.
    pub tone: Tone,
    /// Whether it has detail rows to open.
    pub branches: bool,
    /// What a document shows below its figures.
    pub details: Option<Details>,
}

/// Titles that an earlier column also has; several columns may have no title.
pub(super) fn repeated(columns: &[Column]) -> Vec<&str> {
    let titles: Vec<&str> =
        columns.iter().map(|column| &*column.title).filter(|title| !title.is_empty()).collect();
    let is_repeated = |at: &usize| titles[..*at].contains(&titles[*at]);
    (0..titles.len()).filter(is_repeated).map(|at| titles[at]).collect()
}

impl Row {
    /// A plain row.
    pub fn new(key: impl Into<String>, cells: Vec<Cell>) -> Row {
        Row { key: key.into(), cells, ..Row::default() }
    }
}

/// An activity of a statement in a phase: phase, activity, seconds, count if it is known.
pub type ActivityDetail = (Arc<str>, Arc<str>, Cell, Option<u64>);

/// Details of a statement.
#[derive(Debug, Clone, Serialize)]
pub struct Details {
    /// Its text; `None` if unknown.
    pub text: Option<Arc<str>>,
    /// Whether the text is truncated.
    pub cut: bool,
    /// Execution times: from, to, count.
    pub histogram: Vec<(Cell, Cell, u64)>,
    /// Phase, activity, seconds, count if it is known; longest first.
    pub activities: Vec<ActivityDetail>,
    /// Its plans, the one used last first: the figures of each, and its nodes.
    pub plans: Vec<(String, String)>,
    /// Its slowest executions, the slowest first: when each ended, seconds, parameters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slow_executions: Vec<(Cell, Cell, String)>,
    /// Commands that show its plan; `None`: its text is unknown.
    pub example: Option<StatementExample>,
    /// The key of the statement, of all applications together, which names its page; `None`: several statements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statement: Option<String>,
}

impl Table {
    /// A table of a document, without rows.
    pub fn new(
        id: &'static str,
        title: impl Into<Cow<'static, str>>,
        columns: Vec<Column>,
    ) -> Table {
        Table { id, title: title.into(), ..Table::from_rows(columns, Vec::new()) }
    }

    /// A table without a title. Titles of columns are made unique: one that says nothing by itself also names its
    /// group.
    pub fn from_rows(columns: Vec<Column>, rows: Vec<Row>) -> Table {
        debug_assert_eq!(repeated(&columns), Vec::<&str>::new());
        Table { columns, rows, ..Table::default() }
    }

    /// A table of texts with these titles. The columns in `right` are right-aligned, as numbers are.
    pub fn with_headings(headings: &[impl AsRef<str>], right: std::ops::Range<usize>) -> Table {
        let column = |(at, heading): (usize, &_)| {
            let unit = if right.contains(&at) { Unit::Number } else { Unit::Text };
            let title = AsRef::<str>::as_ref(heading).to_string().into();
            Column { title, ..Column::new("", "", unit) }
        };
        Table::from_rows(headings.iter().enumerate().map(column).collect(), Vec::new())
    }

    /// Marks the table as sorted by this column.
    pub fn sorted(self, key: &'static str) -> Table {
        Table { sort: Some(key), ..self }
    }

    /// Never drops the first column that has one of these keys: it is the one that the reader ordered by, or that says
    /// what was found.
    pub fn keeping(mut self, keys: &[&str]) -> Table {
        let of = |key: &&str| self.columns.iter().position(|column| column.key == *key);
        if let Some(at) = keys.iter().find_map(of) {
            self.columns[at].expendable = 0;
        }
        self
    }

    /// Adds a note.
    pub fn noted(self, note: Option<String>) -> Table {
        Table { note, ..self }
    }

    /// Says what a page shows of it for a part of the document's time.
    pub fn over_time(self, over_time: OverTime) -> Table {
        Table { over_time, ..self }
    }

    /// Adds a row of this tone.
    pub fn push(&mut self, tone: Tone, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.columns.len(), "{}", self.id);
        self.rows.push(Row { tone, ..Row::new("", cells) });
    }

    /// Adds a row of texts; those of the last columns may be missing.
    pub fn push_texts(&mut self, texts: impl IntoIterator<Item = impl Into<Cell>>) {
        self.rows.push(Row::new("", texts.into_iter().map(Into::into).collect()));
    }

    /// The class of each row, in a table whose rows have classes.
    pub fn classes(&self) -> Option<Vec<&'static str>> {
        let class = |row: &Row| match row.tone {
            Tone::Class(class) => Some(class.name()),
            _ => None,
        };
        self.rows.iter().map(class).collect::<Option<Vec<_>>>().filter(|all| !all.is_empty())
    }

    /// The URL to which a page links the cell of a column, if any.
    pub fn address(&self, row: &Row, column: &Column) -> Option<String> {
        let mut address = String::new();
        let mut rest = column.link?;
        while let Some((before, (key, after))) =
            rest.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
        {
            let at = self.columns.iter().position(|column| column.key == key)?;
            let value = row.cells.get(at).map(Cell::exact).filter(|value| !value.is_empty())?;
            address.push_str(before);
            address.push_str(&encoded(&value));
            rest = after;
        }
        Some(address + rest)
    }

    /// The half-widths of its estimates, of each row, by the name of their column.
    fn half_widths<'t>(
        &'t self,
        name: impl Fn(&'t Column) -> &'t str,
    ) -> BTreeMap<&'t str, Vec<Option<f64>>> {
        let of = |at: usize| {
            let cells = self.rows.iter().map(|row| row.cells.get(at).and_then(Cell::half_width));
            cells.collect::<Vec<_>>()
        };
        let columns = self.columns.iter().enumerate().map(|(at, column)| (name(column), of(at)));
        columns.filter(|(_, half_widths)| half_widths.iter().any(Option::is_some)).collect()
    }

    /// The exact values as CSV, with the half-widths of estimates behind (RFC 4180, except that lines end with a newline alone), titles first.
    pub fn csv(&self) -> String {
        let headings = self.columns.iter().map(|column| column.title.to_string()).collect();
        let rows = self.rows.iter().map(|row| row.cells.iter().map(Cell::exact).collect());
        let mut records: Vec<Vec<String>> = std::iter::once(headings).chain(rows).collect();
        for (title, half_widths) in self.half_widths(|column| &*column.title) {
            let cells =
                half_widths.iter().map(|half| half.map_or(String::new(), |n| n.to_string()));
            let cells = std::iter::once(format!("{title} ±")).chain(cells);
            records.iter_mut().zip(cells).for_each(|(record, cell)| record.push(cell));
        }
        csv(records)
    }
}

/// At its natural width.
impl fmt::Display for Table {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.text(usize::MAX))
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let cells: Vec<&Vec<Cell>> = self.rows.iter().map(|row| &row.cells).collect();
        let details: Option<Vec<&Details>> =
            self.rows.iter().map(|row| row.details.as_ref()).collect();
        let mut table = to.serialize_struct("Table", 8)?;
        table.serialize_field("id", self.id)?;
        table.serialize_field("title", &self.title)?;
        table.serialize_field("note", &self.note)?;
        table.serialize_field("columns", &self.columns)?;
        table.serialize_field("sort", &self.sort)?;
        table.serialize_field("rows", &cells)?;
        table.serialize_field("classes", &self.classes())?;
        table.serialize_field("details", &details.filter(|all| !all.is_empty()))?;
        let half_widths = self.half_widths(|column| column.key);
        if !half_widths.is_empty() {
            table.serialize_field("half_widths", &half_widths)?;
        }
        let (times, whole, always) = match self.over_time {
            OverTime::Sums => (None, None, false),
            OverTime::Rows(from, to) => (Some([from, to]), None, false),
            OverTime::RowsOfAll(from, to, why) => (Some([from, to]), Some(why), false),
            OverTime::Always => (None, None, true),
            OverTime::Whole(why) => (None, Some(why), false),
        };
        if let Some(times) = times {
            table.serialize_field("times", &times)?;
        }
        if let Some(why) = whole {
            table.serialize_field("whole", why)?;
        }
        if always {
            table.serialize_field("always", &always)?;
        }
        table.end()
    }
}

/// A part of a pane's page; the renderer wraps the lines and lays out the table.
#[derive(Debug)]
pub struct PaneSection {
    /// Its title.
    pub title: String,
    /// Paragraphs.
    pub lines: Vec<String>,
    /// A table, if any.
    pub table: Option<Table>,
}

/// Encodes a value for the query string of a URL.
pub fn encoded(value: &str) -> String {
    let letter = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    value.bytes().map(letter).collect()
}

/// Records as CSV (RFC 4180, except that lines end with a newline alone).
pub fn csv<F: AsRef<[u8]>>(records: impl IntoIterator<Item = Vec<F>>) -> String {
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    for record in records {
        // Writing to memory cannot fail.
        let _ = writer.write_record(record);
    }
    String::from_utf8_lossy(&writer.into_inner().unwrap_or_default()).into_owned()
}
