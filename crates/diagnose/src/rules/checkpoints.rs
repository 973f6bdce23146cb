// SPDX-License-Identifier: PostgreSQL
//! Checkpoints that come too often: the WAL forces them, somebody requests them, or checkpoint_timeout is short.

use super::names::command;
use super::statements::BLOCK;
use crate::advice::Advice;
use crate::case::{some_of, words, Case};
use crate::diagnosis::{Confidence, Diagnosis, Kind, Rule};
use segment::event_payload::Checkpoint;
use segment::WaitClass;
use view::measured::times;
use view::statements::StatementFigures;
use view::units::{duration, whole};
use view::vacuum::ConditionKind;

/// Checkpoints further apart than this are no trouble, even if the WAL forces them, seconds.
const OFTEN: f64 = 60.0;
/// Commands this many times slower during checkpoints are worth a sentence.
const SLOWER: f64 = 1.2;
const AFTER: &str =
    "After each checkpoint, the first change to a page writes the whole page to the WAL.";

/// The start of a checkpoint, seconds since 1970.
fn began(checkpoint: &Checkpoint) -> Option<f64> {
    Some(checkpoint.ended? - checkpoint.seconds)
}

/// Why they come, and what to do.
struct Cause {
    text: String,
    advice: Advice,
}

fn cause(case: &Case<'_>, reason: &str, apart: f64) -> Option<Cause> {
    let every = duration(apart);
    Some(match reason {
        "wal" => Cause {
            text: format!(
                "Checkpoints come every {every}, because the WAL reaches max_wal_size in that time{}.",
                whose_wal(case)
            ),
            advice: advice(case, apart),
        },
        "time" => Cause {
            text: format!("Checkpoints come every {every}, because checkpoint_timeout is set that low."),
            advice: Advice::default().set("checkpoint_timeout", "'5min'").say(&format!(". {AFTER}")),
        },
        "request" => {
            // Base backups and CREATE DATABASE request them, too.
            let mut statements = case.all_statement_rows();
            let statement = statements.find(|row| row.calls > 0 && command(row.text()) == "CHECKPOINT")?;
            let (user, database) = (&statement.user, &statement.database);
            let application = statement.application.name().map_or(String::new(), |name| format!("application {name}, "));
            Cause {
                text: format!(
                    "Checkpoints come every {every}, requested by {} ({application}user {user}, database {database}).",
                    words(statement)
                ),
                advice: format!("Find the job that executes CHECKPOINT, and remove the statement: the server performs checkpoints by itself. {AFTER}").into(),
            }
        }
        _ => return None,
    })
}

/// At least two checkpoints that began within the interval had the same cause.
pub fn too_often(case: &Case<'_>) -> Vec<Diagnosis> {
    ["wal", "request", "time"]
        .into_iter()
        .find_map(|reason| too_often_for(case, reason))
        .into_iter()
        .collect()
}

fn too_often_for(case: &Case<'_>, reason: &str) -> Option<Diagnosis> {
    let is_forced = |checkpoint: &&Checkpoint| {
        let often = checkpoint.interval_seconds.is_some_and(|apart| apart < OFTEN);
        checkpoint.reason == reason && often
    };
    // Each of these says when the one before it began: if that was within the interval too, there are two.
    let forced: Vec<&Checkpoint> = case
        .checkpoints
        .iter()
        .filter(is_forced)
        .filter(|checkpoint| match (began(checkpoint), checkpoint.interval_seconds) {
            (Some(began), Some(apart)) => began - apart >= case.from(),
            _ => false,
        })
        .collect();
    let last = forced.last()?;
    let apart = forced.iter().filter_map(|checkpoint| checkpoint.interval_seconds).sum::<f64>()
        / forced.len() as f64;
    let mut evidence = Vec::new();
    if let Some(factor) = slower(&forced).filter(|factor| *factor >= SLOWER) {
        evidence.push(format!(
            "Commands take {} as long during these checkpoints as before them.",
            times(factor)
        ));
    }
    let longest =
        forced.iter().max_by(|a, b| a.longest_sync_seconds.total_cmp(&b.longest_sync_seconds));
    if let Some((checkpoint, file)) = longest
        .filter(|checkpoint| checkpoint.longest_sync_seconds > 0.0)
        .and_then(|checkpoint| Some((checkpoint, checkpoint.longest_sync_file.as_ref()?)))
    {
        evidence
            .push(format!("Longest sync: {}, {file}.", duration(checkpoint.longest_sync_seconds)));
    }
    evidence.push(format!(
        "The last one wrote {} buffers in {}.",
        whole(last.buffers),
        duration(last.seconds)
    ));
    let lost = forced.iter().filter_map(|checkpoint| lost(checkpoint)).sum::<f64>();
    let seconds = lost.max(full_pages(case));
    let Cause { text, advice } = cause(case, reason, apart)?;
    Some(Diagnosis {
        rule: Rule::Checkpoints,
        kind: Kind::Problem,
        text,
        seconds,
        share: Some(case.share(seconds)),
        evidence,
        advice,
        confidence: Confidence::Certain,
        section: "checkpoints",
        consequence_of: None,
    })
}

/// The statement that wrote the most WAL, and its part of all WAL of statements; empty if it wrote little of it.
fn whose_wal(case: &Case<'_>) -> String {
    let all: u64 = case.statement_rows().map(|row| row.wal.bytes).sum();
    let most = case.statement_rows().max_by_key(|row| row.wal.bytes).filter(|_| all > 0);
    let part = |row: &StatementFigures| {
        let share = some_of(row.wal.bytes as f64, all as f64)?;
        Some(format!("; {share} of the WAL is written by {}", words(row)))
    };
    most.and_then(part).unwrap_or_default()
}

/// Time of sessions that wait for the WAL because of full-page images: after each checkpoint, the first change of a page
/// writes the whole page.
fn full_pages(case: &Case<'_>) -> f64 {
    let is_of_wal = |name: &str| name.to_ascii_lowercase().contains("wal");
    let waits = case.seconds_of(|a| {
        matches!(a.class, WaitClass::Io | WaitClass::Lwlock) && is_of_wal(&a.activity)
    });
    let rows = || case.statement_rows();
    let bytes: u64 = rows().map(|row| row.wal.bytes).sum();
    let images: u64 = rows().map(|row| row.wal.fpi).sum();
    match bytes {
        0 => 0.0,
        _ => waits * (images as f64 * BLOCK / bytes as f64).min(1.0),
    }
}

/// The max_wal_size with which checkpoint_timeout makes the checkpoints, by the present rate of the WAL.
fn advice(case: &Case<'_>, apart: f64) -> Advice {
    /// checkpoint_timeout by default, seconds.
    const TIMEOUT: f64 = 300.0;
    /// max_wal_size has room for the WAL of this many checkpoints (CalculateCheckpointSegments, xlog.c).
    const CHECKPOINTS: f64 = 1.9;
    const GB: f64 = 1024.0 * 1024.0 * 1024.0;
    const WAL_FILE: f64 = 16.0 * 1024.0 * 1024.0;

    let mut settings = case.conditions(ConditionKind::Setting);
    let present = settings.find(|setting| setting.name == "max_wal_size" && setting.bytes > 0);
    let rate = case.wal_rate();
    // Each of these checkpoints came after a file of WAL at least: less is not all WAL, as statements that go on are not counted.
    let measured = (rate * apart >= WAL_FILE).then_some(rate * TIMEOUT * CHECKPOINTS);
    let is_enough = |wanted: f64| present.is_some_and(|setting| setting.bytes as f64 >= wanted);
    if let (Some(present), true) = (present, measured.is_some_and(is_enough)) {
        return format!(
            "max_wal_size is {} now, enough for a checkpoint every {} at the present rate of WAL: check again in a few minutes. \
             {AFTER}",
            present.state,
            duration(TIMEOUT)
        )
        .into();
    }
    // Where the rate is not known, the present size lasts for the time between two of them.
    let wanted = measured.or_else(|| present.map(|setting| setting.bytes as f64 * TIMEOUT / apart));
    let needs = wanted.map_or("as much space".to_owned(), |wanted| {
        format!("up to {}GB", (wanted / GB).ceil().max(1.0))
    });
    let now = present.map_or(String::new(), |setting| format!(", which is {} now", setting.state));
    let set = match wanted {
        None => format!("Raise max_wal_size to {} times its size", (TIMEOUT / apart).ceil()).into(),
        Some(wanted) => {
            let size = (wanted / GB).ceil().max(1.0);
            let raise = Advice::from(format!("Raise max_wal_size{now}: "));
            raise.set("max_wal_size", &format!("'{size}GB'"))
        }
    };
    set.say(&format!(
        ". At the present rate of WAL, checkpoints then come every {}. pg_wal then needs {needs}. {AFTER}",
        duration(TIMEOUT)
    ))
}

/// How many times as long commands took during the checkpoints as before them.
fn slower(checkpoints: &[&Checkpoint]) -> Option<f64> {
    let (mut before, mut during) = ((0.0, 0u64), (0.0, 0u64));
    for checkpoint in checkpoints {
        let (Some(b), Some(d)) = (&checkpoint.before, &checkpoint.during) else { continue };
        before = (before.0 + b.handle_seconds, before.1 + b.commands);
        during = (during.0 + d.handle_seconds, during.1 + d.commands);
    }
    let mean = |(seconds, commands): (f64, u64)| (commands > 0).then(|| seconds / commands as f64);
    Some(mean(during)? / mean(before).filter(|s| *s > 0.0)?)
}

/// The time by which commands took longer during it.
fn lost(checkpoint: &Checkpoint) -> Option<f64> {
    let (before, during) = (checkpoint.before?.mean_handle_seconds?, checkpoint.during?);
    Some((during.handle_seconds - before * during.commands as f64).max(0.0))
}
