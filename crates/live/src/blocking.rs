// SPDX-License-Identifier: PostgreSQL
//! Who blocks whom in a running server, with the statements of both and the names of the locked objects.

use std::collections::HashMap;
use std::sync::Arc;

use error::Error;
use segment::interval::SessionRow;
use segment::{Blocked, Interval, Parts, Segment, Snapshot, StatementsReading};
use view::blocking::{Forest, Sources, Waiting};

use crate::lock_names::LockNames;

/// Repeated readings of who blocks whom; remembers the names of locked objects.
#[derive(Debug, Default)]
pub struct Blocking {
    names: LockNames,
}

impl Blocking {
    /// Who blocks whom now, and the time of the reading, seconds since 1970.
    pub fn read(&mut self, segment: &mut Segment) -> Result<(Forest, f64), Error> {
        let blocked = segment.blocked()?;
        if blocked.is_empty() {
            return Ok((Forest::default(), segment.realtime_ns() as f64 * 1e-9));
        }
        let snapshot = segment.snapshot(None)?;
        let interval = Interval::between(segment, None, &snapshot);
        let forest = self.forest(segment, &blocked, &interval.sessions, &snapshot, None)?;
        Ok((forest, interval.time))
    }

    /// The same from existing readings: `blocked` was read before `snapshot`, which has these sessions. If `statements`
    /// is `None` and a session waits, statements are read.
    pub(crate) fn forest(
        &mut self,
        segment: &mut Segment,
        blocked: &[Blocked],
        sessions: &[SessionRow],
        snapshot: &Snapshot,
        statements: Option<Arc<StatementsReading>>,
    ) -> Result<Forest, Error> {
        let waiting = Waiting::from_sessions(sessions);
        let waits = blocked.iter().any(|wait| waiting.row(wait).is_some());
        let mut last = HashMap::new();
        let mut statements = statements;
        if waits {
            segment.want(Parts::STATEMENTS)?;
            self.names.learn(segment, blocked, sessions);
            for row in sessions {
                last.insert(row.slot, segment.session_statement(row.slot)?);
            }
            if statements.is_none() {
                statements = segment.statements()?.map(Arc::new);
            }
        }
        Ok(Forest::build(&Sources {
            blocked,
            sessions,
            tick: snapshot.tick,
            clock: &snapshot.clock,
            last: &last,
            statements: statements.as_deref(),
            names: self.names.names(),
        }))
    }
}
