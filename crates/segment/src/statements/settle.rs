// SPDX-License-Identifier: PostgreSQL
//! Combines table and caches, so that each execution counts once.
//!
//! A session flushes a statement in this order: it adds the counts to the entry, writes the local entry
//! and its generation to the log of the entry's set, increments `flushes`, and frees the local entry. So
//! the reader notes `flushes` of every set, then copies the caches, then the entries and logs. If a copied
//! local entry was flushed in between (a log has it, or may have lost it), its shared entry may have been
//! copied before or after the flush. Such statements, and those that moved within the table, are read
//! again, one at a time. This is so fast that flushes in between are rare; if one happens, the reading is
//! repeated.

use super::caches::{Cached, Current, Owner};
use super::key::{sets_of, FileKey};
use super::seqlock::{Tries, TwoCopies};
use super::table::{Entry, SetHead};
use crate::error::Error;
use crate::header::StatementRegions;
use crate::layout;
use crate::segment::Segment;
use std::collections::HashMap;

/// The copies of one statement in table and caches.
#[derive(Debug, Default)]
pub(super) struct StatementCopies {
    pub entry: Option<Entry>,
    pub cached: Vec<Cached>,
    /// Whether there were two entries.
    twice: bool,
}

/// The logs of all sets, and the numbers of flushes before the caches were copied.
struct Logs {
    before: Vec<u64>,
    after: Vec<SetHead>,
}

impl Logs {
    /// Whether a copy of this key may have been flushed before its entry was copied.
    fn doubt(&self, key: &FileKey, copies: &[Cached]) -> bool {
        sets_of(key.tag(), self.after.len() as u32).into_iter().any(|set| {
            let (Some(head), Some(&before)) =
                (self.after.get(set as usize), self.before.get(set as usize))
            else {
                return true;
            };
            !head.tells_since(before) || copies.iter().any(|c| head.log.contains(&c.item()))
        })
    }
}

impl Segment {
    /// All statements, by key, and the current statement of each session. The time of a current statement is
    /// added to the cache at its end, so the two are read right after each other.
    pub(super) fn read_found(
        &self,
        regions: &StatementRegions,
        owners: &[Owner],
        tries: &Tries,
    ) -> Result<(HashMap<FileKey, StatementCopies>, Vec<Current>), Error> {
        let mut logs = Logs { before: Vec::new(), after: Vec::new() };
        let upto = layout::set::FLUSHES + 8;
        self.each_entry(regions.sets, upto, |_, bytes| {
            logs.before.push(layout::u64_at(bytes, layout::set::FLUSHES));
        })?;
        let mut buffers = TwoCopies::default();
        let (mut copies, mut current) = (Vec::new(), Vec::new());
        for owner in owners {
            self.read_cache(regions, *owner, &mut buffers, tries, &mut copies)?;
            if owner.live {
                current.push(self.read_current(regions, *owner, tries)?);
            }
        }
        let mut entries = Vec::new();
        for (set, tags) in (0..).zip(self.read_tags(regions)?) {
            self.read_entries_of(regions, set, &tags, &mut buffers, tries, &mut entries)?;
            logs.after.push(self.read_set(regions, set)?);
        }

        let mut all: HashMap<FileKey, StatementCopies> = HashMap::with_capacity(entries.len());
        for entry in entries {
            let found = all.entry(entry.key).or_default();
            found.twice |= found.entry.is_some();
            found.entry = Some(entry);
        }
        for copy in copies {
            all.entry(copy.key).or_default().cached.push(copy);
        }
        for (key, found) in &mut all {
            let cached = &found.cached;
            let doubt = !cached.is_empty() && (found.entry.is_none() || logs.doubt(key, cached));
            if doubt || found.twice {
                *found = self.settle(regions, key, &found.cached, tries)?;
            }
        }
        Ok((all, current))
    }

    /// One statement, which has copies in these local entries.
    fn settle(
        &self,
        regions: &StatementRegions,
        key: &FileKey,
        local: &[Cached],
        tries: &Tries,
    ) -> Result<StatementCopies, Error> {
        let tag = key.tag();
        let sets = sets_of(tag, regions.sets.count);
        let mut attempt = 0;
        loop {
            let before = [self.read_set(regions, sets[0])?, self.read_set(regions, sets[1])?];
            let mut found = StatementCopies::default();
            for at in local {
                let copy = self.read_local_statement(regions, at.slot, at.index, tries)?;
                found.cached.extend(copy.filter(|copy| copy.key == *key));
            }
            for set in sets {
                let tags = self.read_set(regions, set)?.tags;
                let first = set * layout::WAYS as u32;
                for (number, _) in (first..).zip(tags).filter(|(_, t)| *t == tag as u32) {
                    let entry = self.read_entry(regions, number, tries)?;
                    let entry = entry.filter(|entry| entry.key == *key);
                    found.entry = found.entry.or(entry);
                }
            }
            let after = [self.read_set(regions, sets[0])?, self.read_set(regions, sets[1])?];
            let logged = |heads: &[SetHead; 2], item| heads.iter().any(|h| h.log.contains(&item));
            // If it was flushed before, it is in the entry; if it was not flushed, it is not; if in between, that is
            // unknown.
            let sure = before.iter().zip(&after).all(|(b, a)| a.tells_since(b.flushes_before))
                && found
                    .cached
                    .iter()
                    .all(|c| logged(&before, c.item()) || !logged(&after, c.item()));
            if sure || !tries.wait(attempt) {
                found.cached.retain(|c| !logged(&after, c.item()));
                return Ok(found);
            }
            attempt += 1;
        }
    }
}
