// SPDX-License-Identifier: PostgreSQL
//! What tally itself does on a server: which processes and statements are its own. Everything that marks, merges or leaves
//! them out asks here.

/// application_name of its sessions, unless the connection string gives another one.
pub const APPLICATION: &str = "tally";
/// How the texts of its statements begin. The extension keeps this of such sessions only (`pg_tally/ledger/own_session.c`).
pub const MARK: &str = "/* tally */";

/// The kind of process that the extension gives to sessions of [`APPLICATION`] whose role sees everything: any client can have the
/// name. They have groups, statistics and recorded rows of their own (`pg_tally/ledger/own_session.c`).
pub const PROCESS: &str = "client backend (tally)";

/// The kind of process that works for a client: not tally's own sessions, and none that only replicates.
pub const CLIENT: &str = "client backend";

/// Whether processes of this kind work for clients. A command is a message of a client that such a process handles.
pub fn is_client(kind: &str) -> bool {
    kind == CLIENT
}

/// Whether processes of this kind are its own sessions.
pub fn is_process(kind: &str) -> bool {
    kind == PROCESS
}

/// Whether a statement of this text is its own: no session of others has sent it first.
pub fn is_statement(text: &str) -> bool {
    text.starts_with(MARK)
}
