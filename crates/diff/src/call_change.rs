// SPDX-License-Identifier: PostgreSQL
//! The executions of a statement on each side, and how their time changed.

use super::verdict::ChangeVerdict;
use serde::Serialize;
use stats::calls::LIKENESS;
use stats::Z95;

/// How the time of a call changed, adjusted for the change that all statements share (the machine).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CallChange {
    /// B relative to A, minus one.
    #[serde(rename = "call_relative")]
    pub relative: f64,
    /// The change of all other statements, which is not part of it; 0 if they are too few to tell.
    #[serde(rename = "call_common")]
    pub common: f64,
    /// Half-width of its 95 % confidence interval.
    #[serde(rename = "call_half_width")]
    pub half_width: f64,
    /// Probability that chance alone causes such a change.
    #[serde(rename = "call_p")]
    pub p: f64,
    /// A change of this size would have been found in nine of ten comparisons.
    #[serde(rename = "call_detectable")]
    pub detectable: f64,
    /// The verdict.
    #[serde(rename = "call_verdict")]
    pub verdict: ChangeVerdict,
}

/// Executions of a statement, seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Calls {
    /// Number of executions.
    pub count: u64,
    /// Mean, seconds.
    pub mean: f64,
    /// Standard deviation, seconds.
    pub deviation: f64,
    /// Median, seconds.
    pub median: f64,
}

impl Calls {
    /// Half-width of the 95 % confidence interval of the mean, seconds.
    pub fn half_width(&self) -> f64 {
        Z95 * LIKENESS * self.deviation / (self.count.max(1) as f64).sqrt()
    }
}
