// SPDX-License-Identifier: PostgreSQL
//! The Java agent and `tally methods`, on real virtual machines: times, numbers of calls, and what must not happen.

use crate::support;
use std::collections::HashMap;
use std::process::Command;

use crate::support::java::{agent, all, java, row, CodeReader, Running};
use crate::support::{complaint, output, tally};
use serde_json::Value;

/// Of the original study: milliseconds of a round, inclusive and exclusive.
const STUDY: [(&str, f64, f64); 3] =
    [("Abc.a()", 135.0, 45.0), ("Abc.b()", 80.0, 40.0), ("Abc.c()", 50.0, 50.0)];

/// The figures that the program printed after this word, seconds.
fn printed<const N: usize>(lines: &[String], word: &str) -> [f64; N] {
    let line = lines.iter().find_map(|line| line.strip_prefix(word)).unwrap();
    let values: Vec<f64> =
        line.trim().split(' ').map(|ns| ns.parse::<f64>().unwrap() / 1e9).collect();
    values.try_into().unwrap()
}

/// What the program consumed in addition, seconds: in A, B, C called by B, and C called by A.
fn more(lines: &[String]) -> [f64; 4] {
    printed(lines, "more ")
}

fn seconds(json: &Value, method: &str, field: &str) -> f64 {
    let value = match field {
        "inclusive" => &row(json, method)["inclusive"]["seconds"],
        field => &row(json, method)[field],
    };
    value.as_f64().unwrap()
}

/// The figures of the rounds after the first one, which `before` has, are within 1 % of the study's. An elapsed time
/// may exceed that by `delay`, the time for which the program had no CPU; the program compensates most of it.
fn compare(
    [before, after]: [&Value; 2],
    rounds: f64,
    [a, b, c_in_b, c_in_a]: [f64; 4],
    fields: [&str; 2],
    delay: f64,
) {
    let c = c_in_a + c_in_b;
    let more = [[a + b + c, a], [b + c_in_b, b], [c, c]];
    for ((method, inclusive, exclusive), more) in STUDY.into_iter().zip(more) {
        for ((field, ms), more) in fields.into_iter().zip([inclusive, exclusive]).zip(more) {
            let expected = rounds * ms / 1e3 + more;
            let found = seconds(after, method, field) - seconds(before, method, field);
            assert!(
                (expected * 0.99..=expected * 1.01 + delay).contains(&found),
                "{method} {field}: {found} s, expected {expected} s, without a CPU for {delay} s"
            );
        }
    }
}

#[test]
fn elapsed_times_are_those_of_the_original_study() {
    let Some(java) = java() else { return };
    let mut abc = java.start("methods=org.pgtally.test.Abc#?", &["org.pgtally.test.Abc", "8"]);
    let (before, waited) = (abc.methods(), abc.run_delay());
    let more = more(&abc.finish());
    let delay = abc.run_delay() - waited;
    let json = abc.methods();
    compare([&before, &json], 8.0, more, ["inclusive", "exclusive_seconds"], delay);
    assert_eq!(row(&json, "Abc.a()")["calls"], 9);
    assert_eq!(row(&json, "Abc.c()")["calls"], 45);
    assert_eq!(json["exact"], true, "{json:#}");
    assert!(row(&json, "Abc.a()")["cpu_inclusive_seconds"].is_null());
    // The ledger's time in the methods is the sum of their exclusive times: the time is conserved.
    let exclusive = |method| row(&json, method)["exclusive_seconds"].as_f64().unwrap();
    let sum: f64 = STUDY.iter().map(|(method, ..)| exclusive(method)).sum();
    let busy = json["busy_seconds"].as_f64().unwrap();
    assert!((busy / sum - 1.0).abs() < 1e-9, "{busy} s in the ledger, {sum} s in methods");
    let text = output(tally().arg("methods").arg(abc.segment()));
    assert_eq!(text.matches("\nTop 5 by").count(), 3, "{text}");
    let complaint = complaint(tally().args(["methods", "--sort", "cpu"]).arg(abc.segment()), 1);
    assert!(complaint.contains("cpu=on"), "{complaint}");
    abc.end();
}

#[test]
fn cpu_times_are_those_of_the_original_study_on_a_busy_machine() {
    struct Busy(std::process::Child);
    impl Drop for Busy {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
    let Some(java) = java() else { return };
    let busy = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let cores = std::thread::available_parallelism().unwrap().get();
    let _busy: Vec<Busy> = (0..cores).map(|_| Busy(busy())).collect();
    let mut abc =
        java.start("methods=org.pgtally.test.Abc#?,cpu=on", &["org.pgtally.test.Abc", "6", "cpu"]);
    let (before, kernels, waited) = (abc.methods(), abc.cpu_time(), abc.run_delay());
    let lines = abc.finish();
    let (json, kernels) = (abc.methods(), abc.cpu_time() - kernels);
    let waited = abc.run_delay() - waited;
    let fields = ["cpu_inclusive_seconds", "cpu_exclusive_seconds"];
    compare([&before, &json], 6.0, more(&lines), fields, 0.0);
    // The program read the clock of its thread, too; and the kernel, which knows nothing of Java, charged that thread.
    let read: [f64; 3] = printed(&lines, "read ");
    for ((method, ..), read) in STUDY.into_iter().zip(read) {
        let found = seconds(&json, method, fields[0]) - seconds(&before, method, fields[0]);
        assert!(
            (found / read - 1.0).abs() < 0.01,
            "{method}: {found} s, the program read {read} s"
        );
    }
    let found = seconds(&json, "Abc.a()", fields[0]) - seconds(&before, "Abc.a()", fields[0]);
    assert!((found / kernels - 1.0).abs() < 0.02, "{found} s of {kernels} s of the kernel's");
    eprintln!("{found} s, read {read:?} s, of the kernel {kernels} s, without a CPU {waited} s");
    assert!(waited > 0.1 * found, "the machine was not busy: {waited} s without a CPU");
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
        // 40 threads in 16 slots, some at the same time: those that got one are counted in full, the others not at
        // all, and that is reported.
        let small = calls("small()").unwrap();
        assert!(small % 1001 == 0 && small <= 40_040, "{small}");
        assert!(small == 40_040 || json["exact"] == false, "{small}");
        // A recursive call's time is in that of the outermost one.
        let recursive = row(&json, "Cases$Calls.recursive(int)");
        let (inclusive, exclusive) =
            (&recursive["inclusive"]["seconds"], &recursive["exclusive_seconds"]);
        let ratio = exclusive.as_f64().unwrap() / inclusive.as_f64().unwrap();
        assert!((ratio - 1.0).abs() < 1e-6, "{recursive}");
        cases.end();
    }
}

#[test]
fn calls_of_virtual_threads_are_counted() {
    let Some(java) = all().into_iter().find(|it| it.version() >= Some(21)) else {
        return eprintln!("left out: there is no Java 21 or later");
    };
    let mut threads = java.start(
        "methods=org.pgtally.test.Virtual#call:org.pgtally.test.Virtual#inner",
        &["org.pgtally.test.Virtual", "2000"],
    );
    threads.finish();
    let json = threads.methods();
    for method in ["Virtual.call(CountDownLatch)", "Virtual.inner()"] {
        assert_eq!(row(&json, method)["calls"], 2000, "{json:#}");
    }
    // Each was parked for a millisecond within its call.
    let elapsed = row(&json, "Virtual.call(CountDownLatch)")["inclusive"]["seconds"].as_f64();
    assert!(elapsed.unwrap() >= 2.0, "{json:#}");
    threads.end();
}

#[test]
fn calls_of_the_driver_agree_with_proxies_that_count_them() {
    let Some(java) = java() else { return };
    let (_cluster, port) = support::on_loopback(support::plain());
    let url = format!("jdbc:postgresql://127.0.0.1:{port}/postgres?sslmode=disable");
    let mut driver =
        java.start("methods=driver", &["org.pgtally.test.Driver", &url, "postgres", "4", "200"]);
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
    // Fetches of ten rows each: the rest of 25 rows takes two more round trips. The parameters' names are a hash.
    let rows = json["methods"].as_array().unwrap();
    let fetch =
        |it: &&Value| it["method"].as_str().unwrap().starts_with("QueryExecutorImpl.fetch(#");
    assert_eq!(
        rows.iter().find(fetch).map(|it| &it["calls"]),
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
    for (options, expected) in [
        ("colour=red", "there is no option \"colour\"; there are methods,"),
        ("cpu=perhaps", "cpu=perhaps: write on or off"),
        ("threads=0", "threads=0: write a number from 1 to"),
        ("methods=#", "is no pattern; write CLASS or CLASS#METHOD"),
        ("directory=/no/such", "could not create the segment"),
        ("directory=/proc", "not on a memory file system"),
    ] {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let argument = format!("-javaagent:{}={options}", agent().display());
        let mut abc = java.spawn(&[&argument], &["org.pgtally.test.Abc", "0"], folder);
        abc.until("ready");
        abc.finish();
        let errors = abc.end();
        assert!(errors.contains(expected) && errors.contains("nothing is measured"), "{errors}");
    }
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let argument =
        format!("-javaagent:{}=file={}", agent().display(), folder.path().join("s").display());
    let mut twice = java.spawn(&[&argument, &argument], &["org.pgtally.test.Abc", "0"], folder);
    twice.until("ready");
    twice.finish();
    let errors = twice.end();
    assert!(errors.contains("measured already"), "{errors}");
}

#[test]
fn the_segment_of_a_killed_process_can_be_read() {
    let Some(java) = java() else { return };
    let mut abc = java.start("methods=org.pgtally.test.Abc#?", &["org.pgtally.test.Abc", "1"]);
    let (before, waited) = (abc.methods(), abc.run_delay());
    let more = more(&abc.finish());
    let delay = abc.run_delay() - waited;
    abc.child.kill().unwrap();
    abc.child.wait().unwrap();
    compare([&before, &abc.methods()], 1.0, more, ["inclusive", "exclusive_seconds"], delay);
}
