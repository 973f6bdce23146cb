// SPDX-License-Identifier: PostgreSQL
//! `tally record` on real servers: a recording contains what the segment counted, whatever happens to the server,
//! the disk or the recorder.

use crate::frames as recorder;
use crate::support;
use crate::support::owned::Owned;
use std::collections::{BTreeSet, HashMap};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::support::reachable::Reachable;
use crate::support::{complaint, eventually, output, plain, segment, shared, start, tally};
use recording::{Range, Recording};
use rustix::process::{kill_process, Pid, Signal};
use scratch::{Cluster, StopMode};
use segment::{Frame, Segment};
use serde_json::Value;

fn pgbench(cluster: &Cluster, args: &[&str]) -> Vec<String> {
    let mut words = vec![
        cluster.binaries().program("pgbench").display().to_string(),
        "-n".to_string(),
        "-h".to_string(),
        cluster.host().display().to_string(),
        "-p".to_string(),
        cluster.port().to_string(),
        "-U".to_string(),
        cluster.user().to_string(),
    ];
    words.extend(args.iter().map(|arg| arg.to_string()));
    words.push("postgres".to_string());
    words
}

/// A running recorder with short intervals.
struct Running {
    child: Owned,
    directory: PathBuf,
}

impl Running {
    fn start(cluster: &Cluster, directory: &Path, more: &[&str]) -> Running {
        Running::start_into(segment(cluster).to_str().unwrap(), directory, more)
    }

    fn start_into(target: &str, directory: &Path, more: &[&str]) -> Running {
        let command = std::process::Command::new(assert_cmd::cargo::cargo_bin("tally"));
        Running::start_by(command, target, directory, more)
    }

    /// The recorder does not connect to the server, because libpq finds no such service.
    fn start_unconnected(cluster: &Cluster, directory: &Path) -> Running {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("tally"));
        command.env("PGSERVICE", "no-such-service");
        Running::start_by(command, segment(cluster).to_str().unwrap(), directory, &[])
    }

    fn start_by(
        mut command: std::process::Command,
        target: &str,
        directory: &Path,
        more: &[&str],
    ) -> Running {
        for name in ["PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE"] {
            command.env_remove(name);
        }
        let child = command
            .args(["record", "--interval", "100ms", "--detail", "500ms", "-o"])
            .arg(directory)
            .args(more)
            .arg(target)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Running { child: Owned::new(child), directory: directory.to_path_buf() }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id() as i32).unwrap(), signal).unwrap();
    }

    fn frames(&self) -> u64 {
        let heads = Recording::open(&self.directory, None)
            .and_then(|recording| recording.frame_rows(Range::ALL))
            .unwrap_or_default();
        heads.last().map_or(0, |row| row.frame)
    }

    /// Waits until this many more intervals are recorded.
    fn wait_for_frames(&self, more: u64) {
        let wanted = self.frames() + more;
        eventually("more intervals are recorded", || self.frames() >= wanted);
    }

    /// Interrupts the recorder; returns its messages.
    fn end(self) -> String {
        self.signal(Signal::INT);
        let output = self.child.wait();
        let messages = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{messages}");
        messages
    }
}

fn open(directory: &Path) -> Recording {
    Recording::open(directory, None).unwrap()
}

/// Statistics of client backends by name: count, ns, bytes. An interval that ends while a session starts has it
/// as "starting".
fn of_clients(frame: &Frame) -> HashMap<String, (u64, f64, u64)> {
    let mut all = HashMap::<String, (u64, f64, u64)>::new();
    for statistic in &frame.statistics {
        if matches!(&*statistic.process, "client backend" | "starting") {
            let change = &statistic.total.change;
            let sum = all.entry(statistic.stat.name.clone()).or_default();
            sum.0 += change.count;
            sum.1 += frame.clock.seconds(change.total) * 1e9;
            sum.2 += change.amount;
        }
    }
    all
}

/// Checks that a sum of intervals agrees with one interval of the same time.
///
/// A session that has waited for its client is in `idle::cpu` until it has read which message arrived; then that
/// time becomes the message's. An interval that ends in between has the time where it was, and the next interval
/// has correspondingly less in the message's account.
fn assert_same(sum: &Frame, whole: &Frame) {
    const RENAMED: &str = "idle::cpu";
    let (mut sum, whole) = (of_clients(sum), of_clients(whole));
    let renamed = match (sum.get(RENAMED).copied(), whole.get(RENAMED)) {
        (Some((count, ns, _)), None) => {
            assert_eq!(count, 0, "nothing ended there");
            sum.remove(RENAMED);
            ns
        }
        (Some((_, ns, _)), Some((_, ns_whole, _))) => ns - ns_whole,
        (None, _) => 0.0,
    };
    let names = |all: &HashMap<String, _>| all.keys().cloned().collect::<BTreeSet<String>>();
    assert_eq!(names(&sum), names(&whole));
    let mut missing = 0.0;
    for (name, (count, ns, bytes)) in &sum {
        let (count_whole, ns_whole, bytes_whole) = whole[name];
        assert_eq!((count, bytes), (&count_whole, &bytes_whole), "{name}");
        // The length of a tick is measured again for each frame.
        let less = ns_whole - ns;
        let tick = 1e-5 * ns_whole + 2.0;
        assert!(
            (-tick..=renamed + tick).contains(&less),
            "{name}: {ns} {ns_whole}, {renamed} renamed"
        );
        let is_account = name.ends_with("::cpu") || name.contains("::wait::");
        missing += if is_account && name != RENAMED { less } else { 0.0 };
    }
    let all: f64 = whole.values().map(|(_, ns, _)| ns).sum();
    assert!(
        (missing - renamed).abs() <= 1e-5 * all + 100.0,
        "{missing} ns moved, {renamed} renamed"
    );
}

#[test]
fn a_recording_holds_exactly_what_the_segment_counted() {
    let settings = [("shared_preload_libraries", "pg_tally"), ("pg_tally.statements_cpu", "on")];
    let cluster = start(plain().settings(settings));
    cluster.pgbench_init(1).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    let mut segment = Segment::open(&segment(&cluster)).unwrap();
    let settle = |segment: &mut Segment| {
        // No client is connected, and none is just ending.
        eventually("no client is left", || {
            let snapshot = segment.snapshot(None).unwrap();
            !snapshot.books.iter().any(|book| book.identity.kind == "client backend")
        });
        segment.snapshot(None).unwrap()
    };
    let before = settle(&mut segment);
    let words = pgbench(&cluster, &["-c", "4", "-j", "2", "-t", "500", "-S"]);
    let mut command = tally();
    command.args(["record", "--interval", "100ms", "--detail", "500ms", "-o"]).arg(&directory);
    // Its sessions must end before the recorder does.
    let waits =
        "unset PGSERVICE; \"$0\" \"$@\" && touch done && while [ ! -e go ]; do sleep 0.05; done";
    command.arg(segment.path()).args(["--", "sh", "-c", waits]).args(&words);
    // Nor may it connect itself: libpq does not, because it finds no such service.
    command.env("PGSERVICE", "no-such-service");
    command.current_dir(folder.path());
    let (printed, after) = std::thread::scope(|scope| {
        let recorder = scope.spawn(|| output(&mut command));
        eventually("pgbench has ended", || folder.path().join("done").exists());
        let after = settle(&mut segment);
        std::fs::write(folder.path().join("go"), "").unwrap();
        (recorder.join().unwrap(), after)
    });
    assert!(printed.contains("number of transactions actually processed: 2000"), "{printed}");
    let witness = Frame::between(&segment, Some(&before), &after);
    let recording = open(&directory);
    let sum = recording.sum(recording.range()).unwrap();
    assert_same(&sum, &witness);
    let selects = of_clients(&sum)["command::Query::handle"].0;
    assert!((2000..2040).contains(&selects), "{selects} commands of 2,000 transactions");
    // The messages of the recorder.
    let runs = recording.runs(Range::ALL).unwrap();
    assert!(runs.iter().any(|row| row.text.contains("actually processed: 2000")));
    assert_eq!(runs.last().unwrap().exit_code, Some(0));
    let statements = recording.statements(Range::ALL).unwrap().unwrap();
    let select = statements
        .statements()
        .iter()
        .find(|statement| {
            statement.text.as_ref().is_some_and(|t| t.shown.contains("abalance FROM"))
        })
        .unwrap();
    assert_eq!(select.calls(), 2000);
    assert_eq!(select.histogram().count(), 2000);
    let counted = segment.statements().unwrap().unwrap();
    let counted = counted.get(&select.key).unwrap();
    let [recorded, counted] = [select, counted].map(|statement| statement.counters());
    assert!(counted.user_seconds.is_some() && counted.system_seconds.is_some());
    assert_eq!(
        (recorded.user_seconds, recorded.system_seconds),
        (counted.user_seconds, counted.system_seconds)
    );
    let settings = recording.settings(Range::ALL).unwrap();
    let value = |group: &str, name: &str| {
        let row = settings.iter().find(|row| &*row.group == group && &*row.name == name);
        row.map(|row| row.value.to_string())
    };
    assert_eq!(value("server", "shared_preload_libraries").unwrap(), "pg_tally");
    assert!(value("machine", "kernel").is_some() && value("recorder", "interval").is_some());
    let heads = recording.frame_rows(Range::ALL).unwrap();
    assert!(heads.iter().all(|row| row.exact));
    // The kernel counts ticks of 10 ms: a short row may have none, and another row may have only system or steal
    // time.
    for row in heads.iter().filter(|row| row.interval_ns >= 50_000_000) {
        let in_processes = row.host_user_ns + row.host_system_ns;
        let others = row.host_idle_ns + row.host_iowait_ns + row.host_steal_ns;
        assert!(in_processes + others > 0, "{row:?}");
    }
    assert!(heads.iter().map(|row| row.host_idle_ns + row.host_user_ns).sum::<u64>() > 0);
    assert_eq!(recording.problems(), Vec::<String>::new());
    assert_eq!(recording.gaps(Range::ALL).unwrap(), []);
}

#[test]
fn record_returns_the_commands_exit_status_and_reports_errors() {
    let cluster = shared();
    let folder = tempfile::tempdir().unwrap();
    let record = |name: &str, words: &[&str]| {
        let mut command = tally();
        command.arg("record").arg("-o").arg(folder.path().join(name)).arg(segment(&cluster));
        command.arg("--").args(words);
        command
    };
    record("a", &["sh", "-c", "exit 7"]).assert().code(7);
    record("b", &["sh", "-c", "kill -TERM $$"]).assert().code(143);
    let runs = open(&folder.path().join("a")).runs(Range::ALL).unwrap();
    assert_eq!(runs.last().unwrap().exit_code, Some(7));
    let error = complaint(&mut record("c", &["/no/such/program"]), 1);
    assert!(error.contains("/no/such/program"), "{error}");
    std::fs::create_dir(folder.path().join("d")).unwrap();
    std::fs::write(folder.path().join("d/file"), "").unwrap();
    let error = complaint(&mut record("d", &["true"]), 1);
    assert!(error.contains("not empty"), "{error}");
    for wrong in [&["--duty", "60s"][..], &["--duty", "300s/60s"], &["--detail", "100ms"]] {
        let mut command = tally();
        command.args(["record", "-o", "x"]).args(wrong).arg(segment(&cluster));
        complaint(&mut command, 2);
    }
}

#[test]
fn recording_resumes_when_the_server_has_restarted() {
    let mut cluster = shared();
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    let running = Running::start(&cluster, &directory, &[]);
    running.wait_for_frames(3);
    cluster.psql("select count(*) from pg_class").unwrap();
    running.wait_for_frames(3);
    cluster.stop(StopMode::Fast).unwrap();
    eventually("the end of the server is reported", || {
        open(&directory).marks(Range::ALL).unwrap().iter().any(|row| &*row.kind == "server end")
    });
    cluster.start().unwrap();
    eventually("it records again", || {
        open(&directory).marks(Range::ALL).unwrap().iter().any(|row| &*row.kind == "server start")
    });
    cluster.psql("select count(*) from pg_class").unwrap();
    running.wait_for_frames(3);
    // Killed and restarted at once: the server has another segment.
    cluster.kill9_postmaster().unwrap();
    cluster.start().unwrap();
    cluster.psql("select count(*) from pg_class").unwrap();
    running.wait_for_frames(5);
    eventually("the third run is recorded", || open(&directory).servers().unwrap().len() == 3);
    cluster.psql("select count(*) from pg_class").unwrap();
    running.wait_for_frames(3);
    let messages = running.end();
    assert!(messages.contains("recording again"), "{messages}");
    let recording = open(&directory);
    let gaps = recording.gaps(Range::ALL).unwrap();
    assert!(gaps.len() >= 2 && gaps.iter().all(|gap| gap.from_us <= gap.time_us), "{gaps:?}");
    // A gap contains no interval, and the length of every interval is from the monotonic clock.
    let heads = recording.frame_rows(Range::ALL).unwrap();
    for pair in heads.windows(2).filter(|pair| pair[0].server == pair[1].server) {
        let between = pair[1].monotonic_ns - pair[0].monotonic_ns;
        assert!(between.abs_diff(pair[1].interval_ns) < 1_000_000, "{pair:?}");
    }
    let sum = recording.sum(Range::ALL).unwrap();
    // Sessions between two readings are in the segments nevertheless: psql four times, each with at least one
    // command.
    assert!(of_clients(&sum)["command::Query::handle"].0 >= 3);
    assert_eq!(recording.problems(), Vec::<String>::new());
}

/// A way in which a server stops before it is started again.
#[derive(Debug, Clone, Copy)]
enum Restart {
    Stop(StopMode),
    Kill,
}

impl Restart {
    fn run(self, cluster: &mut Cluster) {
        let held = std::fs::File::open(segment(cluster)).unwrap();
        match self {
            Restart::Stop(mode) => cluster.stop(mode).unwrap(),
            Restart::Kill => cluster.kill9_postmaster().unwrap(),
        }
        // A reader that has the file open reads when the run ended.
        let mut ended = [0; 8];
        held.read_exact_at(&mut ended, segment::layout::header::ENDED_TICK as u64).unwrap();
        assert_eq!(u64::from_ne_bytes(ended) != 0, matches!(self, Restart::Stop(_)), "{self:?}");
        cluster.start().unwrap();
    }
}

/// Number of rows in the table, and therefore of executions of the statement that inserts one.
fn inserted(cluster: &Cluster) -> u64 {
    cluster.psql("select count(*) from counted").unwrap().parse().unwrap()
}

fn insert(cluster: &Cluster, rows: u64) {
    let mut client = cluster.connect().unwrap();
    (0..rows).for_each(|_| client.batch_execute("insert into counted values (1)").unwrap());
}

/// Calls of that statement in everything that was recorded.
fn recorded_inserts(directory: &Path) -> u64 {
    let found = open(directory).statements(Range::ALL).unwrap();
    let found = found.iter().flat_map(|all| all.statements());
    let text =
        |statement: &segment::Statement| statement.text.as_ref().map(|text| text.shown.to_string());
    found
        .filter(|statement| {
            text(statement).is_some_and(|text| text.starts_with("insert into counted"))
        })
        .map(|statement| statement.calls())
        .sum()
}

/// Records over these restarts: each execution is recorded once, whatever was saved from the earlier runs.
fn record_restarts(cluster: &mut Cluster, target: &str, restarts: &[Restart]) {
    cluster.psql("create table counted (a int)").unwrap();
    insert(cluster, 100);
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    let running = Running::start_into(target, &directory, &[]);
    running.wait_for_frames(2);
    let before = inserted(cluster);
    insert(cluster, 10);
    for (n, restart) in (2..).zip(restarts) {
        running.wait_for_frames(2);
        restart.run(cluster);
        // Without a reading in between: the recorder finds the second run after this one.
        if matches!(restart, Restart::Stop(StopMode::Fast)) {
            insert(cluster, 3);
            restart.run(cluster);
        }
        insert(cluster, 7);
        eventually("it records again", || open(&directory).servers().unwrap().len() >= n);
        insert(cluster, 5);
        let executed = inserted(cluster) - before;
        eventually("they are recorded", || recorded_inserts(&directory) >= executed);
        assert_eq!(recorded_inserts(&directory), executed, "after {restart:?}");
    }
    running.end();
    assert_eq!(recorded_inserts(&directory), inserted(cluster) - before);
    let recording = open(&directory);
    assert_eq!(recording.problems(), Vec::<String>::new());
    assert_apart(&recording);
}

/// Intervals do not overlap, and the time between those of two runs is a gap. Two clocks agree to a millisecond.
fn assert_apart(recording: &Recording) {
    const AGREE_NS: u64 = 1_000_000;
    let heads = recording.frame_rows(Range::ALL).unwrap();
    let gaps = recording.gaps(Range::ALL).unwrap();
    for pair in heads.windows(2) {
        let begin = pair[1].monotonic_ns - pair[1].interval_ns;
        assert!(begin + AGREE_NS >= pair[0].monotonic_ns, "{pair:?}");
        let between = begin.saturating_sub(pair[0].monotonic_ns);
        let is_gap = |gap: &recording::GapRow| gap.length_ns.abs_diff(between) < AGREE_NS;
        if pair[0].server != pair[1].server && between > AGREE_NS {
            assert!(gaps.iter().any(is_gap), "{between} ns: {gaps:?}");
        }
    }
}

#[test]
fn each_execution_is_recorded_once_over_every_kind_of_restart() {
    use Restart::{Kill, Stop};
    use StopMode::{Fast, Immediate, Smart};
    let mut cluster = shared();
    let target = segment(&cluster);
    let restarts = [Stop(Smart), Stop(Fast), Stop(Immediate), Kill, Stop(Fast)];
    record_restarts(&mut cluster, target.to_str().unwrap(), &restarts);
}

#[test]
fn each_execution_is_recorded_once_over_restarts_of_a_server_elsewhere() {
    use Restart::{Kill, Stop};
    use StopMode::{Fast, Immediate};
    let mut server = Reachable::start(&[]);
    let target = server.full_string("postgres");
    // A smart stop waits for the recorder's own connection.
    record_restarts(&mut server.cluster, &target, &[Stop(Fast), Stop(Immediate), Kill, Stop(Fast)]);
}

/// Another directory under the same name, as when a standby is made anew.
fn copy_data_directory(cluster: &Cluster) {
    let data = cluster.data_dir().display();
    let before = segment(cluster);
    let script = format!("cp -a {data} {data}.new && rm -r {data} && mv {data}.new {data}");
    assert!(std::process::Command::new("sh").args(["-c", &script]).status().unwrap().success());
    assert_ne!(segment(cluster), before, "it has another inode, and so its segment another name");
}

#[test]
fn recording_resumes_when_the_data_directory_has_been_made_anew() {
    let mut cluster = shared();
    cluster.psql("create table counted (a int)").unwrap();
    for target in [cluster.data_dir().display().to_string(), cluster.connection_string()] {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("recording");
        let running = Running::start_into(&target, &directory, &[]);
        running.wait_for_frames(2);
        let before = inserted(&cluster);
        insert(&cluster, 10);
        cluster.stop(StopMode::Fast).unwrap();
        eventually("the end of the server is reported", || {
            open(&directory).marks(Range::ALL).unwrap().iter().any(|row| &*row.kind == "server end")
        });
        copy_data_directory(&cluster);
        cluster.also_remove(&segment(&cluster));
        cluster.start().unwrap();
        insert(&cluster, 5);
        eventually("it records again", || open(&directory).servers().unwrap().len() == 2);
        let executed = inserted(&cluster) - before;
        eventually("they are recorded", || recorded_inserts(&directory) == executed);
        running.end();
        let recording = open(&directory);
        let servers = recording.servers().unwrap();
        assert_eq!(&*servers[1].segment, segment(&cluster).display().to_string(), "{servers:?}");
        assert_eq!(recording.problems(), Vec::<String>::new());
        assert_apart(&recording);
    }
}

#[test]
fn a_replaced_segment_is_marked_and_recording_resumes() {
    let cluster = shared();
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    let path = segment(&cluster);
    let running = Running::start(&cluster, &directory, &[]);
    running.wait_for_frames(3);
    // The same contents in another file: a reader of the old file would see no more changes.
    let aside = path.with_extension("aside");
    std::fs::copy(&path, &aside).unwrap();
    std::fs::rename(&aside, &path).unwrap();
    eventually("the new segment is reported", || {
        let marks = open(&directory).marks(Range::ALL).unwrap();
        marks.iter().any(|row| &*row.text == "the segment was replaced")
    });
    running.wait_for_frames(3);
    let messages = running.end();
    assert!(
        messages.contains("the segment was replaced") && messages.contains("recording again"),
        "{messages}"
    );
    let recording = open(&directory);
    assert_eq!(recording.servers().unwrap().len(), 2);
    let gaps = recording.gaps(Range::ALL).unwrap();
    assert!(gaps.iter().any(|gap| &*gap.reason == "the segment was replaced"), "{gaps:?}");
    assert_eq!(recording.problems(), Vec::<String>::new());
}

/// File operations of each relation: its key, and counts and bytes.
fn of_relations(rows: &[segment::RelationRow]) -> Vec<(segment::relations::RelationKey, [u64; 8])> {
    let mut all: Vec<_> = rows
        .iter()
        .map(|row| {
            let (read, write, extend) = (row.read, row.write, row.extend);
            let counts = [read.count, read.bytes, write.count, write.bytes, extend.count];
            let [reads, read_bytes, writes, written, extends] = counts;
            let more = [extend.bytes, row.sync.count, row.truncate.count];
            let [extended, syncs, truncates] = more;
            let of = [reads, read_bytes, writes, written, extends, extended, syncs, truncates];
            (row.key, of)
        })
        .collect();
    all.sort();
    all
}

#[test]
fn relations_are_recorded_as_the_segment_counted_them() {
    let cluster = shared();
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    let segment = Segment::open(&segment(&cluster)).unwrap();
    // The recording excludes everything before its start, so the server must be idle then.
    cluster.psql("checkpoint").unwrap();
    let before = segment.relations().unwrap();
    let running = Running::start(&cluster, &directory, &[]);
    running.wait_for_frames(3);
    cluster
        .psql("create table t as select n, repeat('x', 500) from generate_series(1, 20000) n")
        .unwrap();
    cluster.psql("checkpoint").unwrap();
    running.wait_for_frames(10);
    for sql in ["delete from t", "vacuum t", "checkpoint", "drop table t"] {
        cluster.psql(sql).unwrap();
    }
    running.wait_for_frames(10);
    // The server is idle now, so the last detail interval contains everything.
    let now = segment.relations().unwrap().unwrap();
    running.end();
    let witness = now.since(before.as_ref());
    let recording = open(&directory);
    let found = recording.relations(Range::ALL).unwrap().unwrap().rows;
    let (found_all, witness_all) = (of_relations(&found), of_relations(&witness));
    // From 16 on, a table is extended by several blocks at a time, and from 8 on without writing them.
    let extended = |of: &[u64; 8]| of[5] > 100 * 8192 || support::major() >= 16 && of[4] > 0;
    assert!(found_all.iter().any(|(_, of)| extended(of)), "the table was extended: {found_all:?}");
    // Checkpoints and ending sessions may do something after the segment was read.
    for (key, of) in &witness_all {
        let same = found_all.iter().find(|(other, _)| other == key);
        let same = same.unwrap_or_else(|| panic!("{key:?} is missing"));
        assert_eq!(of, &same.1, "{key:?}");
    }
    let seconds = |rows: &[segment::RelationRow]| rows.iter().map(|row| row.seconds).sum::<f64>();
    assert!((seconds(&found) / seconds(&witness) - 1.0).abs() < 1e-3);
    let report = output(tally().args(["report", "--json"]).arg(&directory));
    let report: Value = serde_json::from_str(&report).unwrap();
    let tables = report["tables"].as_array().unwrap();
    let table = tables.iter().find(|table| table["id"] == "relations").unwrap();
    assert_eq!(table["rows"].as_array().unwrap().len(), found.len().min(1000));
    let replayed = output(tally().args(["top", "--once", "--json", "--replay"]).arg(&directory));
    let replayed: Value = serde_json::from_str(&replayed).unwrap();
    assert_eq!(replayed["io"]["relations"].as_array().unwrap().len(), found.len());
    assert!(replayed["kernel"]["available"].as_bool().unwrap(), "{}", replayed["kernel"]);
    let places = replayed["io"]["recorded"]["places"].to_string();
    assert!(places.contains("data directory: "), "{places}");
    assert!(replayed["io"]["recorded"]["server"]["processes"].as_u64().unwrap() > 3);
}

/// The moments of a kill are those of crates/ship/tests/simulation.
#[test]
fn a_killed_recorder_leaves_every_complete_interval_and_is_continued() {
    let cluster = shared();
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    let running = Running::start(&cluster, &directory, &[]);
    running.wait_for_frames(2);
    let seen = running.frames();
    running.signal(Signal::KILL);
    running.child.wait();
    let running = Running::start(&cluster, &directory, &[]);
    running.wait_for_frames(1);
    running.end();
    let recording = open(&directory);
    let heads = recording.frame_rows(Range::ALL).unwrap();
    let numbers: Vec<u64> = heads.iter().map(|row| row.frame).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert!(numbers.len() as u64 > seen, "a complete interval is missing");
    let sum = recording.sum(Range::ALL).unwrap();
    let lengths: u64 = heads.iter().map(|row| row.interval_ns).sum();
    assert!((sum.clock.seconds(sum.ticks) - lengths as f64 * 1e-9).abs() < 1e-6);
    assert_eq!(recording.problems(), Vec::<String>::new());
    assert_eq!(recording.servers().unwrap().len(), 2);
    // The time between the recorders is reported as a gap.
    let gaps = recording.gaps(Range::ALL).unwrap();
    assert!(gaps.iter().any(|gap| &*gap.reason == "no recorder was running"), "{gaps:?}");
}

#[test]
fn a_full_disk_ends_the_recording_and_leaves_it_readable() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: mounting a small file system needs root");
        return;
    }
    let cluster = shared();
    let folder = tempfile::tempdir().unwrap();
    let small = folder.path().join("small");
    std::fs::create_dir(&small).unwrap();
    let mount = |args: &[&str]| {
        std::process::Command::new("mount").args(args).arg(&small).status().unwrap().success()
    };
    if !mount(&["-t", "tmpfs", "-o", "size=200k", "small"]) {
        eprintln!("skipped: no right to mount here");
        return;
    }
    let directory = small.join("recording");
    // What the catalogs say would fill it at once.
    let running = Running::start_unconnected(&cluster, &directory);
    let output = running.child.wait();
    let (recording, heads) = match Recording::open(&directory, None) {
        Ok(recording) => {
            let heads = recording.frame_rows(Range::ALL);
            (Some(recording), heads)
        }
        Err(error) => (None, Err(error)),
    };
    let problems = recording.as_ref().map(Recording::problems);
    let sum = recording.as_ref().map(|recording| recording.sum(Range::ALL));
    assert!(std::process::Command::new("umount").arg(&small).status().unwrap().success());
    let messages = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{messages}");
    assert!(messages.contains("no space left"), "{messages}");
    let heads = heads.unwrap();
    assert!(heads.len() > 5, "{}", heads.len());
    assert_eq!(problems, Some(Vec::new()));
    assert!(!sum.unwrap().unwrap().statistics.is_empty());
}

#[test]
fn a_paused_recorder_loses_nothing_and_reports_the_pause() {
    let cluster = shared();
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    let mut segment = Segment::open(&segment(&cluster)).unwrap();
    let before = segment.snapshot(None).unwrap();
    let running = Running::start(&cluster, &directory, &[]);
    running.wait_for_frames(3);
    running.signal(Signal::STOP);
    cluster.psql("select pg_sleep(2)").unwrap();
    running.signal(Signal::CONT);
    running.wait_for_frames(3);
    running.end();
    let after = segment.snapshot(Some(&before)).unwrap();
    let recording = open(&directory);
    let marks = recording.marks(Range::ALL).unwrap();
    let kinds: Vec<&str> = marks.iter().map(|row| &*row.kind).collect();
    assert!(kinds.contains(&"late") && kinds.first() == Some(&"begin"), "{kinds:?}");
    assert_eq!(kinds.last(), Some(&"end"));
    let longest = recording.frame_rows(Range::ALL).unwrap().iter().map(|row| row.interval_ns).max();
    assert!(longest.unwrap() >= 2_000_000_000);
    let slept = |frame: &Frame| {
        let all = of_clients(frame);
        let of = all.iter().find(|(name, _)| name.ends_with("Timeout:PgSleep")).unwrap();
        (of.1 .0, of.1 .1)
    };
    let witness = slept(&Frame::between(&segment, Some(&before), &after));
    let sum = slept(&recording.sum(Range::ALL).unwrap());
    assert_eq!((witness.0, sum.0), (1, 1));
    assert!((witness.1 - sum.1).abs() < 1e-5 * sum.1, "{witness:?} {sum:?}");
}

#[test]
fn with_duty_the_level_is_switched_and_restored() {
    let cluster = shared();
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    let running = Running::start(&cluster, &directory, &["--duty", "1s/2s"]);
    eventually("the level was switched often enough", || {
        let marks = Recording::open(&directory, None).and_then(|r| r.marks(Range::ALL));
        let marks = marks.unwrap_or_default();
        let duty = |text: &str| {
            marks.iter().filter(|row| &*row.kind == "duty" && &*row.text == text).count()
        };
        duty("level waits") >= 2 && duty("level off") >= 1
    });
    running.end();
    let level = Segment::open(&segment(&cluster)).unwrap().level().unwrap();
    assert_eq!(level, segment::Level::Waits);
    let heads = open(&directory).frame_rows(Range::ALL).unwrap();
    assert!(heads.iter().all(|row| row.partial));
    assert!(heads.iter().any(|row| !row.exact && row.uninstrumented_ns > 0));
}

/// What DuckDB and pandas read from a recording.
fn read_back(python: &Path, directory: &Path) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/read_back.py");
    let read = std::process::Command::new(python).arg(script).arg(directory).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    serde_json::from_slice(&read.stdout).unwrap()
}

/// Checks that both have read the statistics of this sum.
fn assert_reads_the_same(read: &Value, sum: &Frame) {
    assert_eq!(read["statistics"], read["pandas"]);
    let rows = read["statistics"].as_array().unwrap();
    assert_eq!(rows.len(), sum.statistics.len());
    for statistic in &sum.statistics {
        let same =
            |row: &&Value| row[0] == *statistic.process && row[1] == statistic.stat.name.as_str();
        let row = rows.iter().find(same).unwrap();
        let change = &statistic.total.change;
        assert_eq!(row[4].as_u64(), Some(change.count), "{row}");
        assert_eq!(row[6].as_u64(), Some(change.amount), "{row}");
        assert_eq!(row[7].as_u64(), Some(change.follows), "{row}");
        let total = row[5].as_f64().unwrap();
        let own = match &row[3] {
            unit if unit == "ns" => sum.clock.seconds(change.total) * 1e9,
            _ => change.total as f64,
        };
        assert!((total - own).abs() <= 1.0 + 1e-9 * own, "{row} {own}");
    }
}

#[test]
fn duckdb_and_pandas_read_what_was_merged_and_rolled_up() {
    let Some(python) = support::python::with_requirements_of("record") else {
        eprintln!("skipped: DuckDB and pandas cannot be installed (no PyPI?)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut maker = recorder::Maker::new(folder.path());
    maker.seconds(900);
    let sum = maker.sum.clone().unwrap();
    maker.writer.close().unwrap();
    assert_reads_the_same(&read_back(&python, folder.path()), &sum);
    // Recording into it a year later rolls it up.
    let year = recorder::MIDNIGHT + 365 * 24 * 3600 * recorder::SECOND;
    let mut maker =
        recorder::Maker::with_retention(folder.path(), recording::RetentionPolicy::default(), year);
    maker.second();
    maker.time_us += 60 * recorder::SECOND;
    maker.second();
    maker.writer.close().unwrap();
    let rolled = open(folder.path());
    assert!(rolled.frame_rows(Range::ALL).unwrap().len() < 30);
    let sum = rolled.sum(Range::ALL).unwrap();
    assert_reads_the_same(&read_back(&python, folder.path()), &sum);
}

#[test]
fn duckdb_and_pandas_read_a_recording_with_the_same_sums() {
    let Some(python) = support::python::with_requirements_of("record") else {
        eprintln!("skipped: DuckDB and pandas cannot be installed (no PyPI?)");
        return;
    };
    let cluster = shared();
    cluster.pgbench_init(1).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    let words = pgbench(&cluster, &["-c", "4", "-t", "300"]);
    tally()
        .args(["record", "--interval", "200ms", "--detail", "1s", "-o"])
        .arg(&directory)
        .arg(segment(&cluster))
        .arg("--")
        .args(&words)
        .assert()
        .success();
    let read = read_back(&python, &directory);
    let recording = open(&directory);
    let sum = recording.sum(Range::ALL).unwrap();
    assert_reads_the_same(&read, &sum);
    let heads = recording.frame_rows(Range::ALL).unwrap();
    let frames = &read["frames"];
    let ns = |of: fn(&recording::FrameRow) -> u64| heads.iter().map(of).sum::<u64>();
    assert_eq!(frames[0].as_u64(), Some(heads.len() as u64));
    assert_eq!(frames[1].as_u64(), Some(ns(|row| row.interval_ns)));
    assert_eq!(frames[2].as_u64(), Some(ns(|row| row.wall_ns)));
    assert_eq!(frames[3].as_u64(), Some(ns(|row| row.busy_ns)));
    assert_eq!(frames[4].as_u64(), Some(ns(|row| row.commands)));
    assert_eq!(frames[5].as_u64(), Some(heads.len() as u64));
    assert!(frames[6].as_str().unwrap().starts_with("20"), "{frames}");
    // Every row of statistics has its interval.
    let rows: usize =
        recording.frames(Range::ALL, None).unwrap().map(|f| f.unwrap().statistics.len()).sum();
    assert_eq!(read["joined"].as_u64(), Some(rows as u64));
    assert_eq!(read["values"].as_u64(), Some(ns(|row| row.commands)));
    let statements = recording.statements(Range::ALL).unwrap().unwrap();
    let calls: u64 = statements.statements().iter().map(|statement| statement.calls()).sum();
    assert_eq!(read["statements"][0].as_u64(), Some(calls));
    let relations = recording.relations(Range::ALL).unwrap().unwrap().rows;
    let of = of_relations(&relations);
    let sum = |places: &[usize]| -> u64 {
        of.iter().flat_map(|(_, of)| places.iter().map(|at| of[*at])).sum()
    };
    assert_eq!(read["relations"][0].as_u64(), Some(sum(&[0, 2, 4, 6, 7])));
    assert_eq!(read["relations"][1].as_u64(), Some(sum(&[1, 3, 5])));
    assert_eq!(read["hosts"].as_array().unwrap().len(), 1);
}

#[test]
fn a_recording_is_summarised_as_json() {
    let cluster = shared();
    let folder = tempfile::tempdir().unwrap();
    let mut command = tally();
    command.args(["record", "--for", "2s", "--interval", "500ms", "--json", "-o"]);
    command.arg(folder.path().join("recording")).arg(segment(&cluster));
    let json: Value = serde_json::from_str(&output(&mut command)).unwrap();
    let rows = open(&folder.path().join("recording")).frame_rows(Range::ALL).unwrap();
    assert_eq!(json["intervals"], rows.len(), "{json}");
    let seconds: f64 = rows.iter().map(|row| row.interval_ns as f64 * 1e-9).sum();
    assert!((json["seconds"].as_f64().unwrap() - seconds).abs() < 1e-6 && seconds > 0.0, "{json}");
    assert_eq!(json["intervals"], json["exact_intervals"], "{json}");
    assert!(json["bytes"].as_u64().unwrap() > 1000, "{json}");
    assert_eq!(json["gaps"], 0);
}

/// What fills the table of statements is recorded, and named as `tally doctor` names it.
#[test]
fn a_report_names_what_floods_the_table_of_statements() {
    let cluster = start(
        plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.max_statements", "100"),
    );
    let directory = cluster.dir().join("recording");
    let recorder = Running::start(&cluster, &directory, &[]);
    eventually("the recorder records", || recorder.frames() > 0);
    let mut client = cluster.connect().unwrap();
    for columns in 1..=400 {
        client.batch_execute(&format!("select {}", vec!["1"; columns].join(", "))).unwrap();
    }
    drop(client);
    recorder.wait_for_frames(1);
    recorder.end();
    let rows = open(&directory).frame_rows(Range::ALL).unwrap();
    assert!(rows.iter().map(|row| row.statements_evicted).sum::<u64>() >= 200, "{rows:?}");
    let last = rows.iter().rev().find(|row| row.detail).unwrap();
    assert!(last.statements_kept > 0 && last.statements_capacity >= last.statements_kept);
    let text = output(tally().args(["report", "--json"]).arg(&directory));
    let report: Value = serde_json::from_str(&text).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let texts: Vec<&str> =
        findings.iter().map(|finding| finding["text"].as_str().unwrap()).collect();
    let flood = "statements recorded are SELECT that ran once";
    assert!(texts.iter().any(|text| text.contains(flood)), "{texts:#?}");
}
