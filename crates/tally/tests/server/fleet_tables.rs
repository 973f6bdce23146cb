// SPDX-License-Identifier: PostgreSQL
//! `tally fleet schema --tables` and `refresh`: tables of a ClickHouse server (chdb) return the same results as
//! the files from which they were made.

use std::path::Path;

use crate::support::fleet::{engines, fleet, same, session, upload, HOSTS};
use crate::support::{complaint, output, tally};
use serde_json::Value;

/// The rows of a result, one on each line, where the order of equal rows may differ.
fn rows(answer: &str) -> Vec<Value> {
    let mut lines: Vec<&str> = answer.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.sort_unstable();
    lines.into_iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn fleet_sql(arguments: &[&str]) -> String {
    output(tally().arg("fleet").args(arguments))
}

const QUERIES: [&str; 10] = [
    "hosts",
    "load",
    "waits",
    "statements",
    "p99",
    "regressions",
    "outliers",
    "capacity",
    "checkpoints",
    "health",
];

#[test]
fn tables_answer_as_the_files_while_these_arrive_and_are_replaced() {
    let Some([_, python]) = engines() else { return };
    let made = fleet();
    let folder = tempfile::tempdir().unwrap();
    let (root, tables) = (folder.path().join("fleet"), folder.path().join("tables"));
    let (root_name, tables) = (root.to_str().unwrap(), tables.to_str().unwrap());
    let run = |sql: &str| session(&python, tables, "JSONEachRow", sql);
    // Whole hours around the recordings, which are whole minutes too.
    let now = jiff::Timestamp::now().as_second() / 3600 * 3600;
    let time = |seconds: i64| jiff::Timestamp::from_second(seconds).unwrap().to_string();
    let (since, until) = (time(now - 7200), time(now + 7200));
    let period = ["--since", &since, "--until", &until, "--limit", "100000"];
    for per in ["minute", "hour"] {
        let refresh_of = |more: &[&str]| {
            let first = ["refresh", "--root", root_name, "--tables", per];
            fleet_sql(&first.iter().chain(more).copied().collect::<Vec<_>>())
        };
        let refresh = || refresh_of(&["--since", &since, "--until", &until]);
        let agree = |moment: &str| {
            let sql = |query: &&str, more: &[&str]| {
                let first = ["sql", query, "--engine", "clickhouse"];
                let arguments: Vec<&str> =
                    first.iter().chain(&period).chain(more).copied().collect();
                fleet_sql(&arguments)
            };
            let both = |query: &&str| sql(query, &[]) + &sql(query, &["--root", root_name]);
            let answers = run(&QUERIES.iter().map(both).collect::<String>());
            for (query, both) in QUERIES.iter().zip(answers.chunks(2)) {
                let [kept, read] = [rows(&both[0]), rows(&both[1])];
                assert_eq!(kept.len(), read.len(), "{query} {per} {moment}: {kept:?} {read:?}");
                for (kept, read) in kept.iter().zip(&read) {
                    for (key, value) in read.as_object().unwrap() {
                        assert!(
                            same(&kept[key], value),
                            "{query} {per} {moment} {key}: {kept} {read}"
                        );
                    }
                }
                let is_about_hosts =
                    ["hosts", "load", "waits", "capacity", "statements"].contains(query);
                assert!(!is_about_hosts || !read.is_empty(), "{query} {moment}");
            }
        };
        let _ = std::fs::remove_dir_all(&root);
        upload(made.recordings[1].path(), &root, HOSTS[1]);
        let schema = ["schema", "--engine", "clickhouse", "--root", root_name, "--tables", per];
        let schema = fleet_sql(&schema);
        if per == "hour" {
            // The tables differ only in the length of a row's time, and so do the statements that fill them.
            upload(made.recordings[0].path(), &root, HOSTS[0]);
            run(&(schema + &refresh()));
            roll_up(&root).iter().for_each(|minute| std::fs::remove_file(minute).unwrap());
            run(&refresh());
            agree("without minutes");
            continue;
        }
        run(&schema);
        // Another time range: nothing is added.
        run(&refresh_of(&["--until", "2026-01-02"]));
        let rows_now = run(&format!("SELECT count() AS n FROM tally_{per}_frames")).concat();
        assert!(rows_now.contains(":0}") || rows_now.contains(":\"0\"}"), "{rows_now}");
        run(&refresh());
        agree("with one host");

        // A second host; the refresh is killed before its end.
        upload(made.recordings[0].path(), &root, HOSTS[0]);
        let all = refresh();
        let killed: Vec<&str> =
            all.split(';').filter(|statement| !statement.contains("_runs SELECT")).collect();
        assert!(killed.len() + 8 < all.split(';').count());
        run(&killed.join(";"));
        run(&refresh());
        agree("after a refresh that was killed");

        // Two refreshes at once, which have both found the same files.
        let again = run(&format!("SELECT count() AS n FROM tally_{per}_frames"));
        run(&refresh());
        assert_eq!(run(&format!("SELECT count() AS n FROM tally_{per}_frames")), again);
        run(&format!("TRUNCATE TABLE tally_{per}_runs; {}", refresh()));
        run(&format!(
            "INSERT INTO tally_{per}_runs SELECT DISTINCT source, run FROM tally_{per}_files"
        ));
        agree("after two refreshes of the same files");

        // The hour replaces its minutes, which are removed later.
        let rolled = roll_up(&root);
        run(&refresh());
        agree("with hours");
        rolled.iter().for_each(|minute| std::fs::remove_file(minute).unwrap());
        run(&refresh());
        agree("without minutes");
    }
    charts_have_data(&run, now);
}

/// Every panel of the dashboard for Grafana's ClickHouse source runs; those about hosts have rows.
fn charts_have_data(run: &dyn Fn(&str) -> Vec<String>, hour: i64) {
    let folder = tempfile::tempdir().unwrap();
    output(tally().arg("dashboards").arg(folder.path()));
    let file = folder.path().join("grafana-clickhouse/pgtally-fleet.json");
    let board: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let variables = [
        ("${__from}", format!("{}", (hour - 7200) * 1000)),
        ("${__to}", format!("{}", (hour + 7200) * 1000)),
        ("${__interval_ms}", "60000".into()),
        ("${cluster:singlequote}", "'test'".into()),
        ("${host:singlequote}", "'one','two'".into()),
    ];
    let panels = board["panels"].as_array().unwrap();
    assert!(panels.len() > 10);
    let sql = |panel: &Value| {
        let text = panel["targets"][0]["rawSql"].as_str().unwrap().to_string();
        let fill = |sql: String, (variable, value): &(&str, String)| sql.replace(variable, value);
        let sql = variables.iter().fold(text, fill);
        assert!(!sql.contains("${"), "{sql}");
        sql + ";\n"
    };
    let answers = run(&panels.iter().map(sql).collect::<String>());
    for (panel, answer) in panels.iter().zip(&answers) {
        let found = rows(answer);
        let may_be_empty =
            ["half as long", "differ", "blocked others", "checkpoints", "wraparound"]
                .iter()
                .any(|words| panel["title"].as_str().unwrap().contains(words));
        assert!(may_be_empty || !found.is_empty(), "{}", panel["title"]);
        // The columns of overrides are those of the result.
        for column in panel["fieldConfig"]["overrides"].as_array().unwrap() {
            let key = column["matcher"]["options"].as_str().unwrap();
            assert!(found.first().is_none_or(|row| row.get(key).is_some()), "{key}");
        }
    }
}

/// Turns every existing file of the first host into that of its hour as well; returns the files that it replaces.
fn roll_up(root: &Path) -> Vec<std::path::PathBuf> {
    let mut replaced = Vec::new();
    for table in std::fs::read_dir(root.join("v1")).unwrap().map(|entry| entry.unwrap().path()) {
        let days = std::fs::read_dir(table.join("cluster=test/host=one")).into_iter().flatten();
        for day in days.map(|entry| entry.unwrap().path()) {
            for file in std::fs::read_dir(&day).unwrap().map(|entry| entry.unwrap().path()) {
                let (time, _) =
                    file.file_name().unwrap().to_str().unwrap().split_once('-').unwrap();
                std::fs::copy(&file, day.join(format!("{time}-10s.parquet"))).unwrap();
                replaced.push(file);
            }
        }
    }
    replaced
}

#[test]
fn tables_are_for_clickhouse() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("v1/frames")).unwrap();
    let refused = |arguments: &[&str], words: &str| {
        let text =
            complaint(tally().arg("fleet").args(arguments).arg("--root").arg(folder.path()), 2);
        assert!(text.contains(words), "{text}");
    };
    refused(&["schema", "--engine", "duckdb", "--tables", "minute"], "ClickHouse");
    refused(&["refresh", "--tables", "second"], "minute or hour");
}
