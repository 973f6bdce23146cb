// SPDX-License-Identifier: PostgreSQL
//! WAL insertion by kind of process, as a table.

use crate::choose;
use segment::interval::Interval;
use segment::wal::WalRow;

use crate::rows::{accepts, RowOptions};
use crate::table::field::{per, rate, Field, Picked};
use crate::table::{Cell, Row, Table, Tone, Unit};

type F = Field<WalRow>;

/// The columns of inserted WAL.
pub const FIELDS: &[F] = &[
    F::new("process", "Processes", Unit::Text, |row, _| row.process.as_str().into())
        .head("INSERTED BY"),
    F::new("bytes", "WAL", Unit::Bytes, |row, _| row.bytes.into()),
    F::new("bytes_per_second", "Bytes a second", Unit::BytesPerSecond, |row, s| rate(row.bytes, s))
        .head("MB/S"),
    F::new("records", "Records", Unit::Count, |row, _| row.records.into()),
    F::new("records_per_second", "Records/s", Unit::PerSecond, |row, s| rate(row.records, s)),
    F::new("record_bytes", "Bytes/record", Unit::Bytes, |row, _| of_records(row, row.bytes)),
    F::new("full_page_images", "Full-page images", Unit::Count, |row, _| {
        row.full_page_images.into()
    }),
    F::new("images_per_second", "Page images/s", Unit::PerSecond, |row, s| {
        rate(row.full_page_images, s)
    }),
    F::new("image_share", "Images%", Unit::Share, |row, _| of_records(row, row.full_page_images)),
    F::new("buffers_full", "Buffers full", Unit::Count, |row, _| row.buffers_full.into())
        .help("number of times that it had to write WAL because the buffers were full"),
    F::new("full_per_second", "Buffers full/s", Unit::PerSecond, |row, s| {
        rate(row.buffers_full, s)
    }),
];

/// Blank without records.
fn of_records(row: &WalRow, n: u64) -> Cell {
    match row.records {
        0 => "".into(),
        records => per(n as f64, records as f64),
    }
}

/// The WAL that each kind of process inserted, most first.
pub fn table(interval: &Interval, wish: &RowOptions) -> Table {
    let figures = Picked::of_pane(choose!(
        FIELDS,
        "process, bytes_per_second, records_per_second, record_bytes:1, images_per_second, \
         image_share:2, full_per_second"
    ));
    let line = |row: &WalRow| {
        let cells = figures.cells(row, interval.instrumented_seconds);
        Row { tone: Tone::IO, ..Row::new(&*row.process, cells) }
    };
    let rows = interval.wal.iter().filter(|row| accepts(wish, &[&row.process])).map(line).collect();
    Table::from_rows(figures.columns, rows)
}
