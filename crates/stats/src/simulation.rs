// SPDX-License-Identifier: PostgreSQL

//! Reproducible random numbers for simulations in tests.

/// A generator of uniform and normal numbers; holds its state, initially the random seed.
pub struct Normal(pub u64);

impl Normal {
    /// A number from the uniform distribution on (0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// A number from the standard normal distribution.
    pub fn normal(&mut self) -> f64 {
        let (u, v) = (self.uniform(), self.uniform());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}
