// SPDX-License-Identifier: PostgreSQL
//! The storage side of an interval: operations on files, commits, checkpoints, the devices
//! below, and what was slow; for every view, and for `--json` (docs/json.md).

mod checkpoints;
mod commits;
mod devices;
mod files;
mod page;

use std::sync::Arc;

use segment::interval::{Interval, SessionRow};
use segment::{Event, EventKind};
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
            devices: None,
            devices_problem: None,
        }
    }
}
