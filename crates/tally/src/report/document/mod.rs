// SPDX-License-Identifier: PostgreSQL
//! What a report says, before it is drawn: docs/json.md describes it field by field, as its
//! JSON form has them. The text and the page are made from this and from nothing else.
//!
//! Figures are raw: seconds, bytes, numbers of things; times are seconds since 1970.

mod cell;

use serde::Serialize;

pub use cell::{number, span, time, Cell, Unit};

/// A report.
#[derive(Debug, Serialize)]
pub struct Document {
    /// Always "pgtally report".
    pub format: &'static str,
    /// Of the format; fields may be added without a new one.
    pub version: u32,
    /// In one line: which server, from when to when.
    pub title: String,
    /// Who made it, and when.
    pub made: Made,
    /// Where a page that goes on gets its figures; `None` in a report.
    pub live: Option<Live>,
    /// What was measured.
    pub measured: Measured,
    /// Sums over all of it.
    pub totals: Totals,
    /// What is worth saying, a sentence each.
    pub findings: Vec<Finding>,
    /// The times of the charts.
    pub axes: Axes,
    /// Figures over time.
    pub charts: Vec<Chart>,
    /// Distributions over time.
    pub heatmaps: Vec<Heatmap>,
    /// Instants and stretches that are marked in all charts.
    pub marks: Vec<Mark>,
    /// Where nothing was measured.
    pub gaps: Vec<Gap>,
    /// The order of the page, after the findings.
    pub sections: Vec<Section>,
    /// Tables, in no order.
    pub tables: Vec<Table>,
    /// Texts that stand as they are.
    pub texts: Vec<Plain>,
}

/// Who made a report.
#[derive(Debug, Clone, Serialize)]
pub struct Made {
    /// When.
    pub time: f64,
    /// "pgtally 0.1.0".
    pub by: String,
}

/// Where a live page gets its figures.
#[derive(Debug, Clone, Serialize)]
pub struct Live {
    /// To be asked for more.
    pub url: String,
}

/// What was measured.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Measured {
    /// The recording's directory.
    pub recording: String,
    /// The host that it was made on.
    pub host: String,
    /// Begin of what is told of.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// The shortest interval at which was recorded.
    pub interval_seconds: f64,
    /// The same of histograms and statements; `None` where there are none.
    pub detail_seconds: Option<f64>,
    /// Intervals.
    pub intervals: u64,
    /// Their lengths together.
    pub covered_seconds: f64,
    /// The lengths of the gaps together.
    pub gap_seconds: f64,
    /// Whether nothing is missing within the intervals.
    pub exact: bool,
    /// All this in words, and the server, the machine, the level, its cost.
    pub facts: Vec<Fact>,
}

/// Something of the server or of the recording, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// "Server", "Machine", ...
    pub name: &'static str,
    /// What there is to say of it.
    pub text: String,
}

/// Sums over all of the report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Time that all sessions lived.
    pub wall_seconds: f64,
    /// Of that, what is not idle.
    pub busy_seconds: f64,
    /// Of that, what they did not wait.
    pub cpu_seconds: f64,
    /// Time of sessions while the level was off.
    pub uninstrumented_seconds: f64,
    /// Commands of clients that were handled.
    pub commands: u64,
    /// Commits that wrote WAL.
    pub commits: u64,
    /// Processors of the machine.
    pub cores: usize,
}

/// A sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The section that has its figures.
    pub section: &'static str,
    /// How loud.
    pub weight: Weight,
    /// The sentence.
    pub text: String,
}

/// How much a finding should stand out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Worth knowing.
    Note,
    /// Something is wrong, or the figures are not the whole truth.
    Warning,
}

/// The times of the charts.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Axes {
    /// Few enough points for a page.
    pub main: Axis,
    /// Every interval as it was recorded, as far as that is few enough.
    pub fine: Axis,
}

/// Points in time.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Axis {
    /// When each begins.
    #[serde(serialize_with = "cell::times")]
    pub time: Vec<f64>,
    /// How much of it was measured: 0 in a gap.
    #[serde(serialize_with = "cell::short_all")]
    pub seconds: Vec<f64>,
}

/// Which axis a chart has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AxisName {
    /// See [`Axes::main`].
    Main,
    /// See [`Axes::fine`].
    Fine,
}

/// Figures over time.
#[derive(Debug, Clone, Serialize)]
pub struct Chart {
    /// Names it.
    pub id: &'static str,
    /// Where it stands.
    pub section: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// What has to be known to read it.
    pub note: Option<String>,
    /// Whether the series are parts of a whole.
    pub kind: ChartKind,
    /// Its times.
    pub axis: AxisName,
    /// Of all its figures.
    pub unit: Unit,
    /// A line across it.
    pub reference: Option<Reference>,
    /// Its series; of a stack, from the bottom up.
    pub series: Vec<Series>,
}

/// How a chart is to be drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChartKind {
    /// One on the other: their sum is the whole.
    Stack,
    /// Each for itself.
    Lines,
}

/// A line across a chart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Reference {
    /// What it says.
    pub name: &'static str,
    /// How high.
    pub value: f64,
}

/// A figure over time.
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    /// What it is.
    pub name: String,
    /// The class of activity, for its colour; `None`: it is no activity.
    pub class: Option<&'static str>,
    /// How manieth of its class in the chart.
    pub shade: usize,
    /// One a point of the axis; `None`: not measured.
    #[serde(serialize_with = "cell::short")]
    pub values: Vec<Option<f64>>,
}

/// A distribution over time.
#[derive(Debug, Clone, Serialize)]
pub struct Heatmap {
    /// Names it.
    pub id: &'static str,
    /// Where it stands.
    pub section: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// What has to be known to read it.
    pub note: Option<String>,
    /// Of the bounds.
    pub unit: Unit,
    /// When each column begins.
    pub time: Vec<f64>,
    /// How long a column is.
    pub step_seconds: f64,
    /// The edges of the rows, rising; one more than rows.
    #[serde(serialize_with = "cell::short_all")]
    pub bounds: Vec<f64>,
    /// Of each column the first row that holds something, and the counts from there on.
    /// Empty: nothing happened; `None`: nothing was measured.
    pub columns: Vec<Option<Vec<u64>>>,
}

/// An instant or a stretch that is marked in the charts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mark {
    /// When it is, or begins.
    pub time: f64,
    /// When it ends; `None`: an instant.
    pub until: Option<f64>,
    /// "checkpoint", "slow", "start", ...
    pub kind: String,
    /// What it is.
    pub text: String,
}

/// A stretch in which nothing was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gap {
    /// Its begin.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// Why.
    pub reason: String,
}

/// A part of the page.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Section {
    /// Names it, also in the page's address.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// What has to be known to read it.
    pub note: Option<String>,
    /// Its charts,
    pub charts: Vec<&'static str>,
    /// heat maps,
    pub heatmaps: Vec<&'static str>,
    /// tables,
    pub tables: Vec<&'static str>,
    /// and texts, in this order.
    pub texts: Vec<String>,
}

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

/// A text that stands as it is.
#[derive(Debug, Clone, Serialize)]
pub struct Plain {
    /// Names it.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// What has to be known to read it.
    pub note: Option<String>,
    /// Its lines, each character as wide as any other.
    pub text: String,
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

impl Document {
    /// A table by its name.
    pub fn table(&self, id: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.id == id)
    }

    /// A chart by its name.
    pub fn chart(&self, id: &str) -> Option<&Chart> {
        self.charts.iter().find(|chart| chart.id == id)
    }

    /// A heat map by its name.
    pub fn heatmap(&self, id: &str) -> Option<&Heatmap> {
        self.heatmaps.iter().find(|map| map.id == id)
    }

    /// A text by its name.
    pub fn text(&self, id: &str) -> Option<&Plain> {
        self.texts.iter().find(|text| text.id == id)
    }

    /// The times of a chart.
    pub fn axis(&self, name: AxisName) -> &Axis {
        match name {
            AxisName::Main => &self.axes.main,
            AxisName::Fine => &self.axes.fine,
        }
    }

    /// Leave out tables without rows, and sections in which nothing is left.
    pub fn tidy(&mut self) {
        self.tables.retain(|table| !table.rows.is_empty());
        let there = |id: &&'static str| self.tables.iter().any(|table| table.id == *id);
        for section in &mut self.sections {
            section.tables.retain(there);
        }
        self.sections.retain(|s| {
            !(s.charts.is_empty()
                && s.heatmaps.is_empty()
                && s.tables.is_empty()
                && s.texts.is_empty()
                && s.note.is_none())
        });
    }
}
