// SPDX-License-Identifier: PostgreSQL
//! Asks the server for the names of locked relations. If the server refuses, or would have to wait, there are no names.

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::{channel, Receiver, TryRecvError};
use std::time::{Duration, Instant};

use segment::interval::SessionRow;
use segment::{Blocked, Segment};
use view::blocking::Names;

use crate::backoff::Backoff;
use crate::server::Access;

/// Lock types with a database and a relation: relation, extend, page, tuple.
const OF_RELATIONS: [u8; 4] = [0, 1, 3, 4];
/// The catalog itself may be locked.
const PATIENCE: &str =
    "/* tally */ set lock_timeout = '200ms'; /* tally */ set statement_timeout = '500ms'";

/// After this time, the name of a relation that had none is looked up again, and later less often.
const AGAIN: Duration = Duration::from_secs(10);

fn note_lookup(asked: &mut HashMap<(u32, u32), Backoff>, place: (u32, u32), now: Instant) {
    asked.entry(place).or_insert(Backoff::beginning_with(AGAIN)).note_refusal(now);
}

/// The names known so far.
#[derive(Debug, Default)]
pub(crate) struct LockNames {
    names: Names,
    /// Relations whose names the server was asked for: one that had none is looked up again later.
    asked: HashMap<(u32, u32), Backoff>,
}

impl LockNames {
    /// The names.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// Looks up the names of the relations that these sessions wait for, unless they are known.
    pub(crate) fn learn(
        &mut self,
        segment: &Segment,
        blocked: &[Blocked],
        sessions: &[SessionRow],
    ) {
        if blocked.iter().any(|wait| OF_RELATIONS.contains(&wait.lock.kind)) {
            self.ask(Access::of_segment(segment), blocked, sessions);
        }
    }

    fn ask(&mut self, access: Option<Access>, blocked: &[Blocked], sessions: &[SessionRow]) {
        let now = Instant::now();
        let of_relation = |wait: &&Blocked| OF_RELATIONS.contains(&wait.lock.kind);
        let mut wanted: Vec<(u32, u32)> = blocked
            .iter()
            .filter(of_relation)
            .map(|wait| (wait.lock.fields[0], wait.lock.fields[1]))
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        wanted.retain(|place| {
            !self.names.contains_key(place)
                && self.asked.get(place).is_none_or(|asked| asked.is_due(now))
        });
        let Some(access) = access.filter(|_| !wanted.is_empty()) else {
            return;
        };
        for place in &wanted {
            note_lookup(&mut self.asked, *place, now);
        }
        for part in wanted.chunk_by(|a, b| a.0 == b.0) {
            let database = part[0].0;
            // A session that waits for a relation in a database is connected to that database, unless the relation is
            // shared.
            let waits_there =
                |wait: &&Blocked| of_relation(wait) && wait.lock.fields[0] == database;
            let waiter = blocked.iter().find(waits_there);
            let row = waiter.and_then(|wait| sessions.iter().find(|row| row.slot == wait.slot));
            let Some(name) = row.and_then(|row| row.database.as_deref()) else { continue };
            let relations: Vec<u32> = part.iter().map(|place| place.1).collect();
            for (relation, text) in ask(&access, name, &relations).unwrap_or_default() {
                self.names.insert((database, relation), text);
            }
        }
    }
}

fn ask(access: &Access, database: &str, relations: &[u32]) -> Option<Vec<(u32, String)>> {
    let mut client = access.connect(Some(database)).ok()?;
    client.batch_execute(PATIENCE).ok()?;
    // Names in the usual schemas are unqualified, whatever the session's search_path is.
    let sql = "/* tally */ select c.oid, case when s.nspname in ('public', 'pg_catalog') then ''
                                  else quote_ident(s.nspname) || '.' end || quote_ident(c.relname)
               from pg_class c join pg_namespace s on s.oid = c.relnamespace
               where c.oid = any($1::oid[])";
    let rows = client.query(sql, &[&relations]).ok()?;
    rows.iter()
        .map(|row| Ok::<_, pq::Error>((row.get(0)?, row.get(1)?)))
        .collect::<Result<_, _>>()
        .ok()
}

/// Looks up names of locked relations in a thread, so that a server that does not answer does not delay the caller.
#[derive(Debug, Default)]
pub struct Background {
    names: Names,
    /// The relations whose names were requested: one that got none is looked up again later.
    asked: HashMap<(u32, u32), Backoff>,
    answer: Option<Receiver<Names>>,
}

impl Background {
    /// Requests the names of the relations that these sessions wait for, unless they are known, were requested lately, or
    /// another request is pending.
    pub fn ask(&mut self, segment: &Segment, blocked: &[Blocked], sessions: &[SessionRow]) {
        let now = Instant::now();
        let place = |wait: &Blocked| (wait.lock.fields[0], wait.lock.fields[1]);
        let is_unknown = |wait: &&Blocked| {
            OF_RELATIONS.contains(&wait.lock.kind)
                && !self.names.contains_key(&place(wait))
                && self.asked.get(&place(wait)).is_none_or(|asked| asked.is_due(now))
        };
        let new: Vec<Blocked> = blocked.iter().filter(is_unknown).cloned().collect();
        if new.is_empty() || self.answer.is_some() {
            return;
        }
        let places: HashSet<(u32, u32)> = new.iter().map(place).collect();
        for place in places {
            note_lookup(&mut self.asked, place, now);
        }
        let slots: HashSet<u32> = new.iter().map(|wait| wait.slot).collect();
        let waits = |row: &&SessionRow| slots.contains(&row.slot);
        let sessions: Vec<SessionRow> = sessions.iter().filter(waits).cloned().collect();
        let (send, answer) = channel();
        let access = Access::of_segment(segment);
        let work = move || {
            let mut known = LockNames::default();
            known.ask(access, &new, &sessions);
            // This fails if the receiver no longer exists.
            let _ = send.send(known.names);
        };
        let thread = std::thread::Builder::new().name("lock names".to_string()).spawn(work);
        self.answer = thread.ok().map(|_| answer);
    }

    /// The names known by now.
    pub fn names(&mut self) -> &Names {
        match self.answer.as_ref().map(Receiver::try_recv) {
            Some(Ok(names)) => {
                self.names.extend(names);
                self.answer = None;
            }
            Some(Err(TryRecvError::Disconnected)) => self.answer = None,
            Some(Err(TryRecvError::Empty)) | None => {}
        }
        &self.names
    }
}
