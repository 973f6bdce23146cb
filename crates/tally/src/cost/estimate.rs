// SPDX-License-Identifier: PostgreSQL

//! From the log ratios of the rounds to a figure with its half-width.
//!
//! The location is the 10 % trimmed mean, its standard error comes from the winsorised
//! variance and its interval from Student's t with h - 1 degrees of freedom, h being the
//! values kept: J. W. Tukey and D. H. McLaughlin, Sankhya A 25 (1963), for one sample;
//! K. K. Yuen, Biometrika 61 (1974), for two. Beside it stands a test that shares none of
//! its assumptions about tails: F. Wilcoxon, Biometrics Bulletin 1 (1945), signed ranks.
//!
//! Values that follow each other in time may be correlated, which would make the interval
//! too narrow. When they are, adjacent ones are averaged into blocks, as long as it takes.

use crate::chance::{lag_one, normal_two_sided, t_quantile};

/// Share of the values cut off at either end.
pub(crate) const TRIM: f64 = 0.10;

/// Fewer values than this, or blocks of them, give no estimate.
pub(crate) const FEWEST: usize = 20;

/// A lag-1 correlation this many standard errors above zero is taken as real.
const CORRELATED: f64 = 2.33;

/// Where a sample lies, and how well that is known.
#[derive(Debug, Clone)]
pub(crate) struct Estimate {
    /// The trimmed mean of the log ratios.
    pub(crate) mean: f64,
    /// Half the width of its 95 % interval.
    pub(crate) half_width: f64,
    /// Its standard error, from the winsorised variance.
    standard_error: f64,
    /// Degrees of freedom of the interval.
    freedom: f64,
    /// Values that went in.
    pub(crate) values: usize,
    /// Adjacent values averaged into one before anything else; 1 when they are independent.
    pub(crate) block: usize,
    /// Lag-1 correlation of the values as they came, before blocks were made.
    pub(crate) correlation: f64,
    blocks: Vec<f64>,
}

impl Estimate {
    /// Estimate from values in their order in time; none from fewer than [`FEWEST`].
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        if values.len() < FEWEST {
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

    /// Half the width of the interval that covers the truth with this probability.
    pub(crate) fn half_width_at(&self, probability: f64) -> f64 {
        t_quantile(0.5 + 0.5 * probability, self.freedom) * self.standard_error
    }

    /// Two-sided probability of ranks at least this uneven around `centre`, were the truth
    /// there.
    pub(crate) fn rank_p(&self, centre: f64) -> f64 {
        signed_rank(&self.blocks, centre).two_sided
    }

    /// Whether interval and ranks both say that the truth is above `value`.
    pub(crate) fn above(&self, value: f64) -> bool {
        let rank = signed_rank(&self.blocks, value);
        self.mean - self.half_width > value && rank.two_sided < 0.05 && rank.z > 0.0
    }

    /// Whether interval and ranks both say that the truth is below `value`.
    pub(crate) fn below(&self, value: f64) -> bool {
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
    let error = variance.sqrt() / ((1.0 - 2.0 * share) * (n as f64).sqrt());
    (mean, error, (kept.len() - 1) as f64)
}

/// What the signed ranks say.
struct SignedRank {
    /// Standard score; positive when the values lie above the centre.
    z: f64,
    two_sided: f64,
}

/// Wilcoxon's test by its normal limit, with the variance corrected for ties; values equal
/// to the centre are left out.
fn signed_rank(values: &[f64], centre: f64) -> SignedRank {
    let mut differences: Vec<f64> =
        values.iter().map(|v| v - centre).filter(|d| *d != 0.0).collect();
    differences.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let n = differences.len() as f64;

    let (mut positive, mut ties, mut start) = (0.0, 0.0, 0);
    while start < differences.len() {
        let size = differences[start].abs();
        let end = start + differences[start..].partition_point(|d| d.abs() <= size);
        let rank = 0.5 * (start + 1 + end) as f64;
        let above = differences[start..end].iter().filter(|d| **d > 0.0).count();
        positive += rank * above as f64;
        let tied = (end - start) as f64;
        ties += tied.powi(3) - tied;
        start = end;
    }
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - ties / 48.0;
    let z = if variance > 0.0 { (positive - n * (n + 1.0) / 4.0) / variance.sqrt() } else { 0.0 };
    SignedRank { z, two_sided: normal_two_sided(z) }
}

/// The values, or averages of 2, 4, 8, ... adjacent ones: the first whose neighbours are
/// not correlated, or the last that leaves [`FEWEST`] blocks.
fn independent_blocks(values: &[f64]) -> (Vec<f64>, usize) {
    let (mut blocks, mut size) = (values.to_vec(), 1);
    while lag_one(&blocks, TRIM) > CORRELATED / (blocks.len() as f64).sqrt()
        && blocks.len() / 2 >= FEWEST
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
