// SPDX-License-Identifier: PostgreSQL
//! The tables and charts that a study ends in.

use serde::Deserialize;

/// A table: of some reads, or of one read with the arms down and the points across.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    pub title: Option<String>,
    #[serde(default)]
    pub rows: Rows,
    #[serde(default)]
    pub reads: Vec<String>,
    pub read: Option<String>,
    pub arms: Option<Vec<String>>,
    #[serde(default)]
    pub show: Show,
}

/// What a table of reads has a row for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rows {
    Arms,
    Clients,
    #[default]
    Both,
}

/// How a figure is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Show {
    #[default]
    Value,
    Percent,
    Change,
}

/// A picture.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chart {
    pub title: Option<String>,
    pub kind: ChartKind,
    pub reads: Vec<String>,
    pub arms: Option<Vec<String>>,
    #[serde(default)]
    pub show: Show,
    pub clients: Option<f64>,
    #[serde(default)]
    pub marks: Vec<String>,
}

/// Its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChartKind {
    Lines,
    Bars,
    Series,
    Stack,
}

/// Text of an arm's last cell.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    pub title: String,
    pub sql: Option<String>,
    pub events: Option<Vec<String>>,
    pub output: Option<super::read::From>,
    /// A read: what took the time in the part in which it was at its worst.
    pub worst: Option<String>,
    #[serde(default = "ten")]
    pub lines: usize,
}

fn ten() -> usize {
    10
}

/// A curve through a read's points.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    pub kind: FitKind,
    pub read: String,
}

/// Its law.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FitKind {
    Usl,
}
