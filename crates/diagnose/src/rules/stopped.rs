// SPDX-License-Identifier: PostgreSQL
//! Processes of the server that a signal has stopped (SIGSTOP, SIGTSTP): they keep all that they hold.

use view::units::duration;
use view::vacuum::{Condition, ConditionKind, POSTMASTER};

use super::{ledger, locks, names};
use crate::case::Case;
use crate::diagnosis::{Confidence, Diagnosis, Kind, Rule};

/// Stopped processes that no other diagnosis names.
pub fn processes(case: &Case<'_>) -> Vec<Diagnosis> {
    if case.conditions(ConditionKind::Stopped).next().is_none() {
        return Vec::new();
    }
    let is_problem =
        |found: Vec<Diagnosis>| found.iter().any(|finding| finding.kind == Kind::Problem);
    let root = locks::worst_root(case).map(|root| i64::from(root.pid));
    let root = root.filter(|_| is_problem(locks::heavyweight(case)));
    let logger = case
        .stopped_logger()
        .map(|logger| logger.count)
        .filter(|_| is_problem(ledger::log_pipe(case)));
    let all = case.conditions(ConditionKind::Stopped);
    let found: Vec<&Condition> =
        all.filter(|process| ![root, logger].contains(&Some(process.count))).collect();
    // What all others need comes before a session.
    let is_session = |process: &&&Condition| {
        case.sessions()
            .any(|row| i64::from(row.pid) == process.count && row.kind == "client backend")
    };
    let Some(first) = found.iter().find(|process| !is_session(process)).or(found.first()) else {
        return Vec::new();
    };
    let session = case.sessions().find(|row| i64::from(row.pid) == first.count);
    let who = match session.filter(|row| row.kind == "client backend") {
        Some(row) => format!("the process of {}", names::name(row)),
        None => format!("the {} (process {})", first.name.trim(), first.count),
    };
    let since = session.map_or(String::new(), |row| {
        format!(" It has been in {} for {}.", row.activity, duration(row.since_seconds))
    });
    let what = match first.name.as_str() {
        POSTMASTER => "Nobody can connect while it is stopped.",
        _ if session.is_some_and(|row| row.kind == "client backend") => {
            "It holds its locks, and vacuum cannot remove rows that it can still see."
        }
        _ => "Its work stands still, and so will sessions that need it.",
    };
    let others = found.iter().filter(|process| process.count != first.count);
    let others: Vec<String> = others
        .take(3)
        .map(|process| {
            format!("Process {} ({}) is stopped, too.", process.count, process.name.trim())
        })
        .collect();
    vec![Diagnosis {
        rule: Rule::StoppedProcess,
        kind: Kind::Problem,
        text: format!("A process of the server is stopped (state T in ps): {who}."),
        seconds: 0.0,
        share: None,
        evidence: [format!("{what}{since}")].into_iter().chain(others).collect(),
        advice: names::go_on(first.count),
        confidence: Confidence::Certain,
        section: "ledger",
        consequence_of: None,
    }]
}
