// SPDX-License-Identifier: PostgreSQL
//! What a report says over time.

use serde::Serialize;

use super::{cell, Unit};

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
