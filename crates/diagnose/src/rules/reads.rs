// SPDX-License-Identifier: PostgreSQL
//! Reads of data files.

use super::matters;
use crate::case::Case;
use crate::diagnosis::{Confidence, Diagnosis, Rule};
use segment::files::FileRow;
use view::statements::ActivityRow;
use view::units::{clause, count, duration, percent};

const READ: &str = "IO:DataFileRead";
/// Part of the load.
const MUCH: f64 = 0.2;
/// A read of a block that takes longer on average comes from a slow device, seconds.
const SLOW: f64 = 0.005;

/// Reading takes much of the time: each read is slow, or there are many.
pub fn misses(case: &Case<'_>) -> Vec<Diagnosis> {
    let is_read = |activity: &str| activity == READ || activity == "IO:AioIoCompletion";
    let seconds = case.seconds_of(|a| is_read(&a.activity));
    if !matters(case, seconds, MUCH) {
        return Vec::new();
    }
    let reads =
        case.interval().activities_where(|a| is_read(&a.activity) && &*a.phase != "background");
    let Some(row) = reads.first() else { return Vec::new() };
    let mean = row.timing.mean_seconds;
    let of_statement = |a: &ActivityRow| is_read(&a.activity);
    let mut evidence: Vec<String> = case.whose(seconds, of_statement).into_iter().collect();
    let (rule, text, advice) = if mean.is_some_and(|mean| mean >= SLOW) {
        let text = format!(
            "Reads of data files are slow: {}{}{} % of the sessions' time.",
            clause("", mean, " each on average, "),
            clause("p99 ", row.timing.p99_seconds, ", "),
            percent(case.share(seconds))
        );
        let advice =
            "Look at the device (queue, other users, limits), and at what is read: tally top, \
                      pane Storage.";
        (Rule::SlowDevice, text, advice)
    } else {
        let text = format!(
            "Sessions wait for reads of data files {} % of their time: {}/s{}.",
            percent(case.share(seconds)),
            count(row.timing.count as f64 / case.length()),
            clause(", ", mean, " each")
        );
        let advice =
            "Look at what is read and why it does not stay in the buffers: the plans of these \
                      statements first, then shared_buffers.";
        (Rule::BufferMisses, text, advice)
    };
    evidence.extend(slowest(case));
    if let Some(p50) = row.timing.p50_seconds {
        evidence.push(format!("Half of the reads take less than {}.", duration(p50)));
    }
    vec![Diagnosis {
        rule,
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
    let of_tables = reads.filter(|it| it.tablespace.is_some() && it.timing.count > 0);
    let mean = |it: &FileRow| it.timing.mean_seconds.unwrap_or(0.0);
    let worst = of_tables.max_by(|a, b| mean(a).total_cmp(&mean(b)))?;
    Some(format!(
        "Slowest reads: files {} in tablespace {}, {} each, {} in total.",
        worst.file,
        worst.tablespace.as_deref().unwrap_or_default(),
        duration(mean(worst)),
        duration(worst.timing.seconds)
    ))
}
