// SPDX-License-Identifier: PostgreSQL
//! What a comparison says: docs/reference-json.md describes it field by field, as its JSON form has them.

use std::sync::Arc;

use serde::Serialize;

use super::machine::Processors;
use view::document::{Finding, Made};

/// All of it.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// Always "pgtally diff".
    pub format: &'static str,
    /// Of the format; fields may be added without a new one.
    pub version: u32,
    /// Who made it, and when.
    pub made: Made,
    /// What time is counted by.
    pub per: Per,
    /// What B is compared with.
    pub a: Compared,
    /// What is compared.
    pub b: Compared,
    /// What is to be said, a sentence each.
    pub findings: Vec<Finding>,
    /// How the two were set up differently.
    pub configuration: Vec<Setting>,
    /// What could not be compared, a sentence each.
    pub left_out: Vec<String>,
    /// Time of clients' sessions that was not idle, for each of what they are counted by; that
    /// of `per` first.
    pub totals: Vec<Total>,
    /// The same by account, the greatest change first. The changes add up to the total's.
    pub accounts: Vec<Row>,
    /// Time of the server's own processes that was not idle.
    pub processes: Vec<Row>,
    /// Locks of clients' sessions.
    pub locks: Vec<Row>,
    /// Operations on files.
    pub files: Vec<Row>,
    /// Probed functions.
    pub functions: Vec<Row>,
    /// Time worked for statements.
    pub statements: Vec<Row>,
}

/// What time is counted by: a transaction, as well as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// Commits that wrote WAL; read-only transactions are not counted
    Commit,
    /// Client messages that were handled
    Command,
}

impl Per {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Per::Commit => "commit",
            Per::Command => "command",
        }
    }
}

/// A side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// The recording's directory.
    pub recording: String,
    /// The host that it was made on.
    pub host: String,
    /// "PostgreSQL 15.20".
    pub server: String,
    /// Begin of what is compared, seconds since 1970.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// How much of it was recorded.
    pub recorded_seconds: f64,
    /// How much of that is compared.
    pub compared_seconds: f64,
    /// Whether nothing is missing in what is compared.
    pub exact: bool,
    /// Blocks from which the noise is estimated.
    pub blocks: usize,
    /// The machine's processors; `None` where they were not recorded.
    pub processors: Option<Processors>,
    /// Commits of clients that wrote WAL.
    pub commits: u64,
    /// Commands of clients.
    pub commands: u64,
}

/// What is set, or is, otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// "server", "machine" or "recording".
    pub group: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// What it is in A; `None`: it is not known there.
    pub a: Option<String>,
    /// What it is in B, likewise.
    pub b: Option<String>,
    /// Whether it only tells where something lies or when it was started.
    pub place: bool,
}

/// Time for each of what it is counted by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Total {
    /// Of what.
    pub per: Per,
    /// How it changed.
    #[serde(flatten)]
    pub change: Change,
    /// So many a second in A.
    pub a_per_second: f64,
    /// So many a second in B.
    pub b_per_second: f64,
}

/// How something changed; times are seconds for each of what they are counted by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Change {
    /// In A.
    pub a_seconds: f64,
    /// In B.
    pub b_seconds: f64,
    /// In B more than in A.
    pub change_seconds: f64,
    /// Half the width of the change's 95 % interval; `None`: there is too little to tell.
    pub half_width_seconds: Option<f64>,
    /// Probability of such a change by chance alone; `None` likewise.
    pub p: Option<f64>,
    /// What that means.
    pub verdict: Verdict,
}

/// What a change means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// B takes more.
    More,
    /// B takes less.
    Less,
    /// Only B has it.
    New,
    /// Only A has it.
    Absent,
    /// It may be chance.
    #[default]
    Noise,
    /// There is too little to tell.
    Unknown,
}

impl Verdict {
    /// Whether it is more than chance.
    pub fn is_real(self) -> bool {
        !matches!(self, Verdict::Noise | Verdict::Unknown)
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::More => "more",
            Verdict::Less => "less",
            Verdict::New => "new",
            Verdict::Absent => "absent",
            Verdict::Noise => "noise",
            Verdict::Unknown => "unknown",
        }
    }
}

/// A part of the time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Which.
    #[serde(flatten)]
    pub what: What,
    /// How it changed.
    #[serde(flatten)]
    pub change: Change,
    /// Of the total's change; `None` where that may be chance, and of what is no part of it.
    pub share: Option<f64>,
    /// How often in A, for each of what is counted by.
    pub a_count: f64,
    /// How often in B.
    pub b_count: f64,
    /// Bytes in A, of what moves any.
    pub a_bytes: f64,
    /// Bytes in B.
    pub b_bytes: f64,
}

/// What a row is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum What {
    /// An account of the ledger.
    Account {
        /// What was done for the client.
        phase: Arc<str>,
        /// "cpu", or the wait event as `Type:Event`.
        activity: Arc<str>,
    },
    /// An activity of the server's own processes of one kind.
    Process {
        /// "checkpointer", ...
        process: Arc<str>,
        /// "cpu", or the wait event as `Type:Event`.
        activity: Arc<str>,
    },
    /// A lock.
    Lock {
        /// "LWLock" or "Lock".
        family: &'static str,
        /// The tranche, or the type and mode.
        lock: Arc<str>,
        /// "held", "acquire" or "wait".
        part: &'static str,
    },
    /// An operation on files.
    File {
        /// "client backend", ...
        process: Arc<str>,
        /// "main", "wal", ...
        file: Arc<str>,
        /// "read", "write", ...
        operation: Arc<str>,
    },
    /// A function.
    Function {
        /// "client backend", ...
        process: Arc<str>,
        /// Its symbol.
        function: Arc<str>,
        /// "inclusive": including what it called; "exclusive": less what functions with a probe
        /// took that it called.
        part: &'static str,
    },
    /// A statement.
    Statement {
        /// Its text, or its number.
        query: Arc<str>,
        /// Its database.
        database: String,
        /// Its user.
        user: String,
        /// Asked for by the client itself.
        toplevel: bool,
    },
}
