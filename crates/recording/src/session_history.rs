// SPDX-License-Identifier: PostgreSQL
//! The sessions that were not idle in an interval, and what each of them did at the end of the interval.

use crate::error::Error;
use crate::range::Range;
use crate::recording::Recording;
use crate::table::{table, Cell, Cells, Column, Columns, Table, Unit};
use segment::interval::SessionRow;
use segment::WaitClass;
use std::sync::Arc;

table! {
    /// A session that was not idle in an interval, or that blocks others or sleeps in a vacuum: what it did at the end of the interval, and
    /// its times in the ledger within the interval.
    SessionHistoryRow in "session_history" by |a, b| (a.pid, a.frame).cmp(&(b.pid, b.frame));
    interval_ns: u64, Ns, "Length of the interval that the times belong to.";
    pid: i64, Id, "PID of the session.";
    #[serde(skip_serializing_if = "Option::is_none")]
    leader_pid: Option<i64>, Id, "PID of the leader of a parallel worker.";
    process: Arc<str>, Text, "`client backend`, ...";
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<Arc<str>>, Text, "Name of the database.";
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<Arc<str>>, Text, "Name of the user.";
    application: Arc<str>, Text, "application_name.";
    #[serde(skip_serializing_if = "Option::is_none")]
    client_address: Option<Arc<str>>, Text, "The client's address; `local` for a Unix-domain socket.";
    state: Arc<str>, Text, "`active`, `idle`, `idle in transaction`, `background`.";
    phase: Arc<str>, Text, "Phase of the session.";
    activity: Arc<str>, Text, "`cpu`, or the wait event as `Type:Event`.";
    since_ns: u64, Ns, "Time since the activity began.";
    #[serde(skip_serializing_if = "Option::is_none")]
    transaction_ns: Option<u64>, Ns, "Age of the transaction.";
    busy_ns: u64, Ns, "Time in the interval that was not idle.";
    cpu_ns: u64, Ns, "Part of `busy_ns` that was CPU time, including waiting for a CPU.";
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cpu_unknown: bool, Flag, "Whether samples came too late to determine CPU time; `cpu_ns` is then meaningless.";
    commands: u64, Count, "Commands handled in the interval.";
    #[serde(skip_serializing_if = "Option::is_none")]
    queryid: Option<i64>, Id, "Identifier of the client's statement that the session executes, or of its last one; null: not known.";
    statement_database_id: u32, Id, "`database_id` of that statement.";
    statement_user_id: u32, Id, "`user_id` of that statement.";
    #[serde(skip_serializing_if = "Option::is_none")]
    statement_ns: Option<u64>, Ns, "With details: time since the client sent the statement that the session executes, from ten seconds on.";
    #[serde(skip_serializing_if = "Option::is_none")]
    lock: Option<Arc<str>>, Text, "The heavyweight lock that the session waits for.";
    #[serde(skip_serializing_if = "Option::is_none")]
    lock_type: Option<Arc<str>>, Text, "Type of the lock, as in pg_locks.";
    #[serde(skip_serializing_if = "Option::is_none")]
    lock_mode: Option<Arc<str>>, Text, "Lock mode that the session waits for.";
    #[serde(skip_serializing_if = "Option::is_none")]
    lock_wait_ns: Option<u64>, Ns, "Time that the session has waited for the lock.";
    #[serde(skip_serializing_if = "Vec::is_empty")]
    blockers: Vec<u64>, Id, "PIDs of the blockers; 0: a prepared transaction.";
    blocker_count: u32, Count, "Number of blockers, which may be more than are listed.";
}

/// The static name of a state.
fn state(name: &str) -> &'static str {
    ["active", "idle", "idle in transaction", "background"]
        .into_iter()
        .find(|known| *known == name)
        .unwrap_or("dead")
}

impl SessionHistoryRow {
    /// Whether the session waits for a lock.
    pub fn is_blocked(&self) -> bool {
        self.lock_wait_ns.is_some()
    }

    /// The key of the session's statement in `statement_texts`; `None`: not known.
    pub fn statement(&self) -> Option<(i64, u32, u32, bool)> {
        // Only statements that clients sent themselves are recorded.
        let id = self.queryid?;
        Some((id, self.statement_database_id, self.statement_user_id, true))
    }

    /// The session as in an interval, without accounts and locks.
    pub fn session(&self) -> SessionRow {
        let seconds = |ns: u64| ns as f64 * 1e-9;
        let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_string);
        let pid = |pid: i64| i32::try_from(pid).unwrap_or(0);
        SessionRow {
            pid: pid(self.pid),
            leader_pid: self.leader_pid.map(pid),
            kind: self.process.to_string(),
            database: text(&self.database),
            user: text(&self.user),
            application: self.application.to_string(),
            client_address: text(&self.client_address),
            phase: self.phase.clone(),
            activity: self.activity.clone(),
            class: WaitClass::of_name(&self.activity),
            since_seconds: seconds(self.since_ns),
            transaction_seconds: self.transaction_ns.map(seconds),
            age_seconds: None,
            state: state(&self.state),
            lived_seconds: seconds(self.interval_ns),
            busy_seconds: seconds(self.busy_ns),
            cpu_seconds: (!self.cpu_unknown).then(|| seconds(self.cpu_ns)),
            commands: self.commands,
            slot: 0,
            generation: 0,
            holding_count: 0,
            holding: Vec::new(),
            accounts: Vec::new(),
            pauses: None,
        }
    }
}

impl Recording {
    /// The sessions of the intervals in a range that were not idle.
    pub fn session_history(&self, range: Range) -> Result<Vec<SessionHistoryRow>, Error> {
        self.rows(range)
    }

    /// The same interval by interval, with at most an hour in memory at a time.
    pub fn each_session_history(
        &self,
        range: Range,
        mut see: impl FnMut(&[SessionHistoryRow]),
    ) -> Result<(), Error> {
        // All rows of an interval are in the same file, or in the journal.
        self.each_file(range, |mut rows: Vec<SessionHistoryRow>| {
            // Rows are long: they are moved once, after their keys have been sorted.
            rows.sort_by_cached_key(|row| (row.frame, row.pid));
            rows.chunk_by(|a, b| a.frame == b.frame).for_each(&mut see);
        })
    }
}
