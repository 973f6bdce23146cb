// SPDX-License-Identifier: PostgreSQL

//! The difference of two independent ratios: B. L. Welch, Biometrika 34 (1947).

use super::ratio::Known;
use super::{t_quantile, t_two_sided, Ratio};

/// Relative rounding error of a sum of many figures.
const ROUNDING: f64 = 1e-12;

/// How two ratios differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// The second minus the first.
    pub change: f64,
    /// Half the width of its 95 % interval; `None` where either ratio's error is not known.
    pub half_width: Option<f64>,
    /// Probability of a change at least this large by chance alone; `None` likewise.
    pub p: Option<f64>,
}

impl Difference {
    /// `b` minus `a`.
    pub fn of(a: &Ratio, b: &Ratio) -> Difference {
        let (change, size) = (b.value - a.value, a.value.abs().max(b.value.abs()));
        let (Some(a), Some(b)) = (a.known, b.known) else {
            return Difference { change, half_width: None, p: None };
        };
        let error = a.error.hypot(b.error);
        // Figures that do not vary can still differ by rounding.
        let rounding = ROUNDING * size;
        if error <= rounding {
            let p = if change.abs() <= rounding { 1.0 } else { 0.0 };
            return Difference { change, half_width: Some(error), p: Some(p) };
        }
        let part = |known: &Known| (known.error / error).powi(4) / known.freedom;
        let freedom = 1.0 / (part(&a) + part(&b));
        Difference {
            change,
            half_width: Some(error * t_quantile(0.975, freedom)),
            p: Some(t_two_sided(change / error, freedom)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::Normal;

    const Q: f64 = 0.01;

    #[test]
    fn the_halves_of_a_steady_trend_do_not_differ() {
        let mut dice = Normal(3);
        let mut half = |from: f64| {
            let what: Vec<f64> =
                (0..32).map(|i| 10.0 + (from + f64::from(i)) * 0.1 + dice.normal()).collect();
            Ratio::of(&what, &[1.0; 32]).unwrap()
        };
        let (first, second) = (half(0.0), half(32.0));
        assert!(Difference::of(&first, &second).p.unwrap() > Q);
    }

    #[test]
    fn a_change_beyond_the_noise_is_found_with_its_size() {
        let mut dice = Normal(9);
        let mut side = |mean: f64| {
            let what: Vec<f64> = (0..30).map(|_| mean + dice.normal()).collect();
            Ratio::of(&what, &[1.0; 30]).unwrap()
        };
        let found = Difference::of(&side(10.0), &side(12.0));
        let half_width = found.half_width.unwrap();
        assert!((found.change - 2.0).abs() < half_width && half_width < 1.2, "{found:?}");
        assert!(found.p.unwrap() < 1e-3, "{found:?}");
    }

    #[test]
    fn half_widths_cover_the_truth_in_95_percent_of_cases() {
        let mut dice = Normal(11);
        let mut side = || {
            let what: Vec<f64> = (0..30).map(|_| dice.normal()).collect();
            Ratio::of(&what, &[1.0; 30]).unwrap()
        };
        let covered = (0..1000)
            .map(|_| Difference::of(&side(), &side()))
            .filter(|it| it.change.abs() <= it.half_width.unwrap())
            .count();
        // More than 95 %, because the widest of several intervals is taken.
        assert!((950..=999).contains(&covered), "{covered} of 1000");
    }

    #[test]
    fn figures_that_do_not_vary_differ_only_beyond_rounding() {
        let side = |each: f64| {
            let by: Vec<f64> = (0..30).map(|i| 900.0 + f64::from(i * 37 % 11)).collect();
            let what: Vec<f64> = by.iter().map(|n| n * each).collect();
            Ratio::of(&what, &by).unwrap()
        };
        assert_eq!(Difference::of(&side(0.1), &side(0.1 * (1.0 + 1e-15))).p, Some(1.0));
        assert!(Difference::of(&side(0.1), &side(0.1 * (1.0 + 1e-9))).p.unwrap() < 1e-6);
    }

    #[test]
    fn too_few_blocks_give_no_half_width() {
        let few = Ratio::of(&[1.0; 7], &[1.0; 7]).unwrap();
        let found = Difference::of(&few, &few);
        assert_eq!((found.half_width, found.p), (None, None));
    }

    // 1 / (0.6^4 / 5 + 0.8^4 / 10) degrees of freedom; Student's density integrated by Simpson's rule.
    #[test]
    fn the_errors_of_both_sides_and_their_freedom_count() {
        let ratio = |value: f64, error: f64, freedom: f64| Ratio {
            value,
            known: Some(Known { error, freedom, width: 1 }),
        };
        let found = Difference::of(&ratio(10.0, 0.3, 5.0), &ratio(11.2, 0.4, 10.0));
        assert!((found.change - 1.2).abs() < 1e-12, "{found:?}");
        assert!((found.half_width.unwrap() - 1.066_021_878).abs() < 1e-8, "{found:?}");
        assert!((found.p.unwrap() - 0.029_871_497_95).abs() < 1e-9, "{found:?}");
        let back = Difference::of(&ratio(11.2, 0.4, 10.0), &ratio(10.0, 0.3, 5.0));
        assert_eq!(
            (back.change, back.half_width, back.p),
            (-found.change, found.half_width, found.p)
        );
    }
}
