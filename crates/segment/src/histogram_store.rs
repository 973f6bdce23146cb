// SPDX-License-Identifier: PostgreSQL
//! The histograms of one book, shared from one snapshot to the next.
//!
//! Most histograms of a book do not change between two snapshots. Histograms that were read together
//! are in one chunk, and later books refer to the chunks of earlier ones. Counting references to each
//! histogram, in memory that is no longer in the CPU cache, took longer than reading the file.

use std::sync::Arc;

use crate::histogram::Counts;
use crate::layout::OCTAVE;

/// Maximum number of chunks that a book refers to; beyond that, it copies.
const MAX_CHUNKS: usize = 6;
/// Stands for the chunk that is being filled.
const FRESH: u32 = u32::MAX;

/// The location of a histogram.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HistogramRef {
    chunk: u32,
    at: u32,
    first: u16,
    len: u16,
}

/// Histograms that were read together.
#[derive(Debug, Clone)]
enum HistogramChunk {
    /// All counts are below 2^32.
    Narrow(Arc<[u32]>),
    Wide(Arc<[u64]>),
}

impl HistogramChunk {
    /// `bits`: those that are set in any count.
    fn from_counts(counts: &[u64], bits: u64) -> HistogramChunk {
        if bits > u64::from(u32::MAX) {
            return HistogramChunk::Wide(counts.into());
        }
        HistogramChunk::Narrow(counts.iter().map(|&n| n as u32).collect())
    }

    fn get(&self, at: usize, len: usize) -> Counts<'_> {
        match self {
            HistogramChunk::Narrow(counts) => {
                Counts::Narrow(counts.get(at..at + len).unwrap_or(&[]))
            }
            HistogramChunk::Wide(counts) => Counts::Wide(counts.get(at..at + len).unwrap_or(&[])),
        }
    }
}

/// The histograms of a book.
#[derive(Debug, Clone, Default)]
pub(crate) struct HistogramStore {
    chunks: Vec<HistogramChunk>,
}

impl HistogramStore {
    /// The first bucket of a histogram, and the counts from there on.
    pub fn get(&self, histogram: HistogramRef) -> (usize, Counts<'_>) {
        let chunk = self.chunks.get(histogram.chunk as usize);
        let counts =
            chunk.map(|chunk| chunk.get(histogram.at as usize, usize::from(histogram.len)));
        (usize::from(histogram.first), counts.unwrap_or(Counts::Narrow(&[])))
    }
}

/// Fills the store of a book.
pub(crate) struct StoreBuilder<'a> {
    store: HistogramStore,
    /// Numbers of the previous store's chunks that are used here.
    taken: Vec<u32>,
    fresh: &'a mut Vec<u64>,
    /// The bits that are set in any of the fresh counts.
    bits: u64,
}

impl<'a> StoreBuilder<'a> {
    /// Start with a buffer that is reused.
    pub fn new(fresh: &'a mut Vec<u64>) -> StoreBuilder<'a> {
        fresh.clear();
        StoreBuilder { store: HistogramStore::default(), taken: Vec::new(), fresh, bits: 0 }
    }

    /// Keep a histogram of the previous book.
    pub fn keep(&mut self, previous: &HistogramStore, histogram: HistogramRef) -> HistogramRef {
        if histogram.len == 0 {
            return histogram;
        }
        if let Some(chunk) = self.taken.iter().position(|&taken| taken == histogram.chunk) {
            return HistogramRef { chunk: chunk as u32, ..histogram };
        }
        match previous.chunks.get(histogram.chunk as usize) {
            Some(chunk) if self.taken.len() + 1 < MAX_CHUNKS => {
                self.taken.push(histogram.chunk);
                self.store.chunks.push(chunk.clone());
                HistogramRef { chunk: self.taken.len() as u32 - 1, ..histogram }
            }
            _ => {
                let (first, counts) = previous.get(histogram);
                self.add(first, counts.iter())
            }
        }
    }

    /// Add the histogram with these octaves, from bucket `first` on. If all counts are zero, nothing is added,
    /// and the result is `None`.
    pub fn read(
        &mut self,
        first: usize,
        octaves: impl Iterator<Item = [u64; OCTAVE]>,
    ) -> Option<HistogramRef> {
        let at = self.fresh.len();
        let mut bits = 0;
        for octave in octaves {
            bits |= octave.iter().fold(0, |bits, n| bits | n);
            self.fresh.extend_from_slice(&octave);
        }
        if bits == 0 {
            self.fresh.truncate(at);
            return None;
        }
        self.bits |= bits;
        Some(self.added(first, at))
    }

    /// Add a histogram from bucket `first` on.
    pub fn add(&mut self, first: usize, counts: impl Iterator<Item = u64>) -> HistogramRef {
        let at = self.fresh.len();
        self.fresh.extend(counts);
        self.bits |= self.fresh[at..].iter().fold(0, |bits, n| bits | n);
        self.added(first, at)
    }

    fn added(&self, first: usize, at: usize) -> HistogramRef {
        HistogramRef {
            chunk: FRESH,
            at: at as u32,
            first: first as u16,
            len: (self.fresh.len() - at) as u16,
        }
    }

    /// The finished store; fills in the chunk in the references to new histograms.
    pub fn finish<'p>(
        mut self,
        refs: impl Iterator<Item = &'p mut HistogramRef>,
    ) -> HistogramStore {
        if !self.fresh.is_empty() {
            let chunk = self.store.chunks.len() as u32;
            self.store.chunks.push(HistogramChunk::from_counts(self.fresh, self.bits));
            refs.filter(|histogram| histogram.chunk == FRESH)
                .for_each(|histogram| histogram.chunk = chunk);
        }
        self.store
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_survive_being_kept_over_many_snapshots() {
        let mut buffer = Vec::new();
        let mut expected: Vec<Vec<u64>> = (0..10).map(|i| vec![i, i + 1, i + 2]).collect();
        let mut builder = StoreBuilder::new(&mut buffer);
        let mut refs: Vec<HistogramRef> =
            expected.iter().map(|h| builder.add(3, h.iter().copied())).collect();
        let mut store = builder.finish(refs.iter_mut());
        for round in 0..100 {
            // In each round a different histogram changes, so that there are many chunks.
            let changed = round * 7 % 10;
            // Now and then a count needs a wide chunk.
            let most = if round % 7 == 3 { u64::from(u32::MAX) + 1 } else { round as u64 };
            expected[changed] = vec![most; 1 + round % 5];
            let mut builder = StoreBuilder::new(&mut buffer);
            refs = (0..10)
                .map(|i| match i == changed {
                    true => builder.add(3, expected[i].iter().copied()),
                    false => builder.keep(&store, refs[i]),
                })
                .collect();
            store = builder.finish(refs.iter_mut());
            assert!(store.chunks.len() <= MAX_CHUNKS);
            for (histogram, counts) in refs.iter().zip(&expected) {
                let (first, found) = store.get(*histogram);
                assert_eq!((first, found.iter().collect()), (3, counts.clone()));
            }
        }
        assert_eq!(store.get(HistogramRef::default()).1.len(), 0);
    }
}
