// SPDX-License-Identifier: PostgreSQL
//! The owner of a pid, looked up among the slots in use without reading their books.

use crate::book::{identity_of, Identity};
use crate::error::Error;
use crate::layout::{book, entry, i32_at, state, text_at, u32_at, u64_at};
use crate::segment::Segment;
use std::collections::HashMap;
use std::sync::atomic::{fence, Ordering};
use std::sync::Arc;

/// A process that has a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The process.
    pub pid: i32,
    /// Since when it has the slot, tick.
    pub since: u64,
    /// Its identity.
    pub identity: Arc<Identity>,
}

/// Names of databases and users by OID, as sessions report them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    pub databases: HashMap<u32, String>,
    pub users: HashMap<u32, String>,
}

impl Names {
    /// Add names; an OID of 0 or an empty name is unknown.
    pub fn add(&mut self, (database_id, user_id): (u32, u32), database: &str, user: &str) {
        let pairs =
            [(&mut self.databases, database_id, database), (&mut self.users, user_id, user)];
        for (known, id, name) in pairs {
            if id != 0 && !name.is_empty() && !known.contains_key(&id) {
                known.insert(id, name.to_string());
            }
        }
    }

    /// Add the names in the entry of a slot or group, unless its identity is changing.
    pub fn add_entry(&mut self, bytes: &[u8]) {
        let ids = (u32_at(bytes, entry::DATABASE_ID), u32_at(bytes, entry::USER_ID));
        let known = |map: &HashMap<_, _>, id| id == 0 || map.contains_key(&id);
        let new = !known(&self.databases, ids.0) || !known(&self.users, ids.1);
        if new && u32_at(bytes, entry::IDENTITY_SEQ).is_multiple_of(2) {
            let Identity { database, user, .. } = identity_of(bytes);
            self.add(ids, &database, &user);
        }
    }
}

impl Segment {
    /// The identity of a slot's owner, read while it does not change.
    pub(crate) fn read_identity(&self, index: u32) -> Result<(Arc<Identity>, u32), Error> {
        let offset = self.regions.entries.entry(index);
        let mut bytes = [0u8; entry::SIZE];
        let mut client = [0u8; 64];
        for _ in 0..self.hooks.tries(100) {
            // A reading of its own: within one, an aarch64 processor may copy the seq last.
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

    /// The owners of slots in use whose pid is one of `pids`.
    pub fn owners(&self, pids: &[i32]) -> Result<Vec<Owner>, Error> {
        let mut found = Vec::new();
        self.each_entry(self.regions.entries, entry::SIZE, |slot, bytes| {
            let (pid, state) = (i32_at(bytes, entry::PID), u32_at(bytes, entry::STATE));
            let in_use = [state::LIVE, state::RETIRED, state::MERGING].contains(&state);
            if in_use && pids.contains(&pid) {
                found.push((slot, pid, u64_at(bytes, entry::CLAIMED_TICK)));
            }
        })?;
        let owner =
            |(slot, pid, since)| Ok(Owner { pid, since, identity: self.read_identity(slot)?.0 });
        found.into_iter().map(owner).collect()
    }
}

/// The owner of a pid at that tick; pids are reused.
pub fn owner_at(owners: &[Owner], pid: i32, tick: u64) -> Option<&Owner> {
    let meant = owners.iter().filter(|owner| owner.pid == pid && owner.since <= tick);
    meant.max_by_key(|owner| owner.since)
}
