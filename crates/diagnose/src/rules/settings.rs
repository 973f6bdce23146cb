// SPDX-License-Identifier: PostgreSQL
//! Settings: lines of the configuration files that the server cannot apply, values that wait for a restart, changes. Values of
//! settings that may contain passwords are never shown.

use view::units::duration;
use view::vacuum::{Condition, ConditionKind};

use crate::advice::{Advice, RELOAD};
use crate::case::Case;
use crate::diagnosis::{Confidence, Diagnosis, Kind, Rule};

/// Number of settings in a sentence.
const NAMED: usize = 5;

fn standing(rule: Rule, kind: Kind, text: String) -> Diagnosis {
    Diagnosis {
        rule,
        kind,
        text,
        seconds: 0.0,
        share: None,
        evidence: Vec::new(),
        advice: Advice::default(),
        confidence: Confidence::Certain,
        section: "ledger",
        consequence_of: None,
    }
}

/// "a, b and 3 more".
fn listed(all: &[&str]) -> String {
    match all {
        [rest @ .., last] if all.len() <= NAMED && !rest.is_empty() => {
            format!("{} and {last}", rest.join(", "))
        }
        _ if all.len() <= NAMED => all.concat(),
        _ => format!("{} and {} more", all[..NAMED].join(", "), all.len() - NAMED),
    }
}

/// Lines of the configuration files that the server cannot apply.
pub fn not_applied(case: &Case<'_>) -> Vec<Diagnosis> {
    let lines: Vec<&Condition> = case.conditions(ConditionKind::ConfigurationError).collect();
    let Some(first) = lines.first() else { return Vec::new() };
    let what = match first.name.as_str() {
        "" => String::new(),
        name => format!(" ({name})"),
    };
    let others = lines.iter().skip(1).take(3).map(|line| match line.name.as_str() {
        "" => format!("So is {}.", line.state),
        name => format!("So is {} ({name}).", line.state),
    });
    let now = "The server keeps its present values. It would not start with such a line.";
    vec![Diagnosis {
        evidence: std::iter::once(now.to_owned()).chain(others).collect(),
        advice: Advice::from("Correct the line, and load the files again: ").run(RELOAD).say(
            ". The server's log says what is wrong with a value. To list all such lines: ",
        ).run("SELECT sourcefile, sourceline, name, error FROM pg_file_settings WHERE error IS NOT NULL"),
        ..standing(
            Rule::ConfigurationError,
            Kind::Problem,
            format!("A line of the configuration files cannot be applied: {}{what}.", first.state),
        )
    }]
}

/// Settings whose values in the configuration files need a restart. Often that is on purpose, so it is no problem.
pub fn pending_restart(case: &Case<'_>) -> Vec<Diagnosis> {
    let names: Vec<&str> =
        case.conditions(ConditionKind::PendingRestart).map(|row| row.name.as_str()).collect();
    let listed_names = listed(&names);
    let text = match names.len() {
        0 => return Vec::new(),
        1 => format!("{listed_names} has a new value in the configuration files that takes effect at the next restart."),
        _ => format!("{listed_names} have new values in the configuration files that take effect at the next restart."),
    };
    vec![standing(Rule::PendingRestart, Kind::Note, text)]
}

/// The note on changes in words, oldest first: "work_mem: 4MB -> 64MB".
pub fn changed_settings(changes: &[String]) -> Diagnosis {
    let first: Vec<&str> = changes.iter().take(NAMED).map(String::as_str).collect();
    let more = match changes.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let what = if changes.len() == 1 { "A setting has" } else { "Settings have" };
    let text = format!("{what} changed: {}{more}.", first.join("; "));
    let evidence = changes.iter().skip(NAMED).map(|change| format!("{change}.")).collect();
    Diagnosis { evidence, ..standing(Rule::ChangedSettings, Kind::Note, text) }
}

/// Settings that have changed; or, if nobody has seen which, that the configuration was loaded.
pub fn changed(case: &Case<'_>) -> Vec<Diagnosis> {
    let changes: Vec<&Condition> = case.conditions(ConditionKind::SettingChange).collect();
    if changes.is_empty() {
        let loads = case.conditions(ConditionKind::ConfigurationLoad).filter_map(|row| row.seconds);
        let text = |seconds: f64| {
            format!(
                "The server loaded its configuration {} ago. To see which settings change, use tally record or tally serve.",
                duration(seconds)
            )
        };
        return loads.map(|ago| standing(Rule::ChangedSettings, Kind::Note, text(ago))).collect();
    }
    let words: Vec<String> = changes
        .iter()
        .map(|change| match change.seconds {
            Some(seconds) => format!("{}, {} ago", change.state, duration(seconds)),
            None => change.state.clone(),
        })
        .collect();
    vec![changed_settings(&words)]
}
