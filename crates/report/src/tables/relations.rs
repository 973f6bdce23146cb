// SPDX-License-Identifier: PostgreSQL
//! Operations on the files of single relations.

use segment::interval::Interval;
use segment::relations::RelationTiming;
use segment::RelationRow;

use super::{each, rate};
use view::document::{Column, Table, Tone, Unit};
use view::io::{relation_name, relation_timing, RelationNames};

/// Rows that are shown: a recording may have thousands.
const MOST: usize = 1000;

/// The relations with most time.
pub fn relations(rows: &[RelationRow], interval: &Interval) -> Table {
    let count = |key, title| Column::new(key, title, Unit::Count);
    let seconds = |key, title| Column::new(key, title, Unit::Seconds);
    let bytes = |key, title| Column::new(key, title, Unit::BytesPerSecond);
    let columns = vec![
        Column::new("relation", "Relation", Unit::Text)
            .help("database/number of the file; the view tally.relations has their names"),
        seconds("seconds", "Time"),
        count("reads", "Reads"),
        bytes("read_bytes_per_second", "Read").expendable(4),
        seconds("read_seconds", "Read mean").expendable(2),
        count("writes", "Writes"),
        bytes("written_bytes_per_second", "Written").expendable(5),
        seconds("write_seconds", "Write mean").expendable(3),
        count("extends", "Extensions"),
        bytes("extend_bytes_per_second", "Extended").expendable(6),
        seconds("extend_seconds", "Extension mean").expendable(7),
        count("syncs", "Syncs"),
        seconds("sync_seconds", "Sync mean").expendable(1),
        count("truncates", "Truncations").expendable(9),
        seconds("max_seconds", "Max")
            .help("empty if none was longer than all before")
            .expendable(8),
        count("failed", "Failed").expendable(10),
    ];
    let left = rows.len().saturating_sub(MOST);
    let note = (left > 0).then(|| format!("{left} more, with less time."));
    let mut table = Table::new("relations", "Operations on relations' files", columns)
        .sorted("seconds")
        .noted(note);
    let mean = |of: &RelationTiming| each(of.seconds, of.count);
    let moved = |of: &RelationTiming| rate(of.bytes as f64, interval);
    for row in rows.iter().take(MOST) {
        let cells = vec![
            relation_name(row, &RelationNames::default()).into(),
            row.seconds.into(),
            row.read.count.into(),
            moved(&row.read).into(),
            mean(&row.read).into(),
            row.write.count.into(),
            moved(&row.write).into(),
            mean(&row.write).into(),
            row.extend.count.into(),
            moved(&row.extend).into(),
            mean(&row.extend).into(),
            row.sync.count.into(),
            mean(&row.sync).into(),
            row.truncate.count.into(),
            relation_timing(row).max_seconds.into(),
            row.failed.into(),
        ];
        table.push(Tone::IO, cells);
    }
    table
}
