// SPDX-License-Identifier: PostgreSQL
//! `tally top` names the session that others wait for.

mod support;

use std::thread::JoinHandle;

use postgres::{Client, NoTls};
use scratch::Cluster;
use serde_json::Value;
use support::{eventually, output, segment, start, tally};

fn server() -> Cluster {
    let cluster = start(
        support::plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("autovacuum", "off")
            .setting("deadlock_timeout", "10min"),
    );
    cluster
        .psql("create table orders (id int primary key, v int); insert into orders values (1, 0)")
        .unwrap();
    cluster
}

fn session(cluster: &Cluster, application: &str) -> (Client, i32) {
    let mut config = cluster.config();
    let mut client = config.application_name(application).connect(NoTls).unwrap();
    let pid = client.query_one("select pg_backend_pid()", &[]).unwrap().get(0);
    (client, pid)
}

const UPDATE: &str = "update orders set v = v + 1 where id = 1";

/// A session that waits for the row; it ends with the wait.
fn waiter(cluster: &Cluster) -> (i32, JoinHandle<Result<(), postgres::Error>>) {
    let (mut client, pid) = session(cluster, "waiter");
    (pid, std::thread::spawn(move || client.batch_execute(UPDATE)))
}

/// A session that has changed the row and does nothing.
fn forgetful(cluster: &Cluster) -> (Client, i32) {
    let (mut client, pid) = session(cluster, "forgetful");
    client.batch_execute("begin").unwrap();
    client.batch_execute("update orders set v = 7 where id = 1").unwrap();
    (client, pid)
}

fn json(cluster: &Cluster, seconds: &str) -> Value {
    let args = ["top", "--once", "--json", "--interval", seconds];
    let text = output(tally().env("PGUSER", cluster.user()).args(args).arg(segment(cluster)));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_diagnoses_name_the_session_that_others_wait_for() {
    let cluster = server();
    let healthy = json(&cluster, "1");
    assert_eq!(
        (&healthy["healthy"], &healthy["diagnoses"]),
        (&true.into(), &serde_json::json!([]))
    );
    assert_eq!(healthy["uncovered_processes"], 0);

    let (mut root, pid) = forgetful(&cluster);
    let waiters: Vec<_> = (0..3).map(|_| waiter(&cluster)).collect();
    eventually("all are blocked", || json(&cluster, "0.2")["blocking"]["blocked"] == 3);
    let seen = json(&cluster, "1");
    let first = &seen["diagnoses"][0];
    assert_eq!((&seen["healthy"], &first["rule"]), (&false.into(), &"locks".into()), "{seen:#}");
    let sentence =
        format!("3 sessions wait for session {pid} (forgetful, postgres@postgres), idle");
    assert!(first["text"].as_str().unwrap().starts_with(&sentence), "{first:#}");
    assert!(first["evidence"].to_string().contains("update orders set v = $1"), "{first:#}");
    let length = seen["diagnosed_seconds"].as_f64().unwrap();
    assert!((length - seen["interval_seconds"].as_f64().unwrap()).abs() < 0.01, "{length}");
    root.batch_execute("rollback").unwrap();
    for (_, thread) in waiters {
        thread.join().unwrap().unwrap();
    }
}

#[test]
fn the_text_begins_with_who_waits_for_whom_and_has_the_tree_at_level_waits() {
    let cluster = server();
    let (mut root, pid) = forgetful(&cluster);
    let waiters: Vec<_> = (0..2).map(|_| waiter(&cluster)).collect();
    let args = ["top", "--once", "--interval", "0.1", "--view", "locks"];
    let mut text = String::new();
    eventually("a wait of a second", || {
        let mut top = tally();
        text = output(top.env("PGUSER", cluster.user()).args(args).arg(segment(&cluster)));
        text.starts_with('!')
    });
    let line = format!(
        "! 2 sessions wait for session {pid} (forgetful, postgres@postgres), idle in transaction for "
    );
    assert!(text.starts_with(&line) && text.contains("; longest 1."), "{text}");
    let tree = &text[text.find("Blocked sessions").unwrap()..];
    let lines: Vec<&str> = tree.lines().skip(2).take(3).collect();
    assert!(lines[0].starts_with(&format!("{pid} forgetful")), "{tree}");
    assert!(lines[1].starts_with("  ") && lines[1].contains("transaction "), "{tree}");
    assert!(
        lines[2].starts_with("    ") && lines[2].contains("row (0,1) of relation orders"),
        "{tree}"
    );
    assert!(tree.contains("Lock statistics need level locks"), "{tree}");
    root.batch_execute("rollback").unwrap();
    for (_, thread) in waiters {
        thread.join().unwrap().unwrap();
    }
}

#[test]
fn what_has_ended_is_diagnosed_as_long_as_it_is_within_the_last_seconds() {
    let cluster = server();
    let (mut root, _) = forgetful(&cluster);
    let waiters: Vec<_> = (0..3).map(|_| waiter(&cluster)).collect();
    eventually("all are blocked", || json(&cluster, "0.2")["blocking"]["blocked"] == 3);
    let path = segment(&cluster);
    let seen = std::thread::scope(|scope| {
        let args = ["top", "--json", "--count", "15", "--interval", "1"];
        let top = scope.spawn(move || output(tally().args(args).arg(path)));
        std::thread::sleep(std::time::Duration::from_millis(2500));
        root.batch_execute("rollback").unwrap();
        top.join().unwrap()
    });
    let seen: Vec<Value> = seen.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let wrong = |it: &Value| it["diagnoses"][0]["rule"] == "locks";
    assert!(seen[..6].iter().all(wrong), "{:#?}", seen[5]);
    assert_eq!(seen[5]["blocking"]["blocked"], 0);
    assert!(!wrong(&seen[14]), "{:#}", seen[14]["diagnoses"]);
    let lengths: Vec<f64> =
        seen.iter().map(|it| it["diagnosed_seconds"].as_f64().unwrap()).collect();
    assert!((0.5..1.5).contains(&lengths[0]) && lengths[5] > 5.0, "{lengths:?}");
    assert!(lengths[11..].iter().all(|it| (9.9..13.5).contains(it)), "{lengths:?}");
    for (_, thread) in waiters {
        thread.join().unwrap().unwrap();
    }
}
