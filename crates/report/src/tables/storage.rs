// SPDX-License-Identifier: PostgreSQL
//! The storage side: files, commits, checkpoints, what was slow, the devices below.

use segment::interval::{Interval, Timing};
use segment::EventKind;

use super::{rate, timing, MAX, MEAN, P99, SECONDS, TIMING};
use view::document::{Column, Table, Tone, Unit};
use view::events::Row;
use view::io::{Checkpoint, Device};

const FILE: Column = Column::new("file", "File", Unit::Text);
const OPERATION: Column = Column::new("operation", "Operation", Unit::Text);
const BYTES: Column = Column::new("bytes", "Bytes", Unit::Bytes).expendable(6);
const BYTES_RATE: Column =
    Column::new("bytes_per_second", "Bytes a second", Unit::BytesPerSecond).expendable(2);

/// Operations by kind of file and tablespace.
pub fn files(interval: &Interval) -> Table {
    let columns = vec![
        FILE,
        Column::new("tablespace", "Tablespace", Unit::Text).expendable(8),
        OPERATION,
        SECONDS,
        super::COUNT.expendable(0),
        super::RATE,
        MEAN,
        super::P50.expendable(9),
        Column::new("p95_seconds", "p95", Unit::Seconds).expendable(7),
        P99,
        MAX,
        BYTES,
        BYTES_RATE,
        Column::new("sequential_share", "Sequential", Unit::Share)
            .help("started where the previous one on the same descriptor ended")
            .expendable(10),
        Column::new("failed", "Failed", Unit::Count).expendable(4),
    ];
    let mut table = Table::new("files", "Operations on files", columns).sorted("seconds").noted(
        Some("The server's calls; the kernel's page cache may have answered them.".to_string()),
    );
    for row in &interval.files {
        let of = &row.timing;
        let cells = vec![
            (&row.file).into(),
            row.tablespace.as_ref().into(),
            (&row.operation).into(),
            of.seconds.into(),
            of.count.into(),
            rate(of.count as f64, interval).into(),
            of.mean_seconds.into(),
            of.p50_seconds.into(),
            row.p95_seconds.into(),
            of.p99_seconds.into(),
            of.max_seconds.into(),
            row.bytes.into(),
            rate(row.bytes as f64, interval).into(),
            row.sequential_share().into(),
            row.failed.into(),
        ];
        table.push(Tone::IO, cells);
    }
    table
}

/// The same by kind of process.
pub fn processes(interval: &Interval) -> Table {
    let columns = vec![
        Column::new("process", "Processes", Unit::Text),
        FILE,
        Column::new("tablespace", "Tablespace", Unit::Text).expendable(8),
        OPERATION,
        SECONDS,
        super::COUNT,
        super::RATE,
        MEAN,
        BYTES,
        BYTES_RATE,
        Column::new("failed", "Failed", Unit::Count).expendable(4),
    ];
    let mut table =
        Table::new("file_processes", "Operations on files, by kind of process", columns)
            .sorted("seconds");
    for row in &interval.file_processes {
        let cells = vec![
            (&row.process).into(),
            (&row.file).into(),
            row.tablespace.as_ref().into(),
            (&row.operation).into(),
            row.seconds.into(),
            row.count.into(),
            rate(row.count as f64, interval).into(),
            super::each(row.seconds, row.count).into(),
            row.bytes.into(),
            rate(row.bytes as f64, interval).into(),
            row.failed.into(),
        ];
        table.push(Tone::IO, cells);
    }
    table
}

/// Commits that wrote WAL: by who flushed it, and where their time went.
pub fn commits(interval: &Interval) -> Table {
    let mut columns = vec![Column::new("part", "Part", Unit::Text), SECONDS];
    columns.extend(TIMING);
    let commits = &interval.commits;
    let note = commits.commits_per_flush.map(|n| {
        format!(
            "The first three are whole commits, the others their waits. Each flush covered {n:.2} \
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
        let mut row = vec![part.into(), of.seconds.into()];
        row.extend(timing(of, interval));
        table.push(Tone::Plain, row);
    }
    table
}

/// Checkpoints that ended, from the events; those before `from` are left out.
pub fn checkpoints(events: &[Row], from: f64) -> Table {
    let seconds = |key, title| Column::new(key, title, Unit::Seconds);
    let count = |key, title| Column::new(key, title, Unit::Count);
    let rate = |key, title| Column::new(key, title, Unit::PerSecond);
    let columns = vec![
        Column::new("begun", "Begun", Unit::Time).expendable(9),
        Column::new("ended", "Ended", Unit::Time),
        Column::new("reason", "Reason", Unit::Text),
        seconds("seconds", "Took"),
        seconds("write_seconds", "Write").help("including the pauses between writes"),
        seconds("sync_seconds", "Sync"),
        seconds("slru_seconds", "SLRUs").expendable(7),
        count("buffers", "Buffers"),
        count("files_synced", "Files synced").expendable(3),
        seconds("longest_sync_seconds", "Longest sync").expendable(1),
        Column::new("longest_sync_file", "Of file", Unit::Text).expendable(2),
        Column::new("spread", "Spread", Unit::Share)
            .help("writing, as a share of checkpoint_timeout")
            .expendable(13),
        rate("before_commands_per_second", "Commands before")
            .help("of the clients, from the end of the previous checkpoint to its start")
            .expendable(5),
        rate("during_commands_per_second", "Commands during").expendable(5),
        seconds("before_handle_seconds", "Handling before").expendable(11),
        seconds("during_handle_seconds", "Handling during").expendable(11),
        count("wal_added", "WAL added").expendable(10),
        count("wal_removed", "WAL removed").expendable(9),
        count("wal_recycled", "WAL recycled").expendable(8),
    ];
    let mut table = Table::new("checkpoints", "Checkpoints that ended", columns).sorted("ended");
    for it in ended(events, from) {
        let cells = vec![
            it.ended.map(|end| end - it.seconds).into(),
            it.ended.into(),
            it.reason.as_str().into(),
            it.seconds.into(),
            it.write_seconds.into(),
            it.sync_seconds.into(),
            it.slru_seconds.into(),
            it.buffers.into(),
            it.files_synced.into(),
            it.longest_sync_seconds.into(),
            it.longest_sync_file.as_deref().into(),
            it.spread.into(),
            it.before.and_then(|m| m.commands_per_second).into(),
            it.during.and_then(|m| m.commands_per_second).into(),
            it.before.and_then(|m| m.mean_handle_seconds).into(),
            it.during.and_then(|m| m.mean_handle_seconds).into(),
            it.wal_added.into(),
            it.wal_removed.into(),
            it.wal_recycled.into(),
        ];
        table.push(Tone::Plain, cells);
    }
    table
}

/// The checkpoints that ended after `from`, oldest first.
pub fn ended(events: &[Row], from: f64) -> Vec<Checkpoint> {
    let mut all: Vec<Checkpoint> = Vec::new();
    let ended = events.iter().filter(|row| {
        row.kind == EventKind::Checkpoint && row.time.is_some_and(|time| time >= from)
    });
    for row in ended {
        match (Checkpoint::of(row), all.last_mut()) {
            (Some(ended), _) => all.push(ended),
            (None, Some(last)) => last.add(row),
            (None, None) => {}
        }
    }
    all
}

/// The WAL that each kind of process inserted.
pub fn wal(interval: &Interval) -> Table {
    let columns = vec![
        Column::new("process", "Processes", Unit::Text),
        Column::new("bytes", "WAL", Unit::Bytes),
        BYTES_RATE.expendable(0),
        Column::new("records", "Records", Unit::Count),
        Column::new("full_page_images", "Full-page images", Unit::Count),
        Column::new("buffers_full", "Buffers full", Unit::Count)
            .help("how often it had to write WAL because the buffers were full"),
    ];
    let mut table = Table::new("wal", "WAL inserted, by kind of process", columns);
    for row in &interval.wal {
        let cells = vec![
            row.process.as_str().into(),
            row.bytes.into(),
            rate(row.bytes as f64, interval).into(),
            row.records.into(),
            row.full_page_images.into(),
            row.buffers_full.into(),
        ];
        table.push(Tone::IO, cells);
    }
    table
}

/// What was slow.
pub fn slow(events: &[Row], from: f64) -> Table {
    let is_slow =
        |row: &&Row| row.kind == EventKind::Slow && row.time.is_some_and(|time| time >= from);
    super::others::event_table("slow", "Slow operations", events.iter().filter(is_slow))
}

/// The devices under the server.
pub fn devices(devices: &[Device]) -> Table {
    let rate = |key, title| Column::new(key, title, Unit::PerSecond);
    let bytes = |key, title| Column::new(key, title, Unit::BytesPerSecond);
    let seconds = |key, title| Column::new(key, title, Unit::Seconds).expendable(1);
    let columns = vec![
        Column::new("device", "Device", Unit::Text),
        rate("reads_per_second", "Reads"),
        bytes("read_bytes_per_second", "Read"),
        seconds("read_seconds", "Read mean"),
        rate("writes_per_second", "Writes"),
        bytes("written_bytes_per_second", "Written"),
        seconds("write_seconds", "Write mean"),
        rate("flushes_per_second", "Flushes").expendable(3),
        seconds("flush_seconds", "Flush mean").expendable(3),
        Column::new("queue", "Queue", Unit::Sessions)
            .help("average number of requests, waiting or in progress")
            .expendable(2),
        Column::new("utilisation", "In use", Unit::Share)
            .help("share of time with at least one request"),
    ];
    let mut table = Table::new("devices", "Devices under the server", columns);
    for it in devices {
        let cells = vec![
            it.name.as_str().into(),
            it.reads.into(),
            it.read_bytes.into(),
            it.read_seconds.into(),
            it.writes.into(),
            it.written_bytes.into(),
            it.write_seconds.into(),
            it.flushes.into(),
            it.flush_seconds.into(),
            it.queue.into(),
            it.utilisation.into(),
        ];
        table.push(Tone::Plain, cells);
    }
    table
}
