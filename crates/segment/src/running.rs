// SPDX-License-Identifier: PostgreSQL
//! The running account of one slot, read without the rest of its book.

use crate::directory::StatId;
use crate::error::Error;
use crate::layout::{book, entry, head, slot_state, u32_at, u64_at};
use crate::segment::Segment;
use std::sync::atomic::{fence, Ordering};

/// The running account of a slot at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Running {
    /// The account.
    pub stat: StatId,
    /// When it began, tick.
    pub since: u64,
}

impl Segment {
    /// The running account of a slot; `None` if it cannot be read consistently at the first attempt, or the
    /// slot has another owner.
    pub(crate) fn running(&mut self, slot: u32, generation: u32) -> Result<Option<Running>, Error> {
        let mut owner = [0u8; 8];
        self.read(self.regions.entries.entry(slot), &mut owner)?;
        if u32_at(&owner, entry::STATE) != slot_state::LIVE
            || u32_at(&owner, entry::GENERATION) != generation
        {
            return Ok(None);
        }
        let base = self.regions.books.entry(slot);
        let before = self.read_u64(base + book::SEQ as u64)?;
        fence(Ordering::Acquire);
        let mut words = [0u8; book::PEND];
        self.read(base, &mut words)?;
        let run = u32_at(&words, book::RUN);
        if run >= self.header().stats_per_book {
            return Ok(None);
        }
        let stat = self.read_u32(base + (book::SIZE + run as usize * head::SIZE) as u64)?;
        fence(Ordering::Acquire);
        let after = self.read_u64(base + book::SEQ as u64)?;
        if before % 2 == 1 || before != after {
            return Ok(None);
        }
        let since = u64_at(&words, book::RUN_START);
        Ok(self.stat(stat)?.map(|stat| Running { stat, since }))
    }
}
