// SPDX-License-Identifier: PostgreSQL
//! The cost of the level that was in force.

use serde::Serialize;

/// What is known of the cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    /// How it is known.
    pub how: How,
    /// So much more processor time, per cent: of a transaction where it is measured, of all where it
    /// is reckoned.
    pub percent: f64,
    /// Half the width of its 95 % interval, percentage points; `None`: reckoned.
    pub half_width: Option<f64>,
}

/// How a cost is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// By `tally cost`.
    Measured,
    /// From the readings of the clock alone.
    Estimated,
}
