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

/// The dashboard of `tally serve --health`.
const HEALTH: &str = "pgtally: health";

/// The expressions of all charts, by heading: those of the dashboard of health, or of all others.
fn expressions(folder: &Path, of_health: bool) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for file in std::fs::read_dir(folder.join("grafana")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let board: Value = serde_json::from_str(&text).unwrap();
        if (board["title"] == HEALTH) != of_health {
            continue;
        }
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
    let charts = expressions(folder.path(), false);
    assert!(charts.len() > 30, "{}", charts.len());
    let without = without_data(&prometheus, &charts);
    assert!(without.is_empty(), "no data for: {without:#?}");
}

fn without_data(prometheus: &Prometheus, charts: &[(String, String)]) -> Vec<String> {
    let has_none = |expression: &str| {
        let expression = expression.replace("$instance", ".*").replace("$__rate_interval", "10m");
        prometheus.query(&format!("count({expression})")).is_none_or(|lines| lines < 1.0)
    };
    let without = charts.iter().filter(|(_, expression)| has_none(expression));
    without.map(|(title, expression)| format!("{title}: {expression}")).collect()
}

/// Waits until all charts of the dashboard of health have data from this primary.
pub fn every_chart_of_health_has_data(serving: &Serving) {
    let folder = written();
    let mut charts = expressions(folder.path(), true);
    charts.retain(|(_, expression)| !expression.contains("pgtally_receiver_"));
    assert!(charts.len() > 10, "{}", charts.len());
    let prometheus = Prometheus::start(serving, &[]);
    let mut without = Vec::new();
    support::eventually("all charts have data", || {
        without = without_data(&prometheus, &charts);
        without.is_empty()
    });
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
    let archiver = "pgtally_archiver_failing{instance=\"a\"}";
    let waiting = "pgtally_archiver_waiting_bytes{instance=\"a\"}";
    let slot =
        "pgtally_slot_retained_bytes{instance=\"a\",slot=\"s\",state=\"physical, inactive\"}";
    let lost = "pgtally_slot_retained_bytes{instance=\"a\",slot=\"gone\",state=\"physical, lost\"}";
    let lag = "pgtally_replica_lag_seconds{instance=\"a\",standby=\"db2\",pid=\"7\"}";
    let receiver = "pgtally_receiver_up{instance=\"a\"}";
    let age = "pgtally_database_transaction_age{instance=\"a\",database=\"shop\"}";
    let multixacts = "pgtally_database_multixact_age{instance=\"a\",database=\"shop\"}";
    let errors = "pgtally_configuration_errors{instance=\"a\"}";
    let cases = [
        hour(
            &[(errors, "2x60")],
            Some((
                "instance: a, severity: warning",
                "a: 2 lines of the configuration files cannot be applied; the server would not start again",
            )),
            "PostgresConfigurationError",
        ),
        hour(&[(errors, "0x60")], None, "PostgresConfigurationError"),
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
        hour(
            &[(archiver, "1x60")],
            Some((
                "instance: a, severity: critical",
                "a: WAL is not archived, and the server keeps it",
            )),
            "PostgresArchivingFails",
        ),
        // It fails for three minutes.
        hour(&[(archiver, "0x26 1x3 0x30")], None, "PostgresArchivingFails"),
        hour(
            &[(waiting, "8589934592x60")],
            Some(("instance: a, severity: warning", "a: 8GiB of WAL are waiting for the archiver")),
            "PostgresArchivingLags",
        ),
        hour(&[(waiting, "16777216x60")], None, "PostgresArchivingLags"),
        hour(
            &[(slot, "8589934592x60"), (lost, "8589934592x60")],
            Some((
                "instance: a, slot: s, state: 'physical, inactive', severity: warning",
                "a: slot s (physical, inactive) retains 8GiB of WAL",
            )),
            "PostgresSlotRetainsWal",
        ),
        hour(&[(slot, "16777216x60")], None, "PostgresSlotRetainsWal"),
        hour(
            &[(slot, "8589934592x60"), (lost, "0x60")],
            Some((
                "instance: a, slot: gone, state: 'physical, lost', severity: critical",
                "a: WAL that slot gone needs was removed",
            )),
            "PostgresSlotLost",
        ),
        hour(
            &[(lag, "120x60")],
            Some((
                "instance: a, standby: db2, pid: '7', severity: warning",
                "a: standby db2 is 2m 0s behind",
            )),
            "PostgresStandbyLags",
        ),
        hour(&[(lag, "1x60")], None, "PostgresStandbyLags"),
        hour(
            &[(receiver, "0x60")],
            Some(("instance: a, severity: critical", "a: the standby has no WAL receiver")),
            "PostgresStandbyReceivesNothing",
        ),
        hour(&[(receiver, "1x60")], None, "PostgresStandbyReceivesNothing"),
        hour(
            &[(age, "199000000x60"), (multixacts, "700000000x60")],
            Some((
                "instance: a, database: shop, severity: critical",
                "a: database shop has transaction IDs or multixacts of age 700M; the server stops at 2.1 billion",
            )),
            "PostgresWraparoundNear",
        ),
        hour(&[(age, "199000000x60"), (multixacts, "1x60")], None, "PostgresWraparoundNear"),
    ];
    let mut test = format!("rule_files: [{}]\ntests:\n", rules.display());
    for case in cases {
        test += &case;
    }
    let names: Vec<&str> =
        text.split("- alert: ").skip(1).filter_map(|rule| rule.lines().next()).collect();
    for name in names {
        test = test.replace(&format!("REMEDY-{name}\n"), &format!("{}\n", remedy(name)));
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
