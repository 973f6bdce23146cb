// SPDX-License-Identifier: PostgreSQL
//! The answer in words.

use view::measured::Measured;
use view::units;

use super::{CellRow, Slowdown, StorageResults, WaitRow};

/// The answer in words: for each arm, whether it stayed steady, then how much slower the victims were.
pub fn sentences(answer: &StorageResults) -> Vec<String> {
    let mut all = Vec::new();
    for arm in &answer.arms {
        let cells: Vec<&CellRow> =
            answer.cells.iter().filter(|cell| cell.arm == arm.name && cell.seconds > 0.0).collect();
        all.extend(cells.iter().filter_map(|cell| lost(&arm.title, cell)));
        let steady = cells.iter().filter(|cell| cell.lost.is_none()).count();
        if steady > 0 && steady == cells.len() {
            all.push(format!("{}: the background load stayed steady.", arm.title));
        }
        for slow in answer.slowdowns.iter().filter(|slowdown| slowdown.arm == arm.name) {
            let divided = answer.slowdowns.iter().any(|slowdown| {
                (&slowdown.arm, &slowdown.victim) == (&slow.arm, &slow.victim)
                    && slowdown.when == "after"
            });
            if divided != (slow.when == "all") {
                all.push(slower(&arm.title, slow));
            }
        }
    }
    for impact in answer.impacts.iter().filter(|impact| impact.of == "rate" || impact.resolved) {
        let change = Measured::new(impact.percent, impact.half_width).change(1);
        let what = if impact.of == "rate" { "rate" } else { "mean response time" };
        let verdict = if impact.resolved { "" } else { " (inconclusive)" };
        all.push(format!(
            "{}: while {} ran, the {what} of the background load changed by {change}{verdict}.",
            answer.arm_title(&impact.arm),
            impact.victim
        ));
    }
    for arm in &answer.arms {
        let grown =
            answer.waits.iter().filter(|wait| wait.arm == arm.name && wait.during > wait.quiet);
        let grown: Vec<String> = grown
            .take(3)
            .map(|row| {
                let WaitRow { process, activity, quiet, during, .. } = row;
                format!("{process} {activity}, from {quiet:.2} to {during:.2}")
            })
            .collect();
        if !grown.is_empty() {
            let list = grown.join("; ");
            all.push(format!("{}: average sessions rose most for {list}.", arm.title));
        }
    }
    for comparison in &answer.comparisons {
        let title = answer.arm_title(&comparison.arm);
        let base = answer.arms.first().map_or("", |arm| arm.title.as_str());
        let change = Measured::new(comparison.percent, comparison.half_width).change(1);
        let verdict = if comparison.resolved { "" } else { " (inconclusive)" };
        all.push(format!(
            "{title}: the time of {} changes by {change} compared with {base}{verdict}.",
            comparison.victim
        ));
    }
    all
}

fn lost(title: &str, cell: &CellRow) -> Option<String> {
    let lost = cell.lost.as_ref()?;
    let change = Measured::new(lost.rate_percent, lost.rate_half_width).change(1);
    let rate = format!(
        "the rate went from {:.0} to {:.0}/s ({change})",
        lost.rate_before, lost.rate_after
    );
    let cause = lost.cause.as_ref().map_or(String::new(), |why| format!("; {why}"));
    Some(format!(
        "{title}, block {}: the load stopped being steady {:.1} s (-{:.1} s) after the start: {rate}, the mean \
         response time from {} to {}{cause}.",
        cell.block + 1,
        lost.at,
        lost.uncertain,
        units::duration(lost.response_before),
        units::duration(lost.response_after),
    ))
}

fn slower(title: &str, slow: &Slowdown) -> String {
    let when = match slow.when {
        "before" => " while the load was steady",
        "after" => " once the load was no longer steady",
        _ => "",
    };
    let interval = match slow.interval {
        Some((low, high)) => format!(" ({low:.2} to {high:.2})"),
        None => format!(" ({} runs, too few for an interval)", slow.runs),
    };
    format!(
        "{title}: {} took {:.2} times as long as without the background load{interval}{when}.",
        slow.victim, slow.factor
    )
}
