// SPDX-License-Identifier: PostgreSQL
//! How sessions waited for their clients, and which sessions ended. Diagnoses of chatty clients and of
//! connection storms need this, and neither the sums over all sessions nor the rows of single sessions
//! contain it.

use std::collections::HashMap;
use std::sync::Arc;

use segment::delta::EndedOrigin;
use segment::interval::Pauses;
use segment::{own, Application, ClientWaits, Frame, StatementKey};

use crate::error::Error;
use crate::range::Range;
use crate::recording::Recording;
use crate::table::{table, Cell, Cells, Column, Columns, Table, Unit};

fn zero(n: &u64) -> bool {
    *n == 0
}

table! {
    /// A session whose client made it wait often in a detail interval, and the statement that it called most.
    ClientWaitsRow in "client_waits" by |a, b| (a.session(), a.frame).cmp(&(b.session(), b.frame));
    interval_ns: u64, Ns, sum, "Time since the previous detail.";
    pid: i64, Id, "PID of the session.";
    slot: u32, Id, "Its slot in the segment.";
    generation: u32, Id, "Its ordinal among the owners of the slot.";
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<Arc<str>>, Text, "Name of the database.";
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<Arc<str>>, Text, "Name of the user.";
    application: Arc<str>, Text, "application_name.";
    #[serde(skip_serializing_if = "Option::is_none")]
    client_address: Option<Arc<str>>, Text, "The client's address; `local` for a Unix-domain socket.";
    commands: u64, Count, sum, "Commands handled.";
    busy_ns: u64, Ns, sum, "Time that was not idle.";
    #[serde(skip_serializing_if = "zero")]
    in_transaction: u64, Count, sum, "Waits for the client within a transaction.";
    #[serde(skip_serializing_if = "zero")]
    in_transaction_ns: u64, Ns, sum, "Their time.";
    between_transactions: u64, Count, sum, "Waits for the client between transactions.";
    #[serde(skip_serializing_if = "zero")]
    short: u64, Count, sum, "Of these, shorter than 5 ms.";
    #[serde(skip_serializing_if = "zero")]
    short_ns: u64, Ns, sum, "Their time.";
    #[serde(skip_serializing_if = "zero")]
    long: u64, Count, sum, "Of these, 50 ms or longer.";
    #[serde(skip_serializing_if = "zero")]
    long_ns: u64, Ns, sum, "Their time.";
    #[serde(skip_serializing_if = "zero")]
    middle: u64, Count, sum, "The others.";
    #[serde(skip_serializing_if = "Option::is_none")]
    queryid: Option<i64>, Id, "The statement that the session executed most; null: none was executed often, or it is not known.";
    statement_database_id: u32, Id, "`database_id` of that statement.";
    statement_user_id: u32, Id, "`user_id` of that statement.";
    statement_application: Arc<str>, Text, "`application` of that statement in `statements`.";
    #[serde(skip_serializing_if = "zero")]
    calls: u64, Count, sum, "Its calls by this session, at least.";
}

table! {
    /// Sessions of a database and user that ended in a detail interval.
    EndedSessionsRow in "ended_sessions" by |a, b| (&a.process, &a.database, &a.user, a.frame).cmp(&(&b.process, &b.database, &b.user, b.frame));
    interval_ns: u64, Ns, sum, "Time since the previous detail.";
    process: Arc<str>, Text, "`client backend`, ...";
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<Arc<str>>, Text, "Name of the database.";
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<Arc<str>>, Text, "Name of the user.";
    application: Arc<str>, Text, last, "application_name of the last one.";
    sessions: u64, Count, sum, "Number of sessions.";
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn known(text: &Option<String>) -> Option<Arc<str>> {
    text.as_deref().map(Arc::from)
}

fn text(text: &Option<Arc<str>>) -> Option<String> {
    text.as_deref().map(str::to_owned)
}

impl ClientWaitsRow {
    /// The row of a session, with the statement that it called most and the number of these calls.
    pub fn new(waits: &ClientWaits, called: Option<(&StatementKey, u64)>) -> ClientWaitsRow {
        let mut row = ClientWaitsRow {
            pid: waits.pid.into(),
            slot: waits.slot,
            generation: waits.generation,
            database: known(&waits.database),
            user: known(&waits.user),
            application: waits.application.as_str().into(),
            client_address: known(&waits.client_address),
            commands: waits.commands,
            busy_ns: ns(waits.busy_seconds),
            in_transaction: waits.in_transaction,
            in_transaction_ns: ns(waits.in_transaction_seconds),
            between_transactions: waits.between_transactions,
            short: waits.pauses.short,
            short_ns: ns(waits.pauses.short_seconds),
            long: waits.pauses.long,
            long_ns: ns(waits.pauses.long_seconds),
            middle: waits.pauses.middle,
            ..ClientWaitsRow::default()
        };
        if let Some((key, calls)) = called {
            row.queryid = Some(key.query_id());
            (row.statement_database_id, row.statement_user_id) = (key.database_id, key.user_id);
            row.statement_application = key.application.name().unwrap_or_default().into();
            row.calls = calls;
        }
        row
    }

    /// What identifies the session.
    fn session(&self) -> (i64, u32, u32) {
        (self.pid, self.slot, self.generation)
    }

    /// What identifies a row in an interval.
    pub(crate) fn key(&self) -> ((i64, u32, u32), Arc<str>, Option<StatementKey>) {
        (self.session(), self.application.clone(), self.statement())
    }

    /// The statement that the session called most.
    fn statement(&self) -> Option<StatementKey> {
        Some(StatementKey {
            id: self.queryid? as u64,
            database_id: self.statement_database_id,
            user_id: self.statement_user_id,
            toplevel: true,
            application: Application::from_name(&self.statement_application),
        })
    }

    fn waits(&self) -> ClientWaits {
        ClientWaits {
            pid: i32::try_from(self.pid).unwrap_or(0),
            slot: self.slot,
            generation: self.generation,
            database: text(&self.database),
            user: text(&self.user),
            application: self.application.to_string(),
            client_address: text(&self.client_address),
            commands: self.commands,
            busy_seconds: seconds(self.busy_ns),
            in_transaction: self.in_transaction,
            in_transaction_seconds: seconds(self.in_transaction_ns),
            between_transactions: self.between_transactions,
            pauses: Pauses {
                short: self.short,
                short_seconds: seconds(self.short_ns),
                long: self.long,
                long_seconds: seconds(self.long_ns),
                middle: self.middle,
            },
        }
    }
}

impl EndedSessionsRow {
    /// The row of ended sessions of one origin.
    pub fn new(origin: &EndedOrigin) -> EndedSessionsRow {
        EndedSessionsRow {
            process: origin.kind.as_str().into(),
            database: known(&origin.database),
            user: known(&origin.user),
            application: origin.application.as_str().into(),
            sessions: origin.sessions,
            ..EndedSessionsRow::default()
        }
    }

    /// What identifies a row in an interval.
    pub(crate) fn key(&self) -> (Arc<str>, Option<Arc<str>>, Option<Arc<str>>) {
        (self.process.clone(), self.database.clone(), self.user.clone())
    }

    fn origin(&self) -> EndedOrigin {
        EndedOrigin {
            kind: self.process.to_string(),
            database: text(&self.database),
            user: text(&self.user),
            application: self.application.to_string(),
            sessions: self.sessions,
        }
    }
}

impl Recording {
    /// Adds the recorded waits of a range's sessions to the range's sum.
    pub(crate) fn add_client_waits(&self, range: Range, sum: &mut Frame) -> Result<(), Error> {
        let rows: Vec<ClientWaitsRow> = self.rows(range)?;
        let waits: Vec<ClientWaits> = rows.iter().map(ClientWaitsRow::waits).collect();
        ClientWaits::merge(&mut sum.client_waits, &waits);
        let rows: Vec<EndedSessionsRow> = self.rows(range)?;
        let origins: Vec<EndedOrigin> = rows.iter().map(EndedSessionsRow::origin).collect();
        EndedOrigin::merge(&mut sum.ended_origins, &origins);
        Ok(())
    }

    /// The statements that sessions called most, by slot and key, with their calls.
    pub(crate) fn calls_of_slots(
        &self,
        range: Range,
    ) -> Result<HashMap<(u32, StatementKey), u64>, Error> {
        let mut calls = HashMap::new();
        self.each_row(range, |row: ClientWaitsRow| {
            if let Some(key) = row.statement() {
                let sum: &mut u64 = calls.entry((row.slot, key)).or_default();
                *sum = sum.saturating_add(row.calls);
            }
        })?;
        Ok(calls)
    }
}

/// Number of sessions and of origins that a detail interval has at most.
const MOST: usize = 10;
/// Waits in a detail interval below which a session is not recorded.
const FEWEST: u64 = 20;

/// Sums of what [`ClientWaitsRow`] and [`EndedSessionsRow`] have, since the details before.
#[derive(Debug, Default)]
pub struct ClientWaitsSum {
    waits: Vec<ClientWaits>,
    origins: Vec<EndedOrigin>,
}

impl ClientWaitsSum {
    /// Adds an interval.
    pub fn add(&mut self, frame: &Frame) {
        ClientWaits::merge(&mut self.waits, &frame.client_waits);
        EndedOrigin::merge(&mut self.origins, &frame.ended_origins);
    }

    /// Rows since the last call. `called` says which statement the session of a slot called most.
    pub fn rows<'k>(
        &mut self,
        length_ns: u64,
        called: impl Fn(u32) -> Option<(&'k StatementKey, u64)>,
    ) -> (Vec<ClientWaitsRow>, Vec<EndedSessionsRow>) {
        let ClientWaitsSum { mut waits, mut origins } = std::mem::take(self);
        waits.retain(|waits| waits.in_transaction >= FEWEST || waits.pauses.short >= FEWEST);
        ClientWaits::limit(&mut waits, MOST);
        origins.retain(|origin| origin.kind == own::CLIENT);
        origins.truncate(MOST);
        let waits = waits.iter().map(|waits| ClientWaitsRow {
            interval_ns: length_ns,
            ..ClientWaitsRow::new(waits, called(waits.slot))
        });
        let origins = origins.iter().map(|origin| EndedSessionsRow {
            interval_ns: length_ns,
            ..EndedSessionsRow::new(origin)
        });
        (waits.collect(), origins.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(pid: i32, in_transaction: u64) -> ClientWaits {
        ClientWaits {
            pid,
            slot: pid as u32,
            generation: 3,
            database: Some("shop".into()),
            user: Some("joe".into()),
            application: "billing".into(),
            client_address: Some("local".into()),
            commands: 500,
            busy_seconds: 0.25,
            in_transaction,
            in_transaction_seconds: in_transaction as f64 / 1000.0,
            between_transactions: 2,
            pauses: Pauses { short: 1, short_seconds: 0.5, long: 2, long_seconds: 4.0, middle: 3 },
        }
    }

    #[test]
    fn what_is_recorded_of_a_session_is_what_was_measured_and_few_are() {
        let key = StatementKey {
            id: 7,
            database_id: 1,
            user_id: 2,
            toplevel: true,
            ..StatementKey::default()
        };
        let ended = |kind: &str| EndedOrigin {
            kind: kind.into(),
            database: Some("shop".into()),
            user: None,
            application: "billing".into(),
            sessions: 9,
        };
        let mut sum = ClientWaitsSum {
            waits: (20..40).map(|n| waits(n, n as u64)).chain([waits(1, 19)]).collect(),
            origins: vec![ended("client backend"), ended("parallel worker")],
        };
        let called = |slot: u32| (slot == 39).then_some((&key, 400));
        let (rows, origins) = sum.rows(10, called);
        assert_eq!((rows.len(), origins.len()), (MOST, 1));
        assert_eq!(rows[0].waits(), waits(39, 39));
        assert_eq!((rows[0].statement(), rows[0].calls), (Some(key), 400));
        assert_eq!((rows[1].statement(), rows[1].calls), (None, 0));
        assert_eq!(origins[0].origin(), ended("client backend"));
        let (rows, origins) = sum.rows(10, called);
        assert_eq!((rows.len(), origins.len()), (0, 0), "they begin anew");
    }
}
