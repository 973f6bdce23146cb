// SPDX-License-Identifier: PostgreSQL
//! Changed settings, while the server runs: on the page of `tally serve`, in its metrics and alerts, and what `tally doctor`
//! says about them. Values that may contain passwords are nowhere.

use std::path::Path;
use std::sync::atomic::Ordering;

use scratch::Cluster;
use serde_json::Value;

use crate::doctor_planted::server;
use crate::support::serving::{field, Serving};
use crate::support::{self, doctor, doctor_of, eventually, output, start, tally};

/// In the value of primary_conninfo.
const SECRET: &str = "ZZZZZZZZ";

/// Changes settings as a person does: in the file of ALTER SYSTEM, which the server then loads.
fn change(cluster: &Cluster, settings: &[(&str, &str)]) {
    for (name, value) in settings {
        cluster.psql(&format!("alter system set {name} = {value}")).unwrap();
    }
    cluster.psql("select pg_reload_conf()").unwrap();
}

/// How often the settings were read. Each reading is one statement, in a session that has loaded its configuration before.
fn readings(cluster: &Cluster) -> usize {
    cluster.log().matches("then reset_val else setting end").count()
}

/// The rows of the table of changed settings: name, before, after.
fn changes(report: &Value) -> Vec<[String; 3]> {
    let tables = report["tables"].as_array().unwrap();
    let Some(table) = tables.iter().find(|table| table["id"] == "setting_changes") else {
        return Vec::new();
    };
    let text = |cell: &Value| cell.as_str().unwrap_or_default().to_owned();
    let rows = table["rows"].as_array().unwrap().iter();
    rows.map(|row| [1, 2, 3].map(|column| text(&row[column]))).collect()
}

#[test]
fn the_page_and_the_metrics_have_the_changes_of_settings() {
    let cluster = start(
        support::plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("log_statement", "all"),
    );
    let serving = Serving::start(&cluster, &["--health"]);
    eventually("the settings were read", || {
        serving.metrics().contains("pgtally_setting_changes_total 0")
    });
    assert!(serving.metrics().contains("pgtally_settings_pending_restart 0"));
    assert!(serving.metrics().contains("pgtally_configuration_errors 0"));
    let loaded = || field(&serving.metrics(), "pgtally_configuration_loaded_timestamp_seconds");
    let before = loaded();
    let conninfo = format!("'host=a password={SECRET}'");
    change(
        &cluster,
        &[("work_mem", "'64MB'"), ("primary_conninfo", &conninfo), ("max_connections", "333")],
    );
    let mut report = Value::Null;
    eventually("the page has the changes", || {
        report = serving.report().unwrap_or_default();
        report["tables"].is_array() && !changes(&report).is_empty()
    });
    let row = |name: &str, before: &str, after: &str| [name, before, after].map(str::to_owned);
    assert_eq!(
        changes(&report),
        [row("primary_conninfo", "", "(not recorded)"), row("work_mem", "4MB", "64MB")]
    );
    // The mark is where the server loaded them.
    let loaded_now: f64 = cluster
        .psql("select extract(epoch from pg_conf_load_time())")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let marks = report["marks"].as_array().unwrap();
    let mark = marks.iter().find(|mark| mark["kind"] == "setting").unwrap();
    assert!(mark["text"].as_str().unwrap().contains("work_mem = 64MB (was 4MB)"), "{mark}");
    assert!((mark["time"].as_f64().unwrap() - loaded_now).abs() < 1.0, "{mark} {loaded_now}");
    let metrics = serving.metrics();
    for line in ["pgtally_setting_changes_total 2", "pgtally_settings_pending_restart 1"] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    assert!(loaded() > before);
    for text in [report.to_string(), metrics, serving.get("/").unwrap()] {
        assert!(!text.contains(SECRET), "{text}");
    }
}

/// The messages that a command has appended to a file, a line each.
fn notes(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let all = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    all.filter(|message| message["event"] == "note").collect()
}

#[test]
fn a_command_is_told_of_changed_settings() {
    let cluster = start(
        support::plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("log_statement", "all"),
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("told");
    let command = format!("(cat; echo) >> {}", file.display());
    let target = cluster.data_dir().display().to_string();
    let arguments =
        ["--alert", &command, "--alert-interval", "1s", "--alert-repeat", "1s", "--alert-settings"];
    let _serving = Serving::sending(&target, &arguments, &[], &folder.path().join("messages"));
    eventually("the settings were read", || readings(&cluster) > 0);
    let conninfo = format!("'host=a password={SECRET}'");
    change(&cluster, &[("work_mem", "'64MB'"), ("primary_conninfo", &conninfo)]);
    eventually("the change is told", || !notes(&file).is_empty());
    change(&cluster, &[("work_mem", "'5MB'")]);
    eventually("the next change is told", || notes(&file).len() > 1);
    let all = notes(&file);
    assert_eq!(all[0]["rule"], "changed-settings");
    let changes = all[0]["changes"].as_array().unwrap();
    let names: Vec<&str> = changes.iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["primary_conninfo", "work_mem"]);
    assert_eq!((&changes[1]["before"], &changes[1]["after"]), (&"4MB".into(), &"64MB".into()));
    assert_eq!(all[1]["summary"], "A setting has changed: work_mem: 64MB -> 5MB.");
    assert!(!std::fs::read_to_string(&file).unwrap().contains(SECRET));
}

/// The texts of the notes of this rule.
fn noted<'a>(answer: &'a Value, rule: &str) -> Vec<&'a str> {
    let notes = answer["notes"].as_array().unwrap().iter();
    notes.filter(|note| note["rule"] == rule).filter_map(|note| note["text"].as_str()).collect()
}

#[test]
fn the_doctor_names_settings_that_wait_for_a_restart_and_lines_that_cannot_be_applied() {
    let cluster = start(server());
    let answer = doctor(&cluster, 1);
    assert_eq!((&answer["healthy"], &answer["notes"]), (&true.into(), &Value::Array(Vec::new())));
    change(&cluster, &[("max_connections", "333"), ("shared_buffers", "'10MB'")]);
    let mut answer = Value::Null;
    eventually("the server has loaded it", || {
        answer = doctor(&cluster, 1);
        !noted(&answer, "pending-restart").is_empty()
    });
    assert_eq!(
        noted(&answer, "pending-restart"),
        ["max_connections and shared_buffers have new values in the configuration files that take effect at the next restart."]
    );
    // It is on purpose.
    assert_eq!(answer["healthy"], true, "{answer:#}");
    let loaded = noted(&answer, "changed-settings");
    assert!(loaded[0].starts_with("The server loaded its configuration "), "{loaded:?}");

    // The server has not loaded it yet, and could not be started with it.
    cluster.append_config("maintenance_work_mem = 'plenty'\n").unwrap();
    let answer = doctor(&cluster, 1);
    let first = &answer["diagnoses"][0];
    assert_eq!(first["rule"], "configuration-error", "{answer:#}");
    let text = first["text"].as_str().unwrap();
    for word in ["postgresql.conf:", "setting could not be applied", "(maintenance_work_mem)"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!first.to_string().contains("plenty"), "values may be secret: {first:#}");
    // Those that only need a restart have the same error there.
    assert_eq!(first["evidence"].as_array().unwrap().len(), 1, "{first:#}");
    // The server looks at no value while it does not know a name.
    cluster.append_config("no_such_setting = 1\n").unwrap();
    let answer = doctor(&cluster, 1);
    let text = answer["diagnoses"][0]["text"].as_str().unwrap();
    assert!(text.ends_with(": unrecognized configuration parameter (no_such_setting)."), "{text}");
    let refused = cluster.log().matches("permission denied").count();
    cluster.psql("create role watcher login in role pg_monitor").unwrap();
    let watcher = cluster.connection_string().replace("user=postgres", "user=watcher");
    let answer = doctor_of(watcher.as_ref(), 1, &[]);
    assert_eq!(answer["healthy"], true, "{answer:#}");
    assert_eq!(noted(&answer, "pending-restart").len(), 1);
    assert_eq!(cluster.log().matches("permission denied").count(), refused);

    let conf = cluster.data_dir().join("postgresql.conf");
    let text = std::fs::read_to_string(&conf).unwrap();
    let lines =
        text.lines().filter(|line| !line.contains("plenty") && !line.contains("no_such_setting"));
    let corrected: String = lines.map(|line| format!("{line}\n")).collect();
    cluster.replace_file("postgresql.conf", &corrected).unwrap();
    assert_eq!(doctor(&cluster, 1)["healthy"], true);
}

#[test]
fn the_doctor_sees_a_change_while_it_watches() {
    let cluster = start(server());
    let changes = |stop: &std::sync::atomic::AtomicBool| {
        let mut memory = 5;
        while !stop.load(Ordering::Relaxed) {
            change(&cluster, &[("work_mem", &format!("'{memory}MB'"))]);
            memory += 1;
        }
    };
    let printed = support::while_working(&[&changes], || {
        let mut printed = String::new();
        eventually("a change falls into the time", || {
            let mut doctor = tally();
            doctor.args(["doctor", "--for", "1"]).arg(cluster.data_dir());
            printed = output(doctor.env("PGUSER", "postgres"));
            printed.contains("Note: A setting has changed: work_mem: ")
        });
        printed
    });
    let note = printed.lines().find(|line| line.starts_with("Note: ")).unwrap();
    assert!(note.contains("MB -> ") && note.contains(" ago"), "{note}");
}
