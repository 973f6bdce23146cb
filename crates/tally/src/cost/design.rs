// SPDX-License-Identifier: PostgreSQL

//! The order in which the slices come, drawn before anything is measured.
//!
//! Four slices make a quad, A B B A or B A A B by a coin, so that whatever drifts evenly
//! through a quad falls on both sides alike. In a real quad A is the level off and B the
//! level in question. In a placebo both are the same level; it goes through the same
//! motions, so what it shows is the error of the method. Of every four quads two are real,
//! one is a placebo with the level off and one with it on, in random order: the placebo
//! rests on as many quads as the figure it stands beside.

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// One of the two sides that a quad compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    A,
    B,
}

/// What a quad compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A is off, B is the level in question.
    Real,
    /// Both are off.
    PlaceboOff,
    /// Both are the level in question.
    PlaceboOn,
}

/// Four slices that make one comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quad {
    pub(crate) kind: Kind,
    /// B A A B rather than A B B A.
    pub(crate) reversed: bool,
}

impl Quad {
    /// The side that each of the four slices belongs to.
    pub(crate) fn sides(self) -> [Side; 4] {
        if self.reversed {
            [Side::B, Side::A, Side::A, Side::B]
        } else {
            [Side::A, Side::B, Side::B, Side::A]
        }
    }

    /// Whether the level is on in a slice of that side.
    pub(crate) fn is_on(self, side: Side) -> bool {
        match self.kind {
            Kind::Real => side == Side::B,
            Kind::PlaceboOff => false,
            Kind::PlaceboOn => true,
        }
    }
}

/// The quads of a run, without end; the same seed gives the same ones.
pub(crate) struct Design {
    rng: StdRng,
    block: Vec<Kind>,
}

impl Design {
    pub(crate) fn new(seed: u64) -> Self {
        Self { rng: StdRng::seed_from_u64(seed), block: Vec::new() }
    }
}

impl Iterator for Design {
    type Item = Quad;

    fn next(&mut self) -> Option<Quad> {
        if self.block.is_empty() {
            self.block = vec![Kind::Real, Kind::Real, Kind::PlaceboOff, Kind::PlaceboOn];
            self.block.shuffle(&mut self.rng);
        }
        let kind = self.block.pop()?;
        Some(Quad { kind, reversed: self.rng.random() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_quads_are_real_and_the_placebo_covers_both_levels() {
        let quads: Vec<Quad> = Design::new(1).take(4000).collect();
        let of = |kind| quads.iter().filter(|q| q.kind == kind).count();
        assert_eq!(of(Kind::Real), 2000);
        assert_eq!(of(Kind::PlaceboOff), 1000);
        assert_eq!(of(Kind::PlaceboOn), 1000);
    }

    #[test]
    fn the_coin_is_fair_for_every_kind() {
        let quads: Vec<Quad> = Design::new(2).take(40_000).collect();
        for kind in [Kind::Real, Kind::PlaceboOff, Kind::PlaceboOn] {
            let of: Vec<&Quad> = quads.iter().filter(|q| q.kind == kind).collect();
            let reversed = of.iter().filter(|q| q.reversed).count() as f64;
            assert!((reversed / of.len() as f64 - 0.5).abs() < 0.02);
        }
    }

    #[test]
    fn a_seed_gives_the_same_order_again_and_another_seed_another() {
        let take = |seed| Design::new(seed).take(100).collect::<Vec<Quad>>();
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
    }

    #[test]
    fn a_placebo_never_changes_the_level_and_a_real_quad_does() {
        for quad in Design::new(3).take(100) {
            let levels = quad.sides().map(|side| quad.is_on(side));
            match quad.kind {
                Kind::Real => assert_eq!(levels.iter().filter(|on| **on).count(), 2),
                Kind::PlaceboOff => assert_eq!(levels, [false; 4]),
                Kind::PlaceboOn => assert_eq!(levels, [true; 4]),
            }
        }
    }
}
