// SPDX-License-Identifier: PostgreSQL
//! Commits that wait for the WAL's device or for standbys.

use super::matters;
use crate::case::Case;
use crate::diagnosis::{Confidence, Diagnosis, Rule};
use view::units::{clause, duration, percent, two};

/// Part of the load.
const MUCH: f64 = 0.2;
/// A sync that takes longer on average is slow for any device that is made for it, seconds.
const SLOW_SYNC: f64 = 0.005;

/// Syncs of the WAL are slow, and commits wait for them.
pub fn slow(case: &Case<'_>) -> Vec<Diagnosis> {
    let commits = &case.interval().commits;
    let seconds = commits.sync.seconds + commits.queue.seconds + commits.write.seconds;
    let mean = commits.sync.mean_seconds.unwrap_or(0.0);
    if !matters(case, seconds, MUCH) || mean < SLOW_SYNC {
        return Vec::new();
    }
    let mut evidence = vec![format!(
        "Of the commits' time, syncs take {}, waiting for the turn or for another's sync {}.",
        duration(commits.sync.seconds),
        duration(commits.queue.seconds)
    )];
    if let Some(each) = commits.commits_per_flush {
        evidence.push(format!("One sync serves {} commits.", two(each)));
    }
    vec![Diagnosis {
        rule: Rule::Commits,
        text: format!(
            "Commits wait for a slow sync of the WAL: {} each on average{}, {} % of the sessions' time.",
            duration(mean),
            clause(", p99 ", commits.sync.p99_seconds, ""),
            percent(case.share(seconds))
        ),
        seconds,
        share: Some(case.share(seconds)),
        evidence,
        advice: "Put pg_wal on a device with a faster sync, or commit more work at a time; where the \
                 last transactions may be lost in a crash, synchronous_commit = off."
            .into(),
        confidence: Confidence::Certain,
        section: "commits",
        consequence_of: None,
    }]
}

/// Commits wait for synchronous standbys.
pub fn replication(case: &Case<'_>) -> Vec<Diagnosis> {
    let seconds = case.seconds_of(|a| &*a.activity == "IPC:SyncRep");
    if !matters(case, seconds, MUCH) {
        return Vec::new();
    }
    let each = case.interval().commits.replication.mean_seconds;
    vec![Diagnosis {
        rule: Rule::Replication,
        text: format!(
            "Commits wait for synchronous standbys: {}{} % of the sessions' time.",
            clause("", each, " each on average, "),
            percent(case.share(seconds))
        ),
        seconds,
        share: Some(case.share(seconds)),
        evidence: Vec::new(),
        advice: "Look at pg_stat_replication: write_lag is the network, flush_lag the standby's device, \
                 replay_lag its recovery (synchronous_commit says which one is waited for)."
            .into(),
        confidence: Confidence::Certain,
        section: "commits",
        consequence_of: None,
    }]
}
