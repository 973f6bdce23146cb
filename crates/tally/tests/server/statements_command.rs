// SPDX-License-Identifier: PostgreSQL
//! `tally statements` and the pane of statements, on live servers.

use crate::support;
use std::time::{Duration, Instant};

use crate::support::json_reference::{assert_documented, documented, fields, section};
use crate::support::{complaint, eventually, output, plain, shared, start, tally};
use scratch::{Cluster, Load};
use serde_json::Value;

fn statements(cluster: &Cluster, args: &[&str]) -> String {
    output(tally().arg("statements").args(args).arg(cluster.connection_string()))
}

fn json(cluster: &Cluster, args: &[&str]) -> Value {
    serde_json::from_str(&statements(cluster, &[&["--json"], args].concat())).unwrap()
}

fn rows(json: &Value) -> &[Value] {
    json["rows"].as_array().unwrap()
}

/// The row whose text has this beginning.
fn row<'j>(json: &'j Value, begins: &str) -> Option<&'j Value> {
    rows(json).iter().find(|row| row["query"].as_str().is_some_and(|text| text.starts_with(begins)))
}

fn seconds(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn sum<'j>(values: impl IntoIterator<Item = &'j Value>, field: &str) -> f64 {
    values.into_iter().map(|value| seconds(&value[field])).sum()
}

fn near(a: f64, b: f64, what: &str) {
    assert!((a - b).abs() <= 1e-9 + 1e-6 * b.abs(), "{what}: {a} {b}");
}

/// A session that is executing a statement until it is released.
struct Waiter {
    holder: postgres::Client,
    began: Instant,
    session: std::thread::JoinHandle<()>,
    /// It waits since then, at the latest.
    waiting: Instant,
}

const WAITS: &str = "select pg_advisory_lock($1)";

impl Waiter {
    fn new(cluster: &Cluster) -> Self {
        let mut holder = cluster.connect().unwrap();
        holder.batch_execute("select pg_advisory_lock(4711)").unwrap();
        let mut client = cluster.connect().unwrap();
        let began = Instant::now();
        let session = std::thread::spawn(move || {
            client.batch_execute("select pg_advisory_lock(4711)").unwrap();
        });
        eventually("the holder has its lock and the statement waits for it", || {
            let json = json(cluster, &[]);
            let current = json["current"].as_array().unwrap().iter();
            let mut activities =
                current.flat_map(|session| session["activities"].as_array().unwrap());
            let waits = activities.any(|activity| activity["activity"] == "Lock:advisory");
            let counted = row(&json, WAITS).is_some_and(|row| row["calls"] == 1);
            if waits && counted {
                Ok(())
            } else {
                Err(json["current"].clone())
            }
        });
        Self { holder, began, session, waiting: Instant::now() }
    }

    /// Ends the statement; returns how long it waited: min and max.
    fn release(mut self) -> (f64, f64) {
        let min = self.waiting.elapsed().as_secs_f64();
        self.holder.batch_execute("select pg_advisory_unlock_all()").unwrap();
        self.session.join().unwrap();
        (min, self.began.elapsed().as_secs_f64())
    }
}

/// The clock's rate was measured against another clock when the segment was made.
const RATE: f64 = 1e-3;

fn within(what: &str, got: f64, (min, max): (f64, f64)) {
    let bracket = min * (1.0 - RATE)..=max * (1.0 + RATE);
    assert!(bracket.contains(&got), "{what}: {got} s of {min} to {max} s");
}

#[test]
fn a_load_is_shown_statement_by_statement() {
    let cluster = shared();
    let pgbench = || cluster.pgbench().load(Load::TpcB).clients(4);
    cluster.pgbench_init(1).unwrap();
    let done = pgbench().transactions(200).run().unwrap();
    let all = json(&cluster, &[]);
    let update = row(&all, "UPDATE pgbench_accounts").expect("the statement is there");
    assert_eq!(update["calls"], done.transactions);
    assert_eq!(update["rows"], done.transactions);
    assert_eq!(update["database"], "postgres");
    assert_eq!(update["user"], "postgres");
    assert!(update["query"].as_str().unwrap().contains("abalance + $1"), "{update}");
    for row in rows(&all) {
        near(
            sum(row["activities"].as_array().unwrap(), "seconds"),
            seconds(&row["seconds"]),
            "parts",
        );
        let split: f64 = row["split"].as_object().unwrap().values().map(seconds).sum();
        near(split, seconds(&row["seconds"]), "classes");
        near(
            sum(row["histogram"].as_array().unwrap(), "count"),
            seconds(&row["calls"]),
            "histogram",
        );
        let times = &row["quantiles"];
        if row["calls"] != 0 {
            assert!(seconds(&times["p50_seconds"]) <= seconds(&times["p99_seconds"]), "{row}");
        }
    }
    let asked_for = || rows(&all).iter().filter(|row| row["toplevel"] == true);
    near(sum(asked_for(), "share"), 1.0, "shares");
    near(sum(asked_for(), "seconds"), seconds(&all["seconds"]), "all");
    let order: Vec<f64> = rows(&all).iter().map(|row| seconds(&row["seconds"])).collect();
    assert!(order.is_sorted_by(|a, b| a >= b), "{order:?}");

    // The documented fields are exactly those that exist.
    let document = section("The JSON of `tally statements`");
    let waiter = Waiter::new(&cluster);
    let id = update["queryid"].as_str().unwrap();
    let written = fields([&json(&cluster, &[]), &json(&cluster, &["--id", id])]);
    waiter.release();
    assert_documented(document, &written);
    // The tests `sampled::` see what only samples have.
    for name in documented(document, "| only in ") {
        assert!(written.contains(name), "{name} is documented and not written");
    }

    let text = statements(&cluster, &["--limit", "3"]);
    assert!(text.starts_with("DATABASE  USER "), "{text}");
    // With the title, the last line and the line of tally's own statements.
    assert_eq!(text.lines().count(), 6, "{text}");
    assert!(text.contains("UPDATE pgbench_") && text.contains("3 of "), "{text}");
    assert!(statements(&cluster, &["--sort", "calls"]).contains(id));
    let by_wait = json(&cluster, &["--sort", "LWLock:WALWrite", "--limit", "1"]);
    assert_eq!(rows(&by_wait).len(), 1);
    assert_eq!(rows(&json(&cluster, &["--database", "nowhere"])).len(), 0);

    let page = statements(&cluster, &["--id", id]);
    for part in [
        &format!("Statement {id}, database postgres, user postgres"),
        "UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2",
        "P99.9",
        "Per execution",
        "Execution times since the last reset",
        "Where its time went since the last reset",
        "Blocks of 8 kB",
        "write-ahead log: ",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("JIT") && !page.contains("temporary"), "{page}");
    assert_eq!(rows(&json(&cluster, &["--id", id])).len(), 1);
    let message =
        complaint(tally().args(["statements", "--id", "-12", &cluster.connection_string()]), 1);
    assert!(message.contains("no statement with query ID -12"), "{message}");
}

#[test]
fn a_statement_counts_while_it_runs() {
    // Its deadlock check would interrupt the wait.
    let preloaded = plain().setting("shared_preload_libraries", "pg_tally");
    let cluster = start(preloaded.setting("deadlock_timeout", "1h"));
    let waiter = Waiter::new(&cluster);
    // Between two readings, each at some time while its command runs.
    let read = || {
        let before = Instant::now();
        let json = json(&cluster, &[]);
        let waits = row(&json, WAITS).expect("it shows before it has ended");
        assert_eq!((&waits["calls"], &waits["running"]), (&1.into(), &1.into()));
        (before, seconds(&waits["seconds"]), Instant::now())
    };
    let first = read();
    let between = Instant::now();
    std::thread::sleep(Duration::from_millis(200));
    let min = between.elapsed().as_secs_f64();
    let last = read();
    let max = last.2.duration_since(first.0).as_secs_f64();
    within("in flight", last.1 - first.1, (min, max));
    // All of it is the wait, and nothing before the interval is included.
    let began = Instant::now();
    let during = json(&cluster, &["--interval", "0.5"]);
    let waits = row(&during, WAITS).unwrap();
    assert_eq!((&waits["calls"], &waits["running"]), (&0.into(), &1.into()));
    assert!(seconds(&waits["seconds"]) > 0.0, "{during}");
    within("in the interval", seconds(&waits["seconds"]), (0.0, began.elapsed().as_secs_f64()));
    near(seconds(&waits["split"]["lock_seconds"]), seconds(&waits["seconds"]), "its wait");

    let top = |args: &[&str]| {
        let mut command = tally();
        command.args(["top", "--once", "--interval", "0.5"]).args(args);
        output(command.arg(cluster.connection_string()))
    };
    let min = waiter.waiting.elapsed().as_secs_f64();
    let interval: Value = serde_json::from_str(&top(&["--json"])).unwrap();
    let current = &interval["statements"]["current"][0];
    let session = interval["sessions"].as_array().unwrap();
    let session = session.iter().find(|s| s["pid"] == current["pid"]).expect("a session's");
    assert_eq!(session["activity"], "Lock:advisory");
    assert_eq!(current["query"], WAITS);
    within("so far", seconds(&current["seconds"]), (min, waiter.began.elapsed().as_secs_f64()));
    let sessions = top(&["--view", "sessions"]);
    assert!(sessions.contains("select pg_advisory"), "{sessions}");
    assert!(sessions.contains("lock 99.") || sessions.contains("lock 100.0"), "{sessions}");
    let pane = top(&["--view", "statements", "--sort", "Lock:advisory"]);
    assert!(pane.contains("%ACTIVITY") && pane.contains("select pg_advisory"), "{pane}");

    let waited = waiter.release();
    let after = eventually("it has ended", || {
        let json = json(&cluster, &[]);
        (row(&json, WAITS).unwrap()["running"] == 0).then_some(json)
    });
    let waits = row(&after, WAITS).unwrap();
    // The other one is the call of the waiting session.
    assert_eq!(waits["calls"], 2);
    let worked = waits["activities"].as_array().unwrap().iter();
    let worked = worked.filter(|activity| activity["activity"] == "Lock:advisory");
    within("in the end", sum(worked, "seconds"), waited);
}

#[test]
fn nested_statements_are_shown_on_request() {
    let cluster = start(
        plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.statements", "all"),
    );
    cluster
        .psql(
            "create function twice(n int) returns int language plpgsql as \
             $$ begin perform count(*) from pg_class where relpages > n; return 2 * n; end $$",
        )
        .unwrap();
    cluster.psql("select twice(7)").unwrap();
    let within = "SELECT count(*) from pg_class";
    let asked_for = json(&cluster, &[]);
    assert!(row(&asked_for, "select twice($1)").is_some(), "{asked_for}");
    assert!(row(&asked_for, within).is_none(), "{asked_for}");
    let all = json(&cluster, &["--all"]);
    let nested = row(&all, within).expect("it is nested");
    assert_eq!((&nested["toplevel"], &nested["calls"]), (&false.into(), &1.into()));
    let once = rows(&all).iter().filter(|row| row["toplevel"] == true);
    near(sum(once, "seconds"), seconds(&all["seconds"]), "nested ones count once");
    let table = statements(&cluster, &["--all"]);
    assert!(table.lines().any(|l| l.contains(" nested ") && l.contains(within)), "{table}");
}

#[test]
fn an_empty_list_comes_with_a_remedy() {
    let says = |setting: (&str, &str), remedy: &str| {
        let cluster = start(
            plain().setting("shared_preload_libraries", "pg_tally").setting(setting.0, setting.1),
        );
        cluster.psql("select 1").unwrap();
        let target = cluster.connection_string();
        let message = complaint(tally().args(["statements", &target]), 1);
        assert!(message.contains(remedy), "{message}");
        let pane =
            output(tally().args(["top", "--once", "--view", "statements", "-i", "0.1", &target]));
        assert!(pane.contains("Statements\n"), "{pane}");
    };
    says(("pg_tally.max_statements", "0"), "pg_tally.max_statements");
    says(("pg_tally.statements", "none"), "pg_tally.statements");
    let cluster = start(
        plain().setting("shared_preload_libraries", "pg_tally").setting("compute_query_id", "off"),
    );
    cluster.psql("select 1").unwrap();
    let text = statements(&cluster, &[]);
    assert!(
        text.contains("compute_query_id is off") && text.contains("(not identified)"),
        "{text}"
    );
    complaint(tally().args(["statements", "--sort", "nonsense"]), 2);
    complaint(tally().args(["statements", "--limit", "0"]), 2);
}

/// The server is new, so all statements that appear belong to the verbs.
#[test]
fn what_tally_asks_the_server_is_one_row() {
    let cluster = start(plain().setting("shared_preload_libraries", "pg_tally"));
    let mut client = cluster.config().application_name("shop").connect(postgres::NoTls).unwrap();
    client.batch_execute("select count(*) from pg_class").unwrap();
    let path = support::segment(&cluster);
    let verb = |args: &[&str]| output(tally().env("PGUSER", "postgres").args(args).arg(&path));
    let texts = |args: &[&str]| -> Vec<String> {
        let all: Value =
            serde_json::from_str(&verb(&[&["statements", "--json"], args].concat())).unwrap();
        rows(&all).iter().map(|row| row["query"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let before = texts(&["--all"]);
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("recording").display().to_string();
    verb(&["doctor", "--for", "1"]);
    verb(&["top", "--once", "--interval", "2"]);
    let mut record = tally();
    record.env("PGUSER", "postgres").args(["record", "-o", &recording]).arg(&path);
    output(record.args(["--", "sleep", "2"]));
    let mut own: Vec<String> = texts(&["--all"]);
    // Work without a known statement has no text.
    own.retain(|text| !text.is_empty() && !before.contains(text));
    assert!(own.len() > 5 && own.iter().any(|text| text.contains("pg_settings")), "{own:#?}");
    assert!(own.iter().all(|text| segment::own::is_statement(text)), "{own:#?}");

    let shown = verb(&["statements"]);
    assert!(shown.contains("tally's own: ") && !shown.contains("pg_settings"), "{shown}");
    assert!(shown.contains("select count(*) from pg_class"), "{shown}");
    let all: Value = serde_json::from_str(&verb(&["statements", "--json"])).unwrap();
    let marked = |row: &&Value| {
        row["own"] == segment::own::is_statement(row["query"].as_str().unwrap_or_default())
    };
    assert!(rows(&all).iter().all(|row| marked(&row)), "{all:#}");
    let shown = verb(&["statements", "--all", "--limit", "500"]);
    assert!(!shown.contains("tally's own: ") && shown.contains("pg_settings"), "{shown}");

    // What an application asks for, too, is the application's, although tally was first.
    let common = ["select pg_backend_pid()", "select version()", "select current_setting($1)"];
    client.batch_execute("select pg_backend_pid()").unwrap();
    client.batch_execute("select version()").unwrap();
    client.batch_execute("select current_setting('work_mem')").unwrap();
    let all: Value =
        serde_json::from_str(&verb(&["statements", "--json", "--limit", "500"])).unwrap();
    for text in common {
        let its = rows(&all).iter().find(|row| row["query"] == text);
        assert_eq!(its.unwrap_or_else(|| panic!("{text}: {all:#}"))["own"], false, "{text}");
    }

    // Its sessions are marked as such; those of `top` itself may be there, too.
    let mut own = cluster.config().application_name("tally").connect(postgres::NoTls).unwrap();
    let top = verb(&["top", "--once", "--json", "--interval", "0.2"]);
    let top: Value = serde_json::from_str(&top).unwrap();
    let kind_of = |client: &mut postgres::Client| {
        let pid = support::pid_of(client);
        let row = top["sessions"].as_array().unwrap().iter().find(|row| row["pid"] == pid);
        row.unwrap_or_else(|| panic!("{pid}: {top:#}"))["kind"].clone()
    };
    assert_eq!(kind_of(&mut own), "client backend (tally)");
    assert_eq!(kind_of(&mut client), "client backend");
}
