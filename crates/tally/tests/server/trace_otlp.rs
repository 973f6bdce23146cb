// SPDX-License-Identifier: PostgreSQL
//! `tally trace --otlp`: a real OpenTelemetry Collector receives what the session did, in the traces of its
//! client.

use crate::support;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::otlp::{attribute, number, spans, Collector};
use crate::support::{complaint, eventually, segment, start, tally};
use postgres::Client;
use rustix::process::{kill_process, Pid, Signal};
use scratch::Cluster;
use serde_json::Value;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn server() -> Cluster {
    let builder = support::plain();
    start(builder.setting("shared_preload_libraries", "pg_tally").setting("autovacuum", "off"))
}

fn session(cluster: &Cluster) -> (Client, i32) {
    let mut client = cluster.connect().unwrap();
    let pid = support::pid_of(&mut client);
    (client, pid)
}

/// Runs the subject of the test while the session is traced; then the tracer ends as a user would end it.
fn traced(
    cluster: &Cluster,
    client: &mut Client,
    pid: i32,
    arguments: &[&str],
    certificate: &Path,
    mut act: impl FnMut(&mut Client),
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

/// How far the time of day may be from that of the server's clock in a short trace, ns: their rates differ by some
/// millionths.
const CLOCKS: f64 = 1e6;

/// Now, ns since 1970.
fn time_of_day() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_nanos() as f64
}

fn within<'s>(spans: &'s [Value], above: &Value) -> Vec<&'s Value> {
    spans.iter().filter(|span| span["parentSpanId"] == above["spanId"]).collect()
}

fn parent(span: &Value) -> &str {
    span["parentSpanId"].as_str().unwrap_or_default()
}

fn transactions(spans: &[Value]) -> Vec<&Value> {
    spans.iter().filter(|span| span["name"] == "transaction").collect()
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
    // When the client's own span would begin and end.
    let mut slept = [0.0; 2];
    traced(&cluster, &mut client, pid, &["--otlp", &url], &certificate, |client| {
        let commented = |span: &str, sql: &str| {
            format!("{sql} /*route='%2Fpay',traceparent='00-{TRACE}-{span}-01'*/")
        };
        let began = time_of_day();
        client.batch_execute(&commented("00f067aa0ba902b7", "select pg_sleep(0.02)")).unwrap();
        slept = [began, time_of_day()];
        client.batch_execute("begin").unwrap();
        client.batch_execute("insert into t values (0)").unwrap();
        client.batch_execute(&commented("00f067aa0ba902b8", "delete from t where i = 0")).unwrap();
        client.batch_execute("commit").unwrap();
        // The extended protocol: several messages are one statement. There are traces for the workers of two
        // statements.
        client.batch_execute("set max_parallel_workers_per_gather = 0").unwrap();
        client.query(&*commented("00f067aa0ba902b9", "select i + 1 from t limit 3"), &[]).unwrap();
        client.query("select i * 2 as prepared from t limit 3", &[]).unwrap();
        client.batch_execute("set max_parallel_workers_per_gather = 2").unwrap();
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
    // The server's span lies within the client's, as far as the two clocks are known to agree.
    let span = ["startTimeUnixNano", "endTimeUnixNano"].map(|key| number(&sleep[key]));
    assert!(slept[0] - CLOCKS <= span[0] && span[1] <= slept[1] + CLOCKS, "{span:?} {slept:?}");
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

    // A transaction of four statements; one belongs to its client's trace, the others to none.
    let found = transactions(&all);
    assert_eq!(found.len(), 1, "{found:#?}");
    let transaction = found[0];
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

    // Prepared and executed: the driver waits for both.
    for (query, trace, above) in
        [("i + $1 from t", true, "00f067aa0ba902b9"), ("as prepared", false, "")]
    {
        let found = named(&all, query);
        assert_eq!(found.len(), 2, "{query}: {found:#?}");
        for span in found {
            assert_eq!((span["traceId"] == TRACE, parent(span)), (trace, above), "{span}");
        }
    }
    for query in ["length(", "abs("] {
        assert_eq!((one(query)["traceId"] == TRACE, parent(&one(query))), (false, ""));
    }
    let root = one("sqrt(");
    assert_eq!((&root["traceId"], parent(&root)), (&TRACE.into(), "00f067aa0ba902ba"));

    let failed = one("as fails");
    assert_eq!(failed["status"]["code"], 2);
    assert_eq!(attribute(&failed, "error.type").as_deref(), Some("_OTHER"));
    assert_eq!(parent(&failed), "");
    assert!(root["status"]["code"].is_null(), "{root}");

    let leader = one("count(*) from t");
    let workers: Vec<&Value> = within(&all, &leader)
        .into_iter()
        .filter(|span| span["name"] == "parallel worker")
        .collect();
    assert_eq!(workers.len(), 2, "{workers:#?}");
    for worker in &workers {
        assert_eq!(worker["traceId"], leader["traceId"]);
        assert_ne!(attribute(worker, "process.pid"), attribute(&leader, "process.pid"));
    }
    let statements =
        all.iter().filter(|span| attribute(span, "db.query.text").is_some() && span["kind"] == 2);
    statements.chain(workers).for_each(adds_up);
}

/// A session whose messages the test assembles itself.
struct Raw(UnixStream);

/// A message of the protocol: its kind, and its content.
fn message(kind: &str, content: &[&[u8]]) -> Vec<u8> {
    let content = content.concat();
    let length = u32::try_from(content.len() + 4).unwrap().to_be_bytes();
    [kind.as_bytes(), &length, &content].concat()
}

fn query(sql: &str) -> Vec<u8> {
    message("Q", &[sql.as_bytes(), b"\0"])
}

/// Parse, Bind and Execute.
fn extended(sql: &str) -> Vec<u8> {
    [
        message("P", &[b"\0", sql.as_bytes(), b"\0\0\0"]),
        message("B", &[&[0; 8]]),
        message("E", &[&[0; 5]]),
    ]
    .concat()
}

impl Raw {
    fn start(cluster: &Cluster) -> (Raw, i32) {
        let socket = cluster.host().join(format!(".s.PGSQL.{}", cluster.port()));
        let mut raw = Raw(UnixStream::connect(socket).unwrap());
        let user = cluster.user().as_bytes();
        let version = 0x0003_0000u32.to_be_bytes();
        raw.send(&message("", &[&version, b"user\0", user, b"\0database\0postgres\0\0"]));
        let key = raw.until('K');
        raw.until('Z');
        (raw, i32::from_be_bytes(key[..4].try_into().unwrap()))
    }

    fn send(&mut self, messages: &[u8]) {
        self.0.write_all(messages).unwrap();
    }

    /// The content of the next message of that kind.
    fn until(&mut self, wanted: char) -> Vec<u8> {
        loop {
            let mut head = [0; 5];
            self.0.read_exact(&mut head).unwrap();
            let length = u32::from_be_bytes(head[1..].try_into().unwrap());
            let mut content = vec![0; length as usize - 4];
            self.0.read_exact(&mut content).unwrap();
            assert_ne!(head[0], b'E', "{}", String::from_utf8_lossy(&content));
            if head[0] == wanted as u8 {
                return content;
            }
        }
    }

    /// Sends everything at once, so that the server has to wait only for the first message.
    fn pipeline(&mut self, messages: &[Vec<u8>], answers: usize) {
        self.send(&messages.concat());
        for _ in 0..answers {
            self.until('Z');
        }
    }
}

#[test]
fn messages_that_come_at_once_or_in_parts_are_the_statements_that_they_are() {
    let cluster = server();
    let mut other = cluster.connect().unwrap();
    let (mut raw, pid) = Raw::start(&cluster);
    let sync = message("S", &[]);
    let mut act = |raw: &mut Raw| {
        let close = message("C", &[b"S\0"]);
        let all =
            [extended("select pi()"), sync.clone(), close, sync.clone(), query("select random()")];
        raw.pipeline(&all, 3);
        let block = ["begin", "select now()", "commit", "select version()"].map(query);
        raw.pipeline(&block, 4);
        raw.send(&[extended("select txid_current()"), message("H", &[])].concat());
        raw.until('C');
        eventually("the session waits for the rest", || {
            let waits = "select wait_event = 'ClientRead' from pg_stat_activity where pid = $1";
            other.query_one(waits, &[&pid]).unwrap().get::<_, Option<bool>>(0) == Some(true)
        });
        raw.pipeline(std::slice::from_ref(&sync), 1);
    };
    act(&mut raw);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.otlp.json");
    let mut child = trace_into(&file, &cluster, pid);
    eventually("the session is traced", || {
        raw.pipeline(&[query("select clock_timestamp()")], 1);
        !named(&written(&file), "clock_timestamp").is_empty()
    });
    act(&mut raw);
    drop(raw);
    assert!(child.wait().unwrap().success());
    let all = written(&file);

    let found = transactions(&all);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(attribute(found[0], "pgtally.statements").as_deref(), Some("3"));
    for (query, above) in [
        ("pi()", ""),
        ("random()", ""),
        ("version()", ""),
        ("txid_current()", ""),
        ("now()", found[0]["spanId"].as_str().unwrap()),
    ] {
        let statements = named(&all, query);
        assert_eq!(statements.len(), 1, "{query}: {statements:#?}");
        assert_eq!(parent(statements[0]), above, "{query}");
        adds_up(statements[0]);
    }
    let flushed = named(&all, "txid_current")[0];
    assert!(attribute(flushed, "pgtally.time.client").is_some(), "{flushed}");
}

/// A trace of that session into a file, until the session ends.
fn trace_into(file: &Path, cluster: &Cluster, pid: i32) -> Child {
    Command::new(assert_cmd::cargo::cargo_bin("tally"))
        .args(["trace", &pid.to_string(), "-o", file.to_str().unwrap()])
        .arg(segment(cluster))
        .stdin(Stdio::null())
        .spawn()
        .unwrap()
}

/// The spans in a file, of whole lines.
fn written(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let requests: Vec<Value> =
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    spans(&requests)
}

/// The traces of the same statement's spans, in order: the last digits of its client's span, "" without one.
fn parents<'s>(spans: &'s [Value], query: &str) -> Vec<&'s str> {
    let mut found = named(spans, query);
    found.sort_by(|a, b| {
        number(&a["startTimeUnixNano"]).total_cmp(&number(&b["startTimeUnixNano"]))
    });
    let parent = |span: &&'s Value| match span["traceId"] == TRACE {
        true => parent(span)
            .strip_prefix("00f067aa0ba902")
            .unwrap_or_else(|| panic!("{query} {spans:#?}")),
        false => parent(span),
    };
    found.iter().map(parent).collect()
}

#[test]
fn a_traceparent_is_that_of_the_statement_and_execution_that_it_was_sent_with() {
    let cluster = server();
    let (mut client, pid) = session(&cluster);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.otlp.json");
    let by = |span: &str| format!("/*traceparent='00-{TRACE}-00f067aa0ba902{span}-01'*/");
    // Each statement calls a function of its own, because names of columns do not make another statement.
    let act = |client: &mut Client| {
        let prepared = client.prepare(&format!("select pi() {}", by("01"))).unwrap();
        for _ in 0..3 {
            client.query(&prepared, &[]).unwrap();
        }
        let (two, three) = (by("02"), by("03"));
        for batch in [
            // Its own; before the statement, behind the last one; and one for all.
            format!("select ascii('a') {two}; select bit_length('b') {three}; select sign(1)"),
            format!("{two} select ceil(1); {three} select floor(2); select trunc(3); {two}"),
            format!("select degrees(1); select radians(2) {three}"),
            // Data.
            format!("select md5($${two}$$)"),
            format!("select concat(E'\\'/*', 'traceparent=''00-{TRACE}-00f067aa0ba90204-01''')"),
            format!("select cbrt(1) as \"c {two}\""),
            format!("select exp(1) {}", two.replace("traceparent", "xtraceparent")),
        ] {
            client.batch_execute(&batch).unwrap();
        }
    };
    act(&mut client);
    let mut child = trace_into(&file, &cluster, pid);
    eventually("the session is traced", || {
        client.batch_execute("select sqrt(4711)").unwrap();
        !named(&written(&file), "sqrt(").is_empty()
    });
    act(&mut client);
    drop(client);
    assert!(child.wait().unwrap().success());
    let all = written(&file);
    // Prepared, and executed three times.
    assert_eq!(parents(&all, "pi("), ["01", "01", "", ""]);
    for (name, span) in [
        ("ascii(", "02"),
        ("bit_length(", "03"),
        ("ceil(", "02"),
        ("floor(", "03"),
        ("trunc(", "02"),
        ("degrees(", "03"),
        ("radians(", "03"),
    ] {
        assert_eq!(parents(&all, name), [span], "{name}");
    }
    // One that names no trace is in the trace of its transaction's first statement.
    assert_eq!(named(&all, "sign(")[0]["traceId"], TRACE);
    for name in ["md5(", "concat(", "cbrt(", "exp("] {
        assert_eq!(parents(&all, name), [""], "{name}");
    }
}

#[test]
fn a_file_has_the_same_spans_and_an_absent_receiver_is_an_error() {
    let cluster = server();
    let (mut client, pid) = session(&cluster);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.otlp.json");
    let mut child = trace_into(&file, &cluster, pid);
    eventually("spans are written", || {
        client.batch_execute("select 4711 as wanted").unwrap();
        !named(&written(&file), "wanted").is_empty()
    });
    drop(client);
    assert!(child.wait().unwrap().success());
    let all = written(&file);
    assert!(named(&all, "wanted").iter().all(|span| span["traceId"].as_str().unwrap().len() == 32));

    let (client, pid) = session(&cluster);
    let mut command = tally();
    command.args(["trace", &pid.to_string(), "--for", "1s", "--otlp", "http://127.0.0.1:1"]);
    command.arg(segment(&cluster));
    let work = std::sync::Mutex::new(client);
    let busy = |stop: &AtomicBool| {
        while !stop.load(Ordering::Relaxed) {
            work.lock().unwrap().batch_execute("select pg_sleep(0.01)").unwrap();
        }
    };
    let complaint = support::while_working(&[&busy], || complaint(&mut command, 1));
    assert!(complaint.contains("did not accept"), "{complaint}");
}
