// SPDX-License-Identifier: PostgreSQL
//! The table of devices under the server, and notes on paths without a device.

use std::collections::BTreeMap;

use device::{
    BlockDevice, DeviceFigures, DeviceKind, DeviceNumber, Devices, Location, LocationKind,
};

use super::{DevicesUnder, Io, Tablespaces};
use crate::rows::{accepts, left, RowOptions};
use crate::table::field::{Field, Picked};
use crate::table::{Cell, Row, Table, Unit};
use crate::units::{bytes, percent, two};

/// The contents of a location, in a word.
fn what(place: &Location, names: &Tablespaces) -> String {
    match &place.kind {
        LocationKind::Data => "data".to_string(),
        LocationKind::Wal => "wal".to_string(),
        LocationKind::Tablespace { oid } => one_line(names.name(&oid.to_string())),
        LocationKind::Log => "log".to_string(),
        LocationKind::Below { name } => one_line(&name.to_string_lossy()),
    }
}

/// Makes a file name printable; it may contain anything.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// The first `most` names, and how many more there are.
fn some(names: &[String], most: usize, between: &str) -> String {
    let mut text = names[..names.len().min(most)].join(between);
    if names.len() > most {
        text.push_str(&format!("{between}+{}", names.len() - most));
    }
    text
}

/// A device and its depth below a device that holds files.
struct DeviceTreeRow<'d> {
    device: &'d BlockDevice,
    depth: usize,
    holds: Vec<String>,
}

/// The devices that hold files, each followed by its component devices.
fn lines<'d>(found: &'d Devices, names: &Tablespaces) -> Vec<DeviceTreeRow<'d>> {
    let mut holds: BTreeMap<DeviceNumber, Vec<String>> = BTreeMap::new();
    for place in &found.locations {
        for device in found.under(place) {
            holds.entry(device.number).or_default().push(what(place, names));
        }
    }
    fn below<'d>(
        found: &'d Devices,
        device: &'d BlockDevice,
        depth: usize,
        holds: &mut BTreeMap<DeviceNumber, Vec<String>>,
        lines: &mut Vec<DeviceTreeRow<'d>>,
    ) {
        let names = holds.remove(&device.number).unwrap_or_default();
        if lines.iter().any(|line| line.device.number == device.number) {
            return;
        }
        lines.push(DeviceTreeRow { device, depth, holds: names });
        for number in device.made_of.iter().chain(&device.part_of) {
            if let Some(device) = found.device(*number) {
                below(found, device, depth + 1, holds, lines);
            }
        }
    }
    let mut lines = Vec::new();
    for device in &found.devices {
        if holds.contains_key(&device.number) {
            below(found, device, 0, &mut holds, &mut lines);
        }
    }
    lines
}

fn figures(under: &DevicesUnder, number: DeviceNumber) -> Option<&DeviceFigures> {
    let rows = &under.figures.as_ref()?.devices;
    rows.iter().find(|row| row.number == number)?.figures.as_ref()
}

/// Describes a device.
fn kind(device: &BlockDevice, found: &Devices) -> String {
    let mut text = match device.kind {
        DeviceKind::Disk => "disk",
        DeviceKind::Partition => "partition",
        DeviceKind::DeviceMapper => "device mapper",
        DeviceKind::Raid => "RAID",
        DeviceKind::Loop => "loop",
        DeviceKind::Memory => "memory",
        DeviceKind::Network => "network",
    }
    .to_string();
    let more = [device.label.clone(), device.model.clone()];
    let file = device.backing_file.as_ref().map(|file| file.to_string_lossy().into_owned());
    for more in more.into_iter().chain([file]).flatten() {
        text.push_str(&format!(" {}", one_line(&more)));
    }
    let parts: Vec<String> = device
        .made_of
        .iter()
        .map(|number| found.device(*number).map_or(number.to_string(), |part| part.name.clone()))
        .collect();
    if !parts.is_empty() {
        text.push_str(&format!(" of {}", some(&parts, 3, " ")));
    }
    if device.rotational == Some(true) {
        text.push_str(", rotational");
    }
    text
}

type F = Field<DeviceFigures>;

/// The figures of a device.
const FIELDS: &[F] = &[
    F::new("reads", "R/S", Unit::PerSecond, |row, _| row.reads_per_second.into()),
    F::new("read", "R MB/S", Unit::BytesPerSecond, |row, _| row.read_bytes_per_second.into()),
    F::new("read_ms", "R MS", Unit::Number, |row, _| row.read_ms.map(two).into()),
    F::new("writes", "W/S", Unit::PerSecond, |row, _| row.writes_per_second.into()),
    F::new("written", "W MB/S", Unit::BytesPerSecond, |row, _| row.written_bytes_per_second.into()),
    F::new("write_ms", "W MS", Unit::Number, |row, _| row.write_ms.map(two).into()),
    F::new("flushes", "FLUSH/S", Unit::PerSecond, |row, _| row.flushes_per_second.into())
        .expendable(2),
    F::new("flush_ms", "FLUSH MS", Unit::Number, |row, _| row.flush_ms.map(two).into())
        .expendable(3),
    F::new("queue", "QUEUE", Unit::Sessions, |row, _| row.queue_length.into()).expendable(1),
    F::new("use", "UTIL%", Unit::Share, |row, _| (row.utilisation_percent / 100.0).into()),
];

/// The devices and their figures; `None` if there is no device to show.
pub fn table(io: &Io, wish: &RowOptions) -> Option<Table> {
    let under = io.devices.as_ref()?;
    let picked = Picked::all(FIELDS);
    let row = |line: DeviceTreeRow<'_>| {
        let name = format!("{}{}", "  ".repeat(line.depth), line.device.name);
        let mut cells = vec![name.as_str().into(), some(&line.holds, 3, " ").into()];
        cells.extend(match figures(under, line.device.number) {
            Some(figures) => picked.cells(figures, 0.0),
            None => vec![Cell::Empty; FIELDS.len()],
        });
        cells.push(kind(line.device, &under.found).into());
        Row::new(name, cells)
    };
    let rows: Vec<Row> = lines(&under.found, &io.tablespaces)
        .into_iter()
        .filter(|line| accepts(wish, &[&line.device.name, &line.holds.join(" ")]))
        .map(row)
        .collect();
    let mut columns = vec![left("DEVICE", 0), left("HOLDS", 0)];
    columns.extend(picked.columns);
    columns.push(left("WHAT", 4));
    (!rows.is_empty()).then(|| Table::from_rows(columns, rows))
}

/// Paths without a device and the reason, unreadable figures, and what the server itself read and wrote.
pub fn notes(io: &Io) -> Vec<String> {
    let mut notes: Vec<String> = io.devices_problem.iter().cloned().collect();
    let Some(under) = &io.devices else {
        return notes;
    };
    let found = &under.found;
    let mut why: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for place in found.locations.iter().filter(|place| found.under(place).is_empty()) {
        let reason = found.why_no_device(place).unwrap_or_else(|| "reason unknown".to_string());
        let place = match place.kind {
            LocationKind::Tablespace { .. } => {
                format!("tablespace {}", what(place, &io.tablespaces))
            }
            _ => what(place, &io.tablespaces),
        };
        why.entry(one_line(&reason)).or_default().push(place);
    }
    for (reason, places) in why {
        notes.push(format!("{}: {reason}", some(&places, 5, ", ")));
    }
    notes.extend(found.notes.iter().map(|note| one_line(note)));
    let Some(interval) = &under.figures else {
        return notes;
    };
    for row in &interval.devices {
        if let (Some(problem), Some(device)) = (&row.problem, found.device(row.number)) {
            notes.push(format!("{}: {problem}", device.name));
        }
    }
    for row in &interval.file_systems {
        let Some(at) = found.file_systems.iter().find(|f| f.mount_id == row.mount_id) else {
            continue;
        };
        let point = one_line(&at.mount_point.to_string_lossy());
        match (&row.space, &row.problem) {
            (Some(space), _) => notes.push(format!(
                "{} on {point}: {} of {} free",
                at.kind,
                bytes(space.available_bytes as f64),
                bytes(space.total_bytes as f64)
            )),
            (None, Some(problem)) => notes.push(format!("{} on {point}: {problem}", at.kind)),
            (None, None) => {}
        }
    }
    match (&interval.server, &interval.server_problem) {
        (Some(server), _) => {
            let f = &server.figures;
            let cached = f.from_page_cache_percent.map_or(String::new(), |share| {
                format!(" (at least {} % of it from the page cache)", percent(share / 100.0))
            });
            let refused = match server.refused {
                0 => String::new(),
                n => format!("; {n} processes could not be read"),
            };
            notes.push(format!(
                "the server's processes read {}/s{cached} and wrote {}/s; devices read {}/s for \
                 them, and they dirtied {}/s{refused}",
                bytes(f.read_bytes_per_second),
                bytes(f.written_bytes_per_second),
                bytes(f.device_read_bytes_per_second),
                bytes(f.device_written_bytes_per_second),
            ));
        }
        (None, Some(problem)) => notes.push(format!("the server's processes: {problem}")),
        (None, None) => {}
    }
    notes
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use device::{DeviceRow, IoFigures, Problem, ServerIo, Space, SpaceRow, System};
    use tempfile::TempDir;

    use super::*;
    use crate::rows::Open;
    use crate::Sort;

    fn wish(filter: &str) -> RowOptions {
        let filter = filter.to_string();
        RowOptions { sort: Sort::Time, reverse: false, filter, idle: false, open: Open::All }
    }

    fn file(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A data directory on a partition, its WAL and a log on a volume made of it, and
    /// a tablespace in memory, as /proc and /sys would show them.
    fn machine() -> (TempDir, Devices) {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().canonicalize().unwrap();
        for below in ["data/pg_tblspc/16385", "data/log", "data/pg_wal"] {
            std::fs::create_dir_all(at.join(below)).unwrap();
        }
        let mount = |id: u32, number: &str, point: &str, kind: &str| {
            let parent = if id == 100 { 1 } else { 100 };
            format!("{id} {parent} {number} / {point} rw - {kind} {kind} rw\n")
        };
        let below = |path: &str| at.join(path).to_string_lossy().into_owned();
        let mounts = [
            mount(100, "8:1", "/", "ext4"),
            mount(101, "253:0", &below("data/pg_wal"), "xfs"),
            mount(102, "253:0", &below("data/log"), "xfs"),
            mount(103, "0:40", &below("data/pg_tblspc/16385"), "tmpfs"),
        ];
        file(&at.join("proc/self/mountinfo"), &mounts.concat());
        for (number, path) in [("8:0", "sda"), ("8:1", "sda/sda1"), ("253:0", "dm-0")] {
            file(&at.join("sys/devices").join(path).join("dev"), &format!("{number}\n"));
            let link = at.join("sys/dev/block").join(number);
            std::fs::create_dir_all(link.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(at.join("sys/devices").join(path), link).unwrap();
        }
        let devices = at.join("sys/devices");
        file(&devices.join("sda/sda1/partition"), "1\n");
        file(&devices.join("sda/queue/rotational"), "1\n");
        file(&devices.join("sda/device/model"), "ST4000NM\n");
        file(&devices.join("dm-0/dm/name"), "vg-wal\n");
        std::fs::create_dir_all(devices.join("dm-0/slaves")).unwrap();
        let part = devices.join("dm-0/slaves/sda1");
        std::os::unix::fs::symlink(devices.join("sda/sda1"), part).unwrap();
        let system = System::at(at.join("proc"), at.join("sys"));
        let found = Devices::resolve(&system, &at.join("data"), None);
        (folder, found)
    }

    fn row(number: &str, figures: Result<DeviceFigures, Problem>) -> DeviceRow {
        let number = number.parse().unwrap();
        DeviceRow { number, figures: figures.as_ref().ok().copied(), problem: figures.err() }
    }

    fn busy() -> DeviceFigures {
        DeviceFigures {
            reads_per_second: 12.0,
            read_bytes_per_second: 98304.0,
            read_ms: Some(7.25),
            writes_per_second: 1530.0,
            written_bytes_per_second: 12_582_912.0,
            write_ms: Some(0.4),
            flushes_per_second: Some(405.0),
            flush_ms: Some(1.9),
            queue_length: 1.25,
            utilisation_percent: 87.5,
            ..DeviceFigures::default()
        }
    }

    fn io() -> (TempDir, Io) {
        let (folder, found) = machine();
        let mount = |point: &str| {
            let is_it = |f: &&device::FileSystem| f.mount_point.ends_with(point);
            found.file_systems.iter().find(is_it).unwrap().mount_id
        };
        let free = Space {
            total_bytes: 4 << 30,
            free_bytes: 3 << 30,
            available_bytes: 2 << 30,
            inodes: 0,
            inodes_free: 0,
            inodes_available: 0,
        };
        let space = |mount_id, answer: Result<Space, Problem>| SpaceRow {
            mount_id,
            growth_bytes_per_second: None,
            space: answer.as_ref().ok().copied(),
            problem: answer.err(),
        };
        let figures = device::Interval {
            time: 0.0,
            interval_seconds: 1.0,
            devices: vec![
                row("8:0", Ok(DeviceFigures { flushes_per_second: None, ..busy() })),
                row("8:1", Err(Problem::NotCounted)),
                row("253:0", Ok(busy())),
            ],
            file_systems: vec![
                space(mount("/"), Ok(free)),
                space(mount("data/pg_wal"), Err(Problem::NoAnswer)),
            ],
            server: Some(ServerIo {
                figures: IoFigures {
                    reads_per_second: 1.0,
                    read_bytes_per_second: 2_097_152.0,
                    writes_per_second: 1.0,
                    written_bytes_per_second: 12_582_912.0,
                    device_read_bytes_per_second: 98304.0,
                    device_written_bytes_per_second: 12_582_912.0,
                    cancelled_bytes_per_second: 0.0,
                    from_page_cache_percent: Some(95.3125),
                },
                processes_count: 12,
                refused: 2,
                processes: Vec::new(),
            }),
            server_problem: None,
            devices_read_bytes_per_second: None,
            devices_written_bytes_per_second: None,
        };
        let devices = DevicesUnder { found: Arc::new(found), figures: Some(figures) };
        (folder, Io { devices: Some(devices), ..Io::default() })
    }

    #[test]
    fn devices_have_figures_and_other_paths_a_reason() {
        let (folder, io) = io();
        let table = table(&io, &wish("")).unwrap();
        let mut text = format!("{}\n{}\n", table.text(160), table.text(80));
        for note in notes(&io) {
            text.push_str(&note);
            text.push('\n');
        }
        insta::assert_snapshot!(text.replace(&*folder.path().to_string_lossy(), "MACHINE"));
    }

    #[test]
    fn unknown_figures_are_dashes_and_the_filter_applies() {
        let (_folder, mut io) = io();
        assert_eq!(table(&io, &wish("pg_wal")).map(|table| table.rows.len()), None);
        assert_eq!(table(&io, &wish("dm-0")).unwrap().rows.len(), 1);
        if let Some(devices) = &mut io.devices {
            devices.figures = None;
        }
        let table = table(&io, &wish("")).unwrap();
        assert!(table.rows.iter().all(|row| row.cells[2] == Cell::Empty), "{table:?}");
        assert!(notes(&io).iter().any(|note| note.starts_with("tablespace 16385: tmpfs")));
    }

    #[test]
    fn the_first_of_many_names_are_shown() {
        let names: Vec<String> = (1..=5).map(|n| n.to_string()).collect();
        assert_eq!(some(&names, 3, " "), "1 2 3 +2");
        assert_eq!(some(&names, 5, ", "), "1, 2, 3, 4, 5");
        assert_eq!(one_line("a\nb\u{1b}c"), "a?b?c");
    }
}
