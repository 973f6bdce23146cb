// SPDX-License-Identifier: PostgreSQL

//! The figures of a round's slices, and the effect that the round shows.

use super::design::{Round, Side};

/// Minimum number of commands on each side of a quad; with fewer, a ratio is meaningless.
pub const MIN_COMMANDS: u64 = 4;

/// Totals of all measured backends in one slice, or in several added up.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Slice {
    /// CPU time, ns.
    pub cpu_ns: u64,
    /// How often the kernel put a backend on a CPU.
    pub dispatches: u64,
    /// Client messages handled.
    pub commands: u64,
    /// Changes to the backends' statistics.
    pub changes: u64,
    /// Length of the slice, ns.
    pub wall_ns: u64,
}

impl Slice {
    /// Adds the figures of another slice.
    pub fn add(&mut self, other: &Slice) {
        self.cpu_ns += other.cpu_ns;
        self.dispatches += other.dispatches;
        self.commands += other.commands;
        self.changes += other.changes;
        self.wall_ns += other.wall_ns;
    }

    /// CPU time per command, ns; `None` without commands.
    pub fn cpu_per_command(&self) -> Option<f64> {
        (self.commands > 0).then(|| self.cpu_ns as f64 / self.commands as f64)
    }

    /// Commands per second; `None` if the slice has no length.
    pub fn commands_per_second(&self) -> Option<f64> {
        (self.wall_ns > 0).then(|| self.commands as f64 * 1e9 / self.wall_ns as f64)
    }
}

/// Log ratios of side B to side A.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contrast {
    /// Log ratio of CPU time per command.
    pub cpu: f64,
    /// Log ratio of commands per second.
    pub throughput: f64,
}

/// The effect that a round shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundContrast {
    /// The level compared with off.
    pub real: Contrast,
    /// The placebo's sides compared: the error of the method.
    pub placebo: Contrast,
}

/// Compares the sides, and those of the placebo. `None` if any side handled fewer than
/// [`MIN_COMMANDS`] or used no CPU time. Each quad is compared separately, so that conditions may
/// change between the two.
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
    if a.commands.min(b.commands) < MIN_COMMANDS || a.cpu_ns.min(b.cpu_ns) == 0 {
        return None;
    }
    Some(Contrast {
        cpu: (b.cpu_per_command()? / a.cpu_per_command()?).ln(),
        throughput: (b.commands_per_second()? / a.commands_per_second()?).ln(),
    })
}

/// A log ratio as a change in percent.
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

    /// The eight slices of a round; `make` gets each slice's number and whether the level is on.
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
            let found = contrast(round, &slices).unwrap();
            assert!((percent(found.real.cpu) - 10.0).abs() < 1e-9);
            assert!((found.real.throughput - (1.0f64 / 1.1).ln()).abs() < 1e-12);
            assert!(found.placebo.cpu.abs() < 1e-12 && found.placebo.throughput.abs() < 1e-12);
        }
    }

    #[test]
    fn a_steady_drift_shows_neither_an_effect_nor_a_placebo_effect() {
        for round in Design::new(2).take(64) {
            // CPU time grows by 0.1 % from slice to slice.
            let slices = slices(round, |at, _| slice(1_000_000 + 1_000 * at as u64, 100, 1_000));
            let found = contrast(round, &slices).unwrap();
            assert!(found.real.cpu.abs() < 1e-5, "{found:?}");
            assert!(found.placebo.cpu.abs() < 1e-5, "{found:?}");
        }
    }

    #[test]
    fn a_quad_with_a_side_of_few_commands_or_no_cpu_time_gives_no_result() {
        let round = Round { quads: [Quad { reversed: false }; 2], flipped: false };
        // CPU time and commands of each of the two slices of a side.
        for (cpu_ns, commands, found) in [(0, 0, false), (9, 1, false), (0, 2, false), (9, 2, true)]
        {
            for few in [false, true] {
                let slices = slices(round, |_, on| match on == few {
                    true => slice(cpu_ns, commands, 1_000),
                    false => slice(10_000, 100, 1_000),
                });
                assert_eq!(contrast(round, &slices).is_some(), found, "{cpu_ns} {commands} {few}");
            }
        }
    }

    #[test]
    fn slices_add_up_in_every_figure() {
        let one = Slice { cpu_ns: 1, dispatches: 2, commands: 3, changes: 4, wall_ns: 5 };
        let mut sum = one;
        sum.add(&one);
        assert_eq!(sum, Slice { cpu_ns: 2, dispatches: 4, commands: 6, changes: 8, wall_ns: 10 });
    }
}
