// SPDX-License-Identifier: PostgreSQL
//! Reads the histograms of a book: after its heads, and only those that changed since the previous
//! snapshot.

use crate::book::Book;
use crate::error::Error;
use crate::histogram_store::StoreBuilder;
use crate::layout::{
    book, bucket, bucket_offset, head, u64_at, CHUNK, CHUNK_SIZE, OCTAVE, OCTAVE_SIZE, ROW,
    ROW_SIZE,
};
use crate::segment::Segment;
use std::ops::RangeInclusive;
use std::sync::atomic::{fence, AtomicU64, Ordering};

/// If a histogram is empty after this many records, its writer does not keep it, and it is not read
/// again.
const PLAIN_FROM: u64 = 8;

/// Buffers that are reused from one book to the next.
#[derive(Debug)]
pub(crate) struct HistogramBuffers {
    chunk: Box<[u8; CHUNK_SIZE]>,
    counts: Vec<u64>,
    wanted: Vec<HistogramColumn>,
}

impl Default for HistogramBuffers {
    fn default() -> HistogramBuffers {
        let chunk = Box::new([0; CHUNK_SIZE]);
        HistogramBuffers { chunk, counts: Vec::new(), wanted: Vec::new() }
    }
}

/// A histogram to read: the index of its head, and the octaves between the head's extremes.
#[derive(Debug)]
struct HistogramColumn {
    index: usize,
    octaves: RangeInclusive<usize>,
}

impl Segment {
    /// Have the processor load a histogram while others are looked for, because most have left its cache. `base` is the
    /// offset of the book's histograms.
    fn prefetch_histogram(&self, base: u64, index: usize, octaves: RangeInclusive<usize>) {
        let Some(mapped) = &self.mapped else { return };
        for octave in octaves {
            mapped.prefetch(base + bucket_offset(index, octave * OCTAVE) as u64);
        }
    }

    /// `count` rows of histograms from `offset` on, if the file is mapped.
    fn mapped_rows(&self, offset: u64, count: usize) -> Option<&[[AtomicU64; ROW]]> {
        let words = self.mapped.as_ref()?.words(offset, count * ROW)?;
        self.hooks.before_reading(offset, count * ROW_SIZE);
        Some(words.as_chunks().0)
    }

    /// The histograms of the heads of a book: from the file; from the book's previous reading if nothing
    /// has been counted since; or, for one head, from `given`. Histograms of a chunk are read together, from
    /// the lowest octave that any of them needs to the highest.
    pub(crate) fn read_histograms(
        &self,
        book: &mut Book,
        previous: Option<&Book>,
        given: Option<(usize, &[u64])>,
        buffers: &mut HistogramBuffers,
    ) -> Result<(), Error> {
        let most = self.header().stats_per_book as usize;
        let base = self.regions.books.entry(book.slot) + (book::SIZE + most * head::SIZE) as u64;
        let HistogramBuffers { chunk, counts, wanted } = buffers;
        let mut builder = StoreBuilder::new(counts);
        wanted.clear();
        for (index, head) in book.heads.iter_mut().enumerate() {
            if let Some((_, counts)) = given.filter(|(at, _)| *at == index) {
                head.histogram = builder.add(0, counts.iter().copied());
                continue;
            }
            let before = previous.and_then(|p| Some((p, p.heads.get(index)?)));
            if let Some((previous, before)) = before.filter(|(_, b)| head.is_still(b)) {
                head.plain = before.plain;
                head.histogram = builder.keep(&previous.histograms, before.histogram);
            } else if before.is_some_and(|(_, b)| b.plain && b.raw_stat == head.raw_stat) {
                head.plain = true;
            } else if head.count > 0 && head.min <= head.max {
                let octaves = bucket(head.min) / OCTAVE..=bucket(head.max) / OCTAVE;
                self.prefetch_histogram(base, index, octaves.clone());
                wanted.push(HistogramColumn { index, octaves });
            }
        }
        for wanted in wanted.chunk_by(|a, b| a.index / CHUNK == b.index / CHUNK) {
            let lowest = wanted.iter().map(|w| *w.octaves.start()).min().unwrap_or(0);
            let highest = wanted.iter().map(|w| *w.octaves.end()).max().unwrap_or(0);
            let number = wanted.first().map_or(0, |w| w.index / CHUNK);
            let offset = base + (number * CHUNK_SIZE + lowest * ROW_SIZE) as u64;
            let mapped = self.mapped_rows(offset, highest + 1 - lowest);
            if mapped.is_none() {
                self.read(offset, &mut chunk[..(highest + 1 - lowest) * ROW_SIZE])?;
            }
            let (copied, _) = chunk.as_chunks::<ROW_SIZE>();
            for HistogramColumn { index, octaves } in wanted {
                let column = index % CHUNK;
                let first = octaves.start() * OCTAVE;
                let rows = octaves.start() - lowest..octaves.end() + 1 - lowest;
                let found = match mapped {
                    Some(mapped) => builder.read(
                        first,
                        mapped[rows].iter().map(|row| {
                            let line = &row.as_chunks::<OCTAVE>().0[column];
                            line.each_ref().map(|count| count.load(Ordering::Relaxed))
                        }),
                    ),
                    None => builder.read(
                        first,
                        copied[rows].iter().map(|row| {
                            let line: &[u8; OCTAVE_SIZE] = &row.as_chunks().0[column];
                            std::array::from_fn(|i| u64_at(line, 8 * i))
                        }),
                    ),
                };
                let head = &mut book.heads[*index];
                match found {
                    Some(histogram) => head.histogram = histogram,
                    None => head.plain = head.count >= PLAIN_FROM,
                }
            }
        }
        // Of a group: before the merges are counted again.
        fence(Ordering::Acquire);
        book.histograms = builder.finish(book.heads.iter_mut().map(|h| &mut h.histogram));
        Ok(())
    }
}
