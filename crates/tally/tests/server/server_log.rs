// SPDX-License-Identifier: PostgreSQL
//! `tally record --log`: every message of a real server's log once, in each format, over rotation and a killed recorder,
//! and the report's errors by SQLSTATE and statement.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use recording::{LogRow, Range, Recording};
use rustix::process::Signal;
use scratch::Cluster;
use serde_json::Value;

use crate::support::recorder::Recorder;
use crate::support::{eventually, output, plain, start, tally};

const FORMATS: [&str; 3] = ["csvlog", "jsonlog", "stderr"];

/// A server that collects its log in all formats, each in a file of its own name.
fn server() -> Cluster {
    let cluster = start(
        plain()
            .setting("shared_preload_libraries", "pg_tally,auto_explain")
            .setting("logging_collector", "on")
            .setting("log_destination", "stderr,csvlog,jsonlog")
            .setting("log_filename", "server-%Y-%m-%d_%H%M%S.log")
            .setting("log_line_prefix", "%m [%p] %q%u@%d ")
            .setting("log_timezone", "Asia/Kolkata")
            .setting("deadlock_timeout", "50ms"),
    );
    cluster
        .psql("create table t (i int primary key, v int); insert into t values (1, 0), (2, 0)")
        .unwrap();
    cluster
}

fn log(directory: &Path) -> Vec<LogRow> {
    Recording::open(directory, None)
        .and_then(|recording| recording.log(Range::ALL))
        .unwrap_or_default()
}

/// How many messages were read.
fn messages(directory: &Path) -> u64 {
    let rows =
        Recording::open(directory, None).and_then(|recording| recording.log_files(Range::ALL));
    rows.unwrap_or_default().iter().map(|row| row.messages).sum()
}

/// The witness: warnings with numbers, as grep finds them in the files.
fn written(cluster: &Cluster) -> Vec<u32> {
    let mut found = Vec::new();
    for file in std::fs::read_dir(cluster.data_dir().join("log")).unwrap().flatten() {
        if file.path().extension().is_some_and(|extension| extension == "csv") {
            let text = std::fs::read_to_string(file.path()).unwrap();
            let numbers = text.split("numbered ").skip(1);
            found.extend(
                numbers.map(|rest| rest.split(' ').next().unwrap().parse::<u32>().unwrap()),
            );
        }
    }
    found.sort_unstable();
    found
}

/// The numbers of the recorded warnings.
fn recorded(directory: &Path) -> Vec<u32> {
    let rows = log(directory);
    let numbers = rows.iter().filter_map(|row| row.message.strip_prefix("numbered "));
    let mut found: Vec<u32> =
        numbers.map(|rest| rest.split(' ').next().unwrap().parse().unwrap()).collect();
    found.sort_unstable();
    found
}

/// Has the server log warnings with these numbers, each of two lines.
fn warn(cluster: &Cluster, numbers: std::ops::Range<u32>) {
    let (from, to) = (numbers.start, numbers.end - 1);
    cluster
        .psql(&format!(
            "set client_min_messages = error; do $$ begin for n in {from}..{to} loop \
             raise warning 'numbered % of \"all\"', n || E' \\nand' using detail = 'some'; end loop; end $$"
        ))
        .unwrap();
}

/// Rotates the log, and waits until the collector writes into new files.
fn rotate(cluster: &Cluster) {
    let current =
        || std::fs::read_to_string(cluster.data_dir().join("current_logfiles")).unwrap_or_default();
    let before = current();
    // Names have seconds, and a rotation within the same second keeps the file.
    eventually("the log is rotated", || {
        cluster.psql("select pg_rotate_logfile()").unwrap();
        current() != before
    });
}

/// A deadlock between two sessions.
fn deadlock(cluster: &Cluster) {
    let [mut a, mut b] = [(); 2].map(|()| cluster.connect().unwrap());
    a.batch_execute("begin; update t set v = 1 where i = 1").unwrap();
    b.batch_execute("begin; update t set v = 1 where i = 2").unwrap();
    let results = std::thread::scope(|scope| {
        let first = scope.spawn(|| a.batch_execute("update t set v = 2 where i = 2"));
        let second = scope.spawn(|| b.batch_execute("update t set v = 2 where i = 1"));
        [first.join().unwrap(), second.join().unwrap()]
    });
    assert_eq!(results.iter().filter(|result| result.is_err()).count(), 1, "{results:?}");
}

#[test]
fn each_format_has_every_message_once_over_rotation() {
    let cluster = server();
    let folder = tempfile::tempdir().unwrap();
    let directory = |format: &str| folder.path().join(format);
    let recorders = FORMATS.map(|format| {
        let more = ["--interval", "100ms", "--log", format];
        Recorder::start(&cluster, &directory(format), &more)
    });
    for recorder in &recorders {
        recorder.wait_for(3);
    }
    warn(&cluster, 0..150);
    rotate(&cluster);
    warn(&cluster, 150..300);
    deadlock(&cluster);
    for _ in 0..3 {
        cluster.psql("insert into t values (1, 7)").unwrap_err();
    }
    cluster
        .psql("load 'auto_explain'; set auto_explain.log_min_duration = 0; select count(*) from t")
        .unwrap();
    cluster.psql("checkpoint").unwrap();
    rotate(&cluster);
    warn(&cluster, 300..400);
    // The collector writes what it gets when it gets to it.
    eventually("all warnings are written", || written(&cluster).len() >= 400);
    let all = written(&cluster);
    assert_eq!(all, (0..400).collect::<Vec<_>>());
    for format in FORMATS {
        eventually("all warnings are recorded", || recorded(&directory(format)).len() >= 400);
    }
    for recorder in recorders {
        recorder.wait_for(2);
        recorder.end(Signal::INT);
    }
    let mut counts = Vec::new();
    for format in FORMATS {
        let directory = directory(format);
        assert_eq!(recorded(&directory), all, "{format}");
        let rows = log(&directory);
        let errors: Vec<&LogRow> = rows.iter().filter(|row| &*row.kind == "error").collect();
        let duplicate = errors.iter().filter(|row| row.message.starts_with("duplicate key value"));
        assert_eq!(duplicate.clone().count(), 3, "{format}: {errors:?}");
        for row in duplicate {
            assert_eq!(row.query.as_deref(), Some("insert into t values (?, ?)"), "{format}");
            assert_eq!(row.detail.as_deref(), Some("Key (i)=(1) already exists."), "{format}");
            assert_eq!(&*row.sqlstate, if format == "stderr" { "" } else { "23505" });
        }
        let deadlock = rows.iter().find(|row| &*row.kind == "deadlock").expect(format);
        let detail = deadlock.detail.as_deref().unwrap();
        assert!(
            detail.contains("where i = 1") && detail.contains("where i = 2"),
            "{format}: {detail}"
        );
        let warning = rows.iter().find(|row| row.message.starts_with("numbered 7 ")).unwrap();
        assert!(warning.message.ends_with("\nand of \"all\""), "{format}: {warning:?}");
        assert_eq!(warning.detail.as_deref(), Some("some"), "{format}");
        // The server's zone has half an hour.
        let now = jiff::Timestamp::now().as_microsecond();
        let age = now - warning.logged_us.unwrap();
        assert!((0..1_800_000_000).contains(&age), "{format}: {age} us");
        let kinds: BTreeMap<&str, usize> = rows.iter().fold(BTreeMap::new(), |mut kinds, row| {
            *kinds.entry(&*row.kind).or_default() += 1;
            kinds
        });
        assert!(kinds["plan"] >= 1 && kinds["checkpoint"] >= 2, "{format}: {kinds:?}");
        let plan = rows.iter().find(|row| &*row.kind == "plan").unwrap();
        assert!(plan.duration_ns.is_some() && plan.message.contains("Seq Scan on t"), "{plan:?}");
        counts.push((format, rows.len()));
    }
    // The formats agree on everything.
    assert!(counts.iter().all(|(_, count)| *count == counts[0].1), "{counts:?}");

    let mut report = tally();
    report.args(["report", "--json"]).arg(directory("csvlog"));
    let report: Value = serde_json::from_str(&output(&mut report)).unwrap();
    let table = report["tables"]
        .as_array()
        .unwrap()
        .iter()
        .find(|table| table["id"] == "log_errors")
        .unwrap();
    let rows = table["rows"].as_array().unwrap();
    let of = |sqlstate: &str| {
        rows.iter().find(|row| row["sqlstate"] == sqlstate || row[0] == sqlstate).unwrap()
    };
    assert!(of("23505").to_string().contains("insert into t values (?, ?)"), "{rows:?}");
    assert!(of("40P01").to_string().contains("deadlock detected"), "{rows:?}");
    let marks = report["marks"].as_array().unwrap();
    assert!(marks.iter().any(|mark| mark["kind"] == "deadlock"), "{marks:?}");
}

#[test]
fn a_killed_recorder_loses_no_message_and_repeats_none() {
    let cluster = server();
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    let more = ["--interval", "100ms", "--log", "jsonlog"];
    let begin = || Recorder::start(&cluster, &directory, &more);
    let recorder = begin();
    recorder.wait_for(3);
    warn(&cluster, 0..100);
    eventually("some are recorded", || !recorded(&directory).is_empty());
    recorder.end(Signal::KILL);
    // While nobody reads: in the same file, and in two further ones.
    warn(&cluster, 100..200);
    rotate(&cluster);
    warn(&cluster, 200..300);
    rotate(&cluster);
    warn(&cluster, 300..400);
    let recorder = begin();
    eventually("all are recorded", || recorded(&directory).len() >= 400);
    warn(&cluster, 400..500);
    eventually("later ones, too", || recorded(&directory).len() >= 500);
    recorder.wait_for(2);
    recorder.end(Signal::INT);
    let all: Vec<u32> = (0..500).collect();
    assert_eq!((recorded(&directory), written(&cluster)), (all.clone(), all));
}

#[test]
fn a_flood_over_rotation_and_kills_is_counted_in_each_format() {
    let cluster = server();
    let folder = tempfile::tempdir().unwrap();
    let directory = |format: &str| folder.path().join(format);
    let begin = || {
        FORMATS.map(|format| {
            let more = ["--interval", "100ms", "--log", format];
            let recorder = Recorder::start(&cluster, &directory(format), &more);
            recorder.wait_for(3);
            recorder
        })
    };
    let recorders = begin();
    let before = FORMATS.map(|format| messages(&directory(format)));
    warn(&cluster, 0..40_000);
    for ((format, recorder), before) in FORMATS.into_iter().zip(recorders).zip(before) {
        eventually("it reads", || messages(&directory(format)) > before);
        recorder.end(Signal::KILL);
    }
    warn(&cluster, 40_000..60_000);
    rotate(&cluster);
    let recorders = begin();
    warn(&cluster, 60_000..80_000);
    rotate(&cluster);
    warn(&cluster, 80_000..100_000);
    for (format, before) in FORMATS.into_iter().zip(before) {
        eventually("all are read", || messages(&directory(format)) >= before + 100_000);
    }
    for recorder in recorders {
        recorder.wait_for(2);
        recorder.end(Signal::INT);
    }
    for format in FORMATS {
        let rows =
            Recording::open(&directory(format), None).unwrap().log_files(Range::ALL).unwrap();
        let left_out: u64 = rows.iter().map(|row| row.left_out).sum();
        let unknown: u64 = rows.iter().map(|row| row.unknown).sum();
        let numbers = recorded(&directory(format));
        assert_eq!((numbers.len() as u64 + left_out, unknown), (100_000, 0), "{format}");
        let mut distinct = numbers.clone();
        distinct.dedup();
        assert_eq!(distinct, numbers, "{format}: none is recorded twice");
    }
}

#[test]
fn a_log_that_cannot_be_read_is_named() {
    let cluster = start(plain().setting("shared_preload_libraries", "pg_tally"));
    let folder = tempfile::tempdir().unwrap();
    let record = |log: &Path, directory: PathBuf| {
        let mut record = tally();
        record.args(["record", "--for", "300ms", "--interval", "100ms", "-o"]).arg(directory);
        record.arg("--log").arg(log).arg(cluster.data_dir());
        String::from_utf8(record.assert().success().get_output().stderr.clone()).unwrap()
    };
    let said = record(Path::new("csvlog"), folder.path().join("a"));
    assert!(said.contains("the server collects no log (logging_collector)"), "{said}");
    let said = record(&folder.path().join("missing.log"), folder.path().join("b"));
    assert!(said.contains("missing.log: No such file"), "{said}");
}
