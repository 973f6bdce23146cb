// SPDX-License-Identifier: PostgreSQL
//! The histograms of one book, shared from one snapshot to the next.
//!
//! Most histograms of a book do not change between two snapshots. What was read together
//! lies together on one board, and a later book refers to the boards of earlier ones: one
//! reference count for many histograms, because counting for each, in memory that has long
//! left the cache, took longer than reading the file.

use std::sync::Arc;

use crate::histogram::Counts;
use crate::layout::u64_at;

/// Boards that a book refers to at most; beyond that it copies.
const BOARDS: usize = 6;
/// The board that is being filled.
const FRESH: u32 = u32::MAX;

/// Where a histogram lies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Place {
    board: u32,
    at: u32,
    first: u16,
    len: u16,
}

/// Histograms that were read together.
#[derive(Debug, Clone)]
enum Board {
    /// None of their counts reaches 2^32.
    Narrow(Arc<[u32]>),
    Wide(Arc<[u64]>),
}

impl Board {
    fn of(counts: &[u64]) -> Board {
        if counts.iter().fold(0, |bits, n| bits | n) > u64::from(u32::MAX) {
            return Board::Wide(counts.into());
        }
        Board::Narrow(counts.iter().map(|&n| n as u32).collect())
    }

    fn get(&self, at: usize, len: usize) -> Counts<'_> {
        match self {
            Board::Narrow(counts) => Counts::Narrow(counts.get(at..at + len).unwrap_or(&[])),
            Board::Wide(counts) => Counts::Wide(counts.get(at..at + len).unwrap_or(&[])),
        }
    }
}

/// The histograms of a book.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shelf {
    boards: Vec<Board>,
}

impl Shelf {
    /// The first bucket of a histogram and the counts from there on.
    pub fn get(&self, place: Place) -> (usize, Counts<'_>) {
        let board = self.boards.get(place.board as usize);
        let counts = board.map(|board| board.get(place.at as usize, usize::from(place.len)));
        (usize::from(place.first), counts.unwrap_or(Counts::Narrow(&[])))
    }
}

/// Fills the shelf of a book.
pub(crate) struct Filler<'a> {
    shelf: Shelf,
    /// Boards of the previous shelf that are in use here: its number there.
    taken: Vec<u32>,
    fresh: &'a mut Vec<u64>,
}

impl<'a> Filler<'a> {
    /// Begin, with a buffer that is used again and again.
    pub fn new(fresh: &'a mut Vec<u64>) -> Filler<'a> {
        fresh.clear();
        Filler { shelf: Shelf::default(), taken: Vec::new(), fresh }
    }

    /// Go on with a histogram of the previous book.
    pub fn keep(&mut self, previous: &Shelf, place: Place) -> Place {
        if place.len == 0 {
            return place;
        }
        if let Some(board) = self.taken.iter().position(|&taken| taken == place.board) {
            return Place { board: board as u32, ..place };
        }
        match previous.boards.get(place.board as usize) {
            Some(board) if self.taken.len() + 1 < BOARDS => {
                self.taken.push(place.board);
                self.shelf.boards.push(board.clone());
                Place { board: self.taken.len() as u32 - 1, ..place }
            }
            _ => {
                let (first, counts) = previous.get(place);
                self.add(first, counts.iter())
            }
        }
    }

    /// Add the histogram that `bytes` of the file hold, from bucket `first` on.
    pub fn read(&mut self, first: usize, bytes: &[u8]) -> Place {
        self.add(first, bytes.chunks_exact(8).map(|b| u64_at(b, 0)))
    }

    /// Add a histogram from bucket `first` on.
    pub fn add(&mut self, first: usize, counts: impl Iterator<Item = u64>) -> Place {
        let at = self.fresh.len();
        self.fresh.extend(counts);
        Place {
            board: FRESH,
            at: at as u32,
            first: first as u16,
            len: (self.fresh.len() - at) as u16,
        }
    }

    /// The shelf; the places of its histograms are made good.
    pub fn finish<'p>(mut self, places: impl Iterator<Item = &'p mut Place>) -> Shelf {
        if !self.fresh.is_empty() {
            let board = self.shelf.boards.len() as u32;
            self.shelf.boards.push(Board::of(self.fresh));
            places.filter(|place| place.board == FRESH).for_each(|place| place.board = board);
        }
        self.shelf
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_survive_being_kept_over_many_snapshots() {
        let mut buffer = Vec::new();
        let mut expected: Vec<Vec<u64>> = (0..10).map(|i| vec![i, i + 1, i + 2]).collect();
        let mut filler = Filler::new(&mut buffer);
        let mut places: Vec<Place> =
            expected.iter().map(|h| filler.add(3, h.iter().copied())).collect();
        let mut shelf = filler.finish(places.iter_mut());
        for round in 0..100 {
            // In each round another one changes, so that the boards become many.
            let changed = round * 7 % 10;
            // Now and then a count that takes a board of the wide kind.
            let most = if round % 7 == 3 { u64::from(u32::MAX) + 1 } else { round as u64 };
            expected[changed] = vec![most; 1 + round % 5];
            let mut filler = Filler::new(&mut buffer);
            places = (0..10)
                .map(|i| match i == changed {
                    true => filler.add(3, expected[i].iter().copied()),
                    false => filler.keep(&shelf, places[i]),
                })
                .collect();
            shelf = filler.finish(places.iter_mut());
            assert!(shelf.boards.len() <= BOARDS);
            for (place, counts) in places.iter().zip(&expected) {
                let (first, found) = shelf.get(*place);
                assert_eq!((first, found.iter().collect()), (3, counts.clone()));
            }
        }
        assert_eq!(shelf.get(Place::default()).1.len(), 0);
    }
}
