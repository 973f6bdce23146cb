// SPDX-License-Identifier: PostgreSQL
//! Old rows become coarser: intervals of ten seconds or a minute, details of a minute. Sums stay
//! exactly the same, and histograms are added bucket by bucket.

mod round;

use crate::batch::Batch;
use crate::plan_rows::PlanRow;
use crate::rows::{FrameRow, RelationRow, StatementRow};
use crate::statistics::StatRow;
use crate::store::Compaction;
use crate::table::Table;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::Arc;

const SECOND_US: i64 = 1_000_000;
/// The length of merged details.
const DETAIL_US: i64 = 60 * SECOND_US;

/// Bring the rows of an hour to this compaction.
pub(crate) fn apply(batch: &mut Batch, compaction: Compaction) {
    let intervals = match compaction {
        Compaction::Minute | Compaction::Merged => return,
        Compaction::Hour => None,
        Compaction::TenSeconds => Some(10),
        Compaction::Minutes => Some(60),
    };
    batch.frames.sort_by_key(|row| row.frame);
    let servers: HashMap<u64, u32> =
        batch.frames.iter().map(|row| (row.frame, row.server)).collect();
    macro_rules! merge_details {
        ($($table:ident by $key:expr;)*) => {$(
            merge(
                &mut batch.$table,
                |row| (servers.get(&row.frame).copied(), step_of(row.time_us, DETAIL_US)),
                $key,
            );
        )*};
    }
    merge_details! {
        histograms by |row| row.series.clone();
        statements by StatementRow::key;
        statement_accounts by |row| (row.key(), row.account.clone());
        plans by PlanRow::key;
        relations by RelationRow::key;
        kernel by |_| ();
        server_io by |_| ();
    }
    if let Some(step) = intervals {
        coarsen(batch, step * SECOND_US);
    }
    round::apply(batch);
}

/// Add a row to the sum of those of its key; rows come in the order of time.
pub(crate) fn total<R: Table, K: Hash + Eq>(sums: &mut HashMap<K, R>, key: K, row: R) {
    match sums.entry(key) {
        Entry::Occupied(mut sum) => sum.get_mut().add(row),
        Entry::Vacant(entry) => drop(entry.insert(row)),
    }
}

/// The number of the step of an instant; the end of a step belongs to it.
fn step_of(time_us: i64, step: i64) -> i64 {
    (time_us - 1).div_euclid(step)
}

/// Add up the rows of one key in the same group. A group is not continued after another one of the
/// same key has begun: nothing is added across a clock that was set back.
fn merge<R: Table, K: Hash + Eq, G: PartialEq>(
    rows: &mut Vec<R>,
    group: impl Fn(&R) -> G,
    key: impl Fn(&R) -> K,
) {
    rows.sort_by_key(R::frame);
    let mut merged: Vec<R> = Vec::new();
    let mut positions: HashMap<K, usize> = HashMap::new();
    for row in rows.drain(..) {
        let known = positions.get(&key(&row)).and_then(|&at| merged.get_mut(at));
        match known.filter(|known| group(known) == group(&row)) {
            Some(sum) => sum.add(row),
            None => {
                positions.insert(key(&row), merged.len());
                merged.push(row);
            }
        }
    }
    *rows = merged;
}

/// Which intervals are merged: the number of the last one in the group of each.
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
            // No gap, no clock that was set, the same server, level and duty.
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

/// Merge intervals to this length.
fn coarsen(batch: &mut Batch, step: i64) {
    let groups = groups(&batch.frames, step);
    let times: HashMap<u64, i64> =
        batch.frames.iter().map(|row| (row.frame, row.time_us)).collect();
    let into = |frame: u64| groups.get(&frame).copied().unwrap_or(frame);
    merge(&mut batch.frames, |row| into(row.frame), |_| ());
    merge(&mut batch.devices, |row| into(row.frame), |row| row.device.clone());
    // Series by number: there are few, and millions of rows.
    let mut known: HashMap<Arc<crate::series::Series>, usize> = HashMap::new();
    let mut sums: HashMap<(usize, u64), StatRow> = HashMap::new();
    for mut row in batch.statistics.drain(..) {
        let next = known.len();
        let series = *known.entry(row.series.clone()).or_insert(next);
        row.frame = into(row.frame);
        row.time_us = times.get(&row.frame).copied().unwrap_or(row.time_us);
        total(&mut sums, (series, row.frame), row);
    }
    batch.statistics = sums.into_values().collect();
    batch.statistics.sort_by_key(|row| row.frame);
    batch.sessions.retain(|row| into(row.frame) == row.frame);
    // Of what sessions did, the last interval stays as a sample.
    batch.session_history.retain(|row| into(row.frame) == row.frame);
    // Rows that came with an interval come with the longer one.
    macro_rules! renumber {
        ($($table:ident)*) => {
            $(batch.$table.iter_mut().for_each(|row| row.frame = into(row.frame));)*
        };
    }
    renumber! { histograms statements statement_accounts plans relations kernel server_io dead_rows snapshots }
}
