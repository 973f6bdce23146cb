// SPDX-License-Identifier: PostgreSQL
//! `tally blocking` and tally.blocking: the root of a crowd of waiting sessions, by name, with what it did; and
//! nothing about waits that have ended.

use crate::support;
use std::io::BufReader;
use std::time::{Duration, Instant};

use crate::support::row_lock::{server, session, UPDATE};
use crate::support::{create_views, eventually, output, segment, start, tally};
use live::follower::{FollowOptions, Follower};
use postgres::NoTls;
use scratch::Cluster;
use segment::{EventKind, Segment, ToSegmentPath};
use serde_json::Value;

const WAITERS: usize = 8;

fn blocking(cluster: &Cluster) -> Value {
    let mut command = tally();
    // With this, it queries the server for names even if the tests run as root.
    command.env("PGUSER", cluster.user());
    serde_json::from_str(&output(command.args(["blocking", "--json"]).arg(segment(cluster))))
        .unwrap()
}

fn text(cluster: &Cluster) -> String {
    let mut command = tally();
    command.env("PGUSER", cluster.user());
    output(command.arg("blocking").arg(segment(cluster)))
}

fn blocked(cluster: &Cluster) -> u64 {
    blocking(cluster)["blocked"].as_u64().unwrap()
}

/// A session that waits for the row; it ends after the wait.
fn waiter(
    cluster: &Cluster,
    sql: &'static str,
) -> (i32, std::thread::JoinHandle<Result<(), postgres::Error>>) {
    let (mut client, pid) = session(cluster, "waiter");
    (pid, std::thread::spawn(move || client.batch_execute(sql)))
}

/// The texts of the events about blocking, with the PID of the reporter and the time in seconds from some
/// instant.
fn blocked_events(cluster: &Cluster) -> Vec<(i32, String, f64)> {
    let segment = Segment::open(&segment(cluster)).unwrap();
    let events = segment.events(0).unwrap().into_iter();
    let blocked = events.filter(|event| event.kind == EventKind::Blocked);
    blocked.map(|event| (event.pid, event.text, segment.clock().seconds(event.tick))).collect()
}

/// At the end of the time, nobody is blocked.
#[test]
fn a_session_that_blocked_others_within_the_time_of_a_diagnosis_is_known() {
    let cluster = server();
    let (mut root, root_pid) = session(&cluster, "forgetful");
    let mut follower =
        Follower::open(segment(&cluster).to_segment_path(), FollowOptions::of_diagnoses()).unwrap();
    assert_eq!(follower.interval().unwrap().blocker, None);
    root.batch_execute("begin; update orders set v = 7 where id = 1").unwrap();
    let (_, waits) = waiter(&cluster, UPDATE);
    eventually("it is blocked", || blocked(&cluster) == 1);
    follower.look();
    root.batch_execute("commit").unwrap();
    waits.join().unwrap().unwrap();
    let reading = follower.interval().unwrap();
    assert_eq!(reading.blocking.unwrap().blocked, 0);
    let blocker = reading.blocker.expect("a session blocked another one");
    assert_eq!((blocker.root.pid, blocker.waiters), (root_pid, 1));
    assert!(blocker.time < reading.interval.time);
    assert_eq!(follower.interval().unwrap().blocker, None, "what was before the interval is past");
}

#[test]
fn events_name_the_root_when_it_begins_while_it_lasts_and_when_it_ends() {
    let cluster = server();
    let (mut root, root_pid) = session(&cluster, "forgetful");
    root.batch_execute("begin; update orders set v = 7 where id = 1; select pg_advisory_lock(1)")
        .unwrap();
    let (first, waits) = waiter(&cluster, UPDATE);
    eventually("one is blocked", || blocked(&cluster) == 1);
    let others = [UPDATE, "select pg_advisory_lock_shared(1)"].map(|sql| waiter(&cluster, sql));
    eventually("all are blocked", || blocked(&cluster) == 3);

    let root_is = format!("session {root_pid} (forgetful, postgres@postgres)");
    let begin = |count| format!("{count} for {root_is}, idle in transaction for ");
    eventually("it is reported twice", || blocked_events(&cluster).len() >= 2);
    let events = blocked_events(&cluster);
    assert!(events.iter().all(|(pid, ..)| *pid == first), "only the first one reports: {events:?}");
    let again = &events[1].1;
    assert!(again.starts_with(&begin("3 sessions wait")), "{events:?}");
    assert!(
        again.contains(" s, for transaction ") && again.ends_with(" (ShareLock)"),
        "{events:?}"
    );
    let apart = events[1].2 - events[0].2;
    assert!(apart >= 9.9, "reports are {apart} s apart: {events:?}");

    cluster.psql(&format!("select pg_cancel_backend({first})")).unwrap();
    assert!(waits.join().unwrap().is_err());
    eventually("its end is reported", || {
        let end = format!("no longer waits for {root_is}; waited ");
        blocked_events(&cluster)
            .iter()
            .any(|(pid, text, _)| *pid == first && text.starts_with(&end))
    });
    root.batch_execute("rollback; select pg_advisory_unlock(1)").unwrap();
    for (_, waiting) in others {
        waiting.join().unwrap().unwrap();
    }
}

#[test]
fn without_a_threshold_nobody_reports() {
    let cluster = server();
    cluster.append_config("pg_tally.block_threshold = -1\n").unwrap();
    cluster.reload().unwrap();
    eventually("the setting holds", || {
        cluster.psql("show pg_tally.block_threshold").unwrap().trim() == "-1"
    });
    let (mut root, _) = session(&cluster, "forgetful");
    root.batch_execute("begin; update orders set v = 7 where id = 1").unwrap();
    let (_, waits) = waiter(&cluster, UPDATE);
    eventually("it has waited for longer than a report takes", || {
        let json = blocking(&cluster);
        let wait = &json["roots"][0]["blocks"][0]["wait"];
        wait["seconds"].as_f64().is_some_and(|seconds| seconds > 2.5)
    });
    root.batch_execute("rollback").unwrap();
    waits.join().unwrap().unwrap();
    assert!(blocked_events(&cluster).is_empty(), "{:?}", blocked_events(&cluster));
}

/// JDBC and most drivers use the extended protocol, whose messages between two statements are not statements
/// themselves. The witness is the server's pg_stat_activity.
#[test]
fn the_last_statement_of_a_client_of_the_extended_protocol_is_known() {
    let cluster = server();
    create_views(&cluster);
    let (mut root, root_pid) = session(&cluster, "driver");
    let mut client = cluster.connect().unwrap();
    let mut last = || {
        // For us, a message ends when the server waits for the next one: after the client has received its
        // response.
        eventually("the session waits for its client", || {
            let waits = "select wait_event = 'ClientRead' from pg_stat_activity where pid = $1";
            let row = client.query_one(waits, &[&root_pid]).unwrap();
            row.get::<_, Option<bool>>(0) == Some(true)
        });
        let row = client.query_one(
            "select query, (select query from tally.last_statement($1)) from pg_stat_activity where pid = $1",
            &[&root_pid],
        );
        let row = row.unwrap();
        (row.get::<_, String>(0), row.get::<_, Option<String>>(1))
    };
    root.batch_execute("begin").unwrap();
    root.execute("update orders set v = $1 where id = $2", &[&7, &1]).unwrap();
    let (theirs, ours) = last();
    assert_eq!(theirs, "update orders set v = $1 where id = $2");
    assert_eq!(ours.as_deref(), Some(&theirs[..]));

    let (_, waiting) = waiter(&cluster, UPDATE);
    eventually("one is blocked", || blocked(&cluster) == 1);
    let json = blocking(&cluster);
    assert_eq!(json["roots"][0]["query"], "update orders set v = $1 where id = $2", "{json:#}");

    let insert = root.prepare("insert into orders values ($1, $2)").unwrap();
    let select = root.prepare("select v from orders where id = $1").unwrap();
    for (statement, text) in [
        (&insert, "insert into orders values ($1, $2)"),
        (&select, "select v from orders where id = $1"),
    ] {
        match text.starts_with("insert") {
            true => root.execute(statement, &[&100, &1]).map(|_| ()).unwrap(),
            false => root.query(statement, &[&100]).map(|_| ()).unwrap(),
        }
        assert_eq!(last(), (text.to_owned(), Some(text.to_owned())));
    }
    // A message without a name replaces the previous one.
    root.batch_execute(";").unwrap();
    assert_eq!(last(), (";".to_owned(), None));
    root.batch_execute("commit").unwrap();
    waiting.join().unwrap().unwrap();
}

#[test]
fn the_root_of_a_crowd_is_named_with_what_it_did() {
    let cluster = server();
    create_views(&cluster);
    assert_eq!(text(&cluster), "No session is blocked.\n");
    let empty = blocking(&cluster);
    assert_eq!(
        (&empty["blocked"], &empty["roots"]),
        (&0.into(), &Value::Array(vec![])),
        "{empty:#}"
    );

    let (mut root, root_pid) = session(&cluster, "forgetful");
    root.batch_execute("begin").unwrap();
    root.batch_execute("update orders set v = 7 where id = 1").unwrap();
    let waiters: Vec<_> = (0..WAITERS).map(|_| waiter(&cluster, UPDATE)).collect();
    eventually("all are blocked", || blocked(&cluster) == WAITERS as u64);

    let json = blocking(&cluster);
    let first = &json["roots"][0];
    assert_eq!(json["roots"].as_array().unwrap().len(), 1, "{json:#}");
    assert_eq!(first["pid"], root_pid, "{json:#}");
    assert_eq!(first["waiters"], WAITERS, "{json:#}");
    assert_eq!(
        (&first["application"], &first["state"]),
        (&"forgetful".into(), &"idle in transaction".into())
    );
    assert!(
        first["query"].as_str().unwrap().contains("update orders set v = $1 where id = $2"),
        "{json:#}"
    );
    assert!(first["since_seconds"].as_f64().unwrap() > 0.0 && first["wait"].is_null(), "{json:#}");
    // The first waiter has the row's lock and waits for the transaction; the others wait for the row.
    let direct = &first["blocks"][0];
    assert_eq!(
        (&direct["wait"]["lock_type"], &direct["wait"]["mode"]),
        (&"transactionid".into(), &"ShareLock".into())
    );
    let behind = &direct["blocks"][0]["wait"];
    assert_eq!(
        (&behind["lock"], &behind["mode"]),
        (&"row (0,1) of relation orders".into(), &"ExclusiveLock".into()),
        "{json:#}"
    );
    assert!(direct["query"].as_str().unwrap().contains("v + $1"), "{json:#}");

    let shown = text(&cluster);
    let line = format!("8 sessions wait for session {root_pid} (forgetful, postgres@postgres), idle in transaction for ");
    assert!(shown.starts_with(&line), "{shown}");
    let origin = shown.lines().nth(1).unwrap();
    assert!(origin.starts_with("  client local, transaction open for "), "{shown}");
    assert!(shown.lines().nth(2).unwrap().contains("last: update orders set v = $1"), "{shown}");

    let mut watch = std::process::Command::new(env!("CARGO_BIN_EXE_tally"))
        .args(["blocking", "--watch", "--json"])
        .arg(segment(&cluster))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap());
    for _ in 0..2 {
        let seen: Value = serde_json::from_str(&support::line_of(&mut lines)).unwrap();
        assert_eq!(
            (&seen["blocked"], &seen["roots"][0]["pid"]),
            (&WAITERS.into(), &root_pid.into())
        );
    }
    watch.kill().unwrap();
    watch.wait().unwrap();

    let mut client = cluster.connect().unwrap();
    let rows = client.query("select pid, blockers, root_pid, root_waiters, root_phase, root_query, lock, wait_seconds, \
                             pg_blocking_pids(pid) from tally.blocking order by wait_seconds desc", &[]).unwrap();
    assert_eq!(rows.len(), WAITERS);
    for row in &rows {
        let (ours, theirs): (Vec<i32>, Vec<i32>) =
            (row.get("blockers"), row.get("pg_blocking_pids"));
        assert!(
            ours.iter().all(|pid| theirs.contains(pid)) && ours.len() == theirs.len().min(5),
            "{ours:?} {theirs:?}"
        );
        assert_eq!(
            (row.get::<_, i32>("root_pid"), row.get::<_, i64>("root_waiters")),
            (root_pid, WAITERS as i64)
        );
        assert_eq!(row.get::<_, &str>("root_phase"), "idle in transaction");
        assert!(row.get::<_, &str>("root_query").starts_with("update orders set v = $1"));
        assert!(row.get::<_, f64>("wait_seconds") > 0.1);
    }
    assert!(rows.iter().any(|row| row.get::<_, &str>("lock") == "row (0,1) of relation orders"));
    // Others see that some session waits, and nothing else.
    client.batch_execute("create role poor login").unwrap();
    let mut config = cluster.config();
    let mut poor = config.user("poor").connect(NoTls).unwrap();
    let sql = "select count(*), count(application_name) + count(query) + count(root_query) \
               + count(root_application_name) + count(root_phase) + count(client_address) + count(transaction_seconds) \
               + count(root_client_address) + count(root_transaction_seconds) from tally.blocking";
    let row = poor.query_one(sql, &[]).unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (WAITERS as i64, 0));

    root.batch_execute("commit").unwrap();
    for (_, thread) in waiters {
        thread.join().unwrap().unwrap();
    }
    assert_eq!(text(&cluster).lines().next(), Some("No session is blocked."));
    assert_eq!(
        client.query_one("select count(*) from tally.blocking", &[]).unwrap().get::<_, i64>(0),
        0
    );
}

/// A relation is locked in parse analysis, before the statement's ID is computed; those of a prepared statement
/// are locked in Bind.
#[test]
fn a_waiter_whose_statement_is_not_known_yet_is_shown_with_its_own_text_never_with_the_one_before()
{
    const SIMPLE: &str = "select count(*) from t where a = $1";
    const EXTENDED: &str = "select a from t where a <> $1 and a <> $2";
    const SEVERAL: &str =
        "select count(*) from t; alter role poor password $1 /* ... */; set app.password = $2";
    let cluster = server();
    create_views(&cluster);
    cluster
        .psql("create table t (a text); create table u (a text); create role poor login")
        .unwrap();
    let (mut holder, holder_pid) = session(&cluster, "ddl");
    let (mut simple, simple_pid) = session(&cluster, "simple");
    let (mut extended, extended_pid) = session(&cluster, "extended");
    let (mut several, several_pid) = session(&cluster, "several");
    simple.batch_execute("update u set a = 'before'").unwrap();
    let prepared = extended.prepare("select a from t where a <> $1 and a <> 'secret'").unwrap();
    extended.batch_execute("update u set a = 'before'").unwrap();
    holder.batch_execute("begin; alter table t add b int").unwrap();
    let mut threads = Vec::new();
    threads.push(std::thread::spawn(move || {
        // A comment in tally's statements, which is not kept in other statements.
        simple.batch_execute("/* tally */ select count(*) from t where a = 'secret'").unwrap();
    }));
    threads.push(std::thread::spawn(move || {
        extended.query(&prepared, &[&"secret"]).unwrap();
    }));
    threads.push(std::thread::spawn(move || {
        let message = "select count(*) from t; alter role poor password 'secret' /* secret */; \
                       set app.password = secret";
        several.batch_execute(message).unwrap();
    }));
    let mut shown = Value::Null;
    eventually("all wait, and say for what", || {
        shown = blocking(&cluster);
        let behind = shown["roots"][0]["blocks"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value["query"].as_str().unwrap_or_default().to_string();
        for session in &behind {
            assert!(!text(session).starts_with("update"), "{session:#}");
        }
        behind.iter().filter(|session| !text(session).is_empty()).count() == 3
    });
    assert_eq!(shown["roots"][0]["pid"], holder_pid);
    assert!(!shown.to_string().contains("secret"), "{shown:#}");
    let of = |pid: i32| {
        let behind = shown["roots"][0]["blocks"].as_array().unwrap();
        behind.iter().find(|session| session["pid"] == pid).unwrap().clone()
    };
    let waiters = [(simple_pid, SIMPLE), (extended_pid, EXTENDED), (several_pid, SEVERAL)];
    for (pid, text) in waiters {
        let one = of(pid);
        assert_eq!((&one["queryid"], &one["query"]), (&Value::Null, &text.into()));
        assert!(one["statement_seconds"].as_f64().unwrap() > 0.0, "{one:#}");
    }

    let mut admin = cluster.connect().unwrap();
    for view in ["tally.blocking", "tally.sessions"] {
        for (pid, text) in waiters {
            let sql = format!("select queryid, query from {view} where pid = {pid}");
            let row = admin.query_one(&sql, &[]).unwrap();
            let found: (Option<i64>, Option<&str>) = (row.get(0), row.get(1));
            assert_eq!(found, (None, Some(text)), "{view}");
        }
    }
    let mut poor = cluster.config().user("poor").connect(NoTls).unwrap();
    let sql = "select (select count(query) from tally.blocking) + (select count(query) from tally.sessions \
               where application_name in ('simple', 'extended', 'several'))";
    assert_eq!(poor.query_one(sql, &[]).unwrap().get::<_, i64>(0), 0);

    // Their time is in rows of their own.
    let mut segment = Segment::open(&segment(&cluster)).unwrap();
    let reading = std::sync::Arc::new(segment.statements().unwrap().unwrap());
    let all = view::statements::StatementsTable::between(None, &reading);
    for (_, text) in waiters {
        let row = all.rows.iter().find(|row| row.query.as_deref() == Some(text)).unwrap();
        assert_eq!((row.queryid, row.running, row.calls), (None, 1, 0), "{text}");
        assert!(row.seconds > 0.0 && row.share > 0.0, "{text}: {}", row.seconds);
    }

    holder.batch_execute("commit").unwrap();
    for thread in threads {
        thread.join().unwrap();
    }
    let last = "select queryid is not null, query from tally.last_statement($1)";
    let row = admin.query_one("select pg_backend_pid()", &[]).unwrap();
    let row = admin.query_one(last, &[&row.get::<_, i32>(0)]).unwrap();
    assert!(row.get::<_, bool>(0), "its own statement is known");
}

/// Its activity at this instant says nothing about how long it keeps others waiting.
#[test]
fn a_root_at_work_has_the_age_of_its_statement() {
    let cluster = server();
    create_views(&cluster);
    let (mut root, root_pid) = session(&cluster, "worker");
    root.batch_execute("begin; update orders set v = 7 where id = 1").unwrap();
    let busy = std::thread::spawn(move || {
        // Each sleep is an account of its own.
        let _ = root.batch_execute("do $$ begin loop perform pg_sleep(0.01); end loop; end $$");
    });
    let (_, waits) = waiter(&cluster, UPDATE);
    let mut seen: Option<(Instant, f64)> = None;
    let mut shown = Value::Null;
    eventually("the root has worked for a second since it was seen", || {
        let waited = seen.map_or(0.0, |(since, _)| since.elapsed().as_secs_f64());
        shown = blocking(&cluster)["roots"][0].clone();
        let seconds = shown["statement_seconds"].as_f64()?;
        let (_, first) = *seen.get_or_insert((Instant::now(), seconds));
        assert!(seconds + 1e-6 >= first + waited, "{waited} s later, {first} s before: {shown:#}");
        (waited > 1.0).then_some(())
    });
    assert_eq!((&shown["pid"], &shown["state"]), (&root_pid.into(), &"active".into()), "{shown:#}");
    assert!(text(&cluster).lines().next().unwrap().contains(", active for "), "{}", text(&cluster));
    let mut admin = cluster.connect().unwrap();
    let sql = "select root_statement_seconds from tally.blocking";
    assert!(admin.query_one(sql, &[]).unwrap().get::<_, f64>(0) >= 1.0);
    admin.execute("select pg_cancel_backend($1)", &[&root_pid]).unwrap();
    busy.join().unwrap();
    waits.join().unwrap().unwrap();
}

#[test]
fn a_session_has_the_age_of_its_transaction_not_of_its_last_statement() {
    let cluster = server();
    create_views(&cluster);
    let (mut root, pid) = session(&cluster, "forgetful");
    let mut client = cluster.connect().unwrap();
    let mut age = || {
        let sql =
            "select transaction_seconds, phase, client_address from tally.sessions where pid = $1";
        let row = client.query_one(sql, &[&pid]).unwrap();
        assert_eq!(row.get::<_, &str>(2), "local");
        (row.get::<_, Option<f64>>(0), row.get::<_, String>(1))
    };
    let none = (None, "idle".to_string());
    eventually("it is idle", || age() == none);
    // Two transactions, so that the first one's beginning is not the second one's.
    for _ in 0..2 {
        let begins = Instant::now();
        root.batch_execute("begin; select 1").unwrap();
        let began = Instant::now();
        std::thread::sleep(Duration::from_millis(100));
        root.query("select 1", &[]).unwrap();
        eventually("it has answered", || age().1 == "idle in transaction");
        let min = began.elapsed().as_secs_f64();
        let ours = age().0.unwrap();
        let max = begins.elapsed().as_secs_f64();
        assert!(min <= ours && ours <= max, "{ours} s, not {min} to {max}");
        root.batch_execute("commit").unwrap();
        eventually("it is idle again", || age() == none);
    }
}

#[test]
fn a_session_over_the_network_has_its_address() {
    let loaded = support::plain().setting("shared_preload_libraries", "pg_tally");
    let (cluster, port) = support::on_loopback(loaded);
    create_views(&cluster);
    cluster
        .psql("create table orders (id int primary key, v int); insert into orders values (1, 0)")
        .unwrap();
    let connect = |application: &str| {
        let mut config = postgres::Config::new();
        config.host("127.0.0.1").port(port).user("postgres").application_name(application);
        config.password(scratch::password());
        config.connect(NoTls).unwrap()
    };
    let mut root = connect("far");
    root.batch_execute("begin; update orders set v = 1").unwrap();
    let mut waiting = connect("far too");
    let waiting = std::thread::spawn(move || waiting.batch_execute(UPDATE));
    eventually("one is blocked", || blocked(&cluster) == 1);
    let json = blocking(&cluster);
    let first = &json["roots"][0];
    assert_eq!(first["client_address"], "127.0.0.1", "{json:#}");
    assert_eq!(first["blocks"][0]["client_address"], "127.0.0.1", "{json:#}");
    assert!(first["transaction_seconds"].as_f64().unwrap() > 0.0, "{json:#}");
    let sql = "select client_address || ' ' || root_client_address || ' ' || (root_transaction_seconds >= wait_seconds) \
               from tally.blocking";
    assert_eq!(cluster.psql(sql).unwrap().trim(), "127.0.0.1 127.0.0.1 true");
    root.batch_execute("rollback").unwrap();
    waiting.join().unwrap().unwrap();
}

#[test]
fn a_wait_that_ends_by_an_error_is_no_longer_shown() {
    let cluster = server();
    let (mut root, _) = session(&cluster, "root");
    root.batch_execute("begin; lock table orders in access exclusive mode").unwrap();
    let (mut client, pid) = session(&cluster, "waiter");
    let mut admin = cluster.connect().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| client.batch_execute("begin; select * from orders"));
        eventually("it is blocked", || blocked(&cluster) == 1);
        let json = blocking(&cluster);
        let wait = &json["roots"][0]["blocks"][0]["wait"];
        assert_eq!(
            (&wait["lock"], &wait["mode"]),
            (&"relation orders".into(), &"AccessShareLock".into()),
            "{json:#}"
        );
        admin.execute("select pg_cancel_backend($1)", &[&pid]).unwrap();
        assert!(waiting.join().unwrap().is_err());
    });
    let since = |segment: &Segment| segment.blocked().unwrap().len();
    let segment = Segment::open(&segment(&cluster)).unwrap();
    assert_eq!(since(&segment), 0, "nothing is left in the slot");
    assert_eq!(blocked(&cluster), 0);
    // It waits again and is killed, so the server restarts.
    let waiting =
        std::thread::spawn(move || client.batch_execute("rollback; select * from orders"));
    eventually("it is blocked again", || blocked(&cluster) == 1);
    cluster.kill9(pid as u32).unwrap();
    assert!(waiting.join().unwrap().is_err());
    eventually("the server is back", || cluster.connect().is_ok());
    assert_eq!(text(&cluster).lines().next(), Some("No session is blocked."));
}

#[test]
fn a_wait_that_looks_up_its_blocker_is_not_counted_otherwise() {
    let cluster = server();
    create_views(&cluster);
    let sql = "select coalesce(sum(count), 0)::bigint, coalesce(sum(seconds), 0) from tally.waits \
               where wait_event = 'advisory'";
    let mut client = cluster.connect().unwrap();
    let (mut root, _) = session(&cluster, "root");
    root.batch_execute("select pg_advisory_lock(1)").unwrap();
    let asked = Instant::now();
    let (_, thread) = waiter(&cluster, "select pg_advisory_lock(1)");
    // It looks up who blocks it after 100 ms, and then each second.
    eventually("it is blocked", || blocked(&cluster) == 1);
    let waits = Instant::now();
    std::thread::sleep(Duration::from_millis(2100));
    let min = waits.elapsed().as_secs_f64();
    root.batch_execute("select pg_advisory_unlock(1)").unwrap();
    thread.join().unwrap().unwrap();
    let max = asked.elapsed().as_secs_f64();
    let mut found = (0, 0.0);
    // Its last wait is recorded when it ends.
    eventually("the wait is recorded", || {
        let row = client.query_one(sql, &[]).unwrap();
        found = (row.get::<_, i64>(0), row.get::<_, f64>(1));
        found.0 > 0
    });
    // The server may sleep once more, if its latch was set before.
    assert!((1..=2).contains(&found.0), "{found:?}");
    assert!(min <= found.1 && found.1 <= max, "{found:?}, not {min} to {max} s");
}

#[test]
fn a_deadlock_and_a_prepared_transaction_are_named() {
    let cluster = start(
        support::plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("max_prepared_transactions", "5")
            .setting("deadlock_timeout", "10min"),
    );
    let (mut one, one_pid) = session(&cluster, "one");
    let (mut two, two_pid) = session(&cluster, "two");
    one.batch_execute("begin; select pg_advisory_xact_lock(1, 1)").unwrap();
    two.batch_execute("begin; select pg_advisory_xact_lock(1, 2)").unwrap();
    let mut admin = cluster.connect().unwrap();
    admin.batch_execute("create table t (v int)").unwrap();
    admin.batch_execute("begin; lock table t; prepare transaction 'forgotten'").unwrap();
    // The sessions' threads are not joined if a check fails: their waits would not end.
    let _one = std::thread::spawn(move || one.batch_execute("select pg_advisory_xact_lock(1, 2)"));
    let _two = std::thread::spawn(move || two.batch_execute("select pg_advisory_xact_lock(1, 1)"));
    let (_, third) = waiter(&cluster, "select * from t");
    eventually("all are blocked", || blocked(&cluster) == 3);
    let json = blocking(&cluster);
    let mut pids = vec![one_pid, two_pid];
    pids.sort_unstable();
    assert_eq!(json["deadlocks"][0]["pids"], serde_json::json!(pids), "{json:#}");
    assert_eq!(json["roots"].as_array().unwrap().len(), 2, "{json:#}");
    let shown = text(&cluster);
    assert!(shown.contains("Deadlock: ") && shown.contains("wait for each other"), "{shown}");
    assert!(shown.contains("1 session waits for a prepared transaction"), "{shown}");
    admin.batch_execute("rollback prepared 'forgotten'").unwrap();
    admin.execute("select pg_cancel_backend($1)", &[&one_pid]).unwrap();
    third.join().unwrap().unwrap();
    eventually("all waits have ended", || blocked(&cluster) == 0);
    assert_eq!(text(&cluster).lines().next(), Some("No session is blocked."));
}
