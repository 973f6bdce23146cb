// SPDX-License-Identifier: PostgreSQL
//! The order of a study's cells, drawn before anything is measured.
//!
//! Latin squares with their rows, columns and names shuffled: in as many blocks as there are arms
//! each arm has each place once, so that what drifts through a block falls on all arms alike.
//! R. A. Fisher, The Design of Experiments (1935), chapter 5.

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::SeedableRng;

/// An arm in a block, and its points in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visit {
    /// Number of the arm.
    pub arm: usize,
    /// Numbers of the points.
    pub points: Vec<usize>,
}

/// Blocks without end; the same seed gives the same ones.
pub struct Order {
    rng: StdRng,
    arms: usize,
    points: usize,
    /// Rows of the square that are still to come.
    rows: Vec<Vec<usize>>,
}

impl Order {
    /// Of so many arms, each at so many points.
    pub fn new(arms: usize, points: usize, seed: u64) -> Self {
        Self { rng: StdRng::seed_from_u64(seed), arms, points, rows: Vec::new() }
    }

    fn square(&mut self) -> Vec<Vec<usize>> {
        let n = self.arms;
        let mut shuffled = || {
            let mut all: Vec<usize> = (0..n).collect();
            all.shuffle(&mut self.rng);
            all
        };
        let (rows, columns, names) = (shuffled(), shuffled(), shuffled());
        rows.iter()
            .map(|row| columns.iter().map(|column| names[(row + column) % n]).collect())
            .collect()
    }
}

impl Iterator for Order {
    type Item = Vec<Visit>;

    fn next(&mut self) -> Option<Vec<Visit>> {
        if self.rows.is_empty() {
            self.rows = self.square();
        }
        let row = self.rows.pop()?;
        Some(
            row.into_iter()
                .map(|arm| {
                    let mut points: Vec<usize> = (0..self.points).collect();
                    points.shuffle(&mut self.rng);
                    Visit { arm, points }
                })
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_arm_has_each_place_once_in_as_many_blocks() {
        for arms in 1..8 {
            let blocks: Vec<Vec<Visit>> = Order::new(arms, 3, 7).take(2 * arms).collect();
            for square in blocks.chunks(arms) {
                for place in 0..arms {
                    let mut seen: Vec<usize> = square.iter().map(|row| row[place].arm).collect();
                    seen.sort_unstable();
                    assert_eq!(seen, (0..arms).collect::<Vec<_>>());
                }
            }
            for visit in blocks.iter().flatten() {
                let mut points = visit.points.clone();
                points.sort_unstable();
                assert_eq!(points, [0, 1, 2]);
            }
        }
    }

    #[test]
    fn a_seed_gives_the_same_order_again_and_another_seed_another() {
        let take = |seed| Order::new(5, 4, seed).take(20).collect::<Vec<_>>();
        assert_eq!(take(3), take(3));
        assert_ne!(take(3), take(4));
    }

    #[test]
    fn no_arm_comes_first_more_often_than_others_in_the_long_run() {
        let mut first = [0; 4];
        for block in Order::new(4, 1, 11).take(4000) {
            first[block[0].arm] += 1;
        }
        assert_eq!(first, [1000; 4]);
    }
}
