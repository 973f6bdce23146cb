// SPDX-License-Identifier: PostgreSQL

//! Two counts of rare independent events, each in a measured amount of work: do their rates differ?
//! J. Przyborowski and H. Wilenski, Biometrika 31 (1940): given the sum, the first count is binomial.

use crate::student::Z95;

use statrs::distribution::{Binomial, DiscreteCDF};

/// The comparison of two rates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counts {
    /// The second rate divided by the first; `None` if one of the counts is 0.
    pub ratio: Option<f64>,
    /// The factor by which the 95 % interval of the ratio extends to either side; `None` if one of the counts is 0.
    pub factor: Option<f64>,
    /// Probability of such a difference by chance alone.
    pub p: f64,
}

impl Counts {
    /// Compares `a` events in the amount `of_a` with `b` events in `of_b`; amounts are above 0.
    pub fn compare((a, of_a): (u64, f64), (b, of_b): (u64, f64)) -> Counts {
        let known = a > 0 && b > 0;
        let ratio = known.then(|| (b as f64 / of_b) / (a as f64 / of_a));
        let factor = known.then(|| (Z95 * (1.0 / a as f64 + 1.0 / b as f64).sqrt()).exp());
        Counts { ratio, factor, p: p_of(a, a + b, of_a / (of_a + of_b)) }
    }
}

/// Twice the smaller tail.
fn p_of(a: u64, n: u64, share: f64) -> f64 {
    let Ok(binomial) = Binomial::new(share.clamp(0.0, 1.0), n) else { return 1.0 };
    let up_to = binomial.cdf(a);
    let from = if a == 0 { 1.0 } else { binomial.sf(a - 1) };
    (2.0 * up_to.min(from)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    // R: binom.test(11, 25, 20000/(20000+20000)) and poisson.test's conditional test
    #[test]
    fn the_probability_agrees_with_the_binomial_one() {
        let found = Counts::compare((5, 1.0), (15, 1.0));
        assert!((found.p - 0.041389465).abs() < 1e-6, "{found:?}");
        assert_eq!(found.ratio, Some(3.0));
        assert_eq!(Counts::compare((10, 2.0), (5, 1.0)).ratio, Some(1.0));
        assert!(Counts::compare((10, 2.0), (5, 1.0)).p > 0.8);
    }

    #[test]
    fn a_count_of_zero_is_no_ratio_but_evidence() {
        let found = Counts::compare((0, 1.0), (20, 1.0));
        assert_eq!((found.ratio, found.factor), (None, None));
        assert!(found.p < 1e-5, "{found:?}");
        assert_eq!(Counts::compare((0, 1.0), (0, 1.0)).p, 1.0);
    }

    // exp(1.96 * sqrt(1/5 + 1/15))
    #[test]
    fn the_interval_of_a_ratio_depends_on_both_counts() {
        let factor = Counts::compare((5, 1.0), (15, 4.0)).factor.unwrap();
        assert!((factor - 2.751_481_923_505_602).abs() < 1e-12, "{factor}");
        assert_eq!(Counts::compare((5, 1.0), (15, 4.0)).ratio, Some(0.75));
        let ever = Counts::compare((1, 1.0), (1, 1.0));
        assert_eq!(ever.ratio, Some(1.0), "one event is enough");
        // Twice the probability that all of three are where three quarters of the work is: 2 * (3/4)^3.
        for p in [Counts::compare((3, 3.0), (0, 1.0)).p, Counts::compare((0, 1.0), (3, 3.0)).p] {
            assert!((p - 0.843_75).abs() < 1e-12, "{p}");
        }
    }
}
