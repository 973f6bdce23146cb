// SPDX-License-Identifier: PostgreSQL
//! Storage in an interval: file operations, commits, checkpoints, devices, and slow operations; for all views and
//! for `--json` (docs/reference-json.md).

mod checkpoint_text;
mod checkpoints;
mod commits;
mod devices;
mod files;
mod model;
mod page;
mod processes;
mod recorded;
mod relation_names;
mod relations;
mod tablespaces;
mod wal;

use segment::clients::ClientTotals;
pub use segment::event_payload::Checkpoint;
use segment::interval::{Interval, SessionRow};
use segment::EventKind;

use crate::events::Row;

use checkpoints::Checkpoints;
pub use checkpoints::Running;
pub use files::FIELDS as FILE_FIELDS;
pub use model::{DevicesUnder, Io};
pub use page::page;
pub use recorded::{Device, RecordedIo, Server, FIELDS as DEVICE_FIELDS};
pub use relation_names::{RelationFile, RelationNames};
pub use relations::{name as relation_name, timing as relation_timing};
pub use tablespaces::{Tablespace, Tablespaces};
pub use wal::FIELDS as WAL_FIELDS;

/// Number of slow operations to keep.
pub const SLOW: usize = 8;

/// Collects checkpoints and slow operations from events.
#[derive(Debug, Default)]
pub struct StorageEvents {
    checkpoints: Checkpoints,
    slow: Vec<Row>,
}

impl StorageEvents {
    /// Adds an event.
    pub fn note(&mut self, row: Row) {
        self.checkpoints.note(&row);
        if row.kind == EventKind::Slow {
            self.slow.push(row);
            let over = self.slow.len().saturating_sub(SLOW);
            self.slow.drain(..over);
        }
    }

    /// The storage figures at the end of `interval`, when the totals of clients were `clients`.
    pub fn io(&self, interval: &Interval, clients: &ClientTotals) -> Io {
        let lives = |pid: i32| {
            let is_it = |session: &SessionRow| session.pid == pid && session.state != "dead";
            interval.sessions.iter().any(is_it)
        };
        Io {
            checkpoint_running: self.checkpoints.running(lives, clients, interval.time),
            checkpoint: self.checkpoints.last(clients, interval.time),
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
    use segment::Payload;

    use super::*;
    use crate::sample;

    fn row(number: u64, pid: i32, kind: EventKind, text: &str) -> Row {
        Row {
            number,
            time: Some(1_700_000_000.0 - 10.0 + number as f64),
            pid,
            process: None,
            database: None,
            user: None,
            kind,
            text: text.to_string(),
            payload: Payload::of_text(kind, text),
            lost: 0,
        }
    }

    fn note(events: &mut StorageEvents, number: u64, pid: i32, kind: EventKind, text: &str) {
        events.note(row(number, pid, kind, text));
    }

    /// With the clients' totals, which a text does not contain.
    fn checkpoint(number: u64, text: &str, clients: ClientTotals) -> Row {
        let mut row = row(number, 4210, EventKind::Checkpoint, text);
        match row.payload.as_mut() {
            Some(Payload::Started(started)) => started.clients = Some(clients),
            Some(Payload::Clients(ended)) => ended.clients = Some(clients),
            other => panic!("{other:?}"),
        }
        row
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
        let mut dead = interval.clone();
        dead.sessions.iter_mut().for_each(|row| row.state = "dead");
        assert_eq!(events.io(&dead, &ClientTotals::default()).checkpoint_running, None);
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
        let then = ClientTotals { commands: 100, seconds: 1.0, ..clients };
        let text = "checkpoint clients: during=1.0 during_commands=20 during_handle=0.2";
        events.note(checkpoint(4, text, then));
        let last = events.io(&interval, &clients).checkpoint.unwrap();
        assert_eq!(
            last.buffers_by_tablespace[0].buffers, 3,
            "another process's figures are ignored"
        );
        assert_eq!((last.before, last.during.unwrap().commands), (None, 20));
        let after = last.after.unwrap();
        assert_eq!((after.commands, after.seconds), (600, 6.0), "up to now");
        let text = "checkpoint begins: reason=time before=5.0 before_commands=500 before_handle=1";
        let then = ClientTotals { commands: 600, seconds: 2.0, ..clients };
        events.note(checkpoint(9, text, then));
        let io = events.io(&interval, &clients);
        assert_eq!(io.checkpoint.unwrap().after.unwrap().commands, 500);
        let running = io.checkpoint_running.unwrap();
        assert_eq!(
            (running.before.unwrap().commands, running.during.unwrap().commands),
            (500, 100)
        );
    }

    #[test]
    fn activity_since_the_start_is_computed_unless_the_sums_were_reset_or_incomplete() {
        let interval = sample::interval();
        let then = ClientTotals { resets: 1, commands: 20000, seconds: 20.5, off_stretches: 2 };
        let mut events = StorageEvents::default();
        events.note(checkpoint(6, "checkpoint begins: reason=wal", then));
        let now = ClientTotals { commands: 21000, seconds: 22.5, ..then };
        let during = |now| events.io(&interval, &now).checkpoint_running.unwrap().during;
        let read = during(now).unwrap();
        assert_eq!((read.seconds, read.commands), (4.0, 1000));
        assert_eq!(read.mean_handle_seconds, Some(0.002));
        for other in [
            ClientTotals { resets: 2, ..now },
            ClientTotals { off_stretches: 3, ..now },
            ClientTotals { commands: 10, ..now },
        ] {
            assert_eq!(during(other), None, "{other:?}");
        }
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
