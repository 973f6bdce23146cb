// SPDX-License-Identifier: PostgreSQL
//! Sessions that wait for a heavyweight lock, and their blockers, as the sessions themselves found them.
//!
//! Concurrency contract. A slot's entry is copied between two equal and even readings of its seq. It is valid
//! only while the owner's running account is a wait for a lock: see [`Blocked`].

use crate::error::Error;
use crate::layout::{self, blocked, entry, i32_at, slot_state, u32_at, u64_at};
use crate::segment::Segment;
use crate::statements::seqlock::Tries;

/// A heavyweight lock, as PostgreSQL's LOCKTAG.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockTag {
    /// The first three fields.
    pub fields: [u32; 3],
    /// The fourth field.
    pub field4: u16,
    /// LockTagType.
    pub kind: u8,
    /// Lock method: 1 for the server's own locks, 2 for advisory locks.
    pub method: u8,
}

/// A session that waits for a lock. It is valid only if the session's account, read afterwards, is still a wait for a
/// lock, because the entry of a wait that has ended stays until the next wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// Its slot.
    pub slot: u32,
    /// Generation of the slot, which identifies its owner.
    pub generation: u32,
    /// The process.
    pub pid: i32,
    /// When the wait began, tick.
    pub since: u64,
    /// The lock that the session waits for.
    pub lock: LockTag,
    /// The mode that the session waits for: a LOCKMODE.
    pub mode: u16,
    /// The PIDs of the first [`layout::BLOCKERS`] blockers, as pg_blocking_pids() returns them. 0: a prepared
    /// transaction.
    pub blockers: Vec<i32>,
    /// Number of blockers.
    pub count: u16,
}

impl Blocked {
    /// Decodes the entry of a slot, and a consistent copy of the part about blockers; `None`: the session is not
    /// blocked.
    fn decode(slot: u32, entry_bytes: &[u8], bytes: &[u8]) -> Option<Blocked> {
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        let u16_at = |at: usize| u16::from_ne_bytes([byte(at), byte(at + 1)]);
        let since = u64_at(bytes, blocked::SINCE);
        let count = u16_at(blocked::COUNT);
        let listed = usize::from(count).min(layout::BLOCKERS);
        (since != 0).then(|| Blocked {
            slot,
            generation: u32_at(entry_bytes, entry::GENERATION),
            pid: i32_at(entry_bytes, entry::PID),
            since,
            lock: LockTag {
                fields: [0, 4, 8].map(|at| u32_at(bytes, blocked::FIELD + at)),
                field4: u16_at(blocked::FIELD4),
                kind: byte(blocked::TYPE),
                method: byte(blocked::METHOD),
            },
            mode: u16_at(blocked::MODE),
            blockers: (0..listed).map(|i| i32_at(bytes, blocked::PIDS + 4 * i)).collect(),
            count,
        })
    }
}

impl Segment {
    /// The entries of all slots. Take a snapshot afterwards, to see which waits have ended.
    pub fn blocked(&self) -> Result<Vec<Blocked>, Error> {
        let slots = self.header().slots;
        let mut candidates = Vec::new();
        self.each_entry(self.regions.entries, entry::SIZE, |index, bytes| {
            let since = u64_at(bytes, entry::BLOCKED + blocked::SINCE);
            if index < slots && u32_at(bytes, entry::STATE) == slot_state::LIVE && since != 0 {
                candidates.push((index, bytes.to_vec()));
            }
        })?;
        let tries = Tries::new(self);
        let mut all = Vec::with_capacity(candidates.len());
        for (slot, entry_bytes) in candidates {
            let mut bytes = [0u8; blocked::SIZE];
            let at = self.regions.entries.entry(slot) + entry::BLOCKED as u64;
            if self.read_under_seq(at, &mut bytes, &tries)? {
                all.extend(Blocked::decode(slot, &entry_bytes, &bytes));
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_lists_no_more_blockers_than_it_has_space_for() {
        let mut bytes = [0u8; blocked::SIZE];
        assert_eq!(Blocked::decode(0, &[0; entry::SIZE], &bytes), None);
        bytes[blocked::SINCE] = 1;
        bytes[blocked::COUNT..blocked::COUNT + 2].copy_from_slice(&u16::MAX.to_ne_bytes());
        let all = Blocked::decode(0, &[0; entry::SIZE], &bytes).unwrap();
        assert_eq!((all.blockers.len(), all.count), (layout::BLOCKERS, u16::MAX));
        // A damaged segment.
        assert!(Blocked::decode(0, &[], &bytes[..16]).unwrap().blockers.is_empty());
    }
}
