// SPDX-License-Identifier: PostgreSQL
//! Builds rows about the sessions' activity at the end of each interval.

use std::collections::HashSet;
use std::sync::Arc;

use live::lock_names;
use live::session_samples::SessionSample;
use recording::{Batch, SessionHistoryRow, TextRow};
use segment::{Blocked, Frame, Segment, StatementKey, StatementsReading};
use view::blocking::{lock_in_words, lock_type, mode};

/// Builds the rows of `session_history`.
#[derive(Debug, Default)]
pub struct SessionRows {
    names: lock_names::Background,
    /// Statements of sessions since the last details.
    statements: HashSet<StatementKey>,
}

/// A statement that has been running for less is not noted, seconds.
const RUNNING: f64 = 10.0;

/// Adds to the rows of sessions for how long they have been executing their statements.
pub fn add_running(now: &StatementsReading, batch: &mut Batch) {
    for message in now.in_flight().iter().filter(|message| message.age_seconds >= RUNNING) {
        let of_session = |row: &&mut SessionHistoryRow| row.pid == i64::from(message.pid);
        if let Some(row) = batch.session_history.iter_mut().find(of_session) {
            row.statement_ns = Some(ns(message.age_seconds));
        }
    }
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

impl SessionRows {
    /// Adds the rows of an interval; `batch` has its row of `frames`. The segment is needed to look up names of
    /// relations.
    pub fn add(
        &mut self,
        samples: &[SessionSample],
        frame: &Frame,
        segment: Option<&Segment>,
        batch: &mut Batch,
    ) {
        let waits: Vec<Blocked> =
            samples.iter().filter_map(|sample| Some(sample.blocked.as_ref()?.0.clone())).collect();
        if let Some(segment) = segment {
            self.names.ask(segment, &waits, &frame.sessions);
        }
        let Some(of) = batch.frames.first() else { return };
        let (number, time_us, interval_ns) = (of.frame, of.time_us, of.interval_ns);
        for sample in samples {
            let Some(session) = frame.sessions.get(sample.at) else { continue };
            let text = |text: &Option<String>| text.as_deref().map(Arc::from);
            let mut row = SessionHistoryRow {
                frame: number,
                time_us,
                interval_ns,
                pid: session.pid.into(),
                leader_pid: session.leader_pid.map(i64::from),
                process: session.kind.as_str().into(),
                database: text(&session.database),
                user: text(&session.user),
                application: session.application.as_str().into(),
                client_address: text(&session.client_address),
                state: session.state.into(),
                phase: session.phase.clone(),
                activity: session.activity.clone(),
                since_ns: ns(session.since_seconds),
                transaction_ns: session.transaction_seconds.map(ns),
                busy_ns: ns(session.busy_seconds),
                cpu_ns: session.cpu_seconds.map_or(0, ns),
                cpu_unknown: session.cpu_seconds.is_none(),
                commands: session.commands,
                ..SessionHistoryRow::default()
            };
            if let Some(key) = sample.statement {
                row.queryid = Some(key.query_id());
                (row.statement_database_id, row.statement_user_id) = (key.database_id, key.user_id);
                self.statements.insert(key);
            }
            if let Some((blocked, seconds)) = &sample.blocked {
                row.lock = Some(lock_in_words(&blocked.lock, self.names.names()).into());
                row.lock_type = Some(lock_type(blocked).into());
                row.lock_mode = Some(mode(blocked).into());
                row.lock_wait_ns = Some(ns(*seconds));
                row.blockers =
                    blocked.blockers.iter().map(|pid| u64::try_from(*pid).unwrap_or(0)).collect();
                row.blocker_count = blocked.count.into();
            }
            batch.session_history.push(row);
        }
    }

    /// Adds the texts of the statements since the last call, some of which began before the recording or have not
    /// ended. The writer writes each text once a day.
    pub fn add_texts(&mut self, now: &StatementsReading, batch: &mut Batch) {
        for key in self.statements.drain() {
            let Some(text) = now.get(&key).and_then(|statement| statement.text.as_ref()) else {
                continue;
            };
            let known = |row: &TextRow| {
                (row.queryid, row.database_id, row.user_id, row.toplevel)
                    == (key.query_id(), key.database_id, key.user_id, key.toplevel)
            };
            if batch.statement_texts.iter().any(known) {
                continue;
            }
            batch.statement_texts.push(TextRow {
                queryid: key.query_id(),
                database_id: key.database_id,
                user_id: key.user_id,
                toplevel: key.toplevel,
                text: text.shown.clone(),
                kept_bytes: text.kept,
                whole_bytes: text.whole,
                ..TextRow::default()
            });
        }
    }
}
