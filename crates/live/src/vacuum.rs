// SPDX-License-Identifier: PostgreSQL
//! Asks the server how far vacuum is behind, what holds it back, and for other conditions. What it refuses is not known.

use std::path::Path;
use std::sync::mpsc::{channel, Receiver, TryRecvError};
use std::time::{Duration, Instant};

use pq::Client;
use segment::Segment;
use view::vacuum::{Condition, ConditionKind, Holder, Table, Vacuum};

use crate::server::Access;

/// Number of databases to query, the busiest first; each costs a connection.
const DATABASES: i64 = 8;
/// The catalog itself may be locked.
const PATIENCE: &str =
    "/* tally */ set lock_timeout = '200ms'; /* tally */ set statement_timeout = '2s'";

/// Tables of the current database whose dead rows exceed twice autovacuum's threshold and a fifth of the live rows.
/// The threshold is computed as in relation_needs_vacanalyze (autovacuum.c), with the table's own settings.
const TABLES: &str = "/* tally */
    select case s.schemaname when 'public' then '' else quote_ident(s.schemaname) || '.' end || quote_ident(s.relname),
           s.n_live_tup, s.n_dead_tup, t.threshold, t.off,
           extract(epoch from clock_timestamp() - greatest(s.last_vacuum, s.last_autovacuum))::float8
    from pg_stat_user_tables s
    join pg_class c on c.oid = s.relid
    cross join lateral (
        select current_setting('autovacuum') = 'off' or bool_or(o.name = 'autovacuum_enabled' and not o.value::bool) as off,
               least(coalesce(max(o.value::float8) filter (where o.name = 'autovacuum_vacuum_threshold'),
                              current_setting('autovacuum_vacuum_threshold')::float8)
                     + coalesce(max(o.value::float8) filter (where o.name = 'autovacuum_vacuum_scale_factor'),
                                current_setting('autovacuum_vacuum_scale_factor')::float8) * greatest(c.reltuples, 0),
                     -- since 18
                     nullif(current_setting('autovacuum_vacuum_max_threshold', true), '-1')::float8) as threshold
        from (select option_name as name, option_value as value from pg_options_to_table(c.reloptions)
              where option_name in ('autovacuum_enabled', 'autovacuum_vacuum_threshold',
                                    'autovacuum_vacuum_scale_factor')) o
    ) t
    where s.n_dead_tup >= 10000 and s.n_dead_tup >= 2 * t.threshold and s.n_dead_tup * 5 >= s.n_live_tup
    order by s.n_dead_tup desc
    limit 5";

const HOLDERS: &str = "/* tally */
    select * from (
        select 'session ' || pid || coalesce(' (' || nullif(concat_ws(', ', 'application ' || nullif(application_name, ''),
                   'user ' || usename, 'database ' || datname), '') || ')', ''),
               coalesce(state, ''), greatest(age(backend_xmin), age(backend_xid))::int8, extract(epoch from clock_timestamp() - xact_start)::float8, datname::text
        from pg_stat_activity
        where (backend_xmin is not null or backend_xid is not null) and backend_type = 'client backend' and pid <> pg_backend_pid()
        union all
        select 'prepared transaction ' || quote_literal(gid), '', age(transaction)::int8,
               extract(epoch from clock_timestamp() - prepared)::float8, database::text
        from pg_prepared_xacts
        union all
        select 'replication slot ' || quote_ident(slot_name), case when active then '' else 'inactive' end,
               age(xmin)::int8, null::float8, null::text
        from pg_replication_slots where xmin is not null
    ) all_holders (name, state, transactions, seconds, database)
    order by transactions desc, seconds desc nulls last
    limit 5";

/// Conditions of the whole server, as [`ConditionKind`] has them: kind, name, database, state, count, bytes, seconds. Each is
/// asked for by itself, so that one that the server refuses hides no other.
const CONDITIONS: [&str; 6] = [
    "/* tally */
    select 'slot', slot_name::text, database::text, slot_type || case when active then '' else ', inactive' end, 0::int8,
           greatest(pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end,
                                    restart_lsn), 0)::int8, null::float8
    from pg_replication_slots s
    -- since 17, a standby has copies of its primary's slots, which nobody uses there
    where restart_lsn is not null and wal_status is distinct from 'lost'
      and not coalesce((to_jsonb(s) ->> 'synced')::bool, false)
    order by 6 desc limit 10",
    "/* tally */
    select 'prepared', gid, database::text, owner::text, 0::int8, 0::int8,
           extract(epoch from clock_timestamp() - prepared)::float8
    from pg_prepared_xacts order by prepared limit 10",
    "/* tally */
    select 'age', '', datname::text, '', age(datfrozenxid)::int8, mxid_age(datminmxid)::int8, null::float8
    from pg_database
    where age(datfrozenxid) > current_setting('autovacuum_freeze_max_age')::int8
       or mxid_age(datminmxid) > current_setting('autovacuum_multixact_freeze_max_age')::int8
    order by 5 desc limit 5",
    "/* tally */
    select 'deadlocks', '', datname::text, '', deadlocks::int8, 0::int8, null::float8
    from pg_stat_database where datname is not null",
    // Without a standby of those that are waited for, the setting itself.
    "/* tally */
    select 'standby', coalesce(r.application_name, s.names), null::text,
           coalesce(r.sync_state || ', ' || r.state, 'not connected'), coalesce(r.pid, 0)::int8,
           coalesce(greatest(pg_wal_lsn_diff(r.sent_lsn, r.flush_lsn), 0), 0)::int8, extract(epoch from r.flush_lag)::float8
    from (select current_setting('synchronous_standby_names') as names) s
    left join pg_stat_replication r on r.sync_state in ('sync', 'quorum', 'potential')
    -- others see no states of walsenders
    where s.names <> '' and pg_has_role('pg_read_all_stats', 'usage')
    order by r.sync_state = 'potential', 6 desc limit 10",
    "/* tally */
    select 'throttled', substring(query from '^autovacuum: (?:VACUUM |ANALYZE )*(.*?)(?: [(]to prevent wraparound[)])?$'), datname::text,
           'autovacuum_vacuum_cost_delay = '
           || case current_setting('autovacuum_vacuum_cost_delay') when '-1' then current_setting('vacuum_cost_delay')
              else current_setting('autovacuum_vacuum_cost_delay') end
           || ', autovacuum_vacuum_cost_limit = '
           || case current_setting('autovacuum_vacuum_cost_limit') when '-1' then current_setting('vacuum_cost_limit')
              else current_setting('autovacuum_vacuum_cost_limit') end,
           pid::int8, 0::int8, extract(epoch from clock_timestamp() - xact_start)::float8
    from pg_stat_activity
    where backend_type = 'autovacuum worker' and wait_event = 'VacuumDelay' limit 10",
];

/// Conditions of the current database. The catalogs are those that temporary tables and DDL make grow; a row takes some
/// 250 bytes there.
const CONDITIONS_OF_DATABASE: [&str; 2] = [
    "/* tally */
    select 'catalog', s.relname::text, current_database()::text, '', greatest(n_live_tup, c.reltuples)::int8,
           pg_relation_size(relid)::int8, null::float8
    from pg_stat_sys_tables s join pg_class c on c.oid = s.relid
    -- after a crash, the statistics know of no rows
    where s.schemaname = 'pg_catalog' and c.reltuples > 0 and not pg_is_in_recovery()
      and s.relname in ('pg_class', 'pg_attribute', 'pg_type', 'pg_depend', 'pg_index', 'pg_attrdef', 'pg_constraint',
                      'pg_shdepend', 'pg_largeobject_metadata', 'pg_sequence')
      and pg_relation_size(relid) > 16 * 1024 * 1024 and pg_relation_size(relid) > 4 * 250 * greatest(n_live_tup, c.reltuples)
    order by 6 desc limit 3",
    "/* tally */
    select 'statistics',
           case s.schemaname when 'public' then '' else quote_ident(s.schemaname) || '.' end || quote_ident(s.relname),
           current_database()::text, '', n_live_tup::int8, n_mod_since_analyze::int8,
           extract(epoch from clock_timestamp() - greatest(last_analyze, last_autoanalyze))::float8
    from pg_stat_user_tables s join pg_class c on c.oid = s.relid
    -- the statistics of a table that was analyzed before a crash are gone, but reltuples is not; autovacuum needs a minute or two
    where n_live_tup >= 1000
      and (greatest(last_analyze, last_autoanalyze) is null and (c.reltuples < 0 or n_live_tup >= 2 * c.reltuples)
           or n_mod_since_analyze >= greatest(n_live_tup, 1000)
              and greatest(last_analyze, last_autoanalyze) < clock_timestamp() - interval '3 min')
    order by n_mod_since_analyze desc limit 10",
];

/// What the server of this segment says; `None`: there is no connection to it. Counts are since its statistics were reset:
/// [`Vacuum::since`] makes them those of an interval.
pub fn read(segment: &Segment) -> Option<Vacuum> {
    of_server(&Access::open_to_us(segment)?)
}

/// How often a live view asks the server.
const LIVE: Duration = Duration::from_secs(30);
/// How often a recorder asks the server: dead rows do not come and go within minutes.
const RECORDER: Duration = Duration::from_secs(300);

/// Asks repeatedly, each time in a separate thread, so that a live view does not wait for the server.
#[derive(Debug)]
pub struct Watch {
    every: Duration,
    /// The last reply; `None`: there is none yet, or the server has refused.
    last: Option<Vacuum>,
    /// The same with counts since the server's statistics were reset.
    totals: Option<Vacuum>,
    answers: Option<Receiver<Option<Vacuum>>>,
    asked: Option<Instant>,
    refused: bool,
}

impl Watch {
    fn every(every: Duration) -> Watch {
        Watch { every, last: None, totals: None, answers: None, asked: None, refused: false }
    }

    /// For a live view: every 30 s.
    pub fn live() -> Watch {
        Watch::every(LIVE)
    }

    /// For a recorder: every five minutes.
    pub fn recorder() -> Watch {
        Watch::every(RECORDER)
    }

    /// The last reply of this segment's server. It is no older than the time between queries, unless the server is
    /// slow.
    pub fn next(&mut self, segment: &Segment) -> Option<Vacuum> {
        self.news(segment);
        self.last.clone()
    }

    /// A reply that has arrived since the last call.
    pub fn news(&mut self, segment: &Segment) -> Option<&Vacuum> {
        let mut new = false;
        match self.answers.as_ref().map(Receiver::try_recv) {
            Some(Ok(answer)) => {
                // Asking again would only add another line to its log.
                (self.refused, self.answers) = (answer.is_none(), None);
                let since = |answer: Vacuum| answer.since(self.totals.as_ref());
                (self.last, new) = (answer.clone().map(since), true);
                self.totals = answer;
            }
            Some(Err(TryRecvError::Disconnected)) => self.answers = None,
            Some(Err(TryRecvError::Empty)) | None => {}
        }
        let due = self.asked.is_none_or(|asked| asked.elapsed() >= self.every);
        if due && self.answers.is_none() && !self.refused {
            self.asked = Some(Instant::now());
            self.answers = Access::open_to_us(segment).and_then(ask);
        }
        self.last.as_ref().filter(|_| new)
    }
}

/// The channel through which the reply will arrive.
fn ask(access: Access) -> Option<Receiver<Option<Vacuum>>> {
    let (answer, answers) = channel();
    let work = move || {
        // Fails if the view has ended.
        let _ = answer.send(of_server(&access));
    };
    let thread = std::thread::Builder::new().name("vacuum".to_string()).spawn(work);
    thread.ok().map(|_| answers)
}

fn of_server(access: &Access) -> Option<Vacuum> {
    let mut first = connect(access, "postgres")?;
    let asked = Instant::now();
    let holders = first.query(HOLDERS, &[]).ok()?;
    let holder = |row: &pq::Row| -> Result<Holder, pq::Error> {
        Ok(Holder {
            name: row.get(0)?,
            state: row.get(1)?,
            transactions: row.get(2)?,
            seconds: row.get(3)?,
            database: row.get(4)?,
        })
    };
    let holders = holders.iter().map(holder).collect::<Result<_, _>>().ok()?;
    let databases = "/* tally */ select d.datname::text from pg_database d join pg_stat_database s on s.datid = d.oid
                     where d.datallowconn and not d.datistemplate order by s.tup_updated + s.tup_deleted desc limit $1";
    let names = first.query(databases, &[&DATABASES]).ok()?;
    let mut conditions = conditions(&mut first, &CONDITIONS);
    let free = matches!(access, Access::Socket(_)).then(|| free_for_wal(&mut first)).flatten();
    for slot in conditions.iter_mut().filter(|it| it.kind == ConditionKind::Slot) {
        slot.count = free.unwrap_or(0);
    }
    let mut tables: Vec<Table> = Vec::new();
    for database in names.iter().filter_map(|row| row.get::<String>(0).ok()) {
        let Some(mut client) = connect(access, &database) else { continue };
        let found = of_database(&mut client, &database).unwrap_or_default();
        tables.extend(found.into_iter().map(|table| as_of(table, asked.elapsed())));
        conditions.extend(self::conditions(&mut client, &CONDITIONS_OF_DATABASE));
    }
    tables.sort_by_key(|table| std::cmp::Reverse(table.dead_rows));
    Some(Vacuum { tables, holders, conditions })
}

/// The table as it was this long ago. Whoever holds rows back was asked for earlier: on a busy machine, a transaction older than
/// the last vacuum would seem to be younger.
fn as_of(table: Table, ago: Duration) -> Table {
    let vacuumed = table.vacuumed_seconds_ago.map(|it| (it - ago.as_secs_f64()).max(0.0));
    Table { vacuumed_seconds_ago: vacuumed, ..table }
}

/// Those that the server tells us.
fn conditions(client: &mut Client, queries: &[&str]) -> Vec<Condition> {
    let condition = |row: &pq::Row| -> Option<Condition> {
        Some(Condition {
            kind: ConditionKind::from_name(&row.get::<String>(0).ok()?)?,
            name: row.get::<Option<String>>(1).ok()?.unwrap_or_default(),
            database: row.get(2).ok()?,
            state: row.get(3).ok()?,
            count: row.get(4).ok()?,
            bytes: row.get(5).ok()?,
            seconds: row.get(6).ok()?,
        })
    };
    let mut all = Vec::new();
    for query in queries {
        if let Ok(rows) = client.query(query, &[]) {
            all.extend(rows.iter().filter_map(condition));
        }
    }
    all
}

/// Bytes free where the WAL is, if the server tells us the place and it is on this machine.
fn free_for_wal(client: &mut Client) -> Option<i64> {
    let rows = client.query("/* tally */ select current_setting('data_directory')", &[]).ok()?;
    let wal = Path::new(&rows.first()?.get::<String>(0).ok()?).join("pg_wal");
    let file_system = rustix::fs::statvfs(wal).ok()?;
    i64::try_from(file_system.f_bavail.saturating_mul(file_system.f_frsize)).ok()
}

fn connect(access: &Access, database: &str) -> Option<Client> {
    let mut client = access.connect(Some(database)).ok()?;
    client.batch_execute(PATIENCE).ok()?;
    Some(client)
}

fn of_database(client: &mut Client, database: &str) -> Option<Vec<Table>> {
    let rows = client.query(TABLES, &[]).ok()?;
    let table = |row: &pq::Row| -> Result<Table, pq::Error> {
        Ok(Table {
            database: database.to_owned(),
            name: row.get(0)?,
            live_rows: row.get(1)?,
            dead_rows: row.get(2)?,
            threshold: row.get(3)?,
            autovacuum_off: row.get::<Option<bool>>(4)?.unwrap_or(false),
            vacuumed_seconds_ago: row.get(5)?,
        })
    };
    rows.iter().map(table).collect::<Result<_, _>>().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_a_vacuum_is_as_of_the_time_of_the_ages_of_transactions() {
        let table = |vacuumed_seconds_ago| Table {
            database: "shop".into(),
            name: "orders".into(),
            live_rows: 1,
            dead_rows: 1,
            threshold: 1.0,
            autovacuum_off: false,
            vacuumed_seconds_ago,
        };
        let ago = |seconds| as_of(table(seconds), Duration::from_millis(1500)).vacuumed_seconds_ago;
        // The transaction was 15.3 s old when the holders were read, and the table was vacuumed 0.3 s after it began.
        assert_eq!(ago(Some(16.5)), Some(15.0));
        assert_eq!(ago(Some(1.0)), Some(0.0));
        assert_eq!(ago(None), None);
    }
}
