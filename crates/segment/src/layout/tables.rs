// SPDX-License-Identifier: PostgreSQL
//! The directory, the event ring and the table of probes.

offsets! {
    /// Offsets in an entry of the directory.
    directory:
    SIZE      = 128, "Bytes.";
    STATE     = 0, "U32: 2 when published.";
    KIND      = 4, "U32: 1 account, 2 timer, 3 value, 4 no statistic but the name of something.";
    HASH      = 8, "U64: FNV-1a of the name.";
    NAME      = 16, "96 bytes of text.";
    UNIT      = 112, "[`UNIT_SIZE`] bytes of text.";
    UNIT_SIZE = 15, "Bytes of a unit.";
    CLASS     = 127, "U8: class of an account; 0: its writer did not know classes.";
}

offsets! {
    /// Offsets in an event.
    event:
    SIZE   = 256, "Bytes.";
    NUMBER = 0, "U64: its number in time, counted from 1; 0 while being written.";
    TICK   = 8, "U64.";
    PID    = 16, "I32.";
    KIND   = 20, "U32: 1 note, 2 warning, 3 blocked; later ones have payloads (`event_payload.rs`).";
    DATA   = 24, "232 bytes: a text or a payload.";
}

offsets! {
    /// Offsets in a probe.
    probe:
    SIZE      = 192, "Bytes.";
    STATE     = 0, "U32: 0 empty, 1 installed, 2 left out.";
    NAME      = 8, "[`NAME_SIZE`] bytes of text.";
    NAME_SIZE = 64, "Bytes of a name.";
    REASON    = 72, "120 bytes of text.";
}
