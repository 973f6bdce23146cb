// SPDX-License-Identifier: PostgreSQL
//! Checkpoints, parsed from the checkpointer's events: one at the start, and three at the
//! end. The first of the three creates a [`Checkpoint`], the others add to it.

use segment::clients::ClientTotals;
use serde::Serialize;

use crate::events::Row;

/// How each kind of event begins.
const BEGINS: &str = "checkpoint begins: ";
const ENDS: &str = "checkpoint ends: ";
const FAILED: &str = "checkpoint failed: ";
const WROTE: &str = "checkpoint wrote: ";
const CLIENTS: &str = "checkpoint clients: ";

/// What all clients did during some time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Meanwhile {
    /// Length of the time, seconds.
    pub seconds: f64,
    /// Messages handled.
    pub commands: u64,
    /// The same per second.
    pub commands_per_second: Option<f64>,
    /// Mean time to handle one, seconds.
    pub mean_handle_seconds: Option<f64>,
}

impl Meanwhile {
    fn of(seconds: f64, commands: u64, handle: f64) -> Meanwhile {
        Meanwhile {
            seconds,
            commands,
            commands_per_second: (seconds > 0.0).then(|| commands as f64 / seconds),
            mean_handle_seconds: (commands > 0).then(|| handle / commands as f64),
        }
    }
}

/// Sums at an instant. Their difference gives the activity since then.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mark {
    clients: ClientTotals,
    time: f64,
}

impl Mark {
    /// The activity since then, up to `time`, when the sums were `now`.
    pub fn until(&self, now: &ClientTotals, time: f64) -> Option<Meanwhile> {
        let (commands, handle) = now.since(&self.clients)?;
        Some(Meanwhile::of((time - self.time).max(0.0), commands, handle))
    }
}

/// A running checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Running {
    /// When it began, seconds since 1970.
    pub begun: Option<f64>,
    /// Why: "time", "wal", "request" or "shutdown".
    pub reason: String,
    /// How long it has been running, seconds.
    pub seconds: Option<f64>,
    /// Client activity from the end of the checkpoint before to the start of this one.
    pub before: Option<Meanwhile>,
    /// Client activity since the start.
    pub during: Option<Meanwhile>,
}

/// Buffers that were written to one tablespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Written {
    /// "pg_default", "pg_global", the OID of another tablespace, "slru", or "others" for those
    /// that did not fit.
    pub tablespace: String,
    /// Number of buffers.
    pub buffers: u64,
}

/// A completed checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Checkpoint {
    /// When it ended, seconds since 1970.
    pub ended: Option<f64>,
    /// Its reason: "time", "wal", "request" or "shutdown".
    pub reason: String,
    /// How long it took, seconds.
    pub seconds: f64,
    /// Of that, operations on the files of SLRUs.
    pub slru_seconds: f64,
    /// Of that, writing buffers, including the pauses between writes.
    pub write_seconds: f64,
    /// Of that, syncing files.
    pub sync_seconds: f64,
    /// Buffers written.
    pub buffers: u64,
    /// The same by tablespace, most buffers first.
    pub buffers_by_tablespace: Vec<Written>,
    /// Time since the start of the checkpoint before, seconds.
    pub interval_seconds: Option<f64>,
    /// `write_seconds` as a fraction of checkpoint_timeout.
    pub spread: Option<f64>,
    /// The fraction that writing should take: checkpoint_completion_target.
    pub target: Option<f64>,
    /// Files synced.
    pub files_synced: u64,
    /// The longest sync, seconds.
    pub longest_sync_seconds: f64,
    /// The file of the longest sync.
    pub longest_sync_file: Option<String>,
    /// WAL files added.
    pub wal_added: u64,
    /// WAL files removed.
    pub wal_removed: u64,
    /// WAL files recycled.
    pub wal_recycled: u64,
    /// Client activity from the end of the checkpoint before to the start of this one.
    pub before: Option<Meanwhile>,
    /// Client activity while it ran.
    pub during: Option<Meanwhile>,
    /// Client activity from its end to the start of the next, or until now.
    pub after: Option<Meanwhile>,
    /// The sums at its end.
    #[serde(skip)]
    pub mark: Option<Mark>,
}

/// Parses `name=value` pairs.
fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(' ').filter_map(|pair| pair.split_once('='))
}

fn find<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    pairs(text).find(|(key, _)| *key == name).map(|(_, value)| value)
}

fn seconds(text: &str, name: &str) -> Option<f64> {
    find(text, name)?.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0)
}

/// Parses `before=1.5 before_commands=2 before_handle=0.1`.
fn meanwhile(text: &str, when: &str) -> Option<Meanwhile> {
    let commands = find(text, &format!("{when}_commands"))?.parse().ok()?;
    let handle = seconds(text, &format!("{when}_handle"))?;
    Some(Meanwhile::of(seconds(text, when)?, commands, handle))
}

fn mark(text: &str, time: Option<f64>) -> Option<Mark> {
    let mut parts = find(text, "mark")?.split(':');
    let clients = ClientTotals {
        resets: parts.next()?.parse().ok()?,
        commands: parts.next()?.parse().ok()?,
        seconds: parts.next()?.parse().ok().filter(|n: &f64| n.is_finite())?,
        off_stretches: parts.next()?.parse().ok()?,
    };
    Some(Mark { clients, time: time? })
}

/// Whether this event reports a failed checkpoint.
pub fn has_failed(row: &Row) -> bool {
    row.text.starts_with(FAILED)
}

/// A checkpoint of which only the start is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Begun {
    pub pid: i32,
    pub time: Option<f64>,
    pub reason: String,
    pub before: Option<Meanwhile>,
    mark: Option<Mark>,
}

impl Begun {
    /// Parses the event at a checkpoint's start.
    pub fn of(row: &Row) -> Option<Begun> {
        let text = row.text.strip_prefix(BEGINS)?;
        Some(Begun {
            pid: row.pid,
            time: row.time,
            reason: find(text, "reason")?.to_string(),
            before: meanwhile(text, "before"),
            mark: mark(text, row.time),
        })
    }

    /// The running checkpoint at `time`, when the clients' sums were `now`.
    pub fn running(&self, now: &ClientTotals, time: f64) -> Running {
        Running {
            begun: self.time,
            reason: self.reason.clone(),
            seconds: self.time.map(|begun| (time - begun).max(0.0)),
            before: self.before,
            during: self.mark.and_then(|mark| mark.until(now, time)),
        }
    }
}

impl Checkpoint {
    /// Parses the first event at a checkpoint's end.
    pub fn of(row: &Row) -> Option<Checkpoint> {
        // The file name comes last, since it may contain anything.
        let text = row.text.strip_prefix(ENDS)?;
        let (figures, file) = text.split_once(" file=").unwrap_or((text, ""));
        let mut checkpoint = Checkpoint {
            ended: row.time,
            longest_sync_file: (!file.is_empty()).then(|| file.to_string()),
            ..Checkpoint::default()
        };
        for (name, value) in pairs(figures) {
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

    /// Adds what a further event of the same process reports.
    pub fn add(&mut self, row: &Row) {
        if let Some(text) = row.text.strip_prefix(WROTE) {
            self.target = seconds(text, "target");
            self.spread = seconds(text, "spread");
            self.interval_seconds = seconds(text, "interval");
            self.buffers_by_tablespace = pairs(text)
                .filter(|(name, _)| !matches!(*name, "target" | "spread" | "interval"))
                .filter_map(|(name, value)| {
                    Some(Written { tablespace: name.to_string(), buffers: value.parse().ok()? })
                })
                .collect();
        } else if let Some(text) = row.text.strip_prefix(CLIENTS) {
            self.before = meanwhile(text, "before");
            self.during = meanwhile(text, "during");
            self.mark = mark(text, row.time);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use segment::EventKind;

    pub fn row(text: &str) -> Row {
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

    pub const ENDED: &str = "checkpoint ends: reason=time total=26.951 slru=0.002 write=26.810 \
        sync=0.120 buffers=1234 files=32 longest=0.080 added=1 removed=2 recycled=3 \
        file=base/5/a b=c";
    pub const WROTE: &str = "checkpoint wrote: target=0.900 spread=0.894 interval=30.001 slru=4 \
        pg_default=1200 16385=30";
    pub const CLIENTS: &str = "checkpoint clients: before=3.000 before_commands=3000 \
        before_handle=1.500000 during=27.000 during_commands=13500 during_handle=13.500000 \
        mark=1:20000:20.5:2";

    #[test]
    fn events_are_parsed() {
        let begun = Begun::of(&row("checkpoint begins: reason=request")).unwrap();
        assert_eq!((begun.reason.as_str(), begun.before), ("request", None));
        assert_eq!(Begun::of(&row(ENDED)), None);
        let mut read = Checkpoint::of(&row(ENDED)).unwrap();
        assert_eq!((read.reason.as_str(), read.seconds, read.buffers), ("time", 26.951, 1234));
        assert_eq!(
            (read.slru_seconds, read.write_seconds, read.sync_seconds),
            (0.002, 26.81, 0.12)
        );
        assert_eq!(read.longest_sync_file.as_deref(), Some("base/5/a b=c"));
        assert_eq!((read.wal_added, read.wal_removed, read.wal_recycled), (1, 2, 3));
        assert_eq!((read.files_synced, read.longest_sync_seconds), (32, 0.08));
        read.add(&row(WROTE));
        assert_eq!((read.target, read.spread), (Some(0.9), Some(0.894)));
        let written: Vec<_> =
            read.buffers_by_tablespace.iter().map(|w| (w.tablespace.as_str(), w.buffers)).collect();
        assert_eq!(written, [("slru", 4), ("pg_default", 1200), ("16385", 30)]);
        read.add(&row(CLIENTS));
        let (before, during) = (read.before.unwrap(), read.during.unwrap());
        assert_eq!((before.commands, before.commands_per_second), (3000, Some(1000.0)));
        assert_eq!((during.seconds, during.mean_handle_seconds), (27.0, Some(0.001)));
    }

    #[test]
    fn activity_since_the_start_is_computed_unless_the_sums_were_reset_or_incomplete() {
        let begun =
            Begun::of(&row("checkpoint begins: reason=wal mark=1:20000:20.500000:2")).unwrap();
        let now = ClientTotals { resets: 1, commands: 21000, seconds: 22.5, off_stretches: 2 };
        let running = begun.running(&now, 1004.0);
        let during = running.during.unwrap();
        assert_eq!((during.seconds, during.commands), (4.0, 1000));
        assert_eq!(during.mean_handle_seconds, Some(0.002));
        for other in [
            ClientTotals { resets: 2, ..now },
            ClientTotals { off_stretches: 3, ..now },
            ClientTotals { commands: 10, ..now },
        ] {
            assert_eq!(begun.running(&other, 1004.0).during, None, "{other:?}");
        }
        for text in ["1:2:3", "1:2:inf:0", "a:2:3:4", "", "1:-2:3:4"] {
            let row = row(&format!("checkpoint begins: reason=wal mark={text}"));
            assert_eq!(Begun::of(&row).unwrap().mark, None, "{text}");
        }
    }

    #[test]
    fn other_events_are_not_checkpoints() {
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
        // A later version may omit or add fields.
        let short = Checkpoint::of(&row("checkpoint ends: reason=time total=1.5 new=7")).unwrap();
        assert_eq!((short.seconds, short.longest_sync_file), (1.5, None));
    }
}
