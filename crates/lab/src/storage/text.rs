// SPDX-License-Identifier: PostgreSQL
//! Renders the answer as text.

use super::answer::StorageResults;

/// Render sentences and facts.
pub fn render(answer: &StorageResults) -> String {
    let mut text = format!("{}\n\n{}\n\n", answer.title, answer.question);
    for line in facts(answer) {
        text += &format!("{line}\n");
    }
    text.push('\n');
    for line in &answer.sentences {
        text += &format!("{line}\n");
    }
    text
}

/// Facts about the run: what was measured, and on which machine.
pub fn facts(answer: &StorageResults) -> Vec<String> {
    let host = &answer.run.host;
    let complete = answer.cells.iter().filter(|cell| cell.incomplete.is_none()).count();
    let mut facts = vec![format!(
        "{complete} of {} cells{}, each {}; {}, {} processors ({}), {}",
        answer.cells_planned,
        if answer.run.head.quick { " of the quick variant" } else { "" },
        crate::engine::progress::length(answer.seconds),
        answer.run.head.server,
        host.processors,
        host.processor,
        host.kernel,
    )];
    for cell in &answer.cells {
        if let Some(why) = &cell.incomplete {
            let title = answer.arm_title(&cell.arm);
            facts.push(format!("incomplete: {title}, block {}: {why}", cell.block + 1));
        }
    }
    for arm in &answer.arms {
        if let Some(why) = &arm.left_out {
            facts.push(format!("skipped: {}: {why}", arm.title));
        }
    }
    let failed = answer.runs.iter().filter_map(|run| Some((run, run.failure.as_ref()?)));
    for (run, why) in failed {
        let title = answer.arm_title(&run.arm);
        facts.push(format!("{} failed in {title}, block {}: {why}", run.victim, run.block + 1));
    }
    facts
}
