// SPDX-License-Identifier: PostgreSQL
//! Reads the table and the local entries together, so that each operation counts once.
//!
//! Concurrency contract. A local entry is marked as being flushed before `flushes` of the shared entry
//! grows, and becomes free only after all its sums have been added. So the reader notes `flushes`, copies
//! the local entries, then the shared entry. If `flushes` is unchanged and no local entry was being
//! flushed, each sum was in exactly one of the two. Other entries are read again.

use super::{RelationKey, RelationSums, Relations};
use crate::error::Error;
use crate::header::RelationRegions;
use crate::layout::{
    self, book, entry, header, local_relation, local_state, relation, relation_state, u32_at,
    u64_at,
};
use crate::level::resets_of_word;
use crate::owners::Names;
use crate::segment::Segment;
use crate::statements::seqlock::{Tries, TwoCopies};
use std::collections::HashMap;
use std::sync::atomic::{fence, Ordering};
use std::time::Duration;

/// Maximum number of rounds of reading entries that are being flushed.
const ROUNDS: u32 = 20;
/// Time between two rounds.
const PAUSE: Duration = Duration::from_micros(100);

/// Local entries of the slots, by entry of the table.
#[derive(Default)]
struct LocalRelations {
    sums: HashMap<u32, RelationSums>,
    /// Entries into which a local entry is being flushed.
    leaving: Vec<u32>,
}

impl LocalRelations {
    fn add(&mut self, local: &[u8]) {
        let entry = u32_at(local, local_relation::ENTRY);
        match u32_at(local, local_relation::STATE) {
            local_state::FREE => {}
            local_state::USED => {
                let sums = RelationSums::decode(local, local_relation::OF, local_relation::FAILED);
                self.sums.entry(entry).or_default().add(&sums);
            }
            _ => self.leaving.push(entry),
        }
    }
}

impl Segment {
    /// Read all relations; `None`: the segment keeps none.
    pub fn relations(&self) -> Result<Option<Relations>, Error> {
        let Some(regions) = self.regions.relations else {
            return Ok(None);
        };
        let live = self.read_live()?;
        let resets = resets_of_word(u32_at(&live, header::LEVEL_WORD));
        let mut relations = Relations {
            sums: HashMap::new(),
            resets,
            second: 1.0 / self.clock.ticks_per_second(),
            capacity: regions.table.count - 1,
            entries: 0,
            overflow: u64_at(&live, header::OVERFLOW_RELATIONS),
            torn: 0,
            databases: HashMap::new(),
        };
        let (mut slots, mut names) = (Vec::new(), Names::default());
        let count = self.header().slots;
        self.each_entry(self.regions.entries, entry::SIZE, |index, bytes| {
            names.add_entry(bytes);
            if index < count && u32_at(bytes, entry::LOCAL_RELATIONS) != 0 {
                slots.push(index);
            }
        })?;
        relations.databases = names.databases;
        let tries = Tries::new(self);
        let mut wanted = vec![true; regions.table.count as usize];
        let rounds = self.hooks.tries(ROUNDS);
        for round in 1..=rounds {
            let last = round == rounds || !self.changes();
            let left =
                self.read_round(&regions, &slots, &tries, &mut wanted, last, &mut relations)?;
            if last {
                relations.torn = left;
            }
            // A local entry that was copied during an update may be inconsistent.
            if left == 0 || last {
                relations.torn = relations.torn.saturating_add(tries.torn());
            }
            if left == 0 || last {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        Ok(Some(relations))
    }

    /// Read the requested entries that are not being flushed; in the last round, all of them. Returns the number
    /// of entries being flushed.
    fn read_round(
        &self,
        regions: &RelationRegions,
        slots: &[u32],
        tries: &Tries,
        wanted: &mut [bool],
        last: bool,
        into: &mut Relations,
    ) -> Result<u32, Error> {
        let mut before = Vec::with_capacity(wanted.len());
        self.each_entry(regions.table, relation::FLUSHES + 8, |_, bytes| {
            before.push(u64_at(bytes, relation::FLUSHES));
        })?;
        fence(Ordering::Acquire);
        let kept = self.read_local(regions, slots, into.resets, tries)?;
        fence(Ordering::Acquire);
        let mut entries = Vec::new();
        self.each_entry(regions.table, relation::SIZE, |number, bytes| {
            if wanted[number as usize] {
                let key = RelationKey::decode(bytes);
                let used = matches!(
                    u32_at(bytes, relation::STATE),
                    relation_state::USED | relation_state::UNLINKED
                );
                let sums = RelationSums::decode(bytes, relation::OF, relation::FAILED);
                entries.push((number, used.then_some((key, sums))));
            }
        })?;
        fence(Ordering::Acquire);
        let mut after = Vec::with_capacity(wanted.len());
        self.each_entry(regions.table, relation::FLUSHES + 8, |_, bytes| {
            after.push(u64_at(bytes, relation::FLUSHES));
        })?;
        let mut left = 0;
        for (number, entry) in entries {
            let at = number as usize;
            let rests = before.get(at) == after.get(at) && !kept.leaving.contains(&number);
            if !rests {
                left += 1;
                if !last {
                    continue;
                }
            }
            wanted[at] = false;
            let Some((key, mut sums)) = entry else { continue };
            if let Some(more) = kept.sums.get(&number) {
                sums.add(more);
            }
            into.entries += u32::from(!key.is_others());
            // A relation may have two entries.
            into.sums.entry(key).or_default().add(&sums);
        }
        Ok(left)
    }

    fn read_local(
        &self,
        regions: &RelationRegions,
        slots: &[u32],
        resets: u32,
        tries: &Tries,
    ) -> Result<LocalRelations, Error> {
        let mut kept = LocalRelations::default();
        let mut copies = TwoCopies::default();
        for &slot in slots {
            // Until its owner has noticed a reset, its local entries do not count.
            if self.read_u32(self.regions.books.entry(slot) + book::RESETS as u64)? != resets {
                continue;
            }
            let at = regions.local.entry(slot);
            let used = |bytes: &[u8]| u32_at(bytes, local_relation::STATE) != 0;
            let (count, size) = (layout::LOCAL_RELATIONS, local_relation::SIZE);
            self.read_twice(at, count, size, used, &mut copies, |_| Ok(()))?;
            for (index, (bytes, rests)) in (0u64..).zip(copies.each(size)) {
                if rests {
                    kept.add(bytes);
                } else if used(bytes) {
                    let mut bytes = [0u8; local_relation::SIZE];
                    self.read_under_seq(at + index * size as u64, &mut bytes, tries)?;
                    kept.add(&bytes);
                }
            }
        }
        Ok(kept)
    }
}
