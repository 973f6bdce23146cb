// SPDX-License-Identifier: PostgreSQL
//! The pauses of a Java client's virtual machine equal those in its own log, and a report of the server shows
//! them on the server's time axis.

use crate::support;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::java::{agent, all, java, Java, Running};
use crate::support::verify::{Claim, Trial};
use crate::support::{complaint, eventually, output, tally};
use scratch::Cluster;
use segment::Interval;
use serde_json::Value;

/// A recorder that runs until it is stopped.
struct Recorder(Child);

impl Recorder {
    /// Recorders of a server and of its client.
    fn start(server: &Path, client: &Path, directory: &Path) -> Recorder {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("tally"));
        command.arg("record").arg(server).arg("--client").arg(client).arg("-o").arg(directory);
        command.args(["--interval", "200ms"]).stderr(std::process::Stdio::null());
        let recorder = Recorder(command.spawn().unwrap());
        // An interval lies between two readings.
        let recorded = || {
            let recording = recording::Recording::open(&directory.join("client"), None).ok()?;
            recording.sum(recording::Range::ALL).ok()
        };
        eventually("it records", || {
            recorded().is_some_and(|sum| Interval::from_frame(&sum).interval_seconds > 0.0)
        });
        recorder
    }

    fn stop(mut self) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server that listens on an address, because the driver needs one.
fn server() -> (Cluster, String) {
    let loaded = support::plain().setting("shared_preload_libraries", "pg_tally");
    let (cluster, port) = support::on_loopback(loaded);
    (cluster, format!("jdbc:postgresql://127.0.0.1:{port}/postgres?sslmode=disable"))
}

/// A client with this collector and a small heap, which keeps a log of its collections.
fn garbage(java: &Java, collector: &[&str], logged: &str, program: &[&str]) -> (Running, PathBuf) {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let log = folder.path().join("gc.log");
    let with = format!(
        "-javaagent:{}=file={}",
        agent().display(),
        folder.path().join("segment").display()
    );
    let log_option = format!("-Xlog:{logged}:file={}", log.display());
    let mut arguments = collector.to_vec();
    arguments.extend(["-Xmx96m", "-XX:TieredStopAtLevel=1", &log_option, &with]);
    let mut running = java.spawn(&arguments, program, folder);
    running.until("ready");
    (running, log)
}

/// Number and seconds of the pauses for collections in a virtual machine's own log.
fn logged(log: &Path) -> [f64; 2] {
    let text = std::fs::read_to_string(log).unwrap();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let pauses = whole.lines().filter(|line| line.contains("Pause ") && line.ends_with("ms"));
    let ms: Vec<f64> = pauses
        .map(|line| line.trim_end_matches("ms").rsplit(' ').next().unwrap().parse().unwrap())
        .collect();
    [ms.len() as f64, ms.iter().sum::<f64>() / 1e3]
}

/// How often the agent's thread, which reads the virtual machine's counters, has slept.
fn sleeps(client: &Running) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", client.child.id())).unwrap();
    let read = |task: &Path, file| std::fs::read_to_string(task.join(file)).unwrap_or_default();
    let mut tasks = tasks.flatten().map(|entry| entry.path());
    let task = tasks.find(|task| read(task, "comm").trim() == "pgtally").unwrap();
    let status = read(&task, "status");
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

/// The agent's figures, `[reason][count, seconds]`, and those of the log, `[count, seconds]`, for the same
/// pauses: the log does not change while the agent reads its counters. A concurrent cycle may pause the virtual
/// machine even while the program waits.
fn between_pauses(client: &Running, log: &Path) -> ([[f64; 2]; 2], [f64; 2]) {
    let mut found = Default::default();
    eventually("there is no pause while the agent reads its counters", || {
        let before = logged(log);
        let slept = sleeps(client);
        // It sleeps between two readings.
        eventually("the agent reads its counters", || sleeps(client) >= slept + 4);
        found = (REASONS.map(|reason| stopped(client, reason)), logged(log));
        found.1 == before
    });
    found
}

/// The agent's and the log's figures for the garbage of a client: `[reason][count, seconds]` and `[count,
/// seconds]`.
fn collected(client: &mut Running, log: &Path) -> ([[f64; 2]; 2], [f64; 2]) {
    let (before, logged_before) = between_pauses(client, log);
    client.go();
    client.until("done");
    let (after, logged) = between_pauses(client, log);
    let less = |after: [f64; 2], before: [f64; 2]| [after[0] - before[0], after[1] - before[1]];
    let found = [less(after[0], before[0]), less(after[1], before[1])];
    (found, less(logged, logged_before))
}

/// How often and for how long the virtual machine has been stopped for this reason, seconds.
fn stopped(client: &Running, reason: &str) -> [f64; 2] {
    let json = client.methods();
    let pauses = json["pauses"].as_array().unwrap();
    let of = |value: &&Value| value["reason"] == reason;
    let figures =
        |value: &Value| ["count", "seconds"].map(|figure| value[figure].as_f64().unwrap());
    pauses.iter().find(of).map_or([0.0; 2], figures)
}

const REASONS: [&str; 2] = ["garbage collection", "other safepoint"];

/// A collector, and how well the times of its pauses are known.
struct Collector {
    options: &'static [&'static str],
    /// The kinds of log entries that are pauses.
    log: &'static str,
    /// Minimum number of pauses found as collections, and of all pauses found, as shares of the log's.
    min: [f64; 2],
    /// Maximum error of the sum, seconds.
    error: f64,
    /// What the log may include for each pause that the counters do not, seconds.
    around: f64,
    /// What the counters may include for each pause that the log does not, seconds.
    beyond: f64,
}

const COLLECTOR: Collector =
    Collector { options: &[], log: "gc", min: [0.9, 0.95], error: 0.0, around: 0.0, beyond: 0.0 };

const COLLECTORS: [Collector; 6] = [
    Collector { options: &["-XX:+UseSerialGC"], ..COLLECTOR },
    Collector { options: &["-XX:+UseParallelGC"], ..COLLECTOR },
    // G1 counts its collections without their preparation, which is in the rest of the safepoint; on a busy
    // machine, part of it is in neither.
    Collector { options: &["-XX:+UseG1GC"], min: [0.6, 0.85], ..COLLECTOR },
    // Its pauses take about fifteen microseconds, and the log rounds each of them. The log includes three
    // microseconds more than the counters.
    Collector {
        options: &["-XX:+UseZGC"],
        log: "gc,gc+phases",
        error: 3e-5,
        around: 8e-6,
        ..COLLECTOR
    },
    // All of its phases pause; their time is known to the millisecond.
    Collector {
        options: &[
            "-XX:+UseShenandoahGC",
            "-XX:+UnlockDiagnosticVMOptions",
            "-XX:ShenandoahGCMode=passive",
        ],
        error: 1e-3,
        ..COLLECTOR
    },
    // Few of its phases pause, for about thirty microseconds each; the others, which take half a second, must
    // not count. The counters include reading the memory usage, before the log's pause starts.
    Collector { options: &["-XX:+UseShenandoahGC"], error: 1e-3, beyond: 1e-4, ..COLLECTOR },
];

/// Runs `check` for each virtual machine and each of its collectors, with a function that starts such a client,
/// which has not produced its garbage yet, and a name for the two.
fn with_each_collector(check: impl Fn(&dyn Fn() -> (Running, PathBuf), &Collector, &str)) {
    for java in all() {
        let version = java.version().unwrap();
        for collector in COLLECTORS {
            let option = collector.options[0];
            let known = Command::new(&java.program).args([option, "-version"]).output();
            if !known.unwrap().status.success() {
                eprintln!("left out: Java {version} has no {option}");
                continue;
            }
            let program = ["org.pgtally.test.Garbage", "none", "none", "0", "0", "0"];
            let start = || garbage(&java, collector.options, collector.log, &program);
            check(&start, &collector, &format!("Java {version} {}", collector.options.join(" ")));
        }
    }
}

#[test]
fn pauses_are_counted_as_in_the_virtual_machines_own_log() {
    with_each_collector(|start, collector, name| {
        let began = Instant::now();
        let (mut client, log) = start();
        let ([[found, collections], [_, others]], [count, _]) = collected(&mut client, &log);
        let elapsed = began.elapsed().as_secs_f64();
        assert!(count > 0.0 && found == count, "{name}: {found} pauses of {count}");
        assert!(
            // Short pauses may be zero at the precision of their clock.
            (0.0 < collections || collector.error > 0.0) && collections + others < elapsed,
            "{name}: {collections} s and {others} s of {elapsed} s"
        );
        client.end();
    });
}

#[test]
#[ignore = "verify: pauses of a Java client take as long as in its virtual machine's own log"]
fn verify_lengths_of_pauses() {
    with_each_collector(|start, collector, name| {
        let text = format!("{name}: pauses take as long as in the virtual machine's own log");
        Claim { text: &text, alarm: 0.02, n: 2, m: 3 }.check(|_| {
            let (mut client, log) = start();
            let ([[count, collections], [_, others]], [_, expected]) = collected(&mut client, &log);
            let error = collector.error + count * collector.around;
            let [min, all] = collector.min.map(|part| part * expected - error);
            let max = 1.02 * expected + collector.error + count * collector.beyond;
            client.end();
            Trial {
                holds: (min..=max).contains(&collections) && collections + others >= all,
                result: format!("{collections} s and {others} s of {expected} s in {count} pauses"),
                half_width: "-".into(),
            }
        });
    });
}

/// How long another client makes the server work and lets it wait, ms, in turn: from the same range as the phases
/// of the program, but unrelated to them (to at least 0.8 of all time-shifted series, if they start up to 0.7 s
/// apart).
const OTHER_PHASES: [u64; 20] = [
    635, 234, 375, 337, 709, 394, 480, 587, 449, 634, 578, 498, 688, 291, 287, 727, 791, 361, 629,
    605,
];

/// Another client of the server, until the flag is cleared.
fn other_client(cluster: &Cluster, on: &AtomicBool) {
    let mut client = cluster.connect().unwrap();
    for pair in OTHER_PHASES.chunks(2).cycle() {
        if !on.load(Ordering::Relaxed) {
            return;
        }
        client.query("select pg_sleep($1)", &[&(pair[0] as f64 / 1e3)]).unwrap();
        std::thread::sleep(Duration::from_millis(pair[1]));
    }
}

/// The report on a server and this client, both recorded while the client runs its phases.
fn reported(java: &Java, threads: &str, garbage_collected: bool) -> (Value, tempfile::TempDir) {
    let (cluster, url) = server();
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("recording");
    let calm = if garbage_collected { "" } else { "calm" };
    let program = ["org.pgtally.test.Garbage", &url, "postgres", threads, "16", "800", calm];
    let (mut client, _) = garbage(java, &["-XX:+UseSerialGC"], "gc", &program);
    let recorder = Recorder::start(&support::segment(&cluster), &client.segment(), &recording);
    let on = AtomicBool::new(true);
    std::thread::scope(|scope| {
        if threads == "0" {
            scope.spawn(|| other_client(&cluster, &on));
        }
        client.finish();
        on.store(false, Ordering::Relaxed);
    });
    recorder.stop();
    client.end();
    let report = output(tally().args(["report", "--json"]).arg(&recording));
    (serde_json::from_str(&report).unwrap(), folder)
}

fn of_the_client(report: &Value) -> &Value {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().find(|finding| finding["section"] == "client").unwrap()
}

#[test]
fn a_recording_of_server_and_client_has_the_pauses_and_its_report_shows_both() {
    let Some(java) = java() else { return };
    let (cluster, url) = server();
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("recording");
    let program = ["org.pgtally.test.Garbage", &url, "postgres", "1", "0", "0"];
    let (mut client, log) = garbage(&java, &["-XX:+UseSerialGC"], "gc", &program);
    let recorder = Recorder::start(&support::segment(&cluster), &client.segment(), &recording);
    let (found, [count, _]) = collected(&mut client, &log);
    recorder.stop();
    client.end();
    let ours = recording.join("client");
    let recorded = recording::Recording::open(&ours, None).unwrap();
    let recorded = Interval::from_frame(&recorded.sum(recording::Range::ALL).unwrap());
    let rows = || recorded.ledger.iter().filter(|row| &*row.activity == REASONS[0]);
    let [pauses, all] = found[0];
    assert!(count > 0.0 && pauses == count, "{pauses} pauses of {count}");
    assert_eq!(rows().map(|row| row.timing.count).sum::<u64>() as f64, count);
    // A pause is charged at its end: the part of it before the reading in between was recorded as the program's time.
    let seconds: f64 = rows().map(|row| row.timing.seconds).sum();
    assert!(0.0 < seconds && seconds <= all + 1e-6, "{seconds} s of {all} s");
    let report: Value =
        serde_json::from_str(&output(tally().args(["report", "--json"]).arg(&recording))).unwrap();
    let charts = report["charts"].as_array().unwrap();
    let series = |id: &str, name: &str| -> Vec<f64> {
        let chart = charts.iter().find(|chart| chart["id"] == id).unwrap();
        let all = chart["series"].as_array().unwrap();
        let one = all.iter().find(|series| series["name"] == name).unwrap();
        one["values"].as_array().unwrap().iter().filter_map(Value::as_f64).collect()
    };
    assert!(series("client", "garbage collection").iter().any(|share| *share > 0.0));
    // One session of the client, and no other: it waits for its client at most all the time. A point may be a little more, because
    // a slot is read some time after the clock.
    let reading = series("client_reads", "waiting for a client");
    assert!(reading.iter().sum::<f64>() <= reading.len() as f64, "{reading:?}");
    assert!(reading.iter().any(|sessions| *sessions > 0.0));
    // The pauses in whole, whenever the readings were.
    let stops = recorded.statistics.iter().find(|row| row.name == "stop::garbage collection");
    let stops = stops.unwrap();
    assert_eq!(stops.count as f64, count);
    assert!((stops.total - all).abs() < 1e-6, "{} s of {all} s", stops.total);
    // The client's recording is a recording of its own; naming it explicitly gives the same result.
    let named =
        output(tally().args(["report", "--json"]).arg(&recording).arg("--client").arg(&ours));
    let named: Value = serde_json::from_str(&named).unwrap();
    assert_eq!((&named["charts"], &named["findings"]), (&report["charts"], &report["findings"]));
    let mut command = tally();
    command.arg("report").arg(&recording).arg("--client").arg(&recording);
    let complaint = complaint(&mut command, 1);
    assert!(complaint.contains("is not a recording of a Java client"), "{complaint}");
}

/// Threads that keep the server busy, whether garbage is collected, and trials that must hold, of how many.
fn verify_waits(threads: &str, collects: bool, [n, m]: [u32; 2], text: &str) {
    let Some(java) = java() else { return };
    let alarm = if n == m { 0.002 } else { 0.2 };
    Claim { text, alarm, n, m }.check(|_| {
        let (report, _folder) = reported(&java, threads, collects);
        let found = of_the_client(&report);
        let result = found["text"].as_str().unwrap();
        let (weight, says) = match (threads, collects) {
            ("0", _) => ("note", "inconclusive"),
            (_, true) => ("warning", "The pauses explain "),
            (_, false) => ("note", "too short to matter"),
        };
        Trial {
            holds: result.contains(says) && found["weight"] == weight,
            result: result.into(),
            half_width: "-".into(),
        }
    });
}

#[test]
#[ignore = "verify: the share of a server's waiting that a client's garbage collections explain is named"]
fn verify_the_client_that_a_server_waits_for() {
    let text = "the share that a client's garbage collections explain is named";
    verify_waits("2", true, [10, 10], text);
}

#[test]
#[ignore = "verify: a client without garbage collections is not named"]
fn verify_a_client_without_pauses() {
    verify_waits("2", false, [10, 10], "a client without garbage collections is not named");
}

#[test]
#[ignore = "verify: a server that waits at other times than its client's pauses is inconclusive"]
fn verify_a_server_that_waits_at_other_times() {
    verify_waits("0", true, [2, 4], "a server that waits at other times is inconclusive");
}
