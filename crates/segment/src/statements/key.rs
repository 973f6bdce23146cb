// SPDX-License-Identifier: PostgreSQL
//! The key of a statement, and the sets that may have its entry.

use crate::layout::{current, key, u32_at, u64_at};
use serde::Serialize;

/// The key of a statement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct StatementKey {
    /// The query identifier; 0: work of unknown statements.
    pub id: u64,
    /// Its database.
    pub database_id: u32,
    /// The user who ran it.
    pub user_id: u32,
    /// Whether the client sent it itself; false: nested in another statement.
    pub toplevel: bool,
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
const MIX: u64 = 0xD6E8_FEB8_6659_FD93;

impl StatementKey {
    pub(crate) fn decode(bytes: &[u8], at: usize) -> StatementKey {
        StatementKey {
            id: u64_at(bytes, at + key::ID),
            database_id: u32_at(bytes, at + key::DATABASE_ID),
            user_id: u32_at(bytes, at + key::USER_ID),
            toplevel: u32_at(bytes, at + key::TOPLEVEL) != 0,
        }
    }

    /// The statement to which the time in a current belongs.
    pub(super) fn of_current(bytes: &[u8]) -> StatementKey {
        match u32_at(bytes, current::KEY + key::BEFORE) {
            0 => StatementKey::decode(bytes, current::KEY),
            _ => StatementKey { toplevel: true, ..StatementKey::default() },
        }
    }

    /// The query identifier as PostgreSQL shows it.
    pub fn query_id(&self) -> i64 {
        self.id as i64
    }

    /// Whether the statement is known.
    pub fn is_identified(&self) -> bool {
        self.id != 0
    }

    /// The writers' hash of the key, never 0.
    pub(super) fn tag(&self) -> u64 {
        let who = u64::from(self.database_id) << 32 | u64::from(self.user_id);
        let mut h = self.id ^ who.wrapping_mul(GOLDEN) ^ u64::from(self.toplevel);
        h ^= h >> 32;
        h = h.wrapping_mul(MIX);
        h ^= h >> 32;
        h | 1
    }
}

/// The two sets, out of `count`, that may have a statement with this hash.
pub(super) fn sets_of(tag: u64, count: u32) -> [u32; 2] {
    let count = count.max(1);
    let a = (tag >> 32) as u32 % count;
    let b = (tag.wrapping_mul(GOLDEN) >> 32) as u32 % count;
    [a, if a == b { (a + 1) % count } else { b }]
}
