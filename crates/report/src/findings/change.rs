// SPDX-License-Identifier: PostgreSQL
//! Whether a figure stepped from one level to another and when, judged by its own noise.
//!
//! The points are merged into blocks, which are lengthened until the residuals of adjacent blocks no longer
//! resemble each other. Then the step that best divides the blocks is sought. Its t value has to exceed Student's
//! quantile corrected for the number of positions tried (Bonferroni), so that of a thousand reports on a steady
//! server ten report a step that does not exist.

use stats::t_quantile;

/// Maximum and minimum number of blocks.
const MOST: usize = 120;
const MIN_LENGTH: usize = 8;
/// Minimum length of a block, seconds.
const SHORTEST: f64 = 10.0;
/// Maximum resemblance of adjacent blocks: lag-one autocorrelation.
const LIKENESS: f64 = 0.2;
/// Probability of reporting a step that does not exist, over all positions tried.
const ALPHA: f64 = 0.01;
/// Minimum number of blocks on either side of a step.
const EDGE: usize = 2;

/// A figure at a time.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// When it starts, seconds since 1970.
    pub time: f64,
    /// How much time was measured, seconds.
    pub seconds: f64,
    /// Mean of the figure over that time.
    pub value: f64,
}

/// A step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// When the second level starts, seconds since 1970.
    pub at: f64,
    /// The mean before it.
    pub before: f64,
    /// The mean after it.
    pub after: f64,
    /// Half-width of the 95 % confidence interval of their difference.
    pub half_width: f64,
}

/// The step in `samples`, if there is one; `series` is the number of series that are tested.
pub fn step(samples: &[Sample], series: usize) -> Option<Step> {
    let all: f64 = samples.iter().map(|s| s.seconds).sum();
    let mut number = ((all / SHORTEST) as usize).min(MOST).min(samples.len());
    while number >= MIN_LENGTH {
        let blocks = blocks(samples, all / number as f64);
        let best = best(&blocks, series)?;
        if best.likeness <= LIKENESS {
            return best.holds.then_some(best.step);
        }
        number /= 2;
    }
    None
}

/// Merges neighbours until they are `length` long; the remainder joins the last block.
fn blocks(samples: &[Sample], length: f64) -> Vec<Sample> {
    let mut blocks: Vec<Sample> = Vec::new();
    let mut open: Option<(f64, f64, f64)> = None;
    for sample in samples {
        let (start, seconds, sum) = open.unwrap_or((sample.time, 0.0, 0.0));
        let (seconds, sum) = (seconds + sample.seconds, sum + sample.value * sample.seconds);
        open = Some((start, seconds, sum));
        if seconds >= length * 0.999 {
            blocks.push(Sample { time: start, seconds, value: sum / seconds });
            open = None;
        }
    }
    blocks
}

struct Best {
    step: Step,
    likeness: f64,
    holds: bool,
}

fn best(blocks: &[Sample], series: usize) -> Option<Best> {
    let n = blocks.len();
    if n < MIN_LENGTH {
        return None;
    }
    let values: Vec<f64> = blocks.iter().map(|b| b.value).collect();
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let middle = mean(&values);
    let mut sums = Vec::with_capacity(n);
    let mut sum = 0.0;
    for value in &values {
        sum += value - middle;
        sums.push(sum);
    }
    // The sums on the two sides are equal and opposite, so the residual squares are smallest where the step
    // explains most of them.
    let cut = (EDGE..=n - EDGE).max_by(|&a, &b| {
        let explained = |at: usize| {
            let sum = sums[at - 1];
            sum * sum * (1.0 / at as f64 + 1.0 / (n - at) as f64)
        };
        explained(a).total_cmp(&explained(b))
    })?;
    let (first, second) = values.split_at(cut);
    let (before, after) = (mean(first), mean(second));
    let rest: Vec<f64> =
        first.iter().map(|v| v - before).chain(second.iter().map(|v| v - after)).collect();
    let squares: f64 = rest.iter().map(|r| r * r).sum();
    let freedom = (n - 2) as f64;
    let neighbours: f64 = rest.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let likeness = if squares > 0.0 { neighbours / squares } else { 0.0 };
    // The remaining resemblance widens the error; it appears smaller than it is because two means have been
    // subtracted.
    let left = (likeness + 4.0 * (1.0 + 3.0 * likeness) / n as f64).clamp(0.0, 0.9);
    let variance = squares / freedom * (1.0 + left) / (1.0 - left);
    let error = (variance * (1.0 / first.len() as f64 + 1.0 / second.len() as f64)).sqrt();
    let looks = ((n - 2 * EDGE + 1) * series.max(1)) as f64;
    let step = Step {
        at: blocks[cut].time,
        before,
        after,
        half_width: error * t_quantile(0.975, freedom),
    };
    let difference = (after - before).abs();
    Some(Best {
        step,
        likeness,
        holds: difference > error * t_quantile(1.0 - ALPHA / (2.0 * looks), freedom)
            && difference > 0.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    /// Noise of this strength, in which each value contains a part of the previous one.
    fn noise(seed: u64, n: usize, carry: f64, level: impl Fn(usize) -> f64) -> Vec<Sample> {
        let mut random = StdRng::seed_from_u64(seed);
        let mut last = 0.0;
        (0..n)
            .map(|at| {
                let normal: f64 = (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
                last = carry * last + normal * (1.0 - carry * carry).sqrt();
                Sample { time: at as f64, seconds: 1.0, value: level(at) + last }
            })
            .collect()
    }

    #[test]
    fn a_step_is_found_where_it_is_with_its_size() {
        let samples = noise(7, 600, 0.3, |at| if at < 420 { 5.0 } else { 8.0 });
        let step = step(&samples, 10).unwrap();
        assert!((step.at - 420.0).abs() <= 10.0, "{step:?}");
        assert!((step.after - step.before - 3.0).abs() < 2.0 * step.half_width, "{step:?}");
        assert!(step.half_width < 0.5, "{step:?}");
    }

    #[test]
    fn steady_noise_has_no_step() {
        let found = |carry: f64| {
            (0..100).filter(|&seed| step(&noise(seed, 900, carry, |_| 5.0), 1).is_some()).count()
        };
        // At most one in a hundred is promised; series that resemble themselves over a minute are the harder
        // part.
        for (carry, most) in [(0.0, 3), (0.8, 3), (0.95, 6)] {
            let found = found(carry);
            assert!(found <= most, "{found} of 100 with {carry}");
        }
    }

    #[test]
    fn too_little_to_go_by_is_no_step() {
        assert_eq!(step(&[], 1), None);
        assert_eq!(step(&noise(1, 50, 0.0, |at| at as f64), 1), None, "five blocks");
        let flat: Vec<Sample> =
            (0..600).map(|at| Sample { time: f64::from(at), seconds: 1.0, value: 2.0 }).collect();
        assert_eq!(step(&flat, 1), None);
    }
}
