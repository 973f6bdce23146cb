// SPDX-License-Identifier: PostgreSQL
//! Commits that wait for the WAL's device or for standbys.

use super::names::{identifier, literal};
use super::{bounds, harms};
use crate::advice::Advice;
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
/// A standby is slow if samples have seen the same session wait for it for so long, seconds.
const SEEN_WAITING: f64 = 1.0;
/// The wait of Amazon Aurora's commits.
const AURORA_SYNC: &str = "IO:XactSync";
/// Sessions that wait for it on average, from which on that is a problem.
const HARM: f64 = 0.5;

/// Whether sessions in this activity wait for the turn to flush the WAL.
pub(super) fn is_queue(activity: &str) -> bool {
    ["LWLock:WALWrite", "LWLock:WALWriteLock"].iter().any(|name| wait_names::is(activity, name))
}

/// Commits wait for the WAL: a problem if its syncs are slow, otherwise what bounds the load.
pub fn slow(case: &Case<'_>) -> Vec<Diagnosis> {
    if let Some(aurora) = aurora(case) {
        return vec![aurora];
    }
    let commits = &case.interval().commits;
    let seconds = commits.sync.seconds + commits.queue.seconds + commits.write.seconds;
    let mean = commits.sync.mean_seconds.unwrap_or(0.0);
    // On a busy machine some syncs take long because nobody runs: a slow device makes half of them slow. A few sessions that
    // commit now and then are bound by it, but not harmed.
    let is_usual = commits.sync.p50_seconds.is_none_or(|p50| p50 >= SLOW_SYNC);
    let is_harm = seconds >= HARM * case.length() || mean >= VERY_SLOW_SYNC;
    let is_slow = mean >= SLOW_SYNC && is_usual && is_harm && harms(case, seconds, MUCH);
    if !is_slow && !bounds(case, seconds, MUCH) {
        return Vec::new();
    }
    let mut evidence = vec![format!(
        "Commits spent {} in their own syncs of the WAL, and {} waiting for their turn or for another session's sync.",
        duration(commits.sync.seconds),
        duration(commits.queue.seconds)
    )];
    if let Some(each) = commits.commits_per_flush {
        evidence.push(format!("Each sync covers {} commits.", two(each)));
    }
    let share = percent(case.share(seconds));
    let (kind, text) = match is_slow {
        true => (
            Kind::Problem,
            format!(
                "Commits are slow because the sync of the WAL is slow: {} each on average{}, {share} % of the sessions' time.",
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
        advice: Advice::from(
            "Put pg_wal on a device with faster syncs, or commit more work at a time. If losing the last transactions in a crash is \
             acceptable: ",
        )
        .set("synchronous_commit", "off")
        .say("."),
        confidence: Confidence::Certain,
        section: "commits",
        consequence_of: None,
    }]
}

/// Commits of Amazon Aurora wait for its storage to confirm their WAL. Such a server takes no pg_tally, so this is all that is
/// known of its commits.
fn aurora(case: &Case<'_>) -> Option<Diagnosis> {
    let seconds = case.seconds_of(|account| wait_names::is(&account.activity, AURORA_SYNC));
    bounds(case, seconds, MUCH).then(|| Diagnosis {
        rule: Rule::Commits,
        kind: Kind::Limit,
        text: format!(
            "commits wait for Aurora's storage ({AURORA_SYNC}) {} % of the sessions' time.",
            percent(case.share(seconds))
        ),
        seconds,
        share: Some(case.share(seconds)),
        evidence: Vec::new(),
        advice: Advice::from("Commit more work at a time."),
        confidence: Confidence::Certain,
        section: "waits",
        consequence_of: None,
    })
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
    let (connected, settings): (Vec<&Condition>, Vec<&Condition>) =
        case.conditions(ConditionKind::Standby).partition(|standby| standby.count != 0);
    let setting =
        settings.first().map(|setting| (setting.name.as_str(), StandbyNames::parse(&setting.name)));
    let missing = setting.as_ref().map_or_else(Vec::new, |(_, names)| names.missing(&connected));
    let lacks = setting.as_ref().is_some_and(|(_, names)| connected.len() < names.number);
    let who = match (&setting, connected.first()) {
        (Some((setting, _)), _) if lacks => format!(
            "{} not connected (synchronous_standby_names = {})",
            match missing.as_slice() {
                [] => "a standby that is".to_owned(),
                [one] => format!("standby {one}, which is"),
                several => format!("standbys {}, which are", several.join(" and ")),
            },
            literal(setting)
        ),
        (_, Some(found)) => format!("standby {} (walsender {})", found.name, found.count),
        _ => "synchronous standbys".to_owned(),
    };
    let share = percent(case.share(seconds));
    // Commits complete in their order: none has since the longest wait began.
    let waits = case.sessions().filter(|row| wait_names::is(&row.activity, "IPC:SyncRep"));
    let oldest = waits.map(|row| row.since_seconds).reduce(f64::max);
    let longest = oldest.unwrap_or(0.0).max(case.length());
    let completed = case.known(replication.count);
    let text = match completed {
        Some(0) => format!(
            "Commits have been stuck for {}: all that wait for a standby wait for {who}, {share} % of the sessions' time.",
            duration(longest),
        ),
        _ => format!(
            "Commits wait for {who}: {}{share} % of the sessions' time.",
            clause("", replication.mean_seconds, " each on average, "),
        ),
    };
    let evidence = connected.iter().map(|standby| {
        format!(
            "Standby {} ({}): {} of WAL sent but not yet flushed there{}.",
            standby.name,
            standby.state,
            bytes(standby.bytes as f64),
            clause(", flush lag ", standby.seconds, "")
        )
    });
    let look = match lacks {
        true => Advice::from(
            "Start the standby, or correct its application_name or synchronous_standby_names.",
        ),
        false => Advice::from("Look at the standby: ")
            .run(
                "SELECT application_name, state, sync_state, write_lag, flush_lag, replay_lag FROM pg_stat_replication",
            )
            .say(". write_lag is the network, flush_lag the standby's device, replay_lag its recovery."),
    };
    // Those that are connected go on confirming commits.
    let release: Vec<String> = match lacks {
        true => connected.iter().map(|standby| identifier(&standby.name)).collect(),
        false => Vec::new(),
    };
    let release = match release.len() {
        0 => String::new(),
        n => format!("FIRST {n} ({})", release.join(", ")),
    };
    // A synchronous standby takes its time by its nature.
    let is_slow = match completed {
        Some(0) => true,
        Some(_) => replication.mean_seconds.is_none_or(|mean| mean >= SLOW_SYNC),
        None => oldest.is_some_and(|oldest| oldest >= SEEN_WAITING),
    };
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
        advice: look
            .say(" To let commits proceed without it: ")
            .set("synchronous_standby_names", &literal(&release))
            .say("."),
        confidence: Confidence::Certain,
        section: "commits",
        consequence_of: None,
    }]
}

/// What synchronous_standby_names says (syncrep_gram.y): how many standbys commits wait for, and their names.
#[derive(Debug, PartialEq, Eq)]
struct StandbyNames {
    number: usize,
    names: Vec<String>,
}

impl StandbyNames {
    fn parse(setting: &str) -> StandbyNames {
        let (before, list) = match (setting.find('('), setting.rfind(')')) {
            // Within quotation marks, a parenthesis is part of a name.
            (Some(open), Some(close)) if open < close && !setting[..open].contains(['"', ',']) => {
                (&setting[..open], &setting[open + 1..close])
            }
            _ => ("", setting),
        };
        let number = before.split(|c: char| !c.is_ascii_digit()).find_map(|word| word.parse().ok());
        let (mut names, mut name, mut quoted) = (Vec::new(), String::new(), false);
        for c in list.chars().chain([',']) {
            match c {
                '"' => quoted = !quoted,
                ',' if !quoted => names.push(std::mem::take(&mut name)),
                c if c.is_whitespace() && !quoted => {}
                c => name.push(c),
            }
        }
        names.retain(|name| !name.is_empty());
        StandbyNames { number: number.unwrap_or(1), names }
    }

    /// The names that no connected standby has; none if any standby would do.
    fn missing(&self, connected: &[&Condition]) -> Vec<&str> {
        if self.names.iter().any(|name| name == "*") {
            return Vec::new();
        }
        let is_connected =
            |name: &str| connected.iter().any(|standby| standby.name.eq_ignore_ascii_case(name));
        self.names.iter().map(String::as_str).filter(|name| !is_connected(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_standbys_are_read_as_the_server_reads_them() {
        for (setting, number, names) in [
            ("gone", 1, &["gone"][..]),
            ("a, \"b, (c\"", 1, &["a", "b, (c"]),
            ("FIRST 2 (a,b)", 2, &["a", "b"]),
            ("any 3 (a, b, \"C D\")", 3, &["a", "b", "C D"]),
            ("2 (s1, s2)", 2, &["s1", "s2"]),
            ("*", 1, &["*"]),
        ] {
            let parsed = StandbyNames::parse(setting);
            assert_eq!(
                (parsed.number, parsed.names.as_slice()),
                (number, &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()[..]),
                "{setting}"
            );
        }
    }
}
