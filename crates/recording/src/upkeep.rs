// SPDX-License-Identifier: PostgreSQL
//! Looking after a recording while it grows: parts of one hour become one, what is old becomes
//! coarser, and what is too old goes.

use crate::batch::{Batch, Visit, TABLES};
use crate::commit::Commit;
use crate::error::Error;
use crate::part::{self, Care};
use crate::rollup;
use crate::store::{Grade, Part, Store};
use crate::table::Table;
use crate::writer::RetentionPolicy;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const HOUR_US: i64 = 3_600_000_000;

fn micros(length: Duration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX)
}

/// Parts of all tables, by day and hour.
fn hours(store: &Store) -> BTreeMap<(String, String), Vec<(&'static str, Part)>> {
    let mut hours: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for table in TABLES {
        for part in store.parts(table) {
            hours.entry(part.hour()).or_default().push((*table, part));
        }
    }
    hours
}

fn hour_begin(part: &Part) -> i64 {
    part.begin_us.div_euclid(HOUR_US) * HOUR_US
}

/// How far the parts of an hour that ended so long ago should have come.
fn grade_at(age_us: i64, policy: &RetentionPolicy) -> Option<Grade> {
    [(policy.sixties, Grade::Sixties), (policy.tens, Grade::Tens), (policy.details, Grade::Hour)]
        .into_iter()
        .find(|(from, _)| age_us >= micros(*from))
        .map(|(_, grade)| grade)
}

/// Do what is to be done at this time.
pub(crate) fn look_after(
    store: &Store,
    policy: RetentionPolicy,
    now_us: i64,
    turn: &Mutex<()>,
) -> Result<(), Error> {
    let now = now_us;
    for parts in hours(store).into_values() {
        let Some(begin) = parts.iter().map(|(_, part)| hour_begin(part)).min() else { continue };
        let age = now.saturating_sub(begin + HOUR_US);
        if policy.retention.is_some_and(|keep| age >= micros(keep)) {
            let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            let mut commit = Commit::default();
            parts.iter().for_each(|(_, part)| commit.remove(store, &part.path));
            commit.carry_out(store, false)?;
            remove_empty_days(store, &parts);
            continue;
        }
        let Some(grade) = grade_at(age, &policy) else { continue };
        if parts.iter().any(|(_, part)| part.grade < grade) {
            merge(store, &parts, grade, turn)?;
        }
    }
    Ok(())
}

/// The parts of each hour become one, otherwise as they are.
pub(crate) fn merge_all(store: &Store, turn: &Mutex<()>) -> Result<(), Error> {
    for parts in hours(store).into_values() {
        let mut seen = HashMap::new();
        for (table, _) in &parts {
            *seen.entry(*table).or_insert(0) += 1;
        }
        let grade = parts.iter().map(|(_, part)| part.grade).max();
        if let Some(grade) = grade.filter(|_| seen.values().any(|count| *count > 1)) {
            merge(store, &parts, grade.max(Grade::Merged), turn)?;
        }
    }
    Ok(())
}

/// Make one part for each table of these, which are of one hour.
fn merge(
    store: &Store,
    parts: &[(&'static str, Part)],
    grade: Grade,
    turn: &Mutex<()>,
) -> Result<(), Error> {
    let mut load = Load { parts, problem: None };
    let mut batch = Batch::default();
    batch.each(&mut load)?;
    if load.problem.is_some() {
        // What cannot be read stays as it is; who reads the recording is told.
        return Ok(());
    }
    rollup::apply(&mut batch, grade);
    let mut stage = Stage { store, parts, grade, commit: Commit::default() };
    if let Err(error) = batch.each(&mut stage) {
        stage.commit.give_up(store);
        return Err(error);
    }
    let mut commit = stage.commit;
    parts.iter().for_each(|(_, part)| commit.remove(store, &part.path));
    let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
    commit.carry_out(store, true)
}

/// Reads the rows of each table.
struct Load<'p> {
    parts: &'p [(&'static str, Part)],
    problem: Option<Error>,
}

impl Visit for Load<'_> {
    fn table<T: Table>(&mut self, rows: &mut Vec<T>) -> Result<(), Error> {
        for (_, part) in self.parts.iter().filter(|(table, _)| *table == T::NAME) {
            let file = File::open(&part.path).map_err(Error::io(&part.path));
            match file.and_then(|file| part::read(file, &part.path)) {
                Ok(more) => rows.extend(more),
                Err(error) => self.problem = Some(error),
            }
        }
        Ok(())
    }
}

/// Writes the rows of each table aside.
struct Stage<'s> {
    store: &'s Store,
    parts: &'s [(&'static str, Part)],
    grade: Grade,
    commit: Commit,
}

impl Visit for Stage<'_> {
    fn table<T: Table>(&mut self, rows: &mut Vec<T>) -> Result<(), Error> {
        // The name of the first part stays, so that the place in time does.
        let mut own = self.parts.iter().filter(|(table, _)| *table == T::NAME);
        let Some((_, first)) = own.next().filter(|_| !rows.is_empty()) else {
            return Ok(());
        };
        T::sort(rows);
        let path = self.store.part(T::NAME, &first.date, &first.time, self.grade);
        let aside = self.commit.stage(self.store, &path)?;
        part::write(&aside, rows, Care::Much)
    }
}

fn remove_empty_days(store: &Store, parts: &[(&'static str, Part)]) {
    for (table, part) in parts {
        // Only an empty folder can be removed, and one that stays does no harm.
        let _ = std::fs::remove_dir(store.table(table).join(format!("date={}", part.date)));
    }
}
