// SPDX-License-Identifier: PostgreSQL
//! The figures that the rules examine, and the questions that several rules share.

use segment::interval::{AccountRow, Interval, SessionRow};
use segment::kernel::KernelView;
use view::blocking::{Blocker, Forest};
use view::deadlocks::Deadlock;
use view::io::Checkpoint;
use view::statements::{
    named, ActivityRow, CurrentRow, PlanRow, StatementFigures, StatementsTable,
};
use view::units::{capitalise, percent};
use view::vacuum::{Condition, ConditionKind, Vacuum};
use view::Reading;

/// A statement with less of something is not the one to look at.
const LITTLE: f64 = 0.2;
/// Characters of a statement in a sentence.
pub(crate) const TEXT: usize = 70;

/// The figures of some time.
#[derive(Debug, Clone, Copy)]
pub struct Case<'c> {
    /// The ledger and everything that comes with it. Rules ask [`Case::interval`].
    pub whole: &'c Interval,
    /// The sessions of a recording, whose activities are known from samples: the interval has none then.
    pub sampled: &'c [SessionRow],
    /// The statements of the same time; `None`: they are not counted.
    pub statements: Option<&'c StatementsTable>,
    /// The checkpoints that ended in that time, oldest first.
    pub checkpoints: &'c [Checkpoint],
    /// Known deadlocks, oldest first. Rules ask [`Case::deadlocks`].
    pub known_deadlocks: &'c [Deadlock],
    /// Who blocked whom, at its end or earlier ([`choose_blocking`]); `None`: not known.
    pub blocking: Option<&'c Forest>,
    /// If it was earlier: the session that blocked others then.
    pub blocker: Option<&'c Blocker>,
    /// The plans of statements; empty: not known.
    pub plans: &'c [PlanRow],
    /// How far vacuum is behind; `None`: not known.
    pub vacuum: Option<&'c Vacuum>,
}

/// Locks for which nobody has waited longer are passed on, seconds.
pub(crate) const PASSED_ON: f64 = 0.5;

/// Who blocked whom, for diagnoses of some time: at its end, `now`, if a session keeps others waiting then. Otherwise, whoever
/// blocks others in that instant says little, and it is as of when `blocker`, for which they waited most of the time, kept them
/// longest; then it is the second value.
pub fn choose_blocking<'c>(
    now: Option<&'c Forest>,
    blocker: Option<&'c Blocker>,
) -> (Option<&'c Forest>, Option<&'c Blocker>) {
    let keeps = |forest: &Forest| forest.roots.iter().any(|root| root.keeps_seconds() >= PASSED_ON);
    match blocker.filter(|_| !now.is_some_and(keeps)) {
        Some(blocker) => (Some(&blocker.forest), Some(blocker)),
        None => (now, None),
    }
}

impl<'c> Case<'c> {
    /// The case of a view of intervals: the last seconds if it has them, otherwise the interval. Recorded last seconds have no
    /// sessions: what the interval has are samples.
    pub fn from_reading(reading: &'c Reading) -> Case<'c> {
        let (interval, statements) = match &reading.recent {
            Some(recent) => (&recent.interval, &recent.statements),
            None => (&reading.interval, &reading.statements),
        };
        let since = interval.time - interval.interval_seconds;
        let last = reading.io.as_ref().and_then(|io| io.checkpoint.as_ref());
        let recent = last.filter(|checkpoint| checkpoint.ended.is_some_and(|ended| ended >= since));
        let sampled = reading.recorded.as_ref().and(reading.recent.as_ref());
        let (blocking, blocker) =
            choose_blocking(reading.blocking.as_ref(), reading.blocker.as_ref());
        Case {
            whole: interval,
            sampled: sampled.map_or(&[], |_| &reading.interval.sessions),
            statements: statements.as_ref(),
            checkpoints: recent.map_or(&[], std::slice::from_ref),
            known_deadlocks: &reading.deadlocks,
            blocking,
            blocker,
            plans: reading.statements.as_ref().map_or(&[], |table| &table.plans),
            vacuum: reading.vacuum.as_ref(),
        }
    }
}

impl<'c> Case<'c> {
    /// The figures of everybody but tally itself.
    pub(crate) fn interval(&self) -> &'c Interval {
        self.whole.without_own()
    }

    /// A number of waits that ended; `None` of samples, which do not tell it.
    pub(crate) fn known(&self, count: u64) -> Option<u64> {
        self.interval().sampling.is_none().then_some(count)
    }

    /// The kernel's view of all processes.
    pub(crate) fn kernel(&self) -> &'c KernelView {
        &self.whole.kernel
    }

    /// The statements that clients sent, most time first, without tally's own.
    pub(crate) fn statement_rows(&self) -> impl Iterator<Item = &'c StatementFigures> {
        self.all_statement_rows().filter(|row| row.toplevel)
    }

    /// The same, with the statements that others executed.
    pub(crate) fn all_statement_rows(&self) -> impl Iterator<Item = &'c StatementFigures> {
        let rows = self.statements.map_or(&[][..], |table| &table.rows);
        rows.iter().filter(|row| row.queryid.is_some() && !row.own)
    }

    /// The sessions of the interval, without tally's own; none of a recording.
    pub(crate) fn live_sessions(&self) -> impl Iterator<Item = &'c SessionRow> {
        self.whole.sessions.iter().filter(|row| !row.is_own())
    }

    /// The sessions of the interval or of the recording, without tally's own.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = &'c SessionRow> {
        self.live_sessions().chain(self.recorded_sessions())
    }

    /// The sessions of the recording, without tally's own; none of an interval.
    pub(crate) fn recorded_sessions(&self) -> impl Iterator<Item = &'c SessionRow> {
        self.sampled.iter().filter(|row| !row.is_own())
    }
}

impl<'c> Case<'c> {
    /// Time of the clients' sessions that was not idle, seconds.
    pub(crate) fn load(&self) -> f64 {
        self.seconds_of(|_| true)
    }

    /// The part of it in the accounts that `wanted` accepts.
    pub(crate) fn seconds_of(&self, wanted: impl Fn(&AccountRow) -> bool) -> f64 {
        self.accounts().filter(|a| wanted(a)).map(|a| a.timing.seconds).sum()
    }

    /// The accounts of the clients' sessions that are not idle.
    pub(crate) fn accounts(&self) -> impl Iterator<Item = &'c AccountRow> {
        self.interval().ledger.iter().filter(|account| is_of_client(account))
    }

    /// `seconds` as a part of the load, at most 1: workers and the kernel's figures may exceed it.
    pub(crate) fn share(&self, seconds: f64) -> f64 {
        (seconds / self.load().max(1e-9)).min(1.0)
    }

    /// The beginning of the interval, seconds since 1970.
    pub(crate) fn from(&self) -> f64 {
        self.whole.time - self.whole.interval_seconds
    }

    /// The statement for which a session works, or the one whose message it handles.
    pub(crate) fn current(&self) -> &'c [CurrentRow] {
        self.statements.map_or(&[], |table| &table.current)
    }

    /// The deadlocks of this time, oldest first.
    pub(crate) fn deadlocks(&self) -> impl Iterator<Item = &'c Deadlock> {
        let (from, to) = (self.from(), self.whole.time);
        let within = move |deadlock: &&Deadlock| {
            deadlock.time.is_some_and(|time| from <= time && time <= to)
        };
        self.known_deadlocks.iter().filter(within)
    }

    /// The conditions of this kind that the server's own views report.
    pub(crate) fn conditions(&self, kind: ConditionKind) -> impl Iterator<Item = &'c Condition> {
        self.vacuum.into_iter().flat_map(move |answer| answer.conditions(kind))
    }

    /// Whether a signal has stopped the process, which then neither works nor releases anything.
    pub(crate) fn is_stopped(&self, pid: i32) -> bool {
        self.conditions(ConditionKind::Stopped).any(|process| process.count == i64::from(pid))
    }

    /// The log collector, if it is stopped.
    pub(crate) fn stopped_logger(&self) -> Option<&'c Condition> {
        self.conditions(ConditionKind::Stopped).find(|process| process.name.trim() == "logger")
    }

    /// WAL of clients' statements, bytes per second.
    pub(crate) fn wal_rate(&self) -> f64 {
        let bytes: u64 = self.statement_rows().map(|row| row.wal.bytes).sum();
        bytes as f64 / self.length()
    }

    /// Measured time.
    pub(crate) fn length(&self) -> f64 {
        self.whole.instrumented_seconds.max(1e-9)
    }

    /// The statement of a client that spent most time in the accounts that `wanted` accepts, and how much.
    pub(crate) fn statement(
        &self,
        wanted: impl Fn(&ActivityRow) -> bool,
    ) -> Option<(&'c StatementFigures, f64)> {
        let seconds = |row: &StatementFigures| -> f64 {
            row.activities.iter().filter(|a| wanted(a)).map(|a| a.seconds).sum()
        };
        let row = self.statement_rows().max_by(|a, b| seconds(a).total_cmp(&seconds(b)))?;
        Some((row, seconds(row))).filter(|(_, seconds)| *seconds > 0.0)
    }

    /// "83 % of it is in statement ..." of the statement that spent most time there; `None` if even that spent
    /// little of it.
    pub(crate) fn whose(&self, all: f64, wanted: impl Fn(&ActivityRow) -> bool) -> Option<String> {
        let (row, seconds) = self.statement(wanted)?;
        let part = capitalise(&some_of(seconds, all)?);
        Some(format!("{part} of it is in {}.", words(row)))
    }

    /// ", 83 % of it in statement ...", for the first sentence of a diagnosis that names nobody else: who reads no further knows
    /// whom it is about. Empty if even that statement spent little of it.
    pub(crate) fn in_statement(&self, all: f64, wanted: impl Fn(&ActivityRow) -> bool) -> String {
        let part = |(row, seconds): (&StatementFigures, f64)| {
            Some(format!(", {} of it in {}", some_of(seconds, all)?, words(row)))
        };
        self.statement(wanted).and_then(part).unwrap_or_default()
    }
}

/// What [`some_of`] says of all.
pub(crate) const ALL: &str = "all";

/// How much a part is of all: "83.1 %" or "all"; `None`: it is little.
pub(crate) fn some_of(part: f64, all: f64) -> Option<String> {
    /// With one decimal, this is 100 %.
    const WHOLE: f64 = 0.9995;

    let share = (part / all.max(1e-9)).min(1.0);
    (share >= LITTLE).then(|| match share >= WHOLE {
        true => ALL.to_owned(),
        false => format!("{} %", percent(share)),
    })
}

/// Whether that is time of clients' sessions that is not idle.
pub(crate) fn is_of_client(account: &AccountRow) -> bool {
    !account.idle && !matches!(&*account.phase, "background" | "replication" | "off")
}

/// A statement in a sentence.
pub(crate) fn words(row: &StatementFigures) -> String {
    named(row.query.as_deref(), row.queryid, TEXT)
}
