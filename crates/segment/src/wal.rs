// SPDX-License-Identifier: PostgreSQL
//! The WAL that each kind of process inserts in an interval.
//!
//! Names are `wal::<figure>`; totals are sums of numbers, not of times.

use crate::directory::{Stat, StatKind};
use crate::frame::Frame;
use crate::stat_names;
use serde::Serialize;
use std::collections::BTreeMap;

/// The WAL of the processes of one kind; that of parallel workers counts for their leaders.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct WalRow {
    /// "client backend", "autovacuum worker", ...
    pub process: String,
    /// Records.
    pub records: u64,
    /// Full-page images.
    pub full_page_images: u64,
    /// Bytes.
    pub bytes: u64,
    /// Number of times that a process wrote WAL because the WAL buffers were full.
    pub buffers_full: u64,
}

fn figure<'r>(row: &'r mut WalRow, stat: &Stat) -> Option<&'r mut u64> {
    Some(match stat.name.as_str() {
        stat_names::WAL_RECORDS => &mut row.records,
        stat_names::WAL_IMAGES => &mut row.full_page_images,
        stat_names::WAL_BYTES => &mut row.bytes,
        stat_names::WAL_BUFFERS_FULL => &mut row.buffers_full,
        _ => return None,
    })
}

/// Whether this statistic is shown among the WAL figures.
pub(crate) fn is_of_wal(stat: &Stat) -> bool {
    stat.kind == StatKind::Value && figure(&mut WalRow::default(), stat).is_some()
}

/// All kinds of process that inserted WAL, most bytes first.
pub(crate) fn rows(frame: &Frame) -> Vec<WalRow> {
    let mut kinds: BTreeMap<&str, WalRow> = BTreeMap::new();
    for statistic in frame.statistics.iter().filter(|statistic| is_of_wal(&statistic.stat)) {
        let row = kinds.entry(&statistic.process).or_insert_with(|| WalRow {
            process: statistic.process.to_string(),
            ..WalRow::default()
        });
        if let Some(figure) = figure(row, &statistic.stat) {
            *figure = figure.saturating_add(statistic.total.change.total);
        }
    }
    let mut rows: Vec<WalRow> = kinds.into_values().collect();
    rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.process.cmp(&b.process)));
    rows
}
