// SPDX-License-Identifier: PostgreSQL
//! Operations on the files of individual relations.

use segment::relations::RelationTiming;
use segment::RelationRow;

use super::each;
use view::document::{Cell, Table, Tone, Unit};
use view::io::{relation_name, relation_timing, RelationNames};
use view::table::field::{rate, Field, Picked};

/// Maximum number of rows, because a recording may have thousands.
const MOST: usize = 1000;

/// The relations with the most time; `seconds` is the measured time.
pub fn relations(rows: &[RelationRow], seconds: f64) -> Table {
    type F = Field<RelationRow>;
    const FIELDS: &[F] = &[
        F::new("relation", "Relation", Unit::Text, |row, _| {
            relation_name(row, &RelationNames::default()).into()
        })
        .help("database/number of the file; the view tally.relations shows their names"),
        F::new("seconds", "Time", Unit::Seconds, |row, _| row.seconds.into()),
        F::new("reads", "Reads", Unit::Count, |row, _| row.read.count.into()),
        F::new("read_bytes_per_second", "Read", Unit::BytesPerSecond, |row, s| {
            rate(row.read.bytes, s)
        })
        .expendable(4),
        F::new("read_seconds", "Read mean", Unit::Seconds, |row, _| mean(&row.read)).expendable(2),
        F::new("writes", "Writes", Unit::Count, |row, _| row.write.count.into()),
        F::new("written_bytes_per_second", "Written", Unit::BytesPerSecond, |row, s| {
            rate(row.write.bytes, s)
        })
        .expendable(5),
        F::new("write_seconds", "Write mean", Unit::Seconds, |row, _| mean(&row.write))
            .expendable(3),
        F::new("extends", "Extensions", Unit::Count, |row, _| row.extend.count.into()),
        F::new("extend_bytes_per_second", "Extended", Unit::BytesPerSecond, |row, s| {
            rate(row.extend.bytes, s)
        })
        .expendable(6),
        F::new("extend_seconds", "Extension mean", Unit::Seconds, |row, _| mean(&row.extend))
            .expendable(7),
        F::new("syncs", "Syncs", Unit::Count, |row, _| row.sync.count.into()),
        F::new("sync_seconds", "Sync mean", Unit::Seconds, |row, _| mean(&row.sync)).expendable(1),
        F::new("truncates", "Truncations", Unit::Count, |row, _| row.truncate.count.into())
            .expendable(9),
        F::new("max_seconds", "Max", Unit::Seconds, |row, _| {
            relation_timing(row).max_seconds.into()
        })
        .help("empty if there was no new maximum")
        .expendable(8),
        F::new("failed", "Failed", Unit::Count, |row, _| row.failed.into()).expendable(10),
    ];
    let left = rows.len().saturating_sub(MOST);
    let note = (left > 0).then(|| format!("{left} more with less time."));
    let name = ("relations", "File operations by relation");
    Picked::all(FIELDS)
        .table(name, rows.iter().take(MOST), seconds, Tone::IO)
        .sorted("seconds")
        .noted(note)
}

fn mean(of: &RelationTiming) -> Cell {
    each(of.seconds, of.count).into()
}
