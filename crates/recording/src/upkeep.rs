// SPDX-License-Identifier: PostgreSQL
//! Upkeep of a growing recording: merges the files of an hour, rolls up old rows, and removes rows
//! beyond the retention.

use crate::batch::{Batch, Visit, TABLES};
use crate::commit::Commit;
use crate::error::Error;
use crate::file::{self, Effort};
use crate::rollup;
use crate::store::{Compaction, DataFile, Store};
use crate::table::Table;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// When rows become coarser, and when they are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// The age at which details are merged into details of one minute.
    pub details: Duration,
    /// The age at which intervals are merged into intervals of ten seconds.
    pub tens: Duration,
    /// The age at which intervals are merged into intervals of one minute.
    pub sixties: Duration,
    /// The age at which rows are removed; `None`: never.
    pub retention: Option<Duration>,
}

impl Default for RetentionPolicy {
    fn default() -> RetentionPolicy {
        let hours = |n: u64| Duration::from_secs(n * 3600);
        RetentionPolicy {
            details: hours(1),
            tens: hours(24),
            sixties: hours(7 * 24),
            retention: None,
        }
    }
}

const HOUR_US: i64 = 3_600_000_000;

fn micros(length: Duration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX)
}

type Hours = BTreeMap<(String, String), Vec<(&'static str, DataFile)>>;

/// The files of all tables, by day and hour.
fn hours(store: &Store, replacing: &Mutex<()>) -> Result<Hours, Error> {
    let _lock = replacing.lock().unwrap_or_else(PoisonError::into_inner);
    Commit::recover(store)?;
    let mut hours: Hours = BTreeMap::new();
    for table in TABLES {
        for file in store.files(table) {
            hours.entry(file.hour()).or_default().push((*table, file));
        }
    }
    Ok(hours)
}

fn hour_begin(file: &DataFile) -> i64 {
    file.begin_us.div_euclid(HOUR_US) * HOUR_US
}

/// The compaction that files of an hour should have at this age.
fn compaction_at(age_us: i64, policy: &RetentionPolicy) -> Option<Compaction> {
    [
        (policy.sixties, Compaction::Minutes),
        (policy.tens, Compaction::TenSeconds),
        (policy.details, Compaction::Hour),
    ]
    .into_iter()
    .find(|(from, _)| age_us >= micros(*from))
    .map(|(_, compaction)| compaction)
}

/// Do the upkeep that is due at this time.
pub(crate) fn run(
    store: &Store,
    policy: RetentionPolicy,
    now_us: i64,
    replacing: &Mutex<()>,
) -> Result<(), Error> {
    let now = now_us;
    for files in hours(store, replacing)?.into_values() {
        let Some(begin) = files.iter().map(|(_, file)| hour_begin(file)).min() else { continue };
        let age = now.saturating_sub(begin + HOUR_US);
        if policy.retention.is_some_and(|keep| age >= micros(keep)) {
            let _lock = replacing.lock().unwrap_or_else(PoisonError::into_inner);
            let mut commit = Commit::default();
            files.iter().for_each(|(_, file)| commit.remove(store, &file.path));
            Commit::recover(store)?;
            commit.execute(store, false)?;
            remove_empty_days(store, &files);
            continue;
        }
        let Some(compaction) = compaction_at(age, &policy) else { continue };
        if files.iter().any(|(_, file)| file.compaction < compaction) {
            merge(store, &files, compaction, replacing)?;
        }
    }
    Ok(())
}

/// Merge the files of each hour, without rolling up.
pub(crate) fn merge_all(store: &Store, replacing: &Mutex<()>) -> Result<(), Error> {
    merge_where(store, replacing, |_| true)
}

/// The same for hours that were merged before and have received minutes since.
pub(crate) fn merge_late(store: &Store, replacing: &Mutex<()>) -> Result<(), Error> {
    merge_where(store, replacing, |file| file.compaction != Compaction::Minute)
}

/// Merge the files of each hour that has a matching file.
fn merge_where(
    store: &Store,
    replacing: &Mutex<()>,
    such: impl Fn(&DataFile) -> bool,
) -> Result<(), Error> {
    let hours = hours(store, replacing)?;
    for files in hours.into_values().filter(|files| files.iter().any(|file| such(&file.1))) {
        let mut seen = HashMap::new();
        for (table, _) in &files {
            *seen.entry(*table).or_insert(0) += 1;
        }
        let compaction = files.iter().map(|(_, file)| file.compaction).max();
        if let Some(compaction) = compaction.filter(|_| seen.values().any(|count| *count > 1)) {
            merge(store, &files, compaction.max(Compaction::Merged), replacing)?;
        }
    }
    Ok(())
}

/// Merge the files of one hour into one per table.
fn merge(
    store: &Store,
    files: &[(&'static str, DataFile)],
    compaction: Compaction,
    replacing: &Mutex<()>,
) -> Result<(), Error> {
    let mut load = Load { files, problem: None };
    let mut batch = Batch::default();
    batch.each(&mut load)?;
    if load.problem.is_some() {
        // A file that cannot be read stays as it is; readers of the recording report it.
        return Ok(());
    }
    rollup::apply(&mut batch, compaction);
    let mut stage = HourFiles { store, files, compaction, commit: Commit::default() };
    if let Err(error) = batch.each(&mut stage) {
        stage.commit.abandon(store);
        return Err(error);
    }
    let mut commit = stage.commit;
    files.iter().for_each(|(_, file)| commit.remove(store, &file.path));
    let _lock = replacing.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(error) = Commit::recover(store) {
        commit.abandon(store);
        return Err(error);
    }
    commit.execute(store, true)
}

/// Reads the rows of each table.
struct Load<'p> {
    files: &'p [(&'static str, DataFile)],
    problem: Option<Error>,
}

impl Visit for Load<'_> {
    fn table<T: Table>(&mut self, rows: &mut Vec<T>) -> Result<(), Error> {
        for (_, file) in self.files.iter().filter(|(table, _)| *table == T::NAME) {
            let path = &file.path;
            let file = files::open(path).map_err(Error::io(path));
            match file.and_then(|file| file::read(file, path)) {
                Ok(more) => rows.extend(more),
                Err(error) => self.problem = Some(error),
            }
        }
        Ok(())
    }
}

/// Writes the rows of each table to a file that the commit puts in place.
struct HourFiles<'s> {
    store: &'s Store,
    files: &'s [(&'static str, DataFile)],
    compaction: Compaction,
    commit: Commit,
}

impl Visit for HourFiles<'_> {
    fn table<T: Table>(&mut self, rows: &mut Vec<T>) -> Result<(), Error> {
        let mut own = self.files.iter().filter(|(table, _)| *table == T::NAME);
        let Some((_, first)) = own.next().filter(|_| !rows.is_empty()) else {
            return Ok(());
        };
        T::sort(rows);
        // The file is named after the hour: if an earlier minute arrives later (the clock was set back),
        // merging again replaces the file, so there is never a second file of the same grade.
        let begin = format!("{}0000", first.hour().1);
        let path = self.store.path(T::NAME, &first.date, &begin, self.compaction);
        let aside = self.commit.stage(self.store, &path)?;
        file::write(&aside, rows, Effort::Best, self.store.access)
    }
}

pub(crate) fn remove_empty_days(store: &Store, files: &[(&'static str, DataFile)]) {
    for (table, file) in files {
        // Only an empty directory can be removed; one that stays is harmless.
        let _ = std::fs::remove_dir(store.table(table).join(format!("date={}", file.date)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_coarser_at_their_age() {
        let hour = 3_600_000_000;
        for (age, expected) in [
            (hour - 1, None),
            (hour, Some(Compaction::Hour)),
            (24 * hour - 1, Some(Compaction::Hour)),
            (24 * hour, Some(Compaction::TenSeconds)),
            (7 * 24 * hour - 1, Some(Compaction::TenSeconds)),
            (7 * 24 * hour, Some(Compaction::Minutes)),
        ] {
            let found = compaction_at(age, &RetentionPolicy::default());
            assert!(found == expected, "{age}");
        }
        assert_eq!(micros(Duration::from_millis(1500)), 1_500_000);
        assert_eq!(micros(Duration::MAX), i64::MAX);
        assert_eq!(RetentionPolicy::default().retention, None);
    }
}
