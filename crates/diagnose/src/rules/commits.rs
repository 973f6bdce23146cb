// SPDX-License-Identifier: PostgreSQL
//! Commits that wait for the WAL's device or for standbys.

use super::names::literal;
use super::{bounds, harms};
use crate::case::Case;
use crate::diagnosis::{Confidence, Diagnosis, Kind, Rule};
use segment::wait_names;
use view::units::{bytes, clause, count, duration, percent, two};
use view::vacuum::{Condition, ConditionKind};

/// Share of the load.
const MUCH: f64 = 0.2;
/// Mean time of a WAL sync from which on the device counts as slow, seconds.
const SLOW_SYNC: f64 = 0.005;
/// ... and from which on each commit is slow, however few there are, seconds.
const VERY_SLOW_SYNC: f64 = 0.050;
/// Sessions that wait for it on average, from which on that is a problem.
const HARM: f64 = 0.5;

/// Whether sessions in this activity wait for the turn to flush the WAL.
pub(super) fn is_queue(activity: &str) -> bool {
    ["LWLock:WALWrite", "LWLock:WALWriteLock"].iter().any(|name| wait_names::is(activity, name))
}

/// Commits wait for the WAL: a problem if its syncs are slow, otherwise what bounds the load.
pub fn slow(case: &Case<'_>) -> Vec<Diagnosis> {
    let commits = &case.interval().commits;
    let seconds = commits.sync.seconds + commits.queue.seconds + commits.write.seconds;
    let mean = commits.sync.mean_seconds.unwrap_or(0.0);
    // On a busy machine some syncs take long because nobody runs: a slow device makes half of them slow. A few sessions that
    // commit now and then are bound by it, but not harmed.
    let is_usual = commits.sync.p50_seconds.is_none_or(|p50| p50 >= SLOW_SYNC / 2.0);
    let is_harm = seconds >= HARM * case.length() || mean >= VERY_SLOW_SYNC;
    let is_slow = mean >= SLOW_SYNC && is_usual && is_harm && harms(case, seconds, MUCH);
    if !is_slow && !bounds(case, seconds, MUCH) {
        return Vec::new();
    }
    let mut evidence = vec![format!(
        "Of the commits' time, syncs take {}, waiting for the turn or for another session's sync {}.",
        duration(commits.sync.seconds),
        duration(commits.queue.seconds)
    )];
    if let Some(each) = commits.commits_per_flush {
        evidence.push(format!("One sync serves {} commits.", two(each)));
    }
    let share = percent(case.share(seconds));
    let (kind, text) = match is_slow {
        true => (
            Kind::Problem,
            format!(
                "Commits wait for a slow sync of the WAL: {} each on average{}, {share} % of the sessions' time.",
                duration(mean),
                clause(", p99 ", commits.sync.p99_seconds, ""),
            ),
        ),
        false => (Kind::Limit, bound(case, mean, &share)),
    };
    vec![Diagnosis {
        rule: Rule::Commits,
        kind,
        text,
        seconds,
        share: Some(case.share(seconds)),
        evidence,
        advice: "Put pg_wal on a device with faster syncs, or commit more work at a time. If a crash may lose \
                 the last transactions: ALTER SYSTEM SET synchronous_commit = off."
            .into(),
        confidence: Confidence::Certain,
        section: "commits",
        consequence_of: None,
    }]
}

/// What commits allow: only one sync runs at a time.
fn bound(case: &Case<'_>, sync: f64, share: &str) -> String {
    let commits = &case.interval().commits;
    let rate = count(commits.count as f64 / case.length());
    let under_way = commits.sync.seconds / case.length();
    let syncs = match under_way {
        part if part <= 0.0 => String::new(),
        part if part >= 0.95 => {
            format!(": a sync takes {}, and one follows the other without a pause", duration(sync))
        }
        part => format!(
            ": a sync takes {}, and one is under way {} % of the time",
            duration(sync),
            percent(part)
        ),
    };
    format!("commits, {rate}/s, wait for the WAL {share} % of the sessions' time{syncs}.")
}

/// Commits wait for synchronous standbys.
pub fn replication(case: &Case<'_>) -> Vec<Diagnosis> {
    let seconds = case.seconds_of(|a| wait_names::is(&a.activity, "IPC:SyncRep"));
    if !harms(case, seconds, MUCH) {
        return Vec::new();
    }
    let replication = &case.interval().commits.replication;
    let standbys: Vec<&Condition> = case.conditions(ConditionKind::Standby).collect();
    let connected: Vec<&Condition> = standbys.iter().copied().filter(|it| it.count != 0).collect();
    let who = match (connected.first(), standbys.first()) {
        (Some(it), _) => format!("standby {} (walsender {})", it.name, it.count),
        (None, Some(it)) => format!(
            "a standby that is not connected (synchronous_standby_names = {})",
            literal(&it.name)
        ),
        (None, None) => "synchronous standbys".to_owned(),
    };
    let share = percent(case.share(seconds));
    let text = match replication.count {
        0 => format!(
            "No commit that waits for a standby has completed for {}: all wait for {who}, {share} % of the sessions' time.",
            duration(case.length()),
        ),
        _ => format!(
            "Commits wait for {who}: {}{share} % of the sessions' time.",
            clause("", replication.mean_seconds, " each on average, "),
        ),
    };
    let evidence = connected.iter().map(|it| {
        format!(
            "Standby {} ({}): {} of WAL sent and not flushed there{}.",
            it.name,
            it.state,
            bytes(it.bytes as f64),
            clause(", flush lag ", it.seconds, "")
        )
    });
    let look = match connected.is_empty() && !standbys.is_empty() {
        true => "Start the standby, or correct its application_name or synchronous_standby_names.",
        false => {
            "Look at the standby: SELECT application_name, state, sync_state, write_lag, flush_lag, replay_lag FROM \
             pg_stat_replication. write_lag is the network, flush_lag the standby's device, replay_lag its recovery."
        }
    };
    // A synchronous standby takes its time by its nature.
    let is_slow =
        replication.count == 0 || replication.mean_seconds.is_none_or(|mean| mean >= SLOW_SYNC);
    let (kind, text) = match is_slow {
        true => (Kind::Problem, text),
        false => (Kind::Limit, text.replacen("Commits", "commits", 1)),
    };
    vec![Diagnosis {
        rule: Rule::Replication,
        kind,
        text,
        seconds,
        share: Some(case.share(seconds)),
        evidence: evidence.collect(),
        advice: format!(
            "{look} To release the commits without it: ALTER SYSTEM SET synchronous_standby_names = ''; SELECT pg_reload_conf()."
        ),
        confidence: Confidence::Certain,
        section: "commits",
        consequence_of: None,
    }]
}
