// SPDX-License-Identifier: PostgreSQL
//! The key of a statement, and the sets that may have its entry.

use crate::application::Application;
use crate::error::Error;
use crate::layout::{current, key, u16_at, u32_at, u64_at};
use crate::segment::Segment;
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
    /// The application of the session that executed it, if applications are counted separately.
    pub application: Application,
}

/// The key of a statement as a segment has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileKey {
    pub id: u64,
    database_id: u32,
    user_id: u32,
    toplevel: bool,
    /// 1 + the number of the application's name in the directory; 0: none.
    application: u16,
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
const MIX: u64 = 0xD6E8_FEB8_6659_FD93;

/// Before the names of applications in the directory.
const PREFIX: &str = crate::stat_names::APPLICATION;

impl FileKey {
    pub(crate) fn decode(bytes: &[u8], at: usize) -> FileKey {
        FileKey {
            id: u64_at(bytes, at + key::ID),
            database_id: u32_at(bytes, at + key::DATABASE_ID),
            user_id: u32_at(bytes, at + key::USER_ID),
            toplevel: u16_at(bytes, at + key::TOPLEVEL) != 0,
            application: u16_at(bytes, at + key::APPLICATION),
        }
    }

    /// The key of a statement that the client has sent.
    pub(crate) fn of_client(id: u64, database_id: u32, user_id: u32, application: u16) -> FileKey {
        FileKey { id, database_id, user_id, toplevel: true, application }
    }

    /// The statement to which the time in a current belongs.
    pub(super) fn of_current(bytes: &[u8]) -> FileKey {
        match u32_at(bytes, current::KEY + key::BEFORE) {
            0 => FileKey::decode(bytes, current::KEY),
            _ => FileKey { toplevel: true, ..FileKey::default() },
        }
    }

    /// Whether the statement is known.
    pub(crate) fn is_identified(&self) -> bool {
        self.id != 0
    }

    /// The writers' hash of the key, never 0.
    pub(super) fn tag(&self) -> u64 {
        let who = u64::from(self.database_id) << 32 | u64::from(self.user_id);
        let variant = u64::from(self.application) << 16 | u64::from(self.toplevel);
        let mut h = self.id ^ who.wrapping_mul(GOLDEN) ^ variant;
        h ^= h >> 32;
        h = h.wrapping_mul(MIX);
        h ^= h >> 32;
        h | 1
    }
}

impl Segment {
    /// The key with the name of its application.
    pub(crate) fn statement_key(&self, key: FileKey) -> Result<StatementKey, Error> {
        let FileKey { id, database_id, user_id, toplevel, application } = key;
        let application = self.application(application)?;
        Ok(StatementKey { id, database_id, user_id, toplevel, application })
    }

    /// The application of this number; none where the directory has no such name, as for a role that may not see it.
    fn application(&self, number: u16) -> Result<Application, Error> {
        let index = u32::from(number).checked_sub(1);
        let name = index.map_or(Ok(None), |index| self.stat_name(index))?;
        let name = name.as_deref().and_then(|name| name.strip_prefix(PREFIX));
        Ok(name.map_or_else(Application::default, Application::from_name))
    }
}

impl StatementKey {
    /// The query identifier as PostgreSQL shows it.
    pub fn query_id(&self) -> i64 {
        self.id as i64
    }

    /// Whether it is a known statement.
    pub fn is_identified(&self) -> bool {
        self.id != 0
    }
}

/// The two sets, out of `count`, that may have a statement with this hash.
pub(super) fn sets_of(tag: u64, count: u32) -> [u32; 2] {
    let count = count.max(1);
    let a = (tag >> 32) as u32 % count;
    let b = (tag.wrapping_mul(GOLDEN) >> 32) as u32 % count;
    [a, if a == b { (a + 1) % count } else { b }]
}
