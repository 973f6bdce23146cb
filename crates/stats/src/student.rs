// SPDX-License-Identifier: PostgreSQL

//! Quantiles of Student's t and tail areas of the normal distribution.
//!
//! The t distribution goes through the regularised incomplete beta function, evaluated by
//! its continued fraction (Abramowitz & Stegun 26.5.8) with Lentz's recurrence; the quantile
//! is found by bisection, which is slow and cannot go astray.

use std::f64::consts::PI;

/// The value that a t variable with `df` degrees of freedom stays below with probability
/// `p`. `p` must be within (0.5, 1) and `df` at least 1.
pub fn t_quantile(p: f64, df: f64) -> f64 {
    let (mut low, mut high) = (0.0, 2.0);
    while t_cdf(high, df) < p && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if t_cdf(middle, df) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// Probability that a t variable is further from zero than `t`, on either side.
pub fn t_two_sided(t: f64, df: f64) -> f64 {
    incomplete_beta(0.5 * df, 0.5, df / (df + t * t))
}

/// Probability that a t variable is at most `t` (`t >= 0`).
fn t_cdf(t: f64, df: f64) -> f64 {
    1.0 - 0.5 * t_two_sided(t, df)
}

/// Probability that a normal variable is further from zero than `z`, on either side.
pub fn normal_two_sided(z: f64) -> f64 {
    // The complementary error function as an upper incomplete gamma: erfc(x) = Q(1/2, x^2).
    let x = 0.5 * z * z;
    if x < 1.5 {
        1.0 - lower_gamma_series(x)
    } else {
        upper_gamma_fraction(x)
    }
}

/// P(1/2, x) by its power series; converges fast for small x.
fn lower_gamma_series(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let (mut term, mut sum, mut a) = (2.0, 2.0, 0.5);
    while term > sum * 1e-17 {
        a += 1.0;
        term *= x / a;
        sum += term;
    }
    sum * (-x).exp() * (x / PI).sqrt()
}

/// Q(1/2, x) by its continued fraction; converges fast for large x.
fn upper_gamma_fraction(x: f64) -> f64 {
    let mut b = x + 0.5;
    let mut c = 1e300;
    let mut d = 1.0 / b;
    let mut h = d;
    for i in 1..500 {
        let n = f64::from(i);
        let an = -n * (n - 0.5);
        b += 2.0;
        d = 1.0 / guard(an * d + b);
        c = guard(b + an / c);
        let step = c * d;
        h *= step;
        if (step - 1.0).abs() < 1e-16 {
            break;
        }
    }
    h * (-x).exp() * (x / PI).sqrt()
}

/// Keeps Lentz's recurrence from dividing by zero.
fn guard(value: f64) -> f64 {
    if value.abs() < 1e-300 {
        1e-300
    } else {
        value
    }
}

/// I_x(a, b), the regularised incomplete beta function.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    // The fraction converges fast on the near side of the mean; use the symmetry otherwise.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let mut c = 1.0;
    let mut d = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for i in 1..10_000 {
        let m = f64::from(i);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / guard(1.0 + even * d);
        c = guard(1.0 + even / c);
        h *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / guard(1.0 + odd * d);
        c = guard(1.0 + odd / c);
        let step = d * c;
        h *= step;
        if (step - 1.0).abs() < 1e-16 {
            break;
        }
    }
    h
}

/// ln of the gamma function for x > 0: Stirling's series after raising x above 10.
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < 10.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    let series =
        (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r * (1.0 / 1680.0 - r / 1188.0)))) / x;
    shift + (x - 0.5) * x.ln() - x + 0.5 * (2.0 * PI).ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(ours: f64, reference: f64) {
        let error = (ours - reference).abs() / reference.abs().max(1e-300);
        assert!(error < 1e-9, "{ours} is not {reference} ({error:e})");
    }

    // scipy.stats.t.ppf(p, df), SciPy 1.17.1
    #[test]
    fn t_quantiles_are_those_of_scipy() {
        close(t_quantile(0.975, 1.0), 12.706_204_736_174_694);
        close(t_quantile(0.975, 7.0), 2.364_624_251_592_784);
        close(t_quantile(0.995, 23.0), 2.807_335_683_77);
        close(t_quantile(0.975, 583.0), 1.964_041_377_496_348_3);
        close(t_quantile(0.995, 41_234.0), 2.575_948_544_026_781);
    }

    // 2 * scipy.stats.t.sf(t, df), SciPy 1.17.1
    #[test]
    fn t_tails_are_those_of_scipy() {
        close(t_two_sided(0.5, 3.0), 0.651_447_964_848_151);
        close(t_two_sided(-2.0, 7.0), 0.085_619_328_562_976_05);
        close(t_two_sided(12.0, 30.5), 4.398_970_815_152_965e-13);
    }

    // 2 * scipy.stats.norm.sf(z), SciPy 1.17.1
    #[test]
    fn normal_tails_are_those_of_scipy() {
        close(normal_two_sided(0.1), 0.920_344_325_445_942);
        close(normal_two_sided(1.0), 0.317_310_507_862_914_15);
        close(normal_two_sided(1.96), 0.049_995_790_296_440_87);
        close(normal_two_sided(-3.5), 0.000_465_258_158_071_050_03);
        close(normal_two_sided(8.0), 1.244_192_114_854_348e-15);
    }
}
