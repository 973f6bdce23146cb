// SPDX-License-Identifier: PostgreSQL
//! `tally trace`: its output agrees with strace and the server's own accounts, whichever process is killed
//! meanwhile.
//!
//! If strace may not trace, the tests that need it print a message and pass.

use crate::support;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::json_reference::{assert_documented, section};
use crate::support::strace::{Call, Strace};
use crate::support::verify::{Claim, Trial};
use crate::support::{complaint, eventually, segment, start, tally};
use postgres::{Client, NoTls};
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};
use rustix::process::{kill_process, Pid, Signal};
use scratch::{Cluster, StopMode};
use segment::layout::{header, trace};
use segment::Segment;
use serde_json::Value;

/// In the header: the rings' region, the level word, which rings have memory.
const TRACES: u64 = header::TRACES as u64;
const LEVEL_WORD: u64 = header::LEVEL_WORD as u64;
/// In the head of a ring: its owner.
const OWNER_PID: u64 = trace::OWNER_PID as u64;
const TRACES_ARMED: u64 = header::TRACES_ARMED as u64;

pub fn server() -> Cluster {
    let builder = support::plain();
    // Reads that a worker makes are not the session's.
    let builder =
        if support::major() >= 18 { builder.setting("io_method", "sync") } else { builder };
    start(
        builder
            .setting("shared_preload_libraries", "pg_tally")
            .setting("autovacuum", "off")
            .setting("shared_buffers", "1MB")
            .setting("max_parallel_workers_per_gather", "0")
            .setting("effective_io_concurrency", "0")
            .setting("checkpoint_timeout", "1h")
            .setting("bgwriter_lru_maxpages", "0"),
    )
}

pub fn session(cluster: &Cluster) -> (Client, i32) {
    let mut client = cluster.config().application_name("traced").connect(NoTls).unwrap();
    // Not a prepared statement: the client would close it with messages of its own, at some time.
    let rows = client.simple_query("select pg_backend_pid()").unwrap();
    let pid = rows.iter().find_map(|message| match message {
        postgres::SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
        _ => None,
    });
    (client, pid.unwrap())
}

/// `tally trace` in the background, with its output in a file.
pub struct Tracer {
    child: Child,
    output: PathBuf,
    marks: u64,
    _folder: tempfile::TempDir,
}

impl Tracer {
    pub fn start(cluster: &Cluster, arguments: &[&str]) -> Tracer {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("trace");
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("tally"));
        command.arg("trace").args(arguments);
        command.arg(segment(cluster));
        command.stdin(Stdio::null()).stdout(File::create(&output).unwrap());
        command.stderr(File::create(folder.path().join("errors")).unwrap());
        Tracer { child: command.spawn().unwrap(), output, marks: 0, _folder: folder }
    }

    /// Waits until the session is traced; the session must do something for that.
    pub fn wait_for(self, client: &mut Client) -> Tracer {
        eventually("the session is traced", || {
            client.batch_execute("select 1").unwrap();
            self.text().contains("\"what\":\"trace\"")
        });
        self
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until it has read what the session has done. Otherwise a ring may be overwritten before the reader
    /// gets a CPU.
    fn catch_up(&mut self, client: &mut Client) {
        self.marks += 1;
        let rows = 1000 + self.marks;
        client.batch_execute(&format!("select generate_series(1, {rows})")).unwrap();
        let mark = format!("\"rows\":{rows}");
        eventually("the tracer has caught up", || self.text().contains(&mark));
    }

    /// Ends it as a user would, once the sessions wait for their clients, and returns its lines.
    pub fn stop(mut self, cluster: &Cluster) -> Vec<Value> {
        // Before such a wait, everything is in the ring.
        wait_until_idle(cluster);
        self.signal(Signal::INT);
        assert!(self.child.wait().unwrap().success());
        self.lines()
    }

    fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Until the traced sessions wait for their clients.
pub fn wait_until_idle(cluster: &Cluster) {
    let mut observer = cluster.connect().unwrap();
    let busy = "select count(*) from pg_stat_activity where application_name = 'traced' \
                and (state not like 'idle%' or wait_event is distinct from 'ClientRead')";
    eventually("all sessions are idle", || {
        observer.query_one(busy, &[]).unwrap().get::<_, i64>(0) == 0
    });
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn lines_about<'l>(lines: &'l [Value], what: &str) -> Vec<&'l Value> {
    lines.iter().filter(|line| line["what"] == what).collect()
}

/// An operation on a relation's file: read, write or extend; the file's path in the data directory; block.
type Operation = (String, String, u64);

/// The operations in a trace.
fn traced(lines: &[Value]) -> Vec<Operation> {
    let waits = lines_about(lines, "wait").into_iter().filter(|line| line["block"].is_u64());
    waits
        .map(|line| {
            let text = |key: &str| line[key].as_str().unwrap().to_string();
            (text("operation"), text("file"), line["block"].as_u64().unwrap())
        })
        .collect()
}

/// From strace, which prints `pread64(5</data/base/5/16384>, ""..., 8192, 16384)`.
fn witnessed(calls: &[Call], data: &Path) -> Vec<Operation> {
    let data = data.canonicalize().unwrap();
    let mut operations = Vec::new();
    for call in calls {
        let path =
            call.arguments[0].split_once('<').map_or("", |(_, path)| path.trim_end_matches('>'));
        let Ok(file) = Path::new(path).strip_prefix(&data) else { continue };
        let file = file.to_str().unwrap();
        // Of relations, like the traced ones: no pg_control.
        let name = file.rsplit('/').next().unwrap();
        let relation = name.starts_with(|c: char| c.is_ascii_digit());
        let directory = ["base/", "global/"].iter().any(|folder| file.starts_with(folder));
        if !relation || !directory || call.result.is_none_or(|result| result <= 0) {
            continue;
        }
        let offset: u64 = call.arguments.last().unwrap().parse().unwrap();
        let operation = if call.name.starts_with("pread") { "read" } else { "write" };
        operations.push((operation.to_string(), file.to_string(), offset / 8192));
    }
    operations
}

/// An operation that extends a relation is a write to strace.
fn as_written(operations: Vec<Operation>) -> Vec<Operation> {
    let name = |name: String| if name == "extend" { "write".into() } else { name };
    operations.into_iter().map(|(operation, file, block)| (name(operation), file, block)).collect()
}

#[test]
fn reads_and_writes_are_those_of_strace_in_order_and_all_time_is_the_ledgers() {
    let cluster = server();
    cluster
        .psql(
            "create table a as select i, repeat('x', 200) t from generate_series(1, 40000) i;
             create table b (i int, t text)",
        )
        .unwrap();
    let (mut client, pid) = session(&cluster);
    let mut tracer = Tracer::start(&cluster, &[&pid.to_string(), "--json"]).wait_for(&mut client);
    tracer.catch_up(&mut client);
    let strace = Strace::start("pread64,pwrite64,preadv,pwritev", &[pid]);
    let before = traced(&tracer.lines()).len();
    for _ in 0..3 {
        client.batch_execute("select count(*) from a").unwrap();
        tracer.catch_up(&mut client);
        client.batch_execute("insert into b select i, t from a where i % 4 = 0").unwrap();
        tracer.catch_up(&mut client);
    }
    let calls = strace.map(Strace::stop);
    let lines = tracer.stop(&cluster);

    let sums = lines_about(&lines, "sums");
    assert_eq!(sums.len(), 1);
    assert_eq!(sums[0]["records_lost"], 0, "{}", sums[0]);
    assert_eq!(sums[0]["equals_ledger"], true, "{}", sums[0]);
    // They are compared at least at the start and at the end of the trace.
    assert!(sums[0]["compared_waits"].as_u64().unwrap() > 5_000, "{}", sums[0]);

    // Times only go forward, wait by wait.
    let mut at = None;
    for wait in lines_about(&lines, "wait") {
        let ns = wait["ns"].as_i64().unwrap();
        // Rounded to nanoseconds.
        assert!(at.is_none_or(|at: i64| ns >= at - 1), "{wait}");
        at = Some(ns + wait["length_ns"].as_i64().unwrap());
    }
    let statements: Vec<&Value> = lines_about(&lines, "step");
    let runs = statements.iter().filter(|step| step["name"] == "run").count();
    assert!(runs >= 6, "{runs}");
    assert!(statements.iter().any(|step| step["rows"] == 10_000), "the inserted rows");
    assert!(lines_about(&lines, "commit").len() >= 3);
    for message in lines_about(&lines, "message") {
        assert_eq!(message["message"], "Query", "{message}");
    }

    let Some(calls) = calls else { return };
    let ours = as_written(traced(&lines)[before..].to_vec());
    let theirs = witnessed(&calls, cluster.data_dir());
    assert!(theirs.len() > 5_000, "{}", theirs.len());
    if let Some(at) = (0..ours.len().max(theirs.len())).find(|&i| ours.get(i) != theirs.get(i)) {
        panic!("operation {at}: traced {:?}, strace {:?}", ours.get(at), theirs.get(at));
    }
}

#[test]
fn reads_of_a_join_are_charged_to_the_scan_that_makes_them() {
    let cluster = server();
    cluster
        .psql(
            "create table a as select i, repeat('x', 200) t from generate_series(1, 20000) i;
             create table b as select i, repeat('y', 400) t from generate_series(1, 20000) i;
             analyze",
        )
        .unwrap();
    let path = |name: &str| -> String {
        let mut client = cluster.connect().unwrap();
        client
            .query_one("select pg_relation_filepath($1::text::regclass)", &[&name])
            .unwrap()
            .get(0)
    };
    let (a, b) = (path("a"), path("b"));
    let (mut client, pid) = session(&cluster);
    client
        .batch_execute("set enable_mergejoin = off; set enable_nestloop = off; set jit = off")
        .unwrap();
    let tracer =
        Tracer::start(&cluster, &[&pid.to_string(), "--json", "--nodes"]).wait_for(&mut client);
    // The catalogs are read before.
    client.batch_execute("explain select count(*) from a join b using (i)").unwrap();
    let strace = Strace::start("pread64,preadv", &[pid]);
    client.batch_execute("select count(*) from a join b using (i)").unwrap();
    let calls = strace.map(Strace::stop);
    let lines = tracer.stop(&cluster);

    let name = |node: &Value| -> String {
        let named =
            lines_about(&lines, "node").into_iter().rev().find(|line| line["node"] == *node);
        named.map_or(String::new(), |line| line["name"].as_str().unwrap().to_string())
    };
    let mut reads: BTreeMap<(String, String), u64> = BTreeMap::new();
    for wait in lines_about(&lines, "wait") {
        let file = wait["file"].as_str().unwrap_or("");
        if wait["operation"] == "read" && (file == a || file == b) {
            *reads.entry((name(&wait["node"]), file.to_string())).or_default() += 1;
        }
    }
    let of_scan = |table: &str, file: &str| {
        reads.get(&(format!("Seq Scan on {table}"), file.to_string())).copied().unwrap_or(0)
    };
    assert_eq!(reads.len(), 2, "{reads:?}");
    if let Some(calls) = calls {
        let theirs = witnessed(&calls, cluster.data_dir());
        let count = |file: &str| theirs.iter().filter(|their| their.1 == file).count() as u64;
        assert!(count(&a) > 500 && count(&b) > 1000, "{} {}", count(&a), count(&b));
        assert_eq!((of_scan("a", &a), of_scan("b", &b)), (count(&a), count(&b)));
    }
    let rows = |node: &str| {
        let ends = lines_about(&lines, "node end").into_iter().rev();
        ends.filter(|end| name(&end["node"]) == node).map(|end| end["rows"].as_u64()).next()
    };
    assert_eq!(rows("Seq Scan on a"), Some(Some(20_000)));
    assert_eq!(rows("Aggregate"), Some(Some(1)));
}

#[test]
fn parallel_workers_have_traces_of_their_own() {
    let cluster = server();
    cluster
        .psql("create table a as select i, repeat('x', 200) t from generate_series(1, 40000) i; analyze a")
        .unwrap();
    let (mut client, pid) = session(&cluster);
    client
        .batch_execute(
            "set max_parallel_workers_per_gather = 2; set parallel_leader_participation = off;
             set min_parallel_table_scan_size = 0; set parallel_setup_cost = 0; set parallel_tuple_cost = 0",
        )
        .unwrap();
    let row = client
        .query_one(
            "select pg_relation_filepath('a'), relpages from pg_class where relname = 'a'",
            &[],
        )
        .unwrap();
    let (file, pages): (String, i32) = (row.get(0), row.get(1));
    let tracer =
        Tracer::start(&cluster, &[&pid.to_string(), "--json", "--nodes"]).wait_for(&mut client);
    client.batch_execute("select count(*) from a").unwrap();
    let lines = tracer.stop(&cluster);
    let traces = lines_about(&lines, "trace");
    let workers =
        traces.iter().filter(|trace| trace["leader_pid"].as_i64() == Some(i64::from(pid)));
    assert_eq!((traces.len(), workers.count()), (3, 2), "{traces:?}");
    let reads =
        lines_about(&lines, "wait").into_iter().filter(|wait| wait["file"] == file.as_str());
    let mut blocks: Vec<u64> = reads
        .filter(|wait| wait["operation"] == "read")
        .map(|wait| {
            assert_ne!(wait["pid"].as_i64(), Some(i64::from(pid)), "{wait}");
            assert!(wait["node"].is_u64(), "{wait}");
            wait["block"].as_u64().unwrap()
        })
        .collect();
    let read = blocks.len();
    blocks.sort_unstable();
    blocks.dedup();
    // Some are in the shared buffers still.
    assert!(read > pages as usize / 2 && read == blocks.len(), "{read} reads of {pages} pages");
    for sums in lines_about(&lines, "sums") {
        assert_ne!(sums["equals_ledger"], false, "{sums}");
    }
}

#[test]
fn cursors_outlive_the_trace_and_errors_leave_no_node_behind() {
    let cluster = server();
    cluster
        .psql(
            "create table a as select i, repeat('x', 200) t from generate_series(1, 20000) i;
             create table b as select i, repeat('y', 400) t from generate_series(1, 20000) i",
        )
        .unwrap();
    let (mut client, pid) = session(&cluster);
    let arguments = [&pid.to_string(), "--json", "--nodes"];
    let tracer = Tracer::start(&cluster, &arguments).wait_for(&mut client);
    client
        .batch_execute(
            "begin; declare kept cursor with hold for select i from a;
             declare lost cursor for select 1 / (i - 15000) from a; fetch 10 from kept; fetch 10 from lost",
        )
        .unwrap();
    drop(tracer.stop(&cluster));
    client.batch_execute("fetch 10 from lost; savepoint s").unwrap();
    assert!(client.batch_execute("fetch all from lost").is_err());
    client.batch_execute("rollback to s").unwrap();

    let tracer = Tracer::start(&cluster, &arguments).wait_for(&mut client);
    client.batch_execute("fetch 10 from kept; select count(*) from b; commit").unwrap();
    wait_until_idle(&cluster);
    client.batch_execute("fetch 10 from kept; close kept; select count(*) from b").unwrap();
    let lines = tracer.stop(&cluster);
    let waits = lines_about(&lines, "wait");
    let reads = waits.iter().filter(|wait| wait["activity"] == "IO:DataFileRead");
    assert!(reads.filter(|read| read["node"].is_u64()).count() > 2_000);
    let idle: Vec<_> =
        waits.iter().filter(|wait| wait["activity"] == "Client:ClientRead").collect();
    // The one between the two messages, at least.
    assert!(!idle.is_empty() && idle.iter().all(|wait| wait["node"].is_null()), "{idle:?}");
    assert!(!cluster.log().contains("terminated by signal"));
}

#[test]
fn a_server_that_stops_ends_the_trace_with_an_error() {
    let mut cluster = server();
    let (mut client, pid) = session(&cluster);
    let mut tracer = Tracer::start(&cluster, &[&pid.to_string(), "--json"]).wait_for(&mut client);
    cluster.stop(StopMode::Immediate).unwrap();
    assert_eq!(tracer.child.wait().unwrap().code(), Some(1));
    let errors = std::fs::read_to_string(tracer.output.with_file_name("errors")).unwrap();
    assert!(errors.contains("the server has stopped or was restarted"), "{errors}");
    // Everything that it did until then is there.
    assert_eq!(lines_about(&tracer.lines(), "sums").len(), 1);
}

#[test]
fn what_was_overwritten_before_it_was_read_is_counted() {
    let cluster = server();
    let (mut client, pid) = session(&cluster);
    let tracer = Tracer::start(&cluster, &[&pid.to_string(), "--json"]).wait_for(&mut client);
    tracer.signal(Signal::STOP);
    // Each call of the function's statement takes several records.
    client.batch_execute("create function f() returns int language plpgsql as 'begin perform 1 from pg_class limit 1; return 1; end'").unwrap();
    client.batch_execute("select count(f()) from generate_series(1, 10000)").unwrap();
    tracer.signal(Signal::CONT);
    client.batch_execute("select 4711").unwrap();
    let lines = tracer.stop(&cluster);
    let lost: u64 =
        lines_about(&lines, "lost").iter().map(|line| line["records"].as_u64().unwrap()).sum();
    let sums = lines_about(&lines, "sums");
    assert!(lost > 10_000, "{lost}");
    assert_eq!(sums[0]["records_lost"].as_u64(), Some(lost));
    assert_ne!(sums[0]["equals_ledger"], false, "{}", sums[0]);
    // It goes on after that.
    let after = lines.iter().rposition(|line| line["what"] == "lost").unwrap();
    assert!(lines_about(&lines[after..], "statement")
        .iter()
        .any(|statement| statement["query"] == "select $1"));
    assert!(!lines_about(&lines[after..], "message").is_empty());
}

#[test]
fn errors_and_locks_are_named() {
    let cluster = server();
    cluster.psql("create table t (i int primary key); insert into t values (1)").unwrap();
    let (mut client, pid) = session(&cluster);
    let tracer = Tracer::start(&cluster, &[&pid.to_string(), "--json"]).wait_for(&mut client);
    assert!(client.batch_execute("select 1 / (i - 1) from t").is_err());
    let (mut holder, holder_pid) = session(&cluster);
    holder.batch_execute("begin; update t set i = 1").unwrap();
    let waits = std::thread::spawn(move || {
        client.batch_execute("update t set i = 1").unwrap();
        client
    });
    eventually("the session waits", || {
        let sql = "select count(*) from pg_locks where not granted";
        holder.query_one(sql, &[]).unwrap().get::<_, i64>(0) == 1
    });
    holder.batch_execute("commit").unwrap();
    drop(waits.join().unwrap());
    let lines = tracer.stop(&cluster);
    assert!(lines_about(&lines, "step")
        .iter()
        .any(|step| step["name"] == "run" && step["failed"] == true));
    let locks: Vec<&Value> =
        lines_about(&lines, "wait").into_iter().filter(|wait| wait["lock"].is_string()).collect();
    assert_eq!(locks.len(), 1, "{locks:?}");
    assert_eq!(locks[0]["activity"], "Lock:transactionid");
    assert_eq!(locks[0]["mode"], "ShareLock");
    assert_eq!(locks[0]["blockers"][0].as_i64(), Some(i64::from(holder_pid)));
    // Its client has disconnected, so the trace is over.
    assert_eq!(lines_about(&lines, "sums").len(), 1);
}

#[test]
fn a_trace_that_begins_within_a_statement_names_it_first() {
    let cluster = server();
    let (mut client, pid) = session(&cluster);
    let canceller = client.cancel_token();
    let statement = "select count(pg_sleep(0.01)) from generate_series(1, 10000000)";
    let working = std::thread::spawn(move || (client.batch_execute(statement), client));
    let mut observer = cluster.connect().unwrap();
    let sleeps = format!("select wait_event = 'PgSleep' from pg_stat_activity where pid = {pid}");
    eventually("the session executes the statement", || {
        observer.query_one(&sleeps, &[]).unwrap().get::<_, Option<bool>>(0) == Some(true)
    });
    let tracer = Tracer::start(&cluster, &["--json", &pid.to_string()]);
    eventually("its waits are traced", || tracer.text().contains("\"Timeout:PgSleep\""));
    canceller.cancel_query(NoTls).unwrap();
    let (result, _client) = working.join().unwrap();
    result.unwrap_err();
    let lines = tracer.stop(&cluster);
    let first = lines.iter().find(|line| line["what"] != "trace").unwrap();
    assert_eq!(first["what"], "statement", "{first}");
    let text = first["query"].as_str().unwrap();
    assert!(text.starts_with("select count(pg_sleep(") && first["depth"] == 0, "{first}");
    assert_eq!(lines_about(&lines, "statement").len(), 1, "{lines:#?}");
}

#[test]
fn a_killed_reader_leaves_nothing_running_and_another_one_takes_its_ring() {
    let cluster = start(
        support::plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.max_traces", "1"),
    );
    let (mut client, pid) = session(&cluster);
    let mut tracer = Tracer::start(&cluster, &[&pid.to_string(), "--json"]).wait_for(&mut client);
    let mut second = tally();
    second.args(["trace", &pid.to_string()]).arg(segment(&cluster));
    assert!(complaint(&mut second, 1).contains("all 1 trace rings are in use"));
    tracer.child.kill().unwrap();
    tracer.child.wait().unwrap();
    // The request is no longer renewed, so the session ends its trace itself.
    let mut other = None;
    eventually("another reader gets the ring", || {
        let next =
            other.get_or_insert_with(|| Tracer::start(&cluster, &[&pid.to_string(), "--json"]));
        client.batch_execute("select 1").unwrap();
        if next.text().contains("\"what\":\"trace\"") {
            return true;
        }
        if next.child.try_wait().unwrap().is_some() {
            other = None;
        }
        false
    });
    let lines = other.unwrap().stop(&cluster);
    assert!(!lines_about(&lines, "message").is_empty());
    // The level word is as it was.
    let file = std::fs::read(segment(&cluster)).unwrap();
    assert_eq!(u32::from_ne_bytes(file[1024..1028].try_into().unwrap()) & 0xFF, 1);
}

#[test]
fn a_killed_session_ends_the_trace() {
    let cluster = start(
        support::plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("restart_after_crash", "on"),
    );
    let (mut client, pid) = session(&cluster);
    let mut tracer = Tracer::start(&cluster, &[&pid.to_string(), "--json"]).wait_for(&mut client);
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    eventually("it ends", || tracer.child.try_wait().unwrap().is_some());
    let lines = tracer.lines();
    assert_ne!(lines_about(&lines, "sums")[0]["equals_ledger"], false);
    eventually("the server is back", || cluster.connect().is_ok());
}

#[test]
fn random_bytes_in_its_ring_harm_neither_the_session_nor_the_server() {
    let cluster = server();
    let (mut client, pid) = session(&cluster);
    let tracer =
        Tracer::start(&cluster, &[&pid.to_string(), "--json", "--nodes"]).wait_for(&mut client);
    let file = OpenOptions::new().read(true).write(true).open(segment(&cluster)).unwrap();
    let mut word = [0; 8];
    file.read_exact_at(&mut word, TRACES).unwrap();
    let rings = u64::from_ne_bytes(word);
    let postmaster = cluster.postmaster_pid().unwrap();
    let mut random = StdRng::seed_from_u64(1);
    let mut bytes = [0; 4096];
    for round in 0..200 {
        random.fill_bytes(&mut bytes);
        match round % 4 {
            // The claim and the lease stay, so the session continues to write.
            0 => file
                .write_all_at(&bytes[trace::APPLICATION..], rings + trace::APPLICATION as u64)
                .unwrap(),
            1 => {
                file.write_all_at(&bytes, rings + 4096 * (1 + random.random_range(0..256))).unwrap()
            }
            2 => file.write_all_at(&bytes[..8], TRACES_ARMED).unwrap(),
            _ => {
                // All processes look for rings, at bytes that nobody has armed.
                file.read_exact_at(&mut word[..4], LEVEL_WORD).unwrap();
                let bits = (round as u8 % 15 + 1) << 4;
                file.write_all_at(&[word[0] & 0xF | bits], LEVEL_WORD).unwrap();
            }
        }
        client.batch_execute("select count(*) from pg_class").unwrap();
        assert!(cluster.connect().is_ok());
    }
    file.write_all_at(&bytes, rings).unwrap();
    for _ in 0..10 {
        client.batch_execute("select count(*) from pg_class").unwrap();
    }
    drop(tracer);
    assert_eq!(cluster.postmaster_pid().unwrap(), postmaster);
    assert!(!cluster.log().contains("terminated by signal"));
}

#[test]
fn sessions_are_chosen_by_name_and_messages_by_length() {
    let cluster = server();
    let tracer =
        Tracer::start(&cluster, &["--application", "traced", "--slower-than", "500ms", "--json"]);
    let (mut client, pid) = session(&cluster);
    let tracer = tracer.wait_for(&mut client);
    let mut other = cluster.config().application_name("other").connect(NoTls).unwrap();
    for client in [&mut client, &mut other] {
        client.batch_execute("select pg_sleep(0.5)").unwrap();
        client.batch_execute("select 1").unwrap();
    }
    let lines = tracer.stop(&cluster);
    let pids: Vec<i64> =
        lines_about(&lines, "trace").iter().map(|trace| trace["pid"].as_i64().unwrap()).collect();
    assert_eq!(pids, [i64::from(pid)]);
    // Statements that waited for a CPU may be among them, but no fast one.
    let lengths = |what| -> Vec<i64> {
        lines_about(&lines, what).iter().map(|line| line["length_ns"].as_i64().unwrap()).collect()
    };
    assert!(lengths("message").iter().all(|length| *length >= 500_000_000), "{lines:#?}");
    let sleeps = lines_about(&lines, "wait")
        .into_iter()
        .filter(|wait| wait["activity"] == "Timeout:PgSleep");
    assert_eq!(sleeps.count(), 1, "{lines:#?}");
}

#[test]
fn a_text_and_a_file_for_perfetto_have_the_same_story() {
    let cluster = server();
    cluster.psql("create table t as select generate_series(1, 5000) i").unwrap();
    let (mut client, pid) = session(&cluster);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.pftrace");
    let text = Tracer::start(&cluster, &[&pid.to_string(), "--nodes"]);
    eventually("the session is traced", || {
        client.batch_execute("select 1").unwrap();
        text.text().contains("trace begins")
    });
    client.batch_execute("select count(*) from t").unwrap();
    drop(client);
    let mut text = text;
    assert!(text.child.wait().unwrap().success());
    let text = text.text();
    for part in [
        "Query",
        "select count(*) from t",
        "plan",
        "run 1 rows",
        "Seq Scan on t: 5000 rows",
        "ACTIVITY",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    // It may have ended before it was compared twice.
    assert!(
        text.contains("matches the ledger to the tick") || text.contains("too short"),
        "{text}"
    );
    let (mut client, pid) = session(&cluster);
    let mut perfetto = Tracer::start(&cluster, &[&pid.to_string(), "-o", file.to_str().unwrap()]);
    eventually("the session is traced", || {
        client.batch_execute("select 1").unwrap();
        std::fs::metadata(&file).is_ok_and(|metadata| metadata.len() > 200)
    });
    drop(client);
    assert!(perfetto.child.wait().unwrap().success());
    let bytes = std::fs::read(&file).unwrap();
    let names = [&b"Query"[..], b"Client:ClientRead", b"run"];
    assert!(names.iter().all(|name| bytes.windows(name.len()).any(|window| window == *name)));
}

#[test]
fn refusals_name_what_is_wrong() {
    let cluster = start(
        support::plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.max_traces", "0"),
    );
    let (_client, pid) = session(&cluster);
    let trace = |arguments: &[&str], code: i32| {
        let mut command = tally();
        complaint(command.arg("trace").args(arguments), code)
    };
    let path = segment(&cluster);
    let path = path.to_str().unwrap();
    assert!(trace(&[&pid.to_string(), path], 1).contains("pg_tally.max_traces"));
    assert!(trace(&["1", path], 1).contains("process 1 is not a measured process"));
    assert!(trace(&["0", path], 2).contains("not a process ID"));
    assert!(trace(&["x", path], 2).contains("not a process ID"));
    assert!(trace(&[], 2).contains("PID"));
    assert!(trace(&[&pid.to_string(), "--application", "x"], 2).contains("cannot be combined"));
    let segment = Segment::open(Path::new(path)).unwrap();
    segment.level_switch().unwrap().set(segment::Level::Off);
    assert!(trace(&[&pid.to_string(), path], 1).contains("level off"));
}

/// From all lines with these sums, for the name of each node.
fn sums_by_node(lines: &[Value], key: &str) -> BTreeMap<String, i64> {
    let mut names = BTreeMap::new();
    let mut sums = BTreeMap::new();
    for line in lines {
        match line["what"].as_str() {
            Some("node") => {
                names.insert(line["node"].as_u64(), line["name"].as_str().unwrap().to_string());
            }
            Some("node end") => {
                let name = names[&line["node"].as_u64()].clone();
                *sums.entry(name).or_default() += line[key].as_i64().unwrap_or(0);
            }
            _ => {}
        }
    }
    sums
}

/// About 10 us per row in the scan's filter, and twice as much in the aggregate: EXPLAIN adds little to a row.
const BOTH_WORK: &str = "select sum(length(repeat(md5(i::text), 1500))) from t \
                         where length(repeat(md5(i::text), 700)) > 0";

/// Lines of a trace of this many executions of that statement, all read.
fn of_both_work(cluster: &Cluster, client: &mut Client, pid: i32, executions: u64) -> Vec<Value> {
    client.batch_execute("set jit = off").unwrap();
    client.batch_execute(BOTH_WORK).unwrap();
    let mut tracer =
        Tracer::start(cluster, &[&pid.to_string(), "--json", "--nodes"]).wait_for(client);
    for _ in 0..executions {
        client.batch_execute(BOTH_WORK).unwrap();
        tracer.catch_up(client);
    }
    tracer.stop(cluster)
}

/// Of the node whose name begins so.
fn of_node(sums: &BTreeMap<String, i64>, name: &str) -> f64 {
    sums.iter().find(|(known, _)| known.starts_with(name)).map_or(0, |(_, ns)| *ns) as f64
}

#[test]
fn processor_time_of_nodes_is_that_of_their_plan_at_most() {
    let cluster = server();
    cluster.psql("create table t as select generate_series(1, 2000) i; analyze t").unwrap();
    let (mut client, pid) = session(&cluster);
    // The shares of nodes are samples: a process without a CPU has none.
    eventually("both nodes are sampled", || {
        let lines = of_both_work(&cluster, &mut client, pid, 1);
        let cpu = sums_by_node(&lines, "cpu_ns");
        let (scan, aggregate) = (of_node(&cpu, "Seq Scan"), of_node(&cpu, "Aggregate"));
        let steps = of_messages_with(&lines, "Aggregate") as f64;
        // Each share is rounded to a tick.
        assert!(scan + aggregate <= steps + 10.0, "{cpu:?} of {steps} ns");
        scan > 0.0 && aggregate > 0.0
    });
}

#[test]
#[ignore = "verify: processor time is divided among nodes as EXPLAIN ANALYZE does"]
fn verify_processor_time_of_nodes() {
    let cluster = server();
    cluster.psql("create table t as select generate_series(1, 8000) i; analyze t").unwrap();
    Claim {
        text: "a scan's share of a plan's processor time is that of EXPLAIN ANALYZE within its half-width and 0.05",
        alarm: 0.05,
        n: 2,
        m: 3,
    }
    .check(|_| {
        let (mut client, pid) = session(&cluster);
        let lines = of_both_work(&cluster, &mut client, pid, 3);
        let explain = format!("explain (analyze, format json) {BOTH_WORK}");
        let rows = client.simple_query(&explain).unwrap();
        let plan = rows.iter().find_map(|row| match row {
            postgres::SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        let plan: Value = serde_json::from_str(plan.unwrap()).unwrap();
        let plan = &plan[0]["Plan"];
        let (all, scan) = (&plan["Actual Total Time"], &plan["Plans"][0]["Actual Total Time"]);
        let theirs = scan.as_f64().unwrap() / all.as_f64().unwrap();
        let cpu = sums_by_node(&lines, "cpu_ns");
        let half_width = of_node(&sums_by_node(&lines, "cpu_half_width_ns"), "Seq Scan");
        let (scan, aggregate) = (of_node(&cpu, "Seq Scan"), of_node(&cpu, "Aggregate"));
        let (ours, error) = (scan / (scan + aggregate), half_width / (scan + aggregate));
        // Nearly all of the steps' CPU time belongs to the nodes.
        let steps = of_messages_with(&lines, "Aggregate") as f64;
        let nearly = (scan + aggregate) / steps > 0.9;
        Trial {
            holds: nearly && error < 0.2 && (ours - theirs).abs() < error + 0.05,
            result: format!("{ours:.3}, EXPLAIN ANALYZE {theirs:.3}"),
            half_width: format!("{error:.3}"),
        }
    });
}

/// CPU time of the messages that execute a plan with such a node, ns.
fn of_messages_with(lines: &[Value], node: &str) -> i64 {
    let (mut sum, mut cpu, mut found) = (0, 0, false);
    for line in lines {
        match line["what"].as_str() {
            Some("cpu") => cpu += line["length_ns"].as_i64().unwrap(),
            Some("node") => found |= line["name"].as_str().unwrap().starts_with(node),
            Some("message") => {
                sum += if found { cpu } else { 0 };
                (cpu, found) = (0, false);
            }
            _ => {}
        }
    }
    sum
}

pub fn owner_of_the_first_ring(segment: &Path) -> i32 {
    let file = File::open(segment).unwrap();
    let (mut offset, mut owner) = ([0; 8], [0; 4]);
    file.read_exact_at(&mut offset, TRACES).unwrap();
    file.read_exact_at(&mut owner, u64::from_ne_bytes(offset) + OWNER_PID).unwrap();
    i32::from_ne_bytes(owner)
}

#[test]
fn a_page_has_the_lines_and_every_key_of_them_is_documented() {
    let cluster = server();
    cluster.psql("create table t as select generate_series(1, 5000) i; checkpoint").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.html");
    let (mut client, pid) = session(&cluster);
    let arguments = [&pid.to_string(), "--nodes", "-o", file.to_str().unwrap()];
    let mut tracer = Tracer::start(&cluster, &arguments);
    let path = segment(&cluster);
    eventually("the session is traced", || {
        client.batch_execute("select 1").unwrap();
        owner_of_the_first_ring(&path) == pid
    });
    client
        .batch_execute("select count(*) from t where i <> '</script>'::text::bytea::text::int")
        .err();
    client.batch_execute("insert into t select count(*) from t /*traceparent='00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'*/").unwrap();
    drop(client);
    assert!(tracer.child.wait().unwrap().success());
    let page = std::fs::read_to_string(&file).unwrap();
    assert_eq!(page.matches("</script>").count(), 2);
    let (_, data) = page.split_once("id=\"report\">").unwrap();
    let trace: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    let lines = trace["lines"].as_array().unwrap();
    assert_eq!(trace["left_out"], 0);
    let document = section("The JSON of `tally trace`");
    let accounts = lines_about(lines, "sums")[0]["accounts"].as_array().unwrap();
    let objects = lines.iter().chain(accounts).map(|line| line.as_object().unwrap());
    assert_documented(document, objects.flat_map(|object| object.keys()));
    let kinds = [
        "message",
        "statement",
        "begin",
        "step",
        "cpu",
        "wait",
        "commit",
        "node",
        "node end",
        "context",
    ];
    assert_documented(document, kinds);
    for what in kinds {
        assert!(!lines_about(lines, what).is_empty(), "{what}");
    }
    assert!(page.contains("ACTIVITY") && page.contains("PLAN NODE"), "the sums are missing");
}

#[test]
fn a_loop_over_a_million_rows_is_whole_or_counts_what_was_lost_and_takes_bounded_memory() {
    let cluster = server();
    cluster.psql("create table t as select generate_series(1, 3) i; analyze t").unwrap();
    let (mut client, pid) = session(&cluster);
    let tracer =
        Tracer::start(&cluster, &[&pid.to_string(), "--json", "--nodes"]).wait_for(&mut client);
    // A million rows through a cursor, and 20,000 statements within one.
    client
        .batch_execute(
            "create function f() returns bigint language plpgsql as $$ declare r record; n bigint := 0; begin
               for r in select generate_series(1, 1000000) i loop n := n + r.i; end loop;
               for k in 1..20000 loop perform count(*) from t where i = k; end loop;
               return n; end $$;
             select f()",
        )
        .unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", tracer.child.id())).unwrap();
    let lines = tracer.stop(&cluster);
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kb: u64 = peak.split_whitespace().next().unwrap().parse().unwrap();
    assert!(kb < 300_000, "{kb} kB");
    let sums = lines_about(&lines, "sums");
    assert_ne!(sums[0]["equals_ledger"], false, "{}", sums[0]);
    let lost = sums[0]["records_lost"].as_u64().unwrap();
    let reported: u64 =
        lines_about(&lines, "lost").iter().map(|line| line["records"].as_u64().unwrap()).sum();
    assert_eq!(reported, lost);
    let runs = lines_about(&lines, "step")
        .into_iter()
        .filter(|step| step["name"] == "run" && step["depth"] != 0);
    let runs = runs.count() as u64;
    // The cursor fetches 10 rows first, then 50 each.
    let all = 20_000 + 1 + 1_000_000_u64.div_ceil(50);
    assert!(runs + lost >= all && runs <= all + 1, "{runs} of {all}, {lost} lost");
}

#[test]
fn a_user_who_may_not_write_the_segment_learns_why() {
    if !rustix::process::geteuid().is_root() {
        println!("not tested: only root can run as another user");
        return;
    }
    let cluster = server();
    let (_client, pid) = session(&cluster);
    let path = segment(&cluster);
    let output = support::as_user(65_534, 65_534, &["trace", &pid.to_string()], &path);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("no permission") && error.contains("as root"), "{error}");
}

#[test]
fn traces_that_wait_for_sessions_leave_rings_to_others_and_take_them_when_sessions_come() {
    let cluster = server();
    let word = || {
        let mut bytes = [0; 8];
        let file = File::open(segment(&cluster)).unwrap();
        file.read_exact_at(&mut bytes, TRACES_ARMED).unwrap();
        u64::from_ne_bytes(bytes).count_ones()
    };
    // There are 16 rings, and each of these traces may take 8.
    let waiting: Vec<Tracer> =
        (0..5).map(|_| Tracer::start(&cluster, &["--application", "nobody"])).collect();
    eventually("they wait", || word() == 10);
    let tracer = Tracer::start(&cluster, &["--application", "traced", "--json"]);
    eventually("it waits, too", || word() == 12);
    let mut sessions: Vec<(Client, i32)> = (0..4).map(|_| session(&cluster)).collect();
    eventually("all sessions are traced", || {
        for (client, _) in &mut sessions {
            client.batch_execute("select 1").unwrap();
        }
        let text = tracer.text();
        sessions.iter().all(|(_, pid)| {
            text.lines().any(|line| {
                let line: Value = serde_json::from_str(line).unwrap_or_default();
                line["what"] == "trace" && line["pid"] == *pid
            })
        })
    });
    drop(waiting);
}
