// SPDX-License-Identifier: PostgreSQL
//! Relations: I/O on the files of each, since the last reset or in an interval.
//!
//! Every session counts in local entries, which are flushed into one table. A reading adds up both
//! (`read`).

mod read;

use crate::layout::{file_sums, relation, relation_key, u32_at, u64_at, RELATION_OPERATIONS};
use crate::timing::most_first;
use serde::Serialize;
use std::collections::HashMap;

/// Identifies a relation's fork. All zeros: relations without an entry of their own, and unlinked ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelationKey {
    /// The tablespace's number.
    pub tablespace: u32,
    /// The database's number; 0: shared by all.
    pub database: u32,
    /// The number in the file's name.
    pub relfilenode: u32,
    /// 0 main, 1 fsm, 2 vm, 3 init.
    pub fork: u32,
    /// 1 + the backend number for a temporary relation; 0 otherwise.
    pub backend: u32,
}

impl RelationKey {
    fn decode(bytes: &[u8]) -> RelationKey {
        let word = |at: usize| u32_at(bytes, relation::KEY + at);
        RelationKey {
            tablespace: word(relation_key::TABLESPACE),
            database: word(relation_key::DATABASE),
            relfilenode: word(relation_key::RELATION),
            fork: word(relation_key::FORK),
            backend: word(relation_key::BACKEND),
        }
    }

    /// Whether it stands for all relations without an entry of their own.
    pub fn is_others(&self) -> bool {
        *self == RelationKey::default()
    }

    /// The fork's name.
    pub fn fork_name(&self) -> &'static str {
        match self.fork {
            0 => "main",
            1 => "fsm",
            2 => "vm",
            3 => "init",
            _ => "unknown",
        }
    }
}

/// Sums of one operation, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct OperationSum {
    count: u64,
    bytes: u64,
    ticks: u64,
    max: u64,
}

/// Sums of the operations on the files of a relation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct RelationSums {
    of: [OperationSum; RELATION_OPERATIONS],
    failed: u64,
}

impl RelationSums {
    fn decode(bytes: &[u8], sums: usize, failed: usize) -> RelationSums {
        let sum = |n: usize| {
            let at = sums + n * file_sums::SIZE;
            OperationSum {
                count: u64_at(bytes, at + file_sums::COUNT),
                bytes: u64_at(bytes, at + file_sums::BYTES),
                ticks: u64_at(bytes, at + file_sums::TICKS),
                max: u64_at(bytes, at + file_sums::MAX),
            }
        };
        RelationSums { of: std::array::from_fn(sum), failed: u64_at(bytes, failed) }
    }

    fn add(&mut self, other: &RelationSums) {
        for (sum, more) in self.of.iter_mut().zip(other.of) {
            sum.count = sum.count.saturating_add(more.count);
            sum.bytes = sum.bytes.saturating_add(more.bytes);
            sum.ticks = sum.ticks.saturating_add(more.ticks);
            sum.max = sum.max.max(more.max);
        }
        self.failed = self.failed.saturating_add(other.failed);
    }

    /// Whether these sums can be `earlier` plus more operations.
    fn continues(&self, earlier: &RelationSums) -> bool {
        self.of.iter().zip(earlier.of).all(|(now, then)| now.count >= then.count)
    }

    /// The growth since `earlier`; the longest is 0 if it is unknown.
    fn since(&self, earlier: &RelationSums) -> RelationSums {
        let mut sums = *self;
        for (sum, then) in sums.of.iter_mut().zip(earlier.of) {
            let grown = sum.max > then.max;
            sum.count = sum.count.saturating_sub(then.count);
            sum.bytes = sum.bytes.saturating_sub(then.bytes);
            sum.ticks = sum.ticks.saturating_sub(then.ticks);
            sum.max = match sum.count {
                1 => sum.ticks,
                _ if grown => sum.max,
                _ => 0,
            };
        }
        sums.failed = self.failed.saturating_sub(earlier.failed);
        sums
    }

    fn is_zero(&self) -> bool {
        self.of.iter().all(|sum| sum.count == 0)
    }
}

/// All relations of a segment at nearly one instant.
#[derive(Debug, Clone)]
pub struct Relations {
    sums: HashMap<RelationKey, RelationSums>,
    resets: u32,
    second: f64,
    capacity: u32,
    entries: u32,
    overflow: u64,
    torn: u32,
    databases: HashMap<u32, String>,
}

/// One operation on the files of a relation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct RelationTiming {
    /// Number of operations that ended, including failed ones.
    pub count: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Total time of the operations.
    pub seconds: f64,
    /// The longest operation; `None` if there was none, or none longer than in earlier intervals.
    pub max_seconds: Option<f64>,
}

/// I/O on the files of one relation's fork.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RelationRow {
    /// Its key.
    #[serde(skip)]
    pub key: RelationKey,
    /// The tablespace's number; this and the other numbers are `None` for all other relations together.
    pub tablespace: Option<u32>,
    /// The database's number; also `None` for a shared relation.
    pub database_id: Option<u32>,
    /// The database's name, as a session reported it.
    pub database: Option<String>,
    /// The number in the file's name.
    pub relfilenode: Option<u32>,
    /// "main", "fsm", "vm" or "init".
    pub fork: Option<&'static str>,
    /// Whether it is a session's temporary relation.
    pub temporary: bool,
    /// Total time.
    pub seconds: f64,
    /// Failed operations.
    pub failed: u64,
    /// Reads.
    pub read: RelationTiming,
    /// Writes of existing blocks.
    pub write: RelationTiming,
    /// Extensions.
    pub extend: RelationTiming,
    /// Syncs.
    pub sync: RelationTiming,
    /// Truncations.
    pub truncate: RelationTiming,
}

getters! {
    Relations:
    capacity: u32, "Capacity of the table, in relations.";
    entries: u32, "Relations in the table, unlinked ones included.";
    overflow: u64, "How often a relation got no entry since the segment was created; its counts go to the entry of all others.";
    torn: u32, "Relations read during an update or a flush.";
}

impl Relations {
    /// The I/O since `earlier`, or since the last reset, longest time first.
    ///
    /// A relation that is no longer in the table counts among the others, with all its operations.
    pub fn since(&self, earlier: Option<&Relations>) -> Vec<RelationRow> {
        let earlier = earlier.filter(|earlier| earlier.resets == self.resets);
        let mut moved = RelationSums::default();
        let then = |key: &RelationKey| -> RelationSums {
            earlier.and_then(|e| e.sums.get(key)).copied().unwrap_or_default()
        };
        let goes_on = |key: &RelationKey, then: &RelationSums| {
            self.sums.get(key).is_some_and(|now| now.continues(then))
        };
        for (key, then) in earlier.iter().flat_map(|e| &e.sums) {
            if !key.is_others() && !goes_on(key, then) {
                moved.add(then);
            }
        }
        let rows = self.sums.iter().map(|(key, now)| {
            let mut then = then(key);
            if key.is_others() {
                then.add(&moved);
            } else if !now.continues(&then) {
                then = RelationSums::default();
            }
            (key, now.since(&then))
        });
        let mut rows: Vec<RelationRow> = rows
            .filter(|(_, sums)| !sums.is_zero())
            .map(|(key, sums)| self.row(key, &sums))
            .collect();
        most_first!(rows, seconds, key);
        rows
    }

    fn row(&self, key: &RelationKey, sums: &RelationSums) -> RelationRow {
        let timing = |n: usize| {
            let sum = &sums.of[n];
            RelationTiming {
                count: sum.count,
                bytes: sum.bytes,
                seconds: sum.ticks as f64 * self.second,
                max_seconds: (sum.max > 0).then_some(sum.max as f64 * self.second),
            }
        };
        let one = !key.is_others();
        let ticks = sums.of.iter().fold(0u64, |all, sum| all.saturating_add(sum.ticks));
        RelationRow {
            key: *key,
            tablespace: one.then_some(key.tablespace),
            database_id: (key.database != 0).then_some(key.database),
            database: self.databases.get(&key.database).cloned(),
            relfilenode: one.then_some(key.relfilenode),
            fork: one.then(|| key.fork_name()),
            temporary: key.backend != 0,
            seconds: ticks as f64 * self.second,
            failed: sums.failed,
            read: timing(0),
            write: timing(1),
            extend: timing(2),
            sync: timing(3),
            truncate: timing(4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(count: u64, max: u64) -> RelationSums {
        let mut sums = RelationSums::default();
        sums.of[0] = OperationSum { count, bytes: 8192 * count, ticks: 10 * count, max };
        sums
    }

    fn relations(all: &[(u32, u64, u64)]) -> Relations {
        let key = |relfilenode| match relfilenode {
            0 => RelationKey::default(),
            _ => RelationKey { tablespace: 1663, database: 5, relfilenode, ..Default::default() },
        };
        let all = all.iter().map(|&(n, count, max)| (key(n), sums(count, max)));
        Relations {
            sums: all.collect(),
            resets: 0,
            second: 1.0,
            capacity: 10,
            entries: 0,
            overflow: 0,
            torn: 0,
            databases: HashMap::from([(5, "shop".to_string())]),
        }
    }

    fn reads(rows: &[RelationRow]) -> Vec<(Option<u32>, u64)> {
        rows.iter().map(|row| (row.relfilenode, row.read.count)).collect()
    }

    #[test]
    fn an_interval_has_the_growth_and_the_longest_operation_if_it_is_new() {
        let before = relations(&[(0, 0, 0), (16384, 10, 50), (16385, 7, 9)]);
        let now = relations(&[(0, 0, 0), (16384, 15, 60), (16385, 9, 9), (16386, 1, 10)]);
        let rows = now.since(Some(&before));
        assert_eq!(reads(&rows), [(Some(16384), 5), (Some(16385), 2), (Some(16386), 1)]);
        let max: Vec<_> = rows.iter().map(|row| row.read.max_seconds).collect();
        assert_eq!(max, [Some(60.0), None, Some(10.0)]);
        assert_eq!(rows[0].database.as_deref(), Some("shop"));
        assert!(now.since(Some(&now)).is_empty());
        assert_eq!(now.since(None).len(), 3);
    }

    #[test]
    fn each_figure_of_each_operation_is_the_growth_of_its_own() {
        let all = |by: u64| {
            let mut sums = RelationSums { failed: 9 * by, ..RelationSums::default() };
            for (n, sum) in (1..).zip(&mut sums.of) {
                *sum = OperationSum {
                    count: n * by,
                    bytes: 10 * n * by,
                    ticks: 100 * n * by,
                    max: 1000 * n * by,
                };
            }
            sums
        };
        let mut doubled = all(1);
        doubled.add(&all(1));
        assert_eq!(doubled.failed, 18);
        for (n, sum) in (1..).zip(doubled.of) {
            assert_eq!(
                (sum.count, sum.bytes, sum.ticks, sum.max),
                (2 * n, 20 * n, 200 * n, 1000 * n)
            );
        }
        let of = |key, sums| Relations {
            sums: HashMap::from([(key, sums)]),
            second: 0.5,
            ..relations(&[])
        };
        let key = RelationKey {
            tablespace: 1663,
            database: 5,
            relfilenode: 7,
            backend: 3,
            ..Default::default()
        };
        let rows = of(key, all(4)).since(Some(&of(key, all(1))));
        let row = &rows[0];
        assert_eq!((rows.len(), row.failed, row.seconds), (1, 27, 0.5 * 100.0 * 3.0 * 15.0));
        assert_eq!((row.temporary, row.database_id, row.fork), (true, Some(5), Some("main")));
        for (n, operations) in (1..).zip([row.read, row.write, row.extend, row.sync, row.truncate])
        {
            let n64 = n as f64;
            assert_eq!((operations.count, operations.bytes), (3 * n, 30 * n));
            assert_eq!(
                (operations.seconds, operations.max_seconds),
                (150.0 * n64, Some(2000.0 * n64))
            );
        }
        let shared = RelationKey { database: 0, backend: 0, ..key };
        let row = &of(shared, all(1)).since(None)[0];
        assert_eq!((row.temporary, row.database_id), (false, None));
    }

    #[test]
    fn an_evicted_relation_is_not_counted_again() {
        let before = relations(&[(0, 3, 5), (16384, 100, 50), (16385, 7, 9)]);
        // 16384 did two more reads before its entry served another; 16385's begins again
        let now = relations(&[(0, 3 + 102 + 7, 50), (16385, 1, 9)]);
        let rows = now.since(Some(&before));
        assert_eq!(reads(&rows), [(None, 2), (Some(16385), 1)]);
    }
}
