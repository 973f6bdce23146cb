// SPDX-License-Identifier: PostgreSQL
//! Statements: keys, counts, the shared table with its sets and texts, and the caches of the slots.

/// Offsets in a statement's key.
pub mod key {
    /// Bytes.
    pub const SIZE: usize = 24;
    /// U64: 0: work that no statement could be named for.
    pub const ID: usize = 0;
    /// U32.
    pub const DATABASE_ID: usize = 8;
    /// U32.
    pub const USER_ID: usize = 12;
    /// U32: 1: asked for by the client itself, 0: within another.
    pub const TOPLEVEL: usize = 16;
}

/// Offsets in count, sum and extremes of a statement's times.
pub mod moments {
    /// Bytes.
    pub const SIZE: usize = 40;
    /// U64.
    pub const COUNT: usize = 0;
    /// U64, ticks.
    pub const TOTAL: usize = 8;
    /// U64; of no meaning while the count is 0.
    pub const MIN: usize = 16;
    /// U64.
    pub const MAX: usize = 24;
    /// F64: sum of the squared ticks.
    pub const SQUARES: usize = 32;
}

/// Offsets in a statement's counts.
pub mod counts {
    /// Bytes.
    pub const SIZE: usize = 384;
    /// [`crate::layout::moments`] of executions.
    pub const EXEC: usize = 0;
    /// U64.
    pub const ROWS: usize = 40;
    /// I64: microseconds since 1970, 0 unknown.
    pub const LAST_US: usize = 48;
    /// Ten times u64; three of WAL and four of I/O in ticks follow.
    pub const BLOCKS: usize = 56;
    /// How much of the counts lies in an entry itself.
    pub const NEAR: usize = 64;
    /// [`crate::layout::moments`] of plannings.
    pub const PLAN: usize = 192;
    /// I64, as the last; 0: it is the last.
    pub const FIRST_US: usize = 232;
    /// Four times u64; all further counts follow, up to the end.
    pub const IO_NS: usize = 240;
}

/// Offsets in a part of a statement's time.
pub mod part {
    /// Bytes.
    pub const SIZE: usize = 24;
    /// U32: 1 + directory index of an account, 0 unused.
    pub const STAT: usize = 0;
    /// U64.
    pub const COUNT: usize = 8;
    /// U64.
    pub const TICKS: usize = 16;
}

/// Offsets in an entry of the table of statements.
pub mod statement {
    /// Bytes.
    pub const SIZE: usize = 256;
    /// U64: odd while it changes.
    pub const SEQ: usize = 0;
    /// [`crate::layout::key`].
    pub const KEY: usize = 8;
    /// U32: 0 free, 1 used.
    pub const STATE: usize = 32;
    /// U32: 1 + first block of its text, 0 none.
    pub const TEXT: usize = 36;
    /// U32: kept.
    pub const TEXT_BYTES: usize = 40;
    /// U32: of the whole text.
    pub const TEXT_WHOLE: usize = 44;
    /// I32: the producer's number of the text's encoding.
    pub const ENCODING: usize = 48;
    /// U32: 1: its rest is in use.
    pub const MORE: usize = 52;
    /// U64, tick.
    pub const BORN: usize = 56;
    /// The first [`crate::layout::counts::NEAR`] bytes of [`crate::layout::counts`].
    pub const COUNTS: usize = 64;
    /// U32: the first of the buckets that follow.
    pub const BASE: usize = 128;
    /// [`crate::layout::NEAR_BUCKETS`] times u32.
    pub const HIST: usize = 136;
    /// [`crate::layout::NEAR_PARTS`] entries of [`crate::layout::part`].
    pub const PARTS: usize = 192;
    /// I64, as in [`crate::layout::counts`].
    pub const FIRST_US: usize = 240;
}

/// Offsets in the rest of an entry, which is added to what the entry itself has.
pub mod rest {
    /// Bytes.
    pub const SIZE: usize = 3648;
    /// [`crate::layout::counts`].
    pub const COUNTS: usize = 0;
    /// [`crate::layout::PARTS`] entries of [`crate::layout::part`].
    pub const PARTS: usize = 384;
    /// U64 a bucket.
    pub const HIST: usize = 960;
}

/// Offsets in a set of the table of statements.
pub mod set {
    /// Bytes.
    pub const SIZE: usize = 448;
    /// U64: flushes into it, ever.
    pub const FLUSHES: usize = 16;
    /// [`crate::layout::WAYS`] times u32: lower half of the hash of each entry's key, 0 free.
    pub const TAGS: usize = 64;
    /// [`crate::layout::SET_LOG`] times u64: generation << 24 | local entry << 16 | slot.
    pub const LOG: usize = 192;
}

/// Offsets in a block of text.
pub mod block {
    /// Bytes.
    pub const SIZE: usize = 256;
    /// U32: 1 + the next block, 0 none.
    pub const NEXT: usize = 0;
    /// Text, up to the end.
    pub const BYTES: usize = 4;
}

/// Offsets in a local entry of a slot's cache of statements.
pub mod local_statement {
    /// Bytes.
    pub const SIZE: usize = 2368;
    /// U64: odd while it changes.
    pub const SEQ: usize = 0;
    /// U64: of the use of this local entry.
    pub const GENERATION: usize = 8;
    /// U64: the generation that a reset has emptied.
    pub const DROP: usize = 16;
    /// [`crate::layout::key`].
    pub const KEY: usize = 24;
    /// U32: 0 free, 1 used.
    pub const STATE: usize = 48;
    /// [`crate::layout::counts`].
    pub const COUNTS: usize = 64;
    /// [`crate::layout::PARTS`] entries of [`crate::layout::part`].
    pub const PARTS: usize = 448;
    /// U32 a bucket; not written before the second execution.
    pub const HIST: usize = 1024;
}

/// Offsets in a set of unsynced files.
pub mod unsynced {
    /// Bytes.
    pub const SIZE: usize = 320;
    /// [`crate::layout::FILE_WAYS`] times u64: hash of each file's name, 0 free, 1 changing hands.
    pub const NAMES: usize = 0;
    /// [`crate::layout::FILE_WAYS`] times four u64: writes, bytes, synced writes, synced bytes.
    pub const FILES: usize = 64;
}

/// Offsets in the head of a slot's cache: what is being worked for. The local entries follow.
pub mod current {
    /// Bytes.
    pub const SIZE: usize = 704;
    /// U64: odd while it changes.
    pub const SEQ: usize = 0;
    /// [`crate::layout::key`].
    pub const KEY: usize = 8;
    /// U64: tick, 0: nothing.
    pub const BEGUN: usize = 32;
    /// U64: tick from which on processor time is not in parts yet.
    pub const SINCE: usize = 40;
    /// U32: parts in use.
    pub const USED: usize = 48;
    /// U64: ticks since then that are in parts already, as waits.
    pub const WAITS: usize = 56;
    /// [`crate::layout::PARTS`] entries of [`crate::layout::part`].
    pub const PARTS: usize = 64;
}
