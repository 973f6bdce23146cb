// SPDX-License-Identifier: PostgreSQL
//! What a report says, before it is drawn: docs/reference-json.md describes it field by field, as its
//! JSON form has them. The text and the page are made from this and from nothing else.
//!
//! Figures are raw: seconds, bytes, numbers of things; times are seconds since 1970.

mod cell;
mod chart;
mod cost;
mod table;

use serde::Serialize;

pub use cell::{number, span, time, Cell, Unit};
pub use chart::{Axes, Axis, AxisName, Chart, ChartKind, Gap, Heatmap, Mark, Reference, Series};
pub use cost::{Cost, How};
pub use table::{Column, Details, Table};

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
    /// What the level cost; `None` where that is not known.
    pub cost: Option<Cost>,
    /// All this in words, and the server, the machine, the level.
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
