// SPDX-License-Identifier: PostgreSQL
//! Reads the histograms of a book: after its heads, and only those that changed since the previous
//! snapshot.

use crate::book::Book;
use crate::error::Error;
use crate::histogram_store::StoreBuilder;
use crate::layout::{book, bucket, head, CHUNK, CHUNK_SIZE, OCTAVE, ROW_SIZE};
use crate::segment::Segment;
use std::ops::RangeInclusive;

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

/// A histogram to read: its column in the chunk, and the octaves between the extremes of its head.
#[derive(Debug)]
struct HistogramColumn {
    column: usize,
    octaves: RangeInclusive<usize>,
}

impl Segment {
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
        let mut at = self.regions.books.entry(book.slot) + (book::SIZE + most * head::SIZE) as u64;
        let HistogramBuffers { chunk, counts, wanted } = buffers;
        let mut builder = StoreBuilder::new(counts);
        for (number, heads) in book.heads.chunks_mut(CHUNK).enumerate() {
            wanted.clear();
            for (column, head) in heads.iter_mut().enumerate() {
                let index = number * CHUNK + column;
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
                    wanted.push(HistogramColumn { column, octaves });
                }
            }
            let lowest = wanted.iter().map(|w| *w.octaves.start()).min();
            let highest = wanted.iter().map(|w| *w.octaves.end()).max();
            if let (Some(lowest), Some(highest)) = (lowest, highest) {
                let rows = &mut chunk[lowest * ROW_SIZE..(highest + 1) * ROW_SIZE];
                self.read(at + (lowest * ROW_SIZE) as u64, rows)?;
            }
            for HistogramColumn { column, octaves } in wanted.drain(..) {
                let head = &mut heads[column];
                let first = octaves.start() * OCTAVE;
                let (rows, _) = chunk.as_chunks::<ROW_SIZE>();
                let lines = rows[octaves].iter().map(|row| &row.as_chunks().0[column]);
                match builder.read(first, lines) {
                    Some(histogram) => head.histogram = histogram,
                    None => head.plain = head.count >= PLAIN_FROM,
                }
            }
            at += CHUNK_SIZE as u64;
        }
        book.histograms = builder.finish(book.heads.iter_mut().map(|h| &mut h.histogram));
        Ok(())
    }
}
