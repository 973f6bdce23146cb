// SPDX-License-Identifier: PostgreSQL
//! Checkpoints that the WAL forces too often.

use crate::case::Case;
use crate::diagnosis::{Confidence, Diagnosis, Rule};
use segment::event_payload::Checkpoint;
use segment::WaitClass;
use view::units::{duration, two};

/// Checkpoints further apart than this are no trouble, even if the WAL forces them.
const OFTEN: f64 = 60.0;
/// Commands this many times slower during checkpoints are worth a word.
const SLOWER: f64 = 1.2;

/// Checkpoints forced by WAL come one after the other.
pub fn too_often(case: &Case<'_>) -> Vec<Diagnosis> {
    let forced: Vec<&Checkpoint> = case
        .checkpoints
        .iter()
        .filter(|checkpoint| {
            checkpoint.reason == "wal" && checkpoint.interval_seconds.is_some_and(|s| s < OFTEN)
        })
        .collect();
    let Some(last) = forced.last() else { return Vec::new() };
    let apart =
        forced.iter().filter_map(|it| it.interval_seconds).sum::<f64>() / forced.len() as f64;
    let mut evidence = Vec::new();
    let slower = slower(&forced);
    if let Some(factor) = slower.filter(|factor| *factor >= SLOWER) {
        evidence.push(format!(
            "Commands take {} times as long during these checkpoints as before them.",
            two(factor)
        ));
    }
    let longest =
        forced.iter().max_by(|a, b| a.longest_sync_seconds.total_cmp(&b.longest_sync_seconds));
    if let Some((it, file)) = longest.and_then(|it| Some((it, it.longest_sync_file.as_ref()?))) {
        evidence.push(format!("Longest sync: {}, {file}.", duration(it.longest_sync_seconds)));
    }
    evidence.push(format!(
        "The last one wrote {} buffers in {}.",
        view::units::whole(last.buffers),
        duration(last.seconds)
    ));
    // What waiting for the WAL and its files takes is the clients' part in it.
    let is_of_wal = |name: &str| name.to_ascii_lowercase().contains("wal");
    let wal = case.seconds_of(|a| {
        matches!(a.class, WaitClass::Io | WaitClass::Lwlock) && is_of_wal(&a.activity)
    });
    let lost = forced.iter().filter_map(|it| lost(it)).sum::<f64>();
    let seconds = wal.max(lost);
    vec![Diagnosis {
        rule: Rule::Checkpoints,
        text: format!(
            "Checkpoints come every {}, forced by WAL: the WAL reaches max_wal_size in that time.",
            duration(apart)
        ),
        seconds,
        share: Some(case.share(seconds)),
        evidence,
        advice:
            "Raise max_wal_size until checkpoints are made by checkpoint_timeout; each checkpoint \
                 makes the first change of a page write the whole page to the WAL again."
                .into(),
        confidence: Confidence::Certain,
        section: "checkpoints",
        consequence_of: None,
    }]
}

/// How many times as long commands took during them as before.
fn slower(checkpoints: &[&Checkpoint]) -> Option<f64> {
    let (mut before, mut during) = ((0.0, 0u64), (0.0, 0u64));
    for it in checkpoints {
        let (Some(b), Some(d)) = (&it.before, &it.during) else { continue };
        before = (before.0 + b.handle_seconds, before.1 + b.commands);
        during = (during.0 + d.handle_seconds, during.1 + d.commands);
    }
    let mean = |(seconds, commands): (f64, u64)| (commands > 0).then(|| seconds / commands as f64);
    Some(mean(during)? / mean(before).filter(|s| *s > 0.0)?)
}

/// The time that commands took longer during it.
fn lost(it: &Checkpoint) -> Option<f64> {
    let (before, during) = (it.before?.mean_handle_seconds?, it.during?);
    Some((during.handle_seconds - before * during.commands as f64).max(0.0))
}
