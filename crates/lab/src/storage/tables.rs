// SPDX-License-Identifier: PostgreSQL
//! The tables of an answer. The first ones have the form of the original study's tables: arm by start time, with the
//! duration of the victim in seconds.

use crate::engine::numbers::{figures, none, rounded};
use view::table::{Cell, Table, Tone};

use super::answer::{CellRow, RunRow, StorageResults};

/// All tables.
pub fn make_tables(answer: &StorageResults) -> Vec<Table> {
    let mut victims: Vec<&str> = Vec::new();
    for run in &answer.runs {
        if !victims.contains(&run.victim.as_str()) {
            victims.push(&run.victim);
        }
    }
    let mut tables: Vec<Table> = victims.iter().map(|victim| seconds(answer, victim)).collect();
    if !answer.waits.is_empty() {
        tables.push(waits(answer));
    }
    tables.push(background(answer));
    tables.push(steadiness(answer));
    if !victims.is_empty() {
        tables.push(runs(answer));
        tables.push(bytes(answer));
    }
    tables
}

fn number(value: Option<f64>, digits: usize) -> Cell {
    value.map_or_else(none, |value| rounded(figures(value, digits), Some(value)))
}

fn count(n: u64) -> Cell {
    rounded(view::units::whole(n), Some(n as f64))
}

fn text(text: impl Into<String>) -> Cell {
    Cell::from(text.into())
}

/// Duration of a victim by arm and start time: means over the blocks.
fn seconds(answer: &StorageResults, victim: &str) -> Table {
    let runs = || answer.runs.iter().filter(|run| run.victim == victim && run.failure.is_none());
    let mut times: Vec<f64> = runs().filter_map(|run| run.at).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let mean = |arm: &str, at: Option<f64>| {
        let all: Vec<f64> =
            runs().filter(|run| run.arm == arm && run.at == at).map(|run| run.seconds).collect();
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    };
    let mut headings = vec!["ARM".to_string(), "ALONE".to_string()];
    headings.extend(times.iter().map(|at| format!("AT {at} S")));
    headings.push("TIMES".into());
    headings.push("95 % INTERVAL".into());
    let names: Vec<&str> = headings.iter().map(String::as_str).collect();
    let mut table = Table::with_headings(&names, 1..names.len());
    table.title = format!("Duration of {victim} in seconds, by start time").into();
    for arm in answer.arms.iter().filter(|arm| arm.left_out.is_none()) {
        let slow = answer.slowdowns.iter().find(|slowdown| {
            slowdown.arm == arm.name && slowdown.victim == victim && slowdown.when == "all"
        });
        let interval = slow.and_then(|slowdown| slowdown.interval);
        let mut row = vec![text(&arm.title), number(mean(&arm.name, None), 3)];
        row.extend(times.iter().map(|at| number(mean(&arm.name, Some(*at)), 3)));
        row.push(number(slow.map(|slowdown| slowdown.factor), 3));
        row.push(interval.map_or_else(none, |(low, high)| {
            text(format!("{} to {}", figures(low, 3), figures(high, 3)))
        }));
        table.push(Tone::Plain, row);
    }
    table
}

/// The server's time while victims ran.
fn waits(answer: &StorageResults) -> Table {
    let headings = ["ARM", "PROCESS", "ACTIVITY", "QUIET", "DURING", "GROWTH"];
    let mut table = Table::with_headings(&headings, 3..headings.len());
    table.title = "Average sessions by activity, without and with a running victim".into();
    for wait in &answer.waits {
        table.push(
            Tone::Plain,
            vec![
                text(answer.arm_title(&wait.arm)),
                text(&wait.process),
                text(&wait.activity),
                number(Some(wait.quiet), 3),
                number(Some(wait.during), 3),
                number(Some(wait.during - wait.quiet), 3),
            ],
        );
    }
    table
}

/// The background of each cell.
fn background(answer: &StorageResults) -> Table {
    let headings = ["ARM", "BLOCK", "WANTED/S", "MADE/S", "READS %", "MB/S", "MEAN MS", "OWED"];
    let mut table = Table::with_headings(&headings, 1..headings.len());
    table.title = "Background load".into();
    for cell in &answer.cells {
        table.push(
            Tone::Plain,
            vec![
                text(answer.arm_title(&cell.arm)),
                count(cell.block as u64 + 1),
                number(cell.wanted_per_second, 5),
                number(Some(cell.made_per_second), 5),
                number(cell.reads.map(|share| 100.0 * share), 3),
                number(Some(cell.bytes_per_second / 1e6), 3),
                number(cell.response_mean.map(|seconds| 1e3 * seconds), 3),
                count(cell.owed),
            ],
        );
    }
    table
}

/// When the background of each cell lost its steadiness, and the operations that it dropped.
fn steadiness(answer: &StorageResults) -> Table {
    let headings = ["ARM", "BLOCK", "STALLED %", "DROPPED", "LOST AT S", "FROM/S", "TO/S", "BY %"];
    let mut table = Table::with_headings(&headings, 1..headings.len());
    table.title = "Time stalled, operations dropped, and when the load stopped being steady".into();
    let lost = |cell: &CellRow, of: fn(&super::answer::Loss) -> f64, digits| {
        number(cell.lost.as_ref().map(of), digits)
    };
    for cell in &answer.cells {
        table.push(
            Tone::Plain,
            vec![
                text(answer.arm_title(&cell.arm)),
                count(cell.block as u64 + 1),
                number(cell.io_stalled.map(|share| 100.0 * share), 3),
                count(cell.dropped),
                lost(cell, |loss| loss.at, 4),
                lost(cell, |loss| loss.rate_before, 4),
                lost(cell, |loss| loss.rate_after, 4),
                lost(cell, |loss| loss.rate_percent, 3),
            ],
        );
    }
    table
}

/// Identifies a run: the arm, the block, the victim and its start time.
fn of_run(answer: &StorageResults, run: &RunRow) -> Vec<Cell> {
    vec![
        text(answer.arm_title(&run.arm)),
        count(run.block as u64 + 1),
        text(&run.victim),
        run.at.map_or_else(|| text("alone"), |at| rounded(at.to_string(), Some(at))),
    ]
}

/// The time of each run of a victim.
fn runs(answer: &StorageResults) -> Table {
    let headings = ["ARM", "BLOCK", "VICTIM", "AT S", "SECONDS", "CPU S", "BACKGROUND/S"];
    let mut table = Table::with_headings(&headings, 3..headings.len());
    table.title = "Runs of the victims, and the background load during each".into();
    for run in &answer.runs {
        let mut row = of_run(answer, run);
        row.extend([
            number(Some(run.seconds), 4),
            number(Some(run.cpu_seconds), 3),
            number(run.background_per_second, 4),
        ]);
        table.push(Tone::Plain, row);
    }
    table
}

/// Bytes that each run of a victim read and wrote.
fn bytes(answer: &StorageResults) -> Table {
    let headings =
        ["ARM", "BLOCK", "VICTIM", "AT S", "READ", "WRITTEN", "FROM DEVICE", "TO DEVICE"];
    let mut table = Table::with_headings(&headings, 3..headings.len());
    table.title =
        "Data read and written by the victims, in MB: by system calls, and on devices".into();
    let megabytes = |bytes: Option<u64>| number(bytes.map(|bytes| bytes as f64 / 1e6), 4);
    for run in &answer.runs {
        let mut row = of_run(answer, run);
        row.extend([
            megabytes(run.read_bytes),
            megabytes(run.written_bytes),
            megabytes(run.device_read_bytes),
            megabytes(run.device_written_bytes),
        ]);
        table.push(Tone::Plain, row);
    }
    table
}
