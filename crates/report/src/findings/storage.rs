// SPDX-License-Identifier: PostgreSQL
//! Findings about storage: slow operations, commits, and the effect of checkpoints on throughput.

use jiff::tz::TimeZone;
use segment::EventKind;

use super::note;
use crate::material::Material;
use crate::tables::checkpoints;
use diagnose::{Confidence, Diagnosis, Kind, Rule};
use stats::t_quantile;
use view::document::{time, Finding};
use view::measured::Measured;
use view::units::{duration, percent, two, whole};

/// All of them.
pub fn findings(material: &Material, zone: &TimeZone) -> Vec<Finding> {
    let all = [commits(material), slow(material, zone), throttled(material)];
    all.into_iter().flatten().collect()
}

fn commits(material: &Material) -> Option<Finding> {
    let commits = &material.whole.commits;
    let mean = commits.leader.mean_seconds?;
    let share = commits.sync.seconds / commits.leader.seconds.max(1e-12);
    let mut text = format!(
        "A commit that flushed WAL took {} on average, {} % of it in the sync",
        duration(mean),
        percent(share.min(1.0))
    );
    if let Some(n) = commits.commits_per_flush {
        text.push_str(&format!("; each flush covered {} commits", two(n)));
    }
    Some(note("commits", text + "."))
}

fn slow(material: &Material, zone: &TimeZone) -> Option<Finding> {
    let slow: Vec<_> = material
        .events
        .iter()
        .filter(|row| {
            row.kind == EventKind::Slow && row.time.is_some_and(|t| t >= material.measured.from)
        })
        .collect();
    let longest = slow.iter().max_by(|a, b| a.slow_seconds().total_cmp(&b.slow_seconds()))?;
    let when = longest.time.map_or(String::new(), |at| format!(" at {}", time(at, zone)));
    let who = longest.process.as_deref().unwrap_or("a process that has ended");
    let text = match slow.len() {
        1 => format!("One slow operation{when}, by {who}: {}.", longest.text),
        n => format!(
            "{} slow operations; the longest{when}, by {who}: {}.",
            whole(n as u64),
            longest.text
        ),
    };
    let times = slow.iter().filter_map(|row| Some((row.time? - row.slow_seconds(), row.time?)));
    Some(Finding { times: times.collect(), ..note("checkpoints", text) })
}

/// Compares the throughput during each checkpoint with that of an equally long time before it.
fn throttled(material: &Material) -> Option<Finding> {
    let rate = |from: f64, to: f64| {
        let within = material.moments.iter().filter(|m| {
            let middle = m.start + m.seconds / 2.0;
            m.seconds > 0.0 && from <= middle && middle < to
        });
        let (n, s) = within.fold((0.0, 0.0), |(n, s), m| (n + m.commands as f64, s + m.seconds));
        (s > 0.0 && n > 0.0).then(|| n / s)
    };
    let all: Vec<(f64, f64)> = checkpoints(&material.events, material.measured.from)
        .into_iter()
        .filter_map(|checkpoint| Some((checkpoint.ended? - checkpoint.seconds, checkpoint.ended?)))
        .collect();
    let ratios: Vec<f64> = all
        .iter()
        .enumerate()
        .filter_map(|(at, &(from, to))| {
            let free =
                at.checked_sub(1).and_then(|b| all.get(b)).map_or(material.measured.from, |b| b.1);
            Some(rate(from, to)? / rate((from - (to - from)).max(free), from)? - 1.0)
        })
        .collect();
    let n = ratios.len() as f64;
    if ratios.len() < 3 {
        return None;
    }
    let mean = ratios.iter().sum::<f64>() / n;
    let spread = ratios.iter().map(|r| (r - mean) * (r - mean)).sum::<f64>() / (n - 1.0);
    let half_width = (spread / n).sqrt() * t_quantile(0.975, n - 1.0);
    if mean.abs() <= half_width || mean.abs() < 0.01 {
        return None;
    }
    let text = format!(
        "During its {} checkpoints, the server handled {} {} commands than just before them.",
        ratios.len(),
        Measured::new(mean.abs(), half_width).share(),
        if mean < 0.0 { "fewer" } else { "more" }
    );
    Some(note("checkpoints", text))
}

/// Operations on files that failed.
pub fn failed(material: &Material) -> Option<Diagnosis> {
    // The server opens or removes some files just to see whether they exist, and truncates files before it
    // removes them.
    let looks = |operation: &str| matches!(operation, "open" | "unlink" | "truncate");
    let others = material.whole.files.iter().filter(|row| !looks(&row.operation));
    let failed: u64 = others.map(|row| row.failed).sum();
    let what = if failed == 1 { "file operation" } else { "file operations" };
    (failed > 0).then(|| Diagnosis {
        rule: Rule::FailedOperations,
        kind: Kind::Problem,
        text: format!("{} {what} failed.", whole(failed)),
        seconds: 0.0,
        share: None,
        evidence: Vec::new(),
        advice: "The table of files has the operations and files. The server's log has the error, unless the server expected it; \
                 the kernel's log has errors of the device."
            .into(),
        confidence: Confidence::Possible,
        section: "files",
        consequence_of: None,
    })
}
