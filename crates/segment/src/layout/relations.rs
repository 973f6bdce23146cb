// SPDX-License-Identifier: PostgreSQL
//! Relations: the shared table, the local entries of a slot, and their sums.

offsets! {
    /// Offsets in an entry of the table of relations.
    relation:
    SIZE    = 256, "Bytes.";
    TAG     = 0, "U64: hash of the key.";
    STATE   = 8, "U32: 0 free, 1 being made, 2 used, 3 its relation is unlinked.";
    PINS    = 12, "U32: local entries that hold it.";
    KEY     = 16, "Five times u32: tablespace, database, relation, fork, 1 + number of a temporary one's session.";
    FLUSHES = 40, "U64: flushes into it that were started.";
    FAILED  = 48, "U64: operations that failed.";
    SUMS    = 64, "[`crate::layout::RELATION_OPERATIONS`] entries of [`crate::layout::file_sums`].";
}

offsets! {
    /// Offsets in a slot's local entry of a relation.
    local_relation:
    SIZE   = 192, "Bytes.";
    SEQ    = 0, "U64: odd while it changes.";
    TAG    = 8, "U64: hash of the key.";
    STATE  = 16, "U32: 0 free, 1 used, 2 being flushed.";
    ENTRY  = 20, "U32: its entry in the table.";
    FAILED = 24, "U64: operations that failed.";
    SUMS   = 32, "[`crate::layout::RELATION_OPERATIONS`] entries of [`crate::layout::file_sums`].";
}

offsets! {
    /// Offsets in the sums of one operation on the files of a relation.
    file_sums:
    SIZE  = 32, "Bytes.";
    COUNT = 0, "U64.";
    BYTES = 8, "U64.";
    TICKS = 16, "U64.";
    MAX   = 24, "U64: ticks of the longest.";
}
