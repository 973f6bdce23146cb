// SPDX-License-Identifier: PostgreSQL
//! Offsets in the header.

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
/// U64: counts that could not be flushed.
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
/// U64: merges completed.
pub const MERGE_COUNT: usize = 1296;
/// U64: 1 while group books change.
pub const MERGE_ACTIVE: usize = 1304;
/// U64: files given up with writes not synced.
pub const OVERFLOW_FILES: usize = 1344;
/// U64: times that a relation found no free entry.
pub const OVERFLOW_RELATIONS: usize = 1352;
/// U64: local relations left half flushed by a process that died.
pub const RELATIONS_LOST: usize = 1360;
/// U64: claims refused because the file system was full.
pub const REFUSED_MEMORY: usize = 1368;
/// U32: 1: a process that was refused a slot waits for one.
pub const REFUSED_CLAIMS: usize = 1412;
/// Where the live part ends.
pub const LIVE_END: usize = 1416;
