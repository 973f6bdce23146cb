// SPDX-License-Identifier: PostgreSQL
//! The tables, charts, listings and fits of a study's report.

use serde::Deserialize;

use super::read::Read;

/// A table with a column per read, or of one read with arms as rows and points as columns.
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

/// The rows of a table with several reads.
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

/// A chart.
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

impl Chart {
    /// The unit of the vertical axis, on which all of these reads are drawn; a plain number has the
    /// read's title. Fails unless all reads have the same unit.
    pub fn unit(&self, reads: &[&Read]) -> Result<String, String> {
        if self.show != Show::Value {
            return Ok("%".into());
        }
        let mut found: Option<&str> = None;
        for read in reads {
            let unit = read.unit().ok_or_else(|| {
                format!(
                    "chart: read \"{}\" has no unit; set unit = \"1\" for a plain number",
                    read.name
                )
            })?;
            if let Some(other) = found.filter(|other| *other != unit) {
                return Err(format!(
                    "chart: the reads of a chart must have the same unit, not {other} and {unit}"
                ));
            }
            found = Some(unit);
        }
        Ok(match (found, reads) {
            (Some("1") | None, [read]) => read.title().into(),
            (Some("1") | None, _) => "number".into(),
            (Some(unit), _) => unit.into(),
        })
    }
}

/// The form of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChartKind {
    Lines,
    Bars,
    Series,
    Stack,
}

/// Text from an arm's last cell.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    pub title: String,
    pub sql: Option<String>,
    pub events: Option<Vec<String>>,
    pub output: Option<super::read::From>,
    /// A read: list the statistics of the time step in which it was worst, by total time.
    pub worst: Option<String>,
    #[serde(default = "ten")]
    pub lines: usize,
}

fn ten() -> usize {
    10
}

/// A curve fitted through a read's points.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    pub kind: FitKind,
    pub read: String,
}

/// The model that is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FitKind {
    /// Universal Scalability Law.
    Usl,
}
