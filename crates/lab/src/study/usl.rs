// SPDX-License-Identifier: PostgreSQL

//! Fits the Universal Scalability Law to measured throughputs: N. J. Gunther, Guerrilla Capacity
//! Planning (2007), chapter 4.
//!
//! ```text
//! X(n) = lambda n / (1 + sigma (n - 1) + kappa n (n - 1))
//! ```
//!
//! lambda is the throughput of one client alone, sigma the serial share of the work, kappa the cost of
//! each pair of clients. If kappa is positive, the throughput has a maximum, the knee, at
//! n = sqrt((1 - sigma) / kappa).
//!
//! The fit minimizes the squares of the logarithms' residuals, because the scatter is proportional to
//! the throughput; sigma stays between 0 and 1, kappa above 0. The intervals are profiles: a value
//! belongs to the 95 % interval if the best curve with that value does not fit much worse than the best
//! curve, by the F distribution with 1 and n - 3 degrees of freedom (D. M. Bates and D. G. Watts,
//! Nonlinear Regression Analysis (1988), section 6.1.2). Profiles can be asymmetric, unlike intervals
//! from a standard error: that of the knee may have no upper bound.

use serde::Serialize;

use stats::t_quantile;

/// Fewer points are too few to estimate the scatter.
const MIN_POINTS: usize = 5;
/// A knee beyond this multiple of the largest measured number of clients counts as none.
const MAX_KNEE_FACTOR: f64 = 100.0;

/// One measured throughput.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UslPoint {
    /// Number of clients.
    pub clients: f64,
    /// Throughput of all clients together, per second.
    pub throughput: f64,
}

/// A figure with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Within {
    /// The best estimate.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end; `None` if there is no upper bound.
    pub high: Option<f64>,
}

/// The fitted parameters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Fit {
    /// Throughput of one client alone, per second.
    pub lambda: f64,
    /// The serial share of the work, 0 to 1.
    pub sigma: Within,
    /// The cost of each pair of clients.
    pub kappa: Within,
    /// Number of clients with the highest throughput; `None` if the curve rises throughout the range.
    pub knee: Option<Within>,
    /// Lower bound of the knee; only set if `knee` is `None`.
    pub knee_beyond: Option<f64>,
    /// Standard deviation of the residuals, as a share of the throughput.
    pub scatter: f64,
}

impl Fit {
    /// Fits the curve to these points. `None` for fewer than five points, fewer than four different
    /// numbers of clients, or a point that is not positive.
    pub fn fit_points(points: &[UslPoint]) -> Option<Fit> {
        let mut different: Vec<f64> = points.iter().map(|point| point.clients).collect();
        different.sort_by(f64::total_cmp);
        different.dedup();
        let valid = |point: &UslPoint| {
            point.clients >= 1.0 && point.throughput > 0.0 && point.throughput.is_finite()
        };
        if points.len() < MIN_POINTS || different.len() < 4 || !points.iter().all(valid) {
            return None;
        }
        let max_clients = different.last().copied()?;
        let data = Data::from_points(points);
        let best = data.best(max_clients);
        let (sigma, kappa) = (best.at[0], best.at[1]);
        let freedom = (points.len() - 3) as f64;
        let t = t_quantile(0.975, freedom);
        // Points that lie exactly on a curve leave only rounding errors.
        let limit = best.cost * (1.0 + t * t / freedom) + 1e-20;

        let fits_sigma = |sigma: f64| data.with_sigma(sigma).cost <= limit;
        let fits_kappa = |kappa: f64| data.with_kappa(kappa).cost <= limit;
        let fits_knee = |knee: f64| data.with_knee(knee).cost <= limit;
        let smallest = 1e-3 / (max_clients * max_clients);
        let far = MAX_KNEE_FACTOR * max_clients;
        let knee = ((1.0 - sigma) / kappa).sqrt();
        // If kappa is near zero, nothing bounds the knee.
        let bounded = knee < far;
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
                high: upper_edge(fits_kappa, kappa.max(smallest), 1.0).or(Some(1.0)),
            },
            knee: bounded.then(|| Within {
                value: knee,
                low: edge(fits_knee, knee, 1.0),
                high: upper_edge(fits_knee, knee, far),
            }),
            knee_beyond: (!bounded).then(|| edge(fits_knee, far, 1.0)),
            scatter: (best.cost / freedom).sqrt(),
        })
    }

    /// Throughput of the fitted curve, per second.
    pub fn throughput(&self, clients: f64) -> f64 {
        self.lambda * clients / slowdown(clients, self.sigma.value, self.kappa.value)
    }
}

/// The factor by which each client is slower than alone.
fn slowdown(n: f64, sigma: f64, kappa: f64) -> f64 {
    1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0)
}

/// The last value between `inside`, which fits, and `bound` that still fits, by bisection.
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

/// Like [`edge`], for a bound orders of magnitude away. `None` if every value up to it fits.
fn upper_edge(fits: impl Fn(f64) -> bool, from: f64, bound: f64) -> Option<f64> {
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

/// Logarithms of n / X: of the slowdown, up to a constant.
struct Data {
    clients: Vec<f64>,
    logs: Vec<f64>,
}

/// The best parameters of a fit.
struct Minimum {
    at: Vec<f64>,
    /// Sum of squared residuals.
    cost: f64,
}

/// A family of slowdowns that is linear in its parameters: `base + sum of parameter * slope`.
struct Family {
    base: Vec<f64>,
    slopes: Vec<Vec<f64>>,
    /// Maximum of each parameter; the minimum is 0.
    max: Vec<f64>,
}

impl Data {
    fn from_points(points: &[UslPoint]) -> Self {
        Self {
            clients: points.iter().map(|point| point.clients).collect(),
            logs: points.iter().map(|point| (point.clients / point.throughput).ln()).collect(),
        }
    }

    fn each(&self, of: impl Fn(f64) -> f64) -> Vec<f64> {
        self.clients.iter().map(|&n| of(n)).collect()
    }

    fn best(&self, max_clients: f64) -> Minimum {
        let family = Family {
            base: self.each(|_| 1.0),
            slopes: vec![self.each(|n| n - 1.0), self.each(|n| n * (n - 1.0))],
            max: vec![1.0, 1.0],
        };
        // Several starting points, because the valley is long and curved.
        [0.0, 0.05, 0.5]
            .into_iter()
            .flat_map(|sigma| {
                [0.0, 1.0, 30.0].map(|pairs| vec![sigma, pairs / (max_clients * max_clients)])
            })
            .map(|start| family.minimize(&self.logs, start))
            .fold(Minimum { at: vec![0.0; 2], cost: f64::INFINITY }, |best, next| {
                if next.cost < best.cost {
                    next
                } else {
                    best
                }
            })
    }

    fn with_sigma(&self, sigma: f64) -> Minimum {
        let family = Family {
            base: self.each(|n| slowdown(n, sigma, 0.0)),
            slopes: vec![self.each(|n| n * (n - 1.0))],
            max: vec![1.0],
        };
        family.minimize(&self.logs, vec![0.0])
    }

    fn with_kappa(&self, kappa: f64) -> Minimum {
        let family = Family {
            base: self.each(|n| slowdown(n, 0.0, kappa)),
            slopes: vec![self.each(|n| n - 1.0)],
            max: vec![1.0],
        };
        family.minimize(&self.logs, vec![0.0])
    }

    /// With the maximum at `knee`: kappa is (1 - sigma) / knee^2.
    fn with_knee(&self, knee: f64) -> Minimum {
        let pairs = |n: f64| n * (n - 1.0) / (knee * knee);
        let family = Family {
            base: self.each(|n| 1.0 + pairs(n)),
            slopes: vec![self.each(|n| n - 1.0 - pairs(n))],
            max: vec![1.0],
        };
        family.minimize(&self.logs, vec![0.0])
    }

    fn lambda(&self, sigma: f64, kappa: f64) -> f64 {
        let logs = self.logs.iter().zip(&self.clients);
        let sum: f64 = logs.map(|(log, &n)| slowdown(n, sigma, kappa).ln() - log).sum();
        (sum / self.logs.len() as f64).exp()
    }
}

impl Family {
    /// The residuals and their slopes, centred: subtracting the mean also fits the constant.
    fn residuals(&self, logs: &[f64], at: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
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
        dot_self(&self.residuals(logs, at).0)
    }

    /// Minimizes the residuals by the Levenberg-Marquardt method. A parameter stays at a bound that it
    /// would cross.
    fn minimize(&self, logs: &[f64], start: Vec<f64>) -> Minimum {
        let mut at = start;
        let mut cost = self.cost(logs, &at);
        let mut damping = 1e-3;
        for _ in 0..1000 {
            let (rest, slopes) = self.residuals(logs, &at);
            let gradient: Vec<f64> = slopes.iter().map(|slope| dot(slope, &rest)).collect();
            let free: Vec<usize> = (0..at.len())
                .filter(|&i| {
                    let at_bound = (at[i] <= 0.0 && gradient[i] >= 0.0)
                        || (at[i] >= self.max[i] && gradient[i] <= 0.0);
                    !at_bound && dot_self(&slopes[i]) > 0.0
                })
                .collect();
            let mut next = at.clone();
            for (&i, step) in free.iter().zip(step(&slopes, &gradient, &free, damping)) {
                next[i] = (at[i] + step).clamp(0.0, self.max[i]);
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
        Minimum { at, cost }
    }
}

/// The next step of the free parameters, at most two.
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

    fn points(pairs: &[(f64, f64)]) -> Vec<UslPoint> {
        pairs.iter().map(|&(clients, throughput)| UslPoint { clients, throughput }).collect()
    }

    fn near(found: f64, expected: f64, share: f64) -> bool {
        (found - expected).abs() <= share * expected.abs()
    }

    /// A reproducible source of normally distributed numbers.
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

    /// Users and transactions per minute of the original study: see studies/users-sweep/README.md.
    const SWEEP: [(f64, f64); 11] = [
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

    /// Points of a simulated server with random scatter, three for each number of clients.
    fn synthetic(random: &mut Normal, sigma: f64, kappa: f64, scatter: f64) -> Vec<UslPoint> {
        [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]
            .into_iter()
            .flat_map(|n| [n; 3])
            .map(|n| UslPoint {
                clients: n,
                throughput: 500.0 * n / slowdown(n, sigma, kappa) * (scatter * random.next()).exp(),
            })
            .collect()
    }

    // Expected values: SciPy 1.17 (nonlinear least squares, brentq, scipy.stats.f) on the same data.
    #[test]
    fn the_fit_agrees_with_scipy_on_a_measured_sweep() {
        let fit = Fit::fit_points(&points(&SWEEP)).unwrap();
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
    fn a_curve_without_scatter_is_recovered() {
        let fit = Fit::fit_points(&synthetic(&mut Normal(1), 0.03, 2e-4, 0.0)).unwrap();
        assert!(near(fit.sigma.value, 0.03, 1e-6), "{fit:?}");
        assert!(near(fit.kappa.value, 2e-4, 1e-6), "{fit:?}");
        assert!(near(fit.lambda, 500.0, 1e-6), "{fit:?}");
        assert!(near(fit.knee.unwrap().value, (0.97f64 / 2e-4).sqrt(), 1e-6), "{fit:?}");
        assert!(near(fit.throughput(100.0), 50_000.0 / slowdown(100.0, 0.03, 2e-4), 1e-6));
    }

    #[test]
    fn a_rising_curve_has_only_a_lower_bound_of_its_knee() {
        let fit = Fit::fit_points(&synthetic(&mut Normal(2), 0.02, 0.0, 0.02)).unwrap();
        let beyond = fit.knee_beyond.or(fit.knee.map(|knee| knee.low)).unwrap();
        assert!(fit.knee.is_none_or(|knee| knee.high.is_none()), "{fit:?}");
        assert!(beyond > 128.0 && beyond.is_finite(), "{fit:?}");
    }

    #[test]
    fn intervals_cover_the_truth_95_percent_of_the_time() {
        let mut random = Normal(3);
        let (sigma, kappa) = (0.03_f64, 2e-4_f64);
        let knee = ((1.0 - sigma) / kappa).sqrt();
        let holds = |within: Within, truth: f64| {
            within.low <= truth && within.high.is_none_or(|high| truth <= high)
        };
        let mut covered = [0; 3];
        for _ in 0..200 {
            let fit = Fit::fit_points(&synthetic(&mut random, sigma, kappa, 0.05)).unwrap();
            covered[0] += usize::from(holds(fit.sigma, sigma));
            covered[1] += usize::from(holds(fit.kappa, kappa));
            covered[2] += usize::from(fit.knee.is_some_and(|found| holds(found, knee)));
        }
        assert!(covered.iter().all(|n| (180..=198).contains(n)), "{covered:?} of 200");
    }

    #[test]
    fn too_few_or_invalid_points_give_no_fit() {
        assert!(Fit::fit_points(&points(&SWEEP[..4])).is_none());
        let same = [(1.0, 5.0), (1.0, 5.0), (2.0, 9.0), (2.0, 9.0), (4.0, 16.0), (4.0, 16.0)];
        assert!(Fit::fit_points(&points(&same)).is_none());
        let mut none = SWEEP;
        none[3].1 = 0.0;
        assert!(Fit::fit_points(&points(&none)).is_none());
    }
}
