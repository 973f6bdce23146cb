// SPDX-License-Identifier: PostgreSQL

//! The Universal Scalability Law through measured throughputs: N. J. Gunther, Guerrilla Capacity
//! Planning (2007), chapter 4.
//!
//!     X(n) = lambda n / (1 + sigma (n - 1) + kappa n (n - 1))
//!
//! lambda is what one client would do alone, sigma the share that all do one after the other, kappa
//! what each pair of them costs. Where kappa is positive the throughput has a greatest value, at
//! n = sqrt((1 - sigma) / kappa): the knee.
//!
//! Fitted by least squares of the logarithms, since what scatters is a share of the throughput; sigma
//! is kept within 0 and 1, kappa above 0. The intervals are profiles: a value belongs to the 95 %
//! interval when the best curve that has it fits not much worse than the best of all, by the F
//! distribution with 1 and n - 3 degrees of freedom (D. M. Bates and D. G. Watts, Nonlinear Regression
//! Analysis (1988), section 6.1.2). A profile follows the curve where a standard error would not, as at
//! the knee, whose interval may have no upper end.

use serde::Serialize;

use stats::t_quantile;

/// Fewer points leave too little to tell what scatters.
const FEWEST: usize = 5;
/// A knee beyond so many times the most clients that were tried is none.
const FAR: f64 = 100.0;

/// One measured throughput.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// How many clients.
    pub clients: f64,
    /// What they did together in a second.
    pub throughput: f64,
}

/// A figure with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Within {
    /// The best.
    pub value: f64,
    /// Its least.
    pub low: f64,
    /// Its greatest; none where nothing bounds it.
    pub high: Option<f64>,
}

/// The law's figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Fit {
    /// Throughput of one client alone.
    pub lambda: f64,
    /// The share that all do one after the other, 0 to 1.
    pub sigma: Within,
    /// What each pair costs.
    pub kappa: Within,
    /// Clients at which the throughput is greatest; none where the curve rises as far as it was followed.
    pub knee: Option<Within>,
    /// The least that the knee may be, where it is none.
    pub knee_beyond: Option<f64>,
    /// Standard deviation of what is left, as a share of the throughput.
    pub scatter: f64,
}

impl Fit {
    /// Through these points; none where they are fewer than five, of fewer than four numbers of
    /// clients, or not all positive.
    pub fn of(points: &[Point]) -> Option<Fit> {
        let mut different: Vec<f64> = points.iter().map(|point| point.clients).collect();
        different.sort_by(f64::total_cmp);
        different.dedup();
        let sound = |point: &Point| {
            point.clients >= 1.0 && point.throughput > 0.0 && point.throughput.is_finite()
        };
        if points.len() < FEWEST || different.len() < 4 || !points.iter().all(sound) {
            return None;
        }
        let most = different.last().copied()?;
        let data = Data::of(points);
        let best = data.best(most);
        let (sigma, kappa) = (best.at[0], best.at[1]);
        let freedom = (points.len() - 3) as f64;
        let t = t_quantile(0.975, freedom);
        // Where the points lie on a curve exactly, rounding alone is left.
        let limit = best.cost * (1.0 + t * t / freedom) + 1e-20;

        let fits_sigma = |sigma: f64| data.with_sigma(sigma).cost <= limit;
        let fits_kappa = |kappa: f64| data.with_kappa(kappa).cost <= limit;
        let fits_knee = |knee: f64| data.with_knee(knee).cost <= limit;
        let smallest = 1e-3 / (most * most);
        let far = FAR * most;
        let knee = ((1.0 - sigma) / kappa).sqrt();
        // Where kappa may as well be zero, nothing bounds the knee.
        let seen = knee < far;
        Some(Fit {
            lambda: data.lambda(sigma, kappa),
            sigma: Within {
                value: sigma,
                low: edge(fits_sigma, sigma, 0.0),
                high: Some(edge(fits_sigma, sigma, 1.0)),
            },
            kappa: Within {
                value: kappa,
                low: edge(fits_kappa, kappa, 0.0),
                high: outwards(fits_kappa, kappa.max(smallest), 1.0).or(Some(1.0)),
            },
            knee: seen.then(|| Within {
                value: knee,
                low: edge(fits_knee, knee, 1.0),
                high: outwards(fits_knee, knee, far),
            }),
            knee_beyond: (!seen).then(|| edge(fits_knee, far, 1.0)),
            scatter: (best.cost / freedom).sqrt(),
        })
    }

    /// The curve.
    pub fn throughput(&self, clients: f64) -> f64 {
        self.lambda * clients / slowdown(clients, self.sigma.value, self.kappa.value)
    }
}

/// How much longer each takes than alone.
fn slowdown(n: f64, sigma: f64, kappa: f64) -> f64 {
    1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0)
}

/// Between a value that fits and a bound: where it ceases to; the bound, if that fits too.
fn edge(fits: impl Fn(f64) -> bool, inside: f64, bound: f64) -> f64 {
    if fits(bound) {
        return bound;
    }
    let (mut inside, mut outside) = (inside, bound);
    for _ in 0..45 {
        let middle = 0.5 * (inside + outside);
        if fits(middle) {
            inside = middle;
        } else {
            outside = middle;
        }
    }
    inside
}

/// The same where the bound lies orders of magnitude away; none if all fit up to it.
fn outwards(fits: impl Fn(f64) -> bool, from: f64, bound: f64) -> Option<f64> {
    let mut at = from;
    while at < bound {
        let next = (2.0 * at).min(bound);
        if !fits(next) {
            return Some(edge(fits, at, next));
        }
        at = next;
    }
    None
}

/// Logarithms of n / X, hence of the slowdown less a constant.
struct Data {
    clients: Vec<f64>,
    logs: Vec<f64>,
}

/// Where a misfit is least.
struct Least {
    at: Vec<f64>,
    /// Sum of the squares.
    cost: f64,
}

/// A family of slowdowns that is linear in its parameters: `base + sum of parameter * slope`.
struct Family {
    base: Vec<f64>,
    slopes: Vec<Vec<f64>>,
    /// Greatest value of each parameter; the least is 0.
    most: Vec<f64>,
}

impl Data {
    fn of(points: &[Point]) -> Self {
        Self {
            clients: points.iter().map(|point| point.clients).collect(),
            logs: points.iter().map(|point| (point.clients / point.throughput).ln()).collect(),
        }
    }

    fn each(&self, of: impl Fn(f64) -> f64) -> Vec<f64> {
        self.clients.iter().map(|&n| of(n)).collect()
    }

    fn best(&self, most: f64) -> Least {
        let family = Family {
            base: self.each(|_| 1.0),
            slopes: vec![self.each(|n| n - 1.0), self.each(|n| n * (n - 1.0))],
            most: vec![1.0, 1.0],
        };
        // From several places: the valley is long and bent.
        [0.0, 0.05, 0.5]
            .into_iter()
            .flat_map(|sigma| [0.0, 1.0, 30.0].map(|pairs| vec![sigma, pairs / (most * most)]))
            .map(|start| family.least(&self.logs, start))
            .fold(Least { at: vec![0.0; 2], cost: f64::INFINITY }, |best, next| {
                if next.cost < best.cost {
                    next
                } else {
                    best
                }
            })
    }

    fn with_sigma(&self, sigma: f64) -> Least {
        let family = Family {
            base: self.each(|n| slowdown(n, sigma, 0.0)),
            slopes: vec![self.each(|n| n * (n - 1.0))],
            most: vec![1.0],
        };
        family.least(&self.logs, vec![0.0])
    }

    fn with_kappa(&self, kappa: f64) -> Least {
        let family = Family {
            base: self.each(|n| slowdown(n, 0.0, kappa)),
            slopes: vec![self.each(|n| n - 1.0)],
            most: vec![1.0],
        };
        family.least(&self.logs, vec![0.0])
    }

    /// The greatest throughput there: kappa is (1 - sigma) / knee^2.
    fn with_knee(&self, knee: f64) -> Least {
        let pairs = |n: f64| n * (n - 1.0) / (knee * knee);
        let family = Family {
            base: self.each(|n| 1.0 + pairs(n)),
            slopes: vec![self.each(|n| n - 1.0 - pairs(n))],
            most: vec![1.0],
        };
        family.least(&self.logs, vec![0.0])
    }

    fn lambda(&self, sigma: f64, kappa: f64) -> f64 {
        let logs = self.logs.iter().zip(&self.clients);
        let sum: f64 = logs.map(|(log, &n)| slowdown(n, sigma, kappa).ln() - log).sum();
        (sum / self.logs.len() as f64).exp()
    }
}

impl Family {
    /// What is left of the logs, less its mean: the constant is fitted along. And its slopes.
    fn rest(&self, logs: &[f64], at: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
        let mut slow = self.base.clone();
        for (slope, value) in self.slopes.iter().zip(at) {
            slow.iter_mut().zip(slope).for_each(|(slow, slope)| *slow += slope * value);
        }
        let rest = slow.iter().zip(logs).map(|(slow, log)| slow.ln() - log).collect();
        let slopes = self.slopes.iter().map(|slope| {
            centred(slope.iter().zip(&slow).map(|(slope, slow)| slope / slow).collect())
        });
        (centred(rest), slopes.collect())
    }

    fn cost(&self, logs: &[f64], at: &[f64]) -> f64 {
        dot_self(&self.rest(logs, at).0)
    }

    /// The least misfit by the method of Levenberg and Marquardt; a parameter at a bound that it
    /// would cross stays there.
    fn least(&self, logs: &[f64], start: Vec<f64>) -> Least {
        let mut at = start;
        let mut cost = self.cost(logs, &at);
        let mut damping = 1e-3;
        for _ in 0..1000 {
            let (rest, slopes) = self.rest(logs, &at);
            let gradient: Vec<f64> = slopes.iter().map(|slope| dot(slope, &rest)).collect();
            let free: Vec<usize> = (0..at.len())
                .filter(|&i| {
                    let held = (at[i] <= 0.0 && gradient[i] >= 0.0)
                        || (at[i] >= self.most[i] && gradient[i] <= 0.0);
                    !held && dot_self(&slopes[i]) > 0.0
                })
                .collect();
            let mut next = at.clone();
            for (&i, step) in free.iter().zip(step(&slopes, &gradient, &free, damping)) {
                next[i] = (at[i] + step).clamp(0.0, self.most[i]);
            }
            let moved = next.iter().zip(&at).any(|(next, at)| (next - at).abs() > 1e-12 * at.abs());
            if !moved {
                break;
            }
            let lower = self.cost(logs, &next);
            if lower < cost {
                let gained = cost - lower;
                (at, cost) = (next, lower);
                damping *= 0.2;
                if gained <= 1e-14 * cost {
                    break;
                }
            } else {
                damping *= 5.0;
                if damping > 1e12 {
                    break;
                }
            }
        }
        Least { at, cost }
    }
}

/// The step of the free parameters, of which there are at most two.
fn step(slopes: &[Vec<f64>], gradient: &[f64], free: &[usize], damping: f64) -> Vec<f64> {
    let square = |i: usize| dot_self(&slopes[i]) * (1.0 + damping);
    match *free {
        [i] => vec![-gradient[i] / square(i)],
        [i, j] => {
            let both = dot(&slopes[i], &slopes[j]);
            let determinant = square(i) * square(j) - both * both;
            vec![
                (both * gradient[j] - square(j) * gradient[i]) / determinant,
                (both * gradient[i] - square(i) * gradient[j]) / determinant,
            ]
        }
        _ => Vec::new(),
    }
}

fn centred(mut values: Vec<f64>) -> Vec<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter_mut().for_each(|value| *value -= mean);
    values
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn dot_self(values: &[f64]) -> f64 {
    dot(values, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(pairs: &[(f64, f64)]) -> Vec<Point> {
        pairs.iter().map(|&(clients, throughput)| Point { clients, throughput }).collect()
    }

    fn near(found: f64, expected: f64, share: f64) -> bool {
        (found - expected).abs() <= share * expected.abs()
    }

    /// Normal numbers that are the same each time.
    struct Normal(u64);

    impl Normal {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
        }

        fn next(&mut self) -> f64 {
            let (u, v) = (self.uniform(), self.uniform());
            (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
        }
    }

    /// Users and transactions a minute of the seed that asked for this (studies/users-sweep).
    const SEED: [(f64, f64); 11] = [
        (384.0, 41_771.0),
        (448.0, 47_931.0),
        (512.0, 54_144.0),
        (576.0, 57_251.0),
        (640.0, 57_943.0),
        (704.0, 57_042.0),
        (768.0, 56_190.0),
        (832.0, 55_407.0),
        (896.0, 55_103.0),
        (960.0, 53_655.0),
        (1024.0, 53_323.0),
    ];

    /// A made-up server, each point three times, and what scatters.
    fn made(dice: &mut Normal, sigma: f64, kappa: f64, scatter: f64) -> Vec<Point> {
        [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]
            .into_iter()
            .flat_map(|n| [n; 3])
            .map(|n| Point {
                clients: n,
                throughput: 500.0 * n / slowdown(n, sigma, kappa) * (scatter * dice.next()).exp(),
            })
            .collect()
    }

    // least_squares and brentq of SciPy 1.17 (and F from scipy.stats) on the same sums of squares.
    #[test]
    fn it_agrees_with_scipy_on_the_seeds_figures() {
        let fit = Fit::of(&points(&SEED)).unwrap();
        assert!(fit.sigma.value < 1e-12 && fit.sigma.low == 0.0, "{fit:?}");
        assert!(near(fit.sigma.high.unwrap(), 0.001_116_212_2, 1e-5), "{fit:?}");
        assert!(near(fit.kappa.value, 1.682_942_10e-6, 1e-6), "{fit:?}");
        assert!(near(fit.kappa.low, 1.303_351_94e-6, 1e-5), "{fit:?}");
        assert!(near(fit.kappa.high.unwrap(), 2.065_217_49e-6, 1e-5), "{fit:?}");
        let knee = fit.knee.unwrap();
        assert!(near(knee.value, 770.842_077, 1e-6), "{fit:?}");
        assert!(near(knee.low, 695.852_341, 1e-5), "{fit:?}");
        assert!(near(knee.high.unwrap(), 875.645_208, 1e-5), "{fit:?}");
        assert!(near(fit.lambda, 146.072_802, 1e-6), "{fit:?}");
        assert!(near(fit.scatter, 0.042_521_163, 1e-5), "{fit:?}");
    }

    #[test]
    fn a_curve_without_scatter_is_found_again() {
        let fit = Fit::of(&made(&mut Normal(1), 0.03, 2e-4, 0.0)).unwrap();
        assert!(near(fit.sigma.value, 0.03, 1e-6), "{fit:?}");
        assert!(near(fit.kappa.value, 2e-4, 1e-6), "{fit:?}");
        assert!(near(fit.lambda, 500.0, 1e-6), "{fit:?}");
        assert!(near(fit.knee.unwrap().value, (0.97f64 / 2e-4).sqrt(), 1e-6), "{fit:?}");
        assert!(near(fit.throughput(100.0), 50_000.0 / slowdown(100.0, 0.03, 2e-4), 1e-6));
    }

    #[test]
    fn a_curve_that_rises_has_no_knee_but_a_least_one() {
        let fit = Fit::of(&made(&mut Normal(2), 0.02, 0.0, 0.02)).unwrap();
        let beyond = fit.knee_beyond.or(fit.knee.map(|knee| knee.low)).unwrap();
        assert!(fit.knee.is_none_or(|knee| knee.high.is_none()), "{fit:?}");
        assert!(beyond > 128.0 && beyond.is_finite(), "{fit:?}");
    }

    #[test]
    fn intervals_cover_the_truth_as_often_as_they_say() {
        let mut dice = Normal(3);
        let (sigma, kappa) = (0.03_f64, 2e-4_f64);
        let knee = ((1.0 - sigma) / kappa).sqrt();
        let holds = |within: Within, truth: f64| {
            within.low <= truth && within.high.is_none_or(|high| truth <= high)
        };
        let mut covered = [0; 3];
        for _ in 0..200 {
            let fit = Fit::of(&made(&mut dice, sigma, kappa, 0.05)).unwrap();
            covered[0] += usize::from(holds(fit.sigma, sigma));
            covered[1] += usize::from(holds(fit.kappa, kappa));
            covered[2] += usize::from(fit.knee.is_some_and(|found| holds(found, knee)));
        }
        assert!(covered.iter().all(|n| (180..=198).contains(n)), "{covered:?} of 200");
    }

    #[test]
    fn what_tells_too_little_is_refused() {
        assert!(Fit::of(&points(&SEED[..4])).is_none());
        let same = [(1.0, 5.0), (1.0, 5.0), (2.0, 9.0), (2.0, 9.0), (4.0, 16.0), (4.0, 16.0)];
        assert!(Fit::of(&points(&same)).is_none());
        let mut none = SEED;
        none[3].1 = 0.0;
        assert!(Fit::of(&points(&none)).is_none());
    }
}
