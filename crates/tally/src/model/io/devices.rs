// SPDX-License-Identifier: PostgreSQL
//! The devices under the server as a table, and in words what has none.

use std::collections::BTreeMap;

use device::{BlockDevice, DeviceFigures, DeviceKind, DeviceNumber, Devices, Place, PlaceKind};

use super::files::megabytes;
use super::{DevicesUnder, Io};
use crate::model::panes::{accepts, left, right, text, Wish};
use crate::model::table::{Row, Table, Tone};
use crate::model::units::{bytes, count, percent};

/// What is kept in a place, in a word.
fn what(place: &Place) -> String {
    match &place.kind {
        PlaceKind::Data => "data".to_string(),
        PlaceKind::Wal => "wal".to_string(),
        PlaceKind::Tablespace { oid } => oid.to_string(),
        PlaceKind::Log => "log".to_string(),
        PlaceKind::Below { name } => one_line(&name.to_string_lossy()),
    }
}

/// Names of files may hold anything.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Some of the names, and how many more there are.
fn some(names: &[String], most: usize, between: &str) -> String {
    let mut text = names[..names.len().min(most)].join(between);
    if names.len() > most {
        text.push_str(&format!("{between}+{}", names.len() - most));
    }
    text
}

/// A device, and how deep it lies below one that holds files.
struct Line<'d> {
    device: &'d BlockDevice,
    depth: usize,
    holds: Vec<String>,
}

/// The devices that hold files, each followed by those that it is made of.
fn lines(found: &Devices) -> Vec<Line<'_>> {
    let mut holds: BTreeMap<DeviceNumber, Vec<String>> = BTreeMap::new();
    for place in &found.places {
        for device in found.under(place) {
            holds.entry(device.number).or_default().push(what(place));
        }
    }
    fn below<'d>(
        found: &'d Devices,
        device: &'d BlockDevice,
        depth: usize,
        holds: &mut BTreeMap<DeviceNumber, Vec<String>>,
        lines: &mut Vec<Line<'d>>,
    ) {
        let names = holds.remove(&device.number).unwrap_or_default();
        if lines.iter().any(|line| line.device.number == device.number) {
            return;
        }
        lines.push(Line { device, depth, holds: names });
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

/// What a device is, for people.
fn kind(device: &BlockDevice) -> String {
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
    if device.rotational == Some(true) {
        text.push_str(", turning");
    }
    text
}

/// Milliseconds, two figures that matter.
fn milliseconds(ms: Option<f64>) -> String {
    ms.map_or_else(|| "-".to_string(), |ms| format!("{ms:.2}"))
}

/// The devices and their figures; `None` where there is none to show.
pub fn table(io: &Io, wish: &Wish) -> Option<Table> {
    let under = io.devices.as_ref()?;
    let columns = vec![
        left("DEVICE", 0),
        left("HOLDS", 0),
        right("R/S", 0),
        right("R MB/S", 0),
        right("R MS", 0),
        right("W/S", 0),
        right("W MB/S", 0),
        right("W MS", 0),
        right("FLUSH/S", 2),
        right("FLUSH MS", 3),
        right("QUEUE", 1),
        right("UTIL%", 0),
        text("WHAT"),
    ];
    let rows: Vec<Row> = lines(&under.found)
        .into_iter()
        .filter(|line| accepts(wish, &[&line.device.name, &line.holds.join(" ")]))
        .map(|line| {
            let name = format!("{}{}", "  ".repeat(line.depth), line.device.name);
            let figures = figures(under, line.device.number);
            let of = |text: &dyn Fn(&DeviceFigures) -> String| {
                figures.map_or_else(|| "-".to_string(), text)
            };
            let maybe = |n: Option<f64>| n.map_or_else(|| "-".to_string(), count);
            Row {
                key: name.clone(),
                cells: vec![
                    name,
                    some(&line.holds, 3, " "),
                    of(&|f| count(f.reads_per_second)),
                    of(&|f| megabytes(f.read_bytes_per_second)),
                    of(&|f| milliseconds(f.read_ms)),
                    of(&|f| count(f.writes_per_second)),
                    of(&|f| megabytes(f.written_bytes_per_second)),
                    of(&|f| milliseconds(f.write_ms)),
                    of(&|f| maybe(f.flushes_per_second)),
                    of(&|f| milliseconds(f.flush_ms)),
                    of(&|f| format!("{:.2}", f.queue_length)),
                    of(&|f| percent(f.utilisation_percent / 100.0)),
                    kind(line.device),
                ],
                bar: None,
                tone: Tone::Other,
                branches: false,
            }
        })
        .collect();
    (!rows.is_empty()).then_some(Table { columns, rows, bars_after: None })
}

/// What has no device and why, what cannot be read, and what the server itself read and wrote.
pub fn notes(io: &Io) -> Vec<String> {
    let mut notes: Vec<String> = io.devices_problem.iter().cloned().collect();
    let Some(under) = &io.devices else {
        return notes;
    };
    let found = &under.found;
    let mut why: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for place in found.places.iter().filter(|place| found.under(place).is_empty()) {
        let reason = found.why_no_device(place).unwrap_or_else(|| "not known".to_string());
        why.entry(one_line(&reason)).or_default().push(what(place));
    }
    for (reason, places) in why {
        notes.push(format!("no device is known of {}: {reason}", some(&places, 5, ", ")));
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
                "{} on {point}: {} of {} are free",
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
                 them and have {}/s to write{refused}",
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
