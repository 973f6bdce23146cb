// SPDX-License-Identifier: PostgreSQL
//! The part of a statement's time in one account.

use crate::directory::StatId;

/// Time in one account of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountTicks {
    /// The account: its number in our directory, or [`crate::book::NAMELESS`]. Within the readers of table and
    /// caches, its number in the file.
    pub stat: StatId,
    /// Number of events.
    pub count: u64,
    /// Time, ticks.
    pub ticks: u64,
}

impl AccountTicks {
    /// Add this to the part of the same account, or as a new part.
    pub(super) fn add_to(self, parts: &mut Vec<AccountTicks>) {
        match parts.iter_mut().find(|part| part.stat == self.stat) {
            Some(part) => {
                part.count = part.count.saturating_add(self.count);
                part.ticks = part.ticks.saturating_add(self.ticks);
            }
            None => parts.push(self),
        }
    }
}
