// SPDX-License-Identifier: PostgreSQL
//! One diagnosis, and the rules by name.

use crate::advice::Advice;
use serde::{Serialize, Serializer};

/// Whether somebody should act on a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Somebody or something makes others wait, fail or grow without need, and a person can end it.
    Problem,
    /// What bounds the load at the moment: a healthy server has one as soon as it is busy.
    Limit,
    /// What is good to know, and no problem: somebody has changed a setting.
    Note,
}

/// How sure a rule is of the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// It was measured.
    Certain,
    /// It explains what was measured, and little else does.
    Likely,
    /// It is worth a look.
    Possible,
}

impl Confidence {
    /// Its name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Confidence::Certain => "certain",
            Confidence::Likely => "likely",
            Confidence::Possible => "possible",
        }
    }
}

/// A rule that found something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Sessions wait for heavyweight locks.
    Locks,
    /// A session is idle in a transaction for long.
    IdleInTransaction,
    /// A statement reads far more than it returns.
    MissingIndex,
    /// A statement has another plan, and is slower with it.
    PlanChange,
    /// Checkpoints come too often.
    Checkpoints,
    /// Commits wait for the WAL.
    Commits,
    /// Reads or syncs are slow.
    SlowDevice,
    /// Reads of data files take much of the time.
    BufferMisses,
    /// Statements write temporary files.
    TemporaryFiles,
    /// A lightweight lock is contended.
    LightweightLocks,
    /// There is more work than processors.
    Processors,
    /// A client sends many small statements in a transaction.
    ManySmallStatements,
    /// Clients do not read their results fast enough.
    SlowClients,
    /// Sessions are started all the time.
    Connections,
    /// Commits wait for standbys.
    Replication,
    /// Parsing and planning take longer than executing.
    Planning,
    /// JIT compilation takes much of a statement's time.
    Jit,
    /// A statement has been running for minutes.
    LongStatement,
    /// Statements that run once evict others.
    StatementFlood,
    /// Dead rows are not removed.
    Vacuum,
    /// Messages to the server's log are not taken.
    LogPipe,
    /// The segment finds no memory for sessions and statements.
    SmallFileSystem,
    /// A file system of the server is nearly full.
    FullDisk,
    /// A replication slot retains WAL.
    Slot,
    /// WAL files are not archived.
    Archiver,
    /// A prepared transaction is left open.
    PreparedTransaction,
    /// Transaction IDs run out.
    Wraparound,
    /// Sessions block each other, and the server ends one of them.
    Deadlocks,
    /// Autovacuum sleeps more than it works.
    VacuumThrottled,
    /// A table of the system catalog has grown far beyond its rows.
    CatalogBloat,
    /// A process of the server is stopped.
    StoppedProcess,
    /// A slow statement uses tables without current statistics.
    StaleStatistics,
    /// The server's log has an error that no client can have caused alone. Only recordings have the log.
    ServerLog,
    /// Operations on files failed.
    FailedOperations,
    /// Time that the ledger cannot explain.
    Unexplained,
    /// The server cannot apply a line of its configuration files.
    ConfigurationError,
    /// Settings in the configuration files need a restart.
    PendingRestart,
    /// Settings have changed.
    ChangedSettings,
}

impl Rule {
    /// Its name in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Locks => "locks",
            Rule::IdleInTransaction => "idle-in-transaction",
            Rule::MissingIndex => "missing-index",
            Rule::PlanChange => "plan-change",
            Rule::Checkpoints => "checkpoints",
            Rule::Commits => "commits",
            Rule::SlowDevice => "slow-device",
            Rule::BufferMisses => "buffer-misses",
            Rule::TemporaryFiles => "temporary-files",
            Rule::LightweightLocks => "lightweight-locks",
            Rule::Processors => "processors",
            Rule::ManySmallStatements => "many-small-statements",
            Rule::SlowClients => "slow-clients",
            Rule::Connections => "connections",
            Rule::Replication => "replication",
            Rule::Planning => "planning",
            Rule::Jit => "jit",
            Rule::LongStatement => "long-statement",
            Rule::StatementFlood => "statement-flood",
            Rule::Vacuum => "vacuum-behind",
            Rule::LogPipe => "log-pipe",
            Rule::SmallFileSystem => "small-file-system",
            Rule::FullDisk => "full-disk",
            Rule::Slot => "replication-slot",
            Rule::Archiver => "archiver",
            Rule::PreparedTransaction => "prepared-transaction",
            Rule::Wraparound => "wraparound",
            Rule::Deadlocks => "deadlocks",
            Rule::VacuumThrottled => "vacuum-throttled",
            Rule::CatalogBloat => "catalog-bloat",
            Rule::StaleStatistics => "stale-statistics",
            Rule::StoppedProcess => "stopped-process",
            Rule::ConfigurationError => "configuration-error",
            Rule::PendingRestart => "pending-restart",
            Rule::ChangedSettings => "changed-settings",
            Rule::ServerLog => "server-log",
            Rule::FailedOperations => "failed-operations",
            Rule::Unexplained => "unexplained",
        }
    }

    /// The problems that it may have caused, if they were found, too.
    fn explains(self) -> &'static [Rule] {
        match self {
            Rule::Checkpoints => &[Rule::Commits, Rule::SlowDevice, Rule::LightweightLocks],
            Rule::Commits => &[Rule::LightweightLocks, Rule::Locks],
            Rule::PlanChange => &[Rule::MissingIndex, Rule::BufferMisses, Rule::Processors],
            Rule::StaleStatistics => &[
                Rule::MissingIndex,
                Rule::BufferMisses,
                Rule::TemporaryFiles,
                Rule::LongStatement,
                Rule::Processors,
            ],
            Rule::VacuumThrottled => &[Rule::Vacuum],
            Rule::Deadlocks => &[Rule::Locks],
            Rule::Locks => &[Rule::PreparedTransaction],
            Rule::MissingIndex => &[Rule::BufferMisses, Rule::Processors, Rule::LongStatement],
            Rule::Jit | Rule::LongStatement | Rule::Planning => &[Rule::Processors],
            Rule::Connections => &[Rule::Processors, Rule::Planning],
            _ => &[],
        }
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

/// One finding: what is wrong, or what bounds the load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnosis {
    /// The rule that found it.
    pub rule: Rule,
    /// Whether it is a problem.
    pub kind: Kind,
    /// What is wrong: a sentence that names who or which object it is.
    pub text: String,
    /// Time of sessions that it takes in the interval, seconds.
    pub seconds: f64,
    /// The same as a part of the time that the sessions worked or waited; `None`: it is time of clients, not of
    /// the server.
    pub share: Option<f64>,
    /// What it was concluded from, a sentence each.
    pub evidence: Vec<String>,
    /// What to look at or to change.
    #[serde(flatten)]
    pub advice: Advice,
    /// How sure that is.
    pub confidence: Confidence,
    /// The section of a report that shows the figures.
    pub section: &'static str,
    /// The diagnosis before it that is its cause; of a rule: what its cause would be, if that is found, too.
    pub consequence_of: Option<Rule>,
}

/// A problem that takes no time of sessions at the moment (dead rows, an open transaction) counts as this
/// many sessions.
const STANDING: f64 = 0.1;

impl Diagnosis {
    /// Whether it is the cause of the other one.
    pub(crate) fn explains(&self, other: &Diagnosis) -> bool {
        // Sessions may wait for other locks than those of a deadlock now and then.
        let enough = self.rule != Rule::Deadlocks || self.seconds >= 0.5 * other.seconds;
        let by_rule = enough && self.rule.explains().contains(&other.rule);
        by_rule || other.consequence_of == Some(self.rule)
    }

    /// How far up it belongs in an interval of `length` seconds: its time, and how sure its cause is.
    pub fn weight(&self, length: f64) -> f64 {
        let sure = match self.confidence {
            Confidence::Certain | Confidence::Likely => 1.0,
            Confidence::Possible => 0.5,
        };
        let seconds = match self.rule {
            // These spoil figures, but take nobody's time.
            Rule::StatementFlood | Rule::SmallFileSystem => 0.0,
            _ if self.seconds > 0.0 => self.seconds,
            _ => STANDING * length,
        };
        sure * seconds
    }

    /// The first sentence: what is wrong, and whether something else causes it; or the limit.
    pub fn headline(&self) -> String {
        let begin = match (self.kind, self.consequence_of) {
            (Kind::Limit, _) => "Limit: ",
            (Kind::Note, _) => "Note: ",
            (Kind::Problem, Some(_)) => "As a consequence: ",
            (Kind::Problem, None) => "",
        };
        format!("{begin}{}", self.text)
    }

    /// The sentences after it: what to do, the time that it takes, how sure the cause is, and the evidence.
    pub fn details(&self, sampled: bool) -> Vec<String> {
        let advice = format!("What to do: {}", &*self.advice);
        let sure = format!("The cause is {}.", self.confidence.name());
        let facts = self.time(sampled).map_or(sure.clone(), |time| format!("{time} {sure}"));
        [advice, facts].into_iter().chain(self.evidence.iter().cloned()).collect()
    }
}
