// SPDX-License-Identifier: PostgreSQL
//! The running and the last checkpoint, from the events of the checkpointer: one at the start of a checkpoint,
//! three at its end.

use segment::clients::{ClientActivity, ClientTotals};
use segment::event_payload::{Checkpoint, CheckpointStarted};
use segment::Payload;
use serde::Serialize;

use crate::events::Row;

/// A running checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Running {
    /// When it started, seconds since 1970.
    pub begun: Option<f64>,
    /// Its reason: "time", "wal", "request", "shutdown" or "unknown".
    pub reason: String,
    /// How long it has been running, seconds.
    pub seconds: Option<f64>,
    /// Client activity from the end of the previous checkpoint to the start of this one.
    pub before: Option<ClientActivity>,
    /// Client activity since the start.
    pub during: Option<ClientActivity>,
}

/// A checkpoint whose end has not been seen.
#[derive(Debug)]
struct Begun {
    pid: i32,
    time: Option<f64>,
    started: CheckpointStarted,
}

/// A completed checkpoint.
#[derive(Debug)]
struct Ended {
    pid: i32,
    checkpoint: Checkpoint,
    /// The totals of clients after its end, and when they were read.
    clients: (Option<ClientTotals>, Option<f64>),
}

/// The last checkpoints among the events so far.
#[derive(Debug, Default)]
pub struct Checkpoints {
    begun: Option<Begun>,
    ended: Option<Ended>,
}

/// The clients' activity between two readings of their totals: `then`, at `begin`, and `now`, at `time`.
fn since(
    (then, begin): (Option<ClientTotals>, Option<f64>),
    now: &ClientTotals,
    time: f64,
) -> Option<ClientActivity> {
    now.since(&then?, time - begin?)
}

impl Checkpoints {
    /// Adds an event.
    pub fn note(&mut self, row: &Row) {
        let Some(payload) = &row.payload else { return };
        let (pid, time) = (row.pid, row.time);
        if let Some(checkpoint) = Checkpoint::from_payload(payload, time) {
            *self = Checkpoints {
                begun: None,
                ended: Some(Ended { pid, checkpoint, clients: (None, None) }),
            };
            return;
        }
        match payload {
            Payload::Started(started) => {
                if let Some(ended) = &mut self.ended {
                    ended.checkpoint.after = started.before;
                }
                self.begun = Some(Begun { pid, time, started: started.clone() });
            }
            Payload::Failed(_) => self.begun = None,
            _ => {
                if let Some(ended) = self.ended.as_mut().filter(|ended| ended.pid == pid) {
                    ended.checkpoint.add(payload);
                    if let Payload::Clients(clients) = payload {
                        ended.clients = (clients.clients, time);
                    }
                }
            }
        }
    }

    /// The running checkpoint at `time`, when the totals of clients were `now`. It ends with its process.
    pub fn running(
        &self,
        lives: impl Fn(i32) -> bool,
        now: &ClientTotals,
        time: f64,
    ) -> Option<Running> {
        self.begun.as_ref().filter(|begun| lives(begun.pid)).map(|begun| Running {
            begun: begun.time,
            reason: begun.started.reason.clone(),
            seconds: begun.time.map(|begun| (time - begun).max(0.0)),
            before: begun.started.before,
            during: since((begun.started.clients, begun.time), now, time),
        })
    }

    /// The last completed checkpoint at `time`, when the totals of clients were `now`.
    pub fn last(&self, now: &ClientTotals, time: f64) -> Option<Checkpoint> {
        let ended = self.ended.as_ref()?;
        let mut checkpoint = ended.checkpoint.clone();
        // The activity after it is reported when the next one starts; until then it is computed.
        if self.begun.is_none() {
            checkpoint.after = since(ended.clients, now, time);
        }
        Some(checkpoint)
    }
}
