// SPDX-License-Identifier: PostgreSQL
//! Merges old rows into intervals of ten seconds or a minute, and into details of a minute. Sums stay
//! exactly the same, and histograms are added bucket by bucket.

mod round;

use crate::batch::Batch;
use crate::client_waits::{ClientWaitsRow, EndedSessionsRow};
use crate::details;
use crate::plan_rows::PlanRow;
use crate::recorded_statement::RecordedStatementRow;
use crate::rows::{FrameRow, RelationRow};
use crate::slow_executions::SlowExecutionRow;
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

/// Compact the rows of an hour to this grade.
pub(crate) fn apply(batch: &mut Batch, compaction: Compaction) {
    let intervals = match compaction {
        Compaction::Minute | Compaction::Merged => return,
        Compaction::Hour => None,
        Compaction::TenSeconds => Some(10),
        Compaction::Minutes => Some(60),
    };
    batch.frames.sort_by_key(|row| row.frame);
    let unmarked = details::unmarked_runs(&batch.frames);
    details::mark(batch, |row| unmarked.contains(&row.server));
    let minute = |row: &FrameRow| (row.server, row.step(DETAIL_US));
    let minutes: HashMap<u64, (u32, i64)> =
        batch.frames.iter().map(|row| (row.frame, minute(row))).collect();
    macro_rules! merge_details {
        ($($table:ident by $key:expr;)*) => {$(
            // Without their interval, the run of the server is unknown.
            let group = |frame: u64, time_us: i64| match minutes.get(&frame) {
                Some((server, minute)) => (Some(*server), *minute),
                None => (None, time_us.div_euclid(DETAIL_US)),
            };
            merge(&mut batch.$table, |row| group(row.frame, row.time_us), $key);
        )*};
    }
    merge_details! {
        histograms by |row| row.series.clone();
        statements by RecordedStatementRow::key;
        statement_accounts by |row| (row.key(), row.account.clone());
        plans by PlanRow::key;
        relations by RelationRow::key;
        kernel by |_| ();
        server_io by |_| ();
        client_waits by ClientWaitsRow::key;
        ended_sessions by EndedSessionsRow::key;
    }
    SlowExecutionRow::keep_slowest(&mut batch.slow_executions);
    let mut marked: Vec<&mut FrameRow> = batch.frames.iter_mut().filter(|row| row.detail).collect();
    for merged in marked.chunk_by_mut(|a, b| minute(a) == minute(b)) {
        // The merged details now cover the intervals up to the last one.
        if let Some((_, earlier)) = merged.split_last_mut() {
            earlier.iter_mut().for_each(|row| row.detail = false);
        }
    }
    if let Some(step) = intervals {
        coarsen(batch, step * SECOND_US);
    }
    round::apply(batch);
}

/// Add a row to the sum of its key; rows must come in chronological order.
pub(crate) fn total<R: Table, K: Hash + Eq>(sums: &mut HashMap<K, R>, key: K, row: R) {
    match sums.entry(key) {
        Entry::Occupied(mut sum) => sum.get_mut().add(row),
        Entry::Vacant(entry) => drop(entry.insert(row)),
    }
}

/// Add up the rows of one key in the same group. A group is not continued after another group of the
/// same key has begun, so nothing is added across a point where the clock was set back.
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

/// The groups of intervals to merge: for each interval, the number of the last one in its group.
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
            // No gap, no clock step, the same server, level and duty, and no details of only the earlier intervals.
            between > 0
                && between - length <= length / 2
                && before.step(step) == row.step(step)
                && !before.detail
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

/// Merge intervals into intervals of this length.
fn coarsen(batch: &mut Batch, step: i64) {
    let groups = groups(&batch.frames, step);
    let times: HashMap<u64, i64> =
        batch.frames.iter().map(|row| (row.frame, row.time_us)).collect();
    let into = |frame: u64| groups.get(&frame).copied().unwrap_or(frame);
    merge(&mut batch.frames, |row| into(row.frame), |_| ());
    merge(&mut batch.devices, |row| into(row.frame), |row| row.device.clone());
    // Series by number, because there are few series but millions of rows.
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
    // Of the session history, the last interval stays as a sample.
    batch.session_history.retain(|row| into(row.frame) == row.frame);
    // Rows that came with an interval now come with the longer one.
    macro_rules! renumber {
        ($($table:ident)*) => {
            $(batch.$table.iter_mut().for_each(|row| row.frame = into(row.frame));)*
        };
    }
    renumber! { histograms statements statement_accounts plans slow_executions relations kernel server_io client_waits ended_sessions dead_rows snapshots conditions }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An interval of a second that ends at this time, ms.
    fn frame(number: u64, ms: i64) -> FrameRow {
        FrameRow {
            frame: number,
            time_us: ms * 1000,
            interval_ns: 1_000_000_000,
            level: "waits".into(),
            ..FrameRow::default()
        }
    }

    /// The last interval of the group of each.
    fn last(frames: &[FrameRow]) -> Vec<u64> {
        groups(frames, 10 * SECOND_US).into_values().collect()
    }

    #[test]
    fn an_interval_is_of_the_step_that_most_of_it_is_in() {
        let steps =
            [500, 501, 10_000, 10_003, 10_499, 10_500].map(|ms| frame(1, ms).step(10 * SECOND_US));
        assert_eq!(steps, [0, 0, 0, 0, 0, 1]);
        let late = [frame(1, 9_003), frame(2, 10_003), frame(3, 11_003)];
        assert_eq!(last(&late), [2, 2, 3]);
    }

    #[test]
    fn intervals_after_a_detail_are_not_merged_with_its_own() {
        let mut frames: Vec<FrameRow> = (1..=10).map(|n| frame(n, 1000 * n as i64)).collect();
        frames[6].detail = true;
        assert_eq!(last(&frames), [7, 7, 7, 7, 7, 7, 7, 10, 10, 10]);
    }

    #[test]
    fn intervals_are_merged_up_to_the_end_of_a_step() {
        let frames: Vec<FrameRow> = (1..=12).map(|n| frame(n, 1000 * n as i64)).collect();
        assert_eq!(last(&frames), [10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 12, 12]);
    }

    #[test]
    fn intervals_of_another_kind_or_after_a_gap_are_not_merged() {
        let pair = |change: fn(&mut FrameRow)| {
            let mut frames = [frame(1, 1000), frame(2, 2000)];
            change(&mut frames[1]);
            last(&frames)
        };
        assert_eq!(pair(|_| ()), [2, 2]);
        assert_eq!(pair(|row| row.level = "locks".into()), [1, 2]);
        assert_eq!(pair(|row| row.server = 1), [1, 2]);
        assert_eq!(pair(|row| row.partial = true), [1, 2]);
        // Half an interval late is not a gap, nor is an early interval, unless its time is not after the previous one.
        assert_eq!(pair(|row| row.time_us = 2_500_000), [2, 2]);
        assert_eq!(pair(|row| row.time_us = 2_501_000), [1, 2]);
        assert_eq!(pair(|row| row.time_us = 1_001_000), [2, 2]);
        assert_eq!(pair(|row| row.time_us = 1_000_000), [1, 2]);
        assert_eq!(pair(|row| row.time_us = 500_000), [1, 2]);
    }

    #[test]
    fn a_merged_interval_has_the_sums_the_last_state_and_the_worst_of_its_parts() {
        let one = |number: u64, n: u64, exact: bool| FrameRow {
            wall_ns: n,
            busy_ns: 2 * n,
            uninstrumented_ns: 3 * n,
            locks_ns: 4 * n,
            commands: 5 * n,
            ended_sessions: 6 * n,
            host_idle_ns: 7 * n,
            sessions_active: n as u32,
            torn_sessions: 9 - n,
            monotonic_ns: n,
            exact,
            ..frame(number, 1000 * number as i64)
        };
        let mut rows = vec![one(2, 3, false), one(1, 1, true)];
        merge(&mut rows, |_| (), |_| ());
        let expected = FrameRow {
            interval_ns: 2_000_000_000,
            wall_ns: 4,
            busy_ns: 8,
            uninstrumented_ns: 12,
            locks_ns: 16,
            commands: 20,
            ended_sessions: 24,
            host_idle_ns: 28,
            sessions_active: 3,
            torn_sessions: 8,
            monotonic_ns: 3,
            exact: false,
            ..frame(2, 2000)
        };
        assert_eq!(rows, [expected]);
    }

    #[test]
    fn a_group_is_not_continued_after_another_of_its_key() {
        let row = |frame: u64, time_us: i64, wall_ns: u64| FrameRow {
            frame,
            time_us,
            wall_ns,
            ..FrameRow::default()
        };
        // The clock was set back after the second row.
        let mut rows = vec![row(1, 5, 1), row(2, 15, 2), row(3, 6, 4), row(4, 7, 8)];
        merge(&mut rows, |row| row.time_us.div_euclid(10), |_| ());
        let sums: Vec<(u64, u64)> = rows.iter().map(|row| (row.frame, row.wall_ns)).collect();
        assert_eq!(sums, [(1, 1), (2, 2), (4, 12)]);
    }
}
