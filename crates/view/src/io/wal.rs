// SPDX-License-Identifier: PostgreSQL
//! WAL insertion by kind of process, as a table.

use segment::interval::Interval;
use segment::wal::WalRow;

use crate::rows::{accepts, Wish};
use crate::table::field::{per, rate, Field, Picked};
use crate::table::{Cell, Row, Table, Tone, Unit};

type F = Field<WalRow>;

/// The columns of inserted WAL.
pub const FIELDS: &[F] = &[
    F::new("process", "Processes", Unit::Text, |it, _| it.process.as_str().into())
        .head("INSERTED BY"),
    F::new("bytes", "WAL", Unit::Bytes, |it, _| it.bytes.into()),
    F::new("bytes_per_second", "Bytes a second", Unit::BytesPerSecond, |it, s| rate(it.bytes, s))
        .head("MB/S"),
    F::new("records", "Records", Unit::Count, |it, _| it.records.into()),
    F::new("records_per_second", "Records/s", Unit::PerSecond, |it, s| rate(it.records, s)),
    F::new("record_bytes", "Bytes/record", Unit::Bytes, |it, _| of_records(it, it.bytes)),
    F::new("full_page_images", "Full-page images", Unit::Count, |it, _| it.full_page_images.into()),
    F::new("images_per_second", "Page images/s", Unit::PerSecond, |it, s| {
        rate(it.full_page_images, s)
    }),
    F::new("image_share", "Images%", Unit::Share, |it, _| of_records(it, it.full_page_images)),
    F::new("buffers_full", "Buffers full", Unit::Count, |it, _| it.buffers_full.into())
        .help("how often it had to write WAL because the buffers were full"),
    F::new("full_per_second", "Buffers full/s", Unit::PerSecond, |it, s| rate(it.buffers_full, s)),
];

/// Blank without records.
fn of_records(row: &WalRow, n: u64) -> Cell {
    match row.records {
        0 => "".into(),
        records => per(n as f64, records as f64),
    }
}

/// What each kind of process inserted, most first.
pub fn table(interval: &Interval, wish: &Wish) -> Table {
    let figures = Picked::of_pane(
        FIELDS,
        "process, bytes_per_second, records_per_second, record_bytes:1, images_per_second, \
         image_share:2, full_per_second",
    );
    let line = |row: &WalRow| {
        let cells = figures.cells(row, interval.instrumented_seconds);
        Row { tone: Tone::IO, ..Row::new(&*row.process, cells) }
    };
    let rows = interval.wal.iter().filter(|row| accepts(wish, &[&row.process])).map(line).collect();
    Table::of(figures.columns, rows)
}
