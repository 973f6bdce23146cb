// SPDX-License-Identifier: PostgreSQL
//! What tally itself does on a server: which sessions and statements are its own. Everything that marks or merges them
//! asks here.

/// application_name of its sessions, unless the connection string gives another one.
pub const APPLICATION: &str = "tally";
/// How the texts of its statements begin.
pub const MARK: &str = "/* tally */";

/// Whether a session of this application_name is its own.
pub fn is_session(application: &str) -> bool {
    application == APPLICATION
}

/// Whether a statement of this text is its own: no session of others has sent it first.
pub fn is_statement(text: &str) -> bool {
    text.starts_with(MARK)
}
