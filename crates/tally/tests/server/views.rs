// SPDX-License-Identifier: PostgreSQL
//! The SQL views: their sums and privileges.

use std::time::Instant;

use crate::support;
use crate::support::shared_server::Profile;
use crate::support::{create_views, segment, shared};
use scratch::Load;

#[test]
fn a_role_sees_of_others_only_that_they_exist() {
    let database = Profile::Preloaded.database();
    let (poor, watcher) = (database.role("poor", ""), database.role("watcher", "pg_monitor"));
    let as_role = |role: &str, sql: &str| {
        let mut client = database.config().user(role).connect(postgres::NoTls).unwrap();
        client.query_one(sql, &[]).map(|row| row.get::<_, i64>(0))
    };
    let _other = database.connect();
    let owner = &database.name;
    let seen = format!("select count(phase) from tally.sessions where usename = '{owner}'");
    assert_eq!(as_role(&poor, &seen).unwrap(), 0);
    assert!(as_role(&watcher, &seen).unwrap() >= 1);
    assert!(as_role(&poor, "select count(*) from tally.ledger").unwrap() > 0);
    assert!(as_role(&poor, "select 1::bigint from tally.reset()").is_err());
}

/// A statement is planned by Bind and executed by Execute; a simple query does both.
#[test]
fn a_wait_is_in_the_phase_of_the_message_that_waits() {
    let database = Profile::Preloaded.database();
    let mut client = database.connect();
    let body =
        "language plpgsql as $$ begin perform pg_advisory_xact_lock_shared(34); return 1; end $$";
    client
        .batch_execute(&format!(
            "create function executed() returns int volatile {body};
             create function planned() returns int immutable {body}"
        ))
        .unwrap();
    for (phase, function) in
        [("simple query", "executed"), ("bind", "planned"), ("execute", "executed")]
    {
        client.batch_execute("select pg_advisory_lock(34)").unwrap();
        let mut other = database.connect();
        let pid = support::pid_of(&mut other);
        let call = format!("select {function}()");
        let waiting = std::thread::spawn(move || match phase {
            "simple query" => other.batch_execute(&call),
            _ => other.query(&call, &[]).map(drop),
        });
        let mut seen = String::new();
        support::eventually("it waits for the lock", || {
            let waits =
                "select phase from tally.sessions where pid = $1 and activity = 'Lock:advisory'";
            let row = client.query_opt(waits, &[&pid]).unwrap();
            row.map(|row| seen = row.get(0)).is_some()
        });
        client.batch_execute("select pg_advisory_unlock(34)").unwrap();
        waiting.join().unwrap().unwrap();
        assert_eq!(seen, phase);
    }
}

/// The state of a session that sends nothing more is shown as after its last message.
#[test]
fn a_name_that_the_last_message_set_is_seen_while_the_session_is_idle() {
    let database = Profile::Preloaded.database();
    let mut other = database.connect();
    let pid = support::pid_of(&mut other);
    let mut client = database.connect();
    let mut shown = |name: &str, kind: &str| {
        other.batch_execute(&format!("set application_name = '{name}'")).unwrap();
        // It is idle as soon as it waits for the next message.
        let seen =
            "select application_name, kind from tally.sessions where pid = $1 and phase = 'idle'";
        support::eventually("the name is shown", || {
            let row = client.query_opt(seen, &[&pid]).unwrap();
            row.is_some_and(|row| (row.get(0), row.get(1)) == (name, kind))
        });
    };
    shown("billing", "client backend");
    shown("tally", "client backend (tally)");
    shown("billing again", "client backend");
}

/// Activity of tally itself is left out of diagnoses, so a name and a comment are not enough to mark it.
#[test]
fn a_client_that_calls_itself_tally_is_a_client_unless_its_role_sees_everything() {
    let cluster = shared();
    create_views(&cluster);
    let mut admin = cluster.connect().unwrap();
    admin
        .batch_execute(
            "create role stranger login; create role watcher login in role pg_monitor;
             create role owner_of_all superuser login; create role several in role stranger, watcher login",
        )
        .unwrap();
    let connect = |user: &str, application: &str| {
        let mut config = cluster.config();
        config.user(user).application_name(application).connect(postgres::NoTls).unwrap()
    };
    // Role, name, count, and whether it is tally's own. Statements that differ only in an alias are one
    // statement.
    let cases = [
        ("stranger", "tally", "pg_am", false),
        ("stranger", "psql", "pg_cast", false),
        ("watcher", "psql", "pg_type", false),
        ("watcher", "tally", "pg_index", true),
        ("several", "tally", "pg_proc", true),
        ("owner_of_all", "tally", "pg_rewrite", true),
    ];
    let mut sessions = Vec::new();
    for (user, application, table, own) in cases {
        let mut session = connect(user, application);
        let pid = support::pid_of(&mut session);
        let text = format!("select count(*) as whose from {table}");
        session.batch_execute(&format!("/* tally */ /* tally */{text}")).unwrap();
        sessions.push((session, pid, text, own));
    }
    // A superuser's session that works for another role, as a pool's.
    let mut pool = cluster.connect().unwrap();
    let pid = support::pid_of(&mut pool);
    pool.batch_execute("set role stranger").unwrap();
    pool.batch_execute("set application_name = 'tally'").unwrap();
    pool.batch_execute("/* tally */ select count(*) as whose_of_pool from pg_class").unwrap();
    let text = "select count(*) as whose_of_pool from pg_class".to_owned();
    sessions.push((pool, pid, text, false));

    for (_, pid, text, own) in &sessions {
        let kind = if *own { "client backend (tally)" } else { "client backend" };
        support::eventually("the kind is shown", || {
            let seen = "select kind from tally.sessions where pid = $1 and phase = 'idle'";
            let row = admin.query_opt(seen, &[pid]).unwrap();
            row.is_some_and(|row| row.get::<_, String>(0) == kind)
        });
        let seen = "select query from tally.statements where query like '%' || $1";
        let query: String = admin.query_one(seen, &[text]).unwrap().get(0);
        let expected = if *own { format!("/* tally */ /* tally */{text}") } else { text.clone() };
        assert_eq!(query, expected);
    }
}

/// A session whose messages all come in time never waits for one.
#[test]
fn a_name_is_seen_by_the_next_message_although_that_is_not_waited_for() {
    let cluster = shared();
    create_views(&cluster);
    let mut client = cluster.connect().unwrap();
    client.batch_execute("create table piped (name text)").unwrap();
    let pipeline = |name: &str| {
        format!(
            "\\startpipeline
set application_name = '{name}';
insert into piped select application_name from tally.sessions where pid = pg_backend_pid();
\\endpipeline
"
        )
    };
    // The first time, the insert waits for files.
    let pgbench = cluster.pgbench().load(Load::Script(pipeline("one") + &pipeline("two")));
    pgbench.clients(1).protocol("extended").transactions(3).run().unwrap();
    let sql = "select string_agg(name, ' ' order by ctid) from piped";
    let names: String = client.query_one(sql, &[]).unwrap().get(0);
    assert_eq!(names, "one two one two one two");
}

#[test]
fn the_views_add_up() {
    let cluster = shared();
    create_views(&cluster);
    let mut client = cluster.connect().unwrap();
    let began = Instant::now();
    client.batch_execute("select pg_sleep(0.2)").unwrap();
    let took = began.elapsed().as_secs_f64();
    let row = client
        .query_one(
            "select (select seconds from tally.waits where wait_event = 'PgSleep'), \
                    (select sum(seconds) from tally.ledger), \
                    (select sum(count) from tally.commands where command = 'Query' \
                     and part = 'handle')::bigint, \
                    (select count(*) from tally.probes where installed)",
            &[],
        )
        .unwrap();
    let (slept, all): (f64, f64) = (row.get(0), row.get(1));
    assert!((0.2..=took).contains(&slept), "{slept} s of {took} s");
    assert!(all > slept);
    assert!(row.get::<_, i64>(2) >= 1 && row.get::<_, i64>(3) > 10);
    let asleep =
        "select coalesce(sum(seconds), 0)::float8 from tally.waits where wait_event = 'PgSleep'";
    client.batch_execute("select tally.reset()").unwrap();
    assert_eq!(client.query_one(asleep, &[]).unwrap().get::<_, f64>(0), 0.0, "after a reset");
}

/// The postmaster maps nothing that others can write to, so its time is not measured.
#[test]
fn the_postmaster_is_not_instrumented() {
    let database = Profile::Preloaded.database();
    let sql = "select count(*) filter (where kind = 'postmaster'), count(*) from tally.ledger";
    let mut client = database.connect();
    let row = client.query_one(sql, &[]).unwrap();
    assert_eq!(row.get::<_, i64>(0), 0);
    assert!(row.get::<_, i64>(1) > 0);
    let segment = segment(&database);
    let maps = |pid| std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mapped = |pid: u32| maps(pid).contains(segment.to_str().unwrap());
    assert!(!mapped(database.postmaster_pid().unwrap()));
    // Long-lived processes only: another session may just end or not have mapped the segment yet.
    let lasting = "select pid from pg_stat_activity where pid = pg_backend_pid() \
                   or backend_type in ('checkpointer', 'background writer', 'walwriter', \
                                       'autovacuum launcher')";
    let children = client.query(lasting, &[]).unwrap();
    assert_eq!(children.len(), 5);
    assert!(children.iter().all(|child| mapped(child.get::<_, i32>(0) as u32)));
}

/// The rule of docs/reference-sql.md: the name of a column gives its unit, its type and its digits.
#[test]
fn every_column_of_every_view_follows_the_rule_of_units() {
    let database = Profile::Everything.database();
    let mut client = database.connect();
    // So that most views have rows with fractions.
    client
        .batch_execute(
            "create table t as select n, repeat('x', 100) as text from generate_series(1, 20000) n; checkpoint; \
             create function sleeps() returns void language plpgsql as $$ begin perform pg_sleep(0.011); end $$; \
             select sleeps(); select sleeps(); select sleeps(); select sum(n) from t group by n % 7; \
             select sum(n) from t group by n % 7; select sum(n) from t group by n % 7",
        )
        .unwrap();
    let columns = client
        .query(
            "select c.relname::text, a.attname::text, a.atttypid::regtype::text from pg_class c \
             join pg_attribute a on a.attrelid = c.oid \
             where c.relnamespace = 'tally'::regnamespace and c.relkind = 'v' and a.attnum > 0 order by 1, a.attnum",
            &[],
        )
        .unwrap();
    assert!(columns.len() > 250, "{}", columns.len());
    let (mut filled, mut views) = (0, std::collections::BTreeSet::new());
    for column in &columns {
        let [view, name, kind]: [String; 3] = [column.get(0), column.get(1), column.get(2)];
        let ends = |end: &str| name == end || name.ends_with(&format!("_{end}"));
        let digits = match &*name {
            "commits_per_flush" | "spread" | "target" | "cost" | "rows_per_call" => Some(3),
            _ if name.ends_with("_per_second") => Some(3),
            _ if ends("seconds") => Some(9),
            _ if name.ends_with("_time") && ["statements", "plans"].contains(&&*view) => Some(6),
            _ => None,
        };
        let expected: &[&str] = match digits {
            Some(_) => &["double precision"],
            None if ends("bytes") => &["bigint", "integer", "numeric"],
            None => &[
                "bigint",
                "integer",
                "smallint",
                "oid",
                "text",
                "name",
                "boolean",
                "jsonb",
                "integer[]",
                "timestamp with time zone",
            ],
        };
        assert!(expected.contains(&&*kind), "tally.{view}.{name} is {kind}");
        let Some(digits) = digits else { continue };
        let sql = format!(
            "select count({name}), count(*) filter (where {name} <> 0), \
             max({name}::text) filter (where {name} <> round({name}::numeric, {digits})::float8) from tally.{view}"
        );
        let row = client.query_one(&sql, &[]).unwrap();
        let odd: Option<String> = row.get(2);
        assert_eq!(odd, None, "tally.{view}.{name} has more than {digits} decimals");
        if row.get::<_, i64>(1) > 0 {
            filled += 1;
            views.insert(view);
        }
    }
    // The check is not vacuous.
    assert!(filled > 60 && views.len() > 10, "{filled} columns of {views:?}");
}

/// The planner uses JIT for queries that it expects to cost more than 100,000 (jit_above_cost). A set-returning
/// function is expected to return 1,000 rows unless it says how many, and a join of three of them thousands of
/// millions.
#[test]
fn no_view_is_expected_to_cost_so_much_that_it_is_compiled() {
    const LIMIT: f64 = 100_000.0 / 5.0;
    let database = Profile::Preloaded.database();
    let watcher = database.role("planner", "pg_monitor");
    let mut owner = database.connect();
    let unstated = "select proname::text from pg_proc where pronamespace = 'tally'::regnamespace \
                    and proretset and prorows in (0, 1000)";
    let unstated: Vec<String> =
        owner.query(unstated, &[]).unwrap().iter().map(|row| row.get(0)).collect();
    assert!(unstated.is_empty(), "without ROWS: {unstated:?}");
    let views = "select relname::text, has_table_privilege($1, c.oid, 'select') from pg_class c \
                 where relnamespace = 'tally'::regnamespace and relkind = 'v' order by 1";
    let views: Vec<(String, bool)> = owner
        .query(views, &[&watcher])
        .unwrap()
        .iter()
        .map(|row| (row.get(0), row.get(1)))
        .collect();
    assert!(views.len() > 15, "{views:?}");
    let mut watcher = database.config().user(&watcher).connect(postgres::NoTls).unwrap();
    let mut dear = Vec::new();
    for (view, readable) in &views {
        for query in ["select *", "select count(*)", "select * order by 1"] {
            let (list, order) = query.split_once(" order").unwrap_or((query, ""));
            let order = if order.is_empty() { String::new() } else { format!("order{order}") };
            let sql = format!("explain (format json) {list} from tally.{view} {order}");
            for client in [Some(&mut owner), readable.then_some(&mut watcher)].into_iter().flatten()
            {
                let messages = client.simple_query(&sql).unwrap();
                let plan = messages.iter().find_map(|message| match message {
                    postgres::SimpleQueryMessage::Row(row) => row.get(0),
                    _ => None,
                });
                let plan: serde_json::Value = serde_json::from_str(plan.unwrap()).unwrap();
                let cost = plan[0]["Plan"]["Total Cost"].as_f64().unwrap();
                if cost >= LIMIT {
                    dear.push(format!("{cost:.0}: {sql}"));
                }
            }
        }
    }
    assert!(dear.is_empty(), "{dear:#?}");
}
