// SPDX-License-Identifier: PostgreSQL
//! The charts of a report.

use serde::Serialize;

use crate::table::{cell, Unit};

/// The time axes of the charts.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Axes {
    /// With few enough points for a page.
    pub main: Axis,
    /// Every recorded interval, or as many points as a page can hold.
    pub fine: Axis,
}

/// Points on a time axis.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Axis {
    /// When each point starts.
    #[serde(serialize_with = "cell::times")]
    pub time: Vec<f64>,
    /// The fraction of each point that was measured; 0 in a gap.
    #[serde(serialize_with = "cell::short_all")]
    pub seconds: Vec<f64>,
}

/// The axis of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AxisName {
    /// See [`Axes::main`].
    Main,
    /// See [`Axes::fine`].
    Fine,
}

/// A chart of series over time.
#[derive(Debug, Clone, Serialize)]
pub struct Chart {
    /// Its key, unique in the report.
    pub id: &'static str,
    /// The section that shows it.
    pub section: &'static str,
    /// Its title.
    pub title: &'static str,
    /// A note for the reader.
    pub note: Option<String>,
    /// How the series are drawn.
    pub kind: ChartKind,
    /// The time axis.
    pub axis: AxisName,
    /// The unit of all its figures.
    pub unit: Unit,
    /// A horizontal line across it.
    pub reference: Option<Reference>,
    /// Its series; in a stack, from the bottom up.
    pub series: Vec<Series>,
}

/// How the series of a chart are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChartKind {
    /// Stacked: their sum is the whole.
    Stack,
    /// Separate lines.
    Lines,
}

/// A horizontal line across a chart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Reference {
    /// Its label.
    pub name: &'static str,
    /// Its height, in the chart's unit.
    pub value: f64,
}

/// One series of a chart.
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    /// Its label.
    pub name: String,
    /// The class of activity, for its colour; `None` if it is not an activity.
    pub class: Option<&'static str>,
    /// Its ordinal within its class or side in the chart, for its shade.
    pub shade: usize,
    /// The side of a comparison, for its colour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub side: Option<Side>,
    /// One value for each point of the axis; `None` if it was not measured.
    #[serde(serialize_with = "cell::short")]
    pub values: Vec<Option<f64>>,
}

/// A side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Before.
    A,
    /// After.
    B,
}

/// Figures of both sides of a comparison as bars, one pair for each row.
#[derive(Debug, Clone, Serialize)]
pub struct Pairs {
    /// Its key, unique in the report.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// A note for the reader.
    pub note: Option<String>,
    /// The unit of all its figures.
    pub unit: Unit,
    /// Its rows, from top to bottom.
    pub rows: Vec<PairOfBars>,
}

/// A row of [`Pairs`].
#[derive(Debug, Clone, Serialize)]
pub struct PairOfBars {
    /// Its label.
    pub name: String,
    /// The figure of A; `None` if there is none.
    pub a: Option<Bar>,
    /// The figure of B; `None` if there is none.
    pub b: Option<Bar>,
}

/// A figure with its error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bar {
    /// The figure.
    pub value: f64,
    /// Half-width of its 95 % confidence interval; `None` if unknown.
    pub half_width: Option<f64>,
}

/// A heat map: a distribution over time.
#[derive(Debug, Clone, Serialize)]
pub struct Heatmap {
    /// Its key, unique in the report.
    pub id: &'static str,
    /// The section that shows it.
    pub section: &'static str,
    /// Its title.
    pub title: &'static str,
    /// A note for the reader.
    pub note: Option<String>,
    /// The unit of the bounds.
    pub unit: Unit,
    /// When each column starts.
    pub time: Vec<f64>,
    /// How long a column lasts, in seconds.
    pub step_seconds: f64,
    /// The edges of the rows, ascending; one more than there are rows.
    #[serde(serialize_with = "cell::short_all")]
    pub bounds: Vec<f64>,
    /// For each column, the first row with a count, and the counts from there on. Empty if nothing happened;
    /// `None` if it was not measured.
    pub columns: Vec<Option<Vec<u64>>>,
}

/// An instant or a period that is marked in the charts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mark {
    /// When it happened or started.
    pub time: f64,
    /// When it ended; `None` for an instant.
    pub until: Option<f64>,
    /// "checkpoint", "slow", "start", ...
    pub kind: String,
    /// A description.
    pub text: String,
}

/// A period in which nothing was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gap {
    /// Its start.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// The reason.
    pub reason: String,
}
