// SPDX-License-Identifier: PostgreSQL
//! Which processes and statements of a server are tally's own. All code that marks, merges or omits them uses this
//! module.

/// application_name of tally's sessions, unless the connection string sets another.
pub const APPLICATION: &str = "tally";
/// The beginning of the texts of tally's statements. The extension keeps this comment only for such sessions
/// (`pg_tally/ledger/own_session.c`). If an application might send the same statement, tally's has an
/// additional column: the server gives the same id to statements that differ only in comments and constants,
/// and keeps the text of the first one.
pub const MARK: &str = "/* tally */";

/// The kind of process that the extension assigns to sessions named [`APPLICATION`] whose role sees everything, because
/// any client can use the name. They have separate groups, statistics and recorded rows
/// (`pg_tally/ledger/own_session.c`).
pub const PROCESS: &str = "client backend (tally)";

/// The kind of process that works for a client, except for tally's own sessions and WAL senders.
pub const CLIENT: &str = "client backend";

/// Whether processes of this kind work for clients. A command is a client message that such a process handles.
pub fn is_client(kind: &str) -> bool {
    kind == CLIENT
}

/// Whether processes of this kind are tally's own sessions.
pub fn is_process(kind: &str) -> bool {
    kind == PROCESS
}

/// Whether a statement with this text is tally's own, which means that no other session sent it first.
pub fn is_statement(text: &str) -> bool {
    text.starts_with(MARK)
}
