// SPDX-License-Identifier: PostgreSQL

//! Tests the analysis from slices to figures on simulated servers with a known effect.

use crate::study::cost::contrast::{contrast, Slice};
use crate::study::cost::design::{Design, Side};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use stats::Estimate;

/// A realistically noisy server: the CPU time of a command follows a random walk with long bursts,
/// and every slice has its own heavy-tailed noise.
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
        Slice {
            cpu_ns: (1e9 * log.exp()) as u64,
            dispatches: 0,
            commands: 50_000,
            changes: 0,
            wall_ns: 1_000_000,
        }
    }
}

/// Contrasts of a simulated run: of the effect, and of the placebo.
fn run(seed: u64, rounds: usize, effect: f64) -> (Vec<f64>, Vec<f64>) {
    let mut noise = Noise::new(seed);
    Design::new(seed ^ 0x5eed)
        .take(rounds)
        .map(|round| {
            let slices = round.quads.map(|quad| {
                quad.sides().map(|side| noise.slice(if side == Side::B { effect } else { 0.0 }))
            });
            let result = contrast(round, &slices).unwrap();
            (result.real.cpu, result.placebo.cpu)
        })
        .unzip()
}

#[test]
fn the_interval_covers_the_true_effect_in_95_percent_of_runs_under_heavy_tails_and_drift() {
    let (runs, effect) = (1500, 0.004);
    let (mut real, mut nothing) = (0, 0);
    for seed in 0..runs {
        let (level, placebo) = run(seed, 150, effect);
        let (level, placebo) =
            (Estimate::from_values(&level).unwrap(), Estimate::from_values(&placebo).unwrap());
        real += usize::from((level.mean - effect).abs() <= level.half_width);
        nothing += usize::from(placebo.mean.abs() <= placebo.half_width);
    }
    for covered in [real as f64 / runs as f64, nothing as f64 / runs as f64] {
        // Four standard errors of a share of 0.95 in 1500 runs are 0.022.
        assert!((0.928..=0.972).contains(&covered), "covered {covered}");
    }
}

#[test]
fn at_most_5_percent_of_runs_without_an_effect_find_one() {
    let runs = 1500;
    let wrong = (0..runs)
        .filter(|seed| {
            let e = Estimate::from_values(&run(*seed + 1_000_000, 150, 0.0).0).unwrap();
            e.above(0.0) || e.below(0.0)
        })
        .count() as f64
        / runs as f64;
    assert!(wrong <= 0.065, "wrong {wrong}");
}

#[test]
fn the_placebo_is_as_precise_as_the_figure() {
    let (level, placebo) = run(9, 4000, 0.01);
    let (level, placebo) =
        (Estimate::from_values(&level).unwrap(), Estimate::from_values(&placebo).unwrap());
    let ratio = placebo.half_width / level.half_width;
    assert!((0.85..1.15).contains(&ratio), "{ratio}");
}

#[test]
fn an_effect_of_three_half_widths_is_found() {
    let estimate = Estimate::from_values(&run(5, 2000, 0.0).0).unwrap();
    let effect = 3.0 * estimate.half_width;
    let found = Estimate::from_values(&run(6, 2000, effect).0).unwrap();
    assert!(found.above(0.0), "{found:?}");
}
