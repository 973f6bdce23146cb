// SPDX-License-Identifier: PostgreSQL
//! Operations on files in an interval: by kind of file, tablespace and operation, and the same
//! by kind of process.
//!
//! Names are `file::<kind>::<operation>::<phase>`, where the kind may end in `@<tablespace>`,
//! and failed operations end in ` failed`.

use crate::directory::{Stat, StatKind};
use crate::frame::Frame;
use crate::frame_totals::FrameTotals;
use crate::histogram::Histogram;
use crate::stat_names;
use crate::timing::{most_first, Timing};
use crate::total::Total;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// One operation on the files of one kind.
#[derive(Debug, Clone, Serialize)]
pub struct FileRow {
    /// "main", "fsm", "vm", "init", "temporary", "wal", "slru Xact", "control", ...
    pub file: Arc<str>,
    /// For relations and temporary files: "pg_default", "pg_global", or the OID of another
    /// tablespace. Empty in a sum of several.
    pub tablespace: Option<Arc<str>>,
    /// "read", "write", "extend", "sync", "open", ... Empty in a sum of several.
    pub operation: Arc<str>,
    /// Number and time of operations that ended, including failed ones.
    #[serde(flatten)]
    pub timing: Timing,
    /// The 95th percentile, within 6.25 %.
    pub p95_seconds: Option<f64>,
    /// Failed operations.
    pub failed: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Operations that started where the previous one on the same descriptor had ended.
    pub sequential: u64,
    /// The operations by phase, longest time first.
    pub phases: Vec<FilePhase>,
    #[serde(skip)]
    totals: Box<FileTotals>,
}

/// The operations of one row in one phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FilePhase {
    /// The session's phase.
    pub phase: Arc<str>,
    /// Number of operations that ended, including failed ones.
    pub count: u64,
    /// Failed operations.
    pub failed: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Operations that continued where the previous one had ended.
    pub sequential: u64,
    /// Total time of the operations.
    pub seconds: f64,
}

/// The sums of one operation, in ticks.
#[derive(Debug, Clone, Default)]
pub struct FileTotals {
    /// All operations, including failed ones.
    pub all: Total,
    /// Number of failed operations.
    pub failed: u64,
}

/// One operation on the files of one kind, by the processes of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessFileRow {
    /// "client backend", "checkpointer", "background writer", ...
    pub process: Arc<str>,
    /// As in [`FileRow`].
    pub file: Arc<str>,
    /// As in [`FileRow`].
    pub tablespace: Option<Arc<str>>,
    /// As in [`FileRow`].
    pub operation: Arc<str>,
    /// Number of operations that ended, including failed ones.
    pub count: u64,
    /// Failed operations.
    pub failed: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Operations that continued where the previous one had ended.
    pub sequential: u64,
    /// Total time of the operations.
    pub seconds: f64,
}

impl FileRow {
    /// The row of these totals, for the names of file, tablespace and operation.
    pub fn from_totals(
        [file, tablespace, operation]: [&str; 3],
        totals: FileTotals,
        phases: Vec<FilePhase>,
        ticks_per_second: f64,
    ) -> Self {
        let seconds = |ticks: u64| ticks as f64 / ticks_per_second;
        Self {
            file: file.into(),
            tablespace: (!tablespace.is_empty()).then(|| tablespace.into()),
            operation: operation.into(),
            timing: Timing::with(&totals.all, seconds),
            p95_seconds: totals.all.quantile(0.95).map(seconds),
            failed: totals.failed,
            bytes: totals.all.change.amount,
            sequential: totals.all.change.follows,
            phases,
            totals: Box::new(totals),
        }
    }

    /// The sum of some rows. Names that they do not have in common are empty; phases are left out.
    pub fn sum(rows: &[&FileRow], ticks_per_second: f64) -> Self {
        let mut totals = FileTotals::default();
        for row in rows {
            totals.all.merge(&row.totals.all);
            totals.failed = totals.failed.saturating_add(row.failed);
        }
        fn same<'r>(rows: &[&'r FileRow], of: fn(&'r FileRow) -> &'r str) -> &'r str {
            let first = rows.first().map_or("", |row| of(row));
            if rows.iter().all(|row| of(row) == first) {
                first
            } else {
                ""
            }
        }
        let names = [
            same(rows, |row| &row.file),
            same(rows, |row| row.tablespace.as_deref().unwrap_or("")),
            same(rows, |row| &row.operation),
        ];
        Self::from_totals(names, totals, Vec::new(), ticks_per_second)
    }

    /// Histogram of durations, in ticks.
    pub fn histogram(&self) -> &Histogram {
        &self.totals.all.histogram
    }

    /// Share of reads, writes and extensions that continued where the previous one had ended, 0 to 1;
    /// `None` if no bytes were transferred.
    pub fn sequential_share(&self) -> Option<f64> {
        let ended = self.timing.count.saturating_sub(self.failed);
        (self.bytes > 0 && ended > 0).then(|| self.sequential as f64 / ended as f64)
    }
}

/// The parts of the name of an operation on files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name<'n> {
    /// File, tablespace and operation, as in [`FileRow`]; the tablespace may be empty.
    pub key: [&'n str; 3],
    /// Whether the statistic counts failed operations.
    pub failed: bool,
    /// The session's phase.
    pub phase: &'n str,
}

/// Kinds of files in a tablespace, which is the default one if the name does not have one.
const SPACED: [&str; 6] = ["main", "fsm", "vm", "init", "temporary", "temporary relation"];

/// The parts of a statistic's name; `None` if it is not an operation on files.
pub fn parse(stat: &Stat) -> Option<Name<'_>> {
    if stat.kind != StatKind::Timer {
        return None;
    }
    let mut tags = stat.name.strip_prefix(stat_names::FILE)?.rsplitn(3, "::");
    let (phase, operation, file) = (tags.next()?, tags.next()?, tags.next()?);
    let (file, tablespace) = match file.split_once('@') {
        Some((file, tablespace)) => (file, tablespace),
        None if SPACED.contains(&file) => (file, "pg_default"),
        None => (file, ""),
    };
    let (operation, failed) = match operation.strip_suffix(" failed") {
        Some(operation) => (operation, true),
        None => (operation, false),
    };
    Some(Name { key: [file, tablespace, operation], failed, phase })
}

/// Whether this statistic is shown among the operations on files.
pub(crate) fn is_of_file(stat: &Stat) -> bool {
    parse(stat).is_some()
}

/// All rows, longest time first.
pub(crate) fn rows(sums: &FrameTotals<'_>) -> Vec<FileRow> {
    let clock = sums.clock();
    let mut rows: HashMap<[&str; 3], (FileTotals, Vec<FilePhase>)> = HashMap::new();
    for (stat, total) in sums.changed() {
        let Some(name) = parse(stat) else {
            continue;
        };
        let change = &total.change;
        let failed = if name.failed { change.count } else { 0 };
        let (totals, phases) = rows.entry(name.key).or_default();
        totals.all.merge(total);
        totals.failed = totals.failed.saturating_add(failed);
        let seconds = clock.seconds(change.total);
        match phases.iter_mut().find(|p| &*p.phase == name.phase) {
            Some(phase) => {
                phase.count = phase.count.saturating_add(change.count);
                phase.failed = phase.failed.saturating_add(failed);
                phase.bytes = phase.bytes.saturating_add(change.amount);
                phase.sequential = phase.sequential.saturating_add(change.follows);
                phase.seconds += seconds;
            }
            None => phases.push(FilePhase {
                phase: name.phase.into(),
                count: change.count,
                failed,
                bytes: change.amount,
                sequential: change.follows,
                seconds,
            }),
        }
    }
    let mut rows: Vec<FileRow> = rows
        .into_iter()
        .map(|(key, (totals, mut phases))| {
            most_first!(phases, seconds, phase);
            FileRow::from_totals(key, totals, phases, clock.ticks_per_second)
        })
        .collect();
    most_first!(rows, timing.seconds, file, tablespace, operation);
    rows
}

/// The same operations by kind of process, longest time first.
pub(crate) fn by_process(frame: &Frame) -> Vec<ProcessFileRow> {
    let mut merged: BTreeMap<(&str, [&str; 3]), ProcessFileRow> = BTreeMap::new();
    for statistic in &frame.statistics {
        let change = &statistic.total.change;
        let Some(name) = parse(&statistic.stat).filter(|_| change.count > 0) else {
            continue;
        };
        let [file, tablespace, operation] = name.key;
        let row = merged.entry((&statistic.process, name.key)).or_insert_with(|| ProcessFileRow {
            process: statistic.process.clone(),
            file: file.into(),
            tablespace: (!tablespace.is_empty()).then(|| tablespace.into()),
            operation: operation.into(),
            count: 0,
            failed: 0,
            bytes: 0,
            sequential: 0,
            seconds: 0.0,
        });
        row.count = row.count.saturating_add(change.count);
        row.failed = row.failed.saturating_add(if name.failed { change.count } else { 0 });
        row.bytes = row.bytes.saturating_add(change.amount);
        row.sequential = row.sequential.saturating_add(change.follows);
        row.seconds += frame.clock.seconds(change.total);
    }
    let mut rows: Vec<ProcessFileRow> = merged.into_values().collect();
    // Stable: rows with equal times stay in the order of their names.
    most_first!(rows, seconds, process);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(name: &str) -> Stat {
        Stat::new(name.to_string(), StatKind::Timer, "ticks".to_string())
    }

    #[test]
    fn names_of_files_are_parsed() {
        for (name, key, failed, phase) in [
            ("file::main::read::execute", ["main", "pg_default", "read"], false, "execute"),
            ("file::fsm@pg_global::open::bind", ["fsm", "pg_global", "open"], false, "bind"),
            (
                "file::main@16385::sync failed::background",
                ["main", "16385", "sync"],
                true,
                "background",
            ),
            ("file::slru Xact::write::sync", ["slru Xact", "", "write"], false, "sync"),
            (
                "file::temporary relation::extend::execute",
                ["temporary relation", "pg_default", "extend"],
                false,
                "execute",
            ),
            (
                "file::wal::sync::idle in transaction",
                ["wal", "", "sync"],
                false,
                "idle in transaction",
            ),
        ] {
            let stat = stat(name);
            assert_eq!(parse(&stat), Some(Name { key, failed, phase }), "{name}");
        }
        for name in ["file::wal::fsync", "file", "files::wal::read::execute", "commit::led"] {
            assert!(!is_of_file(&stat(name)), "{name}");
        }
    }
}
