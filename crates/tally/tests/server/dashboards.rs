// SPDX-License-Identifier: PostgreSQL
//! `tally dashboards`: its output, run by Prometheus and its own tool.

use crate::support;
use std::path::Path;

use crate::support::serving::{self as serve, Prometheus, Serving};
use serde_json::Value;

fn written() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut command = support::tally();
    command.arg("dashboards").arg(folder.path());
    assert_eq!(support::output(&mut command), "");
    folder
}

fn promtool(arguments: &[&str]) {
    assert_cmd::Command::new("promtool").args(arguments).assert().success();
}

/// The expressions of all charts, by heading.
fn expressions(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for file in std::fs::read_dir(folder.join("grafana")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let board: Value = serde_json::from_str(&text).unwrap();
        for panel in board["panels"].as_array().unwrap() {
            let title = format!(
                "{}: {}",
                board["title"].as_str().unwrap(),
                panel["title"].as_str().unwrap()
            );
            for target in panel["targets"].as_array().unwrap() {
                found.push((title.clone(), target["expr"].as_str().unwrap().to_string()));
            }
        }
    }
    found
}

#[test]
fn every_chart_has_data_from_a_server_under_load() {
    let folder = written();
    let cluster = serve::quiet();
    cluster.pgbench_init(1).unwrap();
    let serving = Serving::start(&cluster, &["--statements", "20"]);
    let prometheus = Prometheus::start(&serving, &[]);
    let _client = cluster.connect().unwrap();
    // A rate requires two readings of each series, before and after it has grown. The first one is seconds after
    // the start.
    let readings = || prometheus.query("count_over_time(pgtally_up[10m])").unwrap_or(0.0);
    for _ in 0..3 {
        serve::load(&cluster, 2, 100);
        cluster.psql("checkpoint").unwrap();
        assert!(cluster.psql("select 1 / 0").is_err());
        let before = readings();
        support::eventually("Prometheus has scraped twice", || readings() >= before + 2.0);
    }
    let charts = expressions(folder.path());
    assert!(charts.len() > 30, "{}", charts.len());
    let without: Vec<String> = charts
        .iter()
        .filter(|(_, expression)| {
            let expression =
                expression.replace("$instance", ".*").replace("$__rate_interval", "10m");
            prometheus.query(&format!("count({expression})")).is_none_or(|lines| lines < 1.0)
        })
        .map(|(title, expression)| format!("{title}: {expression}"))
        .collect();
    assert!(without.is_empty(), "no data for: {without:#?}");
}

/// An hour of one server, by minute: values from `series`, and the alerts that fire at its end.
fn hour(series: &[(&str, &str)], fires: Option<(&str, &str)>, name: &str) -> String {
    let mut text = String::from("  - interval: 1m\n    input_series:\n");
    for (series, values) in series {
        text += &format!("      - series: '{series}'\n        values: '{values}'\n");
    }
    text += &format!("    alert_rule_test:\n      - eval_time: 30m\n        alertname: {name}\n");
    if let Some((labels, summary)) = fires {
        text += &format!(
            "        exp_alerts:\n          - exp_labels: {{{labels}}}\n            exp_annotations:\n              \
             summary: '{summary}'\n              description: REMEDY-{name}\n"
        );
    }
    text
}

#[test]
fn promtool_accepts_the_rules_and_they_fire_only_when_something_is_wrong() {
    let folder = written();
    let rules = folder.path().join("prometheus/pgtally.rules.yml");
    promtool(&["check", "rules", rules.to_str().unwrap()]);

    let text = std::fs::read_to_string(&rules).unwrap();
    let remedy = |name: &str| {
        let rule = text.split("- alert: ").find(|rule| rule.starts_with(name)).unwrap();
        rule.lines().find_map(|line| line.trim().strip_prefix("description: ")).unwrap().to_string()
    };
    let locks = "pgtally_time_seconds_total{instance=\"a\",class=\"lock\",activity=\"Lock:tuple\",phase=\"execute\"}";
    let cpu = "pgtally_time_seconds_total{instance=\"a\",class=\"cpu\",activity=\"cpu\",phase=\"execute\"}";
    let cores = ("pgtally_processors{instance=\"a\"}", "2x60");
    let up = "pgtally_up{instance=\"a\"}";
    let cases = [
        // Three sessions wait: 180 s each minute.
        hour(
            &[(locks, "0+180x60")],
            Some(("instance: a, severity: warning", "a: 3 sessions wait for locks on average")),
            "PostgresSessionsWaitForLocks",
        ),
        hour(&[(locks, "0+30x60")], None, "PostgresSessionsWaitForLocks"),
        hour(
            &[(cpu, "0+300x60"), cores],
            Some((
                "instance: a, severity: warning",
                "a: 5 processes need a CPU, more than the machine has",
            )),
            "PostgresCpuDemandExceedsCpus",
        ),
        hour(&[(cpu, "0+110x60"), cores], None, "PostgresCpuDemandExceedsCpus"),
        hour(
            &[(up, "0x60")],
            Some((
                "instance: a, severity: critical",
                "a: the server is down or pg_tally is not loaded",
            )),
            "PgtallyServerNotRead",
        ),
        hour(&[(up, "1x60")], None, "PgtallyServerNotRead"),
    ];
    let mut test = format!("rule_files: [{}]\ntests:\n", rules.display());
    for case in cases {
        test += &case;
    }
    let names =
        ["PostgresSessionsWaitForLocks", "PostgresCpuDemandExceedsCpus", "PgtallyServerNotRead"];
    for name in names {
        test = test.replace(&format!("REMEDY-{name}"), &remedy(name));
    }
    let file = folder.path().join("test.yml");
    std::fs::write(&file, test).unwrap();
    promtool(&["test", "rules", file.to_str().unwrap()]);
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let output = support::tally().arg("dashboards").arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("could not create") && error.contains("file/grafana"), "{error}");
}
