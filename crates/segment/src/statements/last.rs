// SPDX-License-Identifier: PostgreSQL
//! The statement that a session executes or has executed last.

use super::key::StatementKey;
use super::seqlock::Tries;
use crate::error::Error;
use crate::layout::{current, entry};
use crate::segment::Segment;

impl Segment {
    /// The client's own statement that the owner of a slot works for, or has last worked for; `None`: not known.
    ///
    /// The key of the current statement stays when its message has ended, and while there are messages that are no
    /// statement (Sync).
    pub fn last_statement(&self, slot: u32) -> Result<Option<StatementKey>, Error> {
        let Some(regions) = self.regions.statements.filter(|_| slot < self.header().slots) else {
            return Ok(None);
        };
        let at = self.regions.entries.entry(slot) + entry::LOCAL_STATEMENTS as u64;
        if self.read_u32(at)? == 0 {
            return Ok(None);
        }
        let tries = Tries::new(self);
        let mut bytes = [0u8; current::SIZE];
        self.read_under_seq(regions.caches.entry(slot), &mut bytes, &tries)?;
        let key = StatementKey::of(&bytes, current::KEY);
        Ok(Some(key).filter(StatementKey::is_identified))
    }
}
