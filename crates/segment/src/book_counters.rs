// SPDX-License-Identifier: PostgreSQL
//! The few words of a book that change with every command, for readers that poll hundreds of times per
//! second.
//!
//! Each word is read separately, and its single writer writes it as a whole, so no word tears. Two words
//! may come from different instants.

use crate::error::Error;
use crate::layout::{self, book, entry, i32_at, text_at, u32_at, u64_at};
use crate::segment::Segment;
use std::sync::atomic::{fence, Ordering};

/// A slot in use and its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Its number.
    pub slot: u32,
    /// Number of times that the slot was claimed.
    pub generation: u32,
    /// The process.
    pub pid: i32,
    /// The kind of process, such as "client backend".
    pub kind: String,
}

/// Counters of a book that change with every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BookCounters {
    /// Twice the number of changes made to the book. Does not grow while the level is off.
    pub seq: u64,
    /// Calls through the given probe.
    pub calls: u64,
}

impl Segment {
    /// The slots in use whose identity is not being changed at the moment.
    pub fn claims(&self) -> Result<Vec<Claim>, Error> {
        let region = self.regions.entries;
        let mut one = [0u8; entry::SIZE];
        let mut claims = Vec::new();
        for slot in 0..self.header().slots {
            let at = region.entry(slot);
            if self.read_u32(at)? != layout::slot_state::LIVE {
                continue;
            }
            let seq = self.read_u32(at + entry::IDENTITY_SEQ as u64)?;
            fence(Ordering::Acquire);
            self.read(at, &mut one)?;
            fence(Ordering::Acquire);
            let changing = seq % 2 == 1 || seq != self.read_u32(at + entry::IDENTITY_SEQ as u64)?;
            if changing || u32_at(&one, entry::STATE) != layout::slot_state::LIVE {
                continue;
            }
            claims.push(Claim {
                slot,
                generation: u32_at(&one, entry::GENERATION),
                pid: i32_at(&one, entry::PID),
                kind: text_at(&one, entry::KIND, entry::KIND_BYTES),
            });
        }
        Ok(claims)
    }

    /// The counters of a slot; `probe` is the index in the table of probes.
    pub fn book_counters(&self, slot: u32, probe: u32) -> Result<BookCounters, Error> {
        let mut bytes = [0u8; book::CALLS + 8 * layout::CALLS];
        if slot < self.regions.books.count {
            self.read(self.regions.books.entry(slot), &mut bytes)?;
        }
        let calls = book::CALLS + 8 * (probe as usize).min(layout::CALLS - 1);
        Ok(BookCounters { seq: u64_at(&bytes, book::SEQ), calls: u64_at(&bytes, calls) })
    }

    /// Twice the number of changes of a slot's current statement. Does not grow while statements are
    /// paused, or if the segment keeps none.
    pub fn statement_changes(&self, slot: u32) -> Result<u64, Error> {
        match self.regions.statements.filter(|all| slot < all.caches.count) {
            Some(regions) => self.read_u64(regions.caches.entry(slot)),
            None => Ok(0),
        }
    }

    /// Whether the segment keeps statements.
    pub fn keeps_statements(&self) -> bool {
        self.regions.statements.is_some()
    }
}
