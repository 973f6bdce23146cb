// SPDX-License-Identifier: PostgreSQL
//! Asks the server how far vacuum is behind, and who holds it back. Where it refuses, nothing is known.

use postgres::Client;
use segment::Segment;
use view::vacuum::{Holder, Table, Vacuum};

use crate::server::Socket;

/// How many databases are asked, the busiest first: each costs a connection.
const DATABASES: i64 = 8;
/// The catalog itself may be locked.
const PATIENCE: &str = "set lock_timeout = '200ms'; set statement_timeout = '2s'";

/// Tables of the current database whose dead rows exceed twice autovacuum's threshold, and a fifth of the rows.
/// The threshold is that of relation_needs_vacanalyze (autovacuum.c), with the table's own settings.
const TABLES: &str = "
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

const HOLDERS: &str = "
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

/// What the server of this segment says; `None`: there is no connection to it.
pub fn read(segment: &Segment) -> Option<Vacuum> {
    let socket = Socket::open_to_us(segment)?;
    let mut first = connect(&socket, "postgres")?;
    let holders = first.query(HOLDERS, &[]).ok()?;
    let holders = holders.iter().map(|row| Holder {
        name: row.get(0),
        state: row.get(1),
        transactions: row.get(2),
        seconds: row.get(3),
        database: row.get(4),
    });
    let holders = holders.collect();
    let databases = "select d.datname::text from pg_database d join pg_stat_database s on s.datid = d.oid
                     where d.datallowconn and not d.datistemplate order by s.tup_updated + s.tup_deleted desc limit $1";
    let names = first.query(databases, &[&DATABASES]).ok()?;
    let mut tables: Vec<Table> = Vec::new();
    for database in names.iter().map(|row| row.get::<_, String>(0)) {
        tables.extend(of_database(&socket, &database).unwrap_or_default());
    }
    tables.sort_by_key(|table| std::cmp::Reverse(table.dead_rows));
    Some(Vacuum { tables, holders })
}

fn connect(socket: &Socket, database: &str) -> Option<Client> {
    let mut client = socket.connect(Some(database)).ok()?;
    client.batch_execute(PATIENCE).ok()?;
    Some(client)
}

fn of_database(socket: &Socket, database: &str) -> Option<Vec<Table>> {
    let rows = connect(socket, database)?.query(TABLES, &[]).ok()?;
    let table = |row: &postgres::Row| Table {
        database: database.to_owned(),
        name: row.get(0),
        live_rows: row.get(1),
        dead_rows: row.get(2),
        threshold: row.get(3),
        autovacuum_off: row.get::<_, Option<bool>>(4).unwrap_or(false),
        vacuumed_seconds_ago: row.get(5),
    };
    Some(rows.iter().map(table).collect())
}
