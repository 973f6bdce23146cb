// SPDX-License-Identifier: PostgreSQL
//! How sentences name sessions, and how SQL in advice names objects.

use segment::interval::SessionRow;

/// A name as SQL needs it: quoted unless it consists of lower-case letters, digits and underscores.
pub(super) fn identifier(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    match begins && name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// A string constant.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// "session 123 (application psql, user joe, database shop)".
pub(super) fn name(session: &SessionRow) -> String {
    let parts = parts(session);
    match parts.is_empty() {
        true => format!("session {}", session.pid),
        false => format!("session {} ({})", session.pid, parts.join(", ")),
    }
}

/// "application psql", "user joe", "database shop", "client 10.0.0.7".
pub(super) fn parts(session: &SessionRow) -> Vec<String> {
    let mut parts = Vec::new();
    if !session.application.is_empty() {
        parts.push(format!("application {}", session.application));
    }
    parts.extend(session.user.as_ref().map(|user| format!("user {user}")));
    parts.extend(session.database.as_ref().map(|database| format!("database {database}")));
    let client = session.client_address.as_ref().filter(|client| *client != "local");
    parts.extend(client.map(|client| format!("client {client}")));
    parts
}
