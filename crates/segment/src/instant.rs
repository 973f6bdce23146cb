// SPDX-License-Identifier: PostgreSQL
//! The activity of a slot's owner at this instant, for samplers, which read a few bytes instead of a snapshot.
//!
//! Any number of threads may read; writers are never disturbed. A reader that has stopped the owner (by
//! taking its CPU) gets the activity at which the owner was stopped. Other readers must compare
//! [`Doing::since`] with the instant of their sample: a later `since` means that the account has changed meanwhile.

use crate::directory::Stat;
use crate::error::Error;
use crate::layout::{book, current, entry, head, i32_at, key, slot_state, u32_at, u64_at};
use crate::segment::Segment;
use crate::statements::{FileKey, StatementKey};
use std::sync::atomic::{fence, Ordering};
use std::sync::Arc;

/// A slot in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupant {
    /// Number of the slot.
    pub slot: u32,
    /// Ordinal of the owner among the owners of the slot.
    pub generation: u32,
    /// The process.
    pub pid: i32,
    /// The leader, if this is a parallel worker, otherwise 0.
    pub leader_pid: i32,
}

/// An account as a book refers to it; [`Segment::account`] has its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountNumber(u32);

/// The activity of a slot's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doing {
    /// The running account.
    pub account: AccountNumber,
    /// When it began, tick.
    pub since: u64,
    /// Whether nothing changed during the reading, so that `since` and `statement` belong to the same instant as
    /// `account`.
    pub steady: bool,
    /// The statement that the owner works for; `None`: none, or not known yet.
    pub statement: Option<StatementKey>,
}

impl Segment {
    /// The slots in use.
    pub fn occupants(&self) -> Result<Vec<Occupant>, Error> {
        let mut found = Vec::new();
        self.each_entry(self.regions.entries, entry::DATABASE_ID, |slot, bytes| {
            if slot < self.header().slots && u32_at(bytes, entry::STATE) == slot_state::LIVE {
                found.push(Occupant {
                    slot,
                    generation: u32_at(bytes, entry::GENERATION),
                    pid: i32_at(bytes, entry::PID),
                    leader_pid: i32_at(bytes, entry::LEADER_PID),
                });
            }
        })?;
        Ok(found)
    }

    /// The activity of a slot's owner; `None` if the slot has another owner by now, or no account is running.
    pub fn doing(&self, who: &Occupant) -> Result<Option<Doing>, Error> {
        let mut owner = [0u8; entry::LEADER_PID];
        self.read(self.regions.entries.entry(who.slot), &mut owner)?;
        let same = u32_at(&owner, entry::STATE) == slot_state::LIVE
            && u32_at(&owner, entry::GENERATION) == who.generation
            && i32_at(&owner, entry::PID) == who.pid;
        if !same {
            return Ok(None);
        }
        let base = self.regions.books.entry(who.slot);
        // This reading defines the instant. Repeating it until nothing changes would favor long accounts over
        // short ones. The index by itself is one aligned word, and heads keep their index.
        let mut words = [0u8; book::PEND];
        self.read(base, &mut words)?;
        let run = u32_at(&words, book::RUN);
        if run >= self.header().stats_per_book {
            return Ok(None);
        }
        let at = base + (book::SIZE + run as usize * head::SIZE + head::STAT) as u64;
        let account = self.read_u32(at)?;
        let statement = self.statement_in_progress(who.slot)?;
        fence(Ordering::Acquire);
        let steady = self.read_u64(base + book::SEQ as u64)? == u64_at(&words, book::SEQ);
        Ok((account != 0).then(|| Doing {
            account: AccountNumber(account),
            since: u64_at(&words, book::RUN_START),
            steady,
            statement,
        }))
    }

    fn statement_in_progress(&self, slot: u32) -> Result<Option<StatementKey>, Error> {
        let Some(regions) = self.regions.statements else { return Ok(None) };
        // A cache without memory reads as zeros: no statement.
        let mut bytes = [0u8; current::SINCE];
        self.read(regions.caches.entry(slot), &mut bytes)?;
        let known =
            u64_at(&bytes, current::BEGUN) != 0 && u32_at(&bytes, current::KEY + key::BEFORE) == 0;
        let statement = known.then(|| FileKey::decode(&bytes, current::KEY));
        statement.filter(FileKey::is_identified).map(|key| self.statement_key(key)).transpose()
    }

    /// The account with this number; `None` if the directory has no such account.
    pub fn account(&mut self, number: AccountNumber) -> Result<Option<Arc<Stat>>, Error> {
        let id = self.stat(number.0)?;
        Ok(id.and_then(|id| self.directory.shared(id).cloned()))
    }
}
