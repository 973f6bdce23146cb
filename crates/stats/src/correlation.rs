// SPDX-License-Identifier: PostgreSQL

//! Correlation of successive values, and of two series.

use crate::student::t_quantile;

/// Lag-1 correlation of the values; 0 for fewer than two. They are winsorised first, this share at
/// either end, so that no single value decides.
pub fn lag_one(values: &[f64], share: f64) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = (share * values.len() as f64).floor() as usize;
    let (low, high) = (sorted[cut], sorted[values.len() - cut - 1]);
    let tame: Vec<f64> = values.iter().map(|v| v.clamp(low, high)).collect();
    let mean = tame.iter().sum::<f64>() / tame.len() as f64;
    let all: f64 = tame.iter().map(|v| (v - mean).powi(2)).sum();
    let next: f64 = tame.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum();
    if all > 0.0 {
        next / all
    } else {
        0.0
    }
}

/// How closely two series follow each other in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Likeness {
    /// Pearson's correlation.
    pub r: f64,
    /// The share of all displacements of one series against the other with at least this correlation. Both keep their
    /// order, so values that depend on earlier ones do not count as independent.
    pub chance: f64,
}

/// Minimum number of values for [`likeness`], which needs many displacements.
const FEWEST: usize = 20;

/// The likeness of two series of the same length; `None` for fewer than 20 values, or if one never changes.
///
/// The test displaces one series circularly by each possible number of steps (J. Besag, P. Clifford:
/// Generalized Monte Carlo significance tests, Biometrika 1989).
pub fn likeness(a: &[f64], b: &[f64]) -> Option<Likeness> {
    if a.len() != b.len() || a.len() < FEWEST {
        return None;
    }
    let (a, b) = (standardised(a)?, standardised(b)?);
    let displaced = |by: usize| -> f64 {
        let others = b.iter().cycle().skip(by);
        a.iter().zip(others).map(|(x, y)| x * y).sum()
    };
    let r = displaced(0);
    let as_much = (0..a.len()).filter(|by| displaced(*by).abs() >= r.abs() - 1e-12).count();
    Some(Likeness { r, chance: as_much as f64 / a.len() as f64 })
}

/// How much of a series goes with another one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Explained {
    /// The share of the sum of `effect`: the part that rises in proportion to `cause`, by least squares.
    pub share: f64,
    /// The half-width of its 95 % confidence interval.
    pub half_width: f64,
}

/// Number of blocks of successive values that the half-width is computed from.
const BLOCKS: usize = 10;

/// The share of `effect` that `cause` explains: the slope of `effect` over `cause`, times the mean of `cause`, as a share of the
/// mean of `effect`. `None` for fewer than 20 values, if `cause` never changes, or if the sum of `effect` is 0.
///
/// The half-width comes from a jackknife over blocks of successive values, because these depend on each other (H. Kuensch: The
/// jackknife and the bootstrap for general stationary observations, Annals of Statistics 1989).
pub fn explained(cause: &[f64], effect: &[f64]) -> Option<Explained> {
    if cause.len() != effect.len() || cause.len() < FEWEST {
        return None;
    }
    let all: Vec<(f64, f64)> = cause.iter().copied().zip(effect.iter().copied()).collect();
    let share = rising_share(&all)?;
    let bound = |block: usize| block * all.len() / BLOCKS;
    let without = |block: usize| {
        let kept: Vec<_> = [&all[..bound(block)], &all[bound(block + 1)..]].concat();
        rising_share(&kept).unwrap_or(0.0)
    };
    let others: Vec<f64> = (0..BLOCKS).map(without).collect();
    let n = BLOCKS as f64;
    let mean = others.iter().sum::<f64>() / n;
    let variance = others.iter().map(|other| (other - mean).powi(2)).sum::<f64>() * (n - 1.0) / n;
    Some(Explained { share, half_width: t_quantile(0.975, n - 1.0) * variance.sqrt() })
}

/// Share of the mean effect that a linear regression on the cause explains; of pairs of cause and effect.
fn rising_share(pairs: &[(f64, f64)]) -> Option<f64> {
    let n = pairs.len() as f64;
    let (x, y) =
        pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0 / n, sum.1 + pair.1 / n));
    let (square, product) = pairs.iter().fold((0.0, 0.0), |sum, pair| {
        (sum.0 + (pair.0 - x).powi(2), sum.1 + (pair.0 - x) * (pair.1 - y))
    });
    (square > 0.0 && y > 0.0).then(|| product / square * x / y)
}

/// The values minus their mean, scaled so that their squares add up to 1.
fn standardised(values: &[f64]) -> Option<Vec<f64>> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let length = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>().sqrt();
    let differ = length.is_finite() && length > 1e-12 * mean.abs().max(1e-12);
    differ.then(|| values.iter().map(|v| (v - mean) / length).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some spikes at irregular distances.
    fn spikes(n: usize, at: &[usize]) -> Vec<f64> {
        (0..n).map(|i| if at.contains(&i) { 1.0 } else { 0.0 }).collect()
    }

    #[test]
    fn series_that_rise_together_are_alike_and_displaced_ones_are_not() {
        let a = spikes(60, &[3, 11, 12, 25, 41, 42, 43, 57]);
        let b: Vec<f64> =
            a.iter().enumerate().map(|(i, v)| 5.0 + 2.0 * v + 0.01 * (i % 7) as f64).collect();
        let alike = likeness(&a, &b).unwrap();
        assert!(alike.r > 0.99 && alike.chance == 1.0 / 60.0, "{alike:?}");
        let other = spikes(60, &[1, 8, 17, 19, 30, 36, 50, 53]);
        assert!(likeness(&a, &other).unwrap().chance > 0.05);
    }

    #[test]
    fn a_period_that_both_have_is_not_taken_for_many_coincidences() {
        // Every 10th displacement gives exactly the same correlation.
        let a: Vec<f64> = (0..60).map(|i| f64::from(i % 10 == 0)).collect();
        let alike = likeness(&a, &a).unwrap();
        assert!((alike.r - 1.0).abs() < 1e-9 && (alike.chance - 0.1).abs() < 1e-9, "{alike:?}");
    }

    #[test]
    fn too_few_values_or_constant_ones_have_no_likeness() {
        assert_eq!(likeness(&[1.0, 2.0], &[1.0, 2.0]), None);
        assert_eq!(likeness(&[1.0; 30], &spikes(30, &[4])), None);
    }

    #[test]
    fn neighbours_are_compared_after_the_extremes_were_cut() {
        // Sums of products by hand: 2, 4, 2, 4 around 3; 0, 10, 2, 4 around 4.
        assert!((lag_one(&[0.0, 10.0, 2.0, 4.0], 0.25) + 3.0 / 4.0).abs() < 1e-12);
        assert!((lag_one(&[0.0, 10.0, 2.0, 4.0], 0.0) + 36.0 / 56.0).abs() < 1e-12);
        assert!((lag_one(&[0.0, 10.0, 2.0, 4.0], 0.24) + 36.0 / 56.0).abs() < 1e-12);
        assert_eq!(lag_one(&[7.0], 0.1), 0.0);
        assert_eq!(lag_one(&[7.0; 5], 0.1), 0.0);
    }

    #[test]
    fn twenty_values_of_equal_length_are_enough() {
        let rising: Vec<f64> = (0..20).map(f64::from).collect();
        assert_eq!(likeness(&rising[1..], &rising[1..]), None);
        assert_eq!(likeness(&rising, &rising[1..]), None);
        let falling: Vec<f64> = rising.iter().map(|v| -v).collect();
        let opposed = likeness(&rising, &falling).unwrap();
        assert!((opposed.r + 1.0).abs() < 1e-12 && opposed.chance == 1.0 / 20.0, "{opposed:?}");
    }

    #[test]
    fn the_explained_share_is_what_rises_with_the_cause() {
        let cause = spikes(60, &[3, 11, 12, 25, 41, 42, 43, 57]);
        // 52 values of 2, and 8 of 5: of 144, 24 rise with the cause.
        let effect: Vec<f64> = cause.iter().map(|v| 2.0 + 3.0 * v).collect();
        let found = explained(&cause, &effect).unwrap();
        assert!((found.share - 24.0 / 144.0).abs() < 1e-12, "{found:?}");
        assert!(found.half_width > 0.0 && found.half_width < 0.1, "{found:?}");
        let noise: Vec<f64> = (0..60).map(|i| 1.0 + f64::from(i * i % 7 == 1)).collect();
        let found = explained(&cause, &noise).unwrap();
        assert!(found.share.abs() < found.half_width, "{found:?}");
        assert_eq!(explained(&[0.0; 60], &effect), None);
        assert_eq!(explained(&cause, &[0.0; 60]), None);
        assert_eq!(explained(&cause[..19], &effect[..19]), None);
    }
}
