// SPDX-License-Identifier: PostgreSQL
//! The answer in words: the findings and the method on the page, and the facts about the run.

use maud::{html, Markup};

use super::answer::StorageResults;
use crate::engine::experiment::ArmRow;
use crate::engine::progress::length;
use view::html::Visible;

/// The findings.
pub fn findings(sentences: &[String]) -> Markup {
    html! { ul.findings { @for line in sentences { li { (Visible(line)) } "\n" } } }
}

/// How it was measured; `study` is the text of the study's file.
pub fn method(facts: &[String], study: &str) -> Markup {
    html! {
        section { h2 { "Method" }
            ul {
                @for fact in facts { li { (Visible(fact)) } "\n" }
                li {
                    "The background load is an open loop: each operation has a scheduled start, and its response "
                    "time counts from there. Times of victims are wall-clock times. TIMES is the geometric mean of the "
                    "ratios to the run alone in the same cell, with a 95 % interval by Student's t."
                }
                li {
                    "The load stops being steady at the clearest change of its rate or response time while no victim "
                    "runs, provided that chance alone would produce such a change in fewer than 1 of 100 cells."
                }
            }
            details { summary { "Study file" } pre.raw { (Visible(study)) } }
        } "\n"
    }
}

/// Facts about the run: what was measured, and on which machine.
pub fn facts(answer: &StorageResults) -> Vec<String> {
    let complete = answer.cells.iter().filter(|cell| cell.incomplete.is_none()).count();
    let mut facts = vec![format!(
        "{complete} of {} cells{}, each {}; {}",
        answer.cells_planned,
        answer.run.variant(),
        length(answer.seconds),
        answer.run.machine(),
    )];
    for cell in &answer.cells {
        if let Some(why) = &cell.incomplete {
            let title = answer.arm_title(&cell.arm);
            facts.push(format!("incomplete: {title}, block {}: {why}", cell.block + 1));
        }
    }
    facts.extend(answer.arms.iter().filter_map(ArmRow::skipped));
    let failed = answer.runs.iter().filter_map(|run| Some((run, run.failure.as_ref()?)));
    for (run, why) in failed {
        let title = answer.arm_title(&run.arm);
        facts.push(format!("{} failed in {title}, block {}: {why}", run.victim, run.block + 1));
    }
    facts
}
