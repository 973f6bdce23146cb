// SPDX-License-Identifier: PostgreSQL
//! WAL insertion by kind of process, as a table.

use segment::interval::Interval;
use segment::wal::WalRow;

use super::files::{megabytes, rate};
use crate::rows::{accepts, left, right, texts, Wish};
use crate::table::{Row, Table, Tone};
use crate::units::{bytes, count, percent};

/// What each kind of process inserted, most first.
pub fn table(interval: &Interval, wish: &Wish) -> Table {
    let columns = vec![
        left("INSERTED BY", 0),
        right("MB/S", 0),
        right("RECORDS/S", 0),
        right("BYTES/RECORD", 1),
        right("PAGE IMAGES/S", 0),
        right("IMAGES%", 2),
        right("BUFFERS FULL/S", 0),
    ];
    let rows = interval.wal.iter().filter(|row| accepts(wish, &[&row.process]));
    let rows = rows.map(|row| line(row, interval)).collect();
    Table::of(columns, rows)
}

fn line(row: &WalRow, interval: &Interval) -> Row {
    let per_second = |n: u64| count(rate(n as f64, interval));
    let of_records = |n: f64| (row.records > 0).then(|| n / row.records as f64);
    Row {
        key: row.process.clone(),
        cells: texts(vec![
            row.process.clone(),
            megabytes(rate(row.bytes as f64, interval)),
            per_second(row.records),
            of_records(row.bytes as f64).map_or(String::new(), bytes),
            per_second(row.full_page_images),
            of_records(row.full_page_images as f64).map_or(String::new(), percent),
            per_second(row.buffers_full),
        ]),
        tone: Tone::IO,
        ..Row::default()
    }
}
