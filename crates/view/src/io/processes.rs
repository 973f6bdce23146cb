// SPDX-License-Identifier: PostgreSQL
//! The kernel's figures for the server's processes: bytes that they read and wrote, and bytes that reached
//! devices.

use std::collections::HashMap;

use device::IoFigures;
use segment::interval::Interval;

use super::Io;
use crate::rows::{accepts, left, RowOptions};
use crate::table::field::{Field, Picked};
use crate::table::{Cell, Row, Table, Tone, Unit};

/// Maximum number of processes to show.
const MOST: usize = 8;

/// The server, the devices under it, and its busiest processes; `None` if the kernel's figures were not read.
pub fn table(io: &Io, interval: &Interval, wish: &RowOptions) -> Option<Table> {
    let figures = io.devices.as_ref()?.figures.as_ref()?;
    let server = figures.server.as_ref()?;
    let figures_of = Picked::all(FIELDS);
    let line = |name: &str, of: &IoFigures, tone| Row {
        tone,
        ..Row::new(name, figures_of.cells_after([name.into()], of, 0.0))
    };
    let mut rows = vec![line("whole server", &server.figures, Tone::IO)];
    let (read, written) =
        (figures.devices_read_bytes_per_second, figures.devices_written_bytes_per_second);
    if let (Some(read), Some(written)) = (read, written) {
        rows.push(devices(read, written));
    }
    let mut kinds = HashMap::new();
    for session in &interval.sessions {
        kinds.entry(session.pid).or_insert(session.kind.as_str());
    }
    let kind = |pid: u32| {
        i32::try_from(pid).ok().and_then(|pid| kinds.get(&pid)).copied().unwrap_or_default()
    };
    let named = server.processes.iter().map(|row| (format!("{} {}", row.pid, kind(row.pid)), row));
    let shown = named.filter(|(name, _)| accepts(wish, &[name]));
    rows.extend(
        shown.take(MOST).map(|(name, row)| line(name.trim_end(), &row.figures, Tone::Plain)),
    );
    Some(Table::from_rows(figures_of.columns_after([left("PROCESS", 0)]), rows))
}

type F = Field<IoFigures>;

const FIELDS: &[F] = &[
    F::new("reads", "READS/S", Unit::PerSecond, |row, _| row.reads_per_second.into()).expendable(1),
    F::new("read", "R MB/S", Unit::BytesPerSecond, |row, _| row.read_bytes_per_second.into()),
    F::new("device_read", "FROM DEVICES MB/S", Unit::BytesPerSecond, |row, _| {
        row.device_read_bytes_per_second.into()
    }),
    F::new("cached", "CACHED%", Unit::Share, |row, _| {
        row.from_page_cache_percent.map_or("".into(), |share| Cell::from(share / 100.0))
    }),
    F::new("writes", "WRITES/S", Unit::PerSecond, |row, _| row.writes_per_second.into())
        .expendable(2),
    F::new("written", "W MB/S", Unit::BytesPerSecond, |row, _| row.written_bytes_per_second.into()),
    F::new("device_written", "TO DEVICES MB/S", Unit::BytesPerSecond, |row, _| {
        row.device_written_bytes_per_second.into()
    }),
    F::new("cancelled", "CANCELLED MB/S", Unit::BytesPerSecond, |row, _| {
        row.cancelled_bytes_per_second.into()
    })
    .expendable(3),
];

/// The figures of the devices, for all processes.
fn devices(read: f64, written: f64) -> Row {
    let name = "devices, all processes";
    let mut cells = vec![Cell::from(""); 9];
    (cells[0], cells[3], cells[7]) = (name.into(), read.into(), written.into());
    Row::new(name, cells)
}
