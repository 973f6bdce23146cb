// SPDX-License-Identifier: PostgreSQL

use super::super::contrast::{contrast, Slice};
use super::super::design::{Design, Side};
use super::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A heavy-tailed sequence that any language makes the same: the ratio of two draws of
/// Lehmer's generator (16807, 2^31 - 1).
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
fn trimmed_mean_and_half_width_are_those_of_scipy() {
    for (n, mean, error, half_width) in [
        (40, 0.326_778_291_537_074_16, 0.268_842_462_787_417_14, 0.548_307_817_817_263_2),
        (200, 0.082_649_731_564_218_1, 0.050_556_514_061_591_71, 0.099_848_923_802_369_23),
        (1000, 0.127_103_240_093_842_38, 0.024_892_912_278_525_15, 0.048_863_230_027_532_76),
    ] {
        let ours = Estimate::of(&sequence(n)).unwrap();
        assert_eq!((ours.values, ours.block), (n, 1));
        close(ours.mean, mean);
        close(ours.standard_error, error);
        close(ours.half_width, half_width);
        close(ours.half_width_at(0.95), half_width);
    }
}

// scipy.stats.wilcoxon(x - centre, mode="approx", correction=False).pvalue, SciPy 1.17.1
#[test]
fn signed_ranks_are_those_of_scipy() {
    close(signed_rank(&sequence(40), 0.0).two_sided, 0.069_589_226_275_474_05);
    close(signed_rank(&sequence(200), 0.0).two_sided, 0.092_213_589_583_752_27);
    close(signed_rank(&sequence(200), 0.3).two_sided, 5.808_442_597_105_786e-5);
    close(signed_rank(&sequence(1000), 0.3).two_sided, 2.993_898_657_779_915e-12);
}

// scipy.stats.wilcoxon(numpy.round(2 * x) / 2, mode="approx", correction=False).pvalue
#[test]
fn signed_ranks_with_ties_and_zeros_are_those_of_scipy() {
    // numpy.round rounds halves to even; none of these values is one.
    let coarse: Vec<f64> = sequence(200).iter().map(|x| (2.0 * x).round() / 2.0).collect();
    assert!(coarse.iter().filter(|x| **x == 0.0).count() > 20);
    close(signed_rank(&coarse, 0.0).two_sided, 0.073_204_794_324_015_07);
}

#[test]
fn too_few_values_give_no_estimate() {
    assert!(Estimate::of(&sequence(FEWEST - 1)).is_none());
    assert!(Estimate::of(&sequence(FEWEST)).is_some());
}

#[test]
fn values_that_are_all_the_same_have_no_width_and_no_rank() {
    let same = Estimate::of(&[0.0; 50]).unwrap();
    assert_eq!((same.mean, same.half_width, same.rank_p(0.0)), (0.0, 0.0, 1.0));
    assert!(!same.above(0.0) && !same.below(0.0));
}

/// A server as noisy as one finds them: the CPU of a command follows a random walk, has
/// long bursts, and every slice has heavy-tailed noise of its own.
struct Noise {
    rng: StdRng,
    walk: f64,
    burst: f64,
}

impl Noise {
    fn new(seed: u64) -> Self {
        Self { rng: StdRng::seed_from_u64(seed), walk: 0.0, burst: 0.0 }
    }

    fn symmetric(&mut self) -> f64 {
        self.rng.random::<f64>() - 0.5
    }

    /// Student's t with two degrees of freedom: its variance is infinite.
    fn heavy(&mut self) -> f64 {
        let u = 2.0 * self.symmetric();
        u * (2.0 / (1.0 - u * u)).sqrt()
    }

    fn slice(&mut self, effect: f64) -> Slice {
        self.walk += 0.01 * self.symmetric();
        if self.rng.random::<f64>() < 0.02 {
            self.burst = 0.4 * self.rng.random::<f64>();
        }
        self.burst *= 0.9;
        let log = self.walk + self.burst + 0.02 * self.heavy().clamp(-40.0, 40.0) + effect;
        Slice { cpu_ns: (1e9 * log.exp()) as u64, commands: 50_000, changes: 0, wall_ns: 1_000_000 }
    }
}

/// What a run of so many rounds says on that server: of the level, and of nothing.
fn run(seed: u64, rounds: usize, effect: f64) -> (Vec<f64>, Vec<f64>) {
    let mut noise = Noise::new(seed);
    Design::new(seed ^ 0x5eed)
        .take(rounds)
        .map(|round| {
            let slices = round.quads.map(|quad| {
                quad.sides().map(|side| noise.slice(if side == Side::B { effect } else { 0.0 }))
            });
            let said = contrast(round, &slices).unwrap();
            (said.real.cpu, said.placebo.cpu)
        })
        .unzip()
}

#[test]
fn the_interval_covers_the_truth_95_times_in_100_under_heavy_tails_and_drift() {
    let (runs, effect) = (1500, 0.004);
    let (mut real, mut nothing) = (0, 0);
    for seed in 0..runs {
        let (level, placebo) = run(seed, 150, effect);
        let (level, placebo) = (Estimate::of(&level).unwrap(), Estimate::of(&placebo).unwrap());
        real += usize::from((level.mean - effect).abs() <= level.half_width);
        nothing += usize::from(placebo.mean.abs() <= placebo.half_width);
    }
    for covered in [real as f64 / runs as f64, nothing as f64 / runs as f64] {
        // Four standard errors of a share of 0.95 in 1500 runs are 0.022.
        assert!((0.928..=0.972).contains(&covered), "covered {covered}");
    }
}

#[test]
fn no_effect_is_called_one_at_most_5_times_in_100() {
    let runs = 1500;
    let wrong = (0..runs)
        .filter(|seed| {
            let e = Estimate::of(&run(*seed + 1_000_000, 150, 0.0).0).unwrap();
            e.above(0.0) || e.below(0.0)
        })
        .count() as f64
        / runs as f64;
    assert!(wrong <= 0.065, "wrong {wrong}");
}

#[test]
fn the_placebo_is_known_as_well_as_the_figure_that_it_stands_beside() {
    let (level, placebo) = run(9, 4000, 0.01);
    let (level, placebo) = (Estimate::of(&level).unwrap(), Estimate::of(&placebo).unwrap());
    let ratio = placebo.half_width / level.half_width;
    assert!((0.85..1.15).contains(&ratio), "{ratio}");
}

#[test]
fn an_effect_of_three_half_widths_is_found() {
    let estimate = Estimate::of(&run(5, 2000, 0.0).0).unwrap();
    let effect = 3.0 * estimate.half_width;
    let found = Estimate::of(&run(6, 2000, effect).0).unwrap();
    assert!(found.above(0.0), "{found:?}");
}

/// An autoregressive series: each value keeps some of the one before.
fn autoregressive(seed: u64, n: usize, keep: f64) -> Vec<f64> {
    let mut noise = Noise::new(seed);
    let mut value = 0.0;
    (0..n)
        .map(|_| {
            value = keep * value + noise.symmetric();
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
        let e = Estimate::of(&values).unwrap();
        assert!(e.block > 1, "block {}", e.block);
        covered += usize::from(e.mean.abs() <= e.half_width);
        let (mean, error, freedom) = trimmed(&values, TRIM);
        naive += usize::from(mean.abs() <= t_quantile(0.975, freedom) * error);
    }
    let (covered, naive) = (covered as f64 / runs as f64, naive as f64 / runs as f64);
    assert!(naive < 0.75, "without blocks {naive}");
    assert!((0.90..=0.98).contains(&covered), "covered {covered}");
}
