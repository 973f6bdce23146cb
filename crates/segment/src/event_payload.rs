// SPDX-License-Identifier: PostgreSQL
//! The values of an event: decodes them from the payload, formats them as text, and parses that text, which is what
//! recordings have. `libtally/src/event_text.c` formats the same text.

use std::fmt::{Display, Formatter, Result as Done};
use std::str::FromStr;

use serde::Serialize;

use crate::clients::{ClientActivity, ClientTotals};
use crate::clock::Clock;
use crate::event_kind::EventKind;
use crate::layout::{
    self, checkpoint_clients, checkpoint_completed, checkpoint_failed, checkpoint_reason,
    checkpoint_space, checkpoint_started, checkpoint_writes, client_activity, client_totals,
    event_kind, slow_operation, text_at, u32_at, u64_at,
};

/// The values of an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Payload {
    /// Something took long.
    Slow(SlowOperation),
    /// A checkpoint has started.
    Started(CheckpointStarted),
    /// A checkpoint has ended.
    Completed(Box<Checkpoint>),
    /// What the checkpoint that has just ended wrote.
    Writes(CheckpointWrites),
    /// Client activity before and during the checkpoint.
    Clients(CheckpointClients),
    /// A checkpoint has failed.
    Failed(CheckpointFailed),
}

/// An operation that took long.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SlowOperation {
    /// "sync", or a wait event: "Lock:transactionid".
    pub operation: String,
    /// Duration, seconds.
    pub seconds: f64,
    /// The rest of the text: ", after 1 write of 8192 bytes: pg_xact/000C".
    pub details: String,
}

/// A checkpoint that has started.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckpointStarted {
    /// The reason: "time", "wal", "request", "shutdown" or "unknown".
    pub reason: String,
    /// Client activity since the end of the previous checkpoint.
    pub before: Option<ClientActivity>,
    /// The clients' totals at the start; recordings do not have them.
    pub clients: Option<ClientTotals>,
}

/// A completed checkpoint. The fields up to `wal_recycled`, except `buffers_by_tablespace`, `interval_seconds`,
/// `spread` and `target`, come from its first event; the rest comes from the events that follow.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Checkpoint {
    /// When it ended, seconds since 1970.
    pub ended: Option<f64>,
    /// Its reason: "time", "wal", "request", "shutdown" or "unknown".
    pub reason: String,
    /// Duration, seconds.
    pub seconds: f64,
    /// Part of `seconds`: operations on files of SLRUs.
    pub slru_seconds: f64,
    /// Part of `seconds`: writing buffers, including the pauses between writes.
    pub write_seconds: f64,
    /// Part of `seconds`: syncing files.
    pub sync_seconds: f64,
    /// Buffers written.
    pub buffers: u64,
    /// Buffers by tablespace, most buffers first.
    pub buffers_by_tablespace: Vec<Written>,
    /// Time since the start of the previous checkpoint, seconds.
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
    /// Client activity from the end of the previous checkpoint to the start of this one.
    pub before: Option<ClientActivity>,
    /// Client activity during the checkpoint.
    pub during: Option<ClientActivity>,
    /// Client activity from its end to the start of the next checkpoint, or until now.
    pub after: Option<ClientActivity>,
}

impl Checkpoint {
    /// The checkpoint of its first event. `None`: the event is of another kind.
    pub fn from_payload(payload: &Payload, ended: Option<f64>) -> Option<Checkpoint> {
        match payload {
            Payload::Completed(checkpoint) => Some(Checkpoint { ended, ..(**checkpoint).clone() }),
            _ => None,
        }
    }

    /// Adds the values of another event of the same process.
    pub fn add(&mut self, payload: &Payload) {
        match payload {
            Payload::Writes(writes) => {
                self.buffers_by_tablespace.clone_from(&writes.buffers);
                (self.target, self.spread) = (writes.target, writes.spread);
                self.interval_seconds = writes.interval_seconds;
            }
            Payload::Clients(clients) => {
                (self.before, self.during) = (clients.before, clients.during)
            }
            _ => {}
        }
    }
}

/// The writes of a checkpoint.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckpointWrites {
    /// checkpoint_completion_target.
    pub target: Option<f64>,
    /// Time spent writing, as a fraction of checkpoint_timeout.
    pub spread: Option<f64>,
    /// Time since the start of the previous checkpoint, seconds.
    pub interval_seconds: Option<f64>,
    /// Buffers by tablespace, SLRUs first, then most buffers first.
    pub buffers: Vec<Written>,
}

/// Buffers written to one tablespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Written {
    /// "pg_default", "pg_global", the OID of another tablespace, "slru", or "others" for tablespaces
    /// that are not listed.
    pub tablespace: String,
    /// Number of buffers.
    pub buffers: u64,
}

/// Client activity before and during a checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckpointClients {
    /// From the end of the previous checkpoint to the start of this one.
    pub before: Option<ClientActivity>,
    /// During the checkpoint.
    pub during: Option<ClientActivity>,
    /// The clients' totals after its end; recordings do not have them.
    pub clients: Option<ClientTotals>,
}

/// A checkpoint that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckpointFailed {
    /// The reason, as in [`CheckpointStarted::reason`].
    pub reason: String,
    /// How long it had been running, seconds.
    pub seconds: f64,
}

fn seconds_at(bytes: &[u8], at: usize) -> f64 {
    u64_at(bytes, at) as f64 / 1e9
}

fn reason_at(bytes: &[u8], at: usize) -> String {
    let name = match u32_at(bytes, at) {
        checkpoint_reason::TIME => "time",
        checkpoint_reason::WAL => "wal",
        checkpoint_reason::REQUEST => "request",
        checkpoint_reason::SHUTDOWN => "shutdown",
        _ => "unknown",
    };
    name.to_string()
}

fn activity_at(bytes: &[u8], at: usize) -> Option<ClientActivity> {
    let (time, handle) = (
        seconds_at(bytes, at + client_activity::NS),
        seconds_at(bytes, at + client_activity::HANDLE_NS),
    );
    let commands = u64_at(bytes, at + client_activity::COMMANDS);
    (time > 0.0).then(|| ClientActivity::from_totals(time, commands, handle))
}

fn totals_at(bytes: &[u8], at: usize, clock: &Clock) -> Option<ClientTotals> {
    (u32_at(bytes, at + client_totals::KNOWN) != 0).then(|| ClientTotals {
        resets: u32_at(bytes, at + client_totals::RESETS),
        commands: u64_at(bytes, at + client_totals::COMMANDS),
        seconds: clock.seconds(u64_at(bytes, at + client_totals::TICKS)),
        off_stretches: u64_at(bytes, at + client_totals::OFF_STRETCHES),
    })
}

fn slow_at(bytes: &[u8]) -> SlowOperation {
    use slow_operation as slow;
    let (moved, writes) = (u64_at(bytes, slow::BYTES), u64_at(bytes, slow::WRITES));
    let path = text_at(bytes, slow::PATH, slow::PATH_BYTES);
    let mut details = match (u32_at(bytes, slow::ERROR), writes, moved) {
        (0, 0, 0) => String::new(),
        (0, 0, _) => format!(", {moved} bytes"),
        (0, 1, _) => format!(", after 1 write of {moved} bytes"),
        (0, ..) => format!(", after {writes} writes of {moved} bytes"),
        _ => ", failed".to_string(),
    };
    if !path.is_empty() {
        details.push_str(": ");
        details.push_str(&path);
    }
    let operation = text_at(bytes, slow::OPERATION, slow::OPERATION_BYTES);
    SlowOperation { operation, seconds: seconds_at(bytes, slow::NS), details }
}

fn completed_at(bytes: &[u8]) -> Checkpoint {
    use checkpoint_completed as completed;
    let count = |at| u64::from(u32_at(bytes, at));
    let file = text_at(bytes, completed::LONGEST_SYNC_FILE, completed::LONGEST_SYNC_FILE_BYTES);
    Checkpoint {
        reason: reason_at(bytes, completed::REASON),
        seconds: seconds_at(bytes, completed::NS),
        slru_seconds: seconds_at(bytes, completed::SLRU_NS),
        write_seconds: seconds_at(bytes, completed::WRITE_NS),
        sync_seconds: seconds_at(bytes, completed::SYNC_NS),
        longest_sync_seconds: seconds_at(bytes, completed::LONGEST_SYNC_NS),
        buffers: u64_at(bytes, completed::BUFFERS),
        files_synced: count(completed::FILES_SYNCED),
        wal_added: count(completed::WAL_ADDED),
        wal_removed: count(completed::WAL_REMOVED),
        wal_recycled: count(completed::WAL_RECYCLED),
        longest_sync_file: Some(file).filter(|file| !file.is_empty()),
        ..Checkpoint::default()
    }
}

fn writes_at(bytes: &[u8]) -> CheckpointWrites {
    use {checkpoint_space as space, checkpoint_writes as writes};
    let part = |at| Some(f64::from(u32_at(bytes, at)) / 1e6);
    let written = |i| {
        let at = writes::SPACE + space::SIZE * i;
        Written {
            tablespace: match u32_at(bytes, at + space::TABLESPACE) {
                layout::SPACE_SLRU => "slru".to_string(),
                layout::SPACE_DEFAULT => "pg_default".to_string(),
                layout::SPACE_GLOBAL => "pg_global".to_string(),
                layout::SPACE_OTHERS => "others".to_string(),
                oid => oid.to_string(),
            },
            buffers: u64::from(u32_at(bytes, at + space::BUFFERS)),
        }
    };
    let spaces = layout::CHECKPOINT_SPACES.min(u32_at(bytes, writes::SPACES) as usize);
    CheckpointWrites {
        target: part(writes::TARGET_PPM),
        spread: part(writes::SPREAD_PPM),
        interval_seconds: Some(seconds_at(bytes, writes::INTERVAL_NS))
            .filter(|&seconds| seconds > 0.0),
        buffers: (0..spaces).map(written).collect(),
    }
}

impl Payload {
    /// Decodes the bytes of an event of this kind. `None`: the kind has no payload.
    pub(crate) fn of_bytes(kind: u32, bytes: &[u8], clock: &Clock) -> Option<Payload> {
        Some(match kind {
            event_kind::SLOW_OPERATION => Payload::Slow(slow_at(bytes)),
            event_kind::CHECKPOINT_STARTED => Payload::Started(CheckpointStarted {
                reason: reason_at(bytes, checkpoint_started::REASON),
                before: activity_at(bytes, checkpoint_started::BEFORE),
                clients: totals_at(bytes, checkpoint_started::CLIENTS, clock),
            }),
            event_kind::CHECKPOINT_COMPLETED => Payload::Completed(Box::new(completed_at(bytes))),
            event_kind::CHECKPOINT_WRITES => Payload::Writes(writes_at(bytes)),
            event_kind::CHECKPOINT_CLIENTS => Payload::Clients(CheckpointClients {
                before: activity_at(bytes, checkpoint_clients::BEFORE),
                during: activity_at(bytes, checkpoint_clients::DURING),
                clients: totals_at(bytes, checkpoint_clients::CLIENTS, clock),
            }),
            event_kind::CHECKPOINT_FAILED => Payload::Failed(CheckpointFailed {
                reason: reason_at(bytes, checkpoint_failed::REASON),
                seconds: seconds_at(bytes, checkpoint_failed::NS),
            }),
            _ => return None,
        })
    }
}

/// " before=30.012 before_commands=51234 before_handle=40.123000", or nothing.
fn put_activity(f: &mut Formatter<'_>, when: &str, activity: &Option<ClientActivity>) -> Done {
    let Some(ClientActivity { seconds, commands, handle_seconds, .. }) = activity else {
        return Ok(());
    };
    write!(f, " {when}={seconds:.3} {when}_commands={commands} {when}_handle={handle_seconds:.6}")
}

impl Display for Payload {
    fn fmt(&self, f: &mut Formatter<'_>) -> Done {
        match self {
            Payload::Slow(slow) => {
                write!(f, "{}: {:.3} s{}", slow.operation, slow.seconds, slow.details)
            }
            Payload::Started(started) => {
                write!(f, "checkpoint begins: reason={}", started.reason)?;
                put_activity(f, "before", &started.before)
            }
            Payload::Completed(checkpoint) => write!(
                f,
                "checkpoint ends: reason={} total={:.3} slru={:.3} write={:.3} sync={:.3} buffers={} \
                 files={} longest={:.3} added={} removed={} recycled={} file={}",
                checkpoint.reason,
                checkpoint.seconds,
                checkpoint.slru_seconds,
                checkpoint.write_seconds,
                checkpoint.sync_seconds,
                checkpoint.buffers,
                checkpoint.files_synced,
                checkpoint.longest_sync_seconds,
                checkpoint.wal_added,
                checkpoint.wal_removed,
                checkpoint.wal_recycled,
                checkpoint.longest_sync_file.as_deref().unwrap_or("")
            ),
            Payload::Writes(writes) => {
                write!(f, "checkpoint wrote:")?;
                let figures = [
                    ("target", writes.target),
                    ("spread", writes.spread),
                    ("interval", writes.interval_seconds),
                ];
                for (name, figure) in figures {
                    figure.map_or(Ok(()), |figure| write!(f, " {name}={figure:.3}"))?;
                }
                writes.buffers.iter().try_for_each(|w| write!(f, " {}={}", w.tablespace, w.buffers))
            }
            Payload::Clients(clients) => {
                write!(f, "checkpoint clients:")?;
                put_activity(f, "before", &clients.before)?;
                put_activity(f, "during", &clients.during)
            }
            Payload::Failed(failed) => {
                write!(f, "checkpoint failed: reason={} total={:.3}", failed.reason, failed.seconds)
            }
        }
    }
}

/// `name=value` pairs.
fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(' ').filter_map(|pair| pair.split_once('='))
}

/// The value of `name`, or the default if there is none. `None`: it is malformed.
fn field<T: Default + FromStr>(text: &str, name: &str) -> Option<T> {
    let found = pairs(text).find(|(key, _)| *key == name);
    found.map_or_else(|| Some(T::default()), |(_, value)| value.parse().ok())
}

fn seconds_of(text: &str) -> Option<f64> {
    text.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0)
}

fn maybe_seconds(text: &str, name: &str) -> Option<f64> {
    pairs(text).find(|(key, _)| *key == name).and_then(|(_, value)| seconds_of(value))
}

fn activity_of(text: &str, when: &str) -> Option<ClientActivity> {
    let seconds = maybe_seconds(text, when)?;
    let commands = field(text, &format!("{when}_commands"))?;
    Some(ClientActivity::from_totals(
        seconds,
        commands,
        maybe_seconds(text, &format!("{when}_handle"))?,
    ))
}

fn completed_of(text: &str) -> Option<Checkpoint> {
    // The file name comes last, because it may contain anything.
    let (figures, file) = text.split_once(" file=").unwrap_or((text, ""));
    let seconds = |name| field(figures, name).filter(|n: &f64| n.is_finite());
    let count = |name| field(figures, name);
    Some(Checkpoint {
        reason: field(figures, "reason")?,
        seconds: seconds("total")?,
        slru_seconds: seconds("slru")?,
        write_seconds: seconds("write")?,
        sync_seconds: seconds("sync")?,
        buffers: count("buffers")?,
        files_synced: count("files")?,
        longest_sync_seconds: seconds("longest")?,
        longest_sync_file: (!file.is_empty()).then(|| file.to_string()),
        wal_added: count("added")?,
        wal_removed: count("removed")?,
        wal_recycled: count("recycled")?,
        ..Checkpoint::default()
    })
}

fn writes_of(text: &str) -> CheckpointWrites {
    let of_tablespace = |(name, value): (&str, &str)| {
        let figure = matches!(name, "target" | "spread" | "interval");
        let buffers = value.parse().ok().filter(|_| !figure)?;
        Some(Written { tablespace: name.to_string(), buffers })
    };
    CheckpointWrites {
        target: maybe_seconds(text, "target"),
        spread: maybe_seconds(text, "spread"),
        interval_seconds: maybe_seconds(text, "interval"),
        buffers: pairs(text).filter_map(of_tablespace).collect(),
    }
}

fn slow_of(text: &str) -> Option<SlowOperation> {
    let (operation, rest) = text.split_once(": ")?;
    let (seconds, details) = rest.split_once(" s")?;
    Some(SlowOperation {
        operation: operation.to_string(),
        seconds: seconds_of(seconds)?,
        details: details.to_string(),
    })
}

impl Payload {
    /// Parses the text of an event, which is all that recordings and segments of earlier writers have. Later versions
    /// may omit or add fields. `None`: events of this kind have no values.
    pub fn of_text(kind: EventKind, text: &str) -> Option<Payload> {
        if kind == EventKind::Slow {
            return slow_of(text).map(Payload::Slow);
        }
        let text = text.strip_prefix("checkpoint ").filter(|_| kind == EventKind::Checkpoint)?;
        let (what, text) = text.split_once(": ")?;
        Some(match what {
            "begins" => Payload::Started(CheckpointStarted {
                reason: field(text, "reason")?,
                before: activity_of(text, "before"),
                clients: None,
            }),
            "ends" => Payload::Completed(Box::new(completed_of(text)?)),
            "wrote" => Payload::Writes(writes_of(text)),
            "clients" => Payload::Clients(CheckpointClients {
                before: activity_of(text, "before"),
                during: activity_of(text, "during"),
                clients: None,
            }),
            "failed" => Payload::Failed(CheckpointFailed {
                reason: field(text, "reason")?,
                seconds: field(text, "total")?,
            }),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ClockKind;

    const ENDED: &str = "checkpoint ends: reason=time total=26.951 slru=0.002 write=26.810 \
        sync=0.120 buffers=1234 files=32 longest=0.080 added=1 removed=2 recycled=3 \
        file=base/5/a b=c";

    fn checkpoint(text: &str) -> Option<Payload> {
        Payload::of_text(EventKind::Checkpoint, text)
    }

    fn completed(text: &str) -> Option<Checkpoint> {
        match checkpoint(text) {
            Some(Payload::Completed(checkpoint)) => Some(*checkpoint),
            _ => None,
        }
    }

    #[test]
    fn values_are_parsed_from_the_words_and_give_the_same_words() {
        for text in [
            ENDED,
            "checkpoint begins: reason=request",
            "checkpoint begins: reason=wal before=5.258 before_commands=3 before_handle=0.001000",
            "checkpoint wrote: target=0.900 spread=0.894 interval=30.001 slru=4 pg_default=1200 16385=30",
            "checkpoint wrote: target=0.900 spread=0.894",
            "checkpoint clients: before=3.000 before_commands=3000 before_handle=1.500000 \
             during=27.000 during_commands=13500 during_handle=13.500000",
            "checkpoint failed: reason=shutdown total=1.234",
        ] {
            assert_eq!(checkpoint(text).unwrap().to_string(), text);
            assert_eq!(Payload::of_text(EventKind::Note, text), None);
        }
        let read = completed(ENDED).unwrap();
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
    fn the_length_of_what_was_slow_is_in_its_text() {
        let seconds = |text| match Payload::of_text(EventKind::Slow, text) {
            Some(Payload::Slow(slow)) => Some(slow.seconds),
            _ => None,
        };
        assert_eq!(seconds("sync: 7.020 s: pg_xact/000C"), Some(7.02));
        assert_eq!(seconds("Lock:transactionid: 1.500 s"), Some(1.5));
        assert_eq!(seconds("fsync: 7.02 s, 1 write of 8 kB since its last: x"), Some(7.02));
        for other in
            ["nothing to be found in 3 words", "sync: inf s", "sync: -1 s", "", ": ", "x:  s"]
        {
            assert_eq!(seconds(other), None, "{other}");
        }
    }

    #[test]
    fn malformed_texts_have_no_values() {
        for text in [
            "",
            "checkpoint",
            "checkpoint ends: total=inf",
            "checkpoint ends: total=NaN",
            "checkpoint ends: buffers=-1",
            "checkpoint ends: sync=",
            "checkpoint begins",
            "checkpoint sleeps: total=1",
        ] {
            assert_eq!(checkpoint(text), None, "{text}");
        }
        let short = completed("checkpoint ends: reason=time total=1.5 new=7").unwrap();
        assert_eq!((short.seconds, short.longest_sync_file), (1.5, None));
    }

    /// Bytes of an event with these words of four and eight bytes.
    fn bytes(narrow: &[(usize, u32)], wide: &[(usize, u64)], texts: &[(usize, &str)]) -> [u8; 232] {
        let mut bytes = [0; 232];
        let narrow = narrow.iter().map(|(at, n)| (*at, n.to_ne_bytes().to_vec()));
        let wide = wide.iter().map(|(at, n)| (*at, n.to_ne_bytes().to_vec()));
        let texts = texts.iter().map(|(at, text)| (*at, text.as_bytes().to_vec()));
        for (at, value) in narrow.chain(wide).chain(texts) {
            bytes[at..at + value.len()].copy_from_slice(&value);
        }
        bytes
    }

    #[test]
    fn each_figure_is_at_its_place() {
        const S: u64 = 1_000_000_000;
        let clock = Clock::recorded(ClockKind::Monotonic, 1e9);
        let text = |kind, bytes: &[u8]| Payload::of_bytes(kind, bytes, &clock).unwrap().to_string();
        let times = [(8, 26 * S), (16, S), (24, 20 * S), (32, 5 * S), (40, 3 * S), (48, 1234)];
        let counts = [(4, 1), (56, 32), (60, 1), (64, 2), (68, 3)];
        let ended = "checkpoint ends: reason=time total=26.000 slru=1.000 write=20.000 sync=5.000 buffers=1234 files=32 \
                     longest=3.000 added=1 removed=2 recycled=3 file=base/5/a";
        assert_eq!(text(8, &bytes(&counts, &times, &[(72, "base/5/a")])), ended);
        let reasons = ["unknown", "time", "wal", "request", "shutdown", "unknown"];
        for (code, reason) in (0..).zip(reasons) {
            let failed = text(11, &bytes(&[(4, code)], &[(8, 2 * S)], &[]));
            assert_eq!(failed, format!("checkpoint failed: reason={reason} total=2.000"));
        }
        let spaces = [
            (4, 5),
            (16, 894_000),
            (20, 900_000),
            (24, 0),
            (28, 4),
            (32, 1663),
            (36, 5),
            (40, 1664),
            (44, 6),
        ];
        let more = [(48, u32::MAX), (52, 7), (56, 16385), (60, 8)];
        let wrote = "checkpoint wrote: target=0.900 spread=0.894 interval=30.000 slru=4 pg_default=5 pg_global=6 others=7 16385=8";
        assert_eq!(text(9, &bytes(&[&spaces[..], &more].concat(), &[(8, 30 * S)], &[])), wrote);
        let activity = |at, n| [(at, n * S), (at + 8, n + 1), (at + 16, (n + 2) * S)];
        let begins =
            "checkpoint begins: reason=wal before=5.000 before_commands=6 before_handle=7.000000";
        assert_eq!(text(7, &bytes(&[(4, 2)], &activity(8, 5), &[])), begins);
        let clients = "checkpoint clients: before=1.000 before_commands=2 before_handle=3.000000 during=6.000 during_commands=7 \
                       during_handle=8.000000";
        assert_eq!(
            text(10, &bytes(&[], &[activity(8, 1), activity(32, 6)].concat(), &[])),
            clients
        );
        for (kind, at) in [(7, 32), (10, 56)] {
            let sums = [(at + 16, 11), (at + 24, 12 * S), (at + 32, 13)];
            let read =
                Payload::of_bytes(kind, &bytes(&[(at, 1), (at + 4, 10)], &sums, &[]), &clock);
            let (Some(Payload::Started(CheckpointStarted { clients, .. }))
            | Some(Payload::Clients(CheckpointClients { clients, .. }))) = read
            else {
                panic!("{read:?}")
            };
            let expected =
                ClientTotals { resets: 10, commands: 11, seconds: 12.0, off_stretches: 13 };
            assert_eq!(clients, Some(expected));
        }
        for (failed, writes, moved, details) in [
            (0, 0, 0, ""),
            (0, 0, 8192, ", 8192 bytes"),
            (0, 1, 8192, ", after 1 write of 8192 bytes"),
            (0, 3, 8192, ", after 3 writes of 8192 bytes"),
            (1, 3, 8192, ", failed"),
        ] {
            let wide = [(8, 7 * S), (16, moved), (24, writes)];
            let slow =
                text(6, &bytes(&[(4, failed)], &wide, &[(32, "sync"), (92, "pg_xact/000C")]));
            assert_eq!(slow, format!("sync: 7.000 s{details}: pg_xact/000C"));
        }
    }

    #[test]
    fn any_bytes_are_decoded_and_printed_within_bounds() {
        let clock = Clock::recorded(ClockKind::Monotonic, 1e9);
        for kind in 0..20 {
            for byte in [0, 1, b'x', 0x7F, 0xFF] {
                for length in [0, 1, 24, 100, 231, 232] {
                    let payload = Payload::of_bytes(kind, &vec![byte; length], &clock);
                    assert_eq!(payload.is_some(), (6..=11).contains(&kind));
                    let Some(payload) = payload else { continue };
                    assert!(payload.to_string().len() < 1000);
                    if let Payload::Writes(writes) = payload {
                        assert!(writes.buffers.len() <= layout::CHECKPOINT_SPACES);
                    }
                }
            }
        }
    }
}
