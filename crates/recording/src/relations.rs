// SPDX-License-Identifier: PostgreSQL
//! Relations as rows, and their sums over a range.

use crate::error::Error;
use crate::range::Range;
use crate::recording::Recording;
use crate::rollup;
use crate::rows::RelationRow;
use segment::relations::{RelationKey, RelationTiming};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Forks by number.
const FORKS: [&str; 4] = ["main", "fsm", "vm", "init"];

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}

/// Relations of a range.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordedRelations {
    /// I/O on the files of each, sorted by time, longest first.
    pub rows: Vec<segment::RelationRow>,
    /// Their known names, by database (`None`: shared), tablespace and file number.
    pub names: BTreeMap<(Option<u32>, u32, u32), String>,
}

/// The rows of relations in a detail interval that ends with the interval `frame`, in their order and without names.
pub fn relation_rows(
    found: &[segment::RelationRow],
    (frame, time_us): (u64, i64),
    interval_ns: u64,
) -> Vec<RelationRow> {
    let max = |timing: &RelationTiming| timing.max_seconds.map(ns);
    let row = |relation: &segment::RelationRow| RelationRow {
        frame,
        time_us,
        interval_ns,
        tablespace: relation.key.tablespace,
        database_id: relation.key.database,
        relfilenode: relation.key.relfilenode,
        fork: relation.fork.unwrap_or_default().into(),
        backend: relation.key.backend,
        database: relation.database.as_deref().unwrap_or_default().into(),
        name: Arc::default(),
        failed: relation.failed,
        reads: relation.read.count,
        read_bytes: relation.read.bytes,
        read_ns: ns(relation.read.seconds),
        read_max_ns: max(&relation.read),
        writes: relation.write.count,
        written_bytes: relation.write.bytes,
        write_ns: ns(relation.write.seconds),
        write_max_ns: max(&relation.write),
        extends: relation.extend.count,
        extend_bytes: relation.extend.bytes,
        extend_ns: ns(relation.extend.seconds),
        extend_max_ns: max(&relation.extend),
        syncs: relation.sync.count,
        sync_ns: ns(relation.sync.seconds),
        sync_max_ns: max(&relation.sync),
        truncates: relation.truncate.count,
        truncate_ns: ns(relation.truncate.seconds),
        truncate_max_ns: max(&relation.truncate),
    };
    found.iter().map(row).collect()
}

fn timing(count: u64, bytes: u64, time_ns: u64, max_ns: Option<u64>) -> RelationTiming {
    RelationTiming { count, bytes, seconds: seconds(time_ns), max_seconds: max_ns.map(seconds) }
}

/// Converts a row to a segment's row.
fn found(row: &RelationRow) -> segment::RelationRow {
    let key = RelationKey {
        tablespace: row.tablespace,
        database: row.database_id,
        relfilenode: row.relfilenode,
        fork: (0u32..).zip(FORKS).find(|(_, name)| *name == &*row.fork).map_or(0, |(n, _)| n),
        backend: row.backend,
    };
    let one = !key.is_others();
    let all = [row.read_ns, row.write_ns, row.extend_ns, row.sync_ns, row.truncate_ns];
    segment::RelationRow {
        key,
        tablespace: one.then_some(row.tablespace),
        database_id: (row.database_id != 0).then_some(row.database_id),
        database: (!row.database.is_empty()).then(|| row.database.to_string()),
        relfilenode: one.then_some(row.relfilenode),
        fork: one.then(|| key.fork_name()),
        temporary: row.backend != 0,
        seconds: seconds(all.iter().fold(0, |sum, ns| sum.saturating_add(*ns))),
        failed: row.failed,
        read: timing(row.reads, row.read_bytes, row.read_ns, row.read_max_ns),
        write: timing(row.writes, row.written_bytes, row.write_ns, row.write_max_ns),
        extend: timing(row.extends, row.extend_bytes, row.extend_ns, row.extend_max_ns),
        sync: timing(row.syncs, 0, row.sync_ns, row.sync_max_ns),
        truncate: timing(row.truncates, 0, row.truncate_ns, row.truncate_max_ns),
    }
}

impl Recording {
    /// I/O on the files of each relation in the details that ended in a range; `None`: not recorded.
    pub fn relations(&self, range: Range) -> Result<Option<RecordedRelations>, Error> {
        let mut sums: HashMap<_, RelationRow> = HashMap::new();
        self.each_row(range, |row: RelationRow| rollup::total(&mut sums, row.key(), row))?;
        if sums.is_empty() {
            return Ok(None);
        }
        let mut rows: Vec<segment::RelationRow> = sums.values().map(found).collect();
        rows.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then_with(|| a.key.cmp(&b.key)));
        let named = sums.values().filter(|row| !row.name.is_empty());
        let file = |row: &RelationRow| {
            ((row.database_id != 0).then_some(row.database_id), row.tablespace, row.relfilenode)
        };
        let names = named.map(|row| (file(row), row.name.to_string())).collect();
        Ok(Some(RecordedRelations { rows, names }))
    }
}
