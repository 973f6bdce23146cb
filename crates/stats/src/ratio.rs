// SPDX-License-Identifier: PostgreSQL

//! A sum divided by another, both taken in blocks of time: so much a transaction, and how well
//! that is known.
//!
//! The variance is that of the ratio's residuals over the blocks (W. G. Cochran, Sampling
//! Techniques, 3rd ed. 1977, section 6.3). What follows in time is rarely independent, so the
//! blocks are also taken together by two, four, eight, ..., as long as [`FEWEST`] remain; each
//! width's variance is raised by what its residuals' lag-1 correlation r still takes away (of
//! a first-order autoregression (1 - r) / (1 + r) of the values count), and the width whose
//! interval is widest is believed.
//!
//! Noise that lasts about as long as all of the blocks is hardly in any of these variances. So they are
//! believed no better than if each [`LASTING`] blocks had told one thing: few blocks need a much greater
//! difference, many hardly any greater.

use super::{lag_one, t_quantile};

/// Fewer blocks than this tell nothing of chance.
pub const FEWEST: usize = 8;

/// Where intervals of different widths are compared.
const PROBABILITY: f64 = 0.995;

/// A correlation is not taken for more than this: a trend has no length of its own.
const STRONGEST: f64 = 0.9;

/// So many blocks give one degree of freedom, at most.
const LASTING: f64 = 4.0;

/// Fewer degrees of freedom would make an interval of no use.
const LEAST_FREEDOM: f64 = 2.0;

/// So much of one thing for each of another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The sums' ratio.
    pub value: f64,
    /// How well it is known; `None` where there are too few blocks.
    pub known: Option<Known>,
}

/// How well a ratio is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known {
    /// Standard error.
    pub error: f64,
    /// Its degrees of freedom.
    pub freedom: f64,
    /// Blocks that were taken together into one.
    pub width: usize,
}

impl Ratio {
    /// Of what happened in blocks that follow each other in time; `None` where there is
    /// nothing to divide by.
    pub fn of(what: &[f64], by: &[f64]) -> Option<Ratio> {
        let (sum, all) = (what.iter().sum::<f64>(), by.iter().sum::<f64>());
        if all <= 0.0 {
            return None;
        }
        let value = sum / all;
        let widths = std::iter::successors(Some(1), |width| Some(width * 2));
        let known = widths
            .take_while(|width| what.len().min(by.len()) / width >= FEWEST)
            .map(|width| known(what, by, value, width))
            .max_by(|a, b| a.reach().total_cmp(&b.reach()))
            .map(|known| {
                let most = (what.len() as f64 / LASTING).max(LEAST_FREEDOM);
                Known { freedom: known.freedom.min(most), ..known }
            });
        Some(Ratio { value, known })
    }
}

impl Known {
    fn reach(&self) -> f64 {
        self.error * t_quantile(PROBABILITY, self.freedom)
    }
}

fn known(what: &[f64], by: &[f64], value: f64, width: usize) -> Known {
    let residuals: Vec<f64> = what
        .chunks_exact(width)
        .zip(by.chunks_exact(width))
        .map(|(what, by)| what.iter().sum::<f64>() - value * by.iter().sum::<f64>())
        .collect();
    let n = residuals.len() as f64;
    // What does not fill a last block counts for the mean size of one all the same.
    let size = by.iter().sum::<f64>() * width as f64 / by.len() as f64;
    let variance = residuals.iter().map(|r| (r / size).powi(2)).sum::<f64>() / (n - 1.0);
    // Around their own mean values seem less alike than they are, by about (1 + 3r) / n.
    let seen = lag_one(&residuals, 0.0);
    let correlation = (seen + (1.0 + 3.0 * seen) / n).clamp(0.0, STRONGEST);
    let effective = (1.0 - correlation) / (1.0 + correlation);
    // The variance itself is known from more of them: M. S. Bartlett, J. R. Statist. Soc. 98 (1935).
    let spread = (1.0 - correlation.powi(2)) / (1.0 + correlation.powi(2));
    Known {
        error: (variance / (n * effective)).sqrt(),
        freedom: ((n - 1.0) * spread).max(LEAST_FREEDOM),
        width,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_of_the_sums_and_not_the_mean_of_ratios() {
        let ratio = Ratio::of(&[1.0, 9.0], &[1.0, 3.0]).unwrap();
        assert_eq!(ratio, Ratio { value: 2.5, known: None });
        assert!(Ratio::of(&[1.0], &[0.0]).is_none());
    }

    #[test]
    fn what_goes_with_the_divisor_is_known_exactly() {
        let by: Vec<f64> = (0..40).map(|i| f64::from(100 + i * 37 % 50)).collect();
        let what: Vec<f64> = by.iter().map(|n| n * 3.0).collect();
        let ratio = Ratio::of(&what, &by).unwrap();
        assert!((ratio.value - 3.0).abs() < 1e-12);
        assert!(ratio.known.unwrap().error < 1e-12);
    }

    #[test]
    fn a_trend_is_no_precision() {
        let by = vec![1.0; 64];
        let rising: Vec<f64> = (0..64).map(f64::from).collect();
        let shuffled: Vec<f64> = (0..64).map(|i| f64::from(i * 27 % 64)).collect();
        let error = |what: &[f64]| Ratio::of(what, &by).unwrap().known.unwrap().error;
        assert!(error(&rising) > 3.0 * error(&shuffled));
    }
}
