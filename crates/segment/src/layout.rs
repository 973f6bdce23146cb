// SPDX-License-Identifier: PostgreSQL
//! The segment, byte for byte: offsets and sizes as `libtally/include/tally.h` has them.
//!
//! Everything is in the byte order of the machine that wrote it; the reader insists that it
//! is its own. The functions here read a field of a buffer that the caller has sized by the
//! validated header; what would lie beyond the buffer reads as zero, so that no content can
//! make the reader panic.

/// The first eight bytes of a segment.
pub const MAGIC: &[u8; 8] = b"TALLYSEG";
/// The format version that this reader knows.
pub const VERSION: u32 = 1;
/// What `byte_order` reads as on the machine that wrote it.
pub const BYTE_ORDER: u32 = 0x0102_0304;
/// Bytes of the header.
pub const HEADER_SIZE: usize = 4096;
/// Buckets of a histogram.
pub const HIST_BUCKETS: usize = 336;
/// Bytes of a histogram.
pub const HIST_SIZE: usize = HIST_BUCKETS * 8;
/// Plain counters of a book, one for each of the first probes.
pub const CALLS: usize = 64;
/// Held locks that a book shows.
pub const HOLDS: usize = 8;
/// Locks lately released that a book shows.
pub const FREED: usize = 4;
/// Statements of a set.
pub const WAYS: usize = 20;
/// Layings-down that a set remembers.
pub const SET_LOG: usize = 32;
/// Accounts that a statement's time is split over.
pub const PARTS: usize = 24;
/// Of them in the entry itself.
pub const NEAR_PARTS: usize = 2;
/// Buckets of its histogram there.
pub const NEAR_BUCKETS: usize = 14;
/// Statements in a slot's cache.
pub const CACHED: usize = 64;
/// Unsynced files of a set.
pub const FILE_WAYS: usize = 8;
/// Relations that a slot keeps for itself.
pub const LOCAL_RELATIONS: usize = 64;
/// Operations that are kept apart for each relation: read, write, extend, sync, truncate.
pub const RELATION_OPERATIONS: usize = 5;
/// "No statistic" as an index.
pub const NONE: u32 = u32::MAX;

/// Offsets in the header.
pub mod header {
    /// `MAGIC`.
    pub const MAGIC: usize = 0;
    /// U32.
    pub const BYTE_ORDER: usize = 8;
    /// U32.
    pub const VERSION: usize = 12;
    /// U32, bytes.
    pub const HEADER_SIZE: usize = 16;
    /// U32.
    pub const HIST_BUCKETS: usize = 20;
    /// U64, bytes.
    pub const SEGMENT_SIZE: usize = 24;
    /// U32: 1 CLOCK_MONOTONIC, 2 TSC.
    pub const CLOCK_KIND: usize = 32;
    /// U64: one instant in ticks.
    pub const CLOCK_TICK0: usize = 40;
    /// U64: the same instant, ns of CLOCK_MONOTONIC.
    pub const CLOCK_NS0: usize = 48;
    /// U64: the same instant, ns since 1970.
    pub const CREATED_NS: usize = 56;
    /// U64: inode, 0 unknown.
    pub const PID_NAMESPACE: usize = 64;
    /// U32.
    pub const SLOTS: usize = 72;
    /// U32.
    pub const GROUPS: usize = 76;
    /// U32.
    pub const STATS_PER_BOOK: usize = 80;
    /// 40 bytes of text.
    pub const BOOT_ID: usize = 88;
    /// Region.
    pub const PROBES: usize = 128;
    /// Region.
    pub const DIRECTORY: usize = 144;
    /// Region.
    pub const EVENTS: usize = 160;
    /// Region.
    pub const MERGE_LOG: usize = 176;
    /// Region.
    pub const JOURNAL: usize = 192;
    /// Region.
    pub const ENTRIES: usize = 208;
    /// Region.
    pub const BOOKS: usize = 224;
    /// U32: bit 0: all processes of the server write here, not its sessions alone.
    pub const FLAGS: usize = 36;
    /// 256 bytes of text.
    pub const HOST: usize = 240;
    /// 64 bytes of text.
    pub const PRODUCER: usize = 496;
    /// 64 bytes of text.
    pub const SERVER: usize = 560;
    /// U32.
    pub const SERVER_PID: usize = 624;
    /// U32.
    pub const SERVER_PORT: usize = 628;
    /// 112 bytes of text.
    pub const SOCKET_DIR: usize = 632;
    /// Region; of none where no statements are kept, as the next three.
    pub const SETS: usize = 744;
    /// Region.
    pub const STATEMENTS: usize = 760;
    /// Region.
    pub const TEXTS: usize = 776;
    /// Region.
    pub const CACHES: usize = 792;
    /// Region; of none where unsynced files are not counted.
    pub const UNSYNCED: usize = 904;
    /// Region; of none where no relations are kept, as the next one.
    pub const RELATIONS: usize = 920;
    /// Region.
    pub const LOCAL_RELATIONS: usize = 936;
    /// U32: level in the low 8 bits, resets above; the live part of the header begins here.
    pub const LEVEL_WORD: usize = 1024;
    /// U64.
    pub const RESET_TICK: usize = 1032;
    /// U64: tick at which the level ends by itself, 0 never.
    pub const LEVEL_UNTIL: usize = 1040;
    /// U32: the level after that.
    pub const LEVEL_THEN: usize = 1048;
    /// U64: ticks at level locks or above since the last reset, up to the last change.
    pub const LOCKS_TICKS: usize = 1056;
    /// U64: tick since when the level is locks or above, 0: it is not.
    pub const LOCKS_SINCE: usize = 1064;
    /// U32: bit 0: statements are not to be looked at.
    pub const PAUSE: usize = 1072;
    /// U32: 1 + the level that the server's configuration has set last, 0 none.
    pub const CONFIGURED_LEVEL: usize = 1076;
    /// U64.
    pub const OVERFLOW_SLOTS: usize = 1152;
    /// U64.
    pub const OVERFLOW_STATS: usize = 1160;
    /// U64.
    pub const OVERFLOW_DIRECTORY: usize = 1168;
    /// U64.
    pub const OVERFLOW_GROUPS: usize = 1176;
    /// U64.
    pub const OVERFLOW_MEMORY: usize = 1184;
    /// U64: events ever begun.
    pub const EVENT_COUNT: usize = 1192;
    /// U64.
    pub const LOST_MERGES: usize = 1200;
    /// U64: taken out of the table for others.
    pub const STATEMENTS_EVICTED: usize = 1208;
    /// U64: counts that could not be laid down.
    pub const STATEMENTS_DROPPED: usize = 1216;
    /// U64: left half changed by a process that died.
    pub const STATEMENTS_LOST: usize = 1224;
    /// U64: for want of blocks.
    pub const TEXTS_CUT: usize = 1232;
    /// U64: first free block.
    pub const TEXTS_FREE: usize = 1240;
    /// U64: blocks that have ever been used.
    pub const TEXTS_USED: usize = 1248;
    /// U32: pid of the holder, 0 free.
    pub const MERGE_LOCK: usize = 1280;
    /// U64: folds completed.
    pub const MERGE_COUNT: usize = 1296;
    /// U64: 1 while group books change.
    pub const MERGE_ACTIVE: usize = 1304;
    /// U64: files given up with writes not synced.
    pub const OVERFLOW_FILES: usize = 1344;
    /// U64: times that a relation found no room.
    pub const OVERFLOW_RELATIONS: usize = 1352;
    /// U64: places of relations left half laid down by a process that died.
    pub const RELATIONS_LOST: usize = 1360;
    /// U64: claims refused because the file system had no room.
    pub const REFUSED_MEMORY: usize = 1368;
    /// U32: 1: a process that was refused a slot waits for one.
    pub const REFUSED_CLAIMS: usize = 1412;
    /// Where the live part ends.
    pub const LIVE_END: usize = 1416;
}

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
    /// U32: statistics already folded.
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
    /// U32: places of its cache of statements that have memory.
    pub const CACHED: usize = 312;
    /// U32: its places of relations that have memory.
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
    /// Complete, not yet folded.
    pub const RETIRED: u32 = 3;
    /// Being folded.
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
    /// [`super::HOLDS`] entries of [`super::hold`].
    pub const HOLDS: usize = 584;
    /// U32: place of the next in `FREED`.
    pub const FREED_NEXT: usize = 776;
    /// [`super::FREED`] entries of [`super::freed`].
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

/// Offsets in an entry of the directory.
pub mod directory {
    /// Bytes.
    pub const SIZE: usize = 128;
    /// U32: 2 when published.
    pub const STATE: usize = 0;
    /// U32: 1 account, 2 timer, 3 value, 4 no statistic but the name of something.
    pub const KIND: usize = 4;
    /// 96 bytes of text.
    pub const NAME: usize = 16;
    /// 16 bytes of text.
    pub const UNIT: usize = 112;
}

/// Offsets in an event.
pub mod event {
    /// Bytes.
    pub const SIZE: usize = 256;
    /// U64: 1 + its place in time, 0 while being written.
    pub const NUMBER: usize = 0;
    /// U64.
    pub const TICK: usize = 8;
    /// I32.
    pub const PID: usize = 16;
    /// U32: 1 note, 2 warning, 3 blocked.
    pub const KIND: usize = 20;
    /// 232 bytes of text.
    pub const TEXT: usize = 24;
}

/// Offsets in a probe.
pub mod probe {
    /// Bytes.
    pub const SIZE: usize = 192;
    /// U32: 0 empty, 1 installed, 2 left out.
    pub const STATE: usize = 0;
    /// [`NAME_SIZE`] bytes of text.
    pub const NAME: usize = 8;
    /// Bytes of a name.
    pub const NAME_SIZE: usize = 64;
    /// 120 bytes of text.
    pub const REASON: usize = 72;
}

/// Offsets in the journal of the fold in progress.
pub mod journal {
    /// Bytes.
    pub const SIZE: usize = 80 + super::HIST_SIZE;
    /// U32.
    pub const ACTIVE: usize = 0;
    /// U32: being folded.
    pub const SLOT: usize = 4;
    /// U32: entry index of its group.
    pub const GROUP: usize = 8;
    /// U32: index in the group's book.
    pub const HEAD: usize = 12;
    /// That head before the fold.
    pub const SAVED: usize = 16;
    /// And its histogram.
    pub const HIST: usize = 80;
}

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
    /// [`super::moments`] of executions.
    pub const EXEC: usize = 0;
    /// U64.
    pub const ROWS: usize = 40;
    /// I64: microseconds since 1970, 0 unknown.
    pub const LAST_US: usize = 48;
    /// Ten times u64; three of WAL and four of I/O in ticks follow.
    pub const BLOCKS: usize = 56;
    /// How much of the counts lies in an entry itself.
    pub const NEAR: usize = 64;
    /// [`super::moments`] of plannings.
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
    /// [`super::key`].
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
    /// The first [`super::counts::NEAR`] bytes of [`super::counts`].
    pub const COUNTS: usize = 64;
    /// U32: the first of the buckets that follow.
    pub const BASE: usize = 128;
    /// [`super::NEAR_BUCKETS`] times u32.
    pub const HIST: usize = 136;
    /// [`super::NEAR_PARTS`] entries of [`super::part`].
    pub const PARTS: usize = 192;
    /// I64, as in [`super::counts`].
    pub const FIRST_US: usize = 240;
}

/// Offsets in the rest of an entry, which is added to what the entry itself has.
pub mod rest {
    /// Bytes.
    pub const SIZE: usize = 3648;
    /// [`super::counts`].
    pub const COUNTS: usize = 0;
    /// [`super::PARTS`] entries of [`super::part`].
    pub const PARTS: usize = 384;
    /// U64 a bucket.
    pub const HIST: usize = 960;
}

/// Offsets in a set of the table of statements.
pub mod set {
    /// Bytes.
    pub const SIZE: usize = 448;
    /// U64: layings-down into it, ever.
    pub const MERGES: usize = 16;
    /// [`super::WAYS`] times u32: lower half of the hash of each entry's key, 0 free.
    pub const TAGS: usize = 64;
    /// [`super::SET_LOG`] times u64: generation << 24 | place << 16 | slot.
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

/// Offsets in a place of a slot's cache of statements.
pub mod cached {
    /// Bytes.
    pub const SIZE: usize = 2368;
    /// U64: odd while it changes.
    pub const SEQ: usize = 0;
    /// U64: of the use of this place.
    pub const GENERATION: usize = 8;
    /// U64: the generation that a reset has emptied.
    pub const DROP: usize = 16;
    /// [`super::key`].
    pub const KEY: usize = 24;
    /// U32: 0 free, 1 used.
    pub const STATE: usize = 48;
    /// [`super::counts`].
    pub const COUNTS: usize = 64;
    /// [`super::PARTS`] entries of [`super::part`].
    pub const PARTS: usize = 448;
    /// U32 a bucket; not written before the second execution.
    pub const HIST: usize = 1024;
}

/// Offsets in a set of unsynced files.
pub mod unsynced {
    /// Bytes.
    pub const SIZE: usize = 320;
    /// [`super::FILE_WAYS`] times u64: hash of each file's name, 0 free, 1 changing hands.
    pub const NAMES: usize = 0;
    /// [`super::FILE_WAYS`] times four u64: writes, bytes, synced writes, synced bytes.
    pub const FILES: usize = 64;
}

/// Offsets in an entry of the table of relations.
pub mod relation {
    /// Bytes.
    pub const SIZE: usize = 256;
    /// U64: hash of the key.
    pub const TAG: usize = 0;
    /// U32: 0 free, 1 being made, 2 used, 3 its relation is gone.
    pub const STATE: usize = 8;
    /// U32: places that hold it.
    pub const PINS: usize = 12;
    /// Five times u32: tablespace, database, relation, fork, 1 + number of a temporary one's session.
    pub const KEY: usize = 16;
    /// U64: layings-down into it that have begun.
    pub const MERGES: usize = 40;
    /// U64: operations that failed.
    pub const FAILED: usize = 48;
    /// [`super::RELATION_OPERATIONS`] entries of [`super::file_sums`].
    pub const SUMS: usize = 64;
}

/// Offsets in a slot's own place of a relation.
pub mod local_relation {
    /// Bytes.
    pub const SIZE: usize = 192;
    /// U64: odd while it changes.
    pub const SEQ: usize = 0;
    /// U64: hash of the key.
    pub const TAG: usize = 8;
    /// U32: 0 free, 1 used, 2 being laid down.
    pub const STATE: usize = 16;
    /// U32: its entry in the table.
    pub const ENTRY: usize = 20;
    /// U64: operations that failed.
    pub const FAILED: usize = 24;
    /// [`super::RELATION_OPERATIONS`] entries of [`super::file_sums`].
    pub const SUMS: usize = 32;
}

/// Offsets in what was done to the files of a relation by one operation.
pub mod file_sums {
    /// Bytes.
    pub const SIZE: usize = 32;
    /// U64.
    pub const COUNT: usize = 0;
    /// U64.
    pub const BYTES: usize = 8;
    /// U64.
    pub const TICKS: usize = 16;
    /// U64: of the longest.
    pub const MAX: usize = 24;
}

/// Offsets in the head of a slot's cache: what is being worked for. The places follow.
pub mod current {
    /// Bytes.
    pub const SIZE: usize = 704;
    /// U64: odd while it changes.
    pub const SEQ: usize = 0;
    /// [`super::key`].
    pub const KEY: usize = 8;
    /// U64: tick, 0: nothing.
    pub const BEGUN: usize = 32;
    /// U64: tick from which on processor time is not in parts yet.
    pub const SINCE: usize = 40;
    /// U32: parts in use.
    pub const USED: usize = 48;
    /// U64: ticks since then that are in parts already, as waits.
    pub const WAITS: usize = 56;
    /// [`super::PARTS`] entries of [`super::part`].
    pub const PARTS: usize = 64;
}

/// The `u32` at `at`.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

/// The `i32` at `at`.
pub fn i32_at(bytes: &[u8], at: usize) -> i32 {
    u32_at(bytes, at) as i32
}

/// The `u64` at `at`.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

/// The `f64` at `at`.
pub fn f64_at(bytes: &[u8], at: usize) -> f64 {
    f64::from_bits(u64_at(bytes, at))
}

/// The text of `size` bytes at `at`, up to its terminator. Control characters, which a
/// hostile writer could send to a terminal, become question marks.
pub fn text_at(bytes: &[u8], at: usize, size: usize) -> String {
    let field = bytes.get(at..at + size).unwrap_or(&[]);
    let end = field.iter().position(|&b| b == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end])
        .chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// A region of the file: entries of `stride` bytes from `offset` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// Bytes from the start of the file.
    pub offset: u64,
    /// Entries.
    pub count: u32,
    /// Bytes an entry.
    pub stride: u32,
}

impl Region {
    /// The region that the header describes at `at`.
    pub fn at(bytes: &[u8], at: usize) -> Region {
        Region {
            offset: u64_at(bytes, at),
            count: u32_at(bytes, at + 8),
            stride: u32_at(bytes, at + 12),
        }
    }

    /// Where the region ends, or `None` where that is no number.
    pub fn end(&self) -> Option<u64> {
        u64::from(self.count).checked_mul(u64::from(self.stride))?.checked_add(self.offset)
    }

    /// Where entry `index` begins. The caller has checked `end` and `index`.
    pub fn entry(&self, index: u32) -> u64 {
        self.offset + u64::from(index) * u64::from(self.stride)
    }
}

/// The histogram bucket of a value.
pub fn bucket(value: u64) -> usize {
    if value < 8 {
        return value as usize;
    }
    let octave = 63 - value.leading_zeros() as usize;
    if octave > 43 {
        return HIST_BUCKETS - 1;
    }
    (octave - 2) * 8 + ((value >> (octave - 3)) & 7) as usize
}

/// The smallest value of a bucket.
pub fn bucket_low(bucket: usize) -> u64 {
    if bucket < 8 {
        return bucket as u64;
    }
    ((8 + bucket % 8) as u64) << (bucket / 8 - 1)
}

/// The middle of a bucket: within 1/16 of every value in it, but for the last bucket, which
/// also holds what is longer.
pub fn bucket_middle(bucket: usize) -> u64 {
    let low = bucket_low(bucket);
    low + (bucket_low(bucket + 1) - low) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_and_within_a_sixteenth_of_the_middle() {
        let mut value = 1u64;
        while value < 1 << 43 {
            for v in [value - 1, value, value + 1, value + value / 3] {
                let b = bucket(v);
                assert!(bucket_low(b) <= v && v < bucket_low(b + 1), "{v}");
                let error = bucket_middle(b).abs_diff(v) as f64;
                assert!(error <= v as f64 / 16.0, "{v}: {error}");
            }
            value += value / 7 + 1;
        }
        assert_eq!(bucket(u64::MAX), HIST_BUCKETS - 1);
        assert_eq!(bucket_low(HIST_BUCKETS - 8), 1 << 43);
    }

    #[test]
    fn text_ends_at_its_terminator_and_carries_no_control_characters() {
        assert_eq!(text_at(b"ab\x1b[2J\0rest", 0, 11), "ab?[2J");
        assert_eq!(text_at(b"full", 0, 4), "full");
        assert_eq!(text_at(b"\xff\xfe", 0, 2), "\u{fffd}\u{fffd}");
        assert_eq!(text_at(b"short", 3, 9), "");
    }
}
