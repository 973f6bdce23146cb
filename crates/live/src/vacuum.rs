// SPDX-License-Identifier: PostgreSQL
//! Asks the server how far vacuum is behind, and who holds it back. If the server refuses, nothing is known.

use std::sync::mpsc::{channel, Receiver, TryRecvError};
use std::time::{Duration, Instant};

use pq::Client;
use segment::Segment;
use view::vacuum::{Holder, Table, Vacuum};

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

/// The reply of this segment's server; `None`: it cannot be reached.
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
    answers: Option<Receiver<Option<Vacuum>>>,
    asked: Option<Instant>,
    refused: bool,
}

impl Watch {
    fn every(every: Duration) -> Watch {
        Watch { every, last: None, answers: None, asked: None, refused: false }
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
                (self.last, new) = (answer, true);
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
    let mut tables: Vec<Table> = Vec::new();
    for database in names.iter().filter_map(|row| row.get::<String>(0).ok()) {
        tables.extend(of_database(access, &database).unwrap_or_default());
    }
    tables.sort_by_key(|table| std::cmp::Reverse(table.dead_rows));
    Some(Vacuum { tables, holders })
}

fn connect(access: &Access, database: &str) -> Option<Client> {
    let mut client = access.connect(Some(database)).ok()?;
    client.batch_execute(PATIENCE).ok()?;
    Some(client)
}

fn of_database(access: &Access, database: &str) -> Option<Vec<Table>> {
    let rows = connect(access, database)?.query(TABLES, &[]).ok()?;
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
