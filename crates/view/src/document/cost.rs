// SPDX-License-Identifier: PostgreSQL
//! The overhead of the level that was in force.

use serde::Serialize;

/// The overhead of a level, as measured by `tally cost`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    /// CPU time added to a transaction, in percent.
    pub percent: f64,
    /// Half-width of the 95 % confidence interval, percentage points.
    pub half_width: f64,
}
