// SPDX-License-Identifier: PostgreSQL
//! The statements that sample a server, and what their rows mean.

use pq::{Client, Row};
use segment::own;

use super::observation::{Ages, Blockage, Observation};
use super::statements::{id_of_text, HIDDEN};

/// Prepared once, so that a sample costs no planning. Of a server that computes query identifiers, as our own session shows, a
/// session without one has not parsed its statement yet; of others, the text tells statements apart.
pub(super) const PREPARE: &str = "/* tally */ prepare tally_sample as
    with t as materialized (
        select clock_timestamp() as at, (select query_id from pg_stat_get_activity(pg_backend_pid())) as own_id)
    select (extract(epoch from t.at) * 1e6)::int8, a.pid, (extract(epoch from a.backend_start) * 1e6)::int8, a.leader_pid,
           a.backend_type, a.datid, a.usesysid, a.datname::text, a.usename::text, a.application_name,
           case when a.client_port = -1 then 'local' else host(a.client_addr) end, a.state,
           a.wait_event_type || ':' || a.wait_event, a.query_id,
           case when a.query_id is null and t.own_id is null and a.state <> 'idle' then a.query end,
           (extract(epoch from t.at - a.backend_start) * 1e9)::int8, (extract(epoch from t.at - a.xact_start) * 1e9)::int8,
           (extract(epoch from t.at - a.query_start) * 1e9)::int8, (extract(epoch from t.at - a.state_change) * 1e9)::int8,
           a.query = '<insufficient privilege>', a.application_name = 'tally' and starts_with(a.query, '/* tally */')
    from t left join pg_stat_activity a on a.pid <> pg_backend_pid()";

const SAMPLE: &str = "/* tally */ execute tally_sample";

/// Sessions that wait for a heavyweight lock, those that have waited longest. For each of them, pg_blocking_pids takes all locks
/// of the server's lock table for a moment.
const BLOCKED: &str = "/* tally */
    select l.pid, (extract(epoch from clock_timestamp() - l.waitstart) * 1e9)::int8, l.locktype,
           coalesce(l.database, 0::oid), coalesce(l.relation, 0::oid), coalesce(l.page, 0), coalesce(l.tuple, 0::int2)::int4,
           l.transactionid::text, l.virtualxid, coalesce(l.classid, 0::oid), coalesce(l.objid, 0::oid),
           coalesce(l.objsubid, 0::int2)::int4, l.mode, pg_blocking_pids(l.pid)::text
    from pg_locks l where not l.granted order by l.waitstart limit 100";

/// What identifies the server, and how many processes it may have.
pub(super) const ABOUT: &str = "/* tally */
    select split_part(current_setting('server_version'), ' ', 1),
           (select setting from pg_settings where name = 'data_directory'),
           (extract(epoch from pg_postmaster_start_time()) * 1e6)::int8,
           coalesce(inet_server_port(), current_setting('port')::int4),
           (select sum(setting::int8)::int8 from pg_settings
            where name in ('max_connections', 'autovacuum_max_workers', 'autovacuum_worker_slots',
                           'max_worker_processes', 'max_wal_senders')),
           pg_has_role('pg_read_all_stats', 'usage') or current_setting('is_superuser') = 'on'";

/// The limits of our session: no sample may wait for long, or hold anything.
pub(super) const LIMITS: &str =
    "/* tally */ set statement_timeout = '5s'; /* tally */ set lock_timeout = '1s'; \
     /* tally */ set jit = off; /* tally */ set default_transaction_read_only = on";

/// Sessions at one instant: the server's time of day in microseconds, the sessions, and whether some are hidden.
pub(super) fn sample(client: &mut Client) -> Result<(i64, Vec<Observation>, bool), pq::Error> {
    let rows = client.query(SAMPLE, &[])?;
    let mut at = 0;
    let mut hidden = false;
    let mut sessions = Vec::with_capacity(rows.len());
    for row in &rows {
        at = row.get(0)?;
        let Some(pid) = row.get::<Option<i32>>(1)? else { continue };
        if row.get::<Option<bool>>(19)?.unwrap_or(false) {
            hidden = true;
            continue;
        }
        sessions.push(observation(row, pid)?);
    }
    Ok((at, sessions, hidden))
}

fn observation(row: &Row, pid: i32) -> Result<Observation, pq::Error> {
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
    let query = text(14)?;
    let query = if query.is_empty() || query == HIDDEN {
        query
    } else {
        recording::without_constants(&query)
    };
    let query_id = row.get::<Option<i64>>(13)?;
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
        query_id: query_id.unwrap_or_else(|| if query.is_empty() { 0 } else { id_of_text(&query) }),
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
pub(super) fn blocked(client: &mut Client) -> Result<Vec<Blockage>, pq::Error> {
    client.query(BLOCKED, &[])?.iter().map(blockage).collect()
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
