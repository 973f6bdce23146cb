// SPDX-License-Identifier: PostgreSQL
//! Problems that no wait shows, planted on real servers: `tally doctor` names the object first, and its advice, executed as
//! printed, ends the problem.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Barrier;

use crate::doctor_planted::server;
use crate::support::{self, eventually, output, segment, start, tally};
use scratch::Cluster;
use serde_json::Value;

/// What the doctor says, with a connection to the server.
fn examine(cluster: &Cluster) -> Value {
    let mut doctor = tally();
    doctor.args(["doctor", "--json", "--for", "2"]).arg(segment(cluster)).env("PGUSER", "postgres");
    serde_json::from_str(&output(&mut doctor)).unwrap()
}

/// The first diagnosis is of this rule; its sentences contain these words.
fn assert_first(answer: &Value, rule: &str, words: &[&str]) {
    let first = &answer["diagnoses"][0];
    assert_eq!(first["rule"], rule, "{answer:#}");
    for word in words {
        assert!(first.to_string().contains(word), "{word}: {answer:#}");
    }
}

/// Executes those statements of the advice that begin with these words, one at a time, as a person would copy them.
fn follow(cluster: &Cluster, answer: &Value, statements: &[&str]) {
    let advice = answer["diagnoses"][0]["advice"].as_str().unwrap();
    for begin in statements {
        let at = advice.find(begin).unwrap_or_else(|| panic!("{begin}: {advice}"));
        let ends = ["; ", " (", ". ", ", "];
        let rest = &advice[at..];
        let end = ends.iter().filter_map(|end| rest.find(end)).min();
        let statement = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
        cluster.psql(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

/// Checks that the problem has ended.
fn assert_ended(cluster: &Cluster, rule: &str) {
    let mut answer = Value::Null;
    eventually("the problem has ended", || {
        answer = examine(cluster);
        answer["diagnoses"].as_array().unwrap().iter().all(|diagnosis| diagnosis["rule"] != rule)
    });
}

#[test]
fn a_slot_that_nobody_uses() {
    let cluster = start(server());
    assert_eq!(examine(&cluster)["healthy"], true);
    cluster.psql("select pg_create_physical_replication_slot('forgotten', true)").unwrap();
    cluster.psql("create table t (n int)").unwrap();
    for _ in 0..3 {
        cluster.psql("insert into t values (1)").unwrap();
        cluster.psql("select pg_switch_wal()").unwrap();
    }
    let answer = examine(&cluster);
    let words = [
        "Replication slot forgotten (physical, inactive)",
        "of WAL",
        "free on the device of the WAL",
    ];
    assert_first(&answer, "replication-slot", &words);
    follow(&cluster, &answer, &["SELECT pg_drop_replication_slot"]);
    assert_ended(&cluster, "replication-slot");
}

#[test]
fn a_prepared_transaction_that_others_wait_for() {
    let cluster = start(server().setting("max_prepared_transactions", "5"));
    cluster.psql("create table t (n int); insert into t values (0)").unwrap();
    cluster.psql("begin; update t set n = 1; prepare transaction 'xa-left-4711'").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| cluster.psql("update t set n = 2").unwrap());
        let mut answer = Value::Null;
        eventually("the session knows for whom it waits", || {
            answer = examine(&cluster);
            answer["diagnoses"][0]["rule"] == "locks"
        });
        let words =
            ["1 session waits for a prepared transaction", "xa-left-4711", "in database postgres"];
        assert_first(&answer, "locks", &words);
        follow(&cluster, &answer, &["ROLLBACK PREPARED"]);
    });
    assert_ended(&cluster, "locks");
}

/// Lets the commits complete if the test panics, because the scope waits for their threads.
struct Release<'c>(&'c Cluster);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.psql("ALTER SYSTEM RESET synchronous_standby_names");
            let _ = self.0.psql("SELECT pg_reload_conf()");
        }
    }
}

#[test]
fn a_standby_that_is_not_connected() {
    let cluster = start(server().setting("synchronous_standby_names", "gone"));
    std::thread::scope(|scope| {
        scope.spawn(|| cluster.psql("create table t (n int)").unwrap());
        let mut answer = Value::Null;
        eventually("a commit waits", || {
            answer = examine(&cluster);
            answer["diagnoses"][0]["rule"] == "replication"
        });
        // If a check fails, the wait ends, too.
        let _release = Release(&cluster);
        assert_first(
            &answer,
            "replication",
            &["No commit that waits for a standby has completed", "not connected", "gone"],
        );
        follow(
            &cluster,
            &answer,
            &["ALTER SYSTEM SET synchronous_standby_names", "SELECT pg_reload_conf()"],
        );
    });
    assert_ended(&cluster, "replication");
}

#[test]
fn sessions_that_block_each_other() {
    let cluster = start(server().setting("deadlock_timeout", "10ms"));
    cluster.psql("create table account (id int primary key, n int); insert into account values (1, 0), (2, 0)").unwrap();
    // Both have changed their first row before either changes its second.
    let meet = Barrier::new(2);
    let transfers = |first: i32, second: i32| {
        let (cluster, meet) = (&cluster, &meet);
        move |stop: &AtomicBool| {
            let mut client = cluster.connect().unwrap();
            let mut last = false;
            while !last {
                let change = |id: i32| format!("update account set n = n + 1 where id = {id}");
                client.batch_execute("begin").unwrap();
                client.batch_execute(&change(first)).unwrap();
                // Both leave after the same round: one decides, and the other reads that after the second meeting.
                if meet.wait().is_leader() {
                    ENDS.store(stop.load(Ordering::Relaxed), Ordering::SeqCst);
                }
                meet.wait();
                last = ENDS.load(Ordering::SeqCst);
                let _ = client.batch_execute(&change(second));
                client.batch_execute("rollback").unwrap();
                // Otherwise the cancelled transaction could lock its first row again before the other one gets it.
                meet.wait();
            }
        }
    };
    let (one, other) = (transfers(1, 2), transfers(2, 1));
    let answer = support::while_working(&[&one, &other], || {
        let mut answer = Value::Null;
        eventually("the server has counted deadlocks", || {
            answer = examine(&cluster);
            answer["diagnoses"]
                .as_array()
                .unwrap()
                .iter()
                .any(|diagnosis| diagnosis["rule"] == "deadlocks")
        });
        answer
    });
    let all = answer["diagnoses"].as_array().unwrap();
    let deadlocks = all.iter().find(|diagnosis| diagnosis["rule"] == "deadlocks").unwrap();
    for word in ["in database postgres", "update account set n", "40P01"] {
        assert!(deadlocks.to_string().contains(word), "{word}: {answer:#}");
    }
}

/// Whether the two sessions of the test above end after this round.
static ENDS: AtomicBool = AtomicBool::new(false);

#[test]
fn a_catalog_that_has_grown() {
    let cluster = start(server());
    let columns: Vec<String> = (0..1500).map(|n| format!("c{n} int")).collect();
    let columns = columns.join(", ");
    let mut client = cluster.connect().unwrap();
    for _ in 0..90 {
        client
            .batch_execute(&format!("create temporary table x ({columns}); drop table x"))
            .unwrap();
    }
    drop(client);
    let mut answer = Value::Null;
    eventually("the server has counted the rows", || {
        answer = examine(&cluster);
        answer["diagnoses"]
            .as_array()
            .unwrap()
            .iter()
            .any(|diagnosis| diagnosis["rule"] == "catalog-bloat")
    });
    let words = ["pg_attribute of database postgres takes"];
    let all = answer["diagnoses"].as_array().unwrap();
    let bloat = all.iter().position(|diagnosis| diagnosis["rule"] == "catalog-bloat").unwrap();
    assert!(all[bloat].to_string().contains(words[0]), "{answer:#}");
    cluster.psql("VACUUM FULL pg_catalog.pg_attribute").unwrap();
    assert_ended(&cluster, "catalog-bloat");
}

#[test]
fn a_slow_statement_on_a_table_that_was_never_analyzed() {
    let cluster = start(server());
    cluster
        .psql("create table events (n int); insert into events select generate_series(1, 5000)")
        .unwrap();
    let slow = |stop: &AtomicBool| {
        let mut client = cluster.connect().unwrap();
        while !stop.load(Ordering::Relaxed) {
            client.simple_query("select count(*), pg_sleep(0.1) from events").unwrap();
        }
    };
    support::while_working(&[&slow], || {
        let mut answer = Value::Null;
        eventually("the server has counted the rows", || {
            answer = examine(&cluster);
            answer["diagnoses"][0]["rule"] == "stale-statistics"
        });
        let words = ["table events of database postgres", "was never analyzed", "from events"];
        assert_first(&answer, "stale-statistics", &words);
        follow(&cluster, &answer, &["ANALYZE events"]);
        assert_ended(&cluster, "stale-statistics");
    });
}

#[test]
fn jit_of_a_short_statement() {
    if !support::has_module("llvmjit") {
        println!("not tested: the server has no llvmjit");
        return;
    }
    let cluster = start(server().setting("jit_above_cost", "0"));
    cluster.psql("create table t as select n from generate_series(1, 100) n").unwrap();
    cluster.psql("analyze t").unwrap();
    let sum = "select sum(n), avg(n), min(n), max(n), count(*) filter (where n % 3 = 1), sum(n * n) from t where n > 5";
    let compiles = |stop: &AtomicBool| {
        let mut client = cluster.connect().unwrap();
        while !stop.load(Ordering::Relaxed) {
            client.simple_query(sum).unwrap();
        }
    };
    support::while_working(&[&compiles], || {
        let answer = examine(&cluster);
        assert_first(&answer, "jit", &["JIT compilation takes", "select sum(n)"]);
        follow(&cluster, &answer, &["ALTER SYSTEM SET jit = off", "SELECT pg_reload_conf()"]);
        assert_ended(&cluster, "jit");
    });
}

#[test]
fn lists_of_thousands_of_constants() {
    let cluster = start(server());
    cluster.psql("create table t as select n from generate_series(1, 10) n").unwrap();
    cluster.psql("analyze t").unwrap();
    let list: Vec<String> = (0..5000).map(|n| n.to_string()).collect();
    let query = format!("select n from t where n in ({}) and n < 0", list.join(", "));
    let plans = |stop: &AtomicBool| {
        let mut client = cluster.connect().unwrap();
        while !stop.load(Ordering::Relaxed) {
            client.simple_query(&query).unwrap();
        }
    };
    support::while_working(&[&plans], || {
        let answer = examine(&cluster);
        let words = [
            "Parsing and planning take longer than executing",
            "select n from t where n in",
            "= ANY ($1)",
        ];
        assert_first(&answer, "planning", &words);
    });
}
