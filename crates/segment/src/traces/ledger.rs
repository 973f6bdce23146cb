// SPDX-License-Identifier: PostgreSQL
//! The accounts of one process at one of its transitions, for comparison with its trace.

use crate::error::Error;
use crate::layout::{self, book, entry, head, slot_state, stat_kind, u32_at, u64_at};
use crate::segment::Segment;
use crate::statements::seqlock::Tries;
use std::collections::BTreeMap;

/// The accounts of a process up to the tick at which its running account began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger {
    /// The tick at which the running account began.
    pub tick: u64,
    /// The account running since then.
    pub running: Option<u32>,
    /// Number of resets that the process has carried out.
    pub resets: u32,
    /// Ticks of each account, by directory number; other statistics are not included.
    pub ticks: BTreeMap<u32, u64>,
}

impl Segment {
    /// The ledger of a slot, as long as this owner has it; `None`: the owner has ended, or the writer was too fast.
    pub fn ledger(&self, slot: u32, generation: u32) -> Result<Option<Ledger>, Error> {
        if slot >= self.header().slots {
            return Ok(None);
        }
        let is_same = || -> Result<bool, Error> {
            let at = self.regions.entries.entry(slot);
            Ok(self.read_u32(at + entry::GENERATION as u64)? == generation
                && self.read_u32(at + entry::STATE as u64)? == slot_state::LIVE)
        };
        let at = self.regions.books.entry(slot);
        let most = self.header().stats_per_book as usize;
        let used = (self.read_u32(at + book::USED as u64)? as usize).min(most);
        let mut bytes = vec![0; book::SIZE + used * head::SIZE];
        let tries = Tries::new(self);
        if !is_same()? || !self.read_under_seq(at, &mut bytes, &tries)? || !is_same()? {
            return Ok(None);
        }
        let mut ticks = BTreeMap::new();
        let pend = layout::pending(u32_at(&bytes, book::PEND));
        for index in 0..used {
            let at = book::SIZE + index * head::SIZE;
            let Some(stat) = u32_at(&bytes, at + head::STAT).checked_sub(1) else { continue };
            if !self.is_account(stat)? {
                continue;
            }
            let pending = pend.filter(|pending| pending.0 == index);
            let late = pending.map_or(0, |_| u64_at(&bytes, book::PEND_TICKS));
            if u64_at(&bytes, at + head::COUNT) != 0 || pending.is_some() {
                ticks.insert(stat, u64_at(&bytes, at + head::TOTAL).saturating_add(late));
            }
        }
        let run = u32_at(&bytes, book::RUN) as usize;
        let stat = (run < used).then(|| u32_at(&bytes, book::SIZE + run * head::SIZE + head::STAT));
        Ok(Some(Ledger {
            tick: u64_at(&bytes, book::RUN_START),
            running: stat.and_then(|stat| stat.checked_sub(1)),
            resets: u32_at(&bytes, book::RESETS),
            ticks,
        }))
    }

    fn is_account(&self, stat: u32) -> Result<bool, Error> {
        let region = self.regions.directory;
        Ok(stat < region.count
            && self.read_u32(region.entry(stat) + layout::directory::KIND as u64)?
                == stat_kind::ACCOUNT)
    }

    /// The name of a statistic, by directory number.
    pub fn stat_name(&self, stat: u32) -> Result<Option<String>, Error> {
        let region = self.regions.directory;
        if stat >= region.count {
            return Ok(None);
        }
        let mut bytes = [0; layout::directory::SIZE];
        self.read(region.entry(stat), &mut bytes)?;
        let name = layout::text_at(&bytes, layout::directory::NAME, layout::directory::NAME_BYTES);
        Ok((!name.is_empty()).then_some(name))
    }
}

impl Segment {
    /// The slot of a process, by its PID; `None`: pg_tally does not measure it.
    pub fn slot_of(&self, pid: i32) -> Result<Option<u32>, Error> {
        let slots = self.header().slots;
        let mut found = None;
        self.each_entry(self.regions.entries, entry::SIZE, |index, bytes| {
            let live = u32_at(bytes, entry::STATE) == slot_state::LIVE;
            if index < slots && live && layout::i32_at(bytes, entry::PID) == pid {
                found = Some(index);
            }
        })?;
        Ok(found)
    }

    /// The user and database of a slot's owner, as long as it has the slot.
    pub fn slot_texts(&self, slot: u32, generation: u32) -> Result<Option<SlotTexts>, Error> {
        if slot >= self.header().slots {
            return Ok(None);
        }
        let mut bytes = [0; entry::SIZE];
        self.read(self.regions.entries.entry(slot), &mut bytes)?;
        let ours = u32_at(&bytes, entry::GENERATION) == generation;
        let text = |at: usize| layout::text_at(&bytes, at, 64);
        Ok(ours.then(|| SlotTexts { user: text(entry::USER), database: text(entry::DATABASE) }))
    }
}

/// The user and database that a process works for; empty if there is no name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotTexts {
    /// Its user.
    pub user: String,
    /// Its database.
    pub database: String,
}
