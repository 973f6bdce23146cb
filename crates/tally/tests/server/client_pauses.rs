// SPDX-License-Identifier: PostgreSQL
//! The pauses of a Java client's virtual machine: they are those of its own log, and a report of the server shows them
//! on the server's time axis.

use crate::support;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::support::java::{agent, all, java, Java, Running};
use crate::support::{complaint, eventually, output, tally};
use scratch::Cluster;
use serde_json::Value;

/// A recorder that runs until it is stopped.
struct Recorder(Child);

impl Recorder {
    /// Of a server and a client of it.
    fn start(server: &Path, client: &Path, directory: &Path) -> Recorder {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("tally"));
        command.arg("record").arg(server).arg("--client").arg(client).arg("-o").arg(directory);
        command.args(["--interval", "200ms"]).stderr(std::process::Stdio::null());
        let recorder = Recorder(command.spawn().unwrap());
        eventually("it records", || directory.join("client").exists());
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

/// A server that listens on an address, which the driver needs.
fn server() -> (Cluster, String) {
    let loaded = support::plain().setting("shared_preload_libraries", "pg_tally");
    let (cluster, port) = support::on_loopback(loaded);
    (cluster, format!("jdbc:postgresql://127.0.0.1:{port}/postgres?sslmode=disable"))
}

/// A client with this collector and a small heap, which keeps a log of its collections.
fn garbage(
    java: &Java,
    collector: &[&str],
    logged: &str,
    program: &[&str],
) -> (Running, std::path::PathBuf) {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let log = folder.path().join("gc.log");
    let with = format!(
        "-javaagent:{}=file={}",
        agent().display(),
        folder.path().join("segment").display()
    );
    let log_option = format!("-Xlog:{logged}:file={}", log.display());
    let mut arguments = collector.to_vec();
    arguments.extend(["-Xmx96m", &log_option, &with]);
    let mut running = java.spawn(&arguments, program, folder);
    running.until("ready");
    (running, log)
}

/// Number and seconds of the pauses for collections in a virtual machine's own log.
fn logged(log: &Path) -> [f64; 2] {
    let text = std::fs::read_to_string(log).unwrap();
    let pauses = text.lines().filter(|line| line.contains("Pause ") && line.ends_with("ms"));
    let ms: Vec<f64> = pauses
        .map(|line| line.trim_end_matches("ms").rsplit(' ').next().unwrap().parse().unwrap())
        .collect();
    [ms.len() as f64, ms.iter().sum::<f64>() / 1e3]
}

/// What the agent and the log have of a client that waits, `[reason][count, seconds]` and `[count, seconds]`: of a time
/// without a pause by the log, several times as long as the agent takes to read its counters. A concurrent cycle may pause
/// the virtual machine even while the program waits.
fn between_pauses(client: &Running, log: &Path) -> ([[f64; 2]; 2], [f64; 2]) {
    let mut found = Default::default();
    let is_quiet = || {
        let before = logged(log);
        std::thread::sleep(Duration::from_millis(500));
        let of_agent = REASONS.map(|it| stopped(client, it));
        found = (of_agent, logged(log));
        found.1 == before
    };
    eventually("the virtual machine is not paused for a time", is_quiet);
    found
}

/// How often and for how long the virtual machine has been stopped for this reason, seconds.
fn stopped(client: &Running, reason: &str) -> [f64; 2] {
    let json = client.methods();
    let pauses = json["pauses"].as_array().unwrap();
    let of = |it: &&Value| it["reason"] == reason;
    let figures = |it: &Value| ["count", "seconds"].map(|figure| it[figure].as_f64().unwrap());
    pauses.iter().find(of).map_or([0.0; 2], figures)
}

const REASONS: [&str; 2] = ["garbage collection", "other safepoint"];

/// A collector, and what must be found of the pauses in its virtual machine's log.
struct Collector {
    options: &'static [&'static str],
    /// What has pauses in the log.
    log: &'static str,
    /// The min of those found as collections, and of those found at all; parts of the log's.
    min: [f64; 2],
    /// Max error of the sum, seconds.
    error: f64,
    /// What the log may include of each pause that the counters do not, seconds.
    around: f64,
    /// What the counters may include of each pause that the log does not, seconds.
    beyond: f64,
    /// Less than this in the log says nothing, seconds.
    enough: f64,
}

const COLLECTOR: Collector = Collector {
    options: &[],
    log: "gc",
    min: [0.9, 0.95],
    error: 0.0,
    around: 0.0,
    beyond: 0.0,
    enough: 0.02,
};

const COLLECTORS: [Collector; 6] = [
    Collector { options: &["-XX:+UseSerialGC"], ..COLLECTOR },
    Collector { options: &["-XX:+UseParallelGC"], ..COLLECTOR },
    // G1 counts its collections without their preparation, which is in the safepoint's rest; on a busy machine a part of it
    // is in neither.
    Collector { options: &["-XX:+UseG1GC"], min: [0.6, 0.85], ..COLLECTOR },
    // Its pauses take some fifteen microseconds, and the log rounds each. The log includes three more than the counters.
    Collector {
        options: &["-XX:+UseZGC"],
        log: "gc,gc+phases",
        error: 3e-5,
        around: 8e-6,
        enough: 1e-4,
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
    // Few of its phases pause, for some thirty microseconds each: the others, which take half a second, must not count. The
    // counters include the reading of the memory's use, before the log's pause begins.
    Collector {
        options: &["-XX:+UseShenandoahGC"],
        error: 1e-3,
        beyond: 1e-4,
        enough: 0.0,
        ..COLLECTOR
    },
];

#[test]
fn pauses_are_those_of_the_virtual_machines_own_log() {
    let _alone = alone();
    for java in all() {
        for collector in COLLECTORS {
            let option = collector.options[0];
            let known = Command::new(&java.program).args([option, "-version"]).output();
            if !known.unwrap().status.success() {
                eprintln!("left out: Java {:?} has no {option}", java.version());
                continue;
            }
            let none = ["org.pgtally.test.Garbage", "none", "none", "0", "2", "800"];
            let (mut client, log) = garbage(&java, collector.options, collector.log, &none);
            // There were pauses before the agent began.
            let (before, logged_before) = between_pauses(&client, &log);
            client.go();
            client.until("done");
            let (mut found, mut count) = ([[0.0; 2]; 2], 0.0);
            let mut expected = 0.0;
            let complete = || {
                let (after, logged) = between_pauses(&client, &log);
                [count, expected] = [0, 1].map(|figure| logged[figure] - logged_before[figure]);
                found =
                    [0, 1].map(|it| [0, 1].map(|figure| after[it][figure] - before[it][figure]));
                found[0][0] >= count
            };
            eventually("the last collections are counted", complete);
            let [[found_count, collections], [_, others]] = found;
            let what = format!(
                "Java {:?} {:?}: {found_count} pauses of {count}, {collections} s and {others} s of {expected} s",
                java.version(),
                collector.options
            );
            eprintln!("{what}");
            assert!(count > 1.0 && found_count == count, "{what}");
            let error = collector.error + count * collector.around;
            let [min, all] = collector.min.map(|part| part * expected - error);
            let max = 1.02 * expected + collector.error + count * collector.beyond;
            assert!(expected > collector.enough && collections <= max, "{what}");
            assert!(collections >= min && collections + others >= all, "{what}");
            client.end();
        }
    }
}

/// One at a time: each needs the processors.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long another client has the server work, and lets it wait, ms, in turn: from the same range as the phases of the
/// program, and in no relation to them (of 0.8 and more of all displaced series, if they begin up to 0.7 s apart).
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

/// The report of a server and of this client, both recorded while the client has its phases.
fn reported(java: &Java, threads: &str) -> (Value, tempfile::TempDir) {
    let (cluster, url) = server();
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("recording");
    let program = ["org.pgtally.test.Garbage", &url, "postgres", threads, "16", "800"];
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
    findings.iter().find(|it| it["section"] == "client").unwrap()
}

#[test]
fn a_server_that_waits_for_a_client_that_collects_garbage_is_found() {
    let _alone = alone();
    let Some(java) = java() else { return };
    let (report, folder) = reported(&java, "2");
    let charts = report["charts"].as_array().unwrap();
    let chart = charts.iter().find(|chart| chart["id"] == "client").unwrap();
    let names: Vec<&str> =
        chart["series"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names[..2], ["server: reading commands", "client: garbage collection"]);
    let found = of_the_client(&report);
    let text = found["text"].as_str().unwrap();
    for expected in ["org.pgtally.test.Garbage", "for garbage collection", "(correlation 0."] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert_eq!(found["weight"], "warning", "{text}");
    let recording = folder.path().join("recording");
    // The client's recording is one of its own: named, it is the same.
    let client = recording.join("client");
    let named =
        output(tally().args(["report", "--json"]).arg(&recording).arg("--client").arg(&client));
    let named: Value = serde_json::from_str(&named).unwrap();
    assert_eq!(of_the_client(&named), found);
    let mut command = tally();
    command.arg("report").arg(&recording).arg("--client").arg(&recording);
    let complaint = complaint(&mut command, 1);
    assert!(complaint.contains("no pauses of a Java client"), "{complaint}");
}

#[test]
fn a_server_that_waits_at_other_times_than_the_client_collects_garbage_is_inconclusive() {
    let _alone = alone();
    let Some(java) = java() else { return };
    let (report, _folder) = reported(&java, "0");
    let found = of_the_client(&report);
    let text = found["text"].as_str().unwrap();
    assert!(text.contains("for garbage collection") && text.contains("inconclusive"), "{text}");
    assert_eq!(found["weight"], "note", "{text}");
}
