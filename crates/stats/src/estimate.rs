// SPDX-License-Identifier: PostgreSQL

//! Estimates a figure and its half-width from log ratios of a run's rounds or a study's blocks.
//!
//! The location is the 10 % trimmed mean. Its standard error comes from the winsorised variance, its
//! interval from Student's t with h - 1 degrees of freedom for h values kept: J. W. Tukey and
//! D. H. McLaughlin, Sankhya A 25 (1963), for one sample; K. K. Yuen, Biometrika 61 (1974), for two. A
//! second test shares none of its assumptions about tails: the signed ranks of F. Wilcoxon, Biometrics
//! Bulletin 1 (1945).
//!
//! Correlation in time would make the interval too narrow. Correlated neighbours are therefore
//! averaged into blocks, which double in length until the blocks are uncorrelated.

use super::rank::signed_rank;
use super::{lag_one, t_quantile, t_two_sided};

/// Share of the values cut off at either end.
pub const TRIM: f64 = 0.10;

/// Minimum number of rounds, or blocks of rounds, for an estimate.
pub const FEWEST_ROUNDS: usize = 20;

/// Minimum number of restarted servers for an estimate.
pub const FEWEST_REPEATS: usize = 3;

/// A lag-1 correlation this many standard errors above zero counts as real.
const CORRELATED: f64 = 2.33;

/// The location of a sample and its error.
#[derive(Debug, Clone)]
pub struct Estimate {
    /// The trimmed mean of the log ratios.
    pub mean: f64,
    /// Half the width of its 95 % interval.
    pub half_width: f64,
    /// Standard error of the mean, from the winsorised variance.
    standard_error: f64,
    /// Degrees of freedom of the interval.
    freedom: f64,
    /// Number of values.
    pub values: usize,
    /// Number of adjacent values averaged into one block; 1 for independent values.
    pub block: usize,
    /// Lag-1 correlation of the values before averaging.
    pub correlation: f64,
    blocks: Vec<f64>,
}

impl Estimate {
    /// Estimate from values in order of time; `None` for fewer than [`FEWEST_ROUNDS`].
    pub fn from_values(values: &[f64]) -> Option<Self> {
        if values.len() < FEWEST_ROUNDS {
            return None;
        }
        Self::of_repeats(values)
    }

    /// Estimate from a few independent values, such as one from each restarted server; `None` for
    /// fewer than [`FEWEST_REPEATS`]. Below ten values nothing is trimmed, and the interval is the
    /// paired t interval.
    pub fn of_repeats(values: &[f64]) -> Option<Self> {
        if values.len() < FEWEST_REPEATS {
            return None;
        }
        let correlation = lag_one(values, TRIM);
        let (blocks, block) = independent_blocks(values);
        let (mean, standard_error, freedom) = trimmed(&blocks, TRIM);
        Some(Self {
            mean,
            half_width: t_quantile(0.975, freedom) * standard_error,
            standard_error,
            freedom,
            values: values.len(),
            block,
            correlation,
            blocks,
        })
    }

    /// Half the width of the interval that covers the true mean with this probability (0 to 1).
    pub fn half_width_at(&self, probability: f64) -> f64 {
        t_quantile(0.5 + 0.5 * probability, self.freedom) * self.standard_error
    }

    /// Two-sided probability of a mean at least this far from zero if the true mean is zero.
    pub fn t_p(&self) -> f64 {
        match (self.mean == 0.0, self.standard_error == 0.0) {
            (true, _) => 1.0,
            (_, true) => 0.0,
            _ => t_two_sided(self.mean / self.standard_error, self.freedom),
        }
    }

    /// The effect that a two-sided test at level `alpha` detects with probability `power`: J. Cohen,
    /// Statistical Power Analysis (1988), with Student's t for the normal distribution.
    pub fn detectable(&self, alpha: f64, power: f64) -> f64 {
        let reach = t_quantile(1.0 - 0.5 * alpha, self.freedom) + t_quantile(power, self.freedom);
        reach * self.standard_error
    }

    /// Two-sided probability of ranks at least this uneven if the true location is `centre`.
    pub fn rank_p(&self, centre: f64) -> f64 {
        signed_rank(&self.blocks, centre).two_sided
    }

    /// Whether the interval and the ranks both place the true location above `value`.
    pub fn above(&self, value: f64) -> bool {
        let rank = signed_rank(&self.blocks, value);
        self.mean - self.half_width > value && rank.two_sided < 0.05 && rank.z > 0.0
    }

    /// Whether the interval and the ranks both place the true location below `value`.
    pub fn below(&self, value: f64) -> bool {
        let rank = signed_rank(&self.blocks, value);
        self.mean + self.half_width < value && rank.two_sided < 0.05 && rank.z < 0.0
    }
}

/// Trimmed mean, its standard error and the degrees of freedom of its interval.
fn trimmed(values: &[f64], share: f64) -> (f64, f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let cut = (share * n as f64).floor() as usize;
    let kept = &sorted[cut..n - cut];
    let mean = kept.iter().sum::<f64>() / kept.len() as f64;

    let (low, high) = (sorted[cut], sorted[n - cut - 1]);
    let winsorised = sorted.iter().map(|v| v.clamp(low, high));
    let centre = winsorised.clone().sum::<f64>() / n as f64;
    let variance = winsorised.map(|v| (v - centre).powi(2)).sum::<f64>() / (n - 1) as f64;
    // Divide by the share actually kept: `cut` is rounded down.
    let error = (variance * n as f64).sqrt() / kept.len() as f64;
    (mean, error, (kept.len() - 1) as f64)
}

/// The values, or averages of 2, 4, 8, ... adjacent values: the shortest blocks that are not
/// correlated, or the longest that leave [`FEWEST_ROUNDS`] blocks.
fn independent_blocks(values: &[f64]) -> (Vec<f64>, usize) {
    let (mut blocks, mut size) = (values.to_vec(), 1);
    while lag_one(&blocks, TRIM) > CORRELATED / (blocks.len() as f64).sqrt()
        && blocks.len() / 2 >= FEWEST_ROUNDS
    {
        size *= 2;
        blocks = values
            .chunks_exact(size)
            .map(|chunk| chunk.iter().sum::<f64>() / size as f64)
            .collect();
    }
    (blocks, size)
}

#[cfg(test)]
mod tests;
