// SPDX-License-Identifier: PostgreSQL
//! The Java agent and `tally methods`, on real virtual machines: times, numbers of calls, and behaviour that must
//! not occur.

use crate::support;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::support::java::{agent, all, java, row, CodeReader, Running};
use crate::support::{complaint, eventually, output, tally};
use segment::layout::header;
use serde_json::Value;

/// From the original study: milliseconds of a round, excluding the methods that are called.
const STUDY: [(&str, f64); 3] = [("Abc.a()", 45.0), ("Abc.b()", 40.0), ("Abc.c()", 50.0)];

/// Rounding of figures in seconds.
const ROUNDING: f64 = 1e-8;

/// The seconds that the program printed after this word.
fn printed<const N: usize>(lines: &[String], word: &str) -> [f64; N] {
    let line = lines.iter().find_map(|line| line.strip_prefix(word)).unwrap();
    let values: Vec<f64> =
        line.trim().split(' ').map(|ns| ns.parse::<f64>().unwrap() / 1e9).collect();
    values.try_into().unwrap()
}

/// Each method's figure at the end, minus the one at the start.
fn grown([before, after]: [&Value; 2], figure: impl Fn(&Value) -> &Value) -> [f64; 3] {
    STUDY.map(|(method, _)| {
        let of = |json| figure(row(json, method)).as_f64().unwrap();
        of(after) - of(before)
    })
}

/// Checks the times of the rounds after the first one, which `before` contains: they are longer than what the
/// program measured within its calls, and shorter than what it measured around them.
fn check_times(readings: [&Value; 2], rounds: f64, lines: &[String], has_cpu: bool) {
    let within: [f64; 8] = printed(lines, "within ");
    let around: [f64; 8] = printed(lines, "around ");
    let check = |what: &str, found: f64, min: f64, max: f64| {
        assert!(
            (min - ROUNDING..=max + ROUNDING).contains(&found),
            "{what}: {found} s, not {min} to {max} s"
        );
    };
    let clock = |what: &str, at: usize, inclusive: [f64; 3], exclusive: [f64; 3]| {
        let within: [f64; 4] = within[at..at + 4].try_into().unwrap();
        let around: [f64; 4] = around[at..at + 4].try_into().unwrap();
        let callees = |of: [f64; 4]| [of[1] + of[3], of[2], 0.0];
        let own = |of: [f64; 4]| [of[0], of[1], of[2] + of[3]];
        let (min, max, min_below, max_below) =
            (own(within), own(around), callees(within), callees(around));
        for (n, (method, _)) in STUDY.iter().enumerate() {
            check(&format!("{method}, {what}"), inclusive[n], min[n], max[n]);
            let (min, max) = (min[n] - max_below[n], max[n] - min_below[n]);
            check(&format!("{method} alone, {what}"), exclusive[n], min, max);
        }
        // Nothing is lost, and nothing is counted twice.
        check(what, exclusive.iter().sum(), inclusive[0], inclusive[0]);
    };
    let exclusive = grown(readings, |row| &row["exclusive_seconds"]);
    clock("elapsed", 0, grown(readings, |row| &row["inclusive"]["seconds"]), exclusive);
    if has_cpu {
        let inclusive = grown(readings, |row| &row["cpu_inclusive_seconds"]);
        clock("CPU", 4, inclusive, grown(readings, |row| &row["cpu_exclusive_seconds"]));
    }
    let more: [f64; 3] = printed(lines, "more ");
    for (n, (method, ms)) in STUDY.iter().enumerate() {
        let consumed = rounds * ms / 1e3 + more[n];
        check(&format!("{method} consumed"), exclusive[n], consumed, f64::MAX);
    }
}

#[test]
fn times_are_those_that_the_program_reads_around_and_within_its_calls() {
    let Some(java) = java() else { return };
    let options = "methods=org.pgtally.test.Abc#?,cpu=on";
    let mut abc = java.start(options, &["org.pgtally.test.Abc", "2"]);
    let (before, kernels) = (abc.methods(), abc.cpu_time());
    let lines = abc.finish();
    let (json, kernels) = (abc.methods(), abc.cpu_time() - kernels);
    check_times([&before, &json], 2.0, &lines, true);
    // The kernel, which knows nothing about Java, charged the thread for all of it.
    let [found, ..] = grown([&before, &json], |row| &row["cpu_inclusive_seconds"]);
    assert!(0.0 < found && found <= kernels, "{found} s of {kernels} s of the kernel's");
    assert_eq!(row(&json, "Abc.a()")["calls"], 3);
    assert_eq!(row(&json, "Abc.c()")["calls"], 15);
    assert_eq!(json["exact"], true, "{json:#}");
    // The ledger's time in the methods is the sum of their exclusive times: the time is conserved.
    let exclusive = |method| row(&json, method)["exclusive_seconds"].as_f64().unwrap();
    let sum: f64 = STUDY.iter().map(|(method, _)| exclusive(method)).sum();
    let busy = json["busy_seconds"].as_f64().unwrap();
    assert!((busy / sum - 1.0).abs() < 1e-9, "{busy} s in the ledger, {sum} s in methods");
    let text = output(tally().arg("methods").arg(abc.segment()));
    assert_eq!(text.matches("\nTop 5 by").count(), 5, "{text}");
    abc.end();
}

#[test]
fn calls_are_counted_exactly_whatever_they_do() {
    for java in all() {
        let options = "methods=org.pgtally.test.Cases$Calls:org.pgtally.test.Loaded,threads=16";
        let mut cases = java.start(options, &["org.pgtally.test.Cases"]);
        cases.finish();
        let json = cases.methods();
        let calls = |method: &str| row(&json, &format!("Cases$Calls.{method}"))["calls"].as_u64();
        for (method, expected) in [
            ("recursive(int)", 1010),
            ("even(int)", 600),
            ("odd(int)", 500),
            ("many(long,double,Object,int[])", 100),
            ("hidden()", 100),
            ("small(int)", 100),
            ("throwing(boolean)", 50),
            ("locked()", 1),
        ] {
            assert_eq!(calls(method), Some(expected), "{method}: {json:#}");
        }
        assert_eq!(row(&json, "Cases$Calls.throwing(boolean)")["thrown"], 25);
        let endless = row(&json, "Cases$Calls.endless(int)");
        assert!(endless["calls"].as_u64() > Some(500), "{endless}");
        assert_eq!(row(&json, "Loaded.run()")["calls"], 4, "three loaders and the application's");
        // 40 threads in 16 slots, some at the same time: those that got a slot are counted in full, the others
        // not at all, and this is reported.
        let small = calls("small()").unwrap();
        assert!(small % 1001 == 0 && small <= 40_040, "{small}");
        assert!(small == 40_040 || json["exact"] == false, "{small}");
        // A recursive call's time is part of that of the outermost one.
        let recursive = row(&json, "Cases$Calls.recursive(int)");
        let (inclusive, exclusive) =
            (&recursive["inclusive"]["seconds"], &recursive["exclusive_seconds"]);
        let ratio = exclusive.as_f64().unwrap() / inclusive.as_f64().unwrap();
        assert!((ratio - 1.0).abs() < 1e-6, "{recursive}");
        cases.end();
    }
}

#[test]
fn calls_of_the_driver_agree_with_proxies_that_count_them() {
    let Some(java) = java() else { return };
    let (_cluster, port) = support::on_loopback(support::plain());
    let url = format!("jdbc:postgresql://127.0.0.1:{port}/postgres?sslmode=disable");
    let mut driver = java
        .start("methods=driver-all", &["org.pgtally.test.Driver", &url, "postgres", "4", "200"]);
    let lines = driver.finish();
    let json = driver.methods();
    let witness: HashMap<&str, u64> = lines
        .iter()
        .filter_map(|line| line.strip_prefix("counted ")?.rsplit_once(' '))
        .map(|(method, count)| (method, count.parse().unwrap()))
        .collect();
    let ours = |method: &str| row(&json, method)["calls"].as_u64().unwrap_or(0);
    assert!(witness.len() > 15, "{witness:?}");
    for (method, count) in &witness {
        // The driver calls some of its public methods itself; those calls have no proxy.
        assert!(ours(method) >= *count, "{method}: {} of {count}", ours(method));
    }
    for method in [
        "PgConnection.rollback()",
        "PgPreparedStatement.addBatch()",
        "PgPreparedStatement.executeBatch()",
        "PgPreparedStatement.executeQuery()",
        "PgPreparedStatement.setInt(int,int)",
        "PgResultSet.getInt(int)",
        "PgStatement.executeQuery(String)",
    ] {
        assert_eq!(Some(&ours(method)), witness.get(method), "{method}: {witness:?}");
    }
    // getTransactionIsolation(), which the pool calls, reads one row itself.
    let of_its_own = witness["PgConnection.getTransactionIsolation()"];
    assert_eq!(ours("PgResultSet.next()"), 4 * 200 * 26 + of_its_own);
    assert_eq!(ours("PgConnection.commit()"), 2 * 800, "setAutoCommit(true) commits, too");
    assert_eq!(row(&json, "PgStatement.executeQuery(String)")["thrown"], 800, "select 1/0");
    // Fetches of ten rows each: the rest of 25 rows takes two more round trips. The names of the parameters are
    // a hash.
    let rows = json["methods"].as_array().unwrap();
    let fetch =
        |row: &&Value| row["method"].as_str().unwrap().starts_with("QueryExecutorImpl.fetch(#");
    assert_eq!(
        rows.iter().find(fetch).map(|row| &row["calls"]),
        Some(&Value::from(1600)),
        "{json:#}"
    );
    assert_eq!(json["exact"], true);
    driver.end();
}

#[test]
fn an_agent_that_is_switched_off_leaves_nothing_in_the_classes() {
    let Some(java) = java() else { return };
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let reader = CodeReader::new(folder.path());
    let segment = folder.path().join("segment");
    let mut abc = java.spawn(&[], &["org.pgtally.test.Abc", "0"], folder);
    abc.until("ready");
    let probes = |abc: &mut Running| reader.finds(abc, "org.pgtally.test.Abc", "org/pgtally/probe");
    assert!(!probes(&mut abc));
    for _ in 0..2 {
        java.attach(&abc, &format!("methods=org.pgtally.test.Abc#?,file={}", segment.display()));
        assert!(probes(&mut abc));
        assert!(segment.exists());
        java.attach(&abc, "off");
        assert!(!probes(&mut abc));
        assert!(!segment.exists());
    }
    abc.finish();
    abc.end();
}

#[test]
fn what_is_wrong_is_reported_and_the_application_runs() {
    let Some(java) = java() else { return };
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let wrong = [
        ("colour=red", "unknown option \"colour\"; options are methods,"),
        ("cpu=perhaps", "cpu=perhaps: must be on or off"),
        ("threads=0", "threads=0: must be a number from 1 to"),
        ("methods=#", "is not a pattern; write CLASS or CLASS#METHOD"),
        ("directory=/no/such", "could not create the segment"),
        ("directory=/proc", "not on a memory file system"),
    ];
    let right = format!("file={}", folder.path().join("s").display());
    // One virtual machine is asked for everything, and in the end twice for what it can provide.
    let options = wrong.iter().map(|(options, _)| *options).chain([&*right, &right]);
    let arguments: Vec<String> =
        options.map(|options| format!("-javaagent:{}={options}", agent().display())).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut abc = java.spawn(&arguments, &["org.pgtally.test.Abc", "0"], folder);
    abc.until("ready");
    abc.finish();
    let errors = abc.end();
    let measured = errors.find("already measured").unwrap_or_else(|| panic!("{errors}"));
    let mut from = 0;
    for (options, expected) in wrong {
        let line = errors[from..].find("nothing is measured").map(|at| from + at);
        let at = line.unwrap_or_else(|| panic!("{options}: {errors}"));
        assert!(errors[from..at].contains(expected) && at < measured, "{options}: {errors}");
        from = at + 1;
    }
}

#[test]
fn an_application_that_starts_with_the_agent_prints_one_warning_of_the_virtual_machine_at_most() {
    for java in all() {
        let mut abc = java.start("methods=org.pgtally.test.Abc#?", &["org.pgtally.test.Abc", "0"]);
        abc.finish();
        let errors = abc.end();
        let warnings: Vec<&str> = errors.lines().filter(|line| line.contains("WARN")).collect();
        // In capitals: those of Java itself. That of the virtual machine on class sharing is in docs/java.md.
        assert!(warnings.is_empty(), "Java {:?}: {errors}", java.version());
    }
}

#[test]
fn a_segment_that_was_kept_says_when_its_process_ended() {
    let Some(java) = java() else { return };
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let kept = folder.path().join("kept");
    let with = format!("-javaagent:{}=keep=on,file={}", agent().display(), kept.display());
    let mut abc = java.spawn(&[&with], &["org.pgtally.test.Abc", "0"], folder);
    abc.until("ready");
    abc.finish();
    let folder = abc.ended();
    let text = output(tally().arg("methods").arg(&kept));
    assert!(text.lines().next().unwrap().contains(", ended at "), "{text}");
    let read = || -> Value {
        let text = output(tally().args(["methods", "--json"]).arg(&kept));
        serde_json::from_str(&text).unwrap()
    };
    let (first, second) = (read(), read());
    assert_eq!(first["end"], "ended");
    assert_eq!(first["interval_seconds"], second["interval_seconds"], "time does not go on");
    drop(folder);
}

#[test]
fn the_segment_of_a_killed_process_can_be_read() {
    let Some(java) = java() else { return };
    let mut abc = java.start("methods=org.pgtally.test.Abc#?", &["org.pgtally.test.Abc", "1"]);
    let before = abc.methods();
    let lines = abc.finish();
    abc.child.kill().unwrap();
    abc.child.wait().unwrap();
    let json = abc.methods();
    check_times([&before, &json], 1.0, &lines, false);
    // Time does not go on.
    assert_eq!((&json["end"], &before["end"]), (&Value::from("killed"), &Value::Null));
    assert_eq!(abc.methods()["interval_seconds"], json["interval_seconds"]);
    assert!(before["interval_seconds"].as_f64() <= json["interval_seconds"].as_f64());
    // Figures that were not requested are absent, and the output says how to get them.
    assert!(row(&json, "Abc.a()")["cpu_inclusive_seconds"].is_null());
    assert_eq!(json["edges"], Value::Array(Vec::new()));
    let text = output(tally().arg("methods").arg(abc.segment()));
    assert_eq!(text.matches("\nTop 5 by").count(), 3, "{text}");
    assert!(text.lines().next().unwrap().contains(", killed; last call before "), "{text}");
    for (choice, option) in [(&["--sort", "cpu"][..], "cpu=on"), (&["--callees"], "edges=on")] {
        let complaint = complaint(tally().arg("methods").args(choice).arg(abc.segment()), 1);
        assert!(complaint.contains(option), "{complaint}");
    }
}

/// Writes the segment of a client as if it were that of another process.
fn put(folder: &Path, segment: &[u8], pid: u32, started: u64) -> PathBuf {
    let path = folder.join(format!("pg_tally.java.{pid}"));
    let mut bytes = segment.to_vec();
    bytes[header::SERVER_PID..][..4].copy_from_slice(&pid.to_ne_bytes());
    bytes[header::PROCESS_STARTED..][..8].copy_from_slice(&started.to_ne_bytes());
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn segments_of_killed_processes_are_removed_by_the_next_agent_and_by_tally_and_no_others() {
    let Some(java) = java() else { return };
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let start = |more: &str| {
        let options =
            format!("threads=2,statistics=64,directory={}{more}", folder.path().display());
        let with = format!("-javaagent:{}={options}", agent().display());
        let place = tempfile::tempdir().unwrap();
        let mut abc = java.spawn(&[&with], &["org.pgtally.test.Abc", "0"], place);
        abc.until("ready");
        let path = folder.path().join(format!("pg_tally.java.{}", abc.child.id()));
        assert!(path.exists());
        (abc, path)
    };
    let killed = |more: &str| {
        let (mut abc, path) = start(more);
        abc.child.kill().unwrap();
        abc.child.wait().unwrap();
        path
    };
    let kept = killed(",keep=on");
    let left = killed("");
    let segment = std::fs::read(&left).unwrap();
    let (mut abc, path) = start("");
    eventually("the next agent removes it", || !left.exists());
    let ls = || output(tally().args(["ls", "--directory"]).arg(folder.path()));
    ls();
    assert!(kept.exists() && path.exists());
    abc.finish();
    abc.end();
    // PIDs are reused: a process is identified by its start, too. This one runs.
    let own = std::process::id();
    let started = process::Proc::default().stat(own).unwrap().started_ticks;
    let reused = put(folder.path(), &segment, own, started);
    ls();
    assert!(reused.exists());
    put(folder.path(), &segment, own, started + 1);
    let text = ls();
    assert!(!reused.exists() && text.contains(&format!("removed {}", reused.display())), "{text}");
    // No process has this PID: only the lock shows that the writer runs, perhaps where it has another PID.
    let nobody = 999_999_999;
    let locked = put(folder.path(), &segment, nobody, started);
    let writer = std::fs::File::options().write(true).open(&locked).unwrap();
    rustix::fs::fcntl_lock(&writer, rustix::fs::FlockOperation::LockExclusive).unwrap();
    ls();
    assert!(locked.exists());
    drop(writer);
    ls();
    assert!(!locked.exists());
    // Files that their processes were creating: empty or whole, their names say whose they are.
    let here = std::fs::metadata("/proc/self/ns/pid")
        .map(|meta| std::os::unix::fs::MetadataExt::ino(&meta))
        .unwrap();
    let unfinished = |pid: u32, namespace: u64, started: u64, bytes: &[u8]| {
        let name = format!("pg_tally.java.{pid}.new.{namespace}.{started}.5f-0a");
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let mut left =
        [unfinished(nobody, here, started, b""), unfinished(own, here, started + 1, &segment)];
    let locked = unfinished(nobody, here, started + 2, b"");
    let others = [
        unfinished(own, here, started, b""),
        unfinished(nobody, here + 1, started, b""),
        locked.clone(),
    ];
    let writer = std::fs::File::options().write(true).open(&locked).unwrap();
    rustix::fs::fcntl_lock(&writer, rustix::fs::FlockOperation::LockExclusive).unwrap();
    ls();
    assert!(left.iter().all(|path| !path.exists()) && others.iter().all(|path| path.exists()));
    left[0] = unfinished(nobody, here, started, b"");
    let (mut abc, _) = start("");
    eventually("the next agent removes it", || !left[0].exists());
    abc.finish();
    abc.end();
    assert!(others.iter().all(|path| path.exists()));
    drop(writer);
    for other in others {
        std::fs::remove_file(other).unwrap();
    }
    // A file with another process's PID in its name.
    let renamed = folder.path().join("pg_tally.java.1");
    std::fs::rename(put(folder.path(), &segment, nobody, started), &renamed).unwrap();
    ls();
    assert!(renamed.exists());
    if rustix::process::geteuid().is_root() {
        // Another user's, who may not even enter the directory, and then may.
        let other = put(folder.path(), &segment, nobody, started);
        std::os::unix::fs::chown(&other, Some(65_534), Some(65_534)).unwrap();
        ls();
        assert!(other.exists());
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
        std::fs::set_permissions(folder.path(), mode).unwrap();
        ls();
        assert!(!other.exists());
    }
}
