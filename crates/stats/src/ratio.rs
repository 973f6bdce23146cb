// SPDX-License-Identifier: PostgreSQL

//! The ratio of two sums over blocks of time, such as seconds per transaction, and its error.
//!
//! The variance is that of the ratio's residuals over the blocks (W. G. Cochran, Sampling
//! Techniques, 3rd ed. 1977, section 6.3). Neighbouring blocks are rarely independent. They are
//! therefore also joined by two, four, eight, ..., as long as [`FEWEST`] remain. For each width the
//! variance is corrected for the lag-1 correlation r of the residuals: in a first-order
//! autoregression only the share (1 - r) / (1 + r) of the values counts. The width with the widest
//! interval is used.
//!
//! None of these variances contains noise that lasts about as long as all blocks together. The degrees
//! of freedom are therefore at most one for each [`LASTING`] blocks: few blocks then need a much larger
//! difference, many blocks hardly any larger.

use super::{lag_one, t_quantile, Precision};

/// Minimum number of blocks for an error.
pub const FEWEST: usize = 8;

/// The probability at which intervals of different block widths are compared.
const PROBABILITY: f64 = 0.995;

/// Upper bound of the correlation: for a trend it would approach 1 and leave no values.
const STRONGEST: f64 = 0.9;

/// This number of blocks gives at most one degree of freedom.
pub(crate) const LASTING: f64 = 4.0;

/// Minimum degrees of freedom; with fewer, an interval would be useless.
const MIN_FREEDOM: f64 = 2.0;

/// The amount of one quantity per unit of another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Ratio of the sums.
    pub value: f64,
    /// Its error; `None` for too few blocks.
    pub known: Option<RatioError>,
}

/// The error of a ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioError {
    /// Standard error.
    pub error: f64,
    /// Degrees of freedom of the standard error.
    pub freedom: f64,
    /// Number of blocks joined into one.
    pub width: usize,
}

impl Ratio {
    /// Estimates the ratio of `what` to `by`, both by blocks in order of time; `None` unless the sum of `by` is
    /// above zero.
    pub fn estimate(what: &[f64], by: &[f64]) -> Option<Ratio> {
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
                let most = (what.len() as f64 / LASTING).max(MIN_FREEDOM);
                RatioError { freedom: known.freedom.min(most), ..known }
            });
        Some(Ratio { value, known })
    }
}

impl RatioError {
    /// The error without the block width.
    pub fn precision(&self) -> Precision {
        Precision { error: self.error, freedom: self.freedom }
    }

    fn reach(&self) -> f64 {
        self.error * t_quantile(PROBABILITY, self.freedom)
    }
}

fn known(what: &[f64], by: &[f64], value: f64, width: usize) -> RatioError {
    let residuals: Vec<f64> = what
        .chunks_exact(width)
        .zip(by.chunks_exact(width))
        .map(|(what, by)| what.iter().sum::<f64>() - value * by.iter().sum::<f64>())
        .collect();
    let n = residuals.len() as f64;
    // Blocks left over at the end still count for the mean size.
    let size = by.iter().sum::<f64>() * width as f64 / by.len() as f64;
    let variance = residuals.iter().map(|r| (r / size).powi(2)).sum::<f64>() / (n - 1.0);
    // Around their own mean, values seem less correlated than they are, by about (1 + 3r) / n.
    let seen = lag_one(&residuals, 0.0);
    let correlation = (seen + (1.0 + 3.0 * seen) / n).clamp(0.0, STRONGEST);
    let effective = (1.0 - correlation) / (1.0 + correlation);
    // For the variance more values count: M. S. Bartlett, J. R. Statist. Soc. 98 (1935).
    let spread = (1.0 - correlation.powi(2)) / (1.0 + correlation.powi(2));
    RatioError {
        error: (variance / (n * effective)).sqrt(),
        freedom: ((n - 1.0) * spread).max(MIN_FREEDOM),
        width,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_divides_sums_rather_than_averaging_ratios() {
        let ratio = Ratio::estimate(&[1.0, 9.0], &[1.0, 3.0]).unwrap();
        assert_eq!(ratio, Ratio { value: 2.5, known: None });
        assert!(Ratio::estimate(&[1.0], &[0.0]).is_none());
    }

    #[test]
    fn a_quantity_proportional_to_the_divisor_has_no_error() {
        let by: Vec<f64> = (0..40).map(|i| f64::from(100 + i * 37 % 50)).collect();
        let what: Vec<f64> = by.iter().map(|n| n * 3.0).collect();
        let ratio = Ratio::estimate(&what, &by).unwrap();
        assert!((ratio.value - 3.0).abs() < 1e-12);
        assert!(ratio.known.unwrap().error < 1e-12);
    }

    #[test]
    fn a_trend_widens_the_error() {
        let by = vec![1.0; 64];
        let rising: Vec<f64> = (0..64).map(f64::from).collect();
        let shuffled: Vec<f64> = (0..64).map(|i| f64::from(i * 27 % 64)).collect();
        let error = |what: &[f64]| Ratio::estimate(what, &by).unwrap().known.unwrap().error;
        assert!(error(&rising) > 3.0 * error(&shuffled));
    }

    /// The error, its degrees of freedom and the number of blocks joined.
    fn ratio_of_sums(what: &[f64], by: &[f64]) -> (f64, f64, usize) {
        let known = Ratio::estimate(what, by).unwrap().known.unwrap();
        (known.error, known.freedom, known.width)
    }

    // By the formulas above, in Python.
    #[test]
    fn errors_are_those_of_the_formulas() {
        let cases: [(Vec<f64>, (f64, f64, usize)); 5] = [
            // Neighbours that differ: no correlation, the root of 1/39, a degree for each four blocks.
            ([1.0, 3.0].repeat(20), (0.160_128_153_805_087, 10.0, 1)),
            // Lag-1 correlation 1/8, taken for 0.296875.
            ([1.0, 1.0, 3.0, 3.0].repeat(2), (0.513_314_780_122_357, 2.0, 1)),
            // 5/8, which is taken for the strongest.
            ([[1.0; 4], [3.0; 4]].concat(), (1.647_508_942_095_828, 2.0, 1)),
            ([[1.0; 4], [3.0; 4]].concat().repeat(3), (0.453_553_279_722_512, 6.0, 1)),
            // By two the error is less, its interval at 99 % wider: 6.65 degrees of freedom rather than 15.
            ([1.0, 5.0, 2.0, 6.0, 7.0, 3.0, 8.0, 4.0].repeat(2), (0.496_268_604_569_180, 4.0, 2)),
        ];
        for (what, (error, freedom, width)) in cases {
            let found = ratio_of_sums(&what, &vec![1.0; what.len()]);
            assert!((found.0 - error).abs() < 1e-12, "{what:?}: {found:?}");
            assert_eq!((found.1, found.2), (freedom, width), "{what:?}");
        }
        let what = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0];
        let by = [1.0, 2.0, 1.0, 1.0, 2.0, 3.0, 1.0, 2.0, 2.0, 1.0];
        let (error, freedom, _) = ratio_of_sums(&what, &by);
        assert!((error - 0.326_041_250_666_335).abs() < 1e-12, "{error}");
        assert_eq!(freedom, 2.5);
    }

    #[test]
    fn eight_blocks_have_an_error() {
        assert_eq!(Ratio::estimate(&[1.0; 7], &[1.0; 7]).unwrap().known, None);
        assert!(Ratio::estimate(&[1.0; 8], &[1.0; 8]).unwrap().known.is_some());
    }
}
