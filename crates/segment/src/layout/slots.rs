// SPDX-License-Identifier: PostgreSQL
//! The entry of a slot or group, its book with heads, histograms and locks, and the journal of a merge.

/// Buckets of a histogram.
pub const HIST_BUCKETS: usize = 336;
/// Bytes of a histogram.
pub const HIST_SIZE: usize = HIST_BUCKETS * 8;
/// Buckets of an octave.
pub const OCTAVE: usize = 8;
/// Bytes of an octave.
pub const OCTAVE_SIZE: usize = OCTAVE * 8;
/// Statistics whose histograms lie together, octave by octave.
pub const CHUNK: usize = 8;
/// Bytes of one octave of each of them.
pub const ROW_SIZE: usize = CHUNK * OCTAVE_SIZE;
/// Bytes of all their histograms.
pub const CHUNK_SIZE: usize = CHUNK * HIST_SIZE;

/// Bytes of a book with that many statistics.
pub const fn book_size(statistics: usize) -> usize {
    book::SIZE + statistics * head::SIZE + statistics.div_ceil(CHUNK) * CHUNK_SIZE
}

/// Bytes from the beginning of a book's histograms to a bucket of the one of head `index`.
pub const fn bucket_offset(index: usize, bucket: usize) -> usize {
    index / CHUNK * CHUNK_SIZE
        + bucket / OCTAVE * ROW_SIZE
        + index % CHUNK * OCTAVE_SIZE
        + bucket % OCTAVE * 8
}

offsets! {
    /// Offsets in the entry of a slot or group.
    entry:
    SIZE             = 384, "Bytes.";
    STATE            = 0, "U32: `SlotState`.";
    GENERATION       = 4, "U32.";
    PID              = 8, "I32.";
    LEADER_PID       = 12, "I32.";
    CLAIMED_BOOT_NS  = 16, "U64, ns of CLOCK_BOOTTIME.";
    CLAIMED_TICK     = 24, "U64.";
    DATABASE_ID      = 32, "U32.";
    USER_ID          = 36, "U32.";
    IDENTITY_SEQ     = 40, "U32: odd while the identity changes.";
    MERGED           = 44, "U32: statistics already merged.";
    KIND             = 48, "64 bytes of text.";
    DATABASE         = 112, "64 bytes of text.";
    USER             = 176, "64 bytes of text.";
    APPLICATION      = 240, "64 bytes of text.";
    SESSIONS         = 304, "U64: of a group.";
    LOCAL_STATEMENTS = 312, "U32: local entries with memory in its cache of statements.";
    BLOCKED          = 320, "[`crate::layout::blocked`].";
    LOCAL_RELATIONS  = 376, "U32: its local entries of relations with memory.";
}

offsets! {
    /// Offsets in what a slot says about who blocks its owner.
    blocked:
    SIZE   = 56, "Bytes.";
    SEQ    = 0, "U64: odd while the rest changes.";
    SINCE  = 8, "U64: tick at which the wait began; 0: not blocked.";
    FIELD  = 16, "Three times u32: the lock's tag.";
    FIELD4 = 28, "U16.";
    TYPE   = 30, "U8: type of the lock.";
    METHOD = 31, "U8: lock method.";
    PIDS   = 32, "[`crate::layout::BLOCKERS`] times i32.";
    COUNT  = 52, "U16: how many block it.";
    MODE   = 54, "U16: mode waited for.";
}

/// States of a slot.
pub mod state {
    /// Free.
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

offsets! {
    /// Offsets in a book.
    book:
    SIZE       = 1024, "Bytes; the heads follow, then the histograms: see [`super::bucket_offset`].";
    SEQ        = 0, "U64: odd while the book changes.";
    RUN        = 8, "U32: index of the running account.";
    USED       = 12, "U32: heads in use.";
    RUN_START  = 16, "U64, tick.";
    PEND       = 24, "U32: account of the deferred record, perhaps `PEND_OPEN`.";
    RESETS     = 28, "U32: resets seen.";
    PEND_TICKS = 32, "U64.";
    BORN       = 40, "U64, tick.";
    TRANSACTION = 48, "U64: tick at which the current or last transaction began; 0 unknown.";
    BETWEEN    = 56, "U64, tick: since when the next message is waited for, or was last; 0 unknown.";
    CALLS      = 64, "64 times u64.";
    HOLDING    = 576, "U32: lightweight locks held now; the first of them are in `HOLDS`.";
    HOLDS      = 584, "[`crate::layout::HOLDS`] entries of [`crate::layout::hold`].";
    FREED_NEXT = 776, "U32: index of the next in `FREED`.";
    FREED      = 784, "[`crate::layout::FREED`] entries of [`crate::layout::freed`].";
    CLIENT     = 912, "64 bytes of text, under `IDENTITY_SEQ` of the entry.";
}

offsets! {
    /// Offsets in a held lightweight lock.
    hold:
    SIZE    = 24, "Bytes.";
    LOCK    = 0, "U64: address, the same in all processes.";
    SINCE   = 8, "U64, tick.";
    TRANCHE = 16, "U32: number of its tranche.";
    MODE    = 20, "U32: 0 exclusive, 1 shared.";
}

offsets! {
    /// Offsets in a lightweight lock that was released while others waited for it.
    freed:
    SIZE    = 32, "Bytes.";
    LOCK    = 0, "U64: address; 0 while the entry changes.";
    SINCE   = 8, "U64: tick of the acquisition.";
    UNTIL   = 16, "U64: tick of the release.";
    ACCOUNT = 24, "U32: 1 + directory index of its holder's account.";
    MODE    = 28, "U32: 0 exclusive, 1 shared.";
}

offsets! {
    /// Offsets in a head.
    head:
    SIZE     = 64, "Bytes.";
    STAT     = 0, "U32: 1 + directory index.";
    COUNT    = 8, "U64.";
    TOTAL    = 16, "U64.";
    MIN      = 24, "U64.";
    MAX      = 32, "U64.";
    RESERVED = 40, "U64.";
    AMOUNT   = 48, "U64: bytes that its events transferred.";
    FOLLOWS  = 56, "U64: events that continued where the one before had ended.";
}

offsets! {
    /// Offsets in the journal of the merge in progress.
    journal:
    SIZE   = 80 + super::HIST_SIZE, "Bytes.";
    ACTIVE = 0, "U32.";
    SLOT   = 4, "U32: being merged.";
    GROUP  = 8, "U32: entry index of its group.";
    HEAD   = 12, "U32: index in the group's book.";
    SAVED  = 16, "That head before the merge.";
    HIST   = 80, "Its histogram before the merge.";
}
