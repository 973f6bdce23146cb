// SPDX-License-Identifier: PostgreSQL
//! The sessions of a frame that were not idle, with facts that the frame does not have: their statements and their
//! blockers.

use error::Error;
use segment::{Blocked, Frame, Segment, Snapshot, StatementKey};
use std::collections::{HashMap, HashSet};
use view::blocking::Waiting;

/// A session that was idle at the end is listed if it was busy for at least this share of the interval.
const BRIEF: f64 = 1e-3;

/// The sleep of a vacuum that keeps to its cost limit: no load, but why a vacuum does not end.
const VACUUM_SLEEPS: &str = "Timeout:VacuumDelay";

/// A session at the end of a frame.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionSample {
    /// Its position in the frame's sessions.
    pub at: usize,
    /// The client's statement that the session executes, or its last one; `None`: not known.
    pub statement: Option<StatementKey>,
    /// The lock that the session waits for, and for how long, in seconds; `None`: it is not blocked.
    pub blocked: Option<(Blocked, f64)>,
}

/// The sessions that were not idle in a frame, or at its end block others or sleep in a vacuum. `blocked` was read before the snapshot.
pub(crate) fn sample_sessions(
    segment: &Segment,
    snapshot: &Snapshot,
    frame: &Frame,
    blocked: Vec<Blocked>,
) -> Result<Vec<SessionSample>, Error> {
    let waiting = Waiting::from_sessions(&frame.sessions);
    let mut waits: HashMap<(u32, u32), Blocked> = HashMap::new();
    for wait in blocked.into_iter().filter(|wait| waiting.row(wait).is_some()) {
        waits.entry((wait.slot, wait.generation)).or_insert(wait);
    }
    let blockers: HashSet<i32> = waits.values().flat_map(|wait| &wait.blockers).copied().collect();
    let length = frame.clock.seconds(frame.ticks);
    let mut samples = Vec::new();
    for (at, row) in frame.sessions.iter().enumerate() {
        let listed = match row.state {
            "dead" => false,
            "active" | "idle in transaction" => true,
            _ => {
                row.busy_seconds >= BRIEF * length
                    || blockers.contains(&row.pid)
                    || *row.activity == *VACUUM_SLEEPS
            }
        };
        if !listed {
            continue;
        }
        let own = waits.remove(&(row.slot, row.generation));
        let wait = |blocked: Blocked| {
            let seconds = snapshot.clock.seconds(snapshot.tick.saturating_sub(blocked.since));
            (blocked, seconds)
        };
        let statement = match row.state {
            "background" => None,
            _ => segment.session_statement(row.slot)?.key(),
        };
        samples.push(SessionSample { at, statement, blocked: own.map(wait) });
    }
    Ok(samples)
}
