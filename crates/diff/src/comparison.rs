// SPDX-License-Identifier: PostgreSQL
//! The result of a comparison. docs/reference-json.md describes its JSON form.

use std::sync::Arc;

use serde::Serialize;

use super::call_change::{CallChange, Calls};
use super::processors::Processors;
pub use super::verdict::ChangeVerdict;
use stats::Precision;
use view::document::{Finding, ReportOrigin};

/// The result of a comparison.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// Always "pgtally diff".
    pub format: &'static str,
    /// Version of the format; fields may be added without a new version.
    pub version: u32,
    /// The program that made it, and when.
    pub made: ReportOrigin,
    /// The unit by which time is counted.
    pub per: DiffUnit,
    /// The baseline.
    pub a: Compared,
    /// The side that is compared with it.
    pub b: Compared,
    /// Findings, one sentence each.
    pub findings: Vec<Finding>,
    /// Differences of settings, versions and hardware.
    pub configuration: Vec<Setting>,
    /// What could not be compared, one sentence each.
    pub left_out: Vec<String>,
    /// The changes.
    #[serde(flatten)]
    pub rows: Rows,
}

/// The changes in all tables.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Rows {
    /// Busy time of client sessions per unit, for each unit; that of `per` first.
    pub totals: Vec<Total>,
    /// The same by account, largest change first. The changes add up to that of the total.
    pub accounts: Vec<ComparisonRow>,
    /// Busy time of the server's own processes.
    pub processes: Vec<ComparisonRow>,
    /// Locks of client sessions.
    pub locks: Vec<ComparisonRow>,
    /// Operations on files.
    pub files: Vec<ComparisonRow>,
    /// Timed functions.
    pub functions: Vec<ComparisonRow>,
    /// Server time of statements.
    pub statements: Vec<ComparisonRow>,
}

/// The unit by which time is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum DiffUnit {
    /// Commits that wrote WAL; read-only transactions are not counted
    Commit,
    /// Client messages that were handled
    Command,
    /// Seconds, for recordings without clients and loads with a fixed rate
    Second,
}

impl DiffUnit {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            DiffUnit::Commit => "commit",
            DiffUnit::Command => "command",
            DiffUnit::Second => "second",
        }
    }
}

/// A side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// The recording's directory.
    pub recording: String,
    /// The host on which it was made.
    pub host: String,
    /// For example "PostgreSQL 15.20".
    pub server: String,
    /// Start of the compared time, seconds since 1970.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// Recorded time.
    pub recorded_seconds: f64,
    /// Compared time.
    pub compared_seconds: f64,
    /// Whether nothing is missing in the compared time.
    pub exact: bool,
    /// "exact", or "sampled" if it was made of samples.
    pub source: &'static str,
    /// Blocks from which the noise is estimated.
    pub blocks: usize,
    /// CPUs of the machine; `None` if they were not recorded.
    pub processors: Option<Processors>,
    /// Client commits that wrote WAL.
    pub commits: u64,
    /// Client commands.
    pub commands: u64,
}

/// A setting, version or hardware property that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// "server", "machine" or "recording".
    pub group: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its value in A; `None` if unknown.
    pub a: Option<String>,
    /// Its value in B; `None` if unknown.
    pub b: Option<String>,
    /// Whether it is only a location (path, port, host) or a start time.
    pub place: bool,
}

/// Time per unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Total {
    /// The unit.
    pub per: DiffUnit,
    /// How it changed.
    #[serde(flatten)]
    pub change: Change,
    /// Units per second in A.
    pub a_per_second: f64,
    /// Units per second in B.
    pub b_per_second: f64,
    /// The part of the time in A that was spent waiting for a CPU: the accounts of CPU time beyond the kernel's time on a CPU;
    /// `None` if the kernel's was not recorded.
    pub a_waiting_seconds: Option<f64>,
    /// The same in B.
    pub b_waiting_seconds: Option<f64>,
}

impl Total {
    /// A total without rates.
    pub fn new(per: DiffUnit, change: Change) -> Total {
        Total {
            per,
            change,
            a_per_second: 0.0,
            b_per_second: 0.0,
            a_waiting_seconds: None,
            b_waiting_seconds: None,
        }
    }

    /// Whether the time changed because sessions waited longer, or shorter, for a CPU.
    pub fn waiting_explains(&self) -> bool {
        /// The rest may come from caches that others use, too.
        const MOST: f64 = 0.8;
        let waiting = self.a_waiting_seconds.zip(self.b_waiting_seconds).map(|(a, b)| b - a);
        let explains = |waiting: f64| waiting / self.change.change_seconds >= MOST;
        self.change.verdict.is_real() && waiting.is_some_and(explains)
    }
}

/// A change; times are seconds per unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Change {
    /// Time in A.
    pub a_seconds: f64,
    /// Time in B.
    pub b_seconds: f64,
    /// B minus A.
    pub change_seconds: f64,
    /// Half-width of the change's 95 % confidence interval; `None` if there are too few blocks.
    pub half_width_seconds: Option<f64>,
    /// The p-value of the change; `None` if there are too few blocks.
    pub p: Option<f64>,
    /// A change of this size would have been found in nine of ten comparisons; `None` if there are too few blocks.
    pub detectable_seconds: Option<f64>,
    /// The same time per second, if that decided because units come too unevenly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_second: Option<PerSecond>,
    /// The verdict.
    pub verdict: ChangeVerdict,
    /// The standard error of the change.
    #[serde(skip)]
    pub precision: Option<Precision>,
}

impl Change {
    /// Half-width of the change if it decided. If time per second decided, the change per unit is as uncertain as
    /// the number of units.
    pub fn half_width(&self) -> Option<f64> {
        let decides =
            |width: &f64| self.per_second.is_none() || *width <= self.change_seconds.abs();
        self.half_width_seconds.filter(decides)
    }
}

/// Time per second, that is, the average number of sessions or threads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PerSecond {
    /// In A.
    pub a_sessions: f64,
    /// In B.
    pub b_sessions: f64,
    /// Half-width of the 95 % confidence interval of their difference.
    pub half_width_sessions: Option<f64>,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparisonRow {
    /// What the row is about.
    #[serde(flatten)]
    pub what: Subject,
    /// How it changed.
    #[serde(flatten)]
    pub change: Change,
    /// Share of the total's change; `None` if the total is inconclusive, and for rows that are not part of the
    /// total.
    pub share: Option<f64>,
    /// Count per unit in A.
    pub a_count: f64,
    /// Count per unit in B.
    pub b_count: f64,
    /// Bytes per unit in A.
    pub a_bytes: f64,
    /// Bytes per unit in B.
    pub b_bytes: f64,
    /// For a statement: mean time of an execution in A, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a_mean_seconds: Option<f64>,
    /// The same in B.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b_mean_seconds: Option<f64>,
    /// Half-width of the 95 % confidence interval of the mean in A.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a_mean_half_width_seconds: Option<f64>,
    /// The same in B.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b_mean_half_width_seconds: Option<f64>,
    /// For a statement whose plan changed: what the plan in A has that the plan in B does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a_plan: Option<String>,
    /// The same for the plan in B.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b_plan: Option<String>,
    /// For a statement: how the time of a call changed.
    #[serde(flatten)]
    pub call: Option<CallChange>,
    /// For a statement: whether the time of a call changed by far more than its own noise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stands_out: bool,
    /// For a statement: its executions in A.
    #[serde(skip)]
    pub a_calls: Option<Calls>,
    /// The same in B.
    #[serde(skip)]
    pub b_calls: Option<Calls>,
}

impl ComparisonRow {
    /// Whether a change is beyond the noise, in its time per unit or in the time of a call.
    pub fn is_real(&self) -> bool {
        self.change.verdict.is_real() || self.call.is_some_and(|call| call.verdict.is_real())
    }

    /// Whether a statement's time per unit changed as that of all others did: its own change is not beyond the noise, and the
    /// common one is at least half of the whole. The machine, or something else that all statements share, changed.
    pub fn follows_the_others(&self) -> bool {
        let changed = matches!(self.change.verdict, ChangeVerdict::More | ChangeVerdict::Less);
        let whole = (self.change.b_seconds / self.change.a_seconds).ln();
        let common = |call: CallChange| call.common.ln_1p() / whole >= 0.5;
        changed && self.call.is_some_and(|call| !call.verdict.is_real() && common(call))
    }

    /// Whether this statement itself changed beyond the noise.
    pub fn is_real_by_itself(&self) -> bool {
        self.is_real() && !self.follows_the_others()
    }

    /// The verdict in words.
    pub fn words(&self) -> &'static str {
        let call = self.call.map(|call| call.verdict);
        match (self.change.verdict, call) {
            (ChangeVerdict::More, _) if self.follows_the_others() => "more, like all statements",
            (ChangeVerdict::Less, _) if self.follows_the_others() => "less, like all statements",
            (ChangeVerdict::Noise | ChangeVerdict::Unknown, Some(ChangeVerdict::More)) => {
                "a call takes more"
            }
            (ChangeVerdict::Noise | ChangeVerdict::Unknown, Some(ChangeVerdict::Less)) => {
                "a call takes less"
            }
            // The blocks do not decide: the machine may explain it.
            (ChangeVerdict::Noise | ChangeVerdict::Unknown, None) if self.stands_out => {
                "unconfirmed"
            }
            (verdict, _) => verdict.words(),
        }
    }

    /// A row without counts.
    pub fn new(what: Subject, change: Change) -> ComparisonRow {
        ComparisonRow {
            what,
            change,
            share: None,
            a_count: 0.0,
            b_count: 0.0,
            a_bytes: 0.0,
            b_bytes: 0.0,
            a_mean_seconds: None,
            b_mean_seconds: None,
            a_mean_half_width_seconds: None,
            b_mean_half_width_seconds: None,
            a_plan: None,
            b_plan: None,
            call: None,
            stands_out: false,
            a_calls: None,
            b_calls: None,
        }
    }
}

/// What a row is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(untagged)]
pub enum Subject {
    /// An account of the ledger.
    Account {
        /// The phase of the client's command.
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
        /// "inclusive": including what it called; "exclusive": without other timed functions that it
        /// called.
        part: &'static str,
    },
    /// A statement.
    Statement {
        /// Its text, or its query id.
        query: Arc<str>,
        /// Its database.
        database: String,
        /// Its user.
        user: String,
        /// Whether the client sent it.
        toplevel: bool,
    },
}

impl Subject {
    /// Whether it is the time of processes without a wait event.
    pub fn is_without_wait(&self) -> bool {
        match self {
            Subject::Account { activity, .. } | Subject::Process { activity, .. } => {
                matches!(&**activity, "cpu" | segment::sampling::UNKNOWN)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A statement that takes 18 % more time per unit; a call's own change has `own`, the change of the others is `common`.
    fn row(common: f64, own: ChangeVerdict) -> ComparisonRow {
        let what = Subject::Statement {
            query: "select 1".into(),
            database: String::new(),
            user: String::new(),
            toplevel: true,
        };
        let change = Change {
            a_seconds: 1.0,
            b_seconds: 1.18,
            verdict: ChangeVerdict::More,
            ..Change::default()
        };
        let call = CallChange {
            relative: 0.005,
            common,
            half_width: 0.07,
            p: 0.9,
            detectable: 0.1,
            verdict: own,
        };
        ComparisonRow { call: Some(call), ..ComparisonRow::new(what, change) }
    }

    #[test]
    fn a_statement_that_changed_as_all_others_did_has_not_changed_itself() {
        let machine = row(0.17, ChangeVerdict::Noise);
        assert!(machine.is_real() && !machine.is_real_by_itself());
        assert_eq!(machine.words(), "more, like all statements");
        assert!(row(0.02, ChangeVerdict::Noise).is_real_by_itself());
        assert!(row(0.17, ChangeVerdict::More).is_real_by_itself());
    }
}
