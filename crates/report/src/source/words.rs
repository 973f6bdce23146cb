// SPDX-License-Identifier: PostgreSQL
//! Facts about a recording: the machine, and the level over time.

use std::collections::BTreeMap;

use recording::{FrameRow, SettingRow};

use view::document::Fact;
use view::units::duration;

/// The settings in the head of a report; the table of settings has the rest.
const HEAD: [(&str, &str, &[&str]); 2] = [
    ("Machine", "machine", &["processors", "processor", "memory", "kernel", "clock source"]),
    ("Recorder", "recorder", &["version", "interval", "detail"]),
];

/// All facts.
pub fn facts(heads: &[FrameRow], settings: &[SettingRow]) -> Vec<Fact> {
    let mut facts = Vec::new();
    for (name, group, wanted) in HEAD {
        let rows = wanted.iter().filter_map(|wanted| {
            settings.iter().rfind(|row| &*row.group == group && &*row.name == *wanted)
        });
        let words: Vec<String> = rows
            .filter(|row| !row.value.is_empty())
            .map(|row| format!("{} {} {}", row.name, row.value, row.unit).trim_end().to_string())
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
    let words = |(level, ns): &(&str, u64)| format!("{level} for {}", duration(*ns as f64 * 1e-9));
    sums.iter().map(words).collect::<Vec<_>>().join(", ")
}
