// SPDX-License-Identifier: PostgreSQL

//! The order in which the slices come, drawn before anything is measured.
//!
//! Four slices make a quad, A B B A or B A A B by a coin: A with the level off, B with the
//! level in question. What drifts evenly through a quad falls on both sides alike. Two quads
//! make a round.
//!
//! A round also holds its own placebo, in the same slices. In every quad the first and third
//! slice are one A and one B, and so are the second and fourth: neither pair has more of the
//! level than the other, so a difference between them is the error of the method, found with
//! the same toggling, the same number of slices and the same load. Alone such a comparison
//! would follow a drift; it is therefore turned around in the second quad of the round.
//! Written as signs on eight slices, that is + - + - - + - + against + - - + for each quad
//! (or its reverse) of the comparison proper; the two are orthogonal.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Which of the two that are compared a slice belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The level is off; of the placebo, the one that it is compared against.
    A,
    /// The level in question; of the placebo, the other one.
    B,
}

/// The order of four slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quad {
    /// B A A B rather than A B B A.
    pub reversed: bool,
}

/// Two quads, eight slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    pub quads: [Quad; 2],
    /// The placebo's sides the other way round.
    pub flipped: bool,
}

impl Quad {
    /// The side of each slice; where it is B, the level is on.
    pub fn sides(self) -> [Side; 4] {
        if self.reversed {
            [Side::B, Side::A, Side::A, Side::B]
        } else {
            [Side::A, Side::B, Side::B, Side::A]
        }
    }
}

impl Round {
    /// The placebo's sides in the first quad and in the second.
    pub fn placebo_sides(self) -> [[Side; 4]; 2] {
        let one = [Side::A, Side::B, Side::A, Side::B];
        let other = [Side::B, Side::A, Side::B, Side::A];
        if self.flipped {
            [other, one]
        } else {
            [one, other]
        }
    }
}

/// The rounds of a run, without end; the same seed gives the same ones.
pub struct Design {
    rng: StdRng,
}

impl Design {
    pub fn new(seed: u64) -> Self {
        Self { rng: StdRng::seed_from_u64(seed) }
    }
}

impl Iterator for Design {
    type Item = Round;

    fn next(&mut self) -> Option<Round> {
        let mut coin = || self.rng.random::<bool>();
        let quads = [Quad { reversed: coin() }, Quad { reversed: coin() }];
        Some(Round { quads, flipped: coin() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(side: Side) -> i32 {
        if side == Side::B {
            1
        } else {
            -1
        }
    }

    /// All rounds that there can be.
    fn rounds() -> impl Iterator<Item = Round> {
        (0..8).map(|bits| Round {
            quads: [Quad { reversed: bits & 1 != 0 }, Quad { reversed: bits & 2 != 0 }],
            flipped: bits & 4 != 0,
        })
    }

    #[test]
    fn the_coins_are_fair() {
        let rounds: Vec<Round> = Design::new(2).take(10_000).collect();
        let share = |coin: fn(&Round) -> bool| {
            rounds.iter().filter(|round| coin(round)).count() as f64 / rounds.len() as f64
        };
        for share in [
            share(|round| round.quads[0].reversed),
            share(|round| round.quads[1].reversed),
            share(|round| round.flipped),
        ] {
            assert!((share - 0.5).abs() < 0.02, "{share}");
        }
    }

    #[test]
    fn a_seed_gives_the_same_order_again_and_another_seed_another() {
        let take = |seed| Design::new(seed).take(100).collect::<Vec<Round>>();
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
    }

    #[test]
    fn the_level_is_as_often_on_as_off_on_either_side_of_the_placebo() {
        for round in rounds() {
            for (quad, placebo) in round.quads.into_iter().zip(round.placebo_sides()) {
                let signs = quad.sides().into_iter().zip(placebo);
                let product: i32 = signs.map(|(real, placebo)| sign(real) * sign(placebo)).sum();
                assert_eq!(product, 0, "{round:?}");
            }
        }
    }

    #[test]
    fn an_even_drift_cancels_in_the_quad_and_in_the_placebo_of_the_round() {
        for round in rounds() {
            for quad in round.quads {
                let drift: i32 = (0..4).zip(quad.sides()).map(|(t, side)| t * sign(side)).sum();
                assert_eq!(drift, 0, "{round:?}");
            }
            let sides = round.placebo_sides().into_iter().flatten();
            let drift: i32 = (0..8).zip(sides).map(|(t, side)| t * sign(side)).sum();
            assert_eq!(drift, 0, "{round:?}");
        }
    }
}
