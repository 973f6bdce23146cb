// SPDX-License-Identifier: PostgreSQL
//! Which statement a row of a table, a row of a ranking and a history are about.

use segment::StatementKey;
use view::statements::StatementFigures;

/// A statement of all applications together: query ID, OIDs of database and user, whether a client sent it.
pub type StatementId = (i64, u32, u32, bool);

/// The key of a statement in a document, which also names its page.
pub fn statement_key((queryid, database, user, toplevel): &StatementId) -> String {
    let nested = if *toplevel { "" } else { ".nested" };
    format!("{queryid}.{database}.{user}{nested}")
}

/// The statement of a key, all applications together.
pub fn statement_id(key: &StatementKey) -> StatementId {
    (key.query_id(), key.database_id, key.user_id, key.toplevel)
}

/// The key of a row's statement in a document; `None`: the row is not of one statement.
pub fn key_of_row(row: &StatementFigures) -> Option<String> {
    (!row.own && !row.unnamed).then(|| statement_key(&statement_id(&row.key)))
}
