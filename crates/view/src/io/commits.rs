// SPDX-License-Identifier: PostgreSQL
//! Commits in a few lines.

use segment::interval::{Interval, Timing};

use super::files::rate;
use crate::units::{clause, count, duration, two};

/// Number of commits, which backends flushed, and where their time went.
pub fn lines(interval: &Interval) -> Vec<String> {
    let commits = &interval.commits;
    let per_second = |n: u64| count(rate(n as f64, interval));
    if commits.count == 0 {
        return vec!["no commit wrote WAL in this interval".to_string()];
    }
    let mut parts = Vec::new();
    let mut whole = |what: &str, timing: &Timing| {
        if timing.count > 0 {
            let mean = clause(", ", timing.mean_seconds, " each");
            parts.push(format!("{}/s {what}{mean}", per_second(timing.count)));
        }
    };
    whole("flushed (leader)", &commits.leader);
    whole("group-committed", &commits.group_committed);
    whole("asynchronous", &commits.asynchronous);
    let mut line = format!("{}/s: {}", per_second(commits.count), parts.join("; "));
    if let Some(n) = commits.commits_per_flush {
        line.push_str(&format!("; {} per flush", two(n)));
    }
    let mut lines = vec![line];
    let spent: Vec<String> = [
        ("sync", &commits.sync),
        ("write", &commits.write),
        ("commit_delay", &commits.delay),
        ("queue", &commits.queue),
        ("insert", &commits.insert),
        ("replication", &commits.replication),
    ]
    .into_iter()
    .filter(|(_, timing)| timing.count > 0)
    .map(|(what, timing)| {
        let mean = duration(timing.mean_seconds.unwrap_or(0.0));
        let p99 = clause(" p99 ", timing.p99_seconds, "");
        format!("{what} {mean}{p99} ({}/s)", per_second(timing.count))
    })
    .collect();
    if !spent.is_empty() {
        lines.push(format!("mean waits: {}", spent.join(", ")));
    }
    if let Some((insertion, mean)) =
        commits.insertion.as_ref().and_then(|timing| Some((timing, timing.mean_seconds?)))
    {
        let p99 = clause(", p99 ", insertion.p99_seconds, "");
        lines.push(format!("inserting WAL: mean {}{p99}", duration(mean)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_counted_by_who_synced_and_where_time_went() {
        let mut interval = crate::sample::interval();
        let spent = "mean waits: sync 600 us p99 5.40 ms (400/s), commit_delay 1.10 ms p99 9.90 ms (90/s), queue 522 us \
                     p99 4.70 ms (1.15k/s)";
        let counted = "1.60k/s: 400/s flushed (leader), 900 us each; 1.15k/s group-committed, 600 us each; 50/s \
                       asynchronous, 10 us each; 3.88 per flush";
        assert_eq!(lines(&interval), [counted, spent]);
        interval.commits.insertion = Some(interval.commits.sync);
        assert_eq!(lines(&interval)[2], "inserting WAL: mean 600 us, p99 5.40 ms");
        interval.commits.insertion = Some(Timing { p99_seconds: None, ..interval.commits.sync });
        assert_eq!(lines(&interval)[2], "inserting WAL: mean 600 us");
        interval.commits.count = 0;
        assert_eq!(lines(&interval), ["no commit wrote WAL in this interval"]);
    }
}
