// SPDX-License-Identifier: PostgreSQL
//! Statements: what single ones read, sort and plan, and what their table is full of.

use super::matters;
use super::plans::{self, Reads};
use crate::case::{words, Case};
use crate::diagnosis::{Confidence, Diagnosis, Rule};
use segment::wait_names;
use view::statements::{beginning, StatementFigures};
use view::units::{bytes, clause, count, duration, percent, whole};

const BLOCK: f64 = 8192.0;

/// The statements that clients sent and that took time, most first.
fn rows<'c>(case: &Case<'c>) -> impl Iterator<Item = &'c StatementFigures> {
    case.statement_rows().filter(|row| row.execution.count > 0)
}

/// Whether it wrote temporary files.
fn spills(row: &StatementFigures) -> bool {
    row.temp_bytes > 0 || row.blocks.temp_written > 0
}

/// A statement reads hundreds of times as many blocks as it returns rows.
pub fn missing_index(case: &Case<'_>) -> Vec<Diagnosis> {
    /// Part of the load that one statement has to take.
    const MUCH: f64 = 0.2;
    /// Blocks that a call has to read; fewer are no trouble.
    const BLOCKS: f64 = 500.0;
    /// Blocks for each row.
    const A_ROW: f64 = 100.0;

    // What it sorts or hashes beyond work_mem is the next rule's.
    let suspect = |row: &&StatementFigures| {
        let calls = row.calls.max(1) as f64;
        let blocks = (row.blocks.shared_hit + row.blocks.shared_read) as f64;
        matters(case, row.seconds, MUCH)
            && !spills(row)
            && blocks >= BLOCKS * calls
            && blocks >= A_ROW * (row.rows as f64).max(calls)
    };
    rows(case)
        .filter(suspect)
        .filter_map(|row| {
            let (confidence, seen) = match plans::reads(case.plans, row) {
                Reads::Unknown | Reads::Other => (Confidence::Possible, None),
                // An aggregate over the whole table: no index would help.
                Reads::Whole => return None,
                Reads::Filtered(table, size) => {
                    let size = count(size);
                    let seen = format!("Its plan reads the whole table {table} ({size} rows) and filters them.");
                    (Confidence::Likely, Some(seen))
                }
            };
            let calls = row.calls.max(1) as f64;
            let blocks = (row.blocks.shared_hit + row.blocks.shared_read) as f64;
            Some(Diagnosis {
                rule: Rule::MissingIndex,
                text: format!(
                    "A statement reads {} blocks ({}) for {} of result a call: an index may be missing: {}.",
                    count(blocks / calls),
                    bytes(blocks / calls * BLOCK),
                    rows_of(row.rows as f64 / calls),
                    words(row)
                ),
                seconds: row.seconds,
                share: Some(case.share(row.seconds)),
                evidence: [format!(
                    "It takes {} % of the sessions' time: {} calls{}.",
                    percent(case.share(row.seconds)),
                    count(row.calls as f64),
                    clause(" of ", row.execution.mean_seconds, "")
                )]
                .into_iter()
                .chain(seen)
                .collect(),
                advice: "Look at its plan (EXPLAIN (ANALYZE, BUFFERS)): a sequential scan that removes most \
                         rows by its filter wants an index on the filter's columns. An aggregate over \
                         the whole table reads as much by its nature."
                    .into(),
                confidence,
                section: "statements",
                consequence_of: None,
            })
        })
        .collect()
}

/// "1 row", "12 rows", "0.3 rows".
fn rows_of(rows: f64) -> String {
    let unit = if rows == 1.0 { "row" } else { "rows" };
    format!("{} {unit}", count(rows))
}

/// Blocks written are more than this many times the size of the files: they are merged in passes.
const PASSES: f64 = 1.2;

/// "163 MB in 4 files; 326 MB written, since they are merged in passes". Files count when they are closed.
fn files_of(files: u64, size: f64, written: f64) -> String {
    if files == 0 {
        return format!("{} written", bytes(written));
    }
    let unit = if files == 1 { "file" } else { "files" };
    let passes = match written > PASSES * size {
        true => format!("; {} written, since they are merged in passes", bytes(written)),
        false => String::new(),
    };
    format!("{} in {} {unit}{passes}", bytes(size), count(files as f64))
}

/// Sorts and hashes that do not fit into work_mem.
pub fn temporary_files(case: &Case<'_>) -> Vec<Diagnosis> {
    /// Part of the load.
    const MUCH: f64 = 0.2;

    let with: Vec<&StatementFigures> = rows(case).filter(|row| spills(row)).collect();
    let seconds: f64 = with.iter().map(|row| row.seconds).sum();
    let Some(worst) = with.first().filter(|_| matters(case, seconds, MUCH)) else {
        return Vec::new();
    };
    let files: u64 = with.iter().map(|row| row.temp_files).sum();
    let size: u64 = with.iter().map(|row| row.temp_bytes).sum();
    let written: u64 = with.iter().map(|row| row.blocks.temp_written).sum();
    let of_worst = match worst.temp_bytes {
        0 => worst.blocks.temp_written as f64 * BLOCK,
        size => size as f64,
    };
    let events = ["IO:BuffileRead", "IO:BuffileWrite"];
    let waits = case.seconds_of(|a| events.iter().any(|event| wait_names::is(&a.activity, event)));
    vec![Diagnosis {
        rule: Rule::TemporaryFiles,
        text: format!(
            "Sorts or hashes do not fit into work_mem and write temporary files ({}): {}.",
            files_of(files, size as f64, written as f64 * BLOCK),
            words(worst)
        ),
        seconds,
        share: Some(case.share(seconds)),
        evidence: vec![
            format!(
                "Statements with temporary files take {} % of the sessions' time.",
                percent(case.share(seconds))
            ),
            format!("Sessions waited for these files for {}.", duration(waits)),
        ],
        advice: format!(
            "Raise work_mem for this statement (SET LOCAL work_mem) beyond the {} of a call's files, or \
             let it sort less: an index in the order that is asked for, fewer columns, a limit.",
            bytes(of_worst / worst.calls.max(1) as f64)
        ),
        confidence: Confidence::Likely,
        section: "statements",
        consequence_of: None,
    }]
}

/// Planning takes longer than executing.
pub fn planning(case: &Case<'_>) -> Vec<Diagnosis> {
    /// Part of the load.
    const MUCH: f64 = 0.3;

    let seconds: f64 = rows(case).map(|row| row.planning.seconds).sum();
    let executing: f64 = rows(case).map(|row| row.execution.seconds).sum();
    let worst = rows(case).max_by(|a, b| a.planning.seconds.total_cmp(&b.planning.seconds));
    let Some(worst) = worst.filter(|_| matters(case, seconds, MUCH) && seconds > executing) else {
        return Vec::new();
    };
    vec![Diagnosis {
        rule: Rule::Planning,
        text: format!(
            "Planning takes longer than executing: {} against {}, most of it for {}.",
            duration(seconds),
            duration(executing),
            words(worst)
        ),
        seconds,
        share: Some(case.share(seconds)),
        evidence: (worst.planning.mean_seconds)
            .map(|planned| {
                format!(
                    "This statement is planned in {}{} on average.",
                    duration(planned),
                    clause(" and executed in ", worst.execution.mean_seconds, "")
                )
            })
            .into_iter()
            .collect(),
        advice:
            "Use prepared statements (with a generic plan, plan_cache_mode, if their parameters do \
                 not matter), and look at the number of partitions and joined tables."
                .into(),
        confidence: Confidence::Certain,
        section: "statements",
        consequence_of: None,
    }]
}

/// Statements of one kind that run once fill the table.
pub fn flood(case: &Case<'_>) -> Vec<Diagnosis> {
    /// Characters of a text.
    const TEXT: usize = 60;

    let Some((statements, flood)) = case.statements.and_then(|it| Some((it, it.flood.as_ref()?)))
    else {
        return Vec::new();
    };
    let examples: Vec<String> = flood.examples.iter().map(|text| beginning(text, TEXT)).collect();
    let when = statements
        .interval_seconds
        .map_or_else(|| "since the server's start".to_owned(), |it| format!("in {}", duration(it)));
    vec![Diagnosis {
        rule: Rule::StatementFlood,
        text: format!(
            "{} of the {} statements {} are {} that ran once; {} statements were evicted {when}.",
            whole(flood.once),
            whole(flood.kept),
            if flood.recorded { "recorded" } else { "kept" },
            flood.kind,
            whole(flood.evicted),
        ),
        seconds: 0.0,
        share: None,
        evidence: vec![format!("For example: {}.", examples.join("; "))],
        advice: format!(
            "{} Or raise pg_tally.max_statements.",
            remedy(&flood.kind, major(&case.whole.server.name))
        ),
        confidence: Confidence::Certain,
        section: "statements",
        consequence_of: None,
    }]
}

/// The major version in "PostgreSQL 15.20"; 0: not known.
fn major(server: &str) -> u32 {
    let digits = server.trim_start_matches(|c: char| !c.is_ascii_digit());
    digits.split(|c: char| !c.is_ascii_digit()).next().and_then(|it| it.parse().ok()).unwrap_or(0)
}

/// What makes such statements one, or keeps them out.
fn remedy(kind: &str, major: u32) -> String {
    let later = |from: u32, what: &str| match major < from {
        true => format!(" PostgreSQL {from} and later count them as one, whatever the {what}."),
        false => String::new(),
    };
    let off = "set pg_tally.statements_utility = off";
    match kind {
        "SELECT" | "INSERT" | "UPDATE" | "DELETE" | "MERGE" | "WITH" | "VALUES" => {
            let lists = match major < 18 {
                true => " PostgreSQL 18 and later count lists of constants as one, whatever their length.",
                false => "",
            };
            format!(
                "Their texts differ in more than constants: pass a list as one parameter (= ANY ($1) instead of \
                 IN ($1, $2)), and do not generate names.{lists}"
            )
        }
        "SET" | "FETCH" | "MOVE" => {
            format!("Each value is a statement of its own: {off}.{}", later(18, "value"))
        }
        "DEALLOCATE" | "PREPARE TRANSACTION" | "COMMIT PREPARED" | "ROLLBACK PREPARED" => {
            format!("Each name is a statement of its own: use the same names, or {off}.{}", later(17, "name"))
        }
        _ if kind.starts_with("SAVEPOINT") => {
            format!("Each name is a statement of its own: use the same names, or {off}.{}", later(17, "name"))
        }
        _ => format!(
            "Each name is a statement of its own: use the same names (of a temporary table, one a session with ON COMMIT \
             DELETE ROWS), or {off}."
        ),
    }
}
