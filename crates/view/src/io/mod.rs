// SPDX-License-Identifier: PostgreSQL
//! The storage side of an interval: file operations, commits, checkpoints, devices,
//! and slow operations; for every view and for `--json` (docs/reference-json.md).

mod checkpoint_text;
mod checkpoints;
mod commits;
mod devices;
mod files;
mod page;
mod processes;
mod recorded;
mod relation_names;
mod relations;
mod tablespaces;
mod wal;

use std::sync::Arc;

use segment::clients::ClientTotals;
use segment::interval::{Interval, SessionRow};
use segment::{Event, EventKind, RelationRow};
use serde::Serialize;

use crate::events::Row;

use checkpoints::Begun;
pub use checkpoints::{Checkpoint, Running};
pub use files::FIELDS as FILE_FIELDS;
pub use page::page;
pub use recorded::{Device, RecordedIo, Server, FIELDS as DEVICE_FIELDS};
pub use relation_names::{RelationFile, RelationNames};
pub use relations::{name as relation_name, timing as relation_timing};
pub use tablespaces::{Tablespace, Tablespaces};
pub use wal::FIELDS as WAL_FIELDS;

/// How many slow operations are kept.
pub const SLOW: usize = 8;

/// The storage side beyond the interval's own figures.
#[derive(Debug, Default, Serialize)]
pub struct Io {
    /// The running checkpoint.
    pub checkpoint_running: Option<Running>,
    /// The last completed checkpoint.
    pub checkpoint: Option<Checkpoint>,
    /// The latest slow operations, oldest first, as `tally events` prints them.
    pub slow: Vec<Row>,
    /// Operations on each relation's files, most time first; `None`: not recorded.
    pub relations: Option<Vec<RelationRow>>,
    /// The time that `relations` covers, if longer than the interval: a recording has them
    /// by detail interval. Seconds.
    pub relations_seconds: Option<f64>,
    /// Names of relations, if the server could be asked.
    pub relation_names: RelationNames,
    /// Tablespaces by OID.
    pub tablespaces: Tablespaces,
    /// The devices under the server.
    pub devices: Option<DevicesUnder>,
    /// Why the devices are not known, or not for this interval.
    pub devices_problem: Option<String>,
    /// The recorded figures of devices, for a recorded interval.
    pub recorded: Option<RecordedIo>,
}

/// Where the server's files are, and the figures of those devices.
#[derive(Debug, Serialize)]
pub struct DevicesUnder {
    /// Paths, file systems and devices.
    #[serde(flatten)]
    pub found: Arc<device::Devices>,
    /// Their figures; `None` until there are two readings.
    pub figures: Option<device::Interval>,
}

/// Collects checkpoints and slow operations from events.
#[derive(Debug, Default)]
pub struct StorageEvents {
    begun: Option<Begun>,
    /// The last completed checkpoint, and its process.
    last: Option<(i32, Checkpoint)>,
    slow: Vec<Row>,
}

impl StorageEvents {
    /// Adds an event; `row` is the same event for people.
    pub fn note(&mut self, event: &Event, row: Row) {
        match event.kind {
            EventKind::Slow => {
                self.slow.push(row);
                let over = self.slow.len().saturating_sub(SLOW);
                self.slow.drain(..over);
            }
            EventKind::Checkpoint => {
                if let Some(begun) = Begun::of(&row) {
                    if let Some((_, last)) = &mut self.last {
                        last.after = begun.before;
                    }
                    self.begun = Some(begun);
                } else if let Some(ended) = Checkpoint::of(&row) {
                    self.last = Some((event.pid, ended));
                    self.begun = None;
                } else if checkpoints::has_failed(&row) {
                    self.begun = None;
                } else if let Some((_, last)) =
                    self.last.as_mut().filter(|(pid, _)| *pid == event.pid)
                {
                    last.add(&row);
                }
            }
            _ => {}
        }
    }

    /// The storage side at the end of `interval`, when the clients' sums were `clients`. A checkpoint ends with its
    /// process.
    pub fn io(&self, interval: &Interval, clients: &ClientTotals) -> Io {
        let lives = |pid: i32| {
            let is_it = |session: &SessionRow| session.pid == pid && session.state != "dead";
            interval.sessions.iter().any(is_it)
        };
        let running = self.begun.as_ref().filter(|begun| lives(begun.pid));
        let mut checkpoint = self.last.as_ref().map(|(_, last)| last.clone());
        // Activity after the last checkpoint is reported when the next one starts; until then it is computed.
        if let Some(last) = checkpoint.as_mut().filter(|_| self.begun.is_none()) {
            last.after = last.mark.and_then(|mark| mark.until(clients, interval.time));
        }
        Io {
            checkpoint_running: running.map(|r| r.running(clients, interval.time)),
            checkpoint,
            slow: self.slow.clone(),
            relations: None,
            relations_seconds: None,
            relation_names: RelationNames::default(),
            tablespaces: Tablespaces::default(),
            devices: None,
            devices_problem: None,
            recorded: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn note(events: &mut StorageEvents, number: u64, pid: i32, kind: EventKind, text: &str) {
        let event = Event { number, tick: number, pid, kind, text: text.to_string() };
        let row = Row {
            number,
            time: Some(1_700_000_000.0 - 10.0 + number as f64),
            pid,
            process: None,
            database: None,
            user: None,
            kind,
            text: text.to_string(),
            lost: 0,
        };
        events.note(&event, row);
    }

    #[test]
    fn a_checkpoint_runs_until_it_or_its_process_ends() {
        let interval = sample::interval();
        let checkpointer = 4210;
        let mut events = StorageEvents::default();
        assert_eq!(events.io(&interval, &ClientTotals::default()).checkpoint_running, None);
        note(&mut events, 1, 1, EventKind::Checkpoint, "checkpoint begins: reason=time");
        assert_eq!(
            events.io(&interval, &ClientTotals::default()).checkpoint_running,
            None,
            "its process does not exist"
        );
        note(
            &mut events,
            2,
            checkpointer,
            EventKind::Checkpoint,
            "checkpoint begins: reason=request",
        );
        let running = events.io(&interval, &ClientTotals::default()).checkpoint_running.unwrap();
        assert_eq!((running.reason.as_str(), running.seconds), ("request", Some(8.0)));
        note(&mut events, 3, 7, EventKind::Note, "checkpoint ends: total=1");
        assert!(
            events.io(&interval, &ClientTotals::default()).checkpoint.is_none(),
            "not a checkpoint event"
        );
        note(&mut events, 4, checkpointer, EventKind::Checkpoint, "checkpoint ends: total=1.5");
        let io = events.io(&interval, &ClientTotals::default());
        assert_eq!((io.checkpoint_running, io.checkpoint.unwrap().seconds), (None, 1.5));
    }

    #[test]
    fn client_activity_after_a_checkpoint_is_that_before_the_next() {
        let interval = sample::interval();
        let clients = ClientTotals { resets: 1, commands: 700, seconds: 3.0, off_stretches: 0 };
        let mut events = StorageEvents::default();
        let mut checkpointer =
            |number, pid, text: &str| note(&mut events, number, pid, EventKind::Checkpoint, text);
        checkpointer(1, 4210, "checkpoint ends: reason=wal total=1.0 buffers=3");
        checkpointer(2, 4210, "checkpoint wrote: target=0.9 spread=0.1 pg_default=3");
        checkpointer(3, 7, "checkpoint wrote: target=0.9 spread=0.1 pg_default=9");
        checkpointer(
            4,
            4210,
            "checkpoint clients: during=1.0 during_commands=20 during_handle=0.2 mark=1:100:1.0:0",
        );
        let last = events.io(&interval, &clients).checkpoint.unwrap();
        assert_eq!(
            last.buffers_by_tablespace[0].buffers, 3,
            "another process's figures are ignored"
        );
        assert_eq!((last.before, last.during.unwrap().commands), (None, 20));
        let after = last.after.unwrap();
        assert_eq!((after.commands, after.seconds), (600, 6.0), "up to now");
        note(
            &mut events,
            9,
            4210,
            EventKind::Checkpoint,
            "checkpoint begins: reason=time before=5.0 before_commands=500 before_handle=1 \
             mark=1:600:2.0:0",
        );
        let io = events.io(&interval, &clients);
        assert_eq!(io.checkpoint.unwrap().after.unwrap().commands, 500);
        let running = io.checkpoint_running.unwrap();
        assert_eq!(
            (running.before.unwrap().commands, running.during.unwrap().commands),
            (500, 100)
        );
    }

    #[test]
    fn the_latest_slow_operations_are_kept() {
        let mut events = StorageEvents::default();
        for number in 1..=20 {
            note(&mut events, number, 1, EventKind::Slow, "sync: 1.000 s: pg_xact/0000");
            note(&mut events, 100 + number, 1, EventKind::Blocked, "waiting for 1 s");
        }
        let slow = events.io(&sample::interval(), &ClientTotals::default()).slow;
        assert_eq!(
            slow.iter().map(|row| row.number).collect::<Vec<_>>(),
            [13, 14, 15, 16, 17, 18, 19, 20]
        );
    }
}
