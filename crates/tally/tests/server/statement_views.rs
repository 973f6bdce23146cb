// SPDX-License-Identifier: PostgreSQL
//! tally.statements and the related views: their columns, privileges, resets, and consistent readings
//! while sessions run.

use crate::support;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::support::shared_server::Profile;
use crate::support::{
    create_views, create_views_in, eventually, has_module, major, output, plain, segment, shared,
    start, tally,
};
use postgres::{Client, NoTls};
use scratch::Cluster;

fn connect(cluster: &Cluster, database: &str, role: &str) -> Client {
    let mut config = cluster.config();
    config.dbname(database).user(role);
    config.connect(NoTls).unwrap()
}

/// One number.
fn number(client: &mut Client, sql: &str) -> f64 {
    let sql = format!("select ({sql})::float8");
    client.query_one(&sql, &[]).unwrap().get::<_, Option<f64>>(0).unwrap_or(f64::NAN)
}

/// One text for each row.
fn texts(client: &mut Client, sql: &str) -> Vec<String> {
    client.query(sql, &[]).unwrap().iter().map(|row| row.get(0)).collect()
}

#[test]
fn the_columns_of_pg_stat_statements_are_all_there_and_those_of_15_come_first() {
    if !has_module("pg_stat_statements") {
        println!("not tested: this server has no pg_stat_statements");
        return;
    }
    let cluster = start(plain().setting("shared_preload_libraries", "pg_stat_statements,pg_tally"));
    create_views(&cluster);
    let mut client = cluster.connect().unwrap();
    client.batch_execute("create extension pg_stat_statements").unwrap();
    let mut columns = |view: &str| {
        let sql = format!(
            "select attname || ' ' || format_type(atttypid, atttypmod) from pg_attribute \
             where attrelid = '{view}'::regclass and attnum > 0 order by attnum"
        );
        texts(&mut client, &sql)
    };
    let mut theirs = columns("pg_stat_statements");
    let ours = columns("tally.statements");
    let known = match major() {
        15 | 16 => 43,
        17 => 49,
        18 => 52,
        _ => 54,
    };
    assert_eq!(theirs.len(), known, "another version than was looked at: {theirs:?}");
    let absent: Vec<_> = theirs.iter().filter(|column| !ours.contains(column)).collect();
    assert!(absent.is_empty(), "{absent:?}");
    // From 17 on, it has separate times for shared and for local blocks. We have their sum as well if it was
    // there.
    for column in &mut theirs {
        *column =
            column.replace("shared_blk_read", "blk_read").replace("shared_blk_write", "blk_write");
    }
    let later =
        "local_blk_read_time local_blk_write_time jit_deform_count jit_deform_time stats_since minmax_stats_since \
                 wal_buffers_full parallel_workers_to_launch parallel_workers_launched \
                 generic_plan_calls custom_plan_calls";
    theirs.retain(|column| !later.split(' ').any(|later| column.split(' ').next() == Some(later)));
    assert_eq!(theirs.len(), 43, "{theirs:?}");
    assert_eq!(ours[..theirs.len()], theirs[..]);
    let more = "p50_exec_time p90_exec_time p95_exec_time p99_exec_time p999_exec_time \
                rows_per_call errors cancels first_seen last_seen temp_files temp_bytes workers \
                worker_time cpu_time client_time io_time lwlock_time lock_time ipc_time \
                other_time ledger_time query_bytes shared_blk_read_time shared_blk_write_time \
                local_blk_read_time local_blk_write_time wal_buffers_full jit_deform_count \
                jit_deform_time parallel_workers_to_launch parallel_workers_launched \
                generic_plan_calls custom_plan_calls stats_since minmax_stats_since errors_by_class \
                user_time system_time application deadlocks usename datname";
    let names: Vec<_> =
        ours[theirs.len()..].iter().filter_map(|column| column.split(' ').next()).collect();
    assert_eq!(names, more.split_whitespace().collect::<Vec<_>>());
}

/// If pg_stat_statements of the same server has no such column, the server does not provide the figure, and a
/// zero would be wrong.
#[test]
fn columns_of_later_versions_are_null() {
    let database = Profile::Preloaded.database();
    let mut client = database.connect();
    client.batch_execute("select 'later'").unwrap();
    let sql = "select (to_jsonb(s) ->> $1) is null from tally.statements s \
               where query = 'select $1' and datname = current_database()";
    for (since, columns) in [
        (17, "shared_blk_read_time shared_blk_write_time local_blk_read_time local_blk_write_time jit_deform_count jit_deform_time"),
        (18, "wal_buffers_full parallel_workers_to_launch parallel_workers_launched"),
        (19, "generic_plan_calls custom_plan_calls"),
        (15, "stats_since"),
    ] {
        for column in columns.split(' ') {
            let null: bool = client.query_one(sql, &[&column]).unwrap().get(0);
            assert_eq!(null, major() < since, "{column}");
        }
    }
}

#[test]
fn minima_and_maxima_are_reset_alone() {
    let mut cluster = shared();
    create_views(&cluster);
    let mut client = cluster.connect().unwrap();
    let mut worker = cluster.connect().unwrap();
    for seconds in ["0.001", "0.02"] {
        worker.batch_execute(&format!("select pg_sleep({seconds}) as extreme")).unwrap();
        worker.batch_execute(&format!("select pg_sleep({seconds}), 'other'")).unwrap();
    }
    let of = |client: &mut Client, query: &str, what: &str| -> bool {
        let sql = format!("select {what} from tally.statements where query = $1");
        client.query_one(&sql, &[&query]).unwrap().get(0)
    };
    let one = "select pg_sleep($1) as extreme";
    let other = "select pg_sleep($1), $2";
    let never = "calls = 2 and min_exec_time < max_exec_time and minmax_stats_since = stats_since";
    assert!(of(&mut client, one, never));
    let reset = "select tally.reset(queryid => queryid, minmax_only => true) > stats_since from tally.statements where query = $1";
    assert!(client.query_one(reset, &[&one]).unwrap().get::<_, bool>(0));
    let none = "calls = 2 and min_exec_time + max_exec_time + min_plan_time + max_plan_time = 0 \
                and total_exec_time > 0 and minmax_stats_since > stats_since";
    assert!(of(&mut client, one, none));
    assert!(of(&mut client, other, never));
    // The same session, which has both in its cache.
    worker.batch_execute("select pg_sleep(0.001) as extreme").unwrap();
    worker.batch_execute("select pg_sleep(0.001), 'other'").unwrap();
    let once = "calls = 3 and min_exec_time > 0 and min_exec_time = max_exec_time and min_plan_time = max_plan_time \
                and min_plan_time > 0 and p50_exec_time > 0";
    assert!(of(&mut client, one, once));
    assert!(of(&mut client, other, "calls = 3 and min_exec_time < max_exec_time"));
    drop((client, worker));
    cluster.stop(scratch::StopMode::Fast).unwrap();
    cluster.start().unwrap();
    let mut client = cluster.connect().unwrap();
    assert!(of(&mut client, one, once));
    assert!(of(&mut client, one, "minmax_stats_since > stats_since"));
}

#[test]
fn errors_are_counted_by_the_class_of_their_sqlstate() {
    let database = Profile::Preloaded.database();
    let mut client = database.connect();
    client
        .batch_execute(
            "create table once (a int primary key); insert into once values (1);
             create function fail(code text) returns void language plpgsql as
                 $$ begin raise exception using errcode = code; end $$;
             create function caught() returns void language plpgsql as
                 $$ begin insert into once values (1); exception when unique_violation then end $$",
        )
        .unwrap();
    let of = |client: &mut Client, query: &str| {
        let sql = "select concat_ws(' ', calls, errors, cancels, errors_by_class::text) from tally.statements \
                   where query = $1 and toplevel and datname = current_database()";
        client.query_one(sql, &[&query]).unwrap().get::<_, String>(0)
    };
    let codes =
        "08006 22012 23505 25006 40001 40P01 42501 53100 54000 55P03 57P03 58030 P0001 XX001";
    for code in codes.split(' ') {
        let error = client.batch_execute(&format!("select fail('{code}')")).unwrap_err();
        assert_eq!(error.code().unwrap().code(), code);
    }
    let counted = of(&mut client, "select fail($1)");
    let classes = r#"{"08": 1, "22": 1, "23": 1, "25": 1, "40": 2, "42": 1, "53": 2, "55": 1, "57": 2, "other": 2}"#;
    assert_eq!(counted, format!("0 14 0 {classes}"));
    let deadlocks =
        "select sum(deadlocks)::text || ' ' || count(nullif(deadlocks, 0)) from tally.statements \
                     where datname = current_database()";
    assert_eq!(client.query_one(deadlocks, &[]).unwrap().get::<_, String>(0), "1 1");
    // A cancellation belongs to no class.
    client.batch_execute("set statement_timeout = '20ms'").unwrap();
    assert!(client.batch_execute("select pg_sleep(9), 'of no class'").is_err());
    client.batch_execute("reset statement_timeout").unwrap();
    assert_eq!(of(&mut client, "select pg_sleep($1), $2"), "0 0 1");
    // An error that another statement has caught; and one of the server itself.
    client.batch_execute("select caught()").unwrap();
    assert_eq!(of(&mut client, "select caught()"), "1 0 0");
    assert!(client.batch_execute("insert into once values (1)").is_err());
    assert_eq!(of(&mut client, "insert into once values ($1)"), r#"1 1 0 {"23": 1}"#);
}

#[test]
fn a_statement_counts_since_it_was_first_met_or_reset_and_across_restarts() {
    let mut cluster = shared();
    create_views(&cluster);
    let since = |cluster: &Cluster, as_of: &str| {
        cluster.psql(&format!(
            "select coalesce(stats_since >= '{as_of}', false) from tally.statements where query = 'select $1 as since'"
        ))
        .unwrap()
    };
    let now = |cluster: &Cluster| cluster.psql("select clock_timestamp()").unwrap();
    let begin = now(&cluster);
    cluster.psql("select 1 as since").unwrap();
    let met = now(&cluster);
    cluster.psql("select 2 as since").unwrap();
    assert_eq!((&*since(&cluster, &begin), &*since(&cluster, &met)), ("t", "f"));
    cluster.stop(scratch::StopMode::Fast).unwrap();
    cluster.start().unwrap();
    cluster.psql("select 3 as since").unwrap();
    assert_eq!((&*since(&cluster, &begin), &*since(&cluster, &met)), ("t", "f"));
    cluster.psql("select tally.reset(queryid => queryid) from tally.statements where query = 'select $1 as since'").unwrap();
    cluster.psql("select 4 as since").unwrap();
    assert_eq!(since(&cluster, &met), "t");
}

/// The clock's rate was measured against another clock when the segment was made.
const RATE: f64 = 1e-3;
/// A quantile is as exact as its bucket.
const BUCKET: f64 = 0.13;

fn near(a: f64, b: f64, within: f64, what: &str) {
    assert!((a - b).abs() <= within, "{what}: {a}, not {b}");
}

#[test]
fn figures_match_what_was_run() {
    let database = Profile::Preloaded.database();
    let mut client = database.connect();
    let mut worker = database.connect();
    let before: std::time::SystemTime =
        client.query_one("select clock_timestamp()", &[]).unwrap().get(0);
    let began = Instant::now();
    for seconds in ["0.05", "0.05", "0.2"] {
        worker.batch_execute(&format!("select pg_sleep({seconds}), 'one'")).unwrap();
    }
    worker.batch_execute("select * from generate_series(1, 500) as g").unwrap();
    // Everything that the sleeps may have taken, in milliseconds: a command ends after its response, before that
    // of the next one.
    let most = began.elapsed().as_secs_f64() * 1000.0 * (1.0 + RATE);
    assert!(worker.batch_execute("select no_such_function(5)").is_err());
    worker.batch_execute("set statement_timeout = '50ms'").unwrap();
    assert!(worker.batch_execute("select pg_sleep(9), 'two', 'three'").is_err());
    let row = client
        .query_one(
            "select calls, total_exec_time, min_exec_time, max_exec_time, mean_exec_time, \
                    stddev_exec_time, rows, p50_exec_time, p999_exec_time, other_time, \
                    ledger_time, usename::text, datname::text, query_bytes, \
                    last_seen - first_seen > '40ms', first_seen \
             from tally.statements where query = 'select pg_sleep($1), $2' \
             and datname = current_database()",
            &[],
        )
        .unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(6)), (3, 3));
    let time = |at: usize| row.get::<_, f64>(at);
    let [total, min, max, mean, deviation] = [1, 2, 3, 4, 5].map(time);
    assert!((300.0..=most).contains(&total), "total {total} of {most}");
    assert!((50.0..=most).contains(&min) && (200.0..=most).contains(&max), "{min} {max}");
    near(mean, total / 3.0, 1e-5, "mean");
    // The population's; the third time follows from the sum.
    let times = [min, total - min - max, max];
    let variance = times.map(|time| (time - mean).powi(2)).iter().sum::<f64>() / 3.0;
    near(deviation, variance.sqrt(), 1e-3, "deviation");
    near(time(7), times[1], BUCKET * times[1], "median");
    near(time(8), max, BUCKET * max, "99.9 %");
    let (asleep, all) = (time(9), time(10));
    assert!((300.0..=all).contains(&asleep) && all <= most, "asleep {asleep} of {all} of {most}");
    assert_eq!(
        (row.get::<_, &str>(11), row.get::<_, &str>(12)),
        (&*database.name, &*database.name)
    );
    assert_eq!(row.get::<_, i32>(13), 23);
    assert!(row.get::<_, bool>(14));
    let first_seen: std::time::SystemTime = row.get(15);
    assert!(first_seen + std::time::Duration::from_secs(1) > before, "{first_seen:?} {before:?}");

    let classes = "select max(abs(ledger_time - cpu_time - client_time - io_time - lwlock_time \
                   - lock_time - ipc_time - other_time)) from tally.statements";
    // Each is rounded to a nanosecond.
    assert!(number(&mut client, classes) < 8e-6);
    let of = |what: &str, query: &str| {
        format!(
            "select {what} from tally.statements where query like '{query}' \
             and datname = current_database()"
        )
    };
    let series = of("rows_per_call", "select * from generate_series%");
    near(number(&mut client, &series), 500.0, 1e-9, "rows");
    let cancelled = of("cancels * 10 + errors", "select pg_sleep($1), $2, $3");
    near(number(&mut client, &cancelled), 10.0, 1e-9, "cancels and errors");
    // a statement that fails in the parser has no id
    let unnamed = "select sum(seconds) from tally.statement_activities where queryid = 0 \
                   and dbid = (select oid from pg_database where datname = current_database())";
    assert!(number(&mut client, unnamed) > 0.0);
    assert!(texts(&mut client, "select query from tally.statements where queryid = 0").is_empty());
}

#[test]
fn a_role_sees_only_its_own_texts_and_ids() {
    let database = Profile::Preloaded.database();
    let owner = &database.name;
    let (role, watches) = (database.role("poor", ""), database.role("watcher", "pg_monitor"));
    let as_role = |role: &str| database.config().user(role).connect(NoTls).unwrap();
    let mut admin = database.connect();
    let (mut poor, mut watcher) = (as_role(&role), as_role(&watches));
    admin.batch_execute("select 'secret' as hidden").unwrap();
    poor.batch_execute("select 'mine' as own").unwrap();

    let others = format!(
        "select count(*) filter (where queryid is null and query_bytes is null \
         and query = '<insufficient privilege>') * 1000000 + count(*) \
         from tally.statements where usename = '{owner}'"
    );
    let seen = number(&mut poor, &others);
    assert!(seen > 1e6 && seen % 1e6 == (seen / 1e6).floor(), "{seen}");
    let of_role = |role: &str, like: &str| {
        format!(
            "select query from tally.statements where usename = '{role}' and query like '{like}'"
        )
    };
    assert_eq!(texts(&mut poor, &of_role(&role, "%own")), ["select $1 as own"]);
    let hidden = of_role(owner, "% as hidden");
    assert_eq!(texts(&mut watcher, &hidden), ["select $1 as hidden"]);
    let ids = format!(
        "select count(queryid) from tally.statement_activities where userid = '{owner}'::regrole"
    );
    assert!(number(&mut poor, &ids) == 0.0 && number(&mut watcher, &ids) > 0.0);

    let mut asleep = database.connect();
    std::thread::scope(|scope| {
        // Ends with this block, in any case.
        let mut holder = database.connect();
        holder.batch_execute("select pg_advisory_lock(1)").unwrap();
        scope.spawn(|| asleep.batch_execute("select pg_advisory_lock(1), 'now' as nap").unwrap());
        let sql = format!(
            "select count(*) from tally.sessions where query like '%as nap' \
             and usename = '{owner}' and statement_seconds > 0"
        );
        eventually("the watcher sees the nap", || number(&mut watcher, &sql) == 1.0);
        let sql = format!(
            "select count(statement_seconds) + count(queryid) + count(query) \
             from tally.sessions where usename = '{owner}'"
        );
        assert_eq!(number(&mut poor, &sql), 0.0);
    });
    for call in ["tally.reset()", "tally.reset(queryid => 5)"] {
        assert!(poor.batch_execute(&format!("select {call}")).is_err());
        assert!(watcher.batch_execute(&format!("select {call}")).is_err());
    }
}

/// Once with a simple query, once with Parse, Bind and Execute.
#[test]
fn a_session_shows_its_current_statement_and_where_its_time_went_so_far() {
    let database = Profile::Preloaded.database();
    let (mut client, mut worker) = (database.connect(), database.connect());
    let pid = support::pid_of(&mut worker);
    let busy = "select count(*) filter (where i > 0) from generate_series(1, 300000) i, \
                pg_advisory_xact_lock(1)";
    worker.batch_execute("set work_mem = '64MB'").unwrap();
    let sql = "select statement_seconds, statement_cpu_seconds, statement_wait_seconds, \
                      queryid = (select s.queryid from tally.statements s \
                                 where s.query = v.query and datname = current_database()) \
               from tally.sessions v where query like '%filter (where i > $1)%' and pid = $1 \
               and activity = 'Lock:advisory'";
    for extended in [false, true] {
        let began = Instant::now();
        std::thread::scope(|scope| {
            // Ends with this block, in any case.
            let mut holder = database.connect();
            holder.batch_execute("select pg_advisory_lock(1)").unwrap();
            let work = scope.spawn(|| match extended {
                true => drop(worker.query(busy, &[]).unwrap()),
                false => worker.batch_execute(busy).unwrap(),
            });
            eventually("it waits", || client.query_opt(sql, &[&pid]).unwrap());
            let waiting = Instant::now();
            std::thread::sleep(std::time::Duration::from_millis(100));
            let min = waiting.elapsed().as_secs_f64();
            let row = client.query_one(sql, &[&pid]).unwrap();
            let most = began.elapsed().as_secs_f64();
            let (age, cpu, waits): (f64, f64, f64) = (row.get(0), row.get(1), row.get(2));
            let bracket = min * (1.0 - RATE)..=most * (1.0 + RATE);
            assert!(bracket.contains(&age) && waits > min * (1.0 - RATE), "{age}, {waits} waiting");
            // Each is rounded to a nanosecond.
            near(cpu + waits, age, 3e-9, "age");
            assert!(cpu > 0.0, "{cpu}");
            drop(holder);
            work.join().unwrap();
        });
        let none =
            format!("select count(*) from tally.sessions where pid = {pid} and query is not null");
        // The client receives its answer shortly before the session waits for the next message.
        eventually("it is over", || number(&mut client, &none) == 0.0);
    }
}

#[test]
fn a_reset_clears_one_statement_a_role_a_database_or_all() {
    let cluster = shared();
    create_views(&cluster);
    cluster.psql("create role other superuser login").unwrap();
    cluster.psql("create database elsewhere").unwrap();
    let mut client = cluster.connect().unwrap();
    let mut sessions: Vec<Client> =
        [("postgres", "postgres"), ("postgres", "other"), ("elsewhere", "other")]
            .iter()
            .map(|(database, role)| connect(&cluster, database, role))
            .collect();
    let mut work = |client: &mut Client| {
        for session in &mut sessions {
            session.batch_execute("select 1 as a; select 2, 3 as b").unwrap();
        }
        counted(client)
    };
    fn counted(client: &mut Client) -> Vec<String> {
        texts(
            client,
            "select concat_ws(' ', datname, usename, right(query, 1), calls) \
             from tally.statements where query in ('select $1 as a', 'select $1, $2 as b') \
             order by 1",
        )
    }
    let all = [
        "elsewhere other a 1",
        "elsewhere other b 1",
        "postgres other a 1",
        "postgres other b 1",
        "postgres postgres a 1",
        "postgres postgres b 1",
    ];
    assert_eq!(work(&mut client), all);
    let id = "select tally.reset(queryid => (select min(queryid) from tally.statements \
              where query = 'select $1 as a'))";
    client.batch_execute(id).unwrap();
    assert_eq!(counted(&mut client), [all[1], all[3], all[5]]);
    client.batch_execute("select tally.reset('other'::regrole::oid)").unwrap();
    assert_eq!(counted(&mut client), [all[5]]);
    client.batch_execute("select tally.reset()").unwrap();
    assert_eq!(counted(&mut client), Vec::<String>::new());
    assert_eq!(work(&mut client), all);
    client
        .batch_execute("select tally.reset(0, oid) from pg_database where datname = 'postgres'")
        .unwrap();
    assert_eq!(counted(&mut client), all[..2]);
    let ledger = "select sum(seconds) from tally.ledger where kind = 'client backend'";
    let before = number(&mut client, ledger);
    client.batch_execute("select tally.reset(dbid => 1)").unwrap();
    assert!(number(&mut client, ledger) > before, "the ledger goes on");
}

/// They are neither planned nor counted before they end; a query is treated the same if planning is not counted.
/// The witness is pg_stat_activity.
#[test]
fn a_utility_statement_is_shown_while_it_runs_for_the_first_time() {
    let database = Profile::Preloaded.database();
    let mut client = database.connect();
    client.batch_execute("create table busy (id int); insert into busy values (1)").unwrap();
    let waits = "select pg_advisory_xact_lock_shared(77)";
    let cases = [
        "do $$ begin perform pg_advisory_xact_lock_shared(77); end $$".to_owned(),
        format!("explain (analyze, costs off) {waits}"),
        format!("copy ({waits}) to stdout"),
        format!("create table made as {waits} is null as waited"),
        "create index on busy (id)".to_owned(),
        "vacuum busy".to_owned(),
        waits.to_owned(),
    ];
    for sql in &cases {
        let mut worker = database.connect();
        worker.batch_execute("set pg_tally.statements_planning = off").unwrap();
        let pid = support::pid_of(&mut worker);
        std::thread::scope(|scope| {
            let mut holder = database.connect();
            holder
                .batch_execute("begin; lock table busy in share row exclusive mode; select pg_advisory_lock(77)")
                .unwrap();
            let work = scope.spawn(move || match sql.starts_with("copy") {
                true => drop(std::io::copy(
                    &mut worker.copy_out(sql.as_str()).unwrap(),
                    &mut std::io::sink(),
                )),
                false => worker.batch_execute(sql).unwrap(),
            });
            // The server reads the wait later than the query id, which may be that of the session's statement before.
            let activity = "select query_id from pg_stat_activity where pid = $1 and wait_event_type = 'Lock' \
                            and query = $2 and query_id is not null";
            let waiting =
                eventually("it waits", || client.query_opt(activity, &[&pid, sql]).unwrap());
            let id: i64 = waiting.get(0);
            let shown = "select calls, plans, ledger_time, lock_time, query from tally.statements \
                         where queryid = $1 and datname = current_database() and toplevel";
            let row = client.query_opt(shown, &[&id]).unwrap();
            let row = row.unwrap_or_else(|| panic!("{sql}: there is no row"));
            assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (0, 0), "{sql}");
            let (ledger, lock): (f64, f64) = (row.get(2), row.get(3));
            assert!(lock > 0.0 && ledger >= lock, "{sql}: {ledger}, {lock}");
            let first = sql.split(' ').next().unwrap();
            assert!(
                row.get::<_, String>(4).starts_with(first),
                "{sql}: {}",
                row.get::<_, String>(4)
            );
            holder.batch_execute("rollback; select pg_advisory_unlock(77)").unwrap();
            work.join().unwrap();
            eventually("it has ended", || {
                client.query_one(shown, &[&id]).unwrap().get::<_, i64>(0) == 1
            });
        });
    }
}

#[test]
fn texts_are_shown_whatever_their_encoding_and_a_cut_is_marked() {
    let cluster = start(
        plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.max_statement_text", "100B"),
    );
    create_views(&cluster);
    for encoding in ["latin1", "sql_ascii"] {
        let sql = format!(
            "create database {encoding} encoding '{encoding}' locale 'C' template template0"
        );
        cluster.psql(&sql).unwrap();
    }
    let mut client = cluster.connect().unwrap();
    connect(&cluster, "latin1", "postgres").batch_execute("select 1 as \"gr\u{fc}n\"").unwrap();
    // bytes that are not UTF-8: in SQL_ASCII the server accepts any
    let mut raw = connect(&cluster, "sql_ascii", "postgres");
    raw.batch_execute("set pg_tally.statements = 'all'").unwrap();
    let sql = "do $$ begin execute convert_from('select 2 as \"x\\374y\"', 'sql_ascii'); end $$";
    raw.batch_execute(sql).unwrap();
    let long = format!("select 3 as \"{}\"", "\u{20ac}".repeat(20));
    client.batch_execute(&format!("{long}, '{}'", "z".repeat(900))).unwrap();
    client.batch_execute(&format!("select 4 as c, 5 as {}", "\u{20ac}".repeat(60))).unwrap();

    let find = |client: &mut Client, like: &str| {
        texts(client, &format!("select query from tally.statements where query like '{like}'"))
    };
    assert_eq!(find(&mut client, "select $1 as \"gr%"), ["select $1 as \"gr\u{fc}n\""]);
    assert_eq!(find(&mut client, "select $1 as \"x%"), ["select $1 as \"x?y\""]);
    let bytes = texts(
        &mut client,
        "select query || query_bytes from tally.statements where query like 'select $1 as c%'",
    );
    let kept = "select $1 as c, $2 as ";
    let euros = (100 - kept.len()) / 3;
    let whole = kept.len() + 180;
    assert_eq!(bytes, [format!("{kept}{}...{whole}", "\u{20ac}".repeat(euros))]);
    let every = number(&mut client, "select count(query) from tally.statements");
    assert!(every > 5.0, "no text makes the view fail");
    let mut latin = connect(&cluster, "latin1", "postgres");
    create_views_in(&mut latin);
    create_views_in(&mut raw);
    assert_eq!(find(&mut latin, "select $1 as \"gr%"), ["select $1 as \"gr\u{fc}n\""]);
    let replaced = find(&mut latin, "select $1 as c%");
    assert_eq!(replaced, [format!("{kept}{}...", "?".repeat(euros))]);
    assert!(number(&mut raw, "select count(query) from tally.statements") >= every);
}

/// A statement on a table whose name needs the database's encoding: its text and its plan, from another database and from the file.
#[test]
fn texts_and_plans_of_any_encoding_are_decoded() {
    let cluster = start(
        plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.plan_threshold", "0"),
    );
    create_views(&cluster);
    let mut client = cluster.connect().unwrap();
    let names = [
        ("euc_jp", "日本語"),
        ("euc_cn", "中文表"),
        ("euc_kr", "한국어"),
        ("win1251", "таблица"),
        ("latin1", "größe"),
        ("latin2", "kůň"),
    ];
    for (encoding, name) in names {
        let sql = format!(
            "create database {encoding} encoding '{encoding}' locale 'C' template template0"
        );
        client.batch_execute(&sql).unwrap();
        let mut there = connect(&cluster, encoding, "postgres");
        there.batch_execute(&format!("create table \"{name}\" (id int)")).unwrap();
        there.batch_execute(&format!("select id, 1 from \"{name}\" order by id")).unwrap();
    }
    let mut json = tally();
    json.args(["statements", "--json"]).arg(segment(&cluster));
    let json: serde_json::Value = serde_json::from_str(&output(&mut json)).unwrap();
    for (encoding, name) in names {
        let text = format!("select id, $1 from \"{name}\" order by id");
        let sql = "select s.query, p.plan from tally.statements s join tally.plans p using (queryid, dbid) \
                   where s.datname = $1 and s.query like 'select id, $1%'";
        let row = client.query_one(sql, &[&encoding]).unwrap();
        assert_eq!(row.get::<_, String>(0), text);
        let plan: String = row.get(1);
        assert!(plan.contains(&format!(" on {name}  (cost=")), "{encoding}: {plan}");
        let rows = json["rows"].as_array().unwrap();
        let found = rows.iter().find(|row| row["query"] == text.as_str());
        let id = &found.unwrap_or_else(|| panic!("{encoding}: no {text}"))["queryid"];
        let plans = json["plans"].as_array().unwrap();
        let same = plans.iter().find(|plan| plan["queryid"] == *id);
        let same = same.unwrap_or_else(|| panic!("{encoding}: no plan of {id} in {plans:?}"));
        assert_eq!(same["plan"], plan.as_str(), "{encoding}");
    }
}

#[test]
fn the_status_shows_how_many_statements_are_kept_and_whether_they_have_ids() {
    let cluster = start(
        plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.max_statements", "100")
            .setting("compute_query_id", "off"),
    );
    create_views(&cluster);
    let mut client = cluster.connect().unwrap();
    assert_eq!(support::status_of(&mut client, "statements"), "top");
    assert!(
        support::status_of(&mut client, "query ids").starts_with("off: compute_query_id is off")
    );
    client.batch_execute("set compute_query_id = on; set pg_tally.statements = 'all'").unwrap();
    assert_eq!(support::status_of(&mut client, "query ids"), "computed");
    assert_eq!(support::status_of(&mut client, "statements"), "all");
    assert_eq!(support::status_of(&mut client, "statements evicted"), "0");
    for i in 0..400 {
        client.batch_execute(&format!("select {}", support::distinct(i))).unwrap();
    }
    let evicted: u32 = support::status_of(&mut client, "statements evicted").parse().unwrap();
    let kept = support::status_of(&mut client, "statements kept");
    let (kept, limit) = kept.split_once(" of ").unwrap();
    let (kept, limit): (u32, u32) = (kept.parse().unwrap(), limit.parse().unwrap());
    assert!(kept <= limit && limit < 200, "{kept} of {limit}");
    assert!(evicted >= 400 - limit && kept > 80, "{evicted} evicted, {kept} kept");
    for name in ["statement counts dropped", "statements lost", "statement texts cut"] {
        assert_eq!(support::status_of(&mut client, name), "0", "{name}");
    }
}

#[test]
fn without_statement_entries_the_views_are_empty() {
    let cluster = start(
        plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.max_statements", "0"),
    );
    create_views(&cluster);
    let mut client = cluster.connect().unwrap();
    client.batch_execute("select 1").unwrap();
    assert_eq!(number(&mut client, "select count(*) from tally.statements"), 0.0);
    assert_eq!(number(&mut client, "select count(*) from tally.statement_activities"), 0.0);
    assert_eq!(number(&mut client, "select count(query) from tally.sessions"), 0.0);
    client.batch_execute("select tally.reset(), tally.reset(queryid => 7)").unwrap();
}

#[test]
fn statements_of_sessions_are_shown_where_only_sessions_are_instrumented() {
    let database = Profile::Sessions.database();
    let mut worker = database.connect();
    worker.batch_execute("select 'in a session' as done").unwrap();
    drop(worker);
    let mut client = database.connect();
    let sql = "select calls from tally.statements where query = 'select $1 as done'";
    eventually("the ended session's statement is there", || number(&mut client, sql) == 1.0);
    assert_eq!(support::status_of(&mut client, "statements"), "top");
    let own = "select count(*) from tally.sessions where query like '%tally.sessions%' \
               and pid = pg_backend_pid()";
    assert_eq!(number(&mut client, own), 1.0);
}

/// Each session runs more statements than its local table can hold, so that it flushes all the time. A reading at
/// any moment has every completed execution and none that has not started.
#[test]
fn a_reading_is_exact_while_statements_are_flushed() {
    const STATEMENTS: usize = 150;
    const ROUNDS: usize = 50;
    let database = Profile::Preloaded.database();
    let mut reader = database.connect();
    let calls = "select substr(query, strpos(query, ' as c') + 5)::int, calls \
                 from tally.statements where query like 'select $1, $2, $3, $4, $5, $6, % as c%' \
                 and datname = current_database()";
    // for each session: statements begun, and ended
    let progress: Vec<_> = (0..3).map(|_| (AtomicUsize::new(0), AtomicUsize::new(0))).collect();
    let begun = || progress.iter().map(|p| p.0.load(Ordering::SeqCst)).collect::<Vec<_>>();
    let ended = || progress.iter().map(|p| p.1.load(Ordering::SeqCst)).collect::<Vec<_>>();
    // executions of statement i, when this many were run in turn
    let times = |run: &[usize], i: usize| -> usize {
        run.iter().map(|n| (n + STATEMENTS - 1 - i) / STATEMENTS).sum()
    };
    let mut check = |ended: &[usize], begun: &dyn Fn() -> Vec<usize>| {
        let mut seen = [0; STATEMENTS];
        for row in reader.query(calls, &[]).unwrap() {
            seen[row.get::<_, i32>(0) as usize] = row.get::<_, i64>(1) as usize;
        }
        let begun = begun();
        for (i, seen) in seen.into_iter().enumerate() {
            let (min, max) = (times(ended, i), times(&begun, i));
            assert!((min..=max).contains(&seen), "{i}: {seen}, not {min} to {max}");
        }
    };
    std::thread::scope(|scope| {
        for (begun, ended) in &progress {
            let mut session = database.connect();
            scope.spawn(move || {
                for i in (0..ROUNDS).flat_map(|_| 0..STATEMENTS) {
                    let sql = format!("select {} as c{i}", support::distinct(i));
                    begun.fetch_add(1, Ordering::SeqCst);
                    session.batch_execute(&sql).unwrap();
                    ended.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        while ended().iter().any(|ended| *ended < STATEMENTS * ROUNDS) {
            check(&ended(), &begun);
        }
    });
    check(&ended(), &begun);
    let mut observer = database.connect();
    let others = format!("select count(*) from tally.sessions where usename = '{}'", database.name);
    eventually("the sessions have ended", || number(&mut observer, &others) == 2.0);
    check(&ended(), &begun);
}
