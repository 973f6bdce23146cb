// SPDX-License-Identifier: PostgreSQL
//! Queries from the server how far vacuum is behind, what holds it back, and other conditions. Figures that
//! it refuses are unknown. The kernel shows which of its processes are stopped.

use std::path::Path;
use std::sync::mpsc::{channel, Receiver, TryRecvError};
use std::time::{Duration, Instant};

use error::Error;
use pq::Client;
use process::Proc;
use segment::Segment;
use view::vacuum::{Condition, ConditionKind, Holder, Scope, Table, Vacuum, POSTMASTER};

use crate::backoff::Backoff;
use crate::condition_queries::{conditions, connect};
use crate::coverage;
use crate::health_queries::{OBJECTS, OF_SERVER};
use crate::indexes::{self, WholeScans};
use crate::server::Access;
use crate::settings;

/// Number of databases to query, the busiest first; each costs a connection.
const DATABASES: i64 = 8;
/// The busiest databases, and those in which a worker vacuums, however quiet they are otherwise.
const DATABASES_TO_ASK: &str = "/* tally */
    select d.datname::text from pg_database d join pg_stat_database s on s.datid = d.oid
    cross join lateral (select exists (select from pg_stat_progress_vacuum where datid = d.oid) as busy) p
    where d.datallowconn and not d.datistemplate order by busy desc, s.tup_updated + s.tup_deleted desc limit $1";
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
        -- that of hot_standby_feedback without a slot; a query there holds a snapshot for moments
        select 'standby ' || application_name || ' (walsender ' || pid || ', hot_standby_feedback)', '',
               age(backend_xmin)::int8, null::float8, null::text
        from pg_stat_replication where age(backend_xmin) >= 10000
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

/// Conditions of the whole server, as [`ConditionKind`] has them: kind, name, database, state, count, bytes,
/// seconds. Each has its own query, so if the server refuses one, the others are still known.
const CONDITIONS: [&str; 4] = [
    "/* tally */
    select 'setting', name, null::text, current_setting(name), 0::int8, setting::int8 * 1024 * 1024, null::float8
    from pg_settings where name = 'max_wal_size' and unit = 'MB'",
    "/* tally */
    select 'prepared', gid, database::text, owner::text, 0::int8, 0::int8,
           extract(epoch from clock_timestamp() - prepared)::float8
    from pg_prepared_xacts order by prepared limit 10",
    "/* tally */
    select 'deadlocks', '', datname::text, '', deadlocks::int8, 0::int8, null::float8
    from pg_stat_database where datname is not null",
    // The setting first, which names those that are not connected, too.
    "/* tally */
    with setting as (select current_setting('synchronous_standby_names') as names)
    select * from (
        select 'standby', names, null::text, 'setting', 0::int8, 0::int8, null::float8 from setting
        union all
        select 'standby', application_name, null,
               sync_state || ', ' || state
               || coalesce(', replay ' || pg_size_pretty(nullif(greatest(pg_wal_lsn_diff(flush_lsn, replay_lsn), 0), 0)) || ' behind', ''),
               pid::int8,
               coalesce(greatest(pg_wal_lsn_diff(sent_lsn, flush_lsn), 0), 0)::int8, extract(epoch from flush_lag)::float8
        from pg_stat_replication where sync_state in ('sync', 'quorum', 'potential')
    ) all_standbys (kind, name, database, state, count, bytes, seconds)
    -- others see no states of walsenders
    where (select names from setting) <> '' and pg_has_role('pg_read_all_stats', 'usage')
    order by state <> 'setting', state like 'potential%', bytes desc limit 20",
];

/// Conditions of the current database. The catalogs are those that temporary tables and DDL make grow; a row takes some
/// 250 bytes there.
const CONDITIONS_OF_DATABASE: [&str; 5] = [
    // Each nextval() looks at the sequence's page, unless the session has numbers left.
    "/* tally */
    select 'sequence', case s.schemaname when 'public' then '' else quote_ident(s.schemaname) || '.' end || quote_ident(s.relname),
           current_database()::text,
           coalesce((select c.relname::text from pg_depend d join pg_class c on c.oid = d.refobjid
                     where d.classid = 'pg_class'::regclass and d.objid = s.relid and d.refclassid = 'pg_class'::regclass
                       and d.deptype in ('a', 'i') limit 1), ''),
           (s.blks_read + s.blks_hit)::int8, 0::int8, null::float8
    from pg_statio_user_sequences s join pg_sequence q on q.seqrelid = s.relid
    where q.seqcache = 1 and s.blks_read + s.blks_hit > 0
    order by 5 desc limit 10",
    // Ascending indexes of the tables with most new rows.
    "/* tally */
    select 'ascending-index', case n.nspname when 'public' then '' else quote_ident(n.nspname) || '.' end || quote_ident(i.relname),
           current_database()::text, c.relname::text, s.n_tup_ins::int8, 0::int8, null::float8
    from (select relid, n_tup_ins from pg_stat_user_tables where n_tup_ins > 0 order by n_tup_ins desc limit 10) s
    join pg_index x on x.indrelid = s.relid and x.indisvalid
    join pg_class i on i.oid = x.indexrelid
    join pg_am m on m.oid = i.relam and m.amname = 'btree'
    join pg_class c on c.oid = s.relid
    join pg_namespace n on n.oid = i.relnamespace
    join pg_attribute a on a.attrelid = s.relid and a.attnum = x.indkey[0]
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where a.attidentity <> ''
       or pg_get_expr(d.adbin, d.adrelid) ~* '^(nextval\\(|now\\(|current_timestamp|clock_timestamp\\(|uuidv7\\()'
    order by s.n_tup_ins desc limit 10",
    // A table's own settings come first (relation_needs_vacanalyze and do_autovacuum, autovacuum.c).
    "/* tally */
    select 'throttled', case n.nspname when 'public' then '' else quote_ident(n.nspname) || '.' end || quote_ident(c.relname),
           current_database()::text,
           'autovacuum_vacuum_cost_delay = '
           || coalesce(o.delay || ' of the table', case current_setting('autovacuum_vacuum_cost_delay')
                       when '-1' then current_setting('vacuum_cost_delay') else current_setting('autovacuum_vacuum_cost_delay') end)
           || ', autovacuum_vacuum_cost_limit = '
           || coalesce(o.cost || ' of the table', case current_setting('autovacuum_vacuum_cost_limit')
                       when '-1' then current_setting('vacuum_cost_limit') else current_setting('autovacuum_vacuum_cost_limit') end),
           a.pid::int8, pg_stat_get_dead_tuples(c.oid), extract(epoch from clock_timestamp() - a.xact_start)::float8
    from pg_stat_activity a
    join pg_stat_progress_vacuum p on p.pid = a.pid
    join pg_class c on c.oid = p.relid
    join pg_namespace n on n.oid = c.relnamespace
    cross join lateral (
        select max(option_value) filter (where option_name = 'autovacuum_vacuum_cost_delay') as delay,
               max(option_value) filter (where option_name = 'autovacuum_vacuum_cost_limit') as cost
        from pg_options_to_table(c.reloptions)
    ) o
    where p.datname = current_database() and a.backend_type = 'autovacuum worker' and a.wait_event = 'VacuumDelay' limit 10",
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

/// All queries, for a test that every version of the server accepts them: users would not notice that one was
/// refused.
pub fn queries() -> impl Iterator<Item = &'static str> {
    let here = [TABLES, HOLDERS, DATABASES_TO_ASK].into_iter();
    here.chain(CONDITIONS)
        .chain(CONDITIONS_OF_DATABASE)
        .chain(OF_SERVER)
        .chain(OBJECTS)
        .chain(settings::queries())
}

/// What the server of this segment says. Counts are since its statistics were reset: [`Vacuum::since`] makes them those of an
/// interval.
///
/// # Errors
///
/// There is no connection to it, and no process of it is stopped.
pub fn read(segment: &Segment, scope: Scope) -> Result<Vacuum, Error> {
    let scans = WholeScans::of_segment(segment);
    answer(Access::require(segment), &scans, stopped(segment), scope)
}

/// The server's answers, if it should be asked, and its stopped processes. A server whose postmaster is
/// stopped does not answer.
fn answer(
    access: Result<Access, Error>,
    scans: &WholeScans,
    stopped: Vec<Condition>,
    scope: Scope,
) -> Result<Vacuum, Error> {
    let known_by_us = Vacuum { scope, ..Vacuum::default() };
    let mut all = match stopped.as_slice() {
        [] => of_server(&access?, scans, scope)?,
        [postmaster, ..] if postmaster.name == POSTMASTER => known_by_us,
        _ => access.and_then(|access| of_server(&access, scans, scope)).unwrap_or(known_by_us),
    };
    all.conditions.extend(stopped);
    Ok(all)
}

/// The processes of a server on this machine that a signal has stopped.
fn stopped(segment: &Segment) -> Vec<Condition> {
    /// The state in /proc/PID/stat; `t`, in which a debugger or tracer holds a process for moments, is another one.
    const STOPPED: u8 = b'T';

    if segment.remote().is_some() || segment.server_runs() != Some(true) {
        return Vec::new();
    }
    let condition = |pid: u32, role: &str| Condition {
        kind: ConditionKind::Stopped,
        name: role.to_owned(),
        database: None,
        state: String::new(),
        count: i64::from(pid),
        bytes: 0,
        seconds: None,
    };
    let is_stopped = |pid: u32| Proc::default().stat(pid).is_some_and(|stat| stat.state == STOPPED);
    let postmaster = segment.header().server_pid;
    let own = is_stopped(postmaster).then(|| condition(postmaster, POSTMASTER));
    let children = scratch::children(postmaster).into_iter().filter(|child| is_stopped(child.pid));
    own.into_iter()
        .chain(children.map(|child| condition(child.pid, coverage::role(&child))))
        .collect()
}

/// How often to ask for each scope; `None`: never.
#[derive(Debug, Clone, Copy)]
struct Pace {
    server: Duration,
    databases: Duration,
    objects: Option<Duration>,
}

/// A live view. Objects are for those who show them.
const LIVE: Pace =
    Pace { server: Duration::from_secs(30), databases: Duration::from_secs(30), objects: None };
/// A page, and metrics.
const SERVED: Pace = Pace {
    server: Duration::from_secs(60),
    databases: Duration::from_secs(60),
    objects: Some(Duration::from_secs(600)),
};
/// A recorder: dead rows do not come and go within minutes, and sizes not within half an hour.
const RECORDER: Pace = Pace {
    server: Duration::from_secs(60),
    databases: Duration::from_secs(300),
    objects: Some(Duration::from_secs(1800)),
};

impl Pace {
    /// The largest scope that is due, given when each was last asked for.
    fn due(&self, asked: [Option<Instant>; 3], now: Instant) -> Option<Scope> {
        let is_due = |asked: Option<Instant>, every: Duration| {
            asked.is_none_or(|asked| now.saturating_duration_since(asked) >= every)
        };
        let [server, databases, objects] = asked;
        match self.objects {
            Some(every) if is_due(objects, every) => Some(Scope::Objects),
            _ if is_due(databases, self.databases) => Some(Scope::Databases),
            _ if is_due(server, self.server) => Some(Scope::Server),
            _ => None,
        }
    }
}

/// Asks repeatedly, each time in a separate thread, so that a live view does not wait for the server.
#[derive(Debug)]
pub struct Watch {
    pace: Pace,
    /// What is known; `None`: there is no reply yet, or the server has refused.
    last: Option<Vacuum>,
    /// The last reply.
    newest: Option<Vacuum>,
    /// What is known, with counts since the server's statistics were reset.
    totals: Option<Vacuum>,
    answers: Option<Receiver<Option<Vacuum>>>,
    /// When each scope was last asked for.
    asked: [Option<Instant>; 3],
    backoff: Backoff,
}

impl Watch {
    fn new(pace: Pace) -> Watch {
        Watch {
            pace,
            last: None,
            newest: None,
            totals: None,
            answers: None,
            asked: [None; 3],
            backoff: Backoff::default(),
        }
    }

    /// For a live view: every 30 s, without objects.
    pub fn live() -> Watch {
        Watch::new(LIVE)
    }

    /// For a page or metrics: every minute, objects every ten minutes.
    pub fn served() -> Watch {
        Watch::new(SERVED)
    }

    /// For a recorder: the server every minute, databases every five minutes, objects every half an hour.
    pub fn recorder() -> Watch {
        Watch::new(RECORDER)
    }

    /// What this segment's server has said. It is no older than the time between queries, unless the server is slow.
    pub fn next(&mut self, segment: &Segment) -> Option<Vacuum> {
        self.news(segment);
        self.last.clone()
    }

    /// A reply that has arrived since the last call, which may have only a part of what is known.
    pub fn news(&mut self, segment: &Segment) -> Option<&Vacuum> {
        let now = Instant::now();
        let new = self.receive(now);
        if let Some(scope) = self.next_scope(now) {
            let access = match self.backoff.is_due(now) {
                true => Access::require(segment),
                false => Err(Error::Failed("the server refused an earlier connection".into())),
            };
            let stopped = stopped(segment);
            self.answers = match access.is_ok() || !stopped.is_empty() {
                true => {
                    let scans = match scope {
                        Scope::Server => WholeScans::default(),
                        _ => WholeScans::of_segment(segment),
                    };
                    ask(access, scans, stopped, scope)
                }
                false => None,
            };
        }
        self.newest.as_ref().filter(|_| new)
    }

    /// Takes in a reply that has arrived; whether there is one.
    fn receive(&mut self, now: Instant) -> bool {
        match self.answers.as_ref().map(Receiver::try_recv) {
            Some(Ok(answer)) => {
                match answer {
                    Some(_) => self.backoff.note_answer(),
                    None => self.backoff.note_refusal(now),
                }
                self.answers = None;
                self.keep(answer);
                return true;
            }
            Some(Err(TryRecvError::Disconnected)) => self.answers = None,
            Some(Err(TryRecvError::Empty)) | None => {}
        }
        false
    }

    /// What to ask for now; it counts as asked for. A server that has refused is asked for all of it.
    fn next_scope(&mut self, now: Instant) -> Option<Scope> {
        if self.answers.is_some() {
            return None;
        }
        if self.backoff.is_retry_due(now) {
            self.asked = [None; 3];
        }
        let scope = self.pace.due(self.asked, now)?;
        for asked in &mut self.asked[..=scope as usize] {
            *asked = Some(now);
        }
        Some(scope)
    }

    fn keep(&mut self, answer: Option<Vacuum>) {
        let Some(answer) = answer else {
            (self.last, self.newest, self.totals) = (None, None, None);
            return;
        };
        let newest = answer.clone().since(self.totals.as_ref());
        let merged = |known: Option<Vacuum>, answer| known.unwrap_or_default().refreshed(answer);
        self.totals = Some(merged(self.totals.take(), answer));
        self.last = Some(merged(self.last.take(), newest.clone()));
        self.newest = Some(newest);
    }
}

/// The channel through which the reply will arrive.
fn ask(
    access: Result<Access, Error>,
    scans: WholeScans,
    stopped: Vec<Condition>,
    scope: Scope,
) -> Option<Receiver<Option<Vacuum>>> {
    let (to, answers) = channel();
    let work = move || {
        // Fails if the view has ended.
        let _ = to.send(answer(access, &scans, stopped, scope).ok());
    };
    let thread = std::thread::Builder::new().name("vacuum".to_string()).spawn(work);
    thread.ok().map(|_| answers)
}

fn of_server(access: &Access, scans: &WholeScans, scope: Scope) -> Result<Vacuum, Error> {
    let mut first = connect(access, None)?;
    let asked = Instant::now();
    let mut all = Vacuum { scope, ..Vacuum::default() };
    if scope > Scope::Server {
        let holders = first.query(HOLDERS, &[])?;
        all.holders = holders.iter().map(holder).collect::<Result<_, _>>()?;
        let names = first.query(DATABASES_TO_ASK, &[&DATABASES])?;
        all.conditions = conditions(&mut first, &CONDITIONS);
        for database in names.iter().filter_map(|row| row.get::<String>(0).ok()) {
            let Ok(mut client) = connect(access, Some(&database)) else { continue };
            let behind = of_database(&mut client, &database).unwrap_or_default();
            all.tables.extend(behind.into_iter().map(|table| as_of(table, asked.elapsed())));
            all.conditions.extend(conditions(&mut client, &CONDITIONS_OF_DATABASE));
            if scope == Scope::Objects {
                all.conditions.extend(conditions(&mut client, &OBJECTS));
            }
        }
        all.conditions.extend(indexes::conditions(access, &mut first, scans));
        all.tables.sort_by_key(|table| std::cmp::Reverse(table.dead_rows));
    }
    all.conditions.extend(whole_server(access, &mut first));
    Ok(all)
}

fn holder(row: &pq::Row) -> Result<Holder, pq::Error> {
    Ok(Holder {
        name: row.get(0)?,
        state: row.get(1)?,
        transactions: row.get(2)?,
        seconds: row.get(3)?,
        database: row.get(4)?,
    })
}

/// The conditions of [`Scope::Server`].
fn whole_server(access: &Access, client: &mut Client) -> Vec<Condition> {
    let mut found = conditions(client, &OF_SERVER);
    found.extend(settings::conditions(client));
    let disks = if access.is_local() { disks(client) } else { Vec::new() };
    let of_wal = disks.iter().find(|disk| disk.name == WAL);
    for slot in found.iter_mut().filter(|row| row.kind == ConditionKind::Slot) {
        slot.count = of_wal.map_or(0, |disk| disk.count);
    }
    found.extend(disks.into_iter().filter(is_nearly_full));
    found
}

/// The table as it was this long ago, when the holders of snapshots were queried. Otherwise, on a busy machine, a transaction older
/// than the last vacuum would seem to be younger.
fn as_of(table: Table, ago: Duration) -> Table {
    let vacuumed = table.vacuumed_seconds_ago.map(|age| (age - ago.as_secs_f64()).max(0.0));
    Table { vacuumed_seconds_ago: vacuumed, ..table }
}

/// The name of the file system of the WAL.
const WAL: &str = "WAL";

/// The file systems of the data directory and of the WAL, if the server tells us the place and it is on this machine.
fn disks(client: &mut Client) -> Vec<Condition> {
    let directory = client
        .query("/* tally */ select current_setting('data_directory'), 'tally'", &[])
        .ok()
        .and_then(|rows| rows.first()?.get::<String>(0).ok());
    let Some(directory) = directory else { return Vec::new() };
    let disk = |name: &str, place: &Path| {
        let file_system = rustix::fs::statvfs(place).ok()?;
        let size = |blocks: u64| i64::try_from(blocks.saturating_mul(file_system.f_frsize)).ok();
        Some(Condition {
            kind: ConditionKind::Disk,
            name: name.to_owned(),
            database: None,
            state: String::new(),
            count: size(file_system.f_bavail)?,
            bytes: size(file_system.f_blocks)?,
            seconds: None,
        })
    };
    let data = Path::new(&directory);
    disk("data directory", data).into_iter().chain(disk(WAL, &data.join("pg_wal"))).collect()
}

/// Whether a file system has so little space that it is worth a row.
fn is_nearly_full(disk: &Condition) -> bool {
    disk.count < disk.bytes / 10
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
    fn what_is_expensive_is_asked_for_less_often() {
        let begin = Instant::now();
        let mut asked = [None; 3];
        let due: Vec<Scope> = (0..=60)
            .filter_map(|minute| {
                let now = begin + Duration::from_secs(60 * minute);
                let scope = RECORDER.due(asked, now)?;
                asked[..=scope as usize].fill(Some(now));
                Some(scope)
            })
            .collect();
        let count = |scope| due.iter().filter(|found| **found == scope).count();
        assert_eq!(due.len(), 61);
        assert_eq!(due[..7], {
            use Scope::{Databases, Objects, Server};
            [Objects, Server, Server, Server, Server, Databases, Server]
        });
        assert_eq!((count(Scope::Objects), count(Scope::Databases)), (3, 10));
        assert_eq!(LIVE.due([Some(begin), Some(begin), None], begin), None);
    }

    #[test]
    fn a_server_that_has_refused_is_asked_for_all_of_it_later() {
        let begin = Instant::now();
        let mut watch = Watch::recorder();
        assert_eq!(watch.next_scope(begin), Some(Scope::Objects));
        let reply = |watch: &mut Watch, answer, now| {
            let (to, answers) = channel();
            to.send(answer).unwrap();
            watch.answers = Some(answers);
            assert!(watch.receive(now));
        };
        reply(&mut watch, None, begin);
        assert!(!watch.backoff.is_due(begin + Duration::from_secs(59)));
        let later = begin + Duration::from_secs(61);
        assert!(watch.backoff.is_due(later));
        assert_eq!(watch.next_scope(later), Some(Scope::Objects));
        reply(&mut watch, Some(Vacuum::default()), later);
        assert!(watch.last.is_some());
        assert_eq!(watch.next_scope(later + Duration::from_secs(60)), Some(Scope::Server));
    }

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
