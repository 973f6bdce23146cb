// SPDX-License-Identifier: PostgreSQL
//! The session that a page is about, and what an interval does not contain for each session.

use segment::interval::{SessionAccount, SessionRow};
use std::fmt;
use std::str::FromStr;

/// A session, as distinct from later ones with the same PID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionId {
    /// Its process.
    pub pid: i32,
    /// Its slot, and the slot's generation, which counts its owners; 0 for a recorded session.
    pub slot: u32,
    /// See `slot`.
    pub generation: u32,
}

impl SessionId {
    /// The session of a row.
    pub fn from_row(row: &SessionRow) -> SessionId {
        SessionId { pid: row.pid, slot: row.slot, generation: row.generation }
    }

    /// Its row.
    pub fn row_of(self, sessions: &[SessionRow]) -> Option<&SessionRow> {
        sessions.iter().find(|row| SessionId::from_row(row) == self)
    }
}

/// The key of its row in a table.
impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.pid, self.slot, self.generation)
    }
}

impl FromStr for SessionId {
    type Err = std::num::ParseIntError;

    fn from_str(key: &str) -> Result<SessionId, Self::Err> {
        let mut words = key.split(' ').map(|word| word.parse::<i64>());
        let mut next = || words.next().unwrap_or(Ok(0));
        let (pid, slot, generation) = (next()?, next()?, next()?);
        Ok(SessionId {
            pid: i32::try_from(pid).unwrap_or(0),
            slot: u32::try_from(slot).unwrap_or(0),
            generation: u32::try_from(generation).unwrap_or(0),
        })
    }
}

/// The data that an interval contains only for the session whose page is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Opened {
    /// The session.
    pub id: SessionId,
    /// Its accounts since its start or the last reset, most time first; empty if unknown.
    pub accounts: Vec<SessionAccount>,
    /// The statement that it is executing, otherwise its last one; `None` if unknown.
    pub queryid: Option<i64>,
    /// Its text.
    pub query: Option<String>,
}
