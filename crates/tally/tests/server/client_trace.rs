// SPDX-License-Identifier: PostgreSQL
//! Calls of a Java client, joined with the server's work for each: every call gets exactly the messages that it
//! sent, and its parts fill its time.

use crate::support;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::java::{elsewhere, java, Java, Running};
use crate::support::{complaint, eventually, tally};
use rustix::process::{kill_process, Pid, Signal};
use scratch::Cluster;
use segment::layout::header;
use segment::{Interval, Segment};
use serde_json::Value;

/// Rounds of the program, each of about 33 calls; all kinds of calls occur in the first 76. PGTALLY_JOIN_CALLS
/// sets another number of calls.
fn rounds() -> u64 {
    std::env::var("PGTALLY_JOIN_CALLS").map_or(80, |text| text.parse::<u64>().unwrap() * 3 / 100)
}

/// Rounds after which the program waits, so that the rings have space for its calls, however late they are read.
const STEP: u64 = 10;

fn server() -> (Cluster, String) {
    let loaded = support::plain().setting("shared_preload_libraries", "pg_tally");
    let (cluster, port) = support::on_loopback(loaded);
    (cluster, format!("jdbc:postgresql://127.0.0.1:{port}/postgres?sslmode=disable"))
}

/// Maximum number of connections that the program makes while it is traced, each for two calls.
const RECONNECTED: u64 = 6;

/// Maximum number of messages of one of their calls: Parse, Bind, Describe, Execute, Sync.
const MESSAGES: u64 = 5;

/// `tally trace` of the sessions with this application's name, with the calls of a client.
fn trace(cluster: &Cluster, client: &Running, output: &Path) -> Child {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("tally"));
    command.args(["trace", "--application", "joined", "-o"]).arg(output);
    command.arg("--client").arg(client.segment()).arg(support::segment(cluster));
    command.stderr(Stdio::piped()).spawn().unwrap()
}

fn signal(trace: &Child) {
    kill_process(Pid::from_child(trace), Signal::INT).unwrap();
}

fn interrupt(trace: &mut Child) {
    signal(trace);
    assert!(trace.wait().unwrap().success());
}

/// Executions and fetches of the client so far.
fn calls(client: &Running) -> u64 {
    let json = client.calls();
    let rows = json["calls"].as_array().unwrap();
    let count = |value: &Value| value["count"].as_u64().unwrap();
    rows.iter().map(|row| count(&row["execute"]) + count(&row["fetch"])).sum()
}

/// Messages that the server has read, by kind.
fn messages(segment: &Path) -> BTreeMap<String, u64> {
    let mut segment = Segment::open(segment).unwrap();
    let snapshot = segment.snapshot(None).unwrap();
    let interval = Interval::between(&segment, None, &snapshot);
    interval.commands.into_iter().map(|command| (command.kind, command.read.count)).collect()
}

/// The output of the trace, the number of calls that the client made, and the messages that the server read
/// meanwhile, by kind.
fn joined(java: &Java) -> (Vec<Value>, u64, BTreeMap<String, u64>) {
    let (cluster, url) = server();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls.jsonl");
    let (all, step) = (rounds().to_string(), STEP.to_string());
    let program = ["org.pgtally.test.Joined", &url, "postgres", &all, &step];
    let mut client = java.start("methods=none.None", &program);
    let before = calls(&client);
    let mut trace = trace(&cluster, &client, &file);
    eventually("the client's ring is armed", || armed(&client.segment()));
    eventually("the server's rings are armed", || armed(&support::segment(&cluster)));
    let read_before = messages(&support::segment(&cluster));
    for step in 1..=rounds().div_ceil(STEP) {
        client.go();
        client.until("step");
        // Each round of a connection ends with this statement.
        let expected = 2 * rounds().min(step * STEP);
        eventually("the calls are joined", || {
            let text = std::fs::read_to_string(&file).unwrap();
            text.matches("\"statement\":\"truncate t\"").count() as u64 == expected
        });
    }
    client.finish();
    let made = calls(&client) - before;
    let mut read = messages(&support::segment(&cluster));
    for (kind, count) in read_before {
        *read.get_mut(&kind).unwrap() -= count;
    }
    interrupt(&mut trace);
    client.end();
    let text = std::fs::read_to_string(&file).unwrap();
    (text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), made, read)
}

/// Word traces_armed of the segment's header.
fn armed(segment: &Path) -> bool {
    let mut word = [0; 8];
    std::fs::File::open(segment)
        .unwrap()
        .read_exact_at(&mut word, header::TRACES_ARMED as u64)
        .unwrap();
    word != [0; 8]
}

#[test]
fn each_call_gets_its_own_messages_and_its_parts_fill_its_time() {
    let Some(java) = java() else { return };
    let (mut lines, made, read) = joined(&java);
    let end = lines.pop().unwrap();
    // A session that starts meanwhile is traced from its second message on, at the latest.
    let before = end["unjoined"]["before"].as_u64().unwrap();
    assert_eq!(end["joined"].as_u64().unwrap() + before, made, "{end:#}");
    assert!(before <= 2 * RECONNECTED, "{end:#}");
    assert_eq!(end["joined"], lines.len() as u64);
    assert!(made > rounds() * 30, "{made}");
    let (mut with_query, mut slept) = (0, 0);
    let mut sessions = BTreeSet::new();
    let mut by_ordinal = BTreeMap::new();
    for line in &lines {
        let ns = |key: &str| line[key].as_u64().unwrap();
        let parts = ["encode_ns", "network_ns", "server_ns", "driver_ns", "collecting_ns"];
        assert_eq!(parts.into_iter().map(ns).sum::<u64>(), ns("length_ns"), "{line:#}");
        let statement = line["statement"].as_str().unwrap();
        let messages = line["messages"].as_array().unwrap();
        let copies = statement.starts_with("copy");
        let last = messages.last().unwrap();
        assert!(last == "Sync" || last == "Query", "{line:#}");
        assert!(ns("server_ns") + ns("overlap_ns") > 0 || copies, "{line:#}");
        // Statements differ by their number of columns.
        let columns = |text: &str| Some(text.split_once(" as c")?.1.matches(',').count());
        if let (Some(sent), Some(query)) = (columns(statement), line["server_query"].as_str()) {
            // A transaction begins with the statement.
            if !query.eq_ignore_ascii_case("begin") {
                assert_eq!(columns(query), Some(sent), "{line:#}");
                with_query += 1;
            }
        }
        sessions.insert(line["pid"].as_u64().unwrap());
        for (ordinal, kind) in (ns("first_message")..).zip(messages) {
            by_ordinal.insert((ns("pid"), ordinal), kind.as_str().unwrap().to_string());
        }
        if statement.contains("pg_sleep") {
            // The others are cancelled.
            assert!(ns("server_ns") >= 5_000_000 || !statement.contains('?'), "{line:#}");
            slept += 1;
        }
    }
    // The calls contain no message that the server did not read; missing messages belong to calls before a
    // trace.
    let mut of_calls: BTreeMap<String, u64> = BTreeMap::new();
    for kind in by_ordinal.into_values() {
        *of_calls.entry(kind).or_default() += 1;
    }
    let mut missing = 0;
    for (kind, count) in &of_calls {
        assert!(*count <= read[kind], "{kind}: {of_calls:?} {read:?}");
        missing += read[kind] - count;
    }
    assert!((before..=MESSAGES * before).contains(&missing), "{of_calls:?} {read:?} {before}");
    assert!(of_calls.len() >= 6, "{of_calls:?}");
    assert!(with_query > lines.len() / 3, "{with_query} of {}", lines.len());
    assert!(sessions.len() as u64 > 3, "{sessions:?}");
    // On both connections, every 50 rounds: one that ends, and 25 rounds later one that is cancelled.
    let (ended, cancelled) = (rounds().div_ceil(50), rounds().saturating_sub(25).div_ceil(50));
    assert_eq!(slept, 2 * (ended + cancelled));
}

/// Seconds by which the other machine's clock is ahead.
const AHEAD: u32 = 100_000;

#[test]
fn calls_of_a_machine_with_another_clock_are_joined_within_the_bounds_of_round_trips() {
    let Some(java) = java() else { return };
    let allowed = elsewhere(AHEAD).arg("true").output().is_ok_and(|output| output.status.success());
    if !allowed {
        eprintln!("left out: time namespaces need root, and a kernel that has them");
        return;
    }
    let (cluster, url) = server();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls.jsonl");
    let program = ["org.pgtally.test.Joined", &url, "postgres", "10", "10"];
    let mut client = java.start_elsewhere(AHEAD, "methods=none.None", &program);
    let before = calls(&client);
    let mut stream = elsewhere(AHEAD);
    stream.arg(assert_cmd::cargo::cargo_bin("tally")).args(["calls", "--stream"]);
    let mut stream = stream.arg(client.segment()).stdout(Stdio::piped()).spawn().unwrap();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("tally"));
    command.args(["trace", "--application", "joined", "-o"]).arg(&file);
    command.args(["--client", "-"]).arg(support::segment(&cluster));
    let mut trace = command.stdin(stream.stdout.take().unwrap()).spawn().unwrap();
    eventually("the client's ring is armed", || armed(&client.segment()));
    eventually("the server's rings are armed", || armed(&support::segment(&cluster)));
    client.go();
    client.until("step");
    client.finish();
    let made = calls(&client) - before;
    client.end();
    // Both end when the client ends.
    assert!(stream.wait().unwrap().success());
    assert!(trace.wait().unwrap().success());
    let text = std::fs::read_to_string(&file).unwrap();
    let mut lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let end = lines.pop().unwrap();
    let before = end["unjoined"]["before"].as_u64().unwrap();
    assert_eq!(end["joined"].as_u64().unwrap() + before, made, "{end:#}");
    let apart = -(i64::from(AHEAD) * 1_000_000_000);
    assert!(!lines.is_empty());
    for line in &lines {
        let ns = |key: &str| line[key].as_u64().unwrap();
        let parts = ["encode_ns", "network_ns", "server_ns", "driver_ns", "collecting_ns"];
        assert_eq!(parts.into_iter().map(ns).sum::<u64>(), ns("length_ns"), "{line:#}");
        let wrong = line["clock_offset_ns"].as_i64().unwrap().abs_diff(apart);
        assert!(wrong <= ns("clock_error_ns"), "{wrong}: {line:#}");
        assert!(line["ns"].as_i64().unwrap().abs() < 600_000_000_000, "{line:#}");
        // The server worked within the call, which bounds how far the clocks can be apart. COPY data says
        // nothing.
        let copies = line["statement"].as_str().unwrap().starts_with("copy");
        assert!(copies || ns("clock_error_ns") <= ns("length_ns") / 2 + 1, "{line:#}");
    }
}

#[test]
fn what_cannot_be_joined_is_reported() {
    let Some(java) = java() else { return };
    let (cluster, url) = server();
    let segment = support::segment(&cluster);
    let program = ["org.pgtally.test.Joined", &url, "postgres", "2", "2"];
    let mut client = java.start("methods=none.None", &program);
    for name in ["x.pftrace", "x.html", "x.otlp.json"] {
        let mut refused = tally();
        refused.args(["trace", "1", "-o", name, "--client"]).arg(client.segment()).arg(&segment);
        assert!(complaint(&mut refused, 2).contains(".jsonl"), "{name}");
    }
    let mut of_nothing = tally();
    of_nothing
        .args(["trace", "--application", "joined", "--client", "/dev/shm/none"])
        .arg(&segment);
    assert!(complaint(&mut of_nothing, 2).contains("/dev/shm/none"));
    // No session is traced, so all calls belong to others.
    let trace = Command::new(assert_cmd::cargo::cargo_bin("tally"))
        .args(["trace", "--application", "others", "--client"])
        .arg(client.segment())
        .arg(&segment)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    eventually("the client's ring is armed", || armed(&client.segment()));
    client.go();
    client.until("step");
    client.finish();
    signal(&trace);
    let text = String::from_utf8(trace.wait_with_output().unwrap().stdout).unwrap();
    assert!(text.contains("0 calls joined") && text.contains("not of this server"), "{text}");
    client.end();
}

/// PgBouncer in front of a server, on a port of its own; ends with the value.
struct Bouncer {
    child: Child,
    port: u16,
}

impl Bouncer {
    /// `None`, with a message, if it is not installed.
    fn start(cluster: &Cluster, port_of_server: u16, mode: &str) -> Option<Bouncer> {
        let program = Path::new("/usr/sbin/pgbouncer");
        if !program.exists() {
            eprintln!("left out: there is no {}", program.display());
            return None;
        }
        let port = support::ports::free_port();
        let (file, users) = (cluster.dir().join("pgbouncer.ini"), cluster.dir().join("users"));
        let text = format!(
            "[databases]\npostgres = host=127.0.0.1 port={port_of_server}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {}\npool_mode = {mode}\n\
             ignore_startup_parameters = extra_float_digits\n",
            users.display()
        );
        let known = format!("\"postgres\" \"{}\"\n", scratch::password());
        for (file, text) in [(&file, text), (&users, known)] {
            files::write(file, text.as_bytes(), files::Access::Owner).unwrap();
            cluster.os_user().chown(file).unwrap();
        }
        let mut command = cluster.os_user().command(program);
        command.current_dir(cluster.dir());
        let child = command.arg(&file).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut bouncer = Bouncer { child, port };
        eventually("PgBouncer accepts connections", || {
            assert!(bouncer.child.try_wait().unwrap().is_none(), "it has ended");
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Some(bouncer)
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn calls_through_a_pooler_are_reported_as_not_joined() {
    through_a_pooler("session");
}

#[test]
fn calls_through_a_pooler_that_shares_sessions_are_reported_as_not_joined() {
    through_a_pooler("transaction");
}

fn through_a_pooler(mode: &str) {
    let Some(java) = java() else { return };
    let loaded = support::plain().setting("shared_preload_libraries", "pg_tally");
    let (cluster, port) = support::on_loopback(loaded);
    let Some(bouncer) = Bouncer::start(&cluster, port, mode) else { return };
    // Shared sessions cannot have prepared statements of a single client.
    let shared = if mode == "transaction" { "&prepareThreshold=0" } else { "" };
    let url =
        format!("jdbc:postgresql://127.0.0.1:{}/postgres?sslmode=disable{shared}", bouncer.port);
    let mut client =
        java.start("methods=none.None", &["org.pgtally.test.Joined", &url, "postgres", "2", "2"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls.jsonl");
    let before = calls(&client);
    let mut trace = trace(&cluster, &client, &file);
    eventually("the client's ring is armed", || armed(&client.segment()));
    client.go();
    client.until("step");
    client.finish();
    let made = calls(&client) - before;
    interrupt(&mut trace);
    client.end();
    let text = std::fs::read_to_string(&file).unwrap();
    let end: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    // The process ID that the driver was given is PgBouncer's invention.
    assert_eq!(end["joined"], 0, "{end:#}");
    assert_eq!(end["unjoined"]["other_processes"], made, "{end:#}");
}
