// SPDX-License-Identifier: PostgreSQL
//! The statements in the sessions' caches, and the current statement of each session.
//!
//! Concurrency contract. A local entry is copied between two equal and even readings of its seq. Freeing
//! a local entry changes only its state, outside the seq; its content stays.

use super::account_ticks::AccountTicks;
use super::key::FileKey;
use super::last::MessageText;
use super::seqlock::{Tries, TwoCopies};
use super::sums::{parts_of, Sums};
use crate::error::Error;
use crate::header::StatementRegions;
use crate::layout::{
    self, book, current, entry, head, i32_at, local_statement, slot_state, u32_at, u64_at,
};
use crate::segment::Segment;
use std::sync::atomic::{fence, Ordering};

/// A copy of a used local entry.
#[derive(Debug, Clone)]
pub(super) struct Cached {
    pub slot: u32,
    pub index: u32,
    pub generation: u64,
    pub key: FileKey,
    pub sums: Sums,
    pub parts: Vec<AccountTicks>,
}

impl Cached {
    /// The local entry in `bytes`, unless it is free or was reset.
    fn decode(slot: u32, index: u32, bytes: &[u8]) -> Option<Cached> {
        let generation = u64_at(bytes, local_statement::GENERATION);
        let used = u32_at(bytes, local_statement::STATE) == 1
            && u64_at(bytes, local_statement::DROP) != generation;
        used.then(|| Cached {
            slot,
            index,
            generation,
            key: FileKey::decode(bytes, local_statement::KEY),
            sums: Sums::of_local(bytes),
            parts: parts_of(bytes, local_statement::PARTS, layout::PARTS).collect(),
        })
    }

    /// The item that its flush leaves in the log of a set.
    pub fn item(&self) -> u64 {
        self.generation << 24 | u64::from(self.index) << 16 | u64::from(self.slot)
    }
}

/// The current statement of a session.
#[derive(Debug, Clone)]
pub(super) struct Working {
    pub slot: u32,
    pub generation: u32,
    pub pid: i32,
    pub key: FileKey,
    /// The text of the message, while the key is not known.
    pub message: Option<MessageText>,
    /// When the statement began, and up to when its parts are complete, ticks.
    pub begun: u64,
    pub now: u64,
    pub parts: Vec<AccountTicks>,
    /// Time that is not in the parts yet.
    pub rest: Rest,
}

/// The statement that a session executes, or has executed last.
#[derive(Debug, Clone)]
pub(super) struct Current {
    pub slot: u32,
    pub generation: u32,
    /// The last known statement; if none is in progress, that of the last message.
    pub latest: FileKey,
    pub working: Option<Working>,
}

/// The latest time of a slot's owner: its pending wait, its running account, and CPU time in the running
/// account's phase in between.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rest {
    pub pending: Option<AccountTicks>,
    pub between: u64,
    pub running: Option<AccountTicks>,
}

/// A slot that may hold statements.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner {
    pub slot: u32,
    pub generation: u32,
    pub pid: i32,
    /// Whether the slot is claimed and its owner has not ended.
    pub live: bool,
    /// Number of local entries that have memory.
    pub local_entries: u32,
}

impl Owner {
    pub fn decode(slot: u32, bytes: &[u8]) -> Owner {
        Owner {
            slot,
            generation: u32_at(bytes, entry::GENERATION),
            pid: i32_at(bytes, entry::PID),
            live: u32_at(bytes, entry::STATE) == slot_state::LIVE,
            local_entries: u32_at(bytes, entry::LOCAL_STATEMENTS)
                .min(layout::LOCAL_STATEMENTS as u32),
        }
    }
}

impl Segment {
    /// The statements in the cache of a slot.
    pub(super) fn read_cache(
        &self,
        regions: &StatementRegions,
        owner: Owner,
        copies: &mut TwoCopies,
        tries: &Tries,
        found: &mut Vec<Cached>,
    ) -> Result<(), Error> {
        let used = |bytes: &[u8]| u32_at(bytes, local_statement::STATE) == 1;
        let at = local_at(regions, owner.slot, 0);
        self.read_twice(
            at,
            owner.local_entries as usize,
            local_statement::SIZE,
            used,
            copies,
            |_| Ok(()),
        )?;
        for (index, (bytes, rests)) in (0..).zip(copies.each(local_statement::SIZE)) {
            if used(bytes) {
                found.extend(match rests {
                    true => Cached::decode(owner.slot, index, bytes),
                    false => self.read_local_statement(regions, owner.slot, index, tries)?,
                });
            }
        }
        Ok(())
    }

    /// One local entry of a cache.
    pub(super) fn read_local_statement(
        &self,
        regions: &StatementRegions,
        slot: u32,
        index: u32,
        tries: &Tries,
    ) -> Result<Option<Cached>, Error> {
        let mut bytes = [0u8; local_statement::SIZE];
        self.read_under_seq(local_at(regions, slot, index), &mut bytes, tries)?;
        Ok(Cached::decode(slot, index, &bytes))
    }

    /// The current statement of a slot's owner.
    pub(super) fn read_current(
        &self,
        regions: &StatementRegions,
        owner: Owner,
        tries: &Tries,
    ) -> Result<Current, Error> {
        let at = regions.caches.entry(owner.slot);
        let mut bytes = [0u8; current::SIZE];
        let mut late = (Rest::default(), 0);
        let mut message = None;
        let current = |bytes: &[u8], working| Current {
            slot: owner.slot,
            generation: owner.generation,
            latest: FileKey::decode(bytes, current::KEY),
            working,
        };
        // A wait that is recorded between the two copies would be missing or counted twice.
        for _ in 0..10 {
            let quiet = self.read_under_seq(at, &mut bytes, tries)?;
            if u64_at(&bytes, current::BEGUN) == 0 {
                return Ok(current(&bytes, None));
            }
            message = self.message_text(regions, owner.slot, &bytes)?;
            let since = u64_at(&bytes, current::SINCE);
            late = self.rest_since(owner.slot, since, u64_at(&bytes, current::WAITS))?;
            fence(Ordering::Acquire);
            if !quiet || self.read_u64(at)? == u64_at(&bytes, current::SEQ) {
                break;
            }
        }
        let used = u32_at(&bytes, current::USED) as usize;
        let working = Working {
            slot: owner.slot,
            generation: owner.generation,
            pid: owner.pid,
            key: FileKey::of_current(&bytes),
            message,
            begun: u64_at(&bytes, current::BEGUN),
            now: late.1,
            parts: parts_of(&bytes, current::PARTS, used).collect(),
            rest: late.0,
        };
        Ok(current(&bytes, Some(working)))
    }

    /// The time of a slot's owner from the tick `since` until now, minus the waits already counted; and the
    /// current tick.
    fn rest_since(&self, slot: u32, since: u64, waits: u64) -> Result<(Rest, u64), Error> {
        let base = self.regions.books.entry(slot);
        let mut words = [0u8; book::PEND_TICKS + 8];
        for _ in 0..20 {
            let seq = self.read_u64(base + book::SEQ as u64)?;
            fence(Ordering::Acquire);
            self.read(base, &mut words)?;
            fence(Ordering::Acquire);
            if seq.is_multiple_of(2) && seq == self.read_u64(base + book::SEQ as u64)? {
                break;
            }
        }
        let now = if self.is_of_this_boot() { self.now_in(slot) } else { since }.max(since);
        if since == 0 {
            return Ok((Rest::default(), now));
        }
        let stat = |index: usize| -> Result<Option<u32>, Error> {
            if index >= self.header().stats_per_book as usize {
                return Ok(None);
            }
            let at = base + (book::SIZE + index * head::SIZE + head::STAT) as u64;
            Ok(Some(self.read_u32(at)?).filter(|&stat| stat != 0))
        };
        let part = |stat: Option<u32>, count, ticks: u64| {
            stat.filter(|_| ticks > 0).map(|stat| AccountTicks { stat, count, ticks })
        };
        let start = u64_at(&words, book::RUN_START).clamp(since, now);
        let pending = match layout::pending(u32_at(&words, book::PEND)) {
            Some((index, ended)) => {
                let ticks = u64_at(&words, book::PEND_TICKS).min(start - since);
                part(stat(index)?, u64::from(ended), ticks)
            }
            None => None,
        };
        let counted = pending.map_or(0, |p| p.ticks).saturating_add(waits);
        let rest = Rest {
            pending,
            between: (start - since).saturating_sub(counted),
            running: part(stat(u32_at(&words, book::RUN) as usize)?, 0, now - start),
        };
        Ok((rest, now))
    }
}

fn local_at(regions: &StatementRegions, slot: u32, index: u32) -> u64 {
    let first = regions.caches.entry(slot) + current::SIZE as u64;
    first + u64::from(index) * local_statement::SIZE as u64
}
