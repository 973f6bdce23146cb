// SPDX-License-Identifier: PostgreSQL
//! Relations: the shared table, the local entries of a slot, and their sums.

/// Offsets in an entry of the table of relations.
pub mod relation {
    /// Bytes.
    pub const SIZE: usize = 256;
    /// U64: hash of the key.
    pub const TAG: usize = 0;
    /// U32: 0 free, 1 being made, 2 used, 3 its relation is unlinked.
    pub const STATE: usize = 8;
    /// U32: local entries that hold it.
    pub const PINS: usize = 12;
    /// Five times u32: tablespace, database, relation, fork, 1 + number of a temporary one's session.
    pub const KEY: usize = 16;
    /// U64: flushes into it that have begun.
    pub const FLUSHES: usize = 40;
    /// U64: operations that failed.
    pub const FAILED: usize = 48;
    /// [`crate::layout::RELATION_OPERATIONS`] entries of [`crate::layout::file_sums`].
    pub const SUMS: usize = 64;
}

/// Offsets in a slot's local entry of a relation.
pub mod local_relation {
    /// Bytes.
    pub const SIZE: usize = 192;
    /// U64: odd while it changes.
    pub const SEQ: usize = 0;
    /// U64: hash of the key.
    pub const TAG: usize = 8;
    /// U32: 0 free, 1 used, 2 being flushed.
    pub const STATE: usize = 16;
    /// U32: its entry in the table.
    pub const ENTRY: usize = 20;
    /// U64: operations that failed.
    pub const FAILED: usize = 24;
    /// [`crate::layout::RELATION_OPERATIONS`] entries of [`crate::layout::file_sums`].
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
