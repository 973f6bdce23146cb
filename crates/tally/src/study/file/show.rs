// SPDX-License-Identifier: PostgreSQL
//! The tables and charts that a study ends in.

use serde::Deserialize;

/// A table: of some reads, or of one read with the arms down and the points across.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    pub(crate) title: Option<String>,
    #[serde(default)]
    pub(crate) rows: Rows,
    #[serde(default)]
    pub(crate) reads: Vec<String>,
    pub(crate) read: Option<String>,
    pub(crate) arms: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) show: Show,
}

/// What a table of reads has a row for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Rows {
    Arms,
    Clients,
    #[default]
    Both,
}

/// How a figure is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Show {
    #[default]
    Value,
    Percent,
    Change,
}

/// A picture.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Chart {
    pub(crate) title: Option<String>,
    pub(crate) kind: ChartKind,
    pub(crate) reads: Vec<String>,
    pub(crate) arms: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) show: Show,
    pub(crate) clients: Option<f64>,
    #[serde(default)]
    pub(crate) marks: Vec<String>,
}

/// Its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ChartKind {
    Lines,
    Bars,
    Series,
    Stack,
}

/// Text of an arm's last cell.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listing {
    pub(crate) title: String,
    pub(crate) sql: Option<String>,
    pub(crate) events: Option<Vec<String>>,
    pub(crate) output: Option<super::read::From>,
    /// A read: what took the time in the part in which it was at its worst.
    pub(crate) worst: Option<String>,
    #[serde(default = "ten")]
    pub(crate) lines: usize,
}

fn ten() -> usize {
    10
}

/// A curve through a read's points.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fit {
    pub(crate) kind: FitKind,
    pub(crate) read: String,
}

/// Its law.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FitKind {
    Usl,
}
