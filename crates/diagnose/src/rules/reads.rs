// SPDX-License-Identifier: PostgreSQL
//! Reads of data files.

use super::{bounds, harms};
use crate::case::Case;
use crate::diagnosis::{Confidence, Diagnosis, Kind, Rule};
use segment::files::FileRow;
use view::statements::ActivityRow;
use view::units::{clause, count, duration, percent};

const READ: &str = "IO:DataFileRead";
/// Share of the load.
const MUCH: f64 = 0.2;
/// Mean time of a read from which on the device counts as slow, seconds.
const SLOW: f64 = 0.005;

/// Reads of data files take much of the time: a problem if each is slow, otherwise what bounds the load.
pub fn misses(case: &Case<'_>) -> Vec<Diagnosis> {
    let is_read = |activity: &str| activity == READ || activity == "IO:AioIoCompletion";
    let seconds = case.seconds_of(|a| is_read(&a.activity));
    let reads =
        case.interval().activities_where(|a| is_read(&a.activity) && &*a.phase != "background");
    let Some(row) = reads.first() else { return Vec::new() };
    let mean = row.timing.mean_seconds;
    let is_slow = mean.is_some_and(|mean| mean >= SLOW) && harms(case, seconds, MUCH);
    if !is_slow && !bounds(case, seconds, MUCH) {
        return Vec::new();
    }
    let of_statement = |a: &ActivityRow| is_read(&a.activity);
    let mut evidence = Vec::new();
    let whose = case.in_statement(seconds, of_statement);
    let share = percent(case.share(seconds));
    let (rule, kind, text, advice) = match is_slow {
        true => (
            Rule::SlowDevice,
            Kind::Problem,
            format!(
                "Reads of data files are slow: {}{}{share} % of the sessions' time{whose}.",
                clause("", mean, " each on average, "),
                clause("p99 ", row.timing.p99_seconds, ", "),
            ),
            "Check the device (queue, other users, limits) and what is read: tally top, pane IO.",
        ),
        false => (
            Rule::BufferMisses,
            Kind::Limit,
            format!(
                "reads of data files: sessions wait for them {share} % of their time{}{}{whose}.",
                row.timing.known_count().map_or_else(String::new, |reads| {
                    format!(", {}/s", count(reads as f64 / case.length()))
                }),
                clause(", ", mean, " each")
            ),
            "Look at the plans of these statements first, then at shared_buffers.",
        ),
    };
    evidence.extend(slowest(case));
    if let Some(p50) = row.timing.p50_seconds {
        evidence.push(format!("Half of the reads take less than {}.", duration(p50)));
    }
    vec![Diagnosis {
        rule,
        kind,
        text,
        seconds,
        share: Some(case.share(seconds)),
        evidence,
        advice: advice.into(),
        confidence: Confidence::Certain,
        section: "files",
        consequence_of: None,
    }]
}

/// The files whose reads take longest on average.
fn slowest(case: &Case<'_>) -> Option<String> {
    let reads = case.interval().files.iter().filter(|file| &*file.operation == "read");
    let of_tables = reads.filter(|file| file.tablespace.is_some() && file.timing.count > 0);
    let mean = |file: &FileRow| file.timing.mean_seconds.unwrap_or(0.0);
    let worst = of_tables.max_by(|a, b| mean(a).total_cmp(&mean(b)))?;
    Some(format!(
        "Slowest reads: files {} in tablespace {}, {} each, {} in total.",
        worst.file,
        worst.tablespace.as_deref().unwrap_or_default(),
        duration(mean(worst)),
        duration(worst.timing.seconds)
    ))
}
