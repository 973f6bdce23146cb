// SPDX-License-Identifier: PostgreSQL
//! The cost of the level that was in force.

use serde::Serialize;

/// The cost of a level, as `tally cost` measured it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    /// CPU time added to a transaction, per cent.
    pub percent: f64,
    /// Half-width of the 95 % confidence interval, percentage points.
    pub half_width: f64,
}
