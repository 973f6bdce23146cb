// SPDX-License-Identifier: PostgreSQL
//! What statements did over time, for the page of each statement.

use serde::Serialize;

use super::Axis;
use crate::table::cell;

/// The statements that took the most time, over time.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Histories {
    /// The time of the points.
    pub axis: Axis,
    /// The statements, most time first.
    pub statements: Vec<StatementHistory>,
}

/// A statement over time, all applications together. Each list has a value for each point.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct StatementHistory {
    /// Its key, as in [`super::Details::statement`].
    pub statement: String,
    /// Executions without an error.
    pub calls: Vec<u64>,
    /// Total time of these executions.
    #[serde(serialize_with = "cell::short_all")]
    pub exec_seconds: Vec<f64>,
    /// The 99th percentile of their times; `None`: none ended.
    #[serde(serialize_with = "cell::short")]
    pub p99_seconds: Vec<Option<f64>>,
    /// Time that the server worked for it, by class of activity; only classes that took time.
    pub classes: Vec<ClassTimes>,
    /// Executions that were noted with each plan, those first noted first; empty if only their times are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<PlanTimes>,
}

/// Time in a class of activity.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ClassTimes {
    /// The class.
    pub class: &'static str,
    /// Its time in each point.
    #[serde(serialize_with = "cell::short_all")]
    pub seconds: Vec<f64>,
}

/// Executions with a plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PlanTimes {
    /// The plan ID, as in the title of the plan.
    pub plan: String,
    /// When it was first noted.
    pub first: f64,
    /// When it was last noted.
    pub last: f64,
    /// Noted executions in each point; empty: only the times above are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub noted: Vec<u64>,
}
