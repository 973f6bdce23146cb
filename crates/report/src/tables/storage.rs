// SPDX-License-Identifier: PostgreSQL
//! Storage: files, commits, checkpoints, slow operations, and the devices.

use segment::files::ProcessFileRow;
use segment::interval::{Interval, Timing};
use segment::EventKind;
use view::choose;

use super::{each, timing, SECONDS};
use view::document::{Column, OverTime, Table, Tone, Unit};
use view::events::Row;
use view::io::{Checkpoint, Device, DEVICE_FIELDS, FILE_FIELDS, WAL_FIELDS};
use view::table::field::{rate, Field, Picked};

/// Operations by kind of file and tablespace.
pub fn files(interval: &Interval) -> Table {
    const KEYS: &str =
        "file, tablespace:8, operation, seconds, count, per_second:5, mean_seconds:1, \
                p50_seconds:9, p95_seconds:7, p99_seconds:2, max_seconds:3, bytes:6, \
                bytes_per_second:2, sequential_share:10, failed:4";
    let name = ("files", "File operations");
    let note = "System calls of the server; the kernel's page cache may have served them.";
    Picked::of_document(choose!(FILE_FIELDS, KEYS))
        .table(name, &interval.files, interval.instrumented_seconds, Tone::IO)
        .sorted("seconds")
        .noted(Some(note.to_string()))
}

/// The same by kind of process.
pub fn processes(interval: &Interval) -> Table {
    type F = Field<ProcessFileRow>;
    const FIELDS: &[F] = &[
        F::new("process", "Processes", Unit::Text, |row, _| (&row.process).into()),
        F::new("file", "File", Unit::Text, |row, _| (&row.file).into()),
        F::new("tablespace", "Tablespace", Unit::Text, |row, _| row.tablespace.as_ref().into())
            .expendable(8),
        F::new("operation", "Operation", Unit::Text, |row, _| (&row.operation).into()),
        F::new("seconds", "Time", Unit::Seconds, |row, _| row.seconds.into()),
        F::new("count", "Count", Unit::Count, |row, _| row.count.into()).expendable(4),
        F::new("per_second", "Rate", Unit::PerSecond, |row, s| rate(row.count, s)).expendable(5),
        F::new("mean_seconds", "Mean", Unit::Seconds, |row, _| each(row.seconds, row.count).into())
            .expendable(1),
        F::new("bytes", "Bytes", Unit::Bytes, |row, _| row.bytes.into()).expendable(6),
        F::new("bytes_per_second", "Bytes/s", Unit::BytesPerSecond, |row, s| rate(row.bytes, s))
            .expendable(2),
        F::new("failed", "Failed", Unit::Count, |row, _| row.failed.into()).expendable(4),
    ];
    let name = ("file_processes", "File operations, by kind of process");
    Picked::all(FIELDS)
        .table(name, &interval.file_processes, interval.instrumented_seconds, Tone::IO)
        .sorted("seconds")
}

/// Commits that wrote WAL: by who flushed it, and where their time went.
pub fn commits(interval: &Interval) -> Table {
    let figures = timing();
    let columns = figures.columns_after([Column::new("part", "Part", Unit::Text), SECONDS]);
    let commits = &interval.commits;
    let note = commits.commits_per_flush.map(|n| {
        format!(
            "The first three rows are whole commits, the others their waits. Each flush covered {n:.2} \
             commits."
        )
    });
    let mut table = Table::new("commits", "Commits that wrote WAL", columns).noted(note);
    let parts: [(&str, &Timing); 9] = [
        ("leader (flushed)", &commits.leader),
        ("group-committed", &commits.group_committed),
        ("did not wait", &commits.asynchronous),
        ("waits: insert WAL", &commits.insert),
        ("waits: queue for the flush", &commits.queue),
        ("waits: commit_delay", &commits.delay),
        ("waits: write WAL", &commits.write),
        ("waits: sync WAL", &commits.sync),
        ("waits: replication", &commits.replication),
    ];
    for (part, of) in parts.into_iter().filter(|(_, of)| of.count > 0) {
        let names = [part.into(), of.seconds.into()];
        table.push(Tone::Plain, figures.cells_after(names, of, interval.instrumented_seconds));
    }
    table
}

/// Completed checkpoints, from the events; those before `from` are left out.
pub fn checkpoints(events: &[Row], from: f64) -> Table {
    type F = Field<Checkpoint>;
    const FIELDS: &[F] = &[
        F::new("begun", "Begun", Unit::Time, |row, _| {
            row.ended.map(|end| end - row.seconds).into()
        })
        .expendable(9),
        F::new("ended", "Ended", Unit::Time, |row, _| row.ended.into()),
        F::new("reason", "Reason", Unit::Text, |row, _| row.reason.as_str().into()),
        F::new("seconds", "Took", Unit::Seconds, |row, _| row.seconds.into()),
        F::new("write_seconds", "Write", Unit::Seconds, |row, _| row.write_seconds.into())
            .help("including the pauses between writes"),
        F::new("sync_seconds", "Sync", Unit::Seconds, |row, _| row.sync_seconds.into()),
        F::new("slru_seconds", "SLRUs", Unit::Seconds, |row, _| row.slru_seconds.into())
            .expendable(7),
        F::new("buffers", "Buffers", Unit::Count, |row, _| row.buffers.into()),
        F::new("files_synced", "Files synced", Unit::Count, |row, _| row.files_synced.into())
            .expendable(3),
        F::new("longest_sync_seconds", "Longest sync", Unit::Seconds, |row, _| {
            row.longest_sync_seconds.into()
        })
        .expendable(1),
        F::new("longest_sync_file", "Of file", Unit::Text, |row, _| {
            row.longest_sync_file.as_deref().into()
        })
        .expendable(2),
        F::new("spread", "Spread", Unit::Share, |row, _| row.spread.into())
            .help("duration of writing, as a share of checkpoint_timeout")
            .expendable(13),
        F::new("before_commands_per_second", "Commands before", Unit::PerSecond, |row, _| {
            row.before.and_then(|m| m.commands_per_second).into()
        })
        .help("client commands from the end of the previous checkpoint to the start of this one")
        .expendable(5),
        F::new("during_commands_per_second", "Commands during", Unit::PerSecond, |row, _| {
            row.during.and_then(|m| m.commands_per_second).into()
        })
        .expendable(5),
        F::new("before_handle_seconds", "Handling before", Unit::Seconds, |row, _| {
            row.before.and_then(|m| m.mean_handle_seconds).into()
        })
        .expendable(11),
        F::new("during_handle_seconds", "Handling during", Unit::Seconds, |row, _| {
            row.during.and_then(|m| m.mean_handle_seconds).into()
        })
        .expendable(11),
        F::new("wal_added", "WAL added", Unit::Count, |row, _| row.wal_added.into()).expendable(10),
        F::new("wal_removed", "WAL removed", Unit::Count, |row, _| row.wal_removed.into())
            .expendable(9),
        F::new("wal_recycled", "WAL recycled", Unit::Count, |row, _| row.wal_recycled.into())
            .expendable(8),
    ];
    let name = ("checkpoints", "Completed checkpoints");
    Picked::all(FIELDS)
        .table(name, &ended(events, from), 0.0, Tone::Plain)
        .sorted("ended")
        .over_time(OverTime::Rows("ended", "ended"))
}

/// The checkpoints that ended after `from`, oldest first.
pub fn ended(events: &[Row], from: f64) -> Vec<Checkpoint> {
    let mut all: Vec<Checkpoint> = Vec::new();
    for row in events.iter().filter(|row| row.time.is_some_and(|time| time >= from)) {
        let Some(payload) = &row.payload else { continue };
        match (Checkpoint::from_payload(payload, row.time), all.last_mut()) {
            (Some(ended), _) => all.push(ended),
            (None, Some(last)) => last.add(payload),
            (None, None) => {}
        }
    }
    all
}

/// The WAL that each kind of process inserted.
pub fn wal(interval: &Interval) -> Table {
    const KEYS: &str = "process, bytes, bytes_per_second, records, full_page_images, buffers_full";
    let name = ("wal", "WAL inserted, by kind of process");
    Picked::of_document(choose!(WAL_FIELDS, KEYS)).table(
        name,
        &interval.wal,
        interval.instrumented_seconds,
        Tone::IO,
    )
}

/// Slow operations.
pub fn slow(events: &[Row], from: f64) -> Table {
    let is_slow =
        |row: &&Row| row.kind == EventKind::Slow && row.time.is_some_and(|time| time >= from);
    super::others::event_table("slow", "Slow operations", events.iter().filter(is_slow))
}

/// The devices under the server.
pub fn devices(devices: &[Device]) -> Table {
    const KEYS: &str = "device, reads_per_second, read_bytes_per_second, read_seconds:1, \
                writes_per_second, written_bytes_per_second, write_seconds:1, \
                flushes_per_second:3, flush_seconds:3, queue:2, utilisation";
    let name = ("devices", "Devices under the server");
    Picked::of_document(choose!(DEVICE_FIELDS, KEYS)).table(name, devices, 0.0, Tone::Plain)
}
