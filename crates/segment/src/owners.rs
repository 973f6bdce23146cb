// SPDX-License-Identifier: PostgreSQL
//! Looks up the owner of a PID among the slots in use, without reading their books.

use crate::book::{identity_of, Identity};
use crate::error::Error;
use crate::layout::{book, entry, i32_at, slot_state, text_at, u32_at, u64_at};
use crate::segment::Segment;
use std::collections::HashMap;
use std::sync::atomic::{fence, Ordering};
use std::sync::Arc;

/// A process that has a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The process.
    pub pid: i32,
    /// When it claimed the slot, tick.
    pub since: u64,
    /// Its identity.
    pub identity: Arc<Identity>,
}

/// Names of databases and users by OID, as reported by sessions. After a renaming, the latest session counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    pub databases: HashMap<u32, String>,
    pub users: HashMap<u32, String>,
    /// When the session that reports the name began, tick; the key says whether it is a user, and the OID.
    begun: HashMap<(bool, u32), u64>,
}

impl Names {
    /// Add the names that a session reports, which began at this tick; an OID of 0 or an empty name is unknown.
    pub fn add(&mut self, ids: (u32, u32), database: &str, user: &str, begun: u64) {
        for (is_user, id, name) in [(false, ids.0, database), (true, ids.1, user)] {
            if name.is_empty() || !self.is_newer((is_user, id), begun) {
                continue;
            }
            let known = if is_user { &mut self.users } else { &mut self.databases };
            known.insert(id, name.to_string());
            self.begun.insert((is_user, id), begun);
        }
    }

    fn is_newer(&self, of: (bool, u32), begun: u64) -> bool {
        of.1 != 0 && self.begun.get(&of).is_none_or(|known| begun > *known)
    }

    /// Add the names in the entry of a slot or group, unless its identity is changing. A group has the names of its
    /// first session.
    pub fn add_entry(&mut self, bytes: &[u8]) {
        let ids = (u32_at(bytes, entry::DATABASE_ID), u32_at(bytes, entry::USER_ID));
        let begun = match u32_at(bytes, entry::STATE) {
            slot_state::GROUP => 0,
            _ => u64_at(bytes, entry::CLAIMED_TICK),
        };
        let new = self.is_newer((false, ids.0), begun) || self.is_newer((true, ids.1), begun);
        if new && u32_at(bytes, entry::IDENTITY_SEQ).is_multiple_of(2) {
            let Identity { database, user, .. } = identity_of(bytes);
            self.add(ids, &database, &user, begun);
        }
    }
}

impl Segment {
    /// The identity of a slot's owner, read consistently.
    pub(crate) fn read_identity(&self, index: u32) -> Result<(Arc<Identity>, u32), Error> {
        let offset = self.regions.entries.entry(index);
        let mut bytes = [0u8; entry::SIZE];
        let mut client = [0u8; 64];
        for _ in 0..self.hooks.tries(100) {
            // A separate reading, because within one, an aarch64 CPU may copy the seq last.
            let before = self.read_u32(offset + entry::IDENTITY_SEQ as u64)?;
            fence(Ordering::Acquire);
            self.read(offset, &mut bytes)?;
            self.read(self.regions.books.entry(index) + book::CLIENT as u64, &mut client)?;
            fence(Ordering::Acquire);
            let seq = self.read_u32(offset + entry::IDENTITY_SEQ as u64)?;
            if seq.is_multiple_of(2) && seq == before {
                break;
            }
            std::thread::yield_now();
        }
        let identity = Identity { client: text_at(&client, 0, 64), ..identity_of(&bytes) };
        Ok((Arc::new(identity), u32_at(&bytes, entry::IDENTITY_SEQ)))
    }

    /// The owners of slots in use whose PID is one of `pids`.
    pub fn owners(&self, pids: &[i32]) -> Result<Vec<Owner>, Error> {
        let mut found = Vec::new();
        self.each_entry(self.regions.entries, entry::SIZE, |slot, bytes| {
            let (pid, state) = (i32_at(bytes, entry::PID), u32_at(bytes, entry::STATE));
            let in_use =
                [slot_state::LIVE, slot_state::RETIRED, slot_state::MERGING].contains(&state);
            if in_use && pids.contains(&pid) {
                found.push((slot, pid, u64_at(bytes, entry::CLAIMED_TICK)));
            }
        })?;
        let owner =
            |(slot, pid, since)| Ok(Owner { pid, since, identity: self.read_identity(slot)?.0 });
        found.into_iter().map(owner).collect()
    }
}

/// The owner of a PID at this tick; PIDs are reused.
pub fn owner_at(owners: &[Owner], pid: i32, tick: u64) -> Option<&Owner> {
    let meant = owners.iter().filter(|owner| owner.pid == pid && owner.since <= tick);
    meant.max_by_key(|owner| owner.since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_renaming_the_name_is_that_of_the_session_that_began_last() {
        let mut names = Names::default();
        for (database, user, begun) in
            [("shop", "app", 5), ("shop", "web", 9), ("old", "app", 7), ("older", "", 0)]
        {
            names.add((1, 10), database, user, begun);
        }
        names.add((2, 0), "other", "nobody", 3);
        assert_eq!(names.users, HashMap::from([(10, "web".to_string())]));
        let databases = [(1, "shop".to_string()), (2, "other".to_string())];
        assert_eq!(names.databases, HashMap::from(databases));
    }
}
