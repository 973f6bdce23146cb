// SPDX-License-Identifier: PostgreSQL
//! The standard error of a figure, with its degrees of freedom.

use crate::{t_quantile, t_two_sided};

/// Probability with which a test finds a change of the detectable size.
pub const POWER: f64 = 0.9;

/// The error of the sum or the difference of two independent figures. Not `hypot`, whose newest version in glibc would keep the
/// command from running on systems that are older than the one that built it; errors are far from overflow.
pub fn joint_error(a: f64, b: f64) -> f64 {
    (a * a + b * b).sqrt()
}

/// The standard error of a difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Precision {
    /// The standard error.
    pub error: f64,
    /// Its degrees of freedom.
    pub freedom: f64,
}

impl Precision {
    /// The error of the difference or the sum of two independent figures with these errors.
    pub fn both(a: Precision, b: Precision) -> Precision {
        let error = joint_error(a.error, b.error);
        if error == 0.0 {
            return Precision { error, freedom: a.freedom + b.freedom };
        }
        let part = |one: Precision| (one.error / error).powi(4) / one.freedom;
        Precision { error, freedom: 1.0 / (part(a) + part(b)) }
    }

    /// The error of the figure multiplied by `by`.
    pub fn scaled(self, by: f64) -> Precision {
        Precision { error: self.error * by.abs(), ..self }
    }

    /// Half the width of the 95 % interval.
    pub fn half_width(self) -> f64 {
        self.error * t_quantile(0.975, self.freedom)
    }

    /// Probability of a change at least this large by chance alone.
    pub fn p(self, change: f64) -> f64 {
        match (self.error > 0.0, change == 0.0) {
            (true, _) => t_two_sided(change / self.error, self.freedom),
            (false, true) => 1.0,
            (false, false) => 0.0,
        }
    }

    /// The change that a test at the level `alpha` finds with probability [`POWER`].
    pub fn detectable(self, alpha: f64) -> f64 {
        let quantile = |p| t_quantile(p, self.freedom);
        self.error * (quantile(1.0 - alpha / 2.0) + quantile(POWER))
    }
}
