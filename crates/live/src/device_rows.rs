// SPDX-License-Identifier: PostgreSQL
//! Rows about the server's devices and the I/O of its processes, from the kernel's counters.

use std::sync::Arc;

use device::{Devices, DiskCounters, GroupCounters, IoCounters, Reading};
use recording::{Batch, DeviceRow, ServerIoRow, SettingRow};

use crate::devices::DeviceReading;

/// Turns the changes between readings of one server's counters into rows.
#[derive(Debug, Default)]
pub struct DeviceRows {
    found: Option<Arc<Devices>>,
    before: Option<Reading>,
    /// The processes' counters, which not every reading has, and when they were read.
    server: Option<(GroupCounters, u64)>,
}

impl DeviceRows {
    /// Adds changes since the previous reading, and descriptions of locations and devices if they
    /// were resolved again.
    pub fn add(&mut self, (found, reading): DeviceReading, batch: &mut Batch) {
        let direct: Vec<_> = found
            .locations
            .iter()
            .flat_map(|at| found.under(at))
            .map(|device| device.number)
            .collect();
        if let Some(before) = &self.before {
            let interval_ns = reading.devices_ns.saturating_sub(before.devices_ns);
            for (number, now) in &reading.devices {
                let (Ok(now), Some(Ok(then))) = (now, before.devices.get(number)) else { continue };
                // Another device may have taken the same number.
                if then.sequence == now.sequence {
                    let direct = direct.contains(number);
                    batch.devices.push(device_row(then, now, interval_ns, direct));
                }
            }
        }
        if let Ok(now) = &reading.server {
            let before = self.server.replace((now.clone(), reading.processes_ns));
            if let Some((then, since)) = before.filter(|(then, _)| then.started == now.started) {
                let interval_ns = reading.processes_ns.saturating_sub(since);
                batch.server_io.push(io_row(&then, now, interval_ns));
            }
        }
        if self.found.as_ref().is_none_or(|known| !Arc::ptr_eq(known, &found)) {
            batch.settings.extend(describe(&found));
        }
        (self.found, self.before) = (Some(found), Some(reading));
    }
}

fn device_row(
    then: &DiskCounters,
    now: &DiskCounters,
    interval_ns: u64,
    direct: bool,
) -> DeviceRow {
    let more = |of: fn(&DiskCounters) -> u64| of(now).saturating_sub(of(then));
    let ns = |of: fn(&DiskCounters) -> u64| more(of).saturating_mul(1_000_000);
    let bytes = |of: fn(&DiskCounters) -> u64| more(of).saturating_mul(512);
    let flushes = now.flushes.zip(then.flushes);
    DeviceRow {
        device: now.name.as_str().into(),
        interval_ns,
        direct,
        reads: more(|c| c.reads),
        read_bytes: bytes(|c| c.sectors_read),
        read_ns: ns(|c| c.read_ms),
        writes: more(|c| c.writes),
        written_bytes: bytes(|c| c.sectors_written),
        write_ns: ns(|c| c.write_ms),
        flushes: flushes.map(|(now, then)| now.count.saturating_sub(then.count)),
        flush_ns: flushes.map(|(now, then)| now.ms.saturating_sub(then.ms) * 1_000_000),
        busy_ns: ns(|c| c.busy_ms),
        queue_ns: ns(|c| c.queue_ms),
        in_flight: now.in_flight,
        ..DeviceRow::default()
    }
}

fn io_row(then: &GroupCounters, now: &GroupCounters, interval_ns: u64) -> ServerIoRow {
    let more = |of: fn(&IoCounters) -> u64| of(&now.total).saturating_sub(of(&then.total));
    ServerIoRow {
        interval_ns,
        processes: now.processes.len() as u64,
        refused: now.refused as u64,
        reads: more(|c| c.reads),
        read_bytes: more(|c| c.read_bytes),
        writes: more(|c| c.writes),
        written_bytes: more(|c| c.written_bytes),
        device_read_bytes: more(|c| c.device_read_bytes),
        device_written_bytes: more(|c| c.device_written_bytes),
        ..ServerIoRow::default()
    }
}

/// Locations of the server's files and their devices, as text.
fn describe(devices: &Devices) -> Vec<SettingRow> {
    let mut rows = Vec::new();
    let mut add = |name: String, value: String| {
        rows.push(SettingRow {
            group: "machine".into(),
            name: name.into(),
            value: value.into(),
            source: "kernel".into(),
            ..SettingRow::default()
        });
    };
    for location in &devices.locations {
        let name = match &location.kind {
            device::LocationKind::Data => "data directory".to_string(),
            device::LocationKind::Wal => "write-ahead log".to_string(),
            device::LocationKind::Tablespace { oid } => format!("tablespace {oid}"),
            device::LocationKind::Log => "server log".to_string(),
            _ => location.path.display().to_string(),
        };
        let mut value = location.path.display().to_string();
        if let Some(system) = location.file_system.and_then(|at| devices.file_systems.get(at)) {
            value.push_str(&format!(" on {} ({}", system.kind, system.options));
            value.push_str(&format!(",{})", system.super_options));
        }
        let under: Vec<&str> = devices.under(location).iter().map(|d| d.name.as_str()).collect();
        if !under.is_empty() {
            value.push_str(&format!(" on {}", under.join(", ")));
        }
        add(name, value);
    }
    for device in &devices.devices {
        let mut parts = Vec::new();
        parts.extend(device.model.as_ref().map(|model| format!("model {}", model.trim())));
        parts.extend(device.size_bytes.map(|size| format!("{size} bytes")));
        parts.extend(device.rotational.map(|is| format!("rotational {is}")));
        parts.extend(device.scheduler.as_ref().map(|name| format!("scheduler {name}")));
        parts.extend(device.write_cache.as_ref().map(|name| format!("cache {name}")));
        if !parts.is_empty() {
            add(format!("device {}", device.name), parts.join(", "));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::{Requests, System};

    #[test]
    fn devices_have_rows_from_the_second_reading_on() {
        let (system, pid) = (System::live(), std::process::id());
        let found = Arc::new(Devices::resolve(&system, &std::env::temp_dir(), Some(pid)));
        let (mut rows, mut batch) = (DeviceRows::default(), Batch::default());
        rows.add((found.clone(), Reading::take(&found)), &mut batch);
        assert!(batch.devices.is_empty() && batch.server_io.is_empty());
        assert!(!std::mem::take(&mut batch.settings).is_empty());
        rows.add((found.clone(), Reading::take(&found)), &mut batch);
        assert!(batch.settings.is_empty());
        let server = &batch.server_io[0];
        assert!(server.processes >= 1 && server.interval_ns > 0);
    }

    #[test]
    fn each_figure_is_the_increase_of_its_own_counter_in_its_own_unit() {
        let counters = |n: u64| DiskCounters {
            name: "sda".into(),
            reads: 100 + 2 * n,
            sectors_read: 200 + 3 * n,
            read_ms: 300 + 5 * n,
            writes: 400 + 7 * n,
            sectors_written: 500 + 11 * n,
            write_ms: 600 + 13 * n,
            busy_ms: 700 + 17 * n,
            queue_ms: 800 + 19 * n,
            in_flight: 30 + n,
            flushes: Some(Requests { count: 900 + 23 * n, sectors: 0, ms: 1000 + 29 * n }),
            ..DiskCounters::default()
        };
        let row = device_row(&counters(0), &counters(1), 77, true);
        assert_eq!(
            (&*row.device, row.interval_ns, row.direct, row.in_flight),
            ("sda", 77, true, 31)
        );
        assert_eq!((row.reads, row.read_bytes, row.read_ns), (2, 3 * 512, 5_000_000));
        assert_eq!((row.writes, row.written_bytes, row.write_ns), (7, 11 * 512, 13_000_000));
        assert_eq!((row.flushes, row.flush_ns), (Some(23), Some(29_000_000)));
        assert_eq!((row.busy_ns, row.queue_ns), (17_000_000, 19_000_000));
        let row = io_row(&group(5, 0), &group(5, 1), 88);
        assert_eq!((row.interval_ns, row.processes, row.refused), (88, 0, 3));
        assert_eq!((row.reads, row.read_bytes, row.device_read_bytes), (2, 3, 5));
        assert_eq!((row.writes, row.written_bytes, row.device_written_bytes), (7, 11, 13));
    }

    fn group(started: u64, n: u64) -> GroupCounters {
        let total = IoCounters {
            reads: 100 + 2 * n,
            read_bytes: 200 + 3 * n,
            device_read_bytes: 300 + 5 * n,
            writes: 400 + 7 * n,
            written_bytes: 500 + 11 * n,
            device_written_bytes: 600 + 13 * n,
            cancelled_bytes: 0,
        };
        GroupCounters { started, taken: 0, total, processes: Default::default(), refused: 3 }
    }

    #[test]
    fn only_the_same_device_and_server_have_a_row_since_they_were_read_last() {
        let found =
            Arc::new(Devices::resolve(&System::live(), std::path::Path::new("/nowhere"), None));
        let empty = Reading::take(&found);
        let (mut rows, mut batch) = (DeviceRows::default(), Batch::default());
        let mut add = |at: u64, sequence: u64, server: Option<GroupCounters>| {
            let disk = DiskCounters {
                reads: at,
                sequence: Some(sequence),
                name: "sda".into(),
                ..DiskCounters::default()
            };
            let mut reading = empty.clone();
            (reading.devices_ns, reading.processes_ns) = (at, 1000 + at);
            reading.devices = [("8:0".parse().unwrap(), Ok(disk))].into();
            reading.server = server.ok_or(device::Problem::NoAccounting);
            rows.add((found.clone(), reading), &mut batch);
            let devices = std::mem::take(&mut batch.devices);
            let server = std::mem::take(&mut batch.server_io);
            (
                devices
                    .iter()
                    .map(|device| (device.interval_ns, device.reads, device.direct))
                    .next(),
                server.iter().map(|row| (row.interval_ns, row.reads)).next(),
            )
        };
        assert_eq!(add(10, 1, Some(group(5, 0))), (None, None));
        assert_eq!(add(30, 1, Some(group(5, 1))), (Some((20, 20, false)), Some((20, 2))));
        assert_eq!(add(60, 2, None), (None, None), "another disk of that number");
        assert_eq!(add(100, 2, Some(group(5, 3))), (Some((40, 40, false)), Some((70, 4))));
        assert_eq!(add(150, 2, Some(group(6, 4))), (Some((50, 50, false)), None), "another server");
    }
}
