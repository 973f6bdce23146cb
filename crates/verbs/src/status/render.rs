// SPDX-License-Identifier: PostgreSQL
//! The status as text: one line for each subject, and each problem with its remedy.

use std::io::Write;

use segment::{Level, Overflows, ProbeState, Producer, ProducerLimit};

use super::{Mode, Status};
use crate::ls::{age, mebibytes};
use error::Error;
use live::coverage::{self, Coverage};
use view::statements::TableRow;

/// Writes `label  text` lines, problems in yellow.
struct Sheet<'a, W: Write> {
    out: &'a mut W,
    color: bool,
}

impl<W: Write> Sheet<'_, W> {
    fn line(&mut self, label: &str, text: impl std::fmt::Display) -> Result<(), Error> {
        Ok(writeln!(self.out, "{label:<13}  {text}")?)
    }

    fn problem(&mut self, label: &str, text: impl std::fmt::Display) -> Result<(), Error> {
        let (on, off) = if self.color { ("\x1b[33m", "\x1b[0m") } else { ("", "") };
        Ok(writeln!(self.out, "{label:<13}  {on}{text}{off}")?)
    }
}

/// Prints the status.
pub(super) fn text(
    status: &Status,
    coverage: Option<&Coverage>,
    color: bool,
    out: &mut impl Write,
) -> Result<(), Error> {
    let mut sheet = Sheet { out, color };
    let producer = Producer::from_text(&status.server.producer);
    server(&mut sheet, status, producer)?;
    covered(&mut sheet, status, coverage, producer)?;
    overflow(&mut sheet, &status.overflow, status.statements.as_ref(), producer)?;
    probes(&mut sheet, status, producer)?;
    witness(&mut sheet, status)?;
    for event in &status.events {
        let ago = event.seconds_ago.map_or("long".to_string(), age);
        let text = format!("{ago} ago, pid {}: {}", event.pid, event.text);
        if event.warning {
            sheet.problem("event", text)?;
        } else {
            sheet.line("event", text)?;
        }
    }
    Ok(())
}

fn server<W: Write>(
    sheet: &mut Sheet<'_, W>,
    status: &Status,
    producer: Producer,
) -> Result<(), Error> {
    let server = &status.server;
    let number = |n: Option<u32>| n.map_or("unknown".to_string(), |n| n.to_string());
    let pid = number(server.pid);
    if producer.is_client() {
        sheet.line("client", format!("{}, pid {pid}", server.name))?;
    } else {
        sheet
            .line("server", format!("{}, pid {pid}, port {}", server.name, number(server.port)))?;
    }
    sheet.line("measured", &server.host)?;
    match status.running {
        Some(true) => {}
        Some(false) if producer.is_client() => {
            sheet.problem("state", "the process has ended; this is its last state")?
        }
        Some(false) => sheet.problem("state", "the server has stopped; this is its last state")?,
        None if producer.is_client() => sheet.problem(
            "state",
            "unknown: the process is not visible from here (another container?)",
        )?,
        None => sheet.problem(
            "state",
            "unknown: its processes are not visible from here (another container?)",
        )?,
    }
    let file = &status.segment;
    sheet.line(
        "segment",
        format!(
            "{}, {}at most {}{}{}, format {}, {} old, by {}",
            server.segment,
            file.resident_bytes.map_or(String::new(), |bytes| mebibytes(bytes) + " in memory ("),
            mebibytes(file.limit_bytes.unwrap_or(file.file_bytes)),
            match file.limit_bytes {
                Some(limit) if limit < file.file_bytes => ", a quarter of its file system",
                _ => "",
            },
            if file.resident_bytes.is_some() { ")" } else { "" },
            file.format,
            age(file.age_seconds),
            server.producer
        ),
    )?;
    match status.level {
        Level::Off => {
            sheet.problem("level", "off: nothing is measured; start with `tally level waits`")?
        }
        level => match (status.level_left_seconds, status.level_then) {
            (Some(left), Some(then)) => {
                sheet.line("level", format!("{level}, for another {}, then {then}", age(left)))?
            }
            _ => sheet.line("level", level)?,
        },
    }
    sheet.line(
        "clock",
        format!("{}, {:.6} GHz", status.clock.kind, status.clock.ticks_per_second / 1e9),
    )
}

fn covered<W: Write>(
    sheet: &mut Sheet<'_, W>,
    status: &Status,
    coverage: Option<&Coverage>,
    producer: Producer,
) -> Result<(), Error> {
    sheet.line("slots", format!("{} of {} in use", status.slots.used, status.slots.capacity))?;
    if producer.is_client() {
        return Ok(());
    }
    sheet.line("statements", statements(status.statements.as_ref()))?;
    if status.statements_paused {
        sheet.problem(
            "statements",
            "paused by `tally cost`, running or killed; `tally level waits` resumes",
        )?;
    }
    sheet.line("relations", relations(status))?;
    let Some(coverage) = coverage else { return Ok(()) };
    let how = match status.mode {
        Some(Mode::Shared) => "all processes, through shared_preload_libraries",
        _ => "new sessions, through session_preload_libraries or LOAD",
    };
    sheet.line("mode", how)?;
    sheet.line("covered", format!("{} processes", coverage.covered.len()))?;
    if coverage.uncovered.is_empty() {
        return Ok(());
    }
    let text =
        format!("{} processes: {}", coverage.uncovered.len(), coverage::list(&coverage.uncovered));
    // Expected in session mode; a problem in shared mode.
    match status.mode {
        Some(Mode::Shared) => sheet.problem("not covered", text),
        _ => sheet.line("not covered", text),
    }
}

fn statements(table: Option<&TableRow>) -> String {
    let Some(table) = table else { return "not collected (pg_tally.max_statements)".to_string() };
    let mut text = format!("{} in a table of {}", table.used, table.capacity);
    if table.evicted > 0 {
        text.push_str(&format!(", {} evicted", table.evicted));
    }
    text
}

fn relations(status: &Status) -> String {
    let mut text = match &status.relations {
        None => "not collected (pg_tally.max_relations)".to_string(),
        Some(table) => {
            let overflows = match table.overflow {
                0 => String::new(),
                n => {
                    let memory = status.overflow.memory;
                    let remedy = remedy(
                        memory,
                        (table.used, table.capacity),
                        "raise pg_tally.max_relations",
                    );
                    format!(", {n} overflows: {remedy}")
                }
            };
            format!("{} in a table of {}{overflows}", table.used, table.capacity)
        }
    };
    if status.files_given_up > 0 {
        text.push_str(&format!(
            "; unsynced writes of {} files are unknown (raise pg_tally.max_files)",
            status.files_given_up
        ));
    }
    text
}

/// The remedy for entries that did not fit into a table. If the table has free entries and memory was refused,
/// more entries would not help.
fn remedy(memory: u64, (used, capacity): (u32, u32), raise: &'static str) -> &'static str {
    let is_full = used.saturating_mul(10) >= capacity.saturating_mul(9);
    match memory > 0 && !is_full {
        true => {
            "out of memory: free space on the segment's file system, or lower pg_tally.max_slots"
        }
        false => raise,
    }
}

fn overflow<W: Write>(
    sheet: &mut Sheet<'_, W>,
    found: &Overflows,
    table: Option<&TableRow>,
    producer: Producer,
) -> Result<(), Error> {
    if found.is_zero() {
        return sheet.line("overflow", "none");
    }
    let filled = table.map_or((0, 0), |table| (table.used, table.capacity));
    let statements = remedy(found.memory, filled, "raise pg_tally.max_statements");
    let (unit, units) =
        if producer.is_client() { ("thread", "threads") } else { ("process", "sessions") };
    for (count, what, limit) in [
        (found.slots, format!("times a {unit} found no free slot"), ProducerLimit::Slots),
        (
            found.statistics,
            format!("times a {unit} ran out of statistics entries"),
            ProducerLimit::Statistics,
        ),
        (found.directory, "names did not fit into the directory".into(), ProducerLimit::Names),
        (
            found.groups,
            format!("{units} were merged into the overflow group"),
            ProducerLimit::Groups,
        ),
    ] {
        if count > 0 {
            sheet.problem("overflow", format!("{count} {what}: {}", producer.remedy(limit)))?;
        }
    }
    for (count, what, remedy) in [
        (found.memory, "times memory ran out", "free space on the segment's file system"),
        (
            found.lost_merges,
            "damaged slots were not merged",
            if producer.is_client() { "restart the process" } else { "restart the server" },
        ),
        (found.statements_dropped, "counts of statements did not fit", statements),
        (
            found.statements_lost,
            "statements were left incomplete by a process that died",
            "their counts are missing",
        ),
        (found.texts_cut, "statement texts were truncated", statements),
        (
            found.relations_lost,
            "relations were left incomplete by a process that died",
            "some of their operations are missing",
        ),
    ] {
        if count > 0 {
            sheet.problem("overflow", format!("{count} {what}: {remedy}"))?;
        }
    }
    Ok(())
}

fn probes<W: Write>(
    sheet: &mut Sheet<'_, W>,
    status: &Status,
    producer: Producer,
) -> Result<(), Error> {
    let installed =
        status.probes.iter().filter(|probe| probe.state == ProbeState::Installed).count();
    let lost: Vec<_> = status.probes.iter().filter(|probe| probe.is_lost()).collect();
    let absent = status.probes.len() - installed - lost.len();
    let others = if producer.is_client() { "versions" } else { "servers" };
    sheet.line(
        "probes",
        format!("{installed} installed, {} left out, {absent} for other {others}", lost.len()),
    )?;
    for probe in lost {
        sheet.problem("left out", format!("{}: {}", probe.name, probe.reason))?;
    }
    Ok(())
}

fn witness<W: Write>(sheet: &mut Sheet<'_, W>, status: &Status) -> Result<(), Error> {
    let witness = &status.witness;
    if !witness.available {
        let why = witness.reason.as_deref().unwrap_or("the kernel's figures were not read");
        return sheet.problem("unexplained", format!("unknown: {why}"));
    }
    if status.busy_seconds < 0.01 {
        return sheet.line("unexplained", "nothing to explain: all sessions are idle");
    }
    let text = format!(
        "{:.2} % ± {:.2} of {:.2} s busy time, {} samples; cpu account {:.2} s, kernel {:.2} s \
         on CPU and {:.2} s in the run queue",
        100.0 * witness.unexplained_share,
        100.0 * witness.unexplained_error,
        status.busy_seconds,
        witness.samples,
        witness.cpu_account_seconds,
        witness.on_cpu_seconds,
        witness.run_queue_seconds
    );
    sheet.line("unexplained", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_to_be_raised_where_it_is_full() {
        for (memory, used, raise) in
            [(0, 5000, true), (0, 100, true), (3, 4999, true), (3, 100, false)]
        {
            let remedy = remedy(memory, (used, 5000), "raise it");
            assert_eq!(remedy == "raise it", raise, "{memory} {used}: {remedy}");
        }
    }
}
