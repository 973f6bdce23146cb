// SPDX-License-Identifier: PostgreSQL
//! The part of a time that went to one account.

use crate::directory::StatId;

/// What went to one account of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountTicks {
    /// Which; the directory does not know [`crate::book::NAMELESS`].
    pub stat: StatId,
    /// How often.
    pub count: u64,
    /// How long.
    pub ticks: u64,
}
