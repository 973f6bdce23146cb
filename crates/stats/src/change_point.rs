// SPDX-License-Identifier: PostgreSQL

//! Whether and when the level of a series changed.
//!
//! Each position that leaves enough values on both sides is tried. The candidate is the one whose two parts have the
//! least sum of absolute deviations from their medians, since outliers hardly move medians. The means of its parts are
//! then compared as by [`Difference`], including correlation in time, and the probability is multiplied by the number
//! of positions tried (C. E. Bonferroni).

use super::{Difference, Ratio, FEWEST};

/// Probability of finding a change when there is none.
const ALPHA: f64 = 0.01;

/// A change of level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value after the change.
    pub at: usize,
    /// Mean before it.
    pub before: f64,
    /// Mean after it.
    pub after: f64,
    /// Half the width of the 95 % interval of their difference.
    pub half_width: f64,
    /// Probability of such a change by chance, over all positions tried.
    pub p: f64,
}

/// The clearest change of a series; `None` if chance could explain it, or for too few values.
pub fn change_point(values: &[f64]) -> Option<ChangePoint> {
    let last = values.len().checked_sub(FEWEST)?;
    let tried = FEWEST..=last;
    let number = tried.clone().count();
    let cost = |at: &usize| deviation(&values[..*at]) + deviation(&values[*at..]);
    let costs = tried.map(|at| (at, cost(&at)));
    let (at, _) = costs.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let (first, second) = values.split_at(at);
    let level = |part: &[f64]| Ratio::estimate(part, &vec![1.0; part.len()]);
    let (before, after) = (level(first)?, level(second)?);
    let difference = Difference::between(&before, &after);
    let p = (difference.p? * number as f64).min(1.0);
    (p < ALPHA).then_some(ChangePoint {
        at,
        before: before.value,
        after: after.value,
        half_width: difference.half_width.unwrap_or(0.0),
        p,
    })
}

/// The sum of absolute deviations from the median.
fn deviation(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = sorted[sorted.len() / 2];
    values.iter().map(|value| (value - median).abs()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::Normal;

    #[test]
    fn a_change_is_found_where_it_was_made() {
        let mut dice = Normal(5);
        for at in [10, 30, 50] {
            let values: Vec<f64> =
                (0..60).map(|n| if n < at { 100.0 } else { 60.0 } + 5.0 * dice.normal()).collect();
            let found = change_point(&values).unwrap();
            assert!(found.at.abs_diff(at) <= 1, "{found:?}");
            assert!((found.after - found.before + 40.0).abs() < 2.0 * found.half_width + 1.0);
        }
    }

    #[test]
    fn outliers_are_no_change() {
        let mut dice = Normal(6);
        let values: Vec<f64> = (0..60)
            .map(|n| 100.0 + dice.normal() + if n % 17 == 3 { -80.0 } else { 0.0 })
            .collect();
        assert_eq!(change_point(&values), None);
    }

    #[test]
    fn steady_series_have_a_change_in_less_than_one_case_of_a_hundred() {
        let mut dice = Normal(7);
        let found = (0..500)
            .filter(|_| {
                let values: Vec<f64> = (0..60).map(|_| 100.0 + dice.normal()).collect();
                change_point(&values).is_some()
            })
            .count();
        assert!(found <= 10, "{found}");
        assert_eq!(change_point(&[1.0; 60]), None);
        assert_eq!(change_point(&[1.0; 15]), None);
        assert_eq!(change_point(&[]), None);
        assert_eq!(deviation(&[9.0, 1.0, 2.0]), 8.0, "from the median");
    }

    #[test]
    fn its_probability_counts_the_moments_tried_and_decides_at_one_percent() {
        // Eight values on either side, which differ by `by`; the error of either mean is the root of 1/7.
        let series = |by: f64| -> Vec<f64> {
            (0..16).map(|n| f64::from(n % 2) + if n < 8 { 0.0 } else { by }).collect()
        };
        // 0.99 of Student's t with 4 degrees of freedom, 4.604095, times the root of 2/7, halved.
        let limit = 4.604_095 * (2.0_f64 / 7.0).sqrt() / 2.0;
        assert_eq!(change_point(&series(limit * 0.999)), None);
        let found = change_point(&series(limit * 1.001)).unwrap();
        assert_eq!((found.at, found.before), (8, 0.5));
        assert!((found.p - 0.01).abs() < 5e-5, "{found:?}");
        assert!((found.after - found.before - limit * 1.001).abs() < 1e-12, "{found:?}");
        // With 17 values, two positions are tried.
        let mut longer = series(1000.0);
        longer.push(1000.0);
        let level = |part: &[f64]| Ratio::estimate(part, &vec![1.0; part.len()]).unwrap();
        let by_itself = Difference::between(&level(&longer[..8]), &level(&longer[8..]));
        let found = change_point(&longer).unwrap();
        assert_eq!((found.at, found.half_width), (8, by_itself.half_width.unwrap()));
        assert!((found.p / by_itself.p.unwrap() - 2.0).abs() < 1e-9, "{found:?}");
    }
}
