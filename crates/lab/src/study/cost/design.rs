// SPDX-License-Identifier: PostgreSQL

//! The randomised order of the slices, chosen before anything is measured.
//!
//! Four slices make a quad, at random A B B A or B A A B: A with the level off, B with the level in
//! question. A linear drift within a quad affects both sides equally. Two quads make a round.
//!
//! The slices of a round also serve as a placebo. In every quad the first and third slice are one A
//! and one B, and so are the second and fourth: the level is on equally long in both pairs, so a
//! difference between them is the error of the method, measured with the same toggling, the same
//! number of slices and the same load. This comparison alone would be biased by a drift, so the
//! second quad of the round reverses it. As signs of the eight slices, the placebo is `+ - + - - + - +`,
//! and the comparison of the level is `+ - - +` (or its reverse) in each quad; the two are orthogonal.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// The side of a comparison that a slice belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The level is off; in the placebo, the base.
    A,
    /// The level in question; in the placebo, the side compared with the base.
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
    /// Their orders, first to last.
    pub quads: [Quad; 2],
    /// The placebo's sides are swapped.
    pub flipped: bool,
}

impl Quad {
    /// The side of each slice; the level is on in B.
    pub fn sides(self) -> [Side; 4] {
        if self.reversed {
            [Side::B, Side::A, Side::A, Side::B]
        } else {
            [Side::A, Side::B, Side::B, Side::A]
        }
    }
}

impl Round {
    /// The placebo's side of each slice, per quad.
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

/// An endless sequence of random rounds. The same seed gives the same rounds.
pub struct Design {
    rng: StdRng,
}

impl Design {
    /// A sequence from this random seed.
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

    /// All possible rounds.
    fn rounds() -> impl Iterator<Item = Round> {
        (0..8).map(|bits| Round {
            quads: [Quad { reversed: bits & 1 != 0 }, Quad { reversed: bits & 2 != 0 }],
            flipped: bits & 4 != 0,
        })
    }

    #[test]
    fn both_orders_are_equally_frequent() {
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
    fn equal_seeds_give_equal_orders_and_different_seeds_different_ones() {
        let take = |seed| Design::new(seed).take(100).collect::<Vec<Round>>();
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
    }

    #[test]
    fn the_level_is_on_equally_often_on_both_sides_of_the_placebo() {
        for round in rounds() {
            for (quad, placebo) in round.quads.into_iter().zip(round.placebo_sides()) {
                let signs = quad.sides().into_iter().zip(placebo);
                let product: i32 = signs.map(|(real, placebo)| sign(real) * sign(placebo)).sum();
                assert_eq!(product, 0, "{round:?}");
            }
        }
    }

    #[test]
    fn a_linear_drift_cancels_in_each_quad_and_in_the_placebo() {
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
