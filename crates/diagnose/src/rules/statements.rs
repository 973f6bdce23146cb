// SPDX-License-Identifier: PostgreSQL
//! Statements: what a single one sorts, plans and compiles, and what fills their table.

use super::harms;
use super::names::{command, identifier, major, name};
use crate::advice::Advice;
use crate::case::{words, Case};
use crate::diagnosis::{Confidence, Diagnosis, Kind, Rule};
use segment::{wait_names, WaitClass};
use view::statements::{beginning, named, CurrentRow, StatementFigures};
use view::units::{bytes, clause, count, duration, percent, whole};

pub(super) const BLOCK: f64 = 8192.0;
const MB: f64 = 1024.0 * 1024.0;

/// The statements that clients sent and that took time, most first.
fn rows<'c>(case: &Case<'c>) -> impl Iterator<Item = &'c StatementFigures> {
    case.statement_rows().filter(|row| row.execution.count > 0)
}

/// Whether it wrote temporary files.
pub(super) fn spills(row: &StatementFigures) -> bool {
    row.temp_bytes > 0 || row.blocks.temp_written > 0
}

/// Whether it is planned: utility statements are not, and no index would help them.
pub(super) fn is_planned(row: &StatementFigures) -> bool {
    matches!(
        command(row.text()).as_str(),
        "SELECT" | "INSERT" | "UPDATE" | "DELETE" | "MERGE" | "WITH" | "VALUES" | "TABLE"
    )
}

/// Server time of a statement: of one that another statement executed, that of its executions.
pub(super) fn time(row: &StatementFigures) -> f64 {
    match row.toplevel {
        true => row.seconds,
        false => row.execution.seconds,
    }
}

/// Blocks written are more than this many times the size of the files: they are merged in passes.
const PASSES: f64 = 1.2;

/// "163 MB in 4 files; 326 MB written, because they are merged in passes". Files count when they are closed.
fn files_of(files: u64, size: f64, written: f64) -> String {
    if files == 0 {
        return format!("{} written", bytes(written));
    }
    let unit = if files == 1 { "file" } else { "files" };
    let passes = match written > PASSES * size {
        true => format!("; {} written, in several passes", bytes(written)),
        false => String::new(),
    };
    format!("{} in {} {unit}{passes}", bytes(size), count(files as f64))
}

/// More work_mem than this is not advised, MB: each sort and hash of a statement may take as much.
const MOST_MEMORY: f64 = 1024.0;

/// Sorts and hashes that do not fit into work_mem.
pub fn temporary_files(case: &Case<'_>) -> Vec<Diagnosis> {
    /// Share of the load.
    const MUCH: f64 = 0.2;

    let with: Vec<&StatementFigures> =
        rows(case).filter(|row| spills(row) && is_planned(row)).collect();
    let seconds: f64 = with.iter().map(|row| row.seconds).sum();
    let Some(worst) = with.first().filter(|_| harms(case, seconds, MUCH)) else {
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
        kind: Kind::Problem,
        text: format!(
            "Sorts or hashes overflow work_mem into temporary files ({}): {}.",
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
        advice: {
            let of_call = of_worst / worst.calls.max(1) as f64;
            let enough = (2.0 * of_call / MB).ceil().max(1.0);
            let less =
                "educe what it sorts: an index in the required order, fewer columns, a LIMIT.";
            match enough <= MOST_MEMORY {
                true => Advice::from("Before this statement, in its transaction: ")
                    .run(format!("SET LOCAL work_mem = '{enough}MB'"))
                    .say(&format!(" (a call writes files of {}). Or r{less}", bytes(of_call))),
                false => format!(
                    "R{less} A call writes files of {}, too much for work_mem.",
                    bytes(of_call)
                )
                .into(),
            }
        },
        confidence: Confidence::Likely,
        section: "statements",
        consequence_of: None,
    }]
}

/// Time in which it is executed: by its session, whose phase in a simple query is that of the whole message, and by parallel
/// workers, whose phase is always this one.
fn executing(row: &StatementFigures) -> f64 {
    let of_phase = |phase: &str| -> f64 {
        row.activities.iter().filter(|a| &*a.phase == phase).map(|a| a.seconds).sum()
    };
    let own = row.execution.seconds;
    own.max(of_phase("execute") + own.min(of_phase("simple query")))
}

/// Parsing and planning take longer than executing.
///
/// None of a simple query's counters contains its parse analysis: that is the rest of the message's
/// time.
pub fn planning(case: &Case<'_>) -> Vec<Diagnosis> {
    /// Share of the load.
    const MUCH: f64 = 0.2;
    /// Less than this for a call is no trouble, seconds.
    const EACH: f64 = 0.001;

    // Calls in progress have time, but are not in the counters yet.
    let unfinished = |row: &StatementFigures| -> f64 {
        let of_row = case.current().iter().filter(|current| current.queryid == row.queryid);
        of_row.map(|current| current.seconds.min(case.length())).sum()
    };
    // What a statement that writes takes beside its execution may be its commit.
    let before = |row: &StatementFigures| match row.wal.records {
        0 => {
            // A statement waits for its tables' locks in parse analysis.
            let locks = row.split.class(WaitClass::Lock);
            let rest = row.seconds - executing(row) - compiling(row) - unfinished(row) - locks;
            rest.max(row.planning.seconds)
        }
        _ => row.planning.seconds,
    };
    let suspect = |row: &&StatementFigures| {
        let seconds = before(row);
        seconds >= EACH * row.calls.max(1) as f64
            && seconds > row.execution.seconds
            && is_planned(row)
    };
    let suspects: Vec<_> = rows(case).filter(suspect).collect();
    let seconds: f64 = suspects.iter().map(|row| before(row)).sum();
    let executing: f64 = suspects.iter().map(|row| row.execution.seconds).sum();
    let worst = suspects.iter().max_by(|a, b| before(a).total_cmp(&before(b)));
    let Some(worst) = worst.filter(|_| harms(case, seconds, MUCH)) else {
        return Vec::new();
    };
    let calls = worst.calls.max(1) as f64;
    let mut evidence = vec![format!(
        "A call takes {} to parse and plan, and {} to execute{}.",
        duration(before(worst) / calls),
        duration(worst.execution.seconds / calls),
        clause("; planning alone takes ", worst.planning.mean_seconds, "")
    )];
    if worst.query_bytes > LONG_TEXT {
        evidence.push(format!("Its text is {} long.", bytes(f64::from(worst.query_bytes))));
    }
    vec![Diagnosis {
        rule: Rule::Planning,
        kind: Kind::Problem,
        text: format!(
            "Parsing and planning take longer than executing, {} against {} in total, most of it for {}.",
            duration(seconds),
            duration(executing),
            words(worst)
        ),
        seconds,
        share: Some(case.share(seconds)),
        evidence,
        advice: match is_long_list(worst) {
            true => "Pass the list as one parameter, = ANY ($1) instead of IN (1, 2, ...), and prepare the statement once per session."
                .into(),
            false => Advice::from("Prepare the statement once per session. If its plan does not depend on the parameters: ")
                .run("SET plan_cache_mode = force_generic_plan")
                .say(". Otherwise look at the number of partitions and joined tables."),
        },
        confidence: Confidence::Certain,
        section: "statements",
        consequence_of: None,
    }]
}

/// Whether most of its text is a list of constants.
fn is_long_list(row: &StatementFigures) -> bool {
    let text = row.text().to_ascii_lowercase();
    row.query_bytes > LONG_TEXT && (text.contains(" in (") || text.contains(" in("))
}

/// A text of more bytes than this is worth a sentence.
const LONG_TEXT: u32 = 4096;

/// Time of JIT compilation. Deforming is part of the generation.
fn compiling(row: &StatementFigures) -> f64 {
    let jit = &row.jit;
    jit.generation_seconds + jit.inlining_seconds + jit.optimization_seconds + jit.emission_seconds
}

/// JIT compilation takes much of a statement's time.
pub fn jit(case: &Case<'_>) -> Vec<Diagnosis> {
    /// Share of the load.
    const MUCH: f64 = 0.1;
    /// Part of the statement's own time.
    const PART: f64 = 1.0 / 3.0;
    /// Less than this for a call is no trouble, seconds.
    const EACH: f64 = 0.002;

    // A part of it belongs to the executor's start, which is in no execution.
    let of_call = |row: &StatementFigures| time(row).max(row.execution.seconds).max(compiling(row));
    let suspect = |row: &&StatementFigures| {
        compiling(row) >= PART * of_call(row) && compiling(row) >= EACH * row.calls.max(1) as f64
    };
    let suspects: Vec<_> = rows(case).filter(suspect).collect();
    let seconds: f64 = suspects.iter().map(|row| compiling(row)).sum();
    let worst = suspects.iter().max_by(|a, b| compiling(a).total_cmp(&compiling(b)));
    let Some(worst) = worst.filter(|_| harms(case, seconds, MUCH)) else { return Vec::new() };
    let calls = worst.calls.max(1) as f64;
    let functions = worst.jit.functions as f64 / calls;
    vec![Diagnosis {
        rule: Rule::Jit,
        kind: Kind::Problem,
        text: format!(
            "JIT compilation takes {} of the {} of a call: {}.",
            duration(compiling(worst) / calls),
            duration(of_call(worst) / calls),
            words(worst)
        ),
        seconds,
        share: Some(case.share(seconds)),
        evidence: vec![format!(
            "{} calls compile {} functions each: generation {}, inlining {}, optimization {}, emission {} in total.",
            whole(worst.calls),
            count(functions),
            duration(worst.jit.generation_seconds),
            duration(worst.jit.inlining_seconds),
            duration(worst.jit.optimization_seconds),
            duration(worst.jit.emission_seconds)
        )],
        advice: without_jit(worst),
        confidence: Confidence::Certain,
        section: "statements",
        consequence_of: None,
    }]
}

/// How to execute it without JIT compilation.
fn without_jit(row: &StatementFigures) -> Advice {
    let of_role = match row.user.as_str() {
        "" => Advice::default(),
        user => Advice::from("For its role: ")
            .run(format!("ALTER ROLE {} SET jit = off", identifier(user)))
            .say(". For all: "),
    };
    of_role.set("jit", "off").say(
        ". To keep it for longer statements, raise jit_above_cost above the estimated cost of this one. If that estimate is far too \
         high, ANALYZE its tables.",
    )
}

/// A statement has been running for minutes, and works.
pub fn long(case: &Case<'_>) -> Vec<Diagnosis> {
    /// Seconds.
    const LONG: f64 = 60.0;
    /// Part of the time so far in which it waits for its client, for locks or on purpose: others' diagnoses.
    const WAITS: f64 = 0.5;

    let session_of = |row: &CurrentRow| case.sessions().find(|session| row.is_of(session));
    let of_client =
        |row: &&CurrentRow| session_of(row).is_some_and(|session| session.kind == "client backend");
    let works = |row: &&CurrentRow| {
        let all: f64 = row.activities.iter().map(|a| a.seconds).sum();
        let waits = row.activities.iter().filter(|a| {
            matches!(a.class, WaitClass::Client | WaitClass::Lock | WaitClass::Timeout)
        });
        waits.map(|a| a.seconds).sum::<f64>() < WAITS * all
    };
    let text = |row: &CurrentRow| named(row.query.as_deref(), row.queryid, 70);
    // Those that maintain, load or dump a table take as long as the table is large.
    let reads = |row: &&CurrentRow| {
        let command = row.query.as_deref().map(command).unwrap_or_default();
        matches!(command.as_str(), "SELECT" | "WITH" | "UPDATE" | "DELETE" | "INSERT" | "MERGE")
    };
    let mut rows: Vec<&CurrentRow> = case
        .current()
        .iter()
        .filter(|row| row.seconds >= LONG)
        .filter(of_client)
        .filter(works)
        .filter(reads)
        .collect();
    rows.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let Some(oldest) = rows.first() else { return Vec::new() };
    let who = session_of(oldest).map_or_else(|| format!("session {}", oldest.pid), name);
    // The sessions that the sentences name.
    let cancel: Vec<String> =
        rows.iter().take(4).map(|row| format!("pg_cancel_backend({})", row.pid)).collect();
    let mut evidence = vec![format!("So far, in percent of its time: {}.", oldest.shares())];
    evidence.extend(rows.iter().skip(1).take(3).map(|row| {
        format!("Session {} has been running {} for {}.", row.pid, text(row), duration(row.seconds))
    }));
    vec![Diagnosis {
        rule: Rule::LongStatement,
        kind: Kind::Problem,
        text: format!(
            "A statement has been running for {}: {who}, {}.",
            duration(oldest.seconds),
            text(oldest)
        ),
        seconds: rows.len() as f64 * case.length(),
        share: Some(case.share(rows.len() as f64 * case.length())),
        evidence,
        advice: Advice::from(match rows.len() {
            1 => "If it should not take so long, cancel it: ",
            _ => "If they should not take so long, cancel them: ",
        })
        .run(format!("SELECT {}", cancel.join(", ")))
        .say(
            ". Then look at its plan (EXPLAIN without ANALYZE): a missing join condition, or estimates from stale statistics \
             (ANALYZE), can make it run forever.",
        ),
        confidence: Confidence::Possible,
        section: "statements",
        consequence_of: None,
    }]
}

/// Statements of one kind that run once fill the table.
pub fn flood(case: &Case<'_>) -> Vec<Diagnosis> {
    /// Characters of a text.
    const TEXT: usize = 60;

    let Some((statements, flood)) =
        case.statements.and_then(|table| Some((table, table.flood.as_ref()?)))
    else {
        return Vec::new();
    };
    let examples: Vec<String> = flood.examples.iter().map(|text| beginning(text, TEXT)).collect();
    let when = statements.interval_seconds.map_or_else(
        || "since the server started".to_owned(),
        |seconds| format!("in {}", duration(seconds)),
    );
    vec![Diagnosis {
        rule: Rule::StatementFlood,
        kind: Kind::Problem,
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
        )
        .into(),
        confidence: Confidence::Certain,
        section: "statements",
        consequence_of: None,
    }]
}

/// How to make such statements count as one, or not at all.
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
            format!("Each value makes a separate statement: {off}.{}", later(18, "value"))
        }
        "DEALLOCATE" | "PREPARE TRANSACTION" | "COMMIT PREPARED" | "ROLLBACK PREPARED" => {
            format!("Each name makes a separate statement: use the same names, or {off}.{}", later(17, "name"))
        }
        _ if kind.starts_with("SAVEPOINT") => {
            format!("Each name makes a separate statement: use the same names, or {off}.{}", later(17, "name"))
        }
        _ => format!(
            "Each name makes a separate statement: use the same names (of a temporary table, one a session with ON COMMIT \
             DELETE ROWS), or {off}."
        ),
    }
}
