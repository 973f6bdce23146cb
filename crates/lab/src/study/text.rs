// SPDX-License-Identifier: PostgreSQL
//! The answer in sentences.

use super::answer::{ArmVerdict, StudyResults};
use super::tables::change;
use crate::engine::experiment::ArmRow;

/// Facts about the run: what was measured, and on which server and machine.
pub fn facts(answer: &StudyResults) -> Vec<String> {
    let mut facts = vec![format!(
        "{} of {} cells{}, {}",
        answer.cells,
        answer.cells_planned,
        answer.run.variant(),
        answer.run.machine(),
    )];
    if answer.disturbed > 0 {
        facts.push(format!(
            "{} of the cells were disturbed by other work on the machine",
            answer.disturbed
        ));
    }
    for (cell, why) in &answer.run.failed {
        facts.push(format!("failed: {cell}: {why}"));
    }
    facts.extend(answer.arms.iter().filter_map(ArmRow::skipped));
    facts
}

/// One line per comparison: resolved ones first, those of the A/A control last.
pub fn verdicts(answer: &StudyResults) -> Vec<(ArmVerdict, String)> {
    let title = |list: &[super::answer::ReadRow], name: &str| {
        list.iter().find(|read| read.name == name).map_or(name.to_string(), |r| r.title.clone())
    };
    let several = answer.points.len() > 1;
    let mut found: Vec<_> = answer.comparisons.iter().collect();
    found.sort_by_key(|comparison| comparison.verdict);
    found
        .into_iter()
        .map(|comparison| {
            let arm = answer.arms.iter().find(|arm| arm.name == comparison.arm);
            let arm = arm.map_or(comparison.arm.as_str(), |arm| arm.title.as_str());
            let at =
                if several { format!(" at {}", comparison.point.label()) } else { String::new() };
            let read = title(&answer.reads, &comparison.read);
            let mut line = format!("{arm}{at}: {read} {}", change(comparison));
            if comparison.verdict == ArmVerdict::Inconclusive {
                line += &match comparison.detectable {
                    effect if effect < 100.0 => {
                        format!(" (smallest detectable effect: {effect:.2} %")
                    }
                    _ => " (could not detect an effect below a doubling".into(),
                };
                if comparison.blocks < 6 {
                    line +=
                        &format!("; {} blocks are too few to resolve anything", comparison.blocks);
                }
                line.push(')');
            }
            if let Some(again) =
                comparison.again_half_width.filter(|_| comparison.verdict == ArmVerdict::Resolved)
            {
                line += &format!(" (A/A ± {again:.2})");
            }
            (comparison.verdict, line)
        })
        .collect()
}
