// SPDX-License-Identifier: PostgreSQL
//! `tally trace --otlp`: what a real OpenTelemetry Collector receives is what the session did, in the traces of its client.
#![allow(missing_docs)]

mod support;

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use postgres::Client;
use rustix::process::{kill_process, Pid, Signal};
use scratch::Cluster;
use serde_json::Value;
use support::otlp::{attribute, number, spans, Collector};
use support::{complaint, eventually, segment, start, tally};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn server() -> Cluster {
    let builder = support::plain();
    start(builder.setting("shared_preload_libraries", "pg_tally").setting("autovacuum", "off"))
}

fn session(cluster: &Cluster) -> (Client, i32) {
    let mut client = cluster.connect().unwrap();
    let pid = client.query_one("select pg_backend_pid()", &[]).unwrap().get(0);
    (client, pid)
}

/// Does what the test is about, while the session is traced; then the tracer ends as its user would end it.
fn traced(
    cluster: &Cluster,
    client: &mut Client,
    pid: i32,
    arguments: &[&str],
    certificate: &std::path::Path,
    act: impl Fn(&mut Client),
) {
    // The text of a statement can be read after its first execution.
    act(client);
    client.batch_execute("select count(*) from pg_am").unwrap();
    let lines = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("tally"));
    command.args(["trace", &pid.to_string(), "--json"]).args(arguments).arg(segment(cluster));
    command.env("OTEL_EXPORTER_OTLP_CERTIFICATE", certificate);
    command.stdin(Stdio::null()).stdout(lines.reopen().unwrap());
    let mut child: Child = command.spawn().unwrap();
    let written = || std::fs::read_to_string(lines.path()).unwrap();
    eventually("the session is traced", || {
        client.batch_execute("select 1").unwrap();
        written().contains("\"what\":\"trace\"")
    });
    act(client);
    // The trace is written up to this.
    eventually("all is read", || {
        client.batch_execute("select count(*) from pg_am").unwrap();
        written().contains("from pg_am")
    });
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert!(child.wait().unwrap().success());
}

fn named<'s>(spans: &'s [Value], query: &str) -> Vec<&'s Value> {
    let is = |span: &&Value| {
        span["kind"] == 2
            && attribute(span, "db.query.text").is_some_and(|text| text.contains(query))
    };
    spans.iter().filter(is).collect()
}

fn length(span: &Value) -> f64 {
    number(&span["endTimeUnixNano"]) - number(&span["startTimeUnixNano"])
}

fn within<'s>(spans: &'s [Value], above: &Value) -> Vec<&'s Value> {
    spans.iter().filter(|span| span["parentSpanId"] == above["spanId"]).collect()
}

/// The time of classes adds up to the span's length.
fn adds_up(span: &Value) {
    let classes = ["cpu", "io", "lock", "lwlock", "client", "ipc", "other"];
    let sum: f64 = classes
        .iter()
        .filter_map(|class| attribute(span, &format!("pgtally.time.{class}")))
        .map(|seconds| seconds.parse::<f64>().unwrap())
        .sum();
    // Times since 1970 are rounded to 256 ns, as a double has them.
    assert!((sum * 1e9 - length(span)).abs() < 1000.0, "{sum} {span}");
}

#[test]
fn statements_are_in_the_traces_of_their_client_and_their_waits_within_them() {
    let Some(mut collector) = Collector::start() else { return };
    let cluster = server();
    let (mut client, pid) = session(&cluster);
    client
        .batch_execute(
            "create table t as select i, repeat('x', 100) x from generate_series(1, 20000) i;
             create function f() returns int language plpgsql as 'begin perform 1 from t limit 1; return 1; end';
             set max_parallel_workers_per_gather = 2; set min_parallel_table_scan_size = 0;
             set parallel_setup_cost = 0; set parallel_tuple_cost = 0;
             set parallel_leader_participation = off",
        )
        .unwrap();
    let (url, certificate) = (collector.url(), collector.certificate());
    traced(&cluster, &mut client, pid, &["--otlp", &url], &certificate, |client| {
        let commented = |span: &str, sql: &str| {
            format!("{sql} /*route='%2Fpay',traceparent='00-{TRACE}-{span}-01'*/")
        };
        client.batch_execute(&commented("00f067aa0ba902b7", "select pg_sleep(0.02)")).unwrap();
        client.batch_execute("begin").unwrap();
        client.batch_execute("insert into t values (0)").unwrap();
        client.batch_execute(&commented("00f067aa0ba902b8", "delete from t where i = 0")).unwrap();
        client.batch_execute("commit").unwrap();
        // The extended protocol: several messages are one statement.
        client.query(&*commented("00f067aa0ba902b9", "select i + 1 from t limit 3"), &[]).unwrap();
        client.batch_execute("select count(*) from t").unwrap();
        // Not a comment, and not hexadecimal.
        client
            .batch_execute(&format!(
                "select length('traceparent=''00-{TRACE}-00f067aa0ba902b7-01''')"
            ))
            .unwrap();
        client.batch_execute("select abs(2) /*traceparent='00-xyz-00f067aa0ba902b7-01'*/").unwrap();
        assert!(client.batch_execute("select 1 / (i - 1) as fails from t where i = 1").is_err());
        client
            .batch_execute(&format!("set application_name = '00-{TRACE}-00f067aa0ba902ba-00'"))
            .unwrap();
        client.batch_execute("select sqrt(3)").unwrap();
        client.batch_execute("reset application_name").unwrap();
        client.batch_execute("select count(f()) from generate_series(1, 300)").unwrap();
    });
    collector.stop();
    let all = collector.spans();
    let one = |query: &str| {
        let found = named(&all, query);
        assert_eq!(found.len(), 1, "{query}: {found:#?}");
        found[0].clone()
    };

    let sleep = one("pg_sleep");
    assert_eq!(
        (&sleep["traceId"], &sleep["parentSpanId"]),
        (&TRACE.into(), &"00f067aa0ba902b7".into())
    );
    assert_eq!(sleep["name"], "SELECT postgres");
    assert!(length(&sleep) >= 20e6);
    for (key, value) in [
        ("db.system.name", "postgresql"),
        ("db.namespace", "postgres"),
        ("db.operation.name", "SELECT"),
        ("db.response.returned_rows", "1"),
        ("process.pid", &*pid.to_string()),
    ] {
        assert_eq!(attribute(&sleep, key).as_deref(), Some(value), "{key}");
    }
    let run = within(&all, &sleep).into_iter().find(|span| span["name"] == "run").unwrap();
    let waits = within(&all, run);
    assert_eq!(waits.len(), 1);
    assert_eq!(waits[0]["name"], "Timeout:PgSleep");

    // A transaction of four statements; one is its client's.
    let transaction: Vec<&Value> = all
        .iter()
        .filter(|span| attribute(span, "pgtally.statements").as_deref() == Some("4"))
        .collect();
    assert_eq!(transaction.len(), 1, "{transaction:#?}");
    let transaction = transaction[0];
    assert_eq!(attribute(transaction, "pgtally.statements").as_deref(), Some("4"));
    assert_ne!(transaction["traceId"], TRACE);
    let statements = within(&all, transaction);
    assert_eq!(statements.len(), 3, "{statements:#?}");
    let delete = one("delete from t");
    assert_eq!(
        (&delete["traceId"], &delete["parentSpanId"]),
        (&TRACE.into(), &"00f067aa0ba902b8".into())
    );
    assert_eq!(delete["links"][0]["spanId"], transaction["spanId"]);

    named(&all, "pg_sleep").into_iter().for_each(adds_up);
}

#[test]
fn a_file_has_the_same_spans_and_an_absent_receiver_is_an_error() {
    let cluster = server();
    let (mut client, pid) = session(&cluster);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.otlp.json");
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("tally"))
        .args(["trace", &pid.to_string(), "-o", file.to_str().unwrap()])
        .arg(segment(&cluster))
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let read = || -> Vec<Value> {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let requests: Vec<Value> =
            whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        spans(&requests)
    };
    eventually("spans are written", || {
        client.batch_execute("select 4711 as wanted").unwrap();
        !named(&read(), "wanted").is_empty()
    });
    drop(client);
    assert!(child.wait().unwrap().success());
    let all = read();
    assert!(named(&all, "wanted").iter().all(|span| span["traceId"].as_str().unwrap().len() == 32));

    let (mut client, pid) = session(&cluster);
    let mut command = tally();
    command.args(["trace", &pid.to_string(), "--seconds", "1s", "--otlp", "http://127.0.0.1:1"]);
    command.arg(segment(&cluster));
    let busy = std::thread::spawn(move || {
        let began = std::time::Instant::now();
        while began.elapsed() < Duration::from_secs(3) {
            client.batch_execute("select pg_sleep(0.05)").unwrap();
        }
    });
    let complaint = complaint(&mut command, 1);
    assert!(complaint.contains("spans were not accepted"), "{complaint}");
    busy.join().unwrap();
}
