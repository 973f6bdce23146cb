// SPDX-License-Identifier: PostgreSQL

//! The difference of two independent ratios: B. L. Welch, Biometrika 34 (1947).

use super::{Precision, Ratio};

/// Relative rounding error of a sum of many figures.
const ROUNDING: f64 = 1e-12;

/// The difference of two ratios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// The second minus the first.
    pub change: f64,
    /// Half the width of its 95 % interval; `None` if the error of either ratio is unknown.
    pub half_width: Option<f64>,
    /// Probability of a change at least this large by chance alone; `None` if the error is unknown.
    pub p: Option<f64>,
    /// Its standard error; `None` if unknown.
    pub precision: Option<Precision>,
}

impl Difference {
    /// `b` minus `a`.
    pub fn between(a: &Ratio, b: &Ratio) -> Difference {
        let (change, size) = (b.value - a.value, a.value.abs().max(b.value.abs()));
        let (Some(a), Some(b)) = (a.known, b.known) else {
            return Difference { change, half_width: None, p: None, precision: None };
        };
        let precision = Precision::both(a.precision(), b.precision());
        let error = precision.error;
        // Figures that do not vary can still differ by rounding.
        let rounding = ROUNDING * size;
        let (half_width, p) = match error <= rounding {
            true => (error, if change.abs() <= rounding { 1.0 } else { 0.0 }),
            false => (precision.half_width(), precision.p(change)),
        };
        Difference { change, half_width: Some(half_width), p: Some(p), precision: Some(precision) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratio::RatioError;
    use crate::simulation::Normal;

    const Q: f64 = 0.01;

    #[test]
    fn the_halves_of_a_steady_trend_do_not_differ() {
        let mut dice = Normal(3);
        let mut half = |from: f64| {
            let what: Vec<f64> =
                (0..32).map(|i| 10.0 + (from + f64::from(i)) * 0.1 + dice.normal()).collect();
            Ratio::estimate(&what, &[1.0; 32]).unwrap()
        };
        let (first, second) = (half(0.0), half(32.0));
        assert!(Difference::between(&first, &second).p.unwrap() > Q);
    }

    #[test]
    fn a_change_beyond_the_noise_is_found_with_its_size() {
        let mut dice = Normal(9);
        let mut side = |mean: f64| {
            let what: Vec<f64> = (0..30).map(|_| mean + dice.normal()).collect();
            Ratio::estimate(&what, &[1.0; 30]).unwrap()
        };
        let found = Difference::between(&side(10.0), &side(12.0));
        let half_width = found.half_width.unwrap();
        assert!((found.change - 2.0).abs() < half_width && half_width < 1.2, "{found:?}");
        assert!(found.p.unwrap() < 1e-3, "{found:?}");
    }

    #[test]
    fn half_widths_cover_the_truth_in_95_percent_of_cases() {
        let mut dice = Normal(11);
        let mut side = || {
            let what: Vec<f64> = (0..30).map(|_| dice.normal()).collect();
            Ratio::estimate(&what, &[1.0; 30]).unwrap()
        };
        let covered = (0..1000)
            .map(|_| Difference::between(&side(), &side()))
            .filter(|difference| difference.change.abs() <= difference.half_width.unwrap())
            .count();
        // More than 95 %, because the widest of several intervals is taken.
        assert!((950..=999).contains(&covered), "{covered} of 1000");
    }

    #[test]
    fn figures_that_do_not_vary_differ_only_beyond_rounding() {
        let side = |each: f64| {
            let by: Vec<f64> = (0..30).map(|i| 900.0 + f64::from(i * 37 % 11)).collect();
            let what: Vec<f64> = by.iter().map(|n| n * each).collect();
            Ratio::estimate(&what, &by).unwrap()
        };
        assert_eq!(Difference::between(&side(0.1), &side(0.1 * (1.0 + 1e-15))).p, Some(1.0));
        assert!(Difference::between(&side(0.1), &side(0.1 * (1.0 + 1e-9))).p.unwrap() < 1e-6);
    }

    #[test]
    fn a_detectable_change_is_found_in_nine_of_ten_cases() {
        const ALPHA: f64 = 0.005;
        let mut dice = Normal(13);
        let mut side = |mean: f64| {
            let what: Vec<f64> = (0..40).map(|_| mean + dice.normal()).collect();
            Ratio::estimate(&what, &[1.0; 40]).unwrap()
        };
        let mut found = 0;
        for _ in 0..1000 {
            let Difference { change, precision, .. } =
                Difference::between(&side(10.0), &side(10.0));
            let precision = precision.unwrap();
            // As if there had been such a change.
            found += u32::from(precision.p(change + precision.detectable(ALPHA)) <= ALPHA);
        }
        // Rather more often, because the widest of several intervals is taken.
        assert!((890..=960).contains(&found), "{found} of 1000");
    }

    // R: qt(1 - 0.01 / 2, 12) + qt(0.9, 12) is 4.410705.
    #[test]
    fn what_is_detectable_follows_from_level_and_power() {
        let precision = Precision { error: 0.5, freedom: 12.0 };
        assert!((precision.detectable(0.01) / 0.5 - 4.410_757).abs() < 1e-4);
        let sure = Precision { error: 0.0, freedom: 4.0 };
        assert_eq!([sure.p(0.0), sure.p(1e-9)], [1.0, 0.0]);
        assert_eq!(Precision::both(sure, sure).freedom, 8.0);
        let both = Precision::both(precision.scaled(-2.0), sure);
        assert!((both.error - 1.0).abs() < 1e-12 && (both.freedom - 12.0).abs() < 1e-9);
    }

    #[test]
    fn too_few_blocks_give_no_half_width() {
        let few = Ratio::estimate(&[1.0; 7], &[1.0; 7]).unwrap();
        let found = Difference::between(&few, &few);
        assert_eq!((found.half_width, found.p), (None, None));
    }

    // 1 / (0.6^4 / 5 + 0.8^4 / 10) degrees of freedom; Student's density integrated by Simpson's rule.
    #[test]
    fn the_errors_of_both_sides_and_their_freedom_count() {
        let ratio = |value: f64, error: f64, freedom: f64| Ratio {
            value,
            known: Some(RatioError { error, freedom, width: 1 }),
        };
        let found = Difference::between(&ratio(10.0, 0.3, 5.0), &ratio(11.2, 0.4, 10.0));
        assert!((found.change - 1.2).abs() < 1e-12, "{found:?}");
        assert!((found.half_width.unwrap() - 1.066_021_878).abs() < 1e-8, "{found:?}");
        assert!((found.p.unwrap() - 0.029_871_497_95).abs() < 1e-9, "{found:?}");
        let back = Difference::between(&ratio(11.2, 0.4, 10.0), &ratio(10.0, 0.3, 5.0));
        assert_eq!(
            (back.change, back.half_width, back.p),
            (-found.change, found.half_width, found.p)
        );
    }
}
