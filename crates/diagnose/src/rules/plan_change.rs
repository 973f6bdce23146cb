// SPDX-License-Identifier: PostgreSQL
//! Plans that have changed for the worse.

use view::statements::{PlanRow, StatementFigures};
use view::units::{count, duration, percent, whole};

use super::{harms, indexes};
use crate::advice::Advice;
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
    let worse = |row| {
        let (now, before) = change(case.plans, row)?;
        let is_worse = now.mean_seconds >= LONGER * before.mean_seconds
            && now.mean_seconds >= before.mean_seconds + MORE;
        is_worse.then(|| diagnosis(case, row, (statements.time, now, before)))
    };
    case.statement_rows().filter(|row| harms(case, row.seconds, MUCH)).filter_map(worse).collect()
}

/// The diagnosis of a statement that has this plan at this time, and had the other one before.
fn diagnosis(
    case: &Case<'_>,
    row: &StatementFigures,
    (time, now, before): (f64, &PlanRow, &PlanRow),
) -> Diagnosis {
    let text = format!(
        "A statement's plan changed {} ago{}; a call now takes {} instead of {}: {}.",
        duration((time - now.first_noted).max(0.0)),
        instead(&now.unlike(before), &before.unlike(now)),
        duration(now.mean_seconds),
        duration(before.mean_seconds),
        words(row)
    );
    let takes = format!(
        "It takes {} % of the sessions' time: {} calls.",
        percent(case.share(row.seconds)),
        count(row.calls as f64)
    );
    Diagnosis {
        rule: Rule::PlanChange,
        kind: Kind::Problem,
        text,
        seconds: row.seconds,
        share: Some(case.share(row.seconds)),
        evidence: vec![
            takes,
            format!("Before: {} ({} noted).", before.unlike(now), executions(before.noted)),
            format!("Now: {} ({} noted).", now.unlike(before), executions(now.noted)),
        ],
        advice: advice(now, dropped(case, &before.unlike(now)), indexes::creation(case, row)),
        confidence: Confidence::Certain,
        section: "statements",
        consequence_of: None,
    }
}

/// " (Seq Scan on t instead of Index Scan using i on t)", by a node of each plan, without filters and sizes; empty if that says
/// nothing.
fn instead(now: &str, before: &str) -> String {
    let node = |text: &str| text.split_once(" [").map_or(text, |(node, _)| node).to_owned();
    let (now, before) = (node(now), node(before));
    match now.is_empty() || before.is_empty() || now == before {
        true => String::new(),
        false => format!(" ({now} instead of {before})"),
    }
}

/// An index that the earlier plan used and that somebody has dropped, and by which statement.
fn dropped<'c>(case: &Case<'c>, before: &str) -> Option<(String, &'c StatementFigures)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let indexes = ["Scan using ", "Bitmap Index Scan on "].into_iter().flat_map(|node| {
        before
            .split(node)
            .skip(1)
            .map(|rest| rest.split(|c| !is_part(c)).next().unwrap_or_default())
    });
    let drops = |row: &&StatementFigures| {
        row.calls > 0 && row.text().to_ascii_lowercase().starts_with("drop index ")
    };
    indexes.filter(|index| !index.is_empty()).find_map(|index| {
        let names =
            |row: &&StatementFigures| row.text().split(|c| !is_part(c)).any(|word| word == index);
        let row = case.all_statement_rows().filter(drops).find(names)?;
        Some((index.to_owned(), row))
    })
}

/// What to do about this plan; an index that it lacks comes first.
fn advice(
    now: &PlanRow,
    dropped: Option<(String, &StatementFigures)>,
    index: Option<Advice>,
) -> Advice {
    let command = format!("tally statements --id {}", now.queryid);
    let plans = format!("both plans ({command})");
    let again = dropped.map(|(name, row)| {
        format!("Index {name} was dropped meanwhile by {}: create it again. ", words(row))
    });
    match (index, again) {
        (Some(index), Some(again)) => Advice::from(again).and(index),
        (None, Some(again)) => Advice::from(again).say(&format!("To compare both plans: {command}.")),
        (Some(index), None) => Advice::default().and(index).say(&format!(
            " Or compare {plans}: ANALYZE may be due after a large change, or a prepared statement may use a generic plan \
             (plan_cache_mode)."
        )),
        (None, None) => format!(
            "Compare {plans}. Was an index dropped? Is ANALYZE due after a large change? Does a prepared statement use a generic \
             plan (plan_cache_mode)?"
        )
        .into(),
    }
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
