// SPDX-License-Identifier: PostgreSQL

use super::super::rank::signed_rank;
use super::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A heavy-tailed sequence that any language can reproduce: the ratio of two draws from Lehmer's
/// generator (16807, 2^31 - 1).
fn sequence(n: usize) -> Vec<f64> {
    let mut state: u64 = 1;
    let mut draw = || {
        state = state * 16_807 % 2_147_483_647;
        state as f64 / 2_147_483_647.0
    };
    (0..n)
        .map(|_| {
            let (u, v) = (draw(), draw());
            (u - 0.45) / (0.05 + v)
        })
        .collect()
}

fn close(ours: f64, reference: f64) {
    let error = (ours / reference - 1.0).abs();
    assert!(error < 1e-9, "{ours} is not {reference} ({error:e})");
}

// SciPy 1.17.1, x = the sequence:
//   scipy.stats.trim_mean(x, .1), scipy.stats.mstats.trimmed_stde(x, limits=(.1, .1)),
//   half of numpy.diff(scipy.stats.mstats.trimmed_mean_ci(x, limits=(.1, .1)))
#[test]
fn trimmed_mean_and_half_width_agree_with_scipy() {
    for (n, mean, error, half_width) in [
        (40, 0.326_778_291_537_074_16, 0.268_842_462_787_417_14, 0.548_307_817_817_263_2),
        (200, 0.082_649_731_564_218_1, 0.050_556_514_061_591_71, 0.099_848_923_802_369_23),
        (1000, 0.127_103_240_093_842_38, 0.024_892_912_278_525_15, 0.048_863_230_027_532_76),
    ] {
        let ours = Estimate::from_values(&sequence(n)).unwrap();
        assert_eq!((ours.values, ours.block), (n, 1));
        close(ours.mean, mean);
        close(ours.standard_error, error);
        close(ours.half_width, half_width);
        close(ours.half_width_at(0.95), half_width);
    }
}

// scipy.stats.wilcoxon(x - centre, mode="approx", correction=False).pvalue, SciPy 1.17.1
#[test]
fn signed_ranks_agree_with_scipy() {
    close(signed_rank(&sequence(40), 0.0).two_sided, 0.069_589_226_275_474_05);
    close(signed_rank(&sequence(200), 0.0).two_sided, 0.092_213_589_583_752_27);
    close(signed_rank(&sequence(200), 0.3).two_sided, 5.808_442_597_105_786e-5);
    close(signed_rank(&sequence(1000), 0.3).two_sided, 2.993_898_657_779_915e-12);
}

// scipy.stats.wilcoxon(numpy.round(2 * x) / 2, mode="approx", correction=False).pvalue
#[test]
fn signed_ranks_with_ties_and_zeros_agree_with_scipy() {
    // numpy.round rounds halves to even; none of these values is one.
    let coarse: Vec<f64> = sequence(200).iter().map(|x| (2.0 * x).round() / 2.0).collect();
    assert!(coarse.iter().filter(|x| **x == 0.0).count() > 20);
    close(signed_rank(&coarse, 0.0).two_sided, 0.073_204_794_324_015_07);
}

#[test]
fn too_few_values_give_no_estimate() {
    assert!(Estimate::from_values(&sequence(FEWEST_ROUNDS - 1)).is_none());
    assert!(Estimate::from_values(&sequence(FEWEST_ROUNDS)).is_some());
}

#[test]
fn equal_values_have_no_width_and_no_rank() {
    let same = Estimate::from_values(&[0.0; 50]).unwrap();
    assert_eq!((same.mean, same.half_width, same.rank_p(0.0)), (0.0, 0.0, 1.0));
    assert!(!same.above(0.0) && !same.below(0.0));
}

// scipy.stats.ttest_1samp(x, 0) and .confidence_interval(0.95), x = the first 8 of the sequence; the
// effect by scipy.stats.t.ppf(.975, 7) + scipy.stats.t.ppf(.8, 7).
#[test]
fn few_repeats_give_the_paired_t_interval_of_scipy() {
    let values = sequence(8);
    assert!(Estimate::from_values(&values).is_none());
    let ours = Estimate::of_repeats(&values).unwrap();
    close(ours.mean, 0.226_696_767_540_425_28);
    close(ours.half_width, 1.651_672_069_503_365);
    close(ours.t_p(), 0.755_003_961_102_065_4);
    close(ours.detectable(0.05, 0.8), 2.277_541_966_576_105);
    assert!(Estimate::of_repeats(&values[..FEWEST_REPEATS - 1]).is_none());
}

/// Blocks of a study without any effect. Each is the log ratio of two cells that share the block's
/// drift but not the heavy-tailed noise.
fn blocks(seed: u64, n: usize) -> Vec<f64> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut drift = 0.0;
    (0..n)
        .map(|_| {
            let mut cell = || {
                // From one cell to the next the machine has drifted on.
                drift += 0.02 * (rng.random::<f64>() - 0.5);
                let u = 2.0 * rng.random::<f64>() - 1.0;
                drift + 0.01 * (u * (2.0 / (1.0 - u * u)).sqrt()).clamp(-40.0, 40.0)
            };
            let (one, other) = (cell(), cell());
            one - other
        })
        .collect()
}

#[test]
fn few_repeats_cover_the_truth_and_rarely_find_a_false_effect() {
    for n in [6, 8, 12] {
        let runs = 1500;
        let estimates = || (0..runs).map(|seed| Estimate::of_repeats(&blocks(seed, n)).unwrap());
        let covered = estimates().filter(|e| e.mean.abs() <= e.half_width).count();
        let wrong = estimates().filter(|e| e.above(0.0) || e.below(0.0)).count();
        let share = |count: usize| count as f64 / runs as f64;
        // With heavy tails the t interval of a few values covers more than 95 %, not less.
        assert!((0.93..=0.995).contains(&share(covered)), "{n}: covered {}", share(covered));
        assert!(share(wrong) <= 0.05, "{n}: wrong {}", share(wrong));
    }
}

/// A first-order autoregressive series with this coefficient.
fn autoregressive(seed: u64, n: usize, keep: f64) -> Vec<f64> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut value = 0.0;
    (0..n)
        .map(|_| {
            value = keep * value + rng.random::<f64>() - 0.5;
            value
        })
        .collect()
}

#[test]
fn correlated_values_are_averaged_into_blocks_until_the_interval_holds() {
    let runs = 600;
    let (mut covered, mut naive) = (0, 0);
    for seed in 0..runs {
        let values = autoregressive(seed, 2000, 0.6);
        let e = Estimate::from_values(&values).unwrap();
        assert!(e.block > 1, "block {}", e.block);
        covered += usize::from(e.mean.abs() <= e.half_width);
        let (mean, error, freedom) = trimmed(&values, TRIM);
        naive += usize::from(mean.abs() <= t_quantile(0.975, freedom) * error);
    }
    let (covered, naive) = (covered as f64 / runs as f64, naive as f64 / runs as f64);
    assert!(naive < 0.75, "without blocks {naive}");
    assert!((0.90..=0.98).contains(&covered), "covered {covered}");
}

#[test]
fn an_effect_needs_the_interval_and_the_ranks_on_the_same_side() {
    let signs = |mean: f64, blocks: &[f64]| {
        let blocks = blocks.to_vec();
        let estimate = Estimate {
            mean,
            half_width: 0.5,
            blocks,
            ..Estimate::of_repeats(&[1.0, 2.0, 3.0]).unwrap()
        };
        [estimate.above(0.0), estimate.below(0.0)]
    };
    // Six values of one sign have a probability of 2/64, five of 2/32.
    let (six, less) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]);
    assert_eq!(signs(0.51, &six), [true, false]);
    assert_eq!(signs(-0.51, &less), [false, true]);
    for (mean, blocks) in [
        (0.5, &six[..]),
        (0.51, &six[..5]),
        (0.51, &less[..]),
        (-0.5, &less[..]),
        (-0.51, &six[..]),
    ] {
        assert_eq!(signs(mean, blocks), [false, false], "{mean} {blocks:?}");
    }
}

#[test]
fn correlated_neighbours_are_joined_as_long_as_twenty_blocks_remain() {
    let runs = |n: usize, length: usize| -> Vec<f64> {
        (0..n).map(|at| if (at / length).is_multiple_of(2) { 1.0 } else { -1.0 }).collect()
    };
    // Lag-1 correlations of a half and of nothing; 2.33 standard errors are 0.37.
    for (n, length, size) in [(40, 4, 2), (39, 4, 1), (40, 2, 1)] {
        assert_eq!(independent_blocks(&runs(n, length)).1, size, "{n} {length}");
    }
}
