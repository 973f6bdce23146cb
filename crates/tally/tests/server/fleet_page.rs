// SPDX-License-Identifier: PostgreSQL
//! `tally serve --fleet` and `tally fleet top`: the figures of `tally fleet ask`, for all hosts and for one, and
//! what is shown when the engine fails.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::fleet::{ask, engines, fleet, number, text, HOSTS};
use crate::support::programs;
use crate::support::serving::Serving;
use crate::support::tmux::Tmux;
use crate::support::{complaint, output, tally};
use fleet_sql::{CHARTS, QUERIES};
use serde_json::Value;

/// The requests of a page.
const QUESTIONS: usize = QUERIES.len() + CHARTS.len();
/// Maximum number of requests for a page.
const TRIES: usize = 3000;

type Row = BTreeMap<String, Value>;

/// The report at a path, once it satisfies the condition.
fn until(serving: &Serving, path: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let mut last = None;
    for _ in 0..TRIES {
        last = serving.get(path).map(|text| serde_json::from_str::<Value>(&text).unwrap());
        if last.as_ref().is_some_and(&holds) {
            return last.unwrap();
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{path}: {}", last.map_or("nothing".into(), |page| format!("{:#}", page["findings"])));
}

fn findings(report: &Value) -> String {
    report["findings"].to_string()
}

fn is_complete(report: &Value) -> bool {
    let findings = findings(report);
    findings.contains("queries have results.") && findings.contains("All ")
}

fn table<'r>(report: &'r Value, id: &str) -> &'r Value {
    let tables = report["tables"].as_array().unwrap();
    tables.iter().find(|table| table["id"] == id).unwrap_or_else(|| panic!("no table {id}"))
}

fn rows(report: &Value, id: &str) -> Vec<Row> {
    let table = table(report, id);
    let keys = table["columns"].as_array().unwrap().iter();
    let keys: Vec<&str> = keys.map(|column| column["key"].as_str().unwrap()).collect();
    let row = |row: &Value| {
        let cells = row.as_array().unwrap().iter().cloned();
        keys.iter().map(|key| key.to_string()).zip(cells).collect()
    };
    table["rows"].as_array().unwrap().iter().map(row).collect()
}

/// Equal, except for the order in which an engine adds numbers.
fn same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
        _ => a == b,
    }
}

/// Name and values of each series of a chart.
fn series(report: &Value, id: &str) -> Vec<(String, Vec<f64>)> {
    let charts = report["charts"].as_array().unwrap();
    let chart = charts.iter().find(|chart| chart["id"] == id).unwrap();
    let one = |series: &Value| {
        let values = series["values"].as_array().unwrap().iter().filter_map(Value::as_f64);
        (series["name"].as_str().unwrap().to_string(), values.collect())
    };
    chart["series"].as_array().unwrap().iter().map(one).collect()
}

#[test]
fn the_page_has_the_figures_of_the_queries_of_all_hosts_and_of_one() {
    let Some(engines) = engines() else { return };
    let fleet = fleet();
    for engine in &engines {
        let serving =
            Serving::of_fleet(engine, &fleet.root, &["--since", "-2d", "--interval", "1h"]);
        let report = until(&serving, "/report.json", is_complete);
        for query in ["hosts", "load", "statements", "capacity", "p99", "checkpoints"] {
            let wanted = ask(engine, &fleet.root, query, &["--since", "-2d"]);
            let found = rows(&report, query);
            assert_eq!(found.len(), wanted.len().min(50), "{query}");
            assert!(!found.is_empty() || query == "checkpoints", "{query}");
            for (found, wanted) in found.iter().zip(&wanted) {
                for (key, value) in found {
                    // The share of a window that another window covers.
                    let is_same = key == "covered_share" || same(value, &wanted[key]);
                    assert!(is_same, "{query} {key}: {found:?} {wanted:?}");
                }
            }
        }
        // One series for each host, whose mean is the figure in the tables.
        for (chart, query, key) in
            [("sessions", "capacity", "sessions"), ("cpu", "capacity", "cpu_share")]
        {
            let found = series(&report, chart);
            assert_eq!(found.len(), 2, "{chart} {found:?}");
            for row in rows(&report, query) {
                let name = format!("test {}", text(&row, "host"));
                let (_, values) = found.iter().find(|series| series.0 == name).unwrap();
                let mean = number(&row, key);
                let [min, max] =
                    [f64::min, f64::max].map(|of| values.iter().copied().reduce(of).unwrap());
                // Charts have six digits.
                assert!(
                    min * 0.99999 <= mean && mean <= max * 1.00001 && max > 0.0,
                    "{name} {mean} {values:?}"
                );
            }
        }
        let questions = rows(&report, "questions");
        assert_eq!(questions.len(), QUESTIONS + 1, "the queries, and the diagnoses of the hosts");
        assert!(questions
            .iter()
            .all(|row| number(row, "seconds") > 0.0 && row["failure"].is_null()));
        // One host.
        let page = until(&serving, "/report.json?host=one", is_complete);
        assert_eq!(
            rows(&page, "hosts").iter().map(|row| text(row, "host")).collect::<Vec<_>>(),
            ["one"]
        );
        assert_eq!(series(&page, "sessions").len(), 1);
        let wanted = ask(engine, &fleet.root, "statements", &["--since", "-2d", "--host", "one"]);
        let calls = |rows: &[Row]| rows.iter().map(|row| number(row, "calls")).collect::<Vec<_>>();
        assert_eq!(calls(&rows(&page, "statements")), calls(&wanted));
        assert_eq!(page["elsewhere"][0]["url"], ".");
        assert_eq!(page["live"]["url"], "report.json?host=one");
        let html = serving.get("/").unwrap();
        assert!(html.contains("href=\"?cluster=test&amp;host=one\""), "no link to a host");
        assert!(serving.get("/?host=one").unwrap().contains("<h1>Host one, "));
        // What is not part of it, and what does not exist.
        for (path, status) in [
            ("/?host=a'b", "400"),
            ("/?hots=one", "400"),
            ("/metrics?hots=one", "400"),
            ("/trace", "404"),
        ] {
            let (found, answer) = serving.status(path, "Host: localhost");
            assert_eq!(found, status, "{path}: {answer}");
        }
        // The metrics are the figures of the page.
        let metrics = serving.get("/metrics").unwrap();
        assert!(metrics.contains("pgtally_fleet_query_success{query=\"hosts\"} 1"), "{metrics}");
        for row in rows(&report, "capacity") {
            let of_host = format!(
                "{{cluster=\"{}\",host=\"{}\"}}",
                text(&row, "cluster"),
                text(&row, "host")
            );
            let name = format!("pgtally_fleet_host_processors{of_host}");
            let line = metrics.lines().find(|line| line.starts_with(&name));
            let line = line.unwrap_or_else(|| panic!("no {name} in {metrics}"));
            assert_eq!(
                line.rsplit(' ').next().unwrap().parse::<f64>().ok(),
                Some(number(&row, "cpus"))
            );
        }
        assert_eq!(
            rows(&until(&serving, "/report.json?host=three", is_complete), "hosts").len(),
            0
        );
        serving.stop();
    }
}

/// DuckDB that fails while a file exists.
fn unreliable(folder: &Path, duckdb: &Path) -> (PathBuf, PathBuf) {
    let (program, file) = (folder.join("duckdb"), folder.join("fail"));
    let script = format!(
        "#!/bin/sh\nif [ -e {} ]; then cat >/dev/null; echo 'Out of Memory Error' >&2; exit 1; fi\nexec {} \"$@\"\n",
        file.display(),
        duckdb.display()
    );
    programs::write(&program, script.as_bytes());
    (program, file)
}

#[test]
fn an_engine_that_fails_is_named_and_the_last_answer_stays() {
    let Some([duckdb, _]) = engines() else { return };
    let fleet = fleet();
    let folder = tempfile::tempdir().unwrap();
    let (program, file) = unreliable(folder.path(), &duckdb);
    let serving = Serving::of_fleet(&program, &fleet.root, &["--since", "-2d", "--interval", "1s"]);
    let before = until(&serving, "/report.json", is_complete);
    assert!(!findings(&before).contains("Out of Memory"));
    std::fs::write(&file, "").unwrap();
    let failed =
        |report: &Value| findings(report).matches("Out of Memory Error").count() == QUESTIONS;
    let report = until(&serving, "/report.json", failed);
    assert_eq!(report["findings"][0]["weight"], "warning");
    assert!(findings(&report).contains("The page shows the result of "));
    assert_eq!(rows(&report, "hosts").len(), 2);
    assert_eq!(table(&report, "statements")["rows"], table(&before, "statements")["rows"]);
    assert!(serving.get("/").unwrap().contains("Out of Memory Error"));
    // A part without any results says why.
    let (status, answer) = serving.status("/?host=two", "Host: localhost");
    assert!(status == "200" && answer.contains("Nothing to show yet"), "{answer}");
    std::fs::remove_file(&file).unwrap();
    until(&serving, "/report.json", |report| !findings(report).contains("Out of Memory"));
    serving.stop();
    // With an engine that fails from the start, there is no page.
    std::fs::write(&file, "").unwrap();
    let mut command = tally();
    command.args(["serve", "--fleet", "--engine"]).arg(&program).arg("--root").arg(&fleet.root);
    assert!(complaint(&mut command, 1).contains("Out of Memory Error"));
}

#[test]
fn what_cannot_be_served_is_refused_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("fleet/v1/frames")).unwrap();
    let refused = |arguments: &[&str], status: i32, words: &str| {
        let mut command = tally();
        let text = complaint(command.current_dir(folder.path()).args(arguments), status);
        assert!(text.contains(words), "{arguments:?}: {text}");
    };
    let root = ["--root", "fleet"];
    let serve = |more: &[&str], words: &str| {
        refused(&[&["serve", "--fleet"], more].concat(), 2, words);
    };
    serve(&[], "--engine");
    serve(&["--engine", "duckdb"], "--root");
    serve(&["--engine", "oracle"], "clickhouse");
    serve(&[&["--engine", "duckdb", "postgres"], &root[..]].concat(), "TARGET");
    serve(&[&["--engine", "duckdb", "--otlp"], &root[..]].concat(), "--otlp");
    serve(&[&["--engine", "duckdb", "--host", "a'b"], &root[..]].concat(), "letters");
    serve(&[&["--engine", "duckdb", "--interval", "2d"], &root[..]].concat(), "interval");
    serve(&[&["--engine", "duckdb", "--interval", "100ms"], &root[..]].concat(), "interval");
    serve(&[&["--engine", "duckdb", "--listen", "0.0.0.0:0"], &root[..]].concat(), "--token-file");
    refused(&["serve", "--engine", "duckdb"], 2, "--fleet");
    refused(&["serve", "--interval", "5min"], 2, "--interval");
    let missing = ["--engine", "/nowhere/duckdb", "--root", "fleet"];
    refused(&[&["serve", "--fleet"], &missing[..]].concat(), 1, "install");
    refused(&[&["fleet", "top"], &missing[..]].concat(), 1, "install");
    refused(&["fleet", "top", "--engine", "duckdb"], 2, "--root");
    refused(&["fleet", "top", "--engine", "spark", "--root", "fleet"], 2, "tally fleet sql");
    refused(
        &["fleet", "top", "--engine", "duckdb", "--root", "fleet", "--view", "x"],
        2,
        "blocking",
    );
}

#[test]
fn a_browser_shows_the_hosts_and_a_click_one_of_them() {
    let Some([duckdb, _]) = engines() else { return };
    let serving =
        Serving::of_fleet(&duckdb, &fleet().root, &["--since", "-2h", "--interval", "1s"]);
    until(&serving, "/report.json", is_complete);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/test/fleet.mjs");
    let mut browser = std::process::Command::new("node");
    browser.arg(script).arg(serving.page());
    browser.args(std::env::var_os("PGTALLY_PICTURE"));
    let run = browser.output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let seen: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(seen["hosts"], 2, "{seen}");
    assert_eq!(seen["legend"], serde_json::json!(["test one", "test two"]), "{seen}");
    assert_eq!(seen["kept"], true, "{seen}");
    assert!(seen["title"].as_str().unwrap().starts_with("Host one of cluster test"), "{seen}");
    assert_eq!(seen["narrowed"], 1, "{seen}");
    assert!(seen["back"].as_str().unwrap().starts_with("All hosts"), "{seen}");
    for nothing in ["requests", "violations", "errors"] {
        assert_eq!(seen[nothing], serde_json::json!([]), "{nothing}");
    }
}

#[test]
fn top_prints_what_ask_answers_and_narrows_on_a_screen() {
    let Some([duckdb, _]) = engines() else { return };
    let fleet = fleet();
    let mut once = tally();
    once.args(["fleet", "top", "--json", "--once", "--since", "-2d", "--engine"]).arg(&duckdb);
    let lines = output(once.arg("--root").arg(&fleet.root));
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), QUERIES.len());
    let statements = lines.iter().find(|line| line["query"] == "statements").unwrap();
    let wanted = ask(&duckdb, &fleet.root, "statements", &["--since", "-2d"]);
    assert_eq!(statements["table"]["rows"].as_array().unwrap().len(), wanted.len());
    assert!(same(&statements["table"]["rows"][0][3], &wanted[0]["calls"]), "{statements}");
    let mut text = tally();
    text.args([
        "fleet", "top", "--once", "--since", "-2d", "--view", "hosts", "--host", "one", "--engine",
    ]);
    let text = output(text.arg(&duckdb).arg("--root").arg(&fleet.root));
    assert!(text.starts_with("Host one, ") && text.contains("\ntest     one "), "{text}");
    assert!(!text.contains("two"), "{text}");
    let command = format!(
        "{} fleet top --since -2d --view hosts --engine {} --root {}",
        assert_cmd::cargo::cargo_bin("tally").display(),
        duckdb.display(),
        fleet.root.display()
    );
    let top = Tmux::run(80, 24, &command);
    let has = |hosts: [bool; 2]| {
        move |seen: &str| {
            let is_row =
                |host: &str| seen.lines().any(|line| line.starts_with(&format!("test     {host}")));
            HOSTS.map(is_row) == hosts
        }
    };
    top.until("both hosts", has([true, true]));
    top.press(&["Down", "Enter"]);
    let seen = top.until("the second alone", has([false, true]));
    assert!(seen.starts_with("Host two of cluster test, "), "{seen}");
    top.press(&["2"]);
    top.until("its statements", |seen| seen.to_lowercase().contains("update pgbench_accounts"));
    top.press(&["0"]);
    top.until("its host", has([false, true]));
    top.press(&["Escape"]);
    top.until("both again", has([true, true]));
    // What the doctor says of each recording, and what to do.
    top.press(&["d"]);
    top.until("the diagnoses of both hosts", |seen| {
        HOSTS
            .iter()
            .all(|host| seen.lines().any(|line| line.starts_with(&format!("test/{host}  "))))
    });
    top.press(&["Enter"]);
    top.until_seen("WHAT IS WRONG  ");
    top.press(&["q"]);
    top.until("the end", |seen| seen.contains("ended with 0"));
}
