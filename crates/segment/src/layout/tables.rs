// SPDX-License-Identifier: PostgreSQL
//! The directory, the event ring and the table of probes.

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
    /// [`UNIT_SIZE`] bytes of text.
    pub const UNIT: usize = 112;
    /// Bytes of a unit.
    pub const UNIT_SIZE: usize = 15;
    /// U8: class of an account; 0: its writer did not know classes.
    pub const CLASS: usize = 127;
}

/// Offsets in an event.
pub mod event {
    /// Bytes.
    pub const SIZE: usize = 256;
    /// U64: its number in time, counted from 1; 0 while being written.
    pub const NUMBER: usize = 0;
    /// U64.
    pub const TICK: usize = 8;
    /// I32.
    pub const PID: usize = 16;
    /// U32: 1 note, 2 warning, 3 blocked; later ones have payloads (`event_payload.rs`).
    pub const KIND: usize = 20;
    /// 232 bytes: a text or a payload.
    pub const DATA: usize = 24;
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
