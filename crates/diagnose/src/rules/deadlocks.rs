// SPDX-License-Identifier: PostgreSQL
//! Transactions that wait for each other, until the server ends one of them.

use std::collections::BTreeMap;

use segment::WaitClass;
use view::deadlocks::{Deadlock, DeadlockSession};
use view::statements::StatementFigures;
use view::units::whole;
use view::vacuum::{Condition, ConditionKind};

use crate::case::{words, Case};
use crate::diagnosis::{Confidence, Diagnosis, Kind, Rule};

/// deadlock_timeout by default, seconds: so long the two sessions wait for each other at least.
const TIMEOUT: f64 = 1.0;

/// The class of serialization failures and deadlocks.
const ROLLBACK: &str = "40";

/// Sessions lock the same objects in different orders, and the server ends one of them each time.
pub fn deadlocks(case: &Case<'_>) -> Vec<Diagnosis> {
    let counted = case.conditions(ConditionKind::Deadlocks).max_by_key(|condition| condition.count);
    let mut events: Vec<&Deadlock> = case.deadlocks().collect();
    let Some(pair) = most_frequent(&events) else {
        return counted.map(|counted| without_events(case, counted)).into_iter().collect();
    };
    let last = pair.last().expect("a pair that was counted");
    events.retain(|event| event.database() == last.database());
    let mut counted = case.conditions(ConditionKind::Deadlocks);
    let counted = counted.find(|condition| condition.database.as_deref() == last.database());
    let server = counted.map_or(0, |condition| condition.count);
    let number = events.len().max(usize::try_from(server).unwrap_or(0));
    let database =
        last.database().map_or(String::new(), |database| format!(" in database {database}"));
    let mut evidence = vec![format!(
        "Each waited for a lock that the other's transaction held: they lock the same rows or tables in different orders. \
         After deadlock_timeout, the server cancelled session {}.",
        last.cancelled.pid
    )];
    evidence.push(match (pair.len(), events.len()) {
        (1, 1) => "It was the only one with both statements known.".to_owned(),
        (n, all) if n == all => format!("All {n} whose statements are known were between these."),
        (n, all) => format!("{n} of the {all} whose statements are known were between these."),
    });
    // What a function executes is not what its client sent.
    let nested = victims(case, last.database(), number as u64).into_iter();
    evidence.extend(nested.filter(|row| !row.toplevel).take(3).map(rolled_back));
    let ids: Vec<i64> = events.iter().flat_map(|event| event.statements()).flatten().collect();
    let waited =
        case.statement_rows().filter(|row| row.queryid.is_some_and(|id| ids.contains(&id)));
    let waits =
        waited.flat_map(|row| &row.activities).filter(|account| account.class == WaitClass::Lock);
    let waited: f64 = waits.map(|account| account.seconds).sum();
    let found = diagnosis(
        format!(
            "{}{database}: {}{}.",
            occurred(number as u64),
            lately(number),
            sessions(case, last)
        ),
        evidence,
    );
    let seconds = waited.min(number as f64 * 2.0 * TIMEOUT);
    let share = (seconds > 0.0).then(|| case.share(seconds));
    vec![Diagnosis { seconds, share, ..found }]
}

/// The deadlocks of the two statements that met most often.
fn most_frequent<'d>(events: &[&'d Deadlock]) -> Option<Vec<&'d Deadlock>> {
    let mut pairs: BTreeMap<[Option<i64>; 2], Vec<&Deadlock>> = BTreeMap::new();
    for event in events {
        pairs.entry(event.statements()).or_default().push(event);
    }
    pairs.into_values().max_by_key(Vec::len)
}

/// The two sessions and their statements.
fn sessions(case: &Case<'_>, deadlock: &Deadlock) -> String {
    let Deadlock { cancelled, other, .. } = deadlock;
    match cancelled.queryid.is_some() && cancelled.queryid == other.queryid {
        true => format!(
            "{} and {}, both{}",
            cancelled.name,
            other.name,
            with_statement(case, " executing ", other)
        ),
        false => format!("{}, and {}", session(case, cancelled), session(case, other)),
    }
}

/// "session 4711 (psql, joe@shop) in statement 815 (UPDATE ...)".
fn session(case: &Case<'_>, session: &DeadlockSession) -> String {
    format!("{}{}", session.name, with_statement(case, " in ", session))
}

/// The session's statement with these words before it; empty if it is not known.
fn with_statement(case: &Case<'_>, before: &str, session: &DeadlockSession) -> String {
    let known = |id: i64| {
        let row = case.all_statement_rows().find(|row| row.queryid == Some(id));
        let statement = row.map_or_else(|| format!("statement {id}"), words);
        format!("{before}{statement}")
    };
    session.queryid.map_or(String::new(), known)
}

fn occurred(number: u64) -> String {
    match number {
        1 => "A deadlock occurred".to_owned(),
        n => format!("{} deadlocks occurred", whole(n)),
    }
}

/// Which of several the sentence is about.
fn lately(number: usize) -> &'static str {
    match number {
        0 | 1 => "",
        _ => "the last one between ",
    }
}

/// Statements of the database that may have been rolled back by `number` deadlocks.
fn victims<'c>(case: &Case<'c>, database: Option<&str>, number: u64) -> Vec<&'c StatementFigures> {
    // Serialization failures have the same class: where there are more than deadlocks, they are not of these.
    let is_victim = |row: &&StatementFigures| {
        let failures = row.failed.get(ROLLBACK).copied().unwrap_or(0);
        // The statements are read a little earlier or later.
        let may_be = failures as f64 <= 1.1 * number as f64 + 2.0;
        failures > 0 && may_be && Some(row.database.as_str()) == database
    };
    case.all_statement_rows().filter(is_victim).collect()
}

fn rolled_back(row: &StatementFigures) -> String {
    match row.failed[ROLLBACK] {
        1 => format!("1 execution of {} was rolled back.", words(row)),
        n => format!("{n} executions of {} were rolled back.", words(row)),
    }
}

/// The server has counted deadlocks, but no event names their sessions.
fn without_events(case: &Case<'_>, counted: &Condition) -> Diagnosis {
    let number = u64::try_from(counted.count).unwrap_or(0);
    let victims = victims(case, counted.database.as_deref(), number);
    let victim = victims.first().map_or(String::new(), |row| format!(", in {}", words(row)));
    let mut evidence: Vec<String> = victims.iter().take(3).map(|row| rolled_back(row)).collect();
    evidence.push(
        "Each time, sessions waited for deadlock_timeout, and the server cancelled one of them; its log has both statements."
            .to_owned(),
    );
    let database = counted.database.as_deref().unwrap_or_default();
    diagnosis(format!("{} in database {database}{victim}.", occurred(number)), evidence)
}

fn diagnosis(text: String, evidence: Vec<String>) -> Diagnosis {
    Diagnosis {
        rule: Rule::Deadlocks,
        kind: Kind::Problem,
        text,
        seconds: 0.0,
        share: None,
        evidence,
        advice: "Lock rows in the same order in every transaction (SELECT ... ORDER BY id FOR UPDATE before the changes), and \
                 retry transactions that fail with SQLSTATE 40P01."
            .into(),
        confidence: Confidence::Certain,
        section: "locks",
        consequence_of: None,
    }
}
