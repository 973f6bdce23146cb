// SPDX-License-Identifier: PostgreSQL
//! `tally report` of recordings of real servers: it agrees with the output of the recorded command and
//! with itself.

use crate::support;
use std::path::Path;

use crate::support::fixtures::Fixture;
use crate::support::{complaint, eventually, output, segment, tally};
use recording::{Range, Recording};
use scratch::{Cluster, Load};
use segment::Segment;
use serde_json::Value;

const CLIENTS: &str = "4";

/// Records a run of pgbench, until autovacuum has run after it too; returns pgbench's output.
fn record(cluster: &Cluster, directory: &Path) -> String {
    cluster.fill(&Load::TpcB, 1).unwrap();
    // The client that filled the tables may not have counted its last commit yet.
    let mut live = Segment::open(&segment(cluster)).unwrap();
    let mut no_client_is_left = || {
        eventually("no client is left", || {
            let snapshot = live.snapshot(None).unwrap();
            !snapshot.books.iter().any(|book| book.identity.kind == "client backend")
        });
    };
    no_client_is_left();
    let folder = tempfile::tempdir().unwrap();
    let pgbench = cluster.binaries().program("pgbench").display().to_string();
    let (host, port) = (cluster.host().display().to_string(), cluster.port().to_string());
    let mut command = tally();
    command.arg("record").arg(segment(cluster)).arg("-o").arg(directory);
    let waits = "\"$0\" \"$@\" && touch done && while [ ! -e go ]; do sleep 0.05; done";
    command.args(["--interval", "200ms", "--detail", "1s", "--", "sh", "-c", waits, &pgbench]);
    command.args(["-n", "-t", "300", "-c", CLIENTS, "-h", &host, "-p", &port]);
    command.args(["-U", cluster.user(), "postgres"]).current_dir(folder.path());
    std::thread::scope(|scope| {
        let recorder = scope.spawn(|| output(&mut command));
        eventually("pgbench has ended", || folder.path().join("done").exists());
        let came = "select count(*) > 0 from pg_stat_user_tables where autoanalyze_count > 0";
        eventually("autovacuum has come", || cluster.psql(came).unwrap().trim() == "t");
        no_client_is_left();
        std::fs::write(folder.path().join("go"), "").unwrap();
        recorder.join().unwrap()
    })
}

fn report(directory: &Path, more: &[&str]) -> Value {
    let text = output(tally().arg("report").arg(directory).arg("--json").args(more));
    serde_json::from_str(&text).unwrap()
}

fn table<'r>(report: &'r Value, id: &str) -> &'r Value {
    let tables = report["tables"].as_array().unwrap();
    tables.iter().find(|table| table["id"] == id).unwrap_or_else(|| panic!("no table {id}"))
}

fn column(table: &Value, key: &str) -> Vec<f64> {
    let columns = table["columns"].as_array().unwrap();
    let at = columns.iter().position(|column| column["key"] == key).unwrap();
    let rows = table["rows"].as_array().unwrap();
    rows.iter().map(|row| row[at].as_f64().unwrap_or(0.0)).collect()
}

/// The number after these words.
fn number_after(text: &str, words: &str) -> f64 {
    let (_, rest) = text.split_once(words).unwrap_or_else(|| panic!("{words}: {text}"));
    rest.split([' ', '\n', '/']).next().unwrap().parse().unwrap()
}

fn close(a: f64, b: f64, within: f64) {
    assert!((a - b).abs() <= within * b.abs(), "{a} is not {b}");
}

/// Commits in a recording: by clients, and by other processes.
fn commits(directory: &Path) -> (u64, u64) {
    let frame = Recording::open(directory, None).unwrap().sum(Range::ALL).unwrap();
    let whole = ["commit::leader", "commit::group_committed", "commit::asynchronous"];
    let commits =
        frame.statistics.iter().filter(|statistic| whole.contains(&statistic.stat.name.as_str()));
    commits.fold((0, 0), |(clients, others), statistic| {
        let count = statistic.total.change.count;
        if &*statistic.process == "client backend" {
            (clients + count, others)
        } else {
            (clients, others + count)
        }
    })
}

#[test]
fn a_report_of_pgbench_agrees_with_pgbench_and_with_itself() {
    // ANALYZE by autovacuum commits too: run it often, so that each run of the test has some.
    let settings = [("shared_preload_libraries", "pg_tally"), ("autovacuum_naptime", "1s")];
    let cluster = support::start(support::plain().settings(settings));
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("recording");
    let pgbench = record(&cluster, &directory);
    let report = report(&directory, &[]);
    let transactions = number_after(&pgbench, "number of transactions actually processed: ");
    // Each transaction ends with an UPDATE or INSERT, so each writes WAL.
    let (clients, others) = commits(&directory);
    assert_eq!(clients as f64, transactions);
    assert!(others > 0, "autovacuum has done nothing");
    assert_eq!(report["totals"]["commits"], clients + others);
    let statements = table(&report, "statements");
    let texts: Vec<&str> =
        statements["rows"].as_array().unwrap().iter().map(|row| row[0].as_str().unwrap()).collect();
    let update = texts.iter().position(|text| text.contains("UPDATE pgbench_accounts")).unwrap();
    assert_eq!(column(statements, "calls")[update], transactions);
    assert_eq!(report["text"], Value::Null);

    let busy = report["totals"]["busy_seconds"].as_f64().unwrap();
    close(column(table(&report, "ledger"), "seconds").iter().sum(), busy, 1e-9);
    let charts = report["charts"].as_array().unwrap();
    let activity = charts.iter().find(|chart| chart["id"] == "activity").unwrap();
    let seconds = report["axes"]["main"]["seconds"].as_array().unwrap();
    let area: f64 = activity["series"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|series| series["values"].as_array().unwrap().iter().zip(seconds))
        .filter_map(|(value, seconds)| Some(value.as_f64()? * seconds.as_f64()?))
        .sum();
    // Charts have six digits.
    close(area, busy, 1e-5);
    let handled: f64 = column(table(&report, "commands"), "handle_count").iter().sum();
    let map = &report["heatmaps"][0]["columns"];
    let counted: f64 = map
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_array)
        .flat_map(|column| column.iter().skip(1).filter_map(Value::as_f64))
        .sum();
    assert_eq!((report["totals"]["commands"].as_f64().unwrap(), counted), (handled, handled));
    let run = report["texts"].as_array().unwrap().iter().find(|text| text["id"] == "run-1");
    assert!(run.unwrap()["text"].as_str().unwrap().contains("tps = "));

    let text = output(tally().arg("report").arg(&directory));
    for part in ["Findings", "Most time went to", "UPDATE pgbench_accounts", "exit status 0"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_page_is_one_file_written_completely_or_not_at_all() {
    let recording = Fixture::open("pgbench-2-clients");
    let directory = recording.path();
    let place = tempfile::tempdir().unwrap();
    let page = place.path().join("report.html");
    assert_eq!(output(tally().arg("report").arg(directory).arg("-o").arg(&page)), "");
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.starts_with("<!") && html.trim_end().ends_with("</html>"));
    assert!(html.contains("UPDATE pgbench_accounts") && html.contains("table-ledger"));
    let nowhere = place.path().join("nowhere/report.html");
    let message = complaint(tally().arg("report").arg(directory).arg("-o").arg(&nowhere), 1);
    assert!(message.contains("nowhere/report.html") && message.contains("-o"), "{message}");
}

#[test]
fn what_cannot_be_reported_is_an_error_with_a_remedy() {
    let place = tempfile::tempdir().unwrap();
    let message = complaint(tally().arg("report").arg(place.path()), 1);
    assert!(
        message.contains("not a recording") && message.contains("tally record -o"),
        "{message}"
    );
    let message = complaint(tally().arg("report").arg(place.path()).args(["--since", "noon"]), 2);
    assert!(message.contains("noon") && message.contains("14:30"), "{message}");
    let newer = "{\"format\": 9, \"made_by\": \"\"}";
    std::fs::write(place.path().join("recording.json"), newer).unwrap();
    let message = complaint(tally().arg("report").arg(place.path()), 1);
    assert!(message.contains("format 9"), "{message}");
}

#[test]
fn empty_and_reversed_ranges_are_wrong_usage() {
    let recording = Fixture::open("pgbench-2-clients").with_files();
    let directory = recording.path();
    let message = |more: &[&str]| complaint(tally().arg("report").arg(directory).args(more), 2);
    let text = message(&["--since", "-0.5s", "--until", "-1s"]);
    assert!(text.contains("--since"), "{text}");
    let text = message(&["--since", "2001-01-01", "--until", "2001-01-02"]);
    assert!(text.contains("nothing was recorded from 2001-01-01"), "{text}");
    let text = message(&["--host", "elsewhere"]);
    assert!(text.contains("elsewhere"), "{text}");
    // A damaged file is reported, and the rest is read.
    let mut parts = Vec::new();
    find(directory, &mut parts);
    let part = parts.iter().find(|path| path.to_string_lossy().contains("/statistics/")).unwrap();
    let bytes = std::fs::read(part).unwrap();
    std::fs::write(part, &bytes[..bytes.len() / 2]).unwrap();
    let report = report(directory, &[]);
    let findings = report["findings"].to_string();
    assert!(findings.contains(part.file_name().unwrap().to_str().unwrap()), "{findings}");
}

fn find(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => find(&path, found),
            path if path.extension().is_some_and(|extension| extension == "parquet") => {
                found.push(path)
            }
            _ => {}
        }
    }
}

#[test]
fn a_report_has_a_trace_and_refuses_what_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let made = Fixture::open("pgbench-2-clients");
    let recording = made.path();
    let file = folder.path().join("slow.jsonl");
    let lines = [
        r#"{"pid":7,"what":"trace","ns":0,"length_ns":null,"ticks":null,"time":1.7e9}"#,
        r#"{"pid":7,"what":"statement","ns":5,"length_ns":null,"ticks":null,"query":"select '</script>'"}"#,
        r#"{"pid":7,"what":"message","ns":0,"length_ns":9,"ticks":9,"message":"Query"}"#,
    ];
    std::fs::write(&file, lines.join("\n")).unwrap();
    let name = file.to_str().unwrap();
    let document = report(recording, &["--trace", name]);
    assert_eq!(document["trace"]["lines"].as_array().unwrap().len(), 3);
    assert_eq!(document["sections"][1]["id"], "trace");
    let page = folder.path().join("page.html");
    let mut command = tally();
    command.arg("report").arg(recording).args(["--trace", name]).arg("-o").arg(&page);
    output(&mut command);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("id=\"traced\"") && page.contains("select '\\u003c/script>'"));

    let refused = |text: &str| {
        std::fs::write(&file, text).unwrap();
        complaint(tally().arg("report").arg(recording).args(["--trace", name]), 1)
    };
    let error = refused(&format!("{}\n15:56:37 process 7 Query", lines[0]));
    assert!(error.contains("slow.jsonl: line 2 is not output of"), "{error}");
    assert!(refused("").contains("the file is empty"));
}
