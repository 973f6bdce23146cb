// SPDX-License-Identifier: PostgreSQL
//! What the kernel reports about the server's processes: bytes they read and wrote, and bytes that reached
//! devices.

use device::IoFigures;
use segment::interval::Interval;

use super::files::megabytes;
use super::Io;
use crate::rows::{accepts, left, right, texts, Wish};
use crate::table::{Row, Table, Tone};
use crate::units::{count, percent};

/// How many processes are shown.
const MOST: usize = 8;

/// The server, the devices under it, and its busiest processes; `None`: the kernel was not asked.
pub fn table(io: &Io, interval: &Interval, wish: &Wish) -> Option<Table> {
    let figures = io.devices.as_ref()?.figures.as_ref()?;
    let server = figures.server.as_ref()?;
    let columns = vec![
        left("PROCESS", 0),
        right("READS/S", 1),
        right("R MB/S", 0),
        right("FROM DEVICES MB/S", 0),
        right("CACHED%", 0),
        right("WRITES/S", 2),
        right("W MB/S", 0),
        right("TO DEVICES MB/S", 0),
        right("CANCELLED MB/S", 3),
    ];
    let mut rows = vec![line("whole server".to_string(), &server.figures, Tone::IO)];
    let (read, written) =
        (figures.devices_read_bytes_per_second, figures.devices_written_bytes_per_second);
    if let (Some(read), Some(written)) = (read, written) {
        rows.push(devices(read, written));
    }
    let kind = |pid: u32| {
        let is_it =
            |session: &&segment::interval::SessionRow| u32::try_from(session.pid) == Ok(pid);
        interval.sessions.iter().find(is_it).map_or("", |session| session.kind.as_str())
    };
    let named = server.processes.iter().map(|row| (format!("{} {}", row.pid, kind(row.pid)), row));
    let shown = named.filter(|(name, _)| accepts(wish, &[name]));
    rows.extend(
        shown
            .take(MOST)
            .map(|(name, row)| line(name.trim_end().to_string(), &row.figures, Tone::Plain)),
    );
    Some(Table::of(columns, rows))
}

/// The devices' own figures, for all processes.
fn devices(read: f64, written: f64) -> Row {
    let name = "devices, all processes".to_string();
    let mut cells = vec![String::new(); 9];
    cells[0] = name.clone();
    cells[3] = megabytes(read);
    cells[7] = megabytes(written);
    Row::new(name, texts(cells))
}

fn line(name: String, f: &IoFigures, tone: Tone) -> Row {
    Row {
        key: name.clone(),
        cells: texts(vec![
            name,
            count(f.reads_per_second),
            megabytes(f.read_bytes_per_second),
            megabytes(f.device_read_bytes_per_second),
            f.from_page_cache_percent.map_or(String::new(), |share| percent(share / 100.0)),
            count(f.writes_per_second),
            megabytes(f.written_bytes_per_second),
            megabytes(f.device_written_bytes_per_second),
            megabytes(f.cancelled_bytes_per_second),
        ]),
        tone,
        ..Row::default()
    }
}
