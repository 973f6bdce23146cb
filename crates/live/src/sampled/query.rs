// SPDX-License-Identifier: PostgreSQL
//! The statements that sample a server, and the meaning of their rows.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use pq::{Client, Row};
use segment::own;

use super::observation::{Ages, Blockage, Observation};

/// What a version of the server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version(pub i32);

impl Version {
    fn has(self, since: i32, column: &'static str, otherwise: &'static str) -> &'static str {
        if self.0 >= since * 10_000 {
            column
        } else {
            otherwise
        }
    }

    /// Prepared once, so that a sample costs no planning. Of a server that computes query identifiers, as our own session shows, a
    /// session without one has not parsed its statement yet; of others, the text tells statements apart. The last column is the
    /// time that the server took: that of the last row counts.
    pub(super) fn prepare(self) -> String {
        let own_id = self.has(
            14,
            "(select query_id from pg_stat_get_activity(pg_backend_pid()))",
            "null::int8",
        );
        let leader = self.has(13, "a.leader_pid", "null::int4");
        let id = self.has(14, "a.query_id", "null::int8");
        // Before, it always is.
        let materialized = self.has(12, "materialized", "");
        format!(
            "/* tally */ prepare tally_sample as
    with t as {materialized} (select clock_timestamp() as at, {own_id} as own_id)
    select (extract(epoch from t.at) * 1e6)::int8, a.pid, (extract(epoch from a.backend_start) * 1e6)::int8, {leader},
           a.backend_type, a.datid, a.usesysid, a.datname::text, a.usename::text, a.application_name,
           case when a.client_port = -1 then 'local' else host(a.client_addr) end, a.state,
           a.wait_event_type || ':' || a.wait_event, {id},
           case when {id} is null and t.own_id is null and a.state <> 'idle' then a.query end,
           (extract(epoch from t.at - a.backend_start) * 1e9)::int8, (extract(epoch from t.at - a.xact_start) * 1e9)::int8,
           (extract(epoch from t.at - a.query_start) * 1e9)::int8, (extract(epoch from t.at - a.state_change) * 1e9)::int8,
           a.query = '<insufficient privilege>',
           a.application_name = 'tally' and substr(a.query, 1, 11) = '/* tally */',
           (extract(epoch from clock_timestamp() - t.at) * 1e9)::int8
    from t left join pg_stat_activity a on a.pid <> pg_backend_pid()"
        )
    }

    /// The sessions that have waited longest for a heavyweight lock. For each of them, pg_blocking_pids
    /// briefly locks the server's whole lock table. If the server does not say when the wait began, the start
    /// of the statement is the best estimate.
    pub(super) fn blocked(self) -> String {
        let since = self.has(14, "l.waitstart", "a.query_start");
        let join = self.has(14, "", "left join pg_stat_activity a using (pid)");
        format!(
            "/* tally */
    select l.pid, (extract(epoch from clock_timestamp() - {since}) * 1e9)::int8, l.locktype,
           coalesce(l.database, 0::oid), coalesce(l.relation, 0::oid), coalesce(l.page, 0), coalesce(l.tuple, 0::int2)::int4,
           l.transactionid::text, l.virtualxid, coalesce(l.classid, 0::oid), coalesce(l.objid, 0::oid),
           coalesce(l.objsubid, 0::int2)::int4, l.mode, pg_blocking_pids(l.pid)::text
    from pg_locks l {join} where not l.granted order by {since} limit 100"
        )
    }
}

const SAMPLE: &str = "/* tally */ execute tally_sample";

/// What identifies the server, and how many processes it may have.
pub(super) const ABOUT: &str = "/* tally */
    select split_part(current_setting('server_version'), ' ', 1),
           (select setting from pg_settings where name = 'data_directory'),
           (extract(epoch from pg_postmaster_start_time()) * 1e6)::int8,
           coalesce(inet_server_port(), current_setting('port')::int4),
           (select sum(setting::int8)::int8 from pg_settings
            where name in ('max_connections', 'autovacuum_max_workers', 'autovacuum_worker_slots',
                           'max_worker_processes', 'max_wal_senders')),
           pg_has_role('pg_read_all_stats', 'usage') or current_setting('is_superuser') = 'on',
           current_setting('server_version_num')::int4, pg_backend_pid()";

/// The limits of our session: no sample may wait for long, or hold anything. PostgreSQL 10 has no jit.
pub(super) const LIMITS: &str =
    "/* tally */ set statement_timeout = '5s'; /* tally */ set lock_timeout = '1s'; \
     /* tally */ select set_config(name, 'off', false) from pg_settings where name = 'jit'; \
     /* tally */ set default_transaction_read_only = on";

/// Sessions at one instant.
pub(super) struct Reading {
    /// The server's time of day, microseconds.
    pub at_us: i64,
    pub sessions: Vec<Observation>,
    /// Whether some sessions are hidden.
    pub hidden: bool,
    /// How long the server took, ns.
    pub took_ns: u64,
}

/// Texts of statements without constants, and the identifiers made of them, so that the text of a long
/// statement is read only once. The key is a hash, so that no constants are kept.
#[derive(Debug, Default)]
pub(super) struct Texts {
    by_hash: HashMap<u64, (i64, String)>,
    hasher: RandomState,
}

impl Texts {
    /// More than the sessions of most servers.
    const MOST: usize = 1000;

    /// The identifier and the text without constants.
    fn normalized(&mut self, text: &str) -> (i64, String) {
        let hash = self.hasher.hash_one(text);
        if let Some(known) = self.by_hash.get(&hash) {
            return known.clone();
        }
        if self.by_hash.len() >= Texts::MOST {
            self.by_hash.clear();
        }
        let (text, fingerprint) = recording::normalized(text);
        let digits = fingerprint.rsplit(':').next().unwrap_or_default();
        let id = u64::from_str_radix(digits, 16).map_or(0, |id| id as i64);
        self.by_hash.insert(hash, (id, text.clone()));
        (id, text)
    }
}

/// Take a sample.
pub(super) fn sample(client: &mut Client, texts: &mut Texts) -> Result<Reading, pq::Error> {
    let rows = client.query(SAMPLE, &[])?;
    let mut reading = Reading { at_us: 0, sessions: Vec::new(), hidden: false, took_ns: 0 };
    reading.sessions.reserve(rows.len());
    for row in &rows {
        reading.at_us = row.get(0)?;
        reading.took_ns =
            row.get::<Option<i64>>(21)?.map_or(0, |ns| u64::try_from(ns).unwrap_or(0));
        let Some(pid) = row.get::<Option<i32>>(1)? else { continue };
        if row.get::<Option<bool>>(19)?.unwrap_or(false) {
            reading.hidden = true;
            continue;
        }
        reading.sessions.push(observation(row, pid, texts)?);
    }
    Ok(reading)
}

fn observation(row: &Row, pid: i32, texts: &mut Texts) -> Result<Observation, pq::Error> {
    let text = |column| -> Result<String, pq::Error> {
        Ok(row.get::<Option<String>>(column)?.unwrap_or_default())
    };
    let age = |column| -> Result<Option<u64>, pq::Error> {
        // Another clock reading of the server may be a little earlier.
        Ok(row.get::<Option<i64>>(column)?.map(|ns| u64::try_from(ns).unwrap_or(0)))
    };
    let mut kind = text(4)?;
    if row.get::<Option<bool>>(20)?.unwrap_or(false) && own::is_client(&kind) {
        kind = own::PROCESS.to_string();
    }
    let (text_id, query) = match row.get::<Option<&str>>(14)? {
        None | Some("") => (0, String::new()),
        Some(query) => texts.normalized(query),
    };
    Ok(Observation {
        pid,
        begun_us: row.get::<Option<i64>>(2)?.unwrap_or(0),
        leader_pid: row.get::<Option<i32>>(3)?.unwrap_or(0),
        kind,
        database_id: row.get::<Option<u32>>(5)?.unwrap_or(0),
        user_id: row.get::<Option<u32>>(6)?.unwrap_or(0),
        database: text(7)?,
        user: text(8)?,
        application: text(9)?,
        client: text(10)?,
        state: text(11)?,
        wait: text(12)?,
        query_id: row.get::<Option<i64>>(13)?.unwrap_or(text_id),
        query,
        ages: Ages {
            session: age(15)?,
            transaction: age(16)?,
            statement: age(17)?,
            state: age(18)?,
        },
    })
}

/// Who waits for which lock, and who blocks them.
pub(super) fn blocked(client: &mut Client, query: &str) -> Result<Vec<Blockage>, pq::Error> {
    client.query(query, &[])?.iter().map(blockage).collect()
}

fn blockage(row: &Row) -> Result<Blockage, pq::Error> {
    let oid = |column| row.get::<u32>(column);
    let number = |column| -> Result<u32, pq::Error> {
        Ok(u32::try_from(row.get::<i32>(column)?).unwrap_or(0))
    };
    let lock_type: String = row.get(2)?;
    let (database, relation, page) = (oid(3)?, oid(4)?, number(5)?);
    let transaction = row.get::<Option<&str>>(7)?.and_then(|xid| xid.parse().ok()).unwrap_or(0);
    let virtual_id = row.get::<Option<&str>>(8)?.and_then(|id| id.split_once('/'));
    let virtual_id = virtual_id.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    let (class, object, part) = (oid(9)?, oid(10)?, number(11)?);
    let (fields, field4) = match lock_type.as_str() {
        "transactionid" => ([transaction, 0, 0], 0),
        "virtualxid" => virtual_id.map_or(([0; 3], 0), |(a, b)| ([a, b, 0], 0)),
        "tuple" => ([database, relation, page], number(6)?),
        "page" => ([database, relation, page], 0),
        "relation" | "extend" | "frozenid" => ([database, relation, 0], 0),
        _ => ([database, class, object], part),
    };
    let blockers = row.get::<&str>(13)?.trim_matches(['{', '}']).split(',');
    Ok(Blockage {
        pid: row.get(0)?,
        age_ns: row.get::<Option<i64>>(1)?.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0),
        lock_type,
        fields,
        field4: field4 as u16,
        mode: row.get(12)?,
        blockers: blockers.filter_map(|pid| pid.parse().ok()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_server_is_asked_only_for_what_it_has() {
        assert!(!LIMITS.contains("set jit"), "{LIMITS}");
        for (version, has, has_not) in [
            (150_020, &["a.query_id", "a.leader_pid", "l.waitstart"][..], &[][..]),
            (130_000, &["a.leader_pid", "a.query_start"], &["query_id", "waitstart"]),
            (120_000, &["null::int4", "materialized"], &["query_id", "leader_pid", "waitstart"]),
            (110_000, &["with t as  (select"], &["materialized", "query_id", "leader_pid"]),
        ] {
            let version = Version(version);
            let text = version.prepare() + &version.blocked();
            assert!(has.iter().all(|part| text.contains(part)), "{version:?}: {text}");
            assert!(!has_not.iter().any(|part| text.contains(part)), "{version:?}: {text}");
        }
    }

    #[test]
    fn a_text_is_normalized_once_and_forgotten_when_there_are_too_many() {
        let mut texts = Texts::default();
        let (id, text) = texts.normalized("select * from t where a in (1, 2)");
        assert_eq!(text, "select * from t where a in (?, ?)");
        assert_eq!(texts.normalized("select * from t where a in (1, 2)").0, id);
        assert_eq!(texts.normalized("select * from t where a in (3)").0, id);
        assert_eq!(texts.by_hash.len(), 2);
        for n in 0..Texts::MOST {
            texts.normalized(&format!("select {n}"));
        }
        assert!(texts.by_hash.len() <= Texts::MOST);
    }
}
