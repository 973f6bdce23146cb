// SPDX-License-Identifier: PostgreSQL
//! Queries of a server's own views that must not disturb it: they give up soon. Figures that the server
//! refuses are unknown.

use error::Error;
use pq::Client;
use view::vacuum::{Condition, ConditionKind};

use crate::server::Access;

/// The catalog itself may be locked.
const PATIENCE: &str =
    "/* tally */ set lock_timeout = '200ms'; /* tally */ set statement_timeout = '2s'";

/// A connection to this database, or to the one that [`Access::connect`] chooses, with limits for its waits.
pub(crate) fn connect(access: &Access, database: Option<&str>) -> Result<Client, Error> {
    let mut client = access.connect(database)?;
    client.batch_execute(PATIENCE)?;
    Ok(client)
}

/// The conditions of those queries that the server answers. Their columns are kind, name, database, state, count, bytes,
/// seconds.
pub(crate) fn conditions(client: &mut Client, queries: &[&str]) -> Vec<Condition> {
    let mut all = Vec::new();
    for query in queries {
        if let Ok(rows) = client.query(query, &[]) {
            all.extend(rows.iter().filter_map(condition));
        }
    }
    all
}

/// The condition in such a row; `None`: it is malformed.
pub(crate) fn condition(row: &pq::Row) -> Option<Condition> {
    Some(Condition {
        kind: ConditionKind::from_name(&row.get::<String>(0).ok()?)?,
        name: row.get::<Option<String>>(1).ok()?.unwrap_or_default(),
        database: row.get(2).ok()?,
        state: row.get(3).ok()?,
        count: row.get(4).ok()?,
        bytes: row.get(5).ok()?,
        seconds: row.get(6).ok()?,
    })
}
