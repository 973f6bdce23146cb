// SPDX-License-Identifier: PostgreSQL
//! Reading the histograms of a book: after its heads, and only those that changed since the previous
//! snapshot.

use crate::book::Book;
use crate::error::Error;
use crate::histogram_store::StoreBuilder;
use crate::layout::{self, book, bucket, head};
use crate::segment::Segment;

/// If a histogram is empty after this many records, its writer does not keep it, and it is not read
/// again.
const PLAIN_FROM: u64 = 8;
/// Maximum gap, bytes, between histograms that are read together.
const GAP: usize = 2 * 1024;
/// Maximum size of such a reading.
const SPAN: usize = 256 * 1024;

/// Buffers that are reused from one book to the next.
#[derive(Debug, Default)]
pub(crate) struct HistogramBuffers {
    bytes: Vec<u8>,
    counts: Vec<u64>,
    wanted: Vec<Wanted>,
}

/// A histogram to read: index of its head, first bucket, and its bytes in the region of histograms.
#[derive(Debug)]
struct Wanted {
    index: usize,
    first: usize,
    from: usize,
    to: usize,
}

impl Segment {
    /// The histograms of the heads of a book: from the file, from the book's previous reading if nothing
    /// was counted since, or, for one head, from `given`. Only the buckets between the extremes are
    /// read. Close ones are read together, since finding a page takes longer than copying one.
    pub(crate) fn read_histograms(
        &self,
        book: &mut Book,
        previous: Option<&Book>,
        given: Option<(usize, &[u64])>,
        buffers: &mut HistogramBuffers,
    ) -> Result<(), Error> {
        let most = self.header().stats_per_book as usize;
        let region = self.regions.books.entry(book.slot) + (book::SIZE + most * head::SIZE) as u64;
        let HistogramBuffers { bytes, counts, wanted } = buffers;
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
                let (first, last) = (bucket(head.min), bucket(head.max));
                let at = index * layout::HIST_SIZE;
                wanted.push(Wanted { index, first, from: at + first * 8, to: at + last * 8 + 8 });
            }
        }
        let mut rest = wanted.as_slice();
        while let Some(start) = rest.first().map(|w| w.from) {
            let together = 1 + rest
                .windows(2)
                .take_while(|pair| pair[1].from - pair[0].to <= GAP && pair[1].to - start <= SPAN)
                .count();
            let (span, later) = rest.split_at(together);
            let end = span.last().map_or(start, |w| w.to);
            if bytes.len() < end - start {
                bytes.resize(end - start, 0);
            }
            self.read(region + start as u64, &mut bytes[..end - start])?;
            for w in span {
                let bytes = &bytes[w.from - start..w.to - start];
                let head = &mut book.heads[w.index];
                if head.count >= PLAIN_FROM && bytes.iter().all(|&b| b == 0) {
                    head.plain = true;
                } else {
                    head.histogram = builder.read(w.first, bytes);
                }
            }
            rest = later;
        }
        book.histograms = builder.finish(book.heads.iter_mut().map(|h| &mut h.histogram));
        Ok(())
    }
}
