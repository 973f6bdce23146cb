// SPDX-License-Identifier: PostgreSQL
//! `tally doctor` names the culprit of planted problems first, and is silent about healthy servers.

use crate::support;
use std::os::unix::fs::{symlink, MetadataExt};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::support::recorder::Recorder;
use crate::support::slow_disk::{rerun_in_mount_namespace, Behaviour, SlowDisk};
use crate::support::{complaint, output, plain, segment, start, tally, Load};
use assert_cmd::Command;
use postgres::Client;
use recording::{Range, Recording};
use rustix::process::Signal;
use scratch::{Builder, Cluster};
use serde_json::Value;

fn server() -> Builder {
    plain()
        .setting("shared_preload_libraries", "pg_tally")
        .setting("autovacuum", "off")
        .setting("checkpoint_timeout", "1h")
}

/// What is found of a load: live, and afterwards.
struct Examined {
    /// By `tally doctor`.
    answer: Value,
    /// By `tally report`, from a recording of the same time.
    findings: Value,
}

/// Examines the server for some seconds while the threads of `load` run.
fn examine(cluster: &Cluster, seconds: u32, load: &[&Load]) -> Examined {
    let json = |command: &mut Command| -> Value { serde_json::from_str(&output(command)).unwrap() };
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    let answer = support::while_working(load, || {
        std::thread::sleep(Duration::from_secs(1));
        let recorder = Recorder::start(cluster, &directory, &["--detail", "1s"]);
        let mut doctor = tally();
        doctor.args(["doctor", "--json", "--for", &seconds.to_string()]).arg(segment(cluster));
        let answer = json(&mut doctor);
        recorder.end(Signal::TERM);
        answer
    });
    let report = json(tally().args(["report", "--json"]).arg(&directory));
    Examined { answer, findings: report["findings"].clone() }
}

/// A session that does this again and again.
fn again<'c>(
    cluster: &'c Cluster,
    step: impl Fn(&mut Client) + Sync + 'c,
) -> impl Fn(&AtomicBool) + Sync + 'c {
    move |stop| {
        let mut client = cluster.connect().unwrap();
        while !stop.load(Ordering::Relaxed) {
            step(&mut client);
        }
    }
}

/// The first diagnosis is by this rule, and its text and evidence have these words, live and in the report.
fn assert_first(examined: &Examined, rule: &str, words: &[&str]) {
    assert_first_live(&examined.answer, rule, words);
    let first = examined.findings[0].to_string();
    for word in words {
        assert!(first.contains(word), "{word} in the report: {:#}", examined.findings);
    }
}

fn assert_first_live(answer: &Value, rule: &str, words: &[&str]) {
    let first = &answer["diagnoses"][0];
    assert_eq!(first["rule"], rule, "{answer:#}");
    for word in words {
        assert!(first.to_string().contains(word), "{word}: {answer:#}");
    }
    assert_eq!(answer["healthy"], false);
}

#[test]
fn a_statement_without_an_index_is_named() {
    let cluster = start(server());
    cluster
        .psql(
            "create table orders (id int, customer int, filler text); \
             insert into orders select n, n % 50000, repeat('x', 100) from generate_series(1, 300000) n; \
             analyze orders",
        )
        .unwrap();
    let slow = again(&cluster, |client| {
        client.query("select * from orders where customer = 4711", &[]).unwrap();
    });
    let fast = again(&cluster, |client| {
        client.simple_query("select 1").unwrap();
        std::thread::sleep(Duration::from_millis(5));
    });
    let answer = examine(&cluster, 4, &[&slow, &fast]);
    let words = ["from orders where customer", "index", "reads the whole table orders", "likely"];
    assert_first(&answer, "missing-index", &words);
}

#[test]
fn checkpoints_that_the_wal_forces_are_named_with_the_setting() {
    let cluster = start(
        server()
            .setting("max_wal_size", "32MB")
            .setting("min_wal_size", "32MB")
            .setting("fsync", "on"),
    );
    cluster.psql("create table t (n int, filler text)").unwrap();
    let write = again(&cluster, |client| {
        client
            .simple_query(
                "insert into t select n, repeat('x', 500) from generate_series(1, 2000) n",
            )
            .unwrap();
    });
    let answer = examine(&cluster, 8, &[&write]);
    assert_first(&answer, "checkpoints", &["max_wal_size", "forced by WAL"]);
}

#[test]
fn a_client_that_asks_for_each_row_by_itself_is_named() {
    let cluster = start(server());
    cluster
        .psql("create table items (id int primary key, name text); insert into items select n, 'x' from generate_series(1, 1000) n; analyze items")
        .unwrap();
    let each = again(&cluster, |client| {
        client.batch_execute("set application_name = 'shop'; begin").unwrap();
        let statement = client.prepare("select name from items where id = $1").unwrap();
        for id in 1..=1000i32 {
            client.query_one(&statement, &[&id]).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        client.batch_execute("commit").unwrap();
    });
    let answer = examine(&cluster, 5, &[&each]);
    assert_first(&answer, "many-small-statements", &["shop", "name from items where id"]);
}

#[test]
fn a_sort_that_does_not_fit_into_work_mem_is_named() {
    let cluster = start(server().setting("work_mem", "64kB"));
    cluster
        .psql("create table t as select n, md5(n::text) filler from generate_series(1, 200000) n; analyze t")
        .unwrap();
    let sort = again(&cluster, |client| {
        client
            .simple_query("select count(*) from (select filler from t order by filler offset 1) s")
            .unwrap();
    });
    let answer = examine(&cluster, 5, &[&sort]);
    assert_first(&answer, "temporary-files", &["work_mem", "order by filler"]);
}

#[test]
fn a_slow_device_under_the_wal_is_named() {
    if rerun_in_mount_namespace("doctor::a_slow_device_under_the_wal_is_named") {
        return;
    }
    let mut cluster = server().fsync(true).directory(std::env::temp_dir()).create().unwrap();
    let path = segment(&cluster);
    cluster.also_remove(&path);
    // One file of the WAL lasts for the whole test.
    const FIRST: &str = "000000010000000000000001";
    let wal = cluster.data_dir().join("pg_wal").join(FIRST);
    let (files, place) = (cluster.dir().join("files"), cluster.dir().join("slow"));
    std::fs::create_dir(&files).unwrap();
    std::fs::create_dir(&place).unwrap();
    let owner = std::fs::metadata(&wal).unwrap();
    std::os::unix::fs::chown(&files, Some(owner.uid()), Some(owner.gid())).unwrap();
    std::fs::rename(&wal, files.join(FIRST)).unwrap();
    let Some(disk) = SlowDisk::mount(&place, &files) else { return };
    symlink(place.join(FIRST), &wal).unwrap();
    cluster.start().unwrap();
    cluster.psql("create table t (n int)").unwrap();
    disk.set(Behaviour { sync: Duration::from_millis(30), ..Behaviour::default() });
    let insert = again(&cluster, |client| {
        client.simple_query("insert into t values (1)").unwrap();
    });
    let answer = examine(&cluster, 4, &[&insert, &insert]);
    assert_first(&answer, "commits", &["sync of the WAL", "pg_wal"]);
}

#[test]
fn clients_that_connect_for_each_statement_are_counted() {
    let cluster = start(server());
    let storm = |stop: &AtomicBool| {
        while !stop.load(Ordering::Relaxed) {
            cluster.connect().unwrap().simple_query("select 1").unwrap();
        }
    };
    let answer = examine(&cluster, 4, &[&storm, &storm]);
    assert_first(&answer, "connections", &["sessions/s", "pool"]);
}

#[test]
fn a_client_that_does_not_read_is_named() {
    let cluster = start(server());
    let slow = |stop: &AtomicBool| {
        use std::io::Read;
        let mut client = cluster.connect().unwrap();
        client.batch_execute("set application_name = 'slow reader'").unwrap();
        let mut rows = client
            .copy_out("copy (select repeat('x', 1000) from generate_series(1, 1000000)) to stdout")
            .unwrap();
        let mut buffer = [0; 1000];
        while !stop.load(Ordering::Relaxed) {
            rows.read_exact(&mut buffer).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let answer = examine(&cluster, 4, &[&slow]);
    assert_first(&answer, "slow-clients", &["slow reader"]);
}

#[test]
fn rows_that_everybody_updates_are_named_by_their_statement() {
    let cluster = start(server());
    cluster.psql("create table counter (n int); insert into counter values (0)").unwrap();
    let bump = again(&cluster, |client| {
        client.batch_execute("begin; update counter set n = n + 1").unwrap();
        std::thread::sleep(Duration::from_millis(20));
        client.batch_execute("commit").unwrap();
    });
    let answer = examine(&cluster, 4, &[&bump, &bump, &bump, &bump]);
    assert_first(&answer, "locks", &["update counter set n"]);
}

/// Ends a session together with the load.
fn ends(session: Client) -> impl Fn(&AtomicBool) + Sync {
    let session = std::sync::Mutex::new(Some(session));
    move |stop: &AtomicBool| {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(session.lock().unwrap().take());
    }
}

fn waits<'c>(cluster: &'c Cluster, sql: &'static str) -> impl Fn(&AtomicBool) + Sync + 'c {
    move |_| {
        let mut client = cluster.connect().unwrap();
        client.batch_execute(sql).unwrap();
    }
}

/// A session of that application, and its pid.
fn session(cluster: &Cluster, application: &str) -> (Client, i32) {
    let mut client =
        cluster.config().application_name(application).connect(postgres::NoTls).unwrap();
    let pid = client.query_one("select pg_backend_pid()", &[]).unwrap().get(0);
    (client, pid)
}

#[test]
fn the_session_that_everybody_waits_for_is_named() {
    let cluster = start(server());
    cluster.psql("create table counter (n int); insert into counter values (0)").unwrap();
    let (mut root, pid) = session(&cluster, "forgetful");
    root.batch_execute("begin; update counter set n = 1").unwrap();
    let wait = waits(&cluster, "update counter set n = n + 1");
    let answer = examine(&cluster, 3, &[&wait, &wait, &wait, &ends(root)]);
    let text = format!("3 sessions wait for session {pid} (forgetful");
    assert_first(
        &answer,
        "locks",
        &[&text, "idle in transaction for", "counter", "update counter set n = $1"],
    );
}

#[test]
fn readers_that_queue_behind_ddl_are_explained() {
    let cluster = start(server());
    cluster.psql("create table orders (n int); insert into orders values (0)").unwrap();
    let (mut root, pid) = session(&cluster, "report");
    root.batch_execute("begin; select n from orders").unwrap();
    let (ddl, ddl_pid) = session(&cluster, "migration");
    let ddl = std::sync::Mutex::new(ddl);
    let alter = |_: &AtomicBool| {
        ddl.lock().unwrap().batch_execute("alter table orders add column note text").unwrap();
    };
    let read = |_: &AtomicBool| {
        // They come later than the DDL.
        std::thread::sleep(Duration::from_millis(500));
        cluster.connect().unwrap().batch_execute("select n from orders").unwrap();
    };
    let answer = examine(&cluster, 3, &[&alter, &read, &read, &ends(root)]);
    let text = format!("3 sessions wait for session {pid} (report");
    let middle = format!("2 of them queue behind session {ddl_pid} (migration");
    assert_first(
        &answer,
        "locks",
        &[&text, &middle, "(AccessExclusiveLock): alter table orders", "lock_timeout"],
    );
}

#[test]
fn servers_that_are_idle_or_merely_busy_are_healthy() {
    let cluster = start(server());
    cluster.pgbench_init(5).unwrap();
    cluster.psql("vacuum analyze").unwrap();
    let idle = |_: &AtomicBool| ();
    let select = again(&cluster, |client| {
        client
            .query_one("select abalance from pgbench_accounts where aid = $1", &[&4711i32])
            .unwrap();
    });
    let thinking = again(&cluster, |client| {
        client
            .batch_execute(
                "begin; update pgbench_accounts set abalance = abalance + 1 where aid = 12; \
                 select abalance from pgbench_accounts where aid = 12; \
                 insert into pgbench_history values (1, 1, 12, 1, now()); commit",
            )
            .unwrap();
        std::thread::sleep(Duration::from_millis(20));
    });
    let load = again(&cluster, |client| {
        client
            .batch_execute(
                "create temporary table if not exists loaded (n int, filler text); \
                 insert into loaded select n, 'x' from generate_series(1, 100) n",
            )
            .unwrap();
        std::thread::sleep(Duration::from_millis(50));
    });
    let extended = again(&cluster, |client| {
        let mut transaction = client.transaction().unwrap();
        for id in 1..=5i32 {
            transaction
                .query_one("select bbalance from pgbench_branches where bid = $1", &[&id])
                .unwrap();
        }
        transaction.commit().unwrap();
        std::thread::sleep(Duration::from_millis(5));
    });
    let maintain = again(&cluster, |client| {
        client.batch_execute("vacuum analyze pgbench_tellers").unwrap();
        std::thread::sleep(Duration::from_millis(100));
    });
    let sleep = again(&cluster, |client| {
        client.simple_query("select pg_sleep(0.2)").unwrap();
    });
    let fetch = again(&cluster, |client| {
        let mut transaction = client.transaction().unwrap();
        transaction
            .batch_execute("declare c cursor for select * from pgbench_tellers order by tid")
            .unwrap();
        for _ in 0..10 {
            transaction.simple_query("fetch 5 from c").unwrap();
        }
        transaction.commit().unwrap();
        std::thread::sleep(Duration::from_millis(20));
    });
    let notify = again(&cluster, |client| {
        client.batch_execute("listen news; notify news, 'again'").unwrap();
        std::thread::sleep(Duration::from_millis(10));
    });
    let queue = again(&cluster, |client| {
        client.batch_execute("select pg_advisory_lock(1); select pg_advisory_unlock(1)").unwrap();
        std::thread::sleep(Duration::from_millis(5));
    });
    let loads: [(&str, &[&Load]); 10] = [
        ("idle", &[&idle]),
        ("one client that selects", &[&select]),
        ("clients that think", &[&thinking, &load]),
        ("short transactions", &[&extended]),
        ("vacuum", &[&maintain, &thinking]),
        ("sleeping", &[&sleep]),
        ("a cursor", &[&fetch]),
        ("notifications", &[&notify, &notify]),
        ("locks for a short time", &[&queue, &queue]),
        ("all", &[&thinking, &load, &extended, &maintain, &sleep]),
    ];
    for (name, load) in loads {
        assert_healthy(name, &examine(&cluster, 3, load));
    }
}

/// Runs a client program of the server's maker.
fn run(cluster: &Cluster, name: &str, args: &[&str]) {
    let mut command = cluster.os_user().command(&cluster.binaries().program(name), cluster.dir());
    command.args(["-U", cluster.user(), "-p", &cluster.port().to_string(), "-h"]);
    let done = command.arg(cluster.host()).args(args).current_dir(cluster.dir()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// The same again and again.
fn runs<'c>(
    cluster: &'c Cluster,
    name: &'static str,
    args: &'static [&str],
) -> impl Fn(&AtomicBool) + Sync + 'c {
    move |stop| {
        while !stop.load(Ordering::Relaxed) {
            run(cluster, name, args);
        }
    }
}

#[test]
fn monitoring_autovacuum_dumps_and_batches_are_no_problem() {
    let cluster = start(
        plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("autovacuum_naptime", "1s")
            .setting("checkpoint_timeout", "1h"),
    );
    cluster.pgbench_init(2).unwrap();
    cluster
        .psql(
            "create table t (id int primary key, v int, filler text); \
               insert into t select n, 0, repeat('x', 50) from generate_series(1, 20000) n",
        )
        .unwrap();
    cluster.psql("vacuum analyze t").unwrap();
    let dump: &[&str] = &["-d", "postgres", "-t", "t", "--clean", "-f", "dump.sql"];
    run(&cluster, "pg_dump", dump);
    // Whatever watches the server connects for each look.
    let monitor = |stop: &AtomicBool| {
        while !stop.load(Ordering::Relaxed) {
            let mut client = cluster.connect().unwrap();
            client
                .batch_execute(
                    "select count(*), max(now() - xact_start) from pg_stat_activity; \
                     select sum(n_dead_tup), sum(seq_scan) from pg_stat_user_tables; \
                     select sum(blks_hit), sum(blks_read) from pg_stat_database; \
                     select sum(pg_relation_size(oid)) from pg_class where relkind in ('r', 'i')",
                )
                .unwrap();
            drop(client);
            std::thread::sleep(Duration::from_secs(1));
        }
    };
    let churn = again(&cluster, |client| {
        client.batch_execute("update t set v = v + 1 where id <= 5000").unwrap();
        std::thread::sleep(Duration::from_millis(200));
    });
    let batch = again(&cluster, |client| {
        client.batch_execute("update t set v = v + 1").unwrap();
    });
    let whole: &[&str] = &["-d", "postgres", "-f", "/dev/null"];
    let dumps = runs(&cluster, "pg_dump", whole);
    let restore: &[&str] = &["-d", "postgres", "-q", "-1", "-f", "dump.sql"];
    let restores = runs(&cluster, "psql", restore);
    let loads: [(&str, &[&Load]); 5] = [
        ("monitoring", &[&monitor]),
        ("autovacuum", &[&churn, &monitor]),
        ("a dump", &[&dumps]),
        ("a batch by itself", &[&batch]),
        ("a restore", &[&restores]),
    ];
    for (name, load) in loads {
        assert_healthy(name, &examine(&cluster, 2, load));
    }
}

fn assert_healthy(name: &str, Examined { answer, findings }: &Examined) {
    assert_eq!(answer["diagnoses"], serde_json::json!([]), "{name}: {answer:#}");
    assert_eq!(answer["healthy"], true);
    assert_eq!(findings[0]["text"], "Healthy: nothing is wrong.", "{name}: {findings:#}");
}

#[test]
fn the_text_names_the_problem_the_evidence_and_what_to_do() {
    let cluster = start(server());
    let path = segment(&cluster);
    let text = output(tally().args(["doctor", "--for", "1"]).arg(&path));
    let (_, seconds) = text.split_once("watched for ").unwrap();
    let seconds: f64 = seconds.split(' ').next().unwrap().parse().unwrap();
    assert!((1.0..2.0).contains(&seconds), "{text}");
    assert!(text.contains("Healthy: nothing is wrong."), "{text}");
    tally().args(["level", "off"]).arg(&path).output().unwrap();
    let error = complaint(tally().args(["doctor", "--for", "1"]).arg(&path), 1);
    assert!(error.contains("nothing is measured at level off"), "{error}");
    let error = complaint(tally().args(["doctor", "--for", "never"]).arg(&path), 2);
    assert!(error.contains("--for"), "{error}");
}

#[test]
fn a_statement_whose_plan_has_changed_is_named_with_both_plans() {
    let cluster = start(server());
    cluster
        .psql(
            "create table orders (id int, customer int, filler text); \
             insert into orders select n, n % 50000, repeat('x', 100) from generate_series(1, 300000) n; \
             create index on orders (customer); analyze orders",
        )
        .unwrap();
    let read = again(&cluster, |client| {
        client.query("select * from orders where customer = 4711", &[]).unwrap();
    });
    let drop_index = |_: &AtomicBool| {
        std::thread::sleep(Duration::from_millis(1500));
        cluster.psql("drop index orders_customer_idx").unwrap();
    };
    let answer = examine(&cluster, 4, &[&read, &drop_index]);
    assert_first(
        &answer,
        "plan-change",
        &[
            "from orders where customer",
            "Before: Index Scan using orders_customer_idx on orders",
            "Now: Parallel Seq Scan on orders [filter]",
            "tally statements --id",
        ],
    );
}

#[test]
fn a_lightweight_lock_that_sessions_queue_for_is_named_with_its_remedy() {
    if !support::has_module("pg_stat_statements") {
        println!("not tested: the server has no pg_stat_statements");
        return;
    }
    let cluster =
        start(server().setting("shared_preload_libraries", "pg_stat_statements, pg_tally"));
    cluster.psql("create extension pg_stat_statements").unwrap();
    // Each is a new statement, for which the lock is needed exclusively.
    let next = AtomicU64::new(0);
    let different = |client: &mut Client| {
        let n = next.fetch_add(1, Ordering::Relaxed);
        let columns = (0..20).map(|bit| if n >> bit & 1 == 0 { "1 + 1" } else { "1 - 1" });
        client.simple_query(&format!("select {}", columns.collect::<Vec<_>>().join(", "))).unwrap();
    };
    support::while_working(&[], || {
        let mut client = cluster.connect().unwrap();
        (0..5000).for_each(|_| different(&mut client));
    });
    let writer = again(&cluster, different);
    // A monitoring that asks all the time.
    let reader = again(&cluster, |client| {
        client.simple_query("select count(*) from pg_stat_statements").unwrap();
    });
    let loads: Vec<&Load> =
        vec![&writer, &writer, &writer, &writer, &writer, &writer, &reader, &reader, &reader];
    let answer = examine(&cluster, 4, &loads);
    assert_first(
        &answer,
        "lightweight-locks",
        &["lightweight lock pg_stat_statements", "pg_stat_statements(false)"],
    );
}

/// What the doctor says with a connection to the server.
fn examine_connected(cluster: &Cluster) -> Value {
    let mut doctor = tally();
    doctor.args(["doctor", "--json", "--for", "1"]).arg(segment(cluster)).env("PGUSER", "postgres");
    serde_json::from_str(&output(&mut doctor)).unwrap()
}

/// What needs a connection is also in `tally top` and on the page of `tally serve`, and not without one.
fn in_top_and_serve(cluster: &Cluster, words: &[&str]) {
    let top = |user: &str| -> Value {
        let mut top = tally();
        top.args(["top", "--once", "--json", "--interval", "2"]).arg(segment(cluster));
        serde_json::from_str(&output(top.env("PGUSER", user))).unwrap()
    };
    assert_first_live(&top("postgres"), "vacuum-behind", words);
    assert_eq!(top("nobody")["healthy"], true);
    let serving = support::serving::Serving::as_user(cluster, "postgres");
    support::eventually("the page has it", || {
        let report = serving.get("/report.json").unwrap_or_default();
        let report: Value = serde_json::from_str(&report).unwrap_or_default();
        let text = report["findings"][0]["text"].as_str().unwrap_or_default();
        words.iter().all(|word| text.contains(word))
    });
}

fn in_a_report(cluster: &Cluster, words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    let recorder = Recorder::start(cluster, &directory, &[]);
    support::eventually("the server's answer is recorded", || {
        Recording::open(&directory, None)
            .and_then(|it| it.vacuum(Range::ALL))
            .is_ok_and(|(tables, _)| !tables.is_empty())
    });
    recorder.end(Signal::TERM);
    let report = output(tally().args(["report", "--json"]).arg(&directory));
    let report: Value = serde_json::from_str(&report).unwrap();
    let first = report["findings"][0].to_string();
    assert!(words.iter().all(|word| first.contains(word)), "{words:?}: {}", report["findings"]);
}

#[test]
fn who_keeps_vacuum_from_removing_rows_is_named() {
    let cluster = start(server());
    cluster
        .psql("create table t (id int, v int); insert into t select n, 0 from generate_series(1, 30000) n")
        .unwrap();
    let rule = |answer: &Value| answer["diagnoses"][0]["rule"].as_str().map(str::to_owned);
    assert_eq!(rule(&examine_connected(&cluster)), None);
    cluster.psql("update t set v = 1").unwrap();
    let mut examined = Value::Null;
    support::eventually("the server has counted the dead rows", || {
        examined = examine_connected(&cluster);
        rule(&examined).is_some()
    });
    assert_first_live(
        &examined,
        "vacuum-behind",
        &["Autovacuum is off", "table t of database postgres"],
    );

    // A forgotten report.
    let (mut report, pid) = session(&cluster, "report");
    report.batch_execute("begin isolation level repeatable read; select count(*) from t").unwrap();
    cluster.psql("update t set v = 2").unwrap();
    cluster.psql("vacuum t").unwrap();
    let of_session =
        format!("session {pid} (application report, user postgres, database postgres)");
    let words =
        ["Vacuum could not remove", "dead rows in table t", &of_session, "idle in transaction"];
    support::eventually("the server has counted what vacuum left", || {
        examined = examine_connected(&cluster);
        examined["diagnoses"][0]["text"].as_str().is_some_and(|it| it.starts_with(words[0]))
    });
    assert_first_live(&examined, "vacuum-behind", &words);
    in_top_and_serve(&cluster, &words);
    in_a_report(&cluster, &words);

    report.batch_execute("commit").unwrap();
    cluster.psql("vacuum t").unwrap();
    support::eventually("nothing is wrong any more", || {
        examined = examine_connected(&cluster);
        examined["healthy"] == true
    });
}
