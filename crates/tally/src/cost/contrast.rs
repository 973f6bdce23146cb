// SPDX-License-Identifier: PostgreSQL

//! What was read in the slices of a quad, and what the quad says.

use super::design::{Quad, Side};

/// Fewest commands that a side of a quad must have handled for its ratio to mean anything.
pub(crate) const FEWEST_COMMANDS: u64 = 4;

/// What all measured backends did in one slice, or in several added up.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Slice {
    /// Time on a processor, ns.
    pub(crate) cpu_ns: u64,
    /// Messages of clients handled.
    pub(crate) commands: u64,
    /// Changes made to the backends' books.
    pub(crate) changes: u64,
    /// Length of the slice, ns.
    pub(crate) wall_ns: u64,
}

impl Slice {
    pub(crate) fn add(&mut self, other: &Slice) {
        self.cpu_ns += other.cpu_ns;
        self.commands += other.commands;
        self.changes += other.changes;
        self.wall_ns += other.wall_ns;
    }

    /// CPU per command, ns; none before the first command.
    pub(crate) fn cpu_per_command(&self) -> Option<f64> {
        (self.commands > 0).then(|| self.cpu_ns as f64 / self.commands as f64)
    }

    /// Commands per second; none in no time.
    pub(crate) fn commands_per_second(&self) -> Option<f64> {
        (self.wall_ns > 0).then(|| self.commands as f64 * 1e9 / self.wall_ns as f64)
    }
}

/// Log ratios of side B to side A of one quad.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Contrast {
    /// Of CPU per command.
    pub(crate) cpu: f64,
    /// Of commands per second.
    pub(crate) throughput: f64,
}

/// Compare the sides; none when either did too little to be compared.
pub(crate) fn contrast(quad: Quad, slices: &[Slice; 4]) -> Option<Contrast> {
    let (mut a, mut b) = (Slice::default(), Slice::default());
    for (side, slice) in quad.sides().into_iter().zip(slices) {
        match side {
            Side::A => a.add(slice),
            Side::B => b.add(slice),
        }
    }
    if a.commands.min(b.commands) < FEWEST_COMMANDS || a.cpu_ns.min(b.cpu_ns) == 0 {
        return None;
    }
    Some(Contrast {
        cpu: (b.cpu_per_command()? / a.cpu_per_command()?).ln(),
        throughput: (b.commands_per_second()? / a.commands_per_second()?).ln(),
    })
}

/// A log ratio as a change in per cent.
pub(crate) fn percent(log_ratio: f64) -> f64 {
    100.0 * log_ratio.exp_m1()
}

#[cfg(test)]
mod tests {
    use super::super::design::Kind;
    use super::*;

    fn slice(cpu_ns: u64, commands: u64, wall_ns: u64) -> Slice {
        Slice { cpu_ns, commands, changes: 0, wall_ns }
    }

    #[test]
    fn a_drift_that_is_even_through_the_quad_cancels() {
        let slices = [10_000, 11_000, 12_000, 13_000].map(|cpu| slice(cpu, 100, 1_000));
        for reversed in [false, true] {
            let kind = Kind::Real;
            let ratio = contrast(Quad { kind, reversed }, &slices).unwrap();
            assert_eq!(ratio.cpu, 0.0);
        }
    }

    #[test]
    fn the_sides_are_told_apart_whichever_comes_first() {
        let (off, on) = (slice(10_000, 100, 1_000), slice(11_000, 100, 1_100));
        let kind = Kind::Real;
        let abba = Quad { kind, reversed: false };
        let baab = Quad { kind, reversed: true };
        for (quad, slices) in [(abba, [off, on, on, off]), (baab, [on, off, off, on])] {
            let ratio = contrast(quad, &slices).unwrap();
            assert!((percent(ratio.cpu) - 10.0).abs() < 1e-9);
            assert!((ratio.throughput - (1.0f64 / 1.1).ln()).abs() < 1e-12);
        }
    }

    #[test]
    fn a_quad_with_an_idle_side_says_nothing() {
        let (idle, busy) = (slice(0, 0, 1_000), slice(10_000, 100, 1_000));
        let quad = Quad { kind: Kind::Real, reversed: false };
        assert_eq!(contrast(quad, &[idle, busy, busy, idle]), None);
        assert_eq!(contrast(quad, &[busy, idle, idle, busy]), None);
    }
}
