// SPDX-License-Identifier: PostgreSQL
//! File operations as tables: by kind of file, and by kind of process.
//!
//! Rates are per second of the time in which the level was not off.

use std::collections::BTreeMap;

use segment::files::{FileRow, ProcessFileRow};
use segment::interval::{Interval, Timing};
use segment::WaitClass;

use crate::rows::{accepts, by, left, right, sorted, texts, Wish};
use crate::table::{Cell, Row, Table, Tone};
use crate::units::{count, maybe_duration, percent, two};

const MEGABYTE: f64 = 1024.0 * 1024.0;

/// A rate per second.
pub fn rate(n: f64, interval: &Interval) -> f64 {
    n / interval.instrumented_seconds.max(1e-9)
}

/// MB/s; a MB has 1,048,576 bytes.
pub fn megabytes(bytes_per_second: f64) -> String {
    two(bytes_per_second / MEGABYTE)
}

/// The group of columns in which an operation counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Read,
    Write,
    Sync,
    Other,
}

impl Class {
    fn of(operation: &str) -> Class {
        match operation {
            "read" => Class::Read,
            "write" | "extend" => Class::Write,
            "sync" => Class::Sync,
            _ => Class::Other,
        }
    }
}

/// The files of one kind in one tablespace: "main", "main@16385", "wal".
fn name(file: &str, tablespace: Option<&str>) -> String {
    match tablespace {
        None | Some("pg_default") => file.to_string(),
        Some("pg_global") => format!("{file}@global"),
        Some(number) => format!("{file}@{number}"),
    }
}

/// The cells of some operations: each class in its columns.
fn cells(rows: &[&FileRow], interval: &Interval) -> Vec<String> {
    let of = |class: Class| {
        let rows: Vec<&FileRow> =
            rows.iter().filter(|row| Class::of(&row.operation) == class).copied().collect();
        FileRow::sum(&rows, interval.clock.ticks_per_second)
    };
    let mut cells = Vec::new();
    for class in [Class::Read, Class::Write, Class::Sync, Class::Other] {
        let sum = of(class);
        let moved = megabytes(rate(sum.bytes as f64, interval));
        let mean = maybe_duration(sum.timing.mean_seconds);
        let p95 = maybe_duration(sum.p95_seconds);
        let mut of_class = vec![count(rate(sum.timing.count as f64, interval))];
        match class {
            Class::Read | Class::Write => {
                let share = sum.sequential_share().map_or("-".to_string(), percent);
                of_class.extend([moved, mean, p95, share]);
            }
            Class::Sync => of_class.extend([mean, p95]),
            Class::Other => of_class.push(mean),
        }
        // Cells without operations stay empty, so that a file's use stands out.
        if sum.timing.count == 0 {
            of_class.iter_mut().for_each(String::clear);
        }
        cells.extend(of_class);
    }
    cells
}

/// Kinds of file and, opened, their operations.
pub fn files(interval: &Interval, wish: &Wish) -> Table {
    let columns = vec![
        left("FILES", 0),
        right("R/S", 0),
        right("R MB/S", 0),
        right("R MEAN", 0),
        right("R P95", 6),
        right("R SEQ%", 8),
        right("W/S", 0),
        right("W MB/S", 0),
        right("W MEAN", 1),
        right("W P95", 7),
        right("W SEQ%", 9),
        right("SYNC/S", 0),
        right("SYNC MEAN", 0),
        right("SYNC P95", 5),
        right("OTHER/S", 4),
        right("OTHER MEAN", 10),
        right("MAX", 3),
        right("S/S", 2),
        right("FAILED", 11),
    ];
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
    let line = |key: String, shown: String, sum: &FileRow, rows: &[&FileRow], branches| Row {
        key,
        cells: std::iter::once(shown)
            .chain(cells(rows, interval))
            .chain([
                maybe_duration(sum.timing.max_seconds),
                two(rate(sum.timing.seconds, interval)),
                count(sum.failed as f64),
            ])
            .map(Cell::from)
            .collect(),
        tone: if sum.failed > 0 { Tone::Class(WaitClass::Lock) } else { Tone::IO },
        branches,
        ..Row::default()
    };
    let mut rows = Vec::new();
    for (name, sum, parts) in &summed {
        let many = parts.len() > 1;
        rows.push(line(name.clone(), name.clone(), sum, parts, many));
        if many && wish.open.shows(name) {
            let parts =
                sorted(parts.clone(), wish, |a, b| order((a, &*a.operation), (b, &*b.operation)));
            for part in parts {
                let key = format!("{name} {}", part.operation);
                rows.push(line(key, format!("  {}", part.operation), part, &[part], false));
            }
        }
    }
    Table::of(columns, rows)
}

/// The operations of one class by processes of one kind.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    count: u64,
    bytes: u64,
    seconds: f64,
}

impl Sum {
    fn add(&mut self, row: &ProcessFileRow) {
        self.count = self.count.saturating_add(row.count);
        self.bytes = self.bytes.saturating_add(row.bytes);
        self.seconds += row.seconds;
    }

    fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.seconds / self.count as f64)
    }
}

/// File operations by kind of process; WAL writes have their own columns.
pub fn processes(interval: &Interval, wish: &Wish) -> Table {
    let columns = vec![
        left("PROCESSES", 0),
        right("R/S", 0),
        right("R MB/S", 0),
        right("R MEAN", 2),
        right("W/S", 0),
        right("W MB/S", 0),
        right("W MEAN", 3),
        right("WAL MB/S", 0),
        right("SYNC/S", 0),
        right("SYNC MEAN", 0),
        right("OTHER/S", 4),
        right("S/S", 1),
    ];
    const READ: usize = Class::Read as usize;
    const WRITE: usize = Class::Write as usize;
    const SYNC: usize = Class::Sync as usize;
    const OTHER: usize = Class::Other as usize;
    let mut groups: BTreeMap<&str, ([Sum; 4], u64, Timing)> = BTreeMap::new();
    for row in interval.file_processes.iter().filter(|row| accepts(wish, &[&row.process])) {
        let (sums, wal, all) = groups.entry(&row.process).or_default();
        let class = Class::of(&row.operation);
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
            let shown = |class: usize, text: String| match sums[class].count {
                0 => String::new(),
                _ => text,
            };
            let per_second = |class| shown(class, count(rate(sums[class].count as f64, interval)));
            let moved = |class| shown(class, megabytes(rate(sums[class].bytes as f64, interval)));
            let mean = |class: usize| shown(class, maybe_duration(sums[class].mean()));
            Row {
                key: process.to_string(),
                cells: texts(vec![
                    process.to_string(),
                    per_second(READ),
                    moved(READ),
                    mean(READ),
                    per_second(WRITE),
                    moved(WRITE),
                    mean(WRITE),
                    if wal > 0 { megabytes(rate(wal as f64, interval)) } else { String::new() },
                    per_second(SYNC),
                    mean(SYNC),
                    per_second(OTHER),
                    two(rate(all.seconds, interval)),
                ]),
                tone: Tone::Plain,
                ..Row::default()
            }
        })
        .collect();
    Table::of(columns, rows)
}
