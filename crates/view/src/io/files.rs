// SPDX-License-Identifier: PostgreSQL
//! File operations as tables: by kind of file, and by kind of process.
//!
//! Rates are per second of the time in which the level was not off.

use crate::choose;
use std::collections::BTreeMap;

use segment::files::{FileRow, ProcessFileRow};
use segment::interval::{Interval, Timing};
use segment::WaitClass;

use crate::rows::{accepts, by, left, sorted, RowOptions};
use crate::table::field::{self, per, Choice, Field, Picked};
use crate::table::{Cell, Column, Row, Table, Tone, Unit};

/// A rate per second.
pub fn rate(n: f64, interval: &Interval) -> f64 {
    n / interval.instrumented_seconds.max(1e-9)
}

/// The group of columns in which an operation is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Read,
    Write,
    Sync,
    Other,
}

impl Class {
    fn from_operation(operation: &str) -> Class {
        match operation {
            "read" => Class::Read,
            "write" | "extend" => Class::Write,
            "sync" => Class::Sync,
            _ => Class::Other,
        }
    }
}

/// The name of files of one kind in one tablespace: "main", "main@16385", "wal".
fn name(file: &str, tablespace: Option<&str>) -> String {
    match tablespace {
        None | Some("pg_default") => file.to_string(),
        Some("pg_global") => format!("{file}@global"),
        Some(number) => format!("{file}@{number}"),
    }
}

type F = Field<FileRow>;

/// The columns of file operations.
pub const FIELDS: &[F] = &[
    F::new("file", "File", Unit::Text, |row, _| (&row.file).into()),
    F::new("tablespace", "Tablespace", Unit::Text, |row, _| row.tablespace.as_ref().into()),
    F::new("operation", "Operation", Unit::Text, |row, _| (&row.operation).into()),
    F::new("seconds", "Time", Unit::Seconds, |row, _| row.timing.seconds.into()),
    F::new("sessions", "s/s", Unit::Sessions, |row, s| per(row.timing.seconds, s)),
    F::new("count", "Count", Unit::Count, |row, _| row.timing.count.into()),
    F::new("per_second", "Rate", Unit::PerSecond, |row, s| field::rate(row.timing.count, s)),
    F::new("mean_seconds", "Mean", Unit::Seconds, |row, _| row.timing.mean_seconds.into()),
    F::new("p50_seconds", "p50", Unit::Seconds, |row, _| row.timing.p50_seconds.into()),
    F::new("p95_seconds", "p95", Unit::Seconds, |row, _| row.p95_seconds.into()),
    F::new("p99_seconds", "p99", Unit::Seconds, |row, _| row.timing.p99_seconds.into()),
    F::new("max_seconds", "Max", Unit::Seconds, |row, _| row.timing.max_seconds.into()),
    F::new("bytes", "Bytes", Unit::Bytes, |row, _| row.bytes.into()),
    F::new("bytes_per_second", "Bytes a second", Unit::BytesPerSecond, |row, s| {
        field::rate(row.bytes, s)
    }),
    F::new("sequential_share", "Sequential", Unit::Share, |row, _| row.sequential_share().into())
        .help(
            "share of operations that started where the previous one on the same descriptor ended",
        ),
    F::new("failed", "Failed", Unit::Count, |row, _| row.failed.into()),
];

/// The columns of each class of operations.
const CLASSES: [(Class, Choice<FileRow>); 4] = [
    (
        Class::Read,
        choose!(
            FIELDS,
            "per_second=R/S, bytes_per_second=R MB/S, mean_seconds=R MEAN, p95_seconds=R P95:6, \
             sequential_share=R SEQ%:8"
        ),
    ),
    (
        Class::Write,
        choose!(
            FIELDS,
            "per_second=W/S, bytes_per_second=W MB/S, mean_seconds=W MEAN:1, p95_seconds=W P95:7, \
             sequential_share=W SEQ%:9"
        ),
    ),
    (
        Class::Sync,
        choose!(FIELDS, "per_second=SYNC/S, mean_seconds=SYNC MEAN, p95_seconds=SYNC P95:5"),
    ),
    (Class::Other, choose!(FIELDS, "per_second=OTHER/S:4, mean_seconds=OTHER MEAN:10")),
];

/// The cells of the operations of one class.
fn cells(
    (class, picked): &(Class, Picked<FileRow>),
    rows: &[&FileRow],
    interval: &Interval,
) -> Vec<Cell> {
    let of_class = rows.iter().filter(|row| Class::from_operation(&row.operation) == *class);
    let sum = FileRow::sum(&of_class.copied().collect::<Vec<_>>(), interval.clock.ticks_per_second);
    match sum.timing.count {
        // Cells without operations stay empty, so that the use of a file stands out.
        0 => vec!["".into(); picked.columns.len()],
        _ => picked.cells(&sum, interval.instrumented_seconds),
    }
}

/// Kinds of file and, when opened, their operations.
pub fn files(interval: &Interval, wish: &RowOptions) -> Table {
    let classes = CLASSES.map(|(class, choice)| (class, Picked::of_pane(choice)));
    let all = Picked::of_pane(choose!(FIELDS, "max_seconds:3, sessions:2, failed:11"));
    let mut groups: BTreeMap<String, Vec<&FileRow>> = BTreeMap::new();
    for row in &interval.files {
        let name = name(&row.file, row.tablespace.as_deref());
        if accepts(wish, &[&name, &row.operation]) {
            groups.entry(name).or_default().push(row);
        }
    }
    let ticks_per_second = interval.clock.ticks_per_second;
    let summed: Vec<(String, FileRow, Vec<&FileRow>)> = groups
        .into_iter()
        .map(|(name, rows)| (name, FileRow::sum(&rows, ticks_per_second), rows))
        .collect();
    let order = |a: (&FileRow, &str), b: (&FileRow, &str)| {
        by(&wish.sort, (&a.0.timing, a.1), (&b.0.timing, b.1))
    };
    let summed = sorted(summed, wish, |a, b| order((&a.1, &a.0), (&b.1, &b.0)));
    let line = |key: String, shown: &str, sum: &FileRow, rows: &[&FileRow], branches| {
        let mut row = vec![shown.into()];
        row.extend(classes.iter().flat_map(|class| cells(class, rows, interval)));
        row.extend(all.cells(sum, interval.instrumented_seconds));
        let tone = if sum.failed > 0 { Tone::from_class(WaitClass::Lock) } else { Tone::IO };
        Row { tone, branches, ..Row::new(key, row) }
    };
    let mut rows = Vec::new();
    for (name, sum, parts) in &summed {
        let many = parts.len() > 1;
        rows.push(line(name.clone(), name, sum, parts, many));
        if many && wish.open.shows(name) {
            let parts =
                sorted(parts.clone(), wish, |a, b| order((a, &*a.operation), (b, &*b.operation)));
            for part in parts {
                let key = format!("{name} {}", part.operation);
                rows.push(line(key, &format!("  {}", part.operation), part, &[part], false));
            }
        }
    }
    let mut columns = vec![left("FILES", 0)];
    columns.extend(classes.iter().flat_map(|(_, picked)| picked.columns.iter().cloned()));
    columns.extend(all.columns);
    Table::from_rows(columns, rows)
}

/// The operations of one class by one kind of process.
#[derive(Debug, Clone, Copy, Default)]
struct FileClassSum {
    count: u64,
    bytes: u64,
    seconds: f64,
}

impl FileClassSum {
    fn add(&mut self, row: &ProcessFileRow) {
        self.count = self.count.saturating_add(row.count);
        self.bytes = self.bytes.saturating_add(row.bytes);
        self.seconds += row.seconds;
    }

    fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.seconds / self.count as f64)
    }
}

/// File operations by kind of process; WAL writes have columns of their own.
pub fn processes(interval: &Interval, wish: &RowOptions) -> Table {
    const READ: usize = Class::Read as usize;
    const WRITE: usize = Class::Write as usize;
    const SYNC: usize = Class::Sync as usize;
    const OTHER: usize = Class::Other as usize;
    let mut groups: BTreeMap<&str, ([FileClassSum; 4], u64, Timing)> = BTreeMap::new();
    for row in interval.file_processes.iter().filter(|row| accepts(wish, &[&row.process])) {
        let (sums, wal, all) = groups.entry(&row.process).or_default();
        let class = Class::from_operation(&row.operation);
        sums[class as usize].add(row);
        if class == Class::Write && &*row.file == "wal" {
            *wal = wal.saturating_add(row.bytes);
        }
        all.count = all.count.saturating_add(row.count);
        all.seconds += row.seconds;
        all.mean_seconds = (all.count > 0).then(|| all.seconds / all.count as f64);
    }
    let groups: Vec<_> = groups.into_iter().collect();
    let groups = sorted(groups, wish, |a, b| by(&wish.sort, (&a.1 .2, a.0), (&b.1 .2, b.0)));
    let rows = groups
        .into_iter()
        .map(|(process, (sums, wal, all))| {
            let seconds = interval.instrumented_seconds;
            let shown = |class: usize, cell: Cell| match sums[class].count {
                0 => "".into(),
                _ => cell,
            };
            let per_second = |class| shown(class, field::rate(sums[class].count, seconds));
            let moved = |class| shown(class, field::rate(sums[class].bytes, seconds));
            let mean = |class: usize| shown(class, sums[class].mean().into());
            let cells = vec![
                process.into(),
                per_second(READ),
                moved(READ),
                mean(READ),
                per_second(WRITE),
                moved(WRITE),
                mean(WRITE),
                if wal > 0 { field::rate(wal, seconds) } else { "".into() },
                per_second(SYNC),
                mean(SYNC),
                per_second(OTHER),
                per(all.seconds, seconds),
            ];
            Row::new(process, cells)
        })
        .collect();
    let column = |head, unit, rank| Column::new("", head, unit).expendable(rank);
    let columns = vec![
        left("PROCESSES", 0),
        column("R/S", Unit::PerSecond, 0),
        column("R MB/S", Unit::BytesPerSecond, 0),
        column("R MEAN", Unit::Seconds, 2),
        column("W/S", Unit::PerSecond, 0),
        column("W MB/S", Unit::BytesPerSecond, 0),
        column("W MEAN", Unit::Seconds, 3),
        column("WAL MB/S", Unit::BytesPerSecond, 0),
        column("SYNC/S", Unit::PerSecond, 0),
        column("SYNC MEAN", Unit::Seconds, 0),
        column("OTHER/S", Unit::PerSecond, 4),
        column("S/S", Unit::Sessions, 1),
    ];
    Table::from_rows(columns, rows)
}
