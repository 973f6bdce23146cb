// SPDX-License-Identifier: PostgreSQL
//! Statements: keys, counts, the shared table with its sets and texts, and the caches of the slots.

offsets! {
    /// Offsets in a statement's key.
    key:
    SIZE        = 24, "Bytes.";
    ID          = 0, "U64: query identifier; 0: work of unknown statements.";
    DATABASE_ID = 8, "U32.";
    USER_ID     = 12, "U32.";
    TOPLEVEL    = 16, "U32: 1: sent by the client, 0: executed by another statement.";
    BEFORE      = 20, "U32: of a current, 1: of the statement before; the one in progress is not known yet.";
}

offsets! {
    /// Offsets in count, sum and extremes of a statement's times.
    moments:
    SIZE    = 40, "Bytes.";
    COUNT   = 0, "U64.";
    TOTAL   = 8, "U64, ticks.";
    MIN     = 16, "U64; meaningless while the count is 0.";
    MAX     = 24, "U64.";
    SQUARES = 32, "F64: sum of the squared ticks.";
}

offsets! {
    /// Offsets in a statement's counts.
    counts:
    SIZE             = 512, "Bytes.";
    EXEC             = 0, "[`crate::layout::moments`] of executions.";
    ROWS             = 40, "U64.";
    LAST_US          = 48, "I64: microseconds since 1970, 0 unknown.";
    BLOCKS           = 56, "Ten times u64.";
    NEAR             = 64, "Bytes of the counts in an entry itself.";
    WAL              = 136, "Three times u64.";
    IO_TICKS         = 160, "Four times u64.";
    WAL_BUFFERS_FULL = 192, "U64.";
    PLAN             = 200, "[`crate::layout::moments`] of plannings.";
    FIRST_US         = 240, "I64, like the last; 0: the same as the last.";
    IO_NS            = 248, "Four times u64.";
    LOCAL_IO_NS      = 280, "Twice u64: of the first two of these.";
    TEMP_FILES       = 296, "U64.";
    TEMP_BYTES       = 304, "U64.";
    ERRORS           = 312, "U64.";
    CANCELS          = 320, "U64.";
    WORKERS          = 328, "U64.";
    WORKER_TICKS     = 336, "U64.";
    JIT              = 344, "Ten times u64.";
    WORKERS_PLANNED  = 424, "U64.";
    WORKERS_LAUNCHED = 432, "U64.";
    GENERIC_PLANS    = 440, "U64.";
    CUSTOM_PLANS     = 448, "U64.";
    USER_NS          = 456, "U64.";
    SYSTEM_NS        = 464, "U64.";
    FAILED           = 472, "Ten times u32, up to the end.";
}

offsets! {
    /// Offsets in a part of a statement's time.
    part:
    SIZE  = 24, "Bytes.";
    STAT  = 0, "U32: 1 + directory index of an account, 0 unused.";
    COUNT = 8, "U64.";
    TICKS = 16, "U64.";
}

offsets! {
    /// Offsets in an entry of the table of statements.
    statement:
    SIZE       = 256, "Bytes.";
    SEQ        = 0, "U64: odd while it changes.";
    KEY        = 8, "[`crate::layout::key`].";
    STATE      = 32, "U32: 0 free, 1 used.";
    TEXT       = 36, "U32: 1 + first block of its text, 0 none.";
    TEXT_BYTES = 40, "U32: kept.";
    TEXT_WHOLE = 44, "U32: of the whole text.";
    ENCODING   = 48, "I32: the producer's number of the text's encoding.";
    MORE       = 52, "U32: 1: its rest is in use.";
    BORN       = 56, "U64, tick.";
    COUNTS     = 64, "The first [`crate::layout::counts::NEAR`] bytes of [`crate::layout::counts`].";
    BASE       = 128, "U32: the first of the buckets that follow.";
    HIST       = 136, "[`crate::layout::NEAR_BUCKETS`] times u32.";
    PARTS      = 192, "[`crate::layout::NEAR_PARTS`] entries of [`crate::layout::part`].";
    FIRST_US   = 240, "I64, as in [`crate::layout::counts`].";
    SINCE_US   = 248, "I64: since when it counts, microseconds since 1970.";
}

offsets! {
    /// Offsets in the rest of an entry, which is added to the entry.
    rest:
    SIZE   = 3840, "Bytes.";
    COUNTS = 0, "[`crate::layout::counts`].";
    PARTS  = 512, "[`crate::layout::PARTS`] entries of [`crate::layout::part`].";
    HIST   = 1088, "U64 a bucket.";
}

offsets! {
    /// Offsets in a set of the table of statements.
    set:
    SIZE    = 448, "Bytes.";
    FLUSHES = 16, "U64: flushes into it, ever.";
    TAGS    = 64, "[`crate::layout::WAYS`] times u32: lower half of the hash of each entry's key, 0 free.";
    LOG     = 192, "[`crate::layout::SET_LOG`] times u64: generation << 24 | local entry << 16 | slot.";
}

offsets! {
    /// Offsets in a block of text.
    block:
    SIZE  = 256, "Bytes.";
    NEXT  = 0, "U32: 1 + the next block, 0 none.";
    BYTES = 4, "Text, up to the end.";
}

offsets! {
    /// Offsets in a local entry of a slot's cache of statements.
    local_statement:
    SIZE       = 2496, "Bytes.";
    SEQ        = 0, "U64: odd while it changes.";
    GENERATION = 8, "U64: counts the uses of this local entry.";
    DROP       = 16, "U64: the generation that was reset.";
    KEY        = 24, "[`crate::layout::key`].";
    STATE      = 48, "U32: 0 free, 1 used.";
    COUNTS     = 64, "[`crate::layout::counts`].";
    PARTS      = 576, "[`crate::layout::PARTS`] entries of [`crate::layout::part`].";
    HIST       = 1152, "U32 a bucket; not written before the second execution.";
}

offsets! {
    /// Offsets in a set of unsynced files.
    unsynced:
    SIZE  = 320, "Bytes.";
    NAMES = 0, "[`crate::layout::FILE_WAYS`] times u64: hash of each file's name, 0 free, 1 changing hands.";
    FILES = 64, "[`crate::layout::FILE_WAYS`] times four u64: writes, bytes, synced writes, synced bytes.";
}

offsets! {
    /// Offsets in the head of a slot's cache: the current statement. The local entries follow.
    current:
    SIZE  = 704, "Bytes.";
    SEQ   = 0, "U64: odd while it changes.";
    KEY   = 8, "[`crate::layout::key`].";
    BEGUN = 32, "U64: tick, 0: no statement.";
    SINCE = 40, "U64: tick from which CPU time is not in parts yet.";
    USED  = 48, "U32: parts in use.";
    HAS_TEXT = 52, "U32: 1: the text of its message has memory.";
    WAITS = 56, "U64: ticks of waits since then that are already in parts.";
    PARTS = 64, "[`crate::layout::PARTS`] entries of [`crate::layout::part`].";
}

offsets! {
    /// Offsets in the text of a message whose statement is not known yet, behind the local entries of a cache.
    message_text:
    OFFSET      = 160_448, "Where it is in the cache.";
    SIZE        = 1024, "Bytes.";
    BEGUN       = 0, "U64: of the message, as in the current; 0 while it changes.";
    BYTES       = 8, "U32: bytes of the text.";
    WHOLE       = 12, "U32: bytes of the whole message.";
    ENCODING    = 16, "I32: PostgreSQL's number.";
    USER_ID     = 20, "U32: whose it is.";
    DATABASE_ID = 24, "U32: its database.";
    TEXT        = 32, "The text, without constants.";
}

offsets! {
    /// Offsets in an entry of the table of plans.
    plan:
    SIZE       = 4096, "Bytes.";
    STATE      = 0, "U32: 0 free, 1 being written, 2 used.";
    KEY        = 8, "The statement's key.";
    SHAPE      = 32, "U64: hash of the plan's nodes.";
    FIRST      = 40, "U64: tick at which it was first noted.";
    LAST       = 48, "U64: the same of the last time.";
    COUNT      = 56, "U64: executions noted.";
    TICKS      = 64, "U64: how long they took.";
    MAX        = 72, "U64: the longest.";
    ROWS       = 80, "U64: returned or changed by them.";
    COST       = 88, "F64: the planner's, of the first one.";
    TEXT_BYTES = 96, "U32: of the text, stored.";
    TEXT_WHOLE = 100, "U32: of the whole text.";
    GENERATION = 104, "U64: counts the plans that the entry has had.";
    ENCODING   = 112, "I32: 1 + PostgreSQL's number of its encoding; 0: not known.";
    TEXT       = 120, "A line for each node.";
}
