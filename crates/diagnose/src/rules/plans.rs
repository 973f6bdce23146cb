// SPDX-License-Identifier: PostgreSQL
//! Plans: one that has changed for the worse, and what a plan says about a missing index.

use view::statements::{PlanRow, StatementFigures};
use view::units::{count, duration, percent, whole};

use super::harms;
use crate::case::{words, Case};
use crate::diagnosis::{Confidence, Diagnosis, Kind, Rule};

/// A statement takes much longer with another plan than with the one before.
pub fn changed(case: &Case<'_>) -> Vec<Diagnosis> {
    /// Part of the load that the statement has to take.
    const MUCH: f64 = 0.1;
    /// How much longer a call takes.
    const LONGER: f64 = 3.0;
    /// A difference of less is no trouble, seconds.
    const MORE: f64 = 0.001;

    let Some(statements) = case.statements else { return Vec::new() };
    case.statement_rows().filter(|row| harms(case, row.seconds, MUCH)).filter_map(|row| {
        let (now, before) = change(case.plans, row)?;
        let worse = now.mean_seconds >= LONGER * before.mean_seconds
            && now.mean_seconds >= before.mean_seconds + MORE;
        worse.then(|| Diagnosis {
            rule: Rule::PlanChange,
            kind: Kind::Problem,
            text: format!(
                "A statement's plan changed {} ago; a call now takes {} instead of {}: {}.",
                duration((statements.time - now.first_noted).max(0.0)),
                duration(now.mean_seconds),
                duration(before.mean_seconds),
                words(row)
            ),
            seconds: row.seconds,
            share: Some(case.share(row.seconds)),
            evidence: vec![
                format!(
                    "It takes {} % of the sessions' time: {} calls.",
                    percent(case.share(row.seconds)),
                    count(row.calls as f64)
                ),
                format!("Before: {} ({} noted).", before.unlike(now), executions(before.noted)),
                format!("Now: {} ({} noted).", now.unlike(before), executions(now.noted)),
            ],
            advice: format!(
                "Compare both plans (tally statements --id {}). Was an index dropped? Is ANALYZE due after a large change? \
                 Does a prepared statement use a generic plan (plan_cache_mode)?",
                now.queryid
            )
            .into(),
            confidence: Confidence::Certain,
            section: "statements",
            consequence_of: None,
        })
    })
    .collect()
}

/// The plan that the statement uses now, and the best of those that it used before that one came.
fn change<'p>(plans: &'p [PlanRow], row: &StatementFigures) -> Option<(&'p PlanRow, &'p PlanRow)> {
    let of_row = || plans.iter().filter(|plan| plan.key == row.key);
    let now = of_row().max_by(|a, b| a.last_noted.total_cmp(&b.last_noted))?;
    let before = of_row().filter(|plan| plan.first_noted < now.first_noted);
    let before = before.min_by(|a, b| a.mean_seconds.total_cmp(&b.mean_seconds))?;
    Some((now, before))
}

fn executions(n: u64) -> String {
    format!("{} {}", whole(n), if n == 1 { "execution" } else { "executions" })
}

/// What the plan of a statement that reads too much says.
pub(super) enum Reads {
    /// No plan was noted.
    Unknown,
    /// It filters this table of so many rows, which it reads as a whole.
    Filtered(String, f64),
    /// It reads whole tables because it needs all their rows.
    Whole,
    /// Something else.
    Other,
}

/// The plan that the statement used last.
pub(super) fn last<'p>(plans: &'p [PlanRow], row: &StatementFigures) -> Option<&'p PlanRow> {
    let of_row = plans.iter().filter(|plan| plan.key == row.key);
    of_row.max_by(|a, b| a.last_noted.total_cmp(&b.last_noted))
}

/// How a statement reads its tables, by its plan.
pub(super) fn reads(plan: Option<&PlanRow>) -> Reads {
    let Some(plan) = plan else { return Reads::Unknown };
    let nodes = plan.nodes();
    let scans = nodes.iter().filter(|node| node.contains("Scan"));
    let filtered =
        nodes.iter().filter(|node| node.contains("Seq Scan on ") && node.contains(" [filter"));
    let largest = filtered.filter_map(|node| {
        let (_, after) = node.split_once("Seq Scan on ")?;
        let (table, rest) = after.split_once(" [")?;
        let (_, size) = rest.split_once("[table of ")?;
        Some((table.to_string(), size.split(' ').next()?.parse::<f64>().ok()?))
    });
    match largest.max_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((table, size)) => Reads::Filtered(table, size),
        None if scans.clone().count() > 0
            && scans.clone().all(|node| node.contains("Seq Scan on ")) =>
        {
            Reads::Whole
        }
        None => Reads::Other,
    }
}
