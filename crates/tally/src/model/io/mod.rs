// SPDX-License-Identifier: PostgreSQL
//! The storage side of an interval: operations on files, commits, checkpoints, the devices
//! below, and what was slow; for every view, and for `--json` (docs/json.md).

mod checkpoints;
mod commits;
mod devices;
mod files;
mod page;
mod relations;

use std::sync::Arc;

use segment::interval::{Interval, SessionRow};
use segment::{Event, EventKind, RelationRow};
use serde::Serialize;

use crate::events::Row;

pub use checkpoints::{Checkpoint, Running};
pub use page::page;

/// How many slow events are kept to be shown.
pub const SLOW: usize = 8;

/// What the storage side shows beyond the interval's own figures.
#[derive(Debug, Default, Serialize)]
pub struct Io {
    /// The checkpoint that is under way.
    pub checkpoint_running: Option<Running>,
    /// The last one that ended.
    pub checkpoint: Option<Checkpoint>,
    /// The latest slow operations, oldest first, as `tally events` has them.
    pub slow: Vec<Row>,
    /// Operations on the files of each relation, most time first; `None`: none are kept.
    pub relations: Option<Vec<RelationRow>>,
    /// The devices under the server.
    pub devices: Option<DevicesUnder>,
    /// Why nothing is known of them, or not of this interval.
    pub devices_problem: Option<String>,
}

/// Where the server's files lie, and what happened there.
#[derive(Debug, Serialize)]
pub struct DevicesUnder {
    /// Places, file systems and devices.
    #[serde(flatten)]
    pub found: Arc<device::Devices>,
    /// Their figures; `None` until there are two readings.
    pub figures: Option<device::Interval>,
}

/// What the events have told so far of checkpoints, and of what was slow.
#[derive(Debug, Default)]
pub struct Told {
    /// The last that has begun: its process, and the tick and the time of its begin.
    begun: Option<Begun>,
    last: Option<Checkpoint>,
    slow: Vec<Row>,
}

#[derive(Debug, Clone)]
struct Begun {
    pid: i32,
    time: Option<f64>,
    reason: String,
}

impl Told {
    /// Take note of an event; `row` is the same for people.
    pub fn note(&mut self, event: &Event, row: Row) {
        match event.kind {
            EventKind::Slow => {
                self.slow.push(row);
                let over = self.slow.len().saturating_sub(SLOW);
                self.slow.drain(..over);
            }
            EventKind::Checkpoint => {
                if let Some(reason) = checkpoints::begins(&event.text) {
                    let reason = reason.to_string();
                    self.begun = Some(Begun { pid: event.pid, time: row.time, reason });
                } else if let Some(ended) = Checkpoint::of(&row) {
                    self.last = Some(ended);
                    self.begun = None;
                }
            }
            _ => {}
        }
    }

    /// What there is to show at the end of `interval`. A checkpoint runs no longer than its
    /// process.
    pub fn io(&self, interval: &Interval) -> Io {
        let lives = |pid: i32| {
            let is_it = |session: &SessionRow| session.pid == pid && session.state != "dead";
            interval.sessions.iter().any(is_it)
        };
        let running = self.begun.as_ref().filter(|begun| lives(begun.pid)).map(|begun| Running {
            begun: begun.time,
            reason: begun.reason.clone(),
            seconds: begun.time.map(|time| (interval.time - time).max(0.0)),
        });
        Io {
            checkpoint_running: running,
            checkpoint: self.last.clone(),
            slow: self.slow.clone(),
            relations: None,
            devices: None,
            devices_problem: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample;

    fn note(told: &mut Told, number: u64, pid: i32, kind: EventKind, text: &str) {
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
        told.note(&event, row);
    }

    #[test]
    fn a_checkpoint_runs_from_its_begin_to_its_end_or_that_of_its_process() {
        let interval = sample::interval();
        let checkpointer = 4210;
        let mut told = Told::default();
        assert_eq!(told.io(&interval).checkpoint_running, None);
        note(&mut told, 1, 1, EventKind::Checkpoint, "checkpoint begins: reason=time");
        assert_eq!(told.io(&interval).checkpoint_running, None, "its process is not there");
        note(
            &mut told,
            2,
            checkpointer,
            EventKind::Checkpoint,
            "checkpoint begins: reason=request",
        );
        let running = told.io(&interval).checkpoint_running.unwrap();
        assert_eq!((running.reason.as_str(), running.seconds), ("request", Some(8.0)));
        note(&mut told, 3, 7, EventKind::Note, "checkpoint ends: total=1");
        assert!(told.io(&interval).checkpoint.is_none(), "that is no event of checkpoints");
        note(&mut told, 4, checkpointer, EventKind::Checkpoint, "checkpoint ends: total=1.5");
        let io = told.io(&interval);
        assert_eq!((io.checkpoint_running, io.checkpoint.unwrap().seconds), (None, 1.5));
    }

    #[test]
    fn the_latest_slow_operations_are_kept() {
        let mut told = Told::default();
        for number in 1..=20 {
            note(&mut told, number, 1, EventKind::Slow, "sync: 1.000 s: pg_xact/0000");
            note(&mut told, 100 + number, 1, EventKind::Blocked, "waiting for 1 s");
        }
        let slow = told.io(&sample::interval()).slow;
        assert_eq!(
            slow.iter().map(|row| row.number).collect::<Vec<_>>(),
            [13, 14, 15, 16, 17, 18, 19, 20]
        );
    }
}
