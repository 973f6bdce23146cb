// SPDX-License-Identifier: PostgreSQL
//! The storage pane: files, commits, checkpoints, devices, and slow operations.

use segment::interval::Interval;

use super::{checkpoint_text, commits, devices, files, processes, recorded, relations, wal, Io};
use crate::events::Row;
use crate::rows::{accepts, RowOptions};
use crate::table::PaneSection;
use crate::units::duration;

/// All sections; `io` is `None` until it has been read.
pub fn page(interval: &Interval, io: Option<&Io>, wish: &RowOptions) -> Vec<PaneSection> {
    let section = |title: &str, lines: Vec<String>, table| PaneSection {
        title: title.to_string(),
        lines,
        table,
    };
    let files = files::files(interval, wish);
    let nothing = match files.rows.is_empty() {
        true if wish.filter.is_empty() => vec!["no operation ended in this interval".to_string()],
        true => vec!["no row matches the filter".to_string()],
        false => Vec::new(),
    };
    let mut notes = nothing;
    if let Some(io) = io {
        let used = interval.files.iter().filter_map(|row| row.tablespace.as_deref());
        notes.extend(io.tablespaces.legend(used));
    }
    let mut sections =
        vec![section("Files", notes, Some(files).filter(|table| !table.rows.is_empty()))];
    let processes = files::processes(interval, wish);
    if !processes.rows.is_empty() {
        sections.push(section("By kind of process", Vec::new(), Some(processes)));
    }
    sections.push(section("Commits", commits::lines(interval), None));
    if let Some((notes, table)) = io.and_then(|io| relations::table(io, interval, wish)) {
        sections.push(section("Relations, busiest first", notes, Some(table)));
    }
    let inserted = wal::table(interval, wish);
    if !inserted.rows.is_empty() {
        sections.push(section("WAL", Vec::new(), Some(inserted)));
    }
    let Some(io) = io else {
        let reading = "reading checkpoints, devices and slow operations".to_string();
        sections.push(section("Below", vec![reading], None));
        return sections;
    };
    sections.push(section("Checkpoints", checkpoint_text::lines(io, interval), None));
    match &io.recorded {
        Some(storage) => sections.push(section(
            "Devices",
            recorded::notes(storage),
            recorded::table(storage, wish),
        )),
        None => sections.push(section("Devices", devices::notes(io), devices::table(io, wish))),
    }
    if let Some(table) = processes::table(io, interval, wish) {
        let title = "Page cache and devices, by process";
        sections.push(section(title, Vec::new(), Some(table)));
    }
    sections.push(section("Slow operations, latest last", slow(io, interval, wish), None));
    sections
}

/// "3.2 s ago [4711] checkpointer sync: 1.201 s: pg_xact/000C"
fn slow(io: &Io, interval: &Interval, wish: &RowOptions) -> Vec<String> {
    let line = |row: &Row| {
        let ago = row.time.map_or("-".to_string(), |at| {
            format!("{} ago", duration((interval.time - at).max(0.0)))
        });
        let process = row.process.as_deref().map_or(String::new(), |kind| format!(" {kind}"));
        format!("{ago} [{}]{process} {}", row.pid, row.text)
    };
    let mut lines: Vec<String> = io
        .slow
        .iter()
        .filter(|row| accepts(wish, &[&row.text, row.process.as_deref().unwrap_or("")]))
        .map(line)
        .collect();
    if lines.is_empty() {
        lines.push("none among the stored events (pg_tally.slow_threshold)".to_string());
    }
    lines
}
