// SPDX-License-Identifier: PostgreSQL
//! The table that all writers share: its sets and their entries.
//!
//! Concurrency contract. An entry and its rest are copied between two equal and even readings of its
//! seq. `flushes` counts the flushes into a set; it and the log change while the entry's seq is odd.

use super::account_ticks::AccountTicks;
use super::key::FileKey;
use super::seqlock::{Tries, TwoCopies};
use super::sums::{parts_of_entry, Sums};
use crate::error::Error;
use crate::header::StatementRegions;
use crate::layout::{self, rest, set, statement, u32_at, u64_at};
use crate::segment::Segment;
use crate::statement_text::TextLocation;
use std::sync::atomic::{fence, Ordering};

/// A copy of an entry in use.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub number: u32,
    pub key: FileKey,
    pub born: u64,
    pub since_us: i64,
    pub text: TextLocation,
    pub sums: Sums,
    pub parts: Vec<AccountTicks>,
}

impl Entry {
    fn decode(number: u32, bytes: &[u8], rest: Option<&[u8]>) -> Option<Entry> {
        (u32_at(bytes, statement::STATE) == 1).then(|| Entry {
            number,
            key: FileKey::decode(bytes, statement::KEY),
            born: u64_at(bytes, statement::BORN),
            since_us: u64_at(bytes, statement::SINCE_US) as i64,
            text: TextLocation::decode(bytes),
            sums: Sums::of_entry(bytes, rest),
            parts: parts_of_entry(bytes, rest),
        })
    }
}

/// Flushes, tags and log of a set.
#[derive(Debug, Clone)]
pub(super) struct SetHead {
    /// Number of flushes into the set before the log was copied.
    pub flushes_before: u64,
    /// Number of flushes afterwards.
    pub flushes_after: u64,
    pub tags: [u32; layout::WAYS],
    pub log: [u64; layout::SET_LOG],
}

impl SetHead {
    /// Whether the log has all flushes since the set had counted `flushes`.
    pub fn tells_since(&self, flushes: u64) -> bool {
        self.flushes_after.wrapping_sub(flushes) <= layout::SET_LOG as u64
    }
}

fn tags_of(bytes: &[u8]) -> [u32; layout::WAYS] {
    std::array::from_fn(|way| u32_at(bytes, set::TAGS + 4 * way))
}

/// Whether the rest of an entry is in use.
fn has_rest(bytes: &[u8]) -> bool {
    u32_at(bytes, statement::STATE) == 1 && u32_at(bytes, statement::MORE) != 0
}

impl Segment {
    /// The tags of all sets.
    pub(super) fn read_tags(
        &self,
        regions: &StatementRegions,
    ) -> Result<Vec<[u32; layout::WAYS]>, Error> {
        let mut tags = Vec::with_capacity(regions.sets.count as usize);
        self.each_entry(regions.sets, set::LOG, |_, bytes| tags.push(tags_of(bytes)))?;
        Ok(tags)
    }

    pub(super) fn read_set(&self, regions: &StatementRegions, set: u32) -> Result<SetHead, Error> {
        let at = regions.sets.entry(set);
        let flushes_before = self.read_u64(at + set::FLUSHES as u64)?;
        fence(Ordering::Acquire);
        let mut bytes = [0u8; set::SIZE];
        self.read(at, &mut bytes)?;
        fence(Ordering::Acquire);
        Ok(SetHead {
            flushes_before,
            flushes_after: self.read_u64(at + set::FLUSHES as u64)?,
            tags: tags_of(&bytes),
            log: std::array::from_fn(|n| u64_at(&bytes, set::LOG + 8 * n)),
        })
    }

    /// The entries of a set that have a tag.
    pub(super) fn read_entries_of(
        &self,
        regions: &StatementRegions,
        set: u32,
        tags: &[u32; layout::WAYS],
        copies: &mut TwoCopies,
        tries: &Tries,
        found: &mut Vec<Entry>,
    ) -> Result<(), Error> {
        let first = set * layout::WAYS as u32;
        let tagged = || (first..).zip(tags).filter(|(_, &tag)| tag != 0).map(|(number, _)| number);
        let Some((low, high)) = tagged().next().zip(tagged().last()) else {
            return Ok(());
        };
        if regions.table.stride as usize != statement::SIZE {
            for number in tagged() {
                found.extend(self.read_entry(regions, number, tries)?);
            }
            return Ok(());
        }
        let used = |bytes: &[u8]| u32_at(bytes, statement::STATE) == 1;
        let count = (high - low + 1) as usize;
        // The rests from the first used one to the last, and the number of the first one.
        let (mut rests, mut begin) = (Vec::new(), low);
        let at = regions.table.entry(low);
        self.read_twice(at, count, statement::SIZE, used, copies, |bytes| {
            let in_use =
                || (low..).zip(bytes.chunks_exact(statement::SIZE)).filter(|e| has_rest(e.1));
            if let (Some((first, _)), Some((last, _))) = (in_use().next(), in_use().last()) {
                begin = first;
                rests.resize((last - first + 1) as usize * rest::SIZE, 0);
                self.read(regions.rests.entry(first), &mut rests)?;
            }
            Ok(())
        })?;
        let rest_of = |number: u32| {
            let from = (number.checked_sub(begin)? as usize).checked_mul(rest::SIZE)?;
            rests.get(from..from + rest::SIZE)
        };
        for (number, (bytes, still)) in (low..).zip(copies.each(statement::SIZE)) {
            if still {
                let rest = if has_rest(bytes) { rest_of(number) } else { None };
                found.extend(Entry::decode(number, bytes, rest));
            } else if tags[(number - first) as usize] != 0 {
                found.extend(self.read_entry(regions, number, tries)?);
            }
        }
        Ok(())
    }

    /// One entry.
    pub(super) fn read_entry(
        &self,
        regions: &StatementRegions,
        number: u32,
        tries: &Tries,
    ) -> Result<Option<Entry>, Error> {
        let mut bytes = [0u8; statement::SIZE];
        let mut rest = Vec::new();
        self.read_under_seq_with(regions.table.entry(number), &mut bytes, tries, |bytes| {
            rest.resize(if has_rest(bytes) { rest::SIZE } else { 0 }, 0);
            self.read(regions.rests.entry(number), &mut rest)
        })?;
        Ok(Entry::decode(number, &bytes, Some(rest.as_slice()).filter(|rest| !rest.is_empty())))
    }
}
