// SPDX-License-Identifier: PostgreSQL
//! Facts of a recording: the machine, the level over time.

use std::collections::BTreeMap;

use recording::{FrameRow, SettingRow};

use crate::model::units::duration;
use crate::report::document::Fact;

/// All of them.
pub fn facts(heads: &[FrameRow], settings: &[SettingRow]) -> Vec<Fact> {
    let mut facts = Vec::new();
    for (name, group) in [("Machine", "machine"), ("Recorder", "recorder")] {
        let words: Vec<String> = settings
            .iter()
            .filter(|row| &*row.group == group && !row.value.is_empty())
            .map(|row| match &*row.unit {
                "" => format!("{} {}", row.name, row.value),
                unit => format!("{} {} {unit}", row.name, row.value),
            })
            .collect();
        if !words.is_empty() {
            facts.push(Fact { name, text: words.join(", ") });
        }
    }
    facts.push(Fact { name: "Level", text: levels(heads) });
    facts
}

/// "waits for 510 s, locks for 60 s".
fn levels(heads: &[FrameRow]) -> String {
    let mut sums = BTreeMap::<&str, u64>::new();
    for head in heads {
        *sums.entry(&head.level).or_default() += head.interval_ns;
    }
    let mut sums: Vec<(&str, u64)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let told = |(level, ns): &(&str, u64)| format!("{level} for {}", duration(*ns as f64 * 1e-9));
    sums.iter().map(told).collect::<Vec<_>>().join(", ")
}
