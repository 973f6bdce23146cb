// SPDX-License-Identifier: PostgreSQL
//! The entry of a slot or group, its book and what lies in it, and the journal of a merge.

/// Buckets of a histogram.
pub const HIST_BUCKETS: usize = 336;
/// Bytes of a histogram.
pub const HIST_SIZE: usize = HIST_BUCKETS * 8;

/// Offsets in the entry of a slot or group.
pub mod entry {
    /// Bytes.
    pub const SIZE: usize = 384;
    /// U32: `SlotState`.
    pub const STATE: usize = 0;
    /// U32.
    pub const GENERATION: usize = 4;
    /// I32.
    pub const PID: usize = 8;
    /// I32.
    pub const LEADER_PID: usize = 12;
    /// U64, ns of CLOCK_BOOTTIME.
    pub const CLAIMED_BOOT_NS: usize = 16;
    /// U64.
    pub const CLAIMED_TICK: usize = 24;
    /// U32.
    pub const DATABASE_ID: usize = 32;
    /// U32.
    pub const USER_ID: usize = 36;
    /// U32: odd while the identity changes.
    pub const IDENTITY_SEQ: usize = 40;
    /// U32: statistics already merged.
    pub const MERGED: usize = 44;
    /// 64 bytes of text.
    pub const KIND: usize = 48;
    /// 64 bytes of text.
    pub const DATABASE: usize = 112;
    /// 64 bytes of text.
    pub const USER: usize = 176;
    /// 64 bytes of text.
    pub const APPLICATION: usize = 240;
    /// U64: of a group.
    pub const SESSIONS: usize = 304;
    /// U32: local entries of its cache of statements that have memory.
    pub const LOCAL_STATEMENTS: usize = 312;
    /// U32: its local entries of relations that have memory.
    pub const LOCAL_RELATIONS: usize = 376;
}

/// States of a slot.
pub mod state {
    /// Nobody's.
    pub const FREE: u32 = 0;
    /// Identity being written.
    pub const CLAIMING: u32 = 1;
    /// In use.
    pub const LIVE: u32 = 2;
    /// Complete, not yet merged.
    pub const RETIRED: u32 = 3;
    /// Being merged.
    pub const MERGING: u32 = 4;
    /// A group of retired slots.
    pub const GROUP: u32 = 5;
}

/// Offsets in a book.
pub mod book {
    /// Bytes; the heads follow, then the histograms.
    pub const SIZE: usize = 1024;
    /// U64: odd while the book changes.
    pub const SEQ: usize = 0;
    /// U32: index of the running account.
    pub const RUN: usize = 8;
    /// U32: heads in use.
    pub const USED: usize = 12;
    /// U64, tick.
    pub const RUN_START: usize = 16;
    /// U32: account of the deferred record.
    pub const PEND: usize = 24;
    /// U32: resets seen.
    pub const RESETS: usize = 28;
    /// U64.
    pub const PEND_TICKS: usize = 32;
    /// U64, tick.
    pub const BORN: usize = 40;
    /// 64 times u64.
    pub const CALLS: usize = 64;
    /// U32: lightweight locks held now; the first of them are in `HOLDS`.
    pub const HOLDING: usize = 576;
    /// [`crate::layout::HOLDS`] entries of [`crate::layout::hold`].
    pub const HOLDS: usize = 584;
    /// U32: index of the next in `FREED`.
    pub const FREED_NEXT: usize = 776;
    /// [`crate::layout::FREED`] entries of [`crate::layout::freed`].
    pub const FREED: usize = 784;
}

/// Offsets in a lightweight lock that is held.
pub mod hold {
    /// Bytes.
    pub const SIZE: usize = 24;
    /// U64: address, the same in all processes.
    pub const LOCK: usize = 0;
    /// U64, tick.
    pub const SINCE: usize = 8;
    /// U32: number of its tranche.
    pub const TRANCHE: usize = 16;
    /// U32: 0 exclusive, 1 shared.
    pub const MODE: usize = 20;
}

/// Offsets in a lightweight lock that was released while others waited for it.
pub mod freed {
    /// Bytes.
    pub const SIZE: usize = 32;
    /// U64: address; 0 while the entry changes.
    pub const LOCK: usize = 0;
    /// U64: held from this tick ...
    pub const SINCE: usize = 8;
    /// U64: ... to this.
    pub const UNTIL: usize = 16;
    /// U32: 1 + directory index of what its holder was doing.
    pub const ACCOUNT: usize = 24;
    /// U32: 0 exclusive, 1 shared.
    pub const MODE: usize = 28;
}

/// Offsets in a head.
pub mod head {
    /// Bytes.
    pub const SIZE: usize = 64;
    /// U32: 1 + directory index.
    pub const STAT: usize = 0;
    /// U64.
    pub const COUNT: usize = 8;
    /// U64.
    pub const TOTAL: usize = 16;
    /// U64.
    pub const MIN: usize = 24;
    /// U64.
    pub const MAX: usize = 32;
    /// U64.
    pub const RESERVED: usize = 40;
    /// U64: bytes that its updates moved.
    pub const AMOUNT: usize = 48;
    /// U64: updates that went on where the one before had ended.
    pub const FOLLOWS: usize = 56;
}

/// Offsets in the journal of the merge in progress.
pub mod journal {
    /// Bytes.
    pub const SIZE: usize = 80 + super::HIST_SIZE;
    /// U32.
    pub const ACTIVE: usize = 0;
    /// U32: being merged.
    pub const SLOT: usize = 4;
    /// U32: entry index of its group.
    pub const GROUP: usize = 8;
    /// U32: index in the group's book.
    pub const HEAD: usize = 12;
    /// That head before the merge.
    pub const SAVED: usize = 16;
    /// And its histogram.
    pub const HIST: usize = 80;
}
