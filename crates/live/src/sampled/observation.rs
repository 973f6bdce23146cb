// SPDX-License-Identifier: PostgreSQL
//! One sample of pg_stat_activity.

/// One sample.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// When the server was read, ns of this machine's CLOCK_MONOTONIC: the tick of the image's clock.
    pub tick: u64,
    /// The server's time of day then, ns since 1970.
    pub realtime_ns: u64,
    /// How much later it was taken than the instant that was drawn for it.
    pub late_ns: u64,
    /// How long the server took for it.
    pub read_ns: u64,
    /// CPU time of the server for it; if that cannot be seen, `read_ns`.
    pub cost_ns: u64,
    /// The sessions that the role may see.
    pub sessions: Vec<Observation>,
    /// Whether the server hides sessions from the role.
    pub hidden: bool,
}

impl Sample {
    /// Whether any session waits for a heavyweight lock.
    pub(super) fn has_lock_waits(&self) -> bool {
        self.sessions.iter().any(|session| session.wait.starts_with("Lock:"))
    }
}

/// A session at that instant.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observation {
    /// Its process.
    pub pid: i32,
    /// When the process began, microseconds since 1970; with `pid`, this identifies the session.
    pub begun_us: i64,
    /// The leader of a parallel worker, otherwise 0.
    pub leader_pid: i32,
    /// "client backend", ...
    pub kind: String,
    /// OID of its database, or 0.
    pub database_id: u32,
    /// OID of its role, or 0.
    pub user_id: u32,
    /// Name of its database, or empty.
    pub database: String,
    /// Name of its role, or empty.
    pub user: String,
    /// application_name.
    pub application: String,
    /// The client's address; "local" for a Unix-domain socket; empty without a client.
    pub client: String,
    /// "active", "idle", ... as pg_stat_activity has it; empty for a background process.
    pub state: String,
    /// The wait event as `Type:Event`, or empty.
    pub wait: String,
    /// The statement's query identifier, or 0.
    pub query_id: i64,
    /// The statement's text if the server computes no query identifiers; otherwise empty.
    pub query: String,
    /// Ages at the time of the sample, ns; `None`: there is none.
    pub ages: Ages,
}

/// Since when, in ns before the sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ages {
    /// The process.
    pub session: Option<u64>,
    /// Its transaction.
    pub transaction: Option<u64>,
    /// Its statement, or the last one.
    pub statement: Option<u64>,
    /// Its state.
    pub state: Option<u64>,
}

/// A session that waits for a heavyweight lock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blockage {
    /// The process.
    pub pid: i32,
    /// How long it has waited, ns.
    pub age_ns: u64,
    /// Type of the lock, as in pg_locks.
    pub lock_type: String,
    /// The first three fields of its LOCKTAG.
    pub fields: [u32; 3],
    /// The fourth field.
    pub field4: u16,
    /// The requested mode, as in pg_locks.
    pub mode: String,
    /// The processes that block it, as pg_blocking_pids() returns them.
    pub blockers: Vec<i32>,
}

impl Observation {
    /// The account that this session's time goes to, half-way to the samples before and after: phase, and activity as a segment names
    /// it. The time of a session without a wait event is that of a CPU only if samples tell it apart.
    pub(super) fn account(&self, cpu_told_apart: bool) -> String {
        let phase = match self.state.as_str() {
            "" if self.kind == segment::own::CLIENT || self.kind == segment::own::PROCESS => {
                "active"
            }
            "" => "background",
            // With track_activities off, only the wait event tells.
            "disabled" if self.wait == "Client:ClientRead" => "idle",
            "disabled" if self.kind != segment::own::CLIENT => "background",
            "idle" => "idle",
            "idle in transaction" | "idle in transaction (aborted)" => "idle in transaction",
            _ => "active",
        };
        match self.wait.as_str() {
            "" if !cpu_told_apart => format!("{phase}::{}", segment::sampling::UNKNOWN),
            "" => format!("{phase}::cpu"),
            wait => format!("{phase}::wait::{wait}"),
        }
    }

    /// Whether kind, database, role and application are the same.
    pub(super) fn is_named_as(&self, other: &Observation) -> bool {
        self.kind == other.kind
            && self.database_id == other.database_id
            && self.user_id == other.user_id
            && self.application == other.application
    }

    /// The part of its life that no sample sees, at most, judged by how long it has lived: a process takes some time to connect and
    /// to end, and the server shows it only in between. 0 if it is older than a second.
    pub(super) fn unseen(&self) -> f64 {
        /// The unseen time of one process, ns.
        const UNSEEN: f64 = 50e6;
        const YOUNG: u64 = 1_000_000_000;

        match self.ages.session {
            Some(age) if age < YOUNG => (UNSEEN / age.max(1) as f64).min(1.0),
            _ => 0.0,
        }
    }

    /// Whether it executes a statement.
    pub(super) fn executes(&self) -> bool {
        matches!(self.state.as_str(), "active" | "fastpath function call")
    }

    /// Identifies the stretch of time in its account, if the server says when that began; two samples with
    /// the same value have seen the same one. Short waits come again and again within a statement, so only
    /// kinds of waits that are usually long belong to it.
    pub(super) fn stretch(&self, sampled_us: i64) -> Option<i64> {
        let began = |age: Option<u64>| age.map(|ns| sampled_us - (ns / 1000) as i64);
        match self.state.as_str() {
            "idle" | "idle in transaction" | "idle in transaction (aborted)" => {
                began(self.ages.state)
            }
            _ if self.wait.starts_with("Lock:") || self.wait == "Timeout:PgSleep" => {
                began(self.ages.statement)
            }
            _ => None,
        }
    }
}
