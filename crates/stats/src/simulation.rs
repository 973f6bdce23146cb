// SPDX-License-Identifier: PostgreSQL

//! Reproducible random numbers for simulations in tests.

/// A generator of uniform and normal numbers, from its seed.
pub struct Normal(pub u64);

impl Normal {
    /// From 0 to 1, evenly.
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Around 0, of variance 1.
    pub fn normal(&mut self) -> f64 {
        let (u, v) = (self.uniform(), self.uniform());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}
