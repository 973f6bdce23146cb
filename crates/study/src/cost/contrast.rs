// SPDX-License-Identifier: PostgreSQL

//! What was read in the slices of a round, and what the round says.

use super::design::{Round, Side};

/// Fewest commands that a side of a quad must have handled for its ratio to mean anything.
pub const FEWEST_COMMANDS: u64 = 4;

/// What all measured backends did in one slice, or in several added up.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Slice {
    /// Time on a processor, ns.
    pub cpu_ns: u64,
    /// How often they were put on one.
    pub dispatches: u64,
    /// Messages of clients handled.
    pub commands: u64,
    /// Changes made to the backends' books.
    pub changes: u64,
    /// Length of the slice, ns.
    pub wall_ns: u64,
}

impl Slice {
    pub fn add(&mut self, other: &Slice) {
        self.cpu_ns += other.cpu_ns;
        self.dispatches += other.dispatches;
        self.commands += other.commands;
        self.changes += other.changes;
        self.wall_ns += other.wall_ns;
    }

    /// CPU per command, ns; none before the first command.
    pub fn cpu_per_command(&self) -> Option<f64> {
        (self.commands > 0).then(|| self.cpu_ns as f64 / self.commands as f64)
    }

    /// Commands per second; none in no time.
    pub fn commands_per_second(&self) -> Option<f64> {
        (self.wall_ns > 0).then(|| self.commands as f64 * 1e9 / self.wall_ns as f64)
    }
}

/// Log ratios of side B to side A.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contrast {
    /// Of CPU per command.
    pub cpu: f64,
    /// Of commands per second.
    pub throughput: f64,
}

/// What a round says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundContrast {
    /// Of the level.
    pub real: Contrast,
    /// Of nothing.
    pub placebo: Contrast,
}

/// Compare the sides, and those of the placebo; none when any did too little to be compared.
/// Each quad is compared by itself, so that it does not matter if conditions change between
/// the two.
pub fn contrast(round: Round, slices: &[[Slice; 4]; 2]) -> Option<RoundContrast> {
    let placebo = round.placebo_sides();
    let real = round.quads.map(|quad| quad.sides());
    Some(RoundContrast {
        real: mean(compare(real[0], &slices[0])?, compare(real[1], &slices[1])?),
        placebo: mean(compare(placebo[0], &slices[0])?, compare(placebo[1], &slices[1])?),
    })
}

fn mean(a: Contrast, b: Contrast) -> Contrast {
    Contrast { cpu: 0.5 * (a.cpu + b.cpu), throughput: 0.5 * (a.throughput + b.throughput) }
}

fn compare(sides: [Side; 4], slices: &[Slice; 4]) -> Option<Contrast> {
    let (mut a, mut b) = (Slice::default(), Slice::default());
    for (side, slice) in sides.into_iter().zip(slices) {
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
pub fn percent(log_ratio: f64) -> f64 {
    100.0 * log_ratio.exp_m1()
}

#[cfg(test)]
mod tests {
    use super::super::design::{Design, Quad};
    use super::*;

    fn slice(cpu_ns: u64, commands: u64, wall_ns: u64) -> Slice {
        Slice { cpu_ns, dispatches: 0, commands, changes: 0, wall_ns }
    }

    /// Eight slices, made of the level in each.
    fn slices(round: Round, mut make: impl FnMut(usize, bool) -> Slice) -> [[Slice; 4]; 2] {
        let mut at = 0;
        round.quads.map(|quad| {
            quad.sides().map(|side| {
                at += 1;
                make(at - 1, side == Side::B)
            })
        })
    }

    #[test]
    fn the_effect_is_found_in_every_order_and_the_placebo_shows_none() {
        for round in Design::new(1).take(64) {
            let slices = slices(round, |_, on| match on {
                false => slice(10_000, 100, 1_000),
                true => slice(11_000, 100, 1_100),
            });
            let said = contrast(round, &slices).unwrap();
            assert!((percent(said.real.cpu) - 10.0).abs() < 1e-9);
            assert!((said.real.throughput - (1.0f64 / 1.1).ln()).abs() < 1e-12);
            assert!(said.placebo.cpu.abs() < 1e-12 && said.placebo.throughput.abs() < 1e-12);
        }
    }

    #[test]
    fn a_drift_is_taken_for_neither_an_effect_nor_a_fault() {
        for round in Design::new(2).take(64) {
            // A tenth of a per cent from slice to slice.
            let slices = slices(round, |at, _| slice(1_000_000 + 1_000 * at as u64, 100, 1_000));
            let said = contrast(round, &slices).unwrap();
            assert!(said.real.cpu.abs() < 1e-5, "{said:?}");
            assert!(said.placebo.cpu.abs() < 1e-5, "{said:?}");
        }
    }

    #[test]
    fn a_quad_with_an_idle_side_says_nothing() {
        let round = Round { quads: [Quad { reversed: false }; 2], flipped: false };
        for idle in [false, true] {
            let slices = slices(round, |_, on| match on == idle {
                false => slice(0, 0, 1_000),
                true => slice(10_000, 100, 1_000),
            });
            assert_eq!(contrast(round, &slices), None);
        }
    }
}
