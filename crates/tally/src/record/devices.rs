// SPDX-License-Identifier: PostgreSQL
//! Reads the counters of the server's devices and the kernel's I/O counters of its processes, in a
//! separate thread, because a mount that does not respond may block it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use device::{DeviceNumber, Devices, DiskCounters, IoCounters, Reading, System};
use recording::{DeviceRow, ServerIoRow, SettingRow};

/// How long to wait for an answer.
const PATIENCE: Duration = Duration::from_millis(200);
/// How often to look for locations and devices; tablespaces may be created or dropped.
const ANEW: Duration = Duration::from_secs(60);

/// Whether to read the processes' counters in addition to the devices'.
type Question = bool;

/// The counters of one reading.
#[derive(Debug)]
struct Answer {
    reading: Reading,
    /// The devices that directly hold files of the server.
    direct: Vec<DeviceNumber>,
    /// Descriptions of locations and devices, if they were looked for again.
    locations: Option<Vec<SettingRow>>,
}

/// Watches the devices of one server.
#[derive(Debug)]
pub struct Watch {
    ask: Sender<Question>,
    answers: Receiver<Answer>,
    asked: bool,
    disks: BTreeMap<DeviceNumber, DiskCounters>,
    disks_ns: u64,
    server: Option<(IoCounters, u64, u64)>,
}

/// Changes since the previous reading.
#[derive(Debug, Default)]
pub struct Seen {
    /// One row per device.
    pub devices: Vec<DeviceRow>,
    /// I/O of the server's processes.
    pub server: Option<ServerIoRow>,
    /// Descriptions of locations and devices, if they were looked for again.
    pub locations: Vec<SettingRow>,
}

impl Watch {
    /// Starts the thread for the server in a data directory; `pid` is its postmaster.
    pub fn start(directory: PathBuf, pid: Option<u32>) -> Option<Watch> {
        let (ask, questions) = channel();
        let (answer, answers) = channel();
        std::thread::Builder::new()
            .name("devices".to_string())
            .spawn(move || work(&directory, pid, &questions, &answer))
            .ok()?;
        let (disks, server) = (BTreeMap::new(), None);
        Some(Watch { ask, answers, asked: false, disks, disks_ns: 0, server })
    }

    /// Changes since the previous reading, empty if the answer is late; with `processes` also those of
    /// the server's processes.
    pub fn look(&mut self, processes: bool) -> Seen {
        if !self.asked {
            // Fails if the thread has ended.
            self.asked = self.ask.send(processes).is_ok();
        }
        match self.answers.recv_timeout(PATIENCE) {
            Ok(answer) => {
                self.asked = false;
                self.take(answer)
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Seen::default(),
        }
    }

    fn take(&mut self, answer: Answer) -> Seen {
        let mut seen = Seen { locations: answer.locations.unwrap_or_default(), ..Seen::default() };
        let reading = answer.reading;
        let interval_ns = reading.devices_ns.saturating_sub(self.disks_ns);
        let mut disks = BTreeMap::new();
        for (number, counters) in reading.devices {
            let Ok(now) = counters else { continue };
            // Another device may have taken the same number.
            let before = self.disks.get(&number).filter(|before| before.sequence == now.sequence);
            if let Some(before) = before {
                let direct = answer.direct.contains(&number);
                seen.devices.push(device_row(before, &now, interval_ns, direct));
            }
            disks.insert(number, now);
        }
        (self.disks, self.disks_ns) = (disks, reading.devices_ns);
        if let Ok(server) = reading.server {
            if let Some((before, since, started)) = self.server {
                let interval_ns = reading.processes_ns.saturating_sub(since);
                if started == server.started {
                    let refused = server.refused as u64;
                    let mut row = io_row(before, server.total, interval_ns);
                    (row.processes, row.refused) = (server.processes.len() as u64, refused);
                    seen.server = Some(row);
                }
            }
            self.server = Some((server.total, reading.processes_ns, server.started));
        }
        seen
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

fn io_row(then: IoCounters, now: IoCounters, interval_ns: u64) -> ServerIoRow {
    let more = |of: fn(&IoCounters) -> u64| of(&now).saturating_sub(of(&then));
    ServerIoRow {
        interval_ns,
        reads: more(|c| c.reads),
        read_bytes: more(|c| c.read_bytes),
        writes: more(|c| c.writes),
        written_bytes: more(|c| c.written_bytes),
        device_read_bytes: more(|c| c.device_read_bytes),
        device_written_bytes: more(|c| c.device_written_bytes),
        ..ServerIoRow::default()
    }
}

/// Answers until the channel of questions is closed.
fn work(
    directory: &std::path::Path,
    pid: Option<u32>,
    questions: &Receiver<Question>,
    answers: &Sender<Answer>,
) {
    let mut found: Option<(Devices, Instant)> = None;
    while let Ok(processes) = questions.recv() {
        let known = found.take().filter(|(_, looked)| looked.elapsed() < ANEW);
        let anew = known.is_none();
        let (devices, looked) = known
            .unwrap_or_else(|| (Devices::resolve(&System::live(), directory, pid), Instant::now()));
        let reading =
            if processes { Reading::take(&devices) } else { Reading::of_devices(&devices) };
        let direct = devices
            .locations
            .iter()
            .flat_map(|location| devices.under(location))
            .map(|device| device.number)
            .collect();
        let locations = anew.then(|| describe(&devices));
        found = Some((devices, looked));
        if answers.send(Answer { reading, direct, locations }).is_err() {
            return;
        }
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

    #[test]
    fn devices_have_rows_from_the_second_reading_on() {
        let mut watch = Watch::start(std::env::temp_dir(), Some(std::process::id())).unwrap();
        let first = watch.look(true);
        assert!(first.devices.is_empty() && first.server.is_none());
        assert!(!first.locations.is_empty());
        let second = watch.look(true);
        assert!(second.locations.is_empty());
        let server = second.server.unwrap();
        assert!(server.processes >= 1 && server.interval_ns > 0);
    }
}
