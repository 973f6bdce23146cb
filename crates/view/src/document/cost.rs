// SPDX-License-Identifier: PostgreSQL
//! The cost of the level that was in force.

use serde::Serialize;

/// The cost of a level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    /// How it was determined.
    pub how: How,
    /// CPU time added, per cent: of a transaction if measured, of all CPU time if
    /// estimated.
    pub percent: f64,
    /// Half-width of the 95 % confidence interval, percentage points; `None`: estimated.
    pub half_width: Option<f64>,
}

/// How a cost was determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// Measured by `tally cost`.
    Measured,
    /// Estimated from the number of clock readings.
    Estimated,
}
