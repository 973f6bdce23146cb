// SPDX-License-Identifier: PostgreSQL
//! The content of a report before it is drawn. docs/reference-json.md describes its JSON form field by field.
//! Text and page are made from nothing else.
//!
//! Figures are raw: seconds, bytes, counts; times are seconds since 1970.

mod chart;
mod history;
mod parts;
mod ranking;
mod trace;

use serde::Serialize;

pub use crate::table::{
    number, span, time, Cell, Column, Details, OverTime, Row, Table, Tone, Unit,
};
pub use chart::{
    Axes, Axis, AxisName, Bar, Chart, ChartKind, Gap, Heatmap, Mark, PairOfBars, Pairs, Reference,
    Series, Side,
};
pub use history::{ClassTimes, Histories, PlanTimes, StatementHistory};
pub use parts::{Derivation, Parts, SumSeries, TableParts, MEASURED};
pub use ranking::{Ranking, RankingRow};
pub use trace::Trace;

/// A report.
#[derive(Debug, Default, Serialize)]
pub struct Document {
    /// Always "pgtally report".
    pub format: &'static str,
    /// Version of the format. Adding fields does not change it.
    pub version: u32,
    /// One line: which server, from when to when.
    pub title: String,
    /// The program that made it, and when.
    pub made: ReportOrigin,
    /// Where a live page gets newer figures; `None` in a report.
    pub live: Option<Live>,
    /// Other pages of the same server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<Link>,
    /// The time that was measured, and where.
    pub measured: MeasuredTime,
    /// Sums over the whole time.
    pub totals: Totals,
    /// The server's load, one line for each aspect; empty in a comparison. If present, a page starts with it, and
    /// ends with what was measured.
    pub load: Vec<Fact>,
    /// What a page starts with: the worst problem or, without one, that nothing is wrong and what bounds the load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Notable findings, one sentence each.
    pub findings: Vec<Finding>,
    /// The section that a page shows before the findings, with the rankings below its charts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead: Option<&'static str>,
    /// What took the most time, over time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rankings: Vec<Ranking>,
    /// What the statements with the most time did over time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histories: Option<Histories>,
    /// The time axes of the charts.
    pub axes: Axes,
    /// Whether the times of the axes are seconds since the start of each side of a comparison.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub elapsed: bool,
    /// Charts: figures over time.
    pub charts: Vec<Chart>,
    /// In a comparison: figures of both sides as bars.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<Pairs>,
    /// Heat maps: distributions over time.
    pub heatmaps: Vec<Heatmap>,
    /// Instants and periods that are marked in all charts.
    pub marks: Vec<Mark>,
    /// Times in which nothing was measured.
    pub gaps: Vec<Gap>,
    /// The page's sections in order, after the findings.
    pub sections: Vec<Section>,
    /// All tables; the sections give their order.
    pub tables: Vec<Table>,
    /// How the tables add up over time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// Preformatted texts.
    pub texts: Vec<Plain>,
    /// A trace of sessions, in the section [`Trace::SECTION`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
}

/// The program that made a report, and when.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ReportOrigin {
    /// When it was made.
    pub time: f64,
    /// "pgtally 0.3.0".
    pub by: String,
}

/// Where a live page gets newer figures.
#[derive(Debug, Clone, Serialize)]
pub struct Live {
    /// The URL to request updates from.
    pub url: String,
    /// How often to request updates, seconds; `None` for the measured interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// Another page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Its name.
    pub title: String,
    /// Its URL, relative to this page.
    pub url: String,
}

/// The time that was measured, and where.
#[derive(Debug, Clone, Default, Serialize)]
pub struct MeasuredTime {
    /// The recording's directory.
    pub recording: String,
    /// The host that was recorded.
    pub host: String,
    /// Start of the reported time.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// The shortest recorded interval, seconds.
    pub interval_seconds: f64,
    /// The same for histograms and statements; `None` if there are none.
    pub detail_seconds: Option<f64>,
    /// Number of intervals.
    pub intervals: u64,
    /// Their total length.
    pub covered_seconds: f64,
    /// Total length of the gaps.
    pub gap_seconds: f64,
    /// Whether no figures are missing within the intervals.
    pub exact: bool,
    /// Whether figures of times are estimates from samples.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sampled: bool,
    /// The overhead of the level; `None` if unknown.
    pub cost: Option<Cost>,
    /// The same in words, with the server, the machine and the level.
    pub facts: Vec<Fact>,
}

/// A fact about the server or the recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// "Server", "Machine", ...
    pub name: &'static str,
    /// The fact in words.
    pub text: String,
}

/// Sums over the report's time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Total time of all sessions.
    pub wall_seconds: f64,
    /// Of that, the time that was not idle.
    pub busy_seconds: f64,
    /// Of that, the time without a wait; `None`: samples could not tell it apart.
    pub cpu_seconds: Option<f64>,
    /// Session time while the level was off.
    pub uninstrumented_seconds: f64,
    /// Client commands handled; `None`: samples do not count them.
    pub commands: Option<u64>,
    /// Commits that wrote WAL, in the same way.
    pub commits: Option<u64>,
    /// Number of CPUs of the machine.
    pub cores: usize,
}

/// A finding: one sentence, its evidence, and what to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The section that contains the figures.
    pub section: &'static str,
    /// Its severity.
    pub weight: Weight,
    /// The sentence.
    pub text: String,
    /// What to do; `None` if nothing needs to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
    /// The evidence, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    /// The statement that it is about, as in [`Details::statement`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statement: Option<String>,
    /// When it was the case, from and to, seconds since 1970; empty: it is about the whole time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<(f64, f64)>,
}

/// What to do about a problem.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// In words.
    pub text: String,
    /// The SQL commands in these words, each complete.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sql: Vec<String>,
    /// How sure the cause is: "certain", "likely", "possible".
    pub confidence: &'static str,
}

impl Remedy {
    /// How sure the cause is, as a sentence.
    pub fn confidence_sentence(&self) -> String {
        format!("The cause is {}.", self.confidence)
    }
}

/// The state of the server in a sentence or two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Whether there is a problem.
    pub weight: Weight,
    /// The sentences.
    pub text: String,
}

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Worth knowing.
    Note,
    /// There is a problem, or the figures are incomplete.
    Warning,
}

/// A section of the page.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Section {
    /// Its key, which is also part of the page's URL.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// A note for the reader.
    pub note: Option<String>,
    /// Its charts, pairs of bars, heat maps, tables and texts, shown in this order.
    pub charts: Vec<&'static str>,
    /// Its pairs of bars.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<&'static str>,
    /// Its heat maps.
    pub heatmaps: Vec<&'static str>,
    /// Its tables.
    pub tables: Vec<&'static str>,
    /// Its texts.
    pub texts: Vec<String>,
}

/// A preformatted text.
#[derive(Debug, Clone, Serialize)]
pub struct Plain {
    /// Its key, unique in the report.
    pub id: String,
    /// Its title.
    pub title: String,
    /// A note for the reader.
    pub note: Option<String>,
    /// Its lines, in a fixed-width font.
    pub text: String,
}

impl Document {
    /// An empty document with this title.
    pub fn new(title: String) -> Document {
        Document { format: "pgtally report", version: 1, title, ..Document::default() }
    }

    /// The table with this key.
    pub fn table(&self, id: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.id == id)
    }

    /// The chart with this key.
    pub fn chart(&self, id: &str) -> Option<&Chart> {
        self.charts.iter().find(|chart| chart.id == id)
    }

    /// The pairs of bars with this key.
    pub fn pairs(&self, id: &str) -> Option<&Pairs> {
        self.pairs.iter().find(|pairs| pairs.id == id)
    }

    /// The heat map with this key.
    pub fn heatmap(&self, id: &str) -> Option<&Heatmap> {
        self.heatmaps.iter().find(|map| map.id == id)
    }

    /// The text with this key.
    pub fn text(&self, id: &str) -> Option<&Plain> {
        self.texts.iter().find(|text| text.id == id)
    }

    /// The time axis of a chart.
    pub fn axis(&self, name: AxisName) -> &Axis {
        match name {
            AxisName::Main => &self.axes.main,
            AxisName::Fine => &self.axes.fine,
        }
    }

    /// Removes tables without rows, and sections that are empty afterwards.
    pub fn tidy(&mut self) {
        self.tables.retain(|table| !table.rows.is_empty());
        let there = |id: &&'static str| self.tables.iter().any(|table| table.id == *id);
        for section in &mut self.sections {
            section.tables.retain(there);
        }
        self.sections.retain(|s| {
            !(s.charts.is_empty()
                && s.pairs.is_empty()
                && s.heatmaps.is_empty()
                && s.tables.is_empty()
                && s.texts.is_empty()
                && s.note.is_none())
        });
    }
}

/// The overhead of a level, as measured by `tally cost`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    /// CPU time added to a transaction, in percent.
    pub percent: f64,
    /// Half-width of the 95 % confidence interval, percentage points.
    pub half_width: f64,
}
