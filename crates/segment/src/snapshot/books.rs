// SPDX-License-Identifier: PostgreSQL
//! Reads one book while its owner changes it.
//!
//! Concurrency contract. The book is copied between two equal and even readings of its sequence counter
//! (the loads pair with A and B of tally.h). The clock is read before the second reading, so the running
//! account was still running at that tick. Histograms are read after the heads, outside the sequence:
//! they may be ahead by a few updates, but never behind.

use super::context::ReadContext;
use super::histograms::HistogramBuffers;
use crate::book::{Book, Head, Hold, Life, Pending, NAMELESS};
use crate::clock::{wait_for_loads, CLOCK_SLIP};
use crate::error::Error;
use crate::layout::{self, book, entry, head, hold, slot_state, u32_at, u64_at};
use crate::segment::Segment;
use crate::this_host;
use std::sync::atomic::{fence, Ordering};
use std::time::Duration;

/// Maximum number of attempts for one book that its writer changes.
const BOOK_TRIES: u32 = 1000;
/// Maximum number of attempts for all books of a snapshot, so that stopped writers cannot block the reader.
const ALL_TRIES: u32 = 5000;

/// Buffers that are reused from one book to the next.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    book: Vec<u8>,
    histograms: HistogramBuffers,
    /// The expected index of the next slot's book in the previous snapshot.
    next: usize,
}

/// The held locks listed in the book in `bytes`, out of `holding`.
fn holds(bytes: &[u8], holding: u32) -> impl Iterator<Item = Hold> + '_ {
    let held = (holding as usize).min(layout::HOLDS);
    bytes[book::HOLDS..].chunks_exact(hold::SIZE).take(held).map(|bytes| Hold {
        lock: u64_at(bytes, hold::LOCK),
        since: u64_at(bytes, hold::SINCE),
        tranche: u32_at(bytes, hold::TRANCHE),
        shared: u32_at(bytes, hold::MODE) == 1,
    })
}

impl Segment {
    /// The book of the slot with the entry `bytes`. New statistics are still [`NAMELESS`].
    pub(crate) fn read_slot(
        &self,
        slot: u32,
        bytes: &[u8],
        context: &ReadContext<'_>,
        buffers: &mut Buffers,
    ) -> Result<Book, Error> {
        let mut book = Book::of_entry(slot, bytes);
        let previous = context.previous_of(slot, &mut buffers.next);
        let previous = previous.filter(|p| p.generation == book.generation);
        let same =
            |p: &&Book| p.identity_seq == book.identity_seq && p.identity_seq.is_multiple_of(2);
        (book.identity, book.identity_seq) = match previous.filter(same) {
            Some(p) => (p.identity.clone(), p.identity_seq),
            None => self.read_identity(slot)?,
        };
        book.life = match u32_at(bytes, entry::STATE) {
            slot_state::LIVE if self.is_there(&book, previous) => Life::Alive,
            slot_state::LIVE => Life::Dead,
            _ => Life::Retired,
        };
        self.read_book(&mut book, previous, context, buffers)?;
        Ok(book)
    }

    /// Have the processor load the next slot's book, and some of its heads, while this one is read.
    pub(crate) fn prefetch_book(&self, slot: u32) {
        let Some(mapped) = &self.mapped else { return };
        let base = self.regions.books.entry(slot);
        for line in (0..book::SIZE + 24 * head::SIZE).step_by(64) {
            mapped.prefetch(base + line as u64);
        }
    }

    /// Whether the owner still runs. PIDs are reused, so new owners are checked by their start time.
    fn is_there(&self, book: &Book, previous: Option<&Book>) -> bool {
        if !self.is_of_this_boot() {
            return false;
        }
        if !self.pids_known {
            return true;
        }
        match previous.map(|p| p.life) {
            Some(Life::Alive) => this_host::exists(book.pid),
            _ => this_host::is_same(book.pid, book.claimed_boot_ns),
        }
    }

    /// Fill in the part of `book` that its owner writes.
    fn read_book(
        &self,
        book: &mut Book,
        previous: Option<&Book>,
        context: &ReadContext<'_>,
        buffers: &mut Buffers,
    ) -> Result<(), Error> {
        let heads = previous.map_or(24, |p| p.heads.len() + 4);
        self.copy_book(book, heads, context, &mut buffers.book)?;
        let buffer = &buffers.book;
        let most = self.header().stats_per_book as usize;
        let used = (u32_at(buffer, book::USED) as usize).min(most);
        book.run_start = u64_at(buffer, book::RUN_START);
        book.born = u64_at(buffer, book::BORN);
        book.transaction = u64_at(buffer, book::TRANSACTION);
        book.between = u64_at(buffer, book::BETWEEN);
        book.holding = u32_at(buffer, book::HOLDING);
        book.holds.extend(holds(buffer, book.holding));
        // If the owner has not noticed a reset, only the running account since the reset counts. If the clock has
        // restarted, the owner's times are later than all times since.
        let lags = u32_at(buffer, book::RESETS) != context.resets;
        if lags {
            let last = self.now().saturating_add(CLOCK_SLIP);
            let since = |tick| match (context.reset_tick..=last).contains(&tick) {
                true => tick,
                false => context.reset_tick,
            };
            book.run_start = since(book.run_start);
            book.born = since(book.born);
        } else {
            let call = |i| u64_at(buffer, book::CALLS + 8 * i);
            book.calls.extend((0..layout::CALLS).map(call));
        }
        book.heads.reserve_exact(used);
        for bytes in buffer[book::SIZE..].chunks_exact(head::SIZE).take(used) {
            let stat = self.known_stat(u32_at(bytes, head::STAT)).unwrap_or(NAMELESS);
            let mut head = Head::decode(bytes, stat);
            if lags {
                head.clear();
            }
            book.unnamed |= stat == NAMELESS;
            book.heads.push(head);
        }
        let comparable = previous.filter(|_| !lags);
        self.read_histograms(book, comparable, None, &mut buffers.histograms)?;
        let pend = layout::pending(u32_at(buffer, book::PEND)).filter(|_| !lags);
        book.pend = pend.map(|(head, ended)| Pending {
            head,
            ticks: u64_at(buffer, book::PEND_TICKS),
            ended,
        });
        if let Some((head, pend)) =
            book.pend.and_then(|pend| Some((book.heads.get_mut(pend.head)?, pend)))
        {
            head.total = head.total.saturating_add(pend.ticks);
            if pend.ended {
                head.count = head.count.saturating_add(1);
                head.min = head.min.min(pend.ticks);
                head.max = head.max.max(pend.ticks);
            }
        }
        let run = u32_at(buffer, book::RUN) as usize;
        book.run_head = (run < used).then_some(run);
        // The owner has closed the book since the entry was read.
        if book.life == Life::Alive && book.run_head.is_none() {
            let at = self.regions.entries.entry(book.slot);
            if self.read_u32(at + entry::STATE as u64)? != slot_state::LIVE {
                book.life = Life::Retired;
            }
        }
        // The running account ended with the process, at an unknown time after the previous snapshot.
        let until = match book.life {
            Life::Alive => book.now,
            Life::Dead | Life::Retired => previous.map_or(0, |p| p.now),
        };
        book.run_until(until);
        Ok(())
    }

    /// The sequence counter of the book at `base`.
    fn read_sequence(&self, base: u64) -> Result<u64, Error> {
        let mut bytes = [0; 8];
        self.read_book_bytes(base + book::SEQ as u64, &mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// Copy the book and its heads into `buffer` while they do not change.
    fn copy_book(
        &self,
        book: &mut Book,
        heads: usize,
        context: &ReadContext<'_>,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let base = self.regions.books.entry(book.slot);
        let most = self.header().stats_per_book as usize;
        let mut heads = heads.min(most);
        let mut tries = 0;
        loop {
            let before = self.read_sequence(base)?;
            fence(Ordering::Acquire);
            buffer.resize(book::SIZE + heads * head::SIZE, 0);
            self.read_book_bytes(base, buffer)?;
            let used = (u32_at(buffer, book::USED) as usize).min(most);
            if used > heads {
                heads = used;
                continue;
            }
            wait_for_loads();
            book.now = self.now_in(book.slot);
            wait_for_loads();
            book.seq = self.read_sequence(base)?;
            if before == book.seq && before % 2 == 0 {
                return Ok(());
            }
            tries += 1;
            let all = context.repeats.fetch_add(1, Ordering::Relaxed);
            // A process that has ended does not finish its update, and an image does not change. A stopped process may
            // take hours.
            let same = before == book.seq && (book.life != Life::Alive || !self.changes());
            if same || tries >= self.hooks.tries(BOOK_TRIES) || all >= ALL_TRIES {
                book.torn = book.life == Life::Alive;
                return Ok(());
            }
            if tries > 50 {
                std::thread::sleep(Duration::from_micros(50));
            } else {
                std::thread::yield_now();
            }
        }
    }
}
