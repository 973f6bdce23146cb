// SPDX-License-Identifier: PostgreSQL
//! Devices and the server's reads and writes from a recording: totals, without the details that only a running
//! machine provides.

use crate::choose;
use recording::{DeviceRow, ServerIoRow};
use serde::Serialize;

use crate::rows::{accepts, RowOptions};
use crate::table::field::{Field, Picked};
use crate::table::{Row, Table, Unit};
use crate::units::{bytes, duration};

/// The recorded figures of devices during an interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RecordedIo {
    /// Where the server's files are, in words.
    pub places: Vec<String>,
    /// The devices.
    pub devices: Vec<Device>,
    /// What the server's processes read and wrote.
    pub server: Option<Server>,
}

/// A block device during some time.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Device {
    /// For example "nvme0n1".
    pub name: String,
    /// Whether the server's files are directly on it, rather than on a volume that contains it.
    pub direct: bool,
    /// Reads per second.
    pub reads: f64,
    /// Bytes read per second.
    pub read_bytes: f64,
    /// Mean time of a read, seconds.
    pub read_seconds: Option<f64>,
    /// Writes per second.
    pub writes: f64,
    /// Bytes written per second.
    pub written_bytes: f64,
    /// Mean time of a write, seconds.
    pub write_seconds: Option<f64>,
    /// Flushes per second, if counted.
    pub flushes: Option<f64>,
    /// Mean time of a flush, seconds.
    pub flush_seconds: Option<f64>,
    /// Average number of requests in progress.
    pub queue: f64,
    /// Fraction of the time with at least one request.
    pub utilisation: f64,
}

/// Reads and writes of the server's processes during some time, from the kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Server {
    /// Length of that time, seconds.
    pub seconds: f64,
    /// Number of processes at the end.
    pub processes: u64,
    /// Number of these that could not be read.
    pub refused: u64,
    /// Bytes returned by reads, per second.
    pub read_bytes: f64,
    /// Bytes passed to writes, per second.
    pub written_bytes: f64,
    /// Bytes read from devices, per second.
    pub device_read_bytes: f64,
    /// Bytes of pages dirtied, per second.
    pub device_written_bytes: f64,
}

fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}

impl Device {
    /// Converts the totals of one device.
    pub fn from_row(sum: &DeviceRow) -> Device {
        let length = seconds(sum.interval_ns).max(1e-9);
        let mean = |ns: u64, of: u64| (of > 0).then(|| seconds(ns) / of as f64);
        Device {
            name: sum.device.to_string(),
            direct: sum.direct,
            reads: sum.reads as f64 / length,
            read_bytes: sum.read_bytes as f64 / length,
            read_seconds: mean(sum.read_ns, sum.reads),
            writes: sum.writes as f64 / length,
            written_bytes: sum.written_bytes as f64 / length,
            write_seconds: mean(sum.write_ns, sum.writes),
            flushes: sum.flushes.map(|n| n as f64 / length),
            flush_seconds: mean(sum.flush_ns.unwrap_or(0), sum.flushes.unwrap_or(0)),
            queue: seconds(sum.queue_ns) / length,
            utilisation: seconds(sum.busy_ns) / length,
        }
    }
}

impl Server {
    /// Converts the totals of the server.
    pub fn from_row(sum: &ServerIoRow) -> Server {
        let length = seconds(sum.interval_ns).max(1e-9);
        let rate = |n: u64| n as f64 / length;
        Server {
            seconds: seconds(sum.interval_ns),
            processes: sum.processes,
            refused: sum.refused,
            read_bytes: rate(sum.read_bytes),
            written_bytes: rate(sum.written_bytes),
            device_read_bytes: rate(sum.device_read_bytes),
            device_written_bytes: rate(sum.device_written_bytes),
        }
    }
}

type F = Field<Device>;

/// The columns of recorded devices.
pub const FIELDS: &[F] = &[
    F::new("device", "Device", Unit::Text, |row, _| row.name.as_str().into()),
    F::new("reads_per_second", "Reads", Unit::PerSecond, |row, _| row.reads.into()).head("R/S"),
    F::new("read_bytes_per_second", "Read", Unit::BytesPerSecond, |row, _| row.read_bytes.into())
        .head("R MB/S"),
    F::new("read_seconds", "Read mean", Unit::Seconds, |row, _| row.read_seconds.into())
        .head("R MEAN")
        .expendable(1),
    F::new("writes_per_second", "Writes", Unit::PerSecond, |row, _| row.writes.into()).head("W/S"),
    F::new("written_bytes_per_second", "Written", Unit::BytesPerSecond, |row, _| {
        row.written_bytes.into()
    })
    .head("W MB/S"),
    F::new("write_seconds", "Write mean", Unit::Seconds, |row, _| row.write_seconds.into())
        .head("W MEAN")
        .expendable(1),
    F::new("flushes_per_second", "Flushes", Unit::PerSecond, |row, _| row.flushes.into())
        .head("FLUSH/S")
        .expendable(3),
    F::new("flush_seconds", "Flush mean", Unit::Seconds, |row, _| row.flush_seconds.into())
        .expendable(3),
    F::new("queue", "Queue", Unit::Sessions, |row, _| row.queue.into())
        .help("average number of requests, waiting or in progress")
        .expendable(2),
    F::new("utilisation", "In use", Unit::Share, |row, _| row.utilisation.into())
        .help("share of time with at least one request"),
    F::new("utilisation_percent", "Util%", Unit::Share, |row, _| row.utilisation.min(1.0).into()),
];

/// The devices and their figures; `None` if there is no device to show.
pub fn table(recorded: &RecordedIo, wish: &RowOptions) -> Option<Table> {
    let figures = Picked::of_pane(choose!(
        FIELDS,
        "device, reads_per_second, read_bytes_per_second, read_seconds:1, writes_per_second, \
         written_bytes_per_second, write_seconds:2, flushes_per_second:4, flush_seconds:5, \
         queue:3, utilisation_percent"
    ));
    let row = |device: &Device| {
        let mut row = Row::new(format!("device {}", device.name), figures.cells(device, 1.0));
        // Component devices are indented, as in the live view.
        if !device.direct {
            row.cells[0] = format!("  {}", device.name).into();
        }
        row
    };
    let mut shown: Vec<&Device> =
        recorded.devices.iter().filter(|device| accepts(wish, &[&device.name])).collect();
    shown.sort_by_key(|device| !device.direct);
    let rows: Vec<Row> = shown.into_iter().map(row).collect();
    (!rows.is_empty()).then(|| Table::from_rows(figures.columns, rows))
}

/// The location of the files, what the server read and wrote, and what a recording does not contain.
pub fn notes(recorded: &RecordedIo) -> Vec<String> {
    let mut notes = recorded.places.clone();
    if recorded.devices.is_empty() {
        notes.push("no device was recorded in this interval".to_string());
    }
    if let Some(server) = &recorded.server {
        let refused = match server.refused {
            0 => String::new(),
            n => format!("; {n} processes could not be read"),
        };
        notes.push(format!(
            "over {}, the server's processes read {}/s and wrote {}/s; devices read {}/s for them, \
             and they dirtied {}/s{refused}",
            duration(server.seconds),
            bytes(server.read_bytes),
            bytes(server.written_bytes),
            bytes(server.device_read_bytes),
            bytes(server.device_written_bytes),
        ));
    }
    let missing =
        "a recording contains neither the free space of file systems nor figures per process";
    notes.push(missing.to_string());
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Open;
    use crate::Sort;

    #[test]
    fn each_rate_is_of_its_own_sum_and_of_the_time() {
        let sum = DeviceRow {
            interval_ns: 4_000_000_000,
            reads: 8,
            read_bytes: 12,
            read_ns: 2_000_000_000,
            writes: 20,
            written_bytes: 24,
            flushes: Some(28),
            flush_ns: Some(7_000_000_000),
            ..DeviceRow::default()
        };
        let device = Device::from_row(&sum);
        assert_eq!((device.reads, device.read_bytes, device.read_seconds), (2.0, 3.0, Some(0.25)));
        assert_eq!(
            (device.writes, device.written_bytes, device.write_seconds),
            (5.0, 6.0, Some(0.0))
        );
        assert_eq!((device.flushes, device.flush_seconds), (Some(7.0), Some(0.25)));
        let sum = ServerIoRow {
            interval_ns: 2_000_000_000,
            processes: 9,
            refused: 3,
            read_bytes: 2048,
            written_bytes: 4096,
            device_read_bytes: 6144,
            device_written_bytes: 8192,
            ..ServerIoRow::default()
        };
        let recorded = RecordedIo { server: Some(Server::from_row(&sum)), ..RecordedIo::default() };
        let text = "over 2 s, the server's processes read 1 kB/s and wrote 2 kB/s; devices read 3 kB/s for them, and they dirtied \
                    4 kB/s; 3 processes could not be read";
        assert_eq!(notes(&recorded)[1], text);
    }

    #[test]
    fn sums_become_rates_and_means() {
        let sum = DeviceRow {
            device: "sda".into(),
            interval_ns: 2_000_000_000,
            direct: true,
            writes: 10,
            written_bytes: 4 << 20,
            write_ns: 50_000_000,
            busy_ns: 500_000_000,
            queue_ns: 1_000_000_000,
            ..DeviceRow::default()
        };
        let sda = Device::from_row(&sum);
        assert_eq!((sda.writes, sda.write_seconds, sda.read_seconds), (5.0, Some(0.005), None));
        assert_eq!((sda.flushes, sda.queue, sda.utilisation), (None, 0.5, 0.25));
        let disk = Device { direct: false, name: "disk".to_string(), ..sda.clone() };
        let recorded = RecordedIo { devices: vec![disk, sda], ..RecordedIo::default() };
        let filter = |text: &str| RowOptions {
            sort: Sort::Time,
            reverse: false,
            filter: text.to_string(),
            idle: false,
            open: Open::All,
        };
        let names = |table: &Table| -> Vec<String> {
            table.rows.iter().map(|row| row.cells[0].exact()).collect()
        };
        assert_eq!(names(&table(&recorded, &filter("")).unwrap()), ["sda", "  disk"]);
        assert!(table(&recorded, &filter("nvme")).is_none());
        assert!(notes(&RecordedIo::default()).iter().any(|note| note.contains("no device")));
    }
}
