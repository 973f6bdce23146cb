// SPDX-License-Identifier: PostgreSQL
//! The order of a study's cells, drawn before anything is measured.
//!
//! Latin squares with shuffled rows, columns and names. With n arms, each arm takes each position once in
//! n blocks, so that drift within a block affects all arms alike.
//! R. A. Fisher, The Design of Experiments (1935), chapter 5.

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::SeedableRng;

/// An arm in a block, with its points in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visit {
    /// Number of the arm.
    pub arm: usize,
    /// Numbers of the points.
    pub points: Vec<usize>,
}

/// An endless sequence of blocks, determined by its random seed.
pub struct Order {
    rng: StdRng,
    arms: usize,
    points: usize,
    /// Rows of the square that are not yet used.
    rows: Vec<Vec<usize>>,
}

impl Order {
    /// An order of this many arms, each at this many points.
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
    fn each_arm_takes_each_position_once_in_as_many_blocks() {
        for arms in 1..8 {
            let blocks: Vec<Vec<Visit>> = Order::new(arms, 3, 7).take(2 * arms).collect();
            for square in blocks.chunks(arms) {
                for position in 0..arms {
                    let mut seen: Vec<usize> = square.iter().map(|row| row[position].arm).collect();
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
    fn the_random_seed_determines_the_order() {
        let take = |seed| Order::new(5, 4, seed).take(20).collect::<Vec<_>>();
        assert_eq!(take(3), take(3));
        assert_ne!(take(3), take(4));
    }

    #[test]
    fn all_arms_come_first_equally_often() {
        let mut first = [0; 4];
        for block in Order::new(4, 1, 11).take(4000) {
            first[block[0].arm] += 1;
        }
        assert_eq!(first, [1000; 4]);
    }
}
