// SPDX-License-Identifier: PostgreSQL
//! Operations on the files of individual relations.

use segment::relations::RelationTiming;
use segment::RelationRow;

use super::each;
use crate::material::RelationTimes;
use view::document::{Cell, Column, Table, Tone, Unit};
use view::io::{relation_name, relation_timing};
use view::table::field::{rate, Field, Picked};

/// Maximum number of rows, because a recording may have thousands.
const MOST: usize = 1000;

/// The relations with the most time; `seconds` is the measured time.
pub fn relations(of: &RelationTimes, seconds: f64) -> Table {
    type F = Field<RelationRow>;
    const NAME: Column = Column::new("relation", "Relation", Unit::Text).help(
        "database/name, or database/number of the file if the recorder could not query the name",
    );
    const FIELDS: &[F] = &[
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
    let left = of.rows.len().saturating_sub(MOST);
    let note = (left > 0).then(|| format!("{left} more with less time."));
    let figures = Picked::all(FIELDS);
    let title = "File operations by relation";
    let mut table = Table::new("relations", title, figures.columns_after([NAME]));
    for row in of.rows.iter().take(MOST) {
        let name = relation_name(row, &of.names).into();
        table.push(Tone::IO, figures.cells_after([name], row, seconds));
    }
    table.sorted("seconds").noted(note)
}

fn mean(of: &RelationTiming) -> Cell {
    each(of.seconds, of.count).into()
}
