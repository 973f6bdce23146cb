// SPDX-License-Identifier: PostgreSQL
//! Settings: what is a problem, and what is a note.

use view::vacuum::{Condition, ConditionKind, Vacuum};

use super::rules::{case, interval, rules};
use crate::{Case, Diagnoses, Findings, Rule};

fn condition(kind: ConditionKind, name: &str, state: &str, seconds: Option<f64>) -> Condition {
    let (name, state) = (name.to_owned(), state.to_owned());
    Condition { kind, name, database: None, state, count: 0, bytes: 0, seconds }
}

fn findings(conditions: Vec<Condition>) -> Findings {
    let vacuum = Vacuum { conditions, ..Vacuum::default() };
    let interval = interval(&[("execute::cpu", 1, 0.1)]);
    crate::diagnose(&Case { vacuum: Some(&vacuum), ..case(&interval) })
}

/// The texts of the notes.
fn noted(conditions: Vec<Condition>) -> Vec<String> {
    let found = findings(conditions);
    assert!(found.problems.is_empty(), "{found:?}");
    found.notes.into_iter().map(|note| note.text).collect()
}

#[test]
fn a_line_that_cannot_be_applied_is_a_problem_without_its_value() {
    let line =
        |name: &str, state: &str| condition(ConditionKind::ConfigurationError, name, state, None);
    let found = findings(vec![
        line("work_mem", "/data/postgresql.conf:3: setting could not be applied"),
        line("", "/data/postgresql.conf:9: syntax error"),
    ]);
    assert_eq!(rules(&found.problems), [Rule::ConfigurationError]);
    let problem = &found.problems[0];
    assert_eq!(
        problem.text,
        "A line of the configuration files cannot be applied: /data/postgresql.conf:3: setting could not be applied (work_mem)."
    );
    assert_eq!(problem.evidence[1], "So is /data/postgresql.conf:9: syntax error.");
    assert_eq!(problem.advice.commands()[0], "SELECT pg_reload_conf()");
}

#[test]
fn settings_that_wait_for_a_restart_are_a_note() {
    let waiting = |names: &[&str]| {
        let row = |name: &&str| condition(ConditionKind::PendingRestart, name, "", None);
        noted(names.iter().map(row).collect())
    };
    let one = "wal_level has a new value in the configuration files that takes effect at the next restart.";
    assert_eq!(waiting(&["wal_level"]), [one]);
    let many = ["a", "b", "c", "d", "e", "f", "g"];
    assert!(waiting(&many)[0].starts_with("a, b, c, d, e and 2 more have new values"));
    assert!(waiting(&many[..3])[0].starts_with("a, b and c have new values"));
    assert!(waiting(&[]).is_empty());
}

#[test]
fn changes_are_noted_and_a_load_only_without_them() {
    let load = || condition(ConditionKind::ConfigurationLoad, "", "", Some(720.0));
    let change = |words: &str| condition(ConditionKind::SettingChange, "n", words, Some(8.0));
    let loaded = noted(vec![load()]);
    assert!(loaded[0].starts_with("The server loaded its configuration 12 min ago."), "{loaded:?}");
    let both = noted(vec![load(), change("work_mem: 4MB -> 64MB"), change("jit: on -> off")]);
    let words = "Settings have changed: work_mem: 4MB -> 64MB, 8 s ago; jit: on -> off, 8 s ago.";
    assert_eq!(both, [words]);
    let many = noted((0..7).map(|n| change(&format!("s{n}: 1 -> 2"))).collect());
    assert!(many[0].ends_with("; and 2 more."), "{many:?}");
}

#[test]
fn notes_come_last_and_leave_the_server_healthy() {
    let vacuum = Vacuum {
        conditions: vec![condition(ConditionKind::PendingRestart, "wal_level", "", None)],
        ..Vacuum::default()
    };
    let interval = interval(&[("execute::cpu", 1, 0.1)]);
    let answer = Diagnoses::from_case(&Case { vacuum: Some(&vacuum), ..case(&interval) });
    assert_eq!(answer.healthy, Some(true));
    let lines = answer.lines(60);
    assert!(lines[0].text.starts_with("Healthy"), "{lines:?}");
    assert!(lines[1].text.starts_with("Note: wal_level has a new value"), "{lines:?}");
    assert!(lines.iter().all(|line| line.text.chars().count() <= 60), "{lines:?}");
}
