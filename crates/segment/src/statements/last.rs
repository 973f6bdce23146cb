// SPDX-License-Identifier: PostgreSQL
//! The statement that a session executes or has executed last.

use super::key::StatementKey;
use super::seqlock::Tries;
use crate::error::Error;
use crate::layout::{self, counts, current, entry, local_statement, u32_at, u64_at};
use crate::segment::Segment;

impl Segment {
    /// The client's own statement that the owner of a slot works for, or has last worked for; `None`: not known.
    ///
    /// The key of the current statement stays when its message has ended. A message that is no statement (Sync)
    /// replaces it; then the local entry with the latest execution has it.
    pub fn last_statement(&self, slot: u32) -> Result<Option<StatementKey>, Error> {
        let Some(regions) = self.regions.statements.filter(|_| slot < self.header().slots) else {
            return Ok(None);
        };
        let at = self.regions.entries.entry(slot) + entry::LOCAL_STATEMENTS as u64;
        let entries = (self.read_u32(at)? as usize).min(layout::LOCAL_STATEMENTS);
        if entries == 0 {
            return Ok(None);
        }
        let tries = Tries::new(self.is_of_this_boot());
        let mut bytes = [0u8; current::SIZE];
        self.read_under_seq(regions.caches.entry(slot), &mut bytes, &tries)?;
        let key = StatementKey::of(&bytes, current::KEY);
        if key.is_identified() {
            return Ok(Some(key));
        }
        let first = regions.caches.entry(slot) + current::SIZE as u64;
        let mut latest = (0, None);
        for index in 0..entries {
            let mut bytes = [0u8; local_statement::COUNTS + counts::NEAR];
            let at = first + (index * local_statement::SIZE) as u64;
            self.read_under_seq(at, &mut bytes, &tries)?;
            let key = StatementKey::of(&bytes, local_statement::KEY);
            let last = u64_at(&bytes, local_statement::COUNTS + counts::LAST_US);
            let used = u32_at(&bytes, local_statement::STATE) == 1;
            if used && key.is_identified() && key.toplevel && last > latest.0 {
                latest = (last, Some(key));
            }
        }
        Ok(latest.1)
    }
}
