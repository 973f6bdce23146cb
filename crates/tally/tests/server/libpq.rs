// SPDX-License-Identifier: PostgreSQL
//! libtally_pq.so in real clients: their calls are counted exactly, whatever they do, and the clients are not
//! harmed.

use crate::support;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::shared_server::Profile;
use crate::support::verify::{Claim, Trial};
use crate::support::{complaint, output, tally};
use scratch::Cluster;
use serde_json::Value;
use tempfile::TempDir;

fn built(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/libpq").join(name)
}

/// Whether library and programs have been built. Without them, a test is skipped unless PGTALLY_LIBPQ_REQUIRED is
/// set.
fn ready() -> bool {
    let names = ["libtally_pq.so", "program", "program_sanitized"];
    let missing = names.iter().find(|name| !built(name).exists());
    if let Some(name) = missing {
        assert!(std::env::var_os("PGTALLY_LIBPQ_REQUIRED").is_none(), "no {name}");
        eprintln!("left out: {name} is missing (make libpq)");
    }
    missing.is_none()
}

/// A directory for segments, which programs leave there.
struct Segments(TempDir);

impl Segments {
    fn new() -> Segments {
        Segments(tempfile::tempdir_in("/dev/shm").unwrap())
    }

    /// A measured client of this server. `sanitized`: the library is linked into it.
    fn client(&self, cluster: &Cluster, program: &Path, sanitized: bool) -> Command {
        let mut command = Command::new(program);
        command
            .env("PGTALLY_LIBPQ", format!("keep=on,directory={}", self.0.path().display()))
            .env("ASAN_OPTIONS", "detect_leaks=0")
            .env("PGHOST", cluster.host())
            .env("PGPORT", cluster.port().to_string())
            .env("PGUSER", cluster.user())
            .env("PGDATABASE", "postgres")
            .env("PGAPPNAME", "measured");
        if !sanitized {
            command.env("LD_PRELOAD", built("libtally_pq.so"));
        }
        command
    }

    /// The existing segments, by PID.
    fn segments(&self) -> Vec<Measured> {
        let mut paths: Vec<PathBuf> =
            std::fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.iter().map(|path| Measured::read(path)).collect()
    }

    /// The only one.
    fn only(&self) -> Measured {
        let mut segments = self.segments();
        assert_eq!(segments.len(), 1);
        segments.remove(0)
    }
}

/// The output of `tally methods --json`.
struct Measured(Value);

impl Measured {
    fn read(segment: &Path) -> Measured {
        let text = output(tally().args(["methods", "--json"]).arg(segment));
        let json: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["exact"], true, "{json:#}");
        Measured(json)
    }

    fn row(&self, function: &str) -> &Value {
        let rows = self.0["methods"].as_array().unwrap();
        rows.iter().find(|row| row["method"] == function).unwrap_or(&Value::Null)
    }

    fn number(&self, function: &str, key: &str) -> u64 {
        self.row(function)[key].as_u64().unwrap_or(0)
    }

    fn calls(&self, function: &str) -> u64 {
        self.number(function, "calls")
    }

    fn seconds(&self, function: &str, key: &str) -> f64 {
        match key {
            "inclusive" => self.row(function)["inclusive"]["seconds"].as_f64().unwrap(),
            key => self.row(function)[key].as_f64().unwrap(),
        }
    }
}

/// The output of a command that must succeed.
fn succeed(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

/// A server that logs each statement of the measured clients.
fn server() -> Cluster {
    let logged = [("log_statement", "all"), ("log_line_prefix", "%a ")];
    support::start(support::plain().settings(logged))
}

/// Number of statements with this prefix that the server has logged for the measured clients.
fn logged(cluster: &Cluster, begins: &str) -> u64 {
    let log = cluster.log();
    log.lines().filter(|line| line.starts_with(&format!("measured LOG:  {begins}"))).count() as u64
}

/// Runs the program of client/libpq/test: preloaded, and under sanitizers. Returns its output.
fn program(what: &str, times: u64, check: impl Fn(&Segments, &str)) {
    if !ready() {
        return;
    }
    let cluster = Profile::Plain.server();
    for (name, sanitized) in [("program", false), ("program_sanitized", true)] {
        let place = Segments::new();
        let mut command = place.client(cluster, &built(name), sanitized);
        let printed = succeed(command.args([what, &times.to_string(), ""]));
        check(&place, &String::from_utf8(printed.stdout).unwrap());
    }
}

/// A client whose program sleeps until it is dropped.
struct Resting(std::process::Child);

impl Drop for Resting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_file_that_is_no_segment_of_the_past_is_left_alone() {
    if !ready() {
        return;
    }
    let cluster = Profile::Plain.server();
    let place = Segments::new();
    let path = place.0.path().join("it");
    let run = |what: &str| {
        let mut command = place.client(cluster, &built("program"), false);
        command.env("PGTALLY_LIBPQ", format!("file={}", path.display()));
        command.args([what, "1", ""]).stdin(Stdio::null());
        command
    };
    // A file with other contents, and a link to one.
    std::fs::write(&path, "not a segment").unwrap();
    succeed(&mut run("plain"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "not a segment");
    std::fs::rename(&path, place.0.path().join("other")).unwrap();
    std::os::unix::fs::symlink(place.0.path().join("other"), &path).unwrap();
    succeed(&mut run("plain"));
    assert!(path.symlink_metadata().unwrap().is_symlink());
    std::fs::remove_file(&path).unwrap();
    // The segment of a live process, for example in another container with the same PID.
    let inode = || std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&path).unwrap());
    let mut resting = Resting(run("rest").stdout(Stdio::piped()).spawn().unwrap());
    let mut output = std::io::BufReader::new(resting.0.stdout.take().unwrap());
    support::line_of(&mut output);
    let first = inode();
    succeed(&mut run("plain"));
    assert_eq!(inode(), first);
    // The process was killed, and the file that it left is replaced.
    drop(resting);
    assert_eq!(inode(), first);
    succeed(&mut run("plain"));
    assert!(!path.exists());
}

fn assert_calls(measured: &Measured, connections: u64, executions: u64) {
    assert_eq!(measured.calls("PQconnectdb"), connections);
    assert_eq!(measured.calls("PQfinish"), connections);
    assert_eq!(measured.calls("PQexec"), executions);
    assert_eq!(measured.calls("PQclear"), executions);
    assert_eq!(measured.calls("PQgetResult"), 0, "libpq's own calls are not the program's");
}

#[test]
fn calls_of_threads_are_counted_and_their_time_is_that_of_what_libpq_does() {
    program("threads", 200, |place, _| {
        let client = place.only();
        assert_calls(&client, 8, 1600);
        assert_eq!(client.0["program"].as_str().unwrap().split('_').next(), Some("program"));
        assert!(client.0["java"].as_str().unwrap().starts_with("libpq 1"), "{:#}", client.0);
        // An execution sends once, and waits at least once for its answer.
        assert!(client.calls("send") >= 1600 && client.calls("recv") >= 1600);
        let inner: f64 =
            ["send", "recv", "poll"].iter().map(|name| client.seconds(name, "inclusive")).sum();
        let callees: f64 = ["PQexec", "PQconnectdb", "PQfinish"]
            .iter()
            .map(|name| client.seconds(name, "callees_seconds"))
            .sum();
        assert!((inner / callees - 1.0).abs() < 1e-6, "{inner} s, {callees} s");
        // The ledger has the same time: nothing is lost, and nothing is counted twice.
        let rows = client.0["methods"].as_array().unwrap();
        let exclusive: f64 =
            rows.iter().map(|row| row["exclusive_seconds"].as_f64().unwrap()).sum();
        let busy = client.0["busy_seconds"].as_f64().unwrap();
        assert!((exclusive / busy - 1.0).abs() < 1e-6, "{exclusive} s, {busy} s");
    });
}

#[test]
fn each_process_has_its_own_segment_after_a_fork() {
    program("fork", 50, |place, printed| {
        let segments = place.segments();
        assert_eq!(segments.len(), 3);
        for client in segments {
            assert_calls(&client, 1, 50);
            assert!(printed.contains(&format!("process {}\n", client.0["pid"])), "{printed}");
        }
    });
}

#[test]
fn a_forked_child_does_not_replace_the_file_that_its_parent_was_given() {
    if !ready() {
        return;
    }
    let cluster = Profile::Plain.server();
    let place = Segments::new();
    let segment = place.0.path().join("given");
    let mut command = place.client(cluster, &built("program"), false);
    command.env("PGTALLY_LIBPQ", format!("keep=on,file={}", segment.display()));
    let printed = succeed(command.args(["fork", "50", ""])).stdout;
    let printed = String::from_utf8(printed).unwrap();
    let parent = printed.lines().find_map(|line| line.strip_prefix("process ")).unwrap();
    let measured = |path: &Path| {
        let text = output(tally().args(["methods", "--json"]).arg(path));
        Measured(serde_json::from_str(&text).unwrap())
    };
    let client = measured(&segment);
    assert_calls(&client, 1, 50);
    assert_eq!(client.0["pid"].to_string(), parent);
    let children: Vec<PathBuf> = std::fs::read_dir(place.0.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| *path != segment)
        .collect();
    assert_eq!(children.len(), 2, "{children:?}");
    for child in children {
        let client = measured(&child);
        assert_calls(&client, 1, 50);
        assert!(child.display().to_string().ends_with(&format!("given.{}", client.0["pid"])));
    }
}

#[test]
fn a_call_that_never_returns_does_not_disturb_those_that_follow() {
    program("jump", 50, |place, _| {
        let client = place.only();
        assert_eq!(client.calls("PQexec"), 50, "20 more never returned");
        assert_eq!(client.calls("PQconnectdb"), 21);
        let (inclusive, callees) =
            (client.seconds("PQexec", "inclusive"), client.seconds("PQexec", "callees_seconds"));
        assert!(callees <= inclusive && inclusive < 60.0, "{callees} s of {inclusive} s");
    });
}

#[test]
fn a_call_within_another_counts_and_its_time_is_not_there_twice() {
    program("nested", 50, |place, _| {
        let client = place.only();
        assert_calls(&client, 2, 100);
        assert_eq!(client.row("PQexec")["inclusive"]["count"], 100);
        let rows = client.0["methods"].as_array().unwrap();
        let exclusive: f64 =
            rows.iter().map(|row| row["exclusive_seconds"].as_f64().unwrap()).sum();
        let busy = client.0["busy_seconds"].as_f64().unwrap();
        assert!((exclusive / busy - 1.0).abs() < 1e-6, "{exclusive} s, {busy} s");
        assert!(client.seconds("PQexec", "inclusive") <= busy);
    });
}

/// How many calls happened in signal handlers, and how many of them were counted.
fn in_handlers(place: &Segments, printed: &str) -> (u64, u64) {
    let client = place.only();
    let number = |name: &str| -> u64 {
        let line = printed.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().parse().unwrap()
    };
    let (handled, rounds) = (number("handled"), number("rounds"));
    assert_eq!((client.calls("PQconnectdb"), client.calls("PQexec")), (rounds + 1, 200 * rounds));
    let cancelled = client.calls("PQcancel");
    // A signal that interrupts the measuring itself is not measured.
    assert!(0 < cancelled && cancelled <= handled, "{cancelled} of {handled}");
    (handled, cancelled)
}

#[test]
fn libpq_can_be_called_in_a_handler_of_signals() {
    program("signal", 200, |place, printed| {
        in_handlers(place, printed);
    });
}

#[test]
#[ignore = "verify: few calls of libpq in handlers of signals interrupt the measuring itself"]
fn verify_calls_in_handlers_of_signals() {
    let text = "four of five calls of libpq in handlers of signals are counted";
    Claim { text, alarm: 0.01, n: 2, m: 3 }.check(|_| {
        let all = std::cell::RefCell::new(Vec::new());
        program("signal", 200, |place, printed| {
            all.borrow_mut().push(in_handlers(place, printed));
        });
        let all = all.into_inner();
        Trial {
            holds: all.iter().all(|(handled, counted)| counted * 10 >= handled * 8),
            result: format!("{all:?}"),
            half_width: "-".into(),
        }
    });
}

#[test]
fn calls_of_ended_threads_and_at_the_end_of_the_program_are_counted() {
    program("late", 50, |place, _| assert_calls(&place.only(), 3, 150));
}

#[test]
fn a_program_that_executes_itself_begins_anew() {
    program("exec", 50, |place, _| assert_calls(&place.only(), 1, 50));
}

#[test]
fn a_killed_program_leaves_what_it_did() {
    if !ready() {
        return;
    }
    let cluster = Profile::Plain.server();
    let place = Segments::new();
    let mut command = place.client(cluster, &built("program"), false);
    let status = command.args(["killed", "50", ""]).status().unwrap();
    assert!(!status.success());
    assert_calls(&place.only(), 1, 50);
    // It was to be kept.
    let list = || output(tally().args(["ls", "--directory"]).arg(place.0.path()));
    list();
    assert_eq!(place.segments().len(), 1);
    let options = format!("directory={}", place.0.path().display());
    let mut command = place.client(cluster, &built("program"), false);
    let status = command.args(["killed", "50", ""]).env("PGTALLY_LIBPQ", options).status().unwrap();
    assert!(!status.success());
    assert_eq!(place.segments().len(), 2);
    let text = list();
    assert!(text.contains("its process was killed"), "{text}");
    assert_eq!(place.segments().len(), 1);
}

#[test]
fn a_segment_that_disappears_and_one_that_cannot_be_made_do_no_harm() {
    if !ready() {
        return;
    }
    let cluster = Profile::Plain.server();
    for (name, sanitized) in [("program", false), ("program_sanitized", true)] {
        let place = Segments::new();
        let segment = place.0.path().join("it");
        let mut command = place.client(cluster, &built(name), sanitized);
        command.env("PGTALLY_LIBPQ", format!("file={}", segment.display()));
        succeed(command.args(["truncate", "50", ""]).env("SEGMENT", &segment));
        assert!(!segment.exists(), "it is removed when the program ends");
        for refused in ["directory=/proc", "directory=/nowhere", "directory=/", "threads=x,=,,file"]
        {
            let mut command = place.client(cluster, &built(name), sanitized);
            succeed(command.args(["threads", "5", ""]).env("PGTALLY_LIBPQ", refused));
        }
        let mut command = place.client(cluster, &built(name), sanitized);
        command.env("PGTALLY_LIBPQ", format!("keep=on,threads=2,file={}", segment.display()));
        succeed(command.args(["threads", "50", ""]));
        let text = output(tally().args(["methods", "--json"]).arg(&segment));
        let json: Value = serde_json::from_str(&text).unwrap();
        let calls = Measured(json).calls("PQexec");
        assert!(calls >= 100 && calls.is_multiple_of(50), "whole threads: {calls}");
    }
}

#[test]
fn connections_that_are_refused_are_counted() {
    if !ready() {
        return;
    }
    let cluster = support::plain().create().unwrap();
    let place = Segments::new();
    let mut command = place.client(&cluster, &built("program"), false);
    succeed(command.args(["refused", "50", "host=/nowhere"]));
    let client = place.only();
    assert_eq!(
        (client.calls("PQconnectdb"), client.calls("PQfinish"), client.calls("send")),
        (50, 50, 0)
    );
}

#[test]
fn pgbench_makes_the_calls_that_the_server_sees() {
    if !ready() {
        return;
    }
    let cluster = server();
    cluster.pgbench_init(1).unwrap();
    let pgbench = cluster.binaries().program("pgbench");
    for (protocol, function, begins) in [
        ("simple", "PQsendQuery", "statement: SELECT abalance"),
        ("extended", "PQsendQueryParams", "execute <unnamed>: SELECT abalance"),
        ("prepared", "PQsendQueryPrepared", "execute P"),
    ] {
        let place = Segments::new();
        let before = logged(&cluster, begins);
        let mut command = place.client(&cluster, &pgbench, false);
        command.args(["-S", "-n", "-c", "4", "-j", "4", "-t", "500", "-M", protocol]);
        let printed = String::from_utf8(succeed(&mut command).stdout).unwrap();
        assert!(printed.contains("2000/2000"), "{printed}");
        let client = place.only();
        assert_eq!(client.calls(function), logged(&cluster, begins) - before, "{protocol}");
        assert_eq!(client.calls(function), 2000, "{protocol}");
    }
}

#[test]
fn psql_can_be_interrupted_and_its_shell_commands_are_none_of_its_calls() {
    if !ready() {
        return;
    }
    let cluster = server();
    let place = Segments::new();
    let psql = cluster.binaries().program("psql");
    let mut child = place
        .client(&cluster, &psql, false)
        .args(["-X", "-c", "\\! echo of the shell", "-c", "select 1", "-c", "select pg_sleep(60)"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    support::eventually("psql waits", || logged(&cluster, "statement: select pg_sleep") == 1);
    assert!(Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap()
        .success());
    let status = child.wait().unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("due to user request"), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stdout).contains("of the shell"), "{ended:?}");
    let client = place.only();
    assert_eq!((client.calls("PQcancel"), client.number("PQcancel", "thrown")), (1, 0));
    let failed: u64 =
        ["PQexec", "PQgetResult"].iter().map(|it_is| client.number(it_is, "thrown")).sum();
    assert_eq!(failed, 1, "{:#}", client.0);
}

#[test]
fn bytes_are_those_of_the_socket() {
    if !ready() || Command::new("strace").arg("-V").output().is_err() {
        return;
    }
    let cluster = server();
    let place = Segments::new();
    let calls = place.0.path().join("calls");
    let preload = format!("LD_PRELOAD={}", built("libtally_pq.so").display());
    let mut command = place.client(&cluster, Path::new("strace"), true);
    command.args(["-f", "-e", "trace=sendto,recvfrom", "-o"]).arg(&calls);
    command.arg("env").arg(preload).arg(cluster.binaries().program("psql"));
    command.args(["-X", "-A", "-c", "select repeat('x', 1000000)", "-c", "select 1/0"]);
    let ended = command.output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    let text = std::fs::read_to_string(&calls).unwrap();
    std::fs::remove_file(&calls).unwrap();
    let client = place.only();
    for (call, function) in [("sendto(", "send"), ("recvfrom(", "recv")] {
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(call)).collect();
        let bytes: u64 = lines
            .iter()
            .filter_map(|line| line.rsplit_once("= ")?.1.split(' ').next()?.parse::<u64>().ok())
            .sum();
        assert_eq!(client.calls(function), lines.len() as u64, "{text}");
        assert_eq!(client.number(function, "bytes"), bytes, "{text}");
    }
    assert!(client.number("recv", "bytes") > 1_000_000);
    let of_calls = client.0["methods"].as_array().unwrap().iter();
    let of_calls = of_calls.filter(|row| row["method"].as_str().unwrap().starts_with("PQ"));
    let sum: u64 = of_calls.map(|row| row["bytes"].as_u64().unwrap()).sum();
    assert_eq!(sum, client.number("send", "bytes") + client.number("recv", "bytes"));
}

/// For psycopg2: processes, threads, and a libpq that nothing else in the process can see.
const PSYCOPG2: &str = "
import os, threading, multiprocessing, psycopg2
def work():
    connection = psycopg2.connect('')
    cursor = connection.cursor()
    for i in range(50):
        cursor.execute('select %s', (i,))
        assert cursor.fetchone() == (i,)
    connection.close()
threads = [threading.Thread(target=work) for _ in range(4)]
for it in threads: it.start()
for it in threads: it.join()
for _ in range(2):
    process = multiprocessing.get_context('fork').Process(target=work)
    process.start()
    process.join()
    assert process.exitcode == 0
";

#[test]
fn psycopg2_is_measured_in_each_process() {
    if !ready() {
        return;
    }
    let python = Path::new("/usr/bin/python3");
    let has = Command::new(python).args(["-c", "import psycopg2"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        return eprintln!("left out: there is no python3-psycopg2");
    }
    let cluster = server();
    let place = Segments::new();
    succeed(place.client(&cluster, python, false).args(["-c", PSYCOPG2]));
    let segments = place.segments();
    assert_eq!(segments.len(), 3);
    let executions: u64 =
        segments.iter().map(|segment| segment.calls("PQexec") + segment.calls("PQsendQuery")).sum();
    // psycopg2 begins a transaction before the first statement of each connection.
    assert_eq!(logged(&cluster, "statement: "), 6 * 51);
    assert_eq!(executions, 6 * 51);
    let opened = segments
        .iter()
        .map(|segment| segment.calls("PQconnectdb") + segment.calls("PQconnectStart"))
        .sum::<u64>();
    assert_eq!(opened, 6);
}

#[test]
fn a_process_without_a_segment_is_explained() {
    let message = complaint(tally().args(["methods", &std::process::id().to_string()]), 1);
    assert!(message.contains("LD_PRELOAD=libtally_pq.so"), "{message}");
    if !ready() {
        return;
    }
    let mut child =
        Command::new("sleep").arg("60").env("LD_PRELOAD", built("libtally_pq.so")).spawn().unwrap();
    let pid = child.id().to_string();
    support::eventually("it has the library", || {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        maps.contains("libtally_pq.so")
    });
    let message = complaint(tally().args(["methods", &pid]), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(message.contains("has seen no libpq call"), "{message}");
}
