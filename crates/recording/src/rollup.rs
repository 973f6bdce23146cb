// SPDX-License-Identifier: PostgreSQL
//! What is old becomes coarser: intervals of ten seconds or a minute, details of a minute.
//! Sums stay exactly what they were, and histograms are added bucket by bucket.

mod add;
mod round;

use crate::batch::Batch;
use crate::rows::{FrameRow, RelationRow, StatementAccountRow, StatementRow};
use crate::series::StatRow;
use crate::statement::shortened;
use crate::store::Grade;
use add::stamped;
pub(crate) use add::Add;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::Arc;

const SECOND_US: i64 = 1_000_000;

/// Bring an hour to this grade.
pub(crate) fn apply(batch: &mut Batch, grade: Grade) {
    let (scalars, details) = match grade {
        Grade::Minute | Grade::Merged => return,
        Grade::Hour => (None, 60),
        Grade::Tens => (Some(10), 60),
        Grade::Sixties => (Some(60), 60),
    };
    batch.frames.sort_by_key(|row| row.frame);
    let servers: HashMap<u64, u32> =
        batch.frames.iter().map(|row| (row.frame, row.server)).collect();
    let details = Details { servers: &servers, step: details * SECOND_US };
    details.fold(&mut batch.histograms, |row| row.series.clone());
    details.fold(&mut batch.statements, StatementRow::key);
    details.fold(&mut batch.statement_accounts, |row| (row.key(), row.account.clone()));
    details.fold(&mut batch.relations, RelationRow::key);
    details.fold(&mut batch.kernel, |_| ());
    details.fold(&mut batch.server_io, |_| ());
    if let Some(step) = scalars {
        coarsen(batch, step * SECOND_US);
    }
    round::apply(batch);
    for row in &mut batch.statements {
        // Added up they have more digits again.
        row.exec_squares = shortened(row.exec_squares);
        row.plan_squares = shortened(row.plan_squares);
    }
}

/// Add the same statement of a later interval.
pub(crate) fn add_statement(sum: &mut StatementRow, later: StatementRow) {
    stamped(sum, later);
}

/// Add the same account of a statement of a later interval.
pub(crate) fn add_part(sum: &mut StatementAccountRow, later: StatementAccountRow) {
    stamped(sum, later);
}

/// Add a row to the sum of those of its key; rows come in the order of time.
pub(crate) fn total<R: Add, K: Hash + Eq>(sums: &mut HashMap<K, R>, key: K, row: R) {
    match sums.get_mut(&key) {
        Some(sum) => stamped(sum, row),
        None => {
            sums.insert(key, row);
        }
    }
}

/// In which step of time an instant is; the last one of a step belongs to it.
fn step_of(time_us: i64, step: i64) -> i64 {
    (time_us - 1).div_euclid(step)
}

/// Details, of which some become one.
struct Details<'s> {
    servers: &'s HashMap<u64, u32>,
    step: i64,
}

impl Details<'_> {
    /// Fold the rows of one key, step and run of the server. None is added over a clock that
    /// was set back.
    fn fold<R: Add, K: Hash + Eq>(&self, rows: &mut Vec<R>, key: impl Fn(&R) -> K) {
        rows.sort_by_key(R::frame);
        let mut folded: Vec<R> = Vec::new();
        let mut places: HashMap<K, usize> = HashMap::new();
        for row in rows.drain(..) {
            let place = |row: &R| {
                let server = self.servers.get(&row.frame()).copied().unwrap_or(0);
                (server, step_of(row.time_us(), self.step))
            };
            let known = places.get(&key(&row)).and_then(|&at| folded.get_mut(at));
            match known.filter(|known| place(known) == place(&row)) {
                Some(sum) => stamped(sum, row),
                None => {
                    places.insert(key(&row), folded.len());
                    folded.push(row);
                }
            }
        }
        *rows = folded;
    }
}

/// Which intervals become one: what each of them becomes a part of, by number.
fn groups(frames: &[FrameRow], step: i64) -> BTreeMap<u64, u64> {
    let mut groups = BTreeMap::new();
    let mut open: Vec<&FrameRow> = Vec::new();
    let mut close = |open: &mut Vec<&FrameRow>| {
        if let Some(last) = open.last().map(|row| row.frame) {
            groups.extend(open.drain(..).map(|row| (row.frame, last)));
        }
    };
    for row in frames {
        let follows = open.last().is_some_and(|before| {
            let between = row.time_us - before.time_us;
            let length = i64::try_from(row.interval_ns / 1000).unwrap_or(i64::MAX);
            // No gap, no clock set, no other server, nothing that was looked at otherwise.
            between > 0
                && between - length <= length / 2
                && step_of(before.time_us, step) == step_of(row.time_us, step)
                && (&row.level, row.server, row.partial)
                    == (&before.level, before.server, before.partial)
        });
        if !follows {
            close(&mut open);
        }
        open.push(row);
    }
    close(&mut open);
    groups
}

/// Intervals become longer.
fn coarsen(batch: &mut Batch, step: i64) {
    let groups = groups(&batch.frames, step);
    let times: HashMap<u64, i64> =
        batch.frames.iter().map(|row| (row.frame, row.time_us)).collect();
    let into = |frame: u64| groups.get(&frame).copied().unwrap_or(frame);
    by_group(&mut batch.frames, &into, |_| ());
    by_group(&mut batch.devices, &into, |row| row.device.clone());
    // Series by address: there are few, and millions of rows.
    let mut known: HashMap<Arc<crate::series::Series>, usize> = HashMap::new();
    let mut sums: HashMap<(usize, u64), StatRow> = HashMap::new();
    for mut row in batch.statistics.drain(..) {
        let next = known.len();
        let series = *known.entry(row.series.clone()).or_insert(next);
        row.frame = into(row.frame);
        row.time_us = times.get(&row.frame).copied().unwrap_or(row.time_us);
        match sums.entry((series, row.frame)) {
            std::collections::hash_map::Entry::Occupied(mut sum) => sum.get_mut().add(row),
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(row);
            }
        }
    }
    batch.statistics = sums.into_values().collect();
    batch.statistics.sort_by_key(|row| row.frame);
    batch.sessions.retain(|row| into(row.frame) == row.frame);
    // What came with an interval comes with the longer one.
    batch.histograms.iter_mut().for_each(|row| row.frame = into(row.frame));
    batch.statements.iter_mut().for_each(|row| row.frame = into(row.frame));
    batch.statement_accounts.iter_mut().for_each(|row| row.frame = into(row.frame));
    batch.relations.iter_mut().for_each(|row| row.frame = into(row.frame));
    batch.kernel.iter_mut().for_each(|row| row.frame = into(row.frame));
    batch.server_io.iter_mut().for_each(|row| row.frame = into(row.frame));
}

/// Add up the rows whose intervals become one.
fn by_group<R: Add, K: Hash + Eq>(
    rows: &mut Vec<R>,
    into: &impl Fn(u64) -> u64,
    key: impl Fn(&R) -> K,
) {
    rows.sort_by_key(R::frame);
    let mut folded: Vec<R> = Vec::new();
    let mut places: HashMap<(K, u64), usize> = HashMap::new();
    for row in rows.drain(..) {
        let key = (key(&row), into(row.frame()));
        match places.get(&key).and_then(|&at| folded.get_mut(at)) {
            Some(sum) => stamped(sum, row),
            None => {
                places.insert(key, folded.len());
                folded.push(row);
            }
        }
    }
    *rows = folded;
}
