// SPDX-License-Identifier: PostgreSQL
//! The ring of a trace and its records (`libtally/include/tally_trace.h`).

/// Records of a ring.
pub const TRACE_RECORDS: u64 = 16_384;

offsets! {
    /// Offsets in a ring; its records follow.
    trace:
    SIZE            = 4096, "Bytes, without the records.";
    CLAIM           = 0, "U32: state in the low 8 bits, generation above.";
    FLAGS           = 4, "U32: bit 0: for workers of the process only; bit 1: with nodes.";
    PID             = 8, "I32: asked for; 0: any session.";
    READER_PID      = 12, "I32: who has armed it.";
    READER_BOOT_NS  = 16, "U64, ns of CLOCK_BOOTTIME.";
    UNTIL           = 24, "U64: tick; the reader renews it.";
    APPLICATION     = 32, "64 bytes of text; empty: any, as the next two.";
    USER            = 96, "64 bytes of text.";
    DATABASE        = 160, "64 bytes of text.";
    OWNER_PID       = 256, "I32: who has taken it.";
    LEADER_PID      = 260, "I32: of a parallel worker, else 0.";
    SLOT            = 264, "U32: its slot.";
    SLOT_GENERATION = 268, "U32: which owner of the slot it is.";
    BEGUN           = 272, "U64: tick.";
    NODE            = 280, "U32: 1 + number of the plan's node that runs now; 0: none.";
    HEAD            = 320, "U64: records written in this generation.";
}

offsets! {
    /// Offsets in a record.
    trace_record:
    SIZE   = 64, "Bytes.";
    NUMBER = 0, "U64: generation << 40, 1 + position; 0 while it changes.";
    TICK   = 8, "U64.";
    TICKS  = 16, "U64.";
    KIND   = 24, "U8: what it reports.";
    OP     = 25, "U8: by kind, as all that follow.";
    MORE   = 26, "U8.";
    FAILED = 27, "U8.";
    NODE   = 28, "U16: 1 + number of a plan's node, 0: none.";
    STAT   = 32, "U32: 1 + directory number of an account, 0: none.";
    NEXT   = 36, "U32: the same.";
    WORDS  = 40, "Six times u32.";
}
