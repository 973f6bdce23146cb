// SPDX-License-Identifier: PostgreSQL
//! Queries of a server's own views that must not disturb it: they give up soon. Figures that the server
//! refuses are unknown.

use std::borrow::Cow;

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
    let version = client.server_version();
    for query in queries {
        if let Ok(rows) = client.query(&of_version(query, version), &[]) {
            all.extend(rows.iter().filter_map(condition));
        }
    }
    all
}

/// What older servers lack: the major version that has it, and what stands for it before.
const SINCE: [(i32, &str, &str); 5] = [
    (11, "indnkeyatts", "indnatts"),
    (11, "sender_host || ':' || sender_port", "null::text"),
    // Before, each is.
    (12, " as materialized (", " as ("),
    (13, "wal_status", "null::text"),
    (14, "(select stats_reset from pg_stat_wal)", "null::timestamptz"),
];

/// The query for this version of the server, as server_version_num has it.
pub(crate) fn of_version(query: &str, version: i32) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(query);
    for (since, new, old) in SINCE {
        if version > 0 && version < since * 10_000 && text.contains(new) {
            text = text.replace(new, old).into();
        }
    }
    text
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_server_is_asked_only_for_what_it_has() {
        for (version, lacks) in [
            (190_000, &[][..]),
            (150_020, &[]),
            (130_023, &["pg_stat_wal)"]),
            (120_022, &["pg_stat_wal)", "wal_status"]),
            (110_022, &["pg_stat_wal)", "wal_status", "materialized"]),
            (100_023, &["pg_stat_wal)", "wal_status", "materialized", "indnkeyatts", "sender_"]),
        ] {
            let all: String =
                crate::vacuum::queries().map(|query| of_version(query, version)).collect();
            for new in ["pg_stat_wal)", "wal_status", "materialized", "indnkeyatts", "sender_"] {
                assert_eq!(all.contains(new), !lacks.contains(&new), "{version}: {new}");
            }
        }
    }
}
