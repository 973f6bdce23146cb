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

/// Whether a row is of one statement, which can have a page: not of tally itself, and not work without a known statement, such
/// as the start of sessions.
pub fn is_of_statement(row: &StatementFigures) -> bool {
    !row.own && !row.unnamed && row.key.is_identified()
}

/// The key of a row's statement in a document; `None`: the row is not of one statement.
pub fn key_of_row(row: &StatementFigures) -> Option<String> {
    is_of_statement(row).then(|| statement_key(&statement_id(&row.key)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use view::sample;

    #[test]
    fn only_rows_of_one_statement_have_a_key() {
        let row = &sample::statements().rows[0];
        assert!(key_of_row(row).is_some());
        let own = StatementFigures { own: true, ..row.clone() };
        let unnamed = StatementFigures { unnamed: true, queryid: None, ..row.clone() };
        let key = StatementKey { id: 0, ..row.key };
        let not_identified = StatementFigures { key, queryid: None, query: None, ..row.clone() };
        for other in [own, unnamed, not_identified] {
            assert_eq!(key_of_row(&other), None);
        }
    }
}
