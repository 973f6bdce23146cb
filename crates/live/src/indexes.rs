// SPDX-License-Identifier: PostgreSQL
//! Queries the catalog about tables that recorded plans read as a whole for a few of their rows: their
//! indexes and foreign keys, the number of distinct values in their columns, and the planner's cost with an
//! index that does not exist (HypoPG).

use std::collections::BTreeMap;

use pq::Client;
use segment::Segment;
use view::indexes::{changed_tables, IndexChoice, KnownTable, Purpose, TermKind, WholeScan};
use view::vacuum::{Condition, ConditionKind};

use crate::condition_queries::{condition, connect};
use crate::server::Access;

/// Most databases to ask about tables; each costs a connection.
const DATABASES: usize = 4;
/// Most tables of a database.
const TABLES: usize = 10;
/// A table of fewer rows is read fast enough.
const ROWS: f64 = 1000.0;

/// The tables that the plans in a segment read as a whole or change, by the OID of their database.
#[derive(Debug, Default)]
pub(crate) struct WholeScans {
    databases: BTreeMap<u32, PlannedTables>,
}

/// Tables of a database; those of the plans that took most time first.
#[derive(Debug, Default)]
struct PlannedTables {
    scans: Vec<WholeScan>,
    /// OIDs of tables that are changed: others may refer to them.
    changed: Vec<u32>,
}

impl WholeScans {
    pub(crate) fn of_segment(segment: &Segment) -> WholeScans {
        let mut plans = segment.plans().unwrap_or_default();
        plans.sort_by_key(|plan| std::cmp::Reverse(plan.ticks));
        let mut all = WholeScans::default();
        for plan in plans {
            let database = plan.statement.database_id;
            if !all.databases.contains_key(&database) && all.databases.len() == DATABASES {
                continue;
            }
            let large = |scan: &WholeScan| scan.table_id != 0 && scan.rows >= ROWS;
            let scans: Vec<_> = WholeScan::all(&plan.text).into_iter().filter(large).collect();
            let changed = changed_tables(&plan.text);
            if scans.is_empty() && changed.is_empty() {
                continue;
            }
            let tables = all.databases.entry(database).or_default();
            for scan in scans {
                let same =
                    tables.scans.iter().filter(|other| other.purpose == scan.purpose).count();
                if same < TABLES && !tables.scans.contains(&scan) {
                    tables.scans.push(scan);
                }
            }
            for id in changed {
                if tables.changed.len() < TABLES && !tables.changed.contains(&id) {
                    tables.changed.push(id);
                }
            }
        }
        all
    }
}

/// The tables ($1, their OIDs) and the large ones that refer to those of $3, with columns of these names ($2) and those of
/// references. Names are qualified, because the search path has no schema of users. More rows than [`MOST`] are too many.
const CATALOG: &str = "/* tally */
    with referring as materialized (
        select f.conrelid from pg_constraint f join pg_class c on c.oid = f.conrelid
        where f.contype = 'f' and f.confrelid = any($3::oid[]) and c.relpages >= 100
        order by c.relpages desc limit 10
    ), t as materialized (
        select c.oid, n.nspname, c.relname, c.reltuples, c.relpages, c.oid::regclass::text as name
        from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where c.oid in (select unnest($1::oid[] || $3::oid[]) union select conrelid from referring)
          and c.relkind = 'r' and c.relpersistence <> 't' and n.nspname not in ('pg_catalog', 'information_schema')
    )
    select 'table', t.name, current_database()::text,
           concat_ws(', ', 'partition of ' || (select inhparent::regclass::text from pg_inherits i
                                               join pg_class p on p.oid = i.inhparent and p.relkind = 'p'
                                               where inhrelid = t.oid),
                     case when pg_is_in_recovery() then 'standby' end),
           t.oid::int8, t.relpages::int8 * current_setting('block_size')::int8, null::float8
    from t
    union all
    select 'column', quote_ident(a.attname), current_database()::text, t.name,
           coalesce(case when s.n_distinct < 0 then - s.n_distinct * t.reltuples else s.n_distinct end, 0)::int8,
           coalesce(s.null_frac * t.reltuples, 0)::int8, null
    from t join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
         and (a.attname = any($2::text[])
              or exists (select from pg_constraint f where f.conrelid = t.oid and f.contype = 'f' and a.attnum = any(f.conkey)))
    -- others than the owner may see no statistics
    left join pg_stats s on s.schemaname = t.nspname and s.tablename = t.relname and s.attname = a.attname and not s.inherited
    union all
    select 'index', i.indexrelid::regclass::text, current_database()::text,
           t.name || ' (' || (select string_agg(coalesce(quote_ident(a.attname), '?'), ', ' order by k.n)
                              from unnest(i.indkey::int2[]) with ordinality k (attnum, n)
                              left join pg_attribute a on a.attrelid = t.oid and a.attnum = k.attnum
                              where k.n <= i.indnkeyatts) || ')'
           || case when i.indisvalid then '' else ', invalid' end
           || case when i.indpred is null then '' else ', partial' end
           || case m.amname when 'btree' then '' else ', method ' || m.amname end,
           0, 0, null
    from t join pg_index i on i.indrelid = t.oid
    join pg_class c on c.oid = i.indexrelid join pg_am m on m.oid = c.relam
    union all
    select 'foreign-key', quote_ident(f.conname), current_database()::text,
           t.name || ' (' || (select string_agg(quote_ident(a.attname), ', ' order by k.n)
                              from unnest(f.conkey) with ordinality k (attnum, n)
                              join pg_attribute a on a.attrelid = t.oid and a.attnum = k.attnum) || ') references '
           || f.confrelid::regclass::text,
           0, 0, null
    from t join pg_constraint f on f.conrelid = t.oid and f.contype = 'f'
    limit 501";

/// Rows of an answer. Of a longer one, indexes might be missing that exist.
const MOST: usize = 500;

/// What the catalogs say about these tables; `server` is a connection to any database.
pub(crate) fn conditions(
    access: &Access,
    server: &mut Client,
    scans: &WholeScans,
) -> Vec<Condition> {
    let name = "/* tally */ select datname::text from pg_database where oid = $1 and datallowconn";
    let mut all = Vec::new();
    for (id, tables) in &scans.databases {
        let row = server.query_opt(name, &[id]).ok().flatten();
        let Some(database) = row.and_then(|row| row.get::<String>(0).ok()) else { continue };
        let Ok(mut client) = connect(access, Some(&database)) else { continue };
        let mut found = of_database(&mut client, tables).unwrap_or_default();
        found.extend(
            hypothetical(&mut client, &database, &tables.scans, &found).unwrap_or_default(),
        );
        all.extend(found);
    }
    all
}

fn of_database(client: &mut Client, planned: &PlannedTables) -> Option<Vec<Condition>> {
    let tables: Vec<u32> = planned.scans.iter().map(|scan| scan.table_id).collect();
    let terms = planned.scans.iter().flat_map(|scan| &scan.terms);
    let columns: Vec<&str> = terms.map(|term| term.column.as_str()).collect();
    let rows = client.query(CATALOG, &[&tables, &columns, &planned.changed]).ok()?;
    (rows.len() <= MOST).then(|| rows.iter().filter_map(condition).collect())
}

// ---------------------------------------------------------------- HypoPG

/// The schema of HypoPG, if it is installed; its functions must be its own, because others may create functions there. A
/// standby is left alone.
const HYPOPG: &str = "/* tally */
    select quote_ident(n.nspname)
    from pg_extension e join pg_namespace n on n.oid = e.extnamespace
    where e.extname = 'hypopg' and not pg_is_in_recovery()
      and 2 = (select count(*) from pg_depend d join pg_proc p on p.oid = d.objid
               where d.classid = 'pg_proc'::regclass and d.refclassid = 'pg_extension'::regclass and d.refobjid = e.oid
                 and d.deptype = 'e' and p.pronamespace = n.oid
                 and (p.proname = 'hypopg_create_index' and p.proargtypes[0] = 'text'::regtype and p.pronargs = 1
                      or p.proname = 'hypopg_reset' and p.pronargs = 0))";

/// The tables among these ($1) for which planning executes no user's function with the rights of our role: no
/// index, statistics object or column ($2) has an expression or type that a user defined.
const PLAIN: &str = "/* tally */
    select c.oid
    from pg_class c
    where c.oid = any($1::oid[]) and c.relkind = 'r' and not c.relrowsecurity and not c.relispartition
      and not c.relhassubclass and not c.relhasrules and has_table_privilege(c.oid, 'select')
      and not exists (select from pg_index where indrelid = c.oid and (indexprs is not null or indpred is not null))
      and not exists (select from pg_statistic_ext where stxrelid = c.oid and stxexprs is not null)
      and not exists (select from pg_attribute where attrelid = c.oid
                      and (attgenerated not in ('', 's') or attname = any($2::text[]) and atttypid >= 16384))";

/// Costs of the planner without and with the indexes that the scans lack. `None`: HypoPG is not installed.
fn hypothetical(
    client: &mut Client,
    database: &str,
    scans: &[WholeScan],
    found: &[Condition],
) -> Option<Vec<Condition>> {
    let schema: String = client.query_opt(HYPOPG, &[]).ok()??.get(0).ok()?;
    let tables: Vec<u32> = scans.iter().map(|scan| scan.table_id).collect();
    let terms = scans.iter().flat_map(|scan| &scan.terms);
    let columns: Vec<&str> = terms.map(|term| term.column.as_str()).collect();
    let rows = client.query(PLAIN, &[&tables, &columns]).ok()?;
    let plain: Vec<u32> = rows.iter().filter_map(|row| row.get(0).ok()).collect();
    // A plan for any parameters; constraints may have functions of users.
    let settings = "/* tally */ set plan_cache_mode = force_generic_plan; /* tally */ set constraint_exclusion = off";
    client.batch_execute(settings).ok()?;
    let mut all: Vec<Condition> = Vec::new();
    for scan in scans.iter().filter(|scan| plain.contains(&scan.table_id)) {
        let Some(table) = KnownTable::find(found, database, scan.table_id) else { continue };
        let Some(choice) = scan.choose(Some(&table), None) else { continue };
        if table.index(&choice).is_some() {
            continue;
        }
        let Some(list) = table.list(&choice) else { continue };
        let state = format!("{} ({list})", table.name);
        if all.iter().any(|condition| condition.state == state) {
            continue;
        }
        let Some(probe) = probe(scan, &table, &choice) else { continue };
        let Some((before, after)) = costs(client, &schema, &probe, &state) else { continue };
        all.push(Condition {
            kind: ConditionKind::HypotheticalIndex,
            name: String::new(),
            database: Some(database.to_owned()),
            state,
            count: before.round() as i64,
            bytes: after.round().max(1.0) as i64,
            seconds: None,
        });
    }
    Some(all)
}

/// A query that looks for rows as the scan does, with a parameter for each value, and the nulls to execute it with. It is ours:
/// the statement's own text might call functions when it is planned.
fn probe(scan: &WholeScan, table: &KnownTable<'_>, choice: &IndexChoice) -> Option<[String; 2]> {
    let (mut conditions, mut order) = (Vec::new(), Vec::new());
    let mut parameters = 0;
    for column in &choice.columns {
        let quoted = &table.column(column)?.quoted;
        let term = scan.terms.iter().find(|term| term.column == *column)?;
        match term.kind {
            TermKind::Null => conditions.push(format!("{quoted} is null")),
            TermKind::Order => order.push(quoted.as_str()),
            TermKind::Equal | TermKind::Any | TermKind::Range => {
                let operator = if term.kind == TermKind::Range { ">=" } else { "=" };
                parameters += 1;
                conditions.push(format!("{quoted} operator(pg_catalog.{operator}) ${parameters}"));
            }
        }
    }
    let filter = match conditions.is_empty() {
        true => String::new(),
        false => format!(" where {}", conditions.join(" and ")),
    };
    let order = match scan.purpose {
        Purpose::Order => format!(" order by {} limit {:.0}", order.join(", "), scan.wanted),
        Purpose::Filter | Purpose::Join => String::new(),
    };
    let nulls = match parameters {
        0 => String::new(),
        _ => format!("({})", vec!["null"; parameters].join(", ")),
    };
    Some([format!("select 1 from {}{filter}{order}", table.name), nulls])
}

/// The planner's costs of the probe without and with an index on "public.t (a, b)", which no other session sees.
fn costs(client: &mut Client, schema: &str, probe: &[String; 2], on: &str) -> Option<(f64, f64)> {
    let create = format!("/* tally */ select 1 from {schema}.hypopg_create_index($1::text)");
    let before = cost(client, probe);
    let created = client.query(&create, &[&format!("CREATE INDEX ON {on}")]);
    let after = created.ok().and_then(|_| cost(client, probe));
    client.batch_execute(&format!("/* tally */ select {schema}.hypopg_reset()")).ok()?;
    Some((before?, after?))
}

/// The cost of a generic plan; EXPLAIN (GENERIC_PLAN) came with 16.
fn cost(client: &mut Client, [query, nulls]: &[String; 2]) -> Option<f64> {
    client.batch_execute(&format!("/* tally */ prepare tally_probe as {query}")).ok()?;
    let lines = client.texts(&format!("/* tally */ explain execute tally_probe{nulls}"));
    // Its plan would be used again, whatever indexes there are then.
    client.batch_execute("/* tally */ deallocate tally_probe").ok()?;
    let lines = lines.ok()?;
    let (_, after) = lines.first()?.first()?.as_deref()?.split_once("(cost=")?;
    after.split_once("..")?.1.split(' ').next()?.parse().ok()
}
