// SPDX-License-Identifier: PostgreSQL
//! Tests whether the blocks of two sides are far apart.

use crate::ratio::LASTING;

/// Minimum factor between the sides; smaller differences are left to tests of variance.
const FACTOR: f64 = 2.0;

/// If each block of one side has at least twice as much per unit as each block of the other, the probability of that by
/// chance alone; otherwise `None`.
///
/// Both sides are blocks in order of time. A variance grows with a single large block and may hide even a quantity that
/// one side hardly has; this test does not. Neighbouring blocks are joined until they are independent, as for a
/// [`crate::Ratio`]. If the sides do not differ, any n of the n + m joined blocks are equally likely to belong to one
/// side, and two of these choices separate the sides.
pub fn separation(what: [&[f64]; 2], by: [&[f64]; 2]) -> Option<f64> {
    let [a, b] = [0, 1].map(|side| joined(what[side], by[side]));
    let max = |side: &[f64]| side.iter().copied().fold(0.0, f64::max);
    let min = |side: &[f64]| side.iter().copied().fold(f64::INFINITY, f64::min);
    let above = |low: &[f64], high: &[f64]| min(high) > 0.0 && min(high) >= FACTOR * max(low);
    if a.is_empty() || b.is_empty() || !(above(&a, &b) || above(&b, &a)) {
        return None;
    }
    let choices: f64 = (1..=b.len()).map(|at| (a.len() + at) as f64 / at as f64).product();
    Some((2.0 / choices).min(1.0))
}

/// The ratio in each joined block with units.
fn joined(what: &[f64], by: &[f64]) -> Vec<f64> {
    let width = LASTING as usize;
    let sums = |series: &[f64]| -> Vec<f64> {
        series.chunks_exact(width).map(|block| block.iter().sum()).collect()
    };
    let both = sums(what).into_iter().zip(sums(by));
    both.filter(|(_, by)| *by > 0.0).map(|(what, by)| what / by).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::Normal;

    fn separate(a: &[f64], b: &[f64]) -> Option<f64> {
        separation([a, b], [&vec![1.0; a.len()], &vec![1.0; b.len()]])
    }

    #[test]
    fn the_orders_of_the_joined_blocks_are_counted() {
        // 2 and 2: 2 of 6 orders.
        let third = separate(&[2.0; 8], &[1.0; 8]).unwrap();
        assert!((third - 1.0 / 3.0).abs() < 1e-12, "{third}");
        assert_eq!(separate(&[0.0; 8], &[1.0; 8]), Some(third));
        let p = separate(&[1.0; 40], &[0.0; 40]).unwrap();
        assert!((p - 2.0 / 184_756.0).abs() < 1e-12, "{p}");
        assert_eq!(separate(&[2.0; 4], &[1.0; 4]), Some(1.0), "too few to tell");
    }

    #[test]
    fn a_large_or_an_empty_block_hides_nothing() {
        let mut uneven: Vec<f64> = (0..40).map(|at| f64::from(at % 4)).collect();
        uneven[17] = 1e6;
        let mut seldom = [0.0; 40];
        seldom[7] = 1.0;
        assert!(separate(&uneven, &seldom).unwrap() < 1e-4);
    }

    #[test]
    fn sides_that_overlap_or_are_close_decide_nothing() {
        let mut dice = Normal(7);
        let mut side = |mean: f64| -> Vec<f64> { (0..40).map(|_| mean + dice.normal()).collect() };
        assert_eq!(separate(&side(10.0), &side(10.0)), None);
        assert_eq!(separate(&side(10.0), &side(15.0)), None);
        assert!(separate(&side(10.0), &side(40.0)).is_some());
        assert_eq!(separate(&[0.0; 40], &[0.0; 40]), None);
        assert_eq!(separate(&[], &[]), None);
    }

    #[test]
    fn it_is_by_unit_and_blocks_without_units_do_not_count() {
        let (what, mut by) = ([4.0; 16], [2.0; 16]);
        by[..4].fill(0.0);
        let p = separation([&what, &[1.0; 16]], [&by, &[1.0; 16]]).unwrap();
        assert!((p - 2.0 / 35.0).abs() < 1e-12, "3 and 4 joined blocks: {p}");
        assert_eq!(separation([&what, &[2.0; 16]], [&by, &[1.0; 16]]), None);
    }

    #[test]
    fn sides_are_apart_from_twice_as_much() {
        assert!(separate(&[2.0; 8], &[1.0; 8]).is_some());
        assert_eq!(separate(&[1.999; 8], &[1.0; 8]), None);
        assert_eq!(separate(&[1.0; 8], &[1.999; 8]), None);
        assert_eq!(separate(&[1.0; 3], &[9.0; 8]), None, "no joined block");
    }
}
