// SPDX-License-Identifier: PostgreSQL
//! The Java agent and OpenTelemetry's in one virtual machine, in either order, and ours attached later.

use crate::support;
use std::path::Path;

use crate::support::java::{agent, java, opentelemetry, row, CodeReader, Running};
use crate::support::{output, tally};
use serde_json::Value;

const ROUNDS: u64 = 40;

/// Spans of this statement, as OpenTelemetry's agent logged them.
fn spans(log: &Path, statement: &str) -> u64 {
    let text = std::fs::read_to_string(log).unwrap();
    // The order of attributes differs from run to run.
    let attributes = [",", "}"].map(|end| format!("db.statement={statement}{end}"));
    let spans = text.lines().filter(|line| line.contains("LoggingSpanExporter"));
    spans.filter(|line| attributes.iter().any(|attribute| line.contains(attribute))).count() as u64
}

fn check_spans(log: &Path, halves: u64) {
    for statement in ["select g from generate_series(?, ?) g", "select ?/?"] {
        assert_eq!(spans(log, statement), halves * ROUNDS, "{statement}");
    }
    let text = std::fs::read_to_string(log).unwrap();
    for word in ["VerifyError", "ERROR", "Exception"] {
        assert!(!text.contains(word), "{text}");
    }
}

/// Checks that what each half of the program does is counted once.
fn check_counts(program: &Running, order: &str) {
    let json = program.methods();
    if order == "later" {
        // OpenTelemetry's agent gave this class an interface when it was loaded, and no agent can remove or add
        // one.
        let events = output(tally().arg("events").arg(program.segment()));
        let refused =
            "could not instrument org.postgresql.jdbc.PgConnection, which is already loaded";
        assert!(events.contains(refused), "{events}");
    }
    for (method, calls, thrown) in [
        ("PgConnection.prepareStatement(String)", 1, 0),
        ("PgPreparedStatement.setInt(int,int)", 1, 0),
        ("PgPreparedStatement.executeQuery()", 1, 0),
        ("PgResultSet.next()", 3, 0),
        ("PgResultSet.getInt(int)", 2, 0),
        ("PgStatement.executeQuery(String)", 1, 1),
    ] {
        if order == "later" && method.starts_with("PgConnection.") {
            continue;
        }
        let row = row(&json, method);
        assert_eq!(row["calls"], calls * ROUNDS, "{method}: {json:#}");
        assert_eq!(row["thrown"], thrown * ROUNDS, "{method}: {json:#}");
    }
    assert_eq!(json["exact"], true);
    let calls = program.calls();
    for (text, failed) in [("select g from generate_series(1, ?) g", 0), ("select 1/0", ROUNDS)] {
        let rows = calls["calls"].as_array().unwrap();
        let row = rows.iter().find(|row| row["text"] == text).unwrap_or(&Value::Null);
        assert_eq!(row["execute"]["count"], ROUNDS, "{text}: {calls:#}");
        assert_eq!(row["failed"], failed, "{text}: {calls:#}");
    }
}

#[test]
fn two_agents_leave_each_other_their_figures() {
    let (_cluster, port) = support::on_loopback(support::plain());
    let url = format!("jdbc:postgresql://127.0.0.1:{port}/postgres?sslmode=disable");
    let rounds = ROUNDS.to_string();
    let program = ["org.pgtally.test.Halves", &url, "postgres", &rounds];
    if let Some(java) = java() {
        for order in ["first", "last", "later"] {
            let folder = tempfile::tempdir_in("/dev/shm").unwrap();
            let reader = CodeReader::new(folder.path());
            let log = folder.path().join("spans");
            let options =
                format!("methods=driver-all,file={}", folder.path().join("segment").display());
            let ours = format!("-javaagent:{}={options}", agent().display());
            let theirs = format!("-javaagent:{}", opentelemetry().display());
            let log_option = format!(
                "-Dio.opentelemetry.javaagent.slf4j.simpleLogger.logFile={}",
                log.display()
            );
            let mut arguments = vec![
                &*log_option,
                "-Dotel.traces.exporter=logging",
                "-Dotel.metrics.exporter=none",
                "-Dotel.logs.exporter=none",
                // Only the parts that meet our agent: the rest takes most of its start.
                "-Dotel.instrumentation.common.default-enabled=false",
                "-Dotel.instrumentation.jdbc.enabled=true",
                "-XX:TieredStopAtLevel=1",
            ];
            match order {
                "first" => arguments.extend([&*ours, &*theirs]),
                "last" => arguments.extend([&*theirs, &*ours]),
                _ => arguments.push(&theirs),
            }
            let mut program = java.spawn(&arguments, &program, folder);
            program.until("ready");
            if order == "later" {
                java.attach(&program, &options);
            }
            program.go();
            program.until("half");
            eprintln!("Java {:?}, ours {order}", java.version());
            check_counts(&program, order);
            check_spans(&log, 1);
            let mut finds = |text: &str| {
                reader.finds(&mut program, "org.postgresql.jdbc.PgPreparedStatement", text)
            };
            assert!(finds("org/pgtally/probe") && finds("opentelemetry"), "{order}");
            java.attach(&program, "off");
            let mut finds = |text: &str| {
                reader.finds(&mut program, "org.postgresql.jdbc.PgPreparedStatement", text)
            };
            assert!(!finds("org/pgtally/probe") && finds("opentelemetry"), "{order}");
            assert!(!program.segment().exists());
            program.finish();
            check_spans(&log, 2);
            let errors = program.end();
            assert!(!errors.contains("Error") && !errors.contains("pgtally:"), "{errors}");
        }
    }
}
