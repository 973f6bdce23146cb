// SPDX-License-Identifier: PostgreSQL
//! Checkpoints, from the events that the checkpointer puts down.

use segment::interval::Interval;
use serde::Serialize;

use super::Io;
use crate::events::Row;
use crate::model::units::{duration, whole};

/// How the events begin.
const BEGINS: &str = "checkpoint begins: ";
const ENDS: &str = "checkpoint ends: ";

/// One that is under way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Running {
    /// When it began, seconds since 1970.
    pub begun: Option<f64>,
    /// Why: "time" or "request".
    pub reason: String,
    /// For how long it has been running.
    pub seconds: Option<f64>,
}

/// One that has ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Checkpoint {
    /// When it ended, seconds since 1970.
    pub ended: Option<f64>,
    /// Why it was made: "time" or "request".
    pub reason: String,
    /// How long it took.
    pub seconds: f64,
    /// Of that, operations on the files of SLRUs.
    pub slru_seconds: f64,
    /// Of that, writing buffers, the pauses between them included.
    pub write_seconds: f64,
    /// Of that, syncing files.
    pub sync_seconds: f64,
    /// Buffers written.
    pub buffers: u64,
    /// Files synced.
    pub files_synced: u64,
    /// The longest sync.
    pub longest_sync_seconds: f64,
    /// The file that it was of.
    pub longest_sync_file: Option<String>,
    /// WAL files made.
    pub wal_added: u64,
    /// WAL files removed.
    pub wal_removed: u64,
    /// WAL files kept for later.
    pub wal_recycled: u64,
}

/// The reason of a checkpoint that begins with this event.
pub fn begins(text: &str) -> Option<&str> {
    text.strip_prefix(BEGINS)?.strip_prefix("reason=")
}

impl Checkpoint {
    /// The one that ended with this event.
    pub fn of(row: &Row) -> Option<Checkpoint> {
        // The name of a file may hold anything; it is the last.
        let text = row.text.strip_prefix(ENDS)?;
        let (figures, file) = text.split_once(" file=").unwrap_or((text, ""));
        let mut checkpoint = Checkpoint {
            ended: row.time,
            longest_sync_file: (!file.is_empty()).then(|| file.to_string()),
            ..Checkpoint::default()
        };
        for (name, value) in figures.split(' ').filter_map(|pair| pair.split_once('=')) {
            let number = || value.parse::<f64>().ok().filter(|n| n.is_finite());
            let count = || value.parse::<u64>().ok();
            match name {
                "reason" => checkpoint.reason = value.to_string(),
                "total" => checkpoint.seconds = number()?,
                "slru" => checkpoint.slru_seconds = number()?,
                "write" => checkpoint.write_seconds = number()?,
                "sync" => checkpoint.sync_seconds = number()?,
                "buffers" => checkpoint.buffers = count()?,
                "files" => checkpoint.files_synced = count()?,
                "longest" => checkpoint.longest_sync_seconds = number()?,
                "added" => checkpoint.wal_added = count()?,
                "removed" => checkpoint.wal_removed = count()?,
                "recycled" => checkpoint.wal_recycled = count()?,
                _ => {}
            }
        }
        Some(checkpoint)
    }
}

/// What to call the reason.
fn why(reason: &str) -> &str {
    match reason {
        "time" => "because it was time",
        "request" => "on request",
        other => other,
    }
}

/// Of the one under way and of the last one.
pub fn lines(io: &Io, interval: &Interval) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(running) = &io.checkpoint_running {
        let length =
            running.seconds.map_or(String::new(), |seconds| format!(" for {}", duration(seconds)));
        lines.push(format!("running{length}, {}", why(&running.reason)));
    }
    if let Some(last) = &io.checkpoint {
        lines.push(ended(last, interval.time));
    }
    if lines.is_empty() {
        lines.push("none is among the events that are kept".to_string());
    }
    lines
}

fn ended(last: &Checkpoint, now: f64) -> String {
    let ago = last
        .ended
        .map_or(String::new(), |at| format!(" {} ago", duration((now - at).max(0.0).round())));
    let mut text = format!(
        "the last ended{ago}, {}, took {}: write {} ({} buffers), sync {}",
        why(&last.reason),
        duration(last.seconds),
        duration(last.write_seconds),
        whole(last.buffers),
        duration(last.sync_seconds),
    );
    let mut files = format!("{} files", whole(last.files_synced));
    if last.longest_sync_seconds > 0.0 {
        let file = last.longest_sync_file.as_deref().unwrap_or("");
        files.push_str(&format!(", longest {} {file}", duration(last.longest_sync_seconds)));
    }
    text.push_str(&format!(" ({})", files.trim_end()));
    text.push_str(&format!(
        ", SLRUs {}; WAL files: {} added, {} removed, {} recycled",
        duration(last.slru_seconds),
        last.wal_added,
        last.wal_removed,
        last.wal_recycled
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use segment::EventKind;

    fn row(text: &str) -> Row {
        Row {
            number: 1,
            time: Some(1000.0),
            pid: 7,
            process: None,
            database: None,
            user: None,
            kind: EventKind::Checkpoint,
            text: text.to_string(),
            lost: 0,
        }
    }

    const ENDED: &str = "checkpoint ends: reason=time total=26.951 slru=0.002 write=26.810 \
        sync=0.120 buffers=1234 files=32 longest=0.080 added=1 removed=2 recycled=3 \
        file=base/5/a b=c";

    #[test]
    fn what_the_events_say_is_read() {
        assert_eq!(begins("checkpoint begins: reason=request"), Some("request"));
        assert_eq!(begins(ENDED), None);
        let read = Checkpoint::of(&row(ENDED)).unwrap();
        assert_eq!((read.reason.as_str(), read.seconds, read.buffers), ("time", 26.951, 1234));
        assert_eq!(
            (read.slru_seconds, read.write_seconds, read.sync_seconds),
            (0.002, 26.81, 0.12)
        );
        assert_eq!(read.longest_sync_file.as_deref(), Some("base/5/a b=c"));
        assert_eq!((read.wal_added, read.wal_removed, read.wal_recycled), (1, 2, 3));
        assert_eq!((read.files_synced, read.longest_sync_seconds), (32, 0.08));
    }

    #[test]
    fn what_is_no_such_event_is_none() {
        for text in [
            "",
            "checkpoint",
            "checkpoint ends: total=inf",
            "checkpoint ends: total=NaN",
            "checkpoint ends: buffers=-1",
            "checkpoint ends: sync=",
        ] {
            assert_eq!(Checkpoint::of(&row(text)), None, "{text}");
        }
        // A later writer may leave something out, or add to it.
        let short = Checkpoint::of(&row("checkpoint ends: reason=time total=1.5 new=7")).unwrap();
        assert_eq!((short.seconds, short.longest_sync_file), (1.5, None));
    }

    #[test]
    fn the_last_one_is_told_in_a_sentence() {
        let last = Checkpoint::of(&row(ENDED)).unwrap();
        assert_eq!(
            ended(&last, 1012.0),
            "the last ended 12 s ago, because it was time, took 27.0 s: write 26.8 s (1,234 \
             buffers), sync 120 ms (32 files, longest 80 ms base/5/a b=c), SLRUs 2 ms; WAL files: \
             1 added, 2 removed, 3 recycled"
        );
    }
}
