// SPDX-License-Identifier: PostgreSQL
//! The one model of an interval, from which every view is made. docs/reference-json.md describes it
//! field by field, as its JSON form has them.
//!
//! Conservation: `wall_seconds` is the sum of what all sessions lived in the interval, and
//! the seconds of the ledger are that sum, divided otherwise.

use crate::commits::{self, Checkpoints, Commits};
use crate::delta::Total;
use crate::directory::{Stat, StatKind};
use crate::files::{self, FileRow, ProcessFileRow};
use crate::frame::{Frame, Population, Sums};
use crate::functions::{self, EdgeRow, FunctionRow};
use crate::level::Level;
use crate::locks::{self, LockRow, Locks, LwlockRow, PhaseRow};
use crate::segment::{Overflows, Segment};
use crate::snapshot::Snapshot;
use crate::wal::{self, WalRow};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;

/// Everything that one interval holds.
#[derive(Debug, Clone, Serialize)]
pub struct Interval {
    /// When it ended, seconds since 1970.
    pub time: f64,
    /// Its length.
    pub interval_seconds: f64,
    /// The level in force at its end.
    pub level: Level,
    /// For how much longer, if it ends by itself.
    pub level_left_seconds: Option<f64>,
    /// And the level after that.
    pub level_then: Option<Level>,
    /// The clock by which it was measured.
    pub clock: ClockInfo,
    /// What was measured.
    pub server: ServerInfo,
    /// Processors of the machine.
    pub cores: usize,
    /// The time that all sessions lived in the interval, together.
    pub wall_seconds: f64,
    /// Of that, what is not idle.
    pub busy_seconds: f64,
    /// Commands handled.
    pub commands_handled: u64,
    /// Whether nothing is missing: no time uninstrumented, no overflow in the interval, no
    /// slot that could not be read consistently.
    pub exact: bool,
    /// Time of sessions while the level was off.
    pub uninstrumented_seconds: f64,
    /// The part of `interval_seconds` in which the level was not off, as the sessions lived
    /// it: rates are per second of this.
    pub instrumented_seconds: f64,
    /// The part of `interval_seconds` in which the level was locks: rates of locks are per
    /// second of this.
    pub locks_seconds: f64,
    /// Sessions that stand still inside an update and were read as they are.
    pub torn_sessions: usize,
    /// What found no room, since the segment was made.
    pub overflow: Overflows,
    /// What found no room in this interval.
    pub overflow_in_interval: Overflows,
    /// The sessions that are there at its end.
    pub sessions: Vec<SessionRow>,
    /// How many there are at its end; that is known of recorded intervals too.
    #[serde(skip)]
    pub population: Vec<Population>,
    /// Those that ended within it.
    pub ended: EndedRow,
    /// Where the time of all sessions went, by phase and activity; most first.
    pub ledger: Vec<AccountRow>,
    /// The same without the processor's part, by activity; most first.
    pub waits: Vec<ActivityRow>,
    /// The commands of the clients, by kind; most time first.
    pub commands: Vec<CommandRow>,
    /// Lightweight locks, by tranche, mode and phase; most waiting first.
    pub lwlocks: Vec<LwlockRow>,
    /// Waits for heavyweight locks, by type, mode and phase; most time first.
    pub locks: Vec<LockRow>,
    /// Checks for deadlocks, by phase.
    pub deadlock_checks: Vec<PhaseRow>,
    /// Delays at spinlocks that were found taken, by phase.
    pub spin_delays: Vec<PhaseRow>,
    /// Functions with a probe, called or not.
    pub functions_probed: usize,
    /// Their calls, by function and phase; most time first.
    pub functions: Vec<FunctionRow>,
    /// Calls of one by another; most time first.
    pub edges: Vec<EdgeRow>,
    /// Operations on files, by kind of file, tablespace and operation; most time first.
    pub files: Vec<FileRow>,
    /// The same by kind of process; most time first.
    pub file_processes: Vec<ProcessFileRow>,
    /// Commits that wrote WAL.
    pub commits: Commits,
    /// Checkpoints that ended.
    pub checkpoints: Checkpoints,
    /// The WAL that was inserted, by kind of process; most bytes first.
    pub wal: Vec<WalRow>,
    /// All other statistics, by name.
    pub statistics: Vec<StatisticRow>,
    /// What the kernel says; filled in by whoever asks it.
    pub kernel: crate::kernel::Witness,
}

/// The clock of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClockInfo {
    /// "tsc" or "monotonic".
    pub kind: &'static str,
    /// Ticks in a second.
    pub ticks_per_second: f64,
}

impl ClockInfo {
    /// A number of ticks in seconds.
    pub fn seconds(&self, ticks: u64) -> f64 {
        ticks as f64 / self.ticks_per_second
    }
}

/// What a segment tells of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerInfo {
    /// "PostgreSQL 15.20"; the producer where it is no server.
    pub name: String,
    /// The data directory, or what else is measured.
    pub host: String,
    /// The segment's file.
    pub segment: String,
    /// The server's first process; `None` when unknown.
    pub pid: Option<u32>,
    /// The server's port; `None` when unknown.
    pub port: Option<u32>,
    /// Who writes the segment.
    pub producer: String,
    /// When the segment was made, seconds since 1970; for a server that preloads pg_tally,
    /// its start.
    pub created: f64,
}

/// One session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionRow {
    /// The process.
    pub pid: i32,
    /// Of a parallel worker, its leader.
    pub leader_pid: Option<i32>,
    /// "client backend", ...
    pub kind: String,
    /// Its database; the number where no name is known; `None` when it has none.
    pub database: Option<String>,
    /// Its user, likewise.
    pub user: Option<String>,
    /// What the client calls itself.
    pub application: String,
    /// The phase that it is in.
    pub phase: Arc<str>,
    /// What it is doing there.
    pub activity: Arc<str>,
    /// For how long it has been doing that.
    pub since_seconds: f64,
    /// "active", "idle", "idle in transaction", "background", or "dead": its process is gone
    /// and its slot not folded yet.
    pub state: &'static str,
    /// Time that it lived in the interval: the sum of its accounts.
    pub lived_seconds: f64,
    /// Of that, what is not idle.
    pub busy_seconds: f64,
    /// Of that, what it did not wait.
    pub cpu_seconds: f64,
    /// Commands that it handled.
    pub commands: u64,
    /// Its slot.
    pub slot: u32,
    /// The how manieth owner of the slot it is.
    pub generation: u32,
    /// Lightweight locks that it holds.
    pub holding_count: u32,
    /// The first of them.
    pub holding: Vec<HoldingRow>,
    /// Its accounts that changed; most first.
    pub accounts: Vec<SessionAccount>,
}

/// A lightweight lock that a session holds at the end of the interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HoldingRow {
    /// Its tranche; the number where no name is known.
    pub lock: String,
    /// "exclusive" or "shared".
    pub mode: &'static str,
    /// For how long.
    pub seconds: f64,
}

/// An account of one session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionAccount {
    /// First tag of its name.
    pub phase: Arc<str>,
    /// The rest of it.
    pub activity: Arc<str>,
    /// Stretches that ended.
    pub count: u64,
    /// Time.
    pub seconds: f64,
    /// Whether this is idling.
    pub idle: bool,
}

/// The sessions that ended within the interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EndedRow {
    /// How many.
    pub sessions: u64,
    /// Time that they lived in it.
    pub seconds: f64,
}

/// Count, time and extremes of something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Timing {
    /// How many ended.
    pub count: u64,
    /// Their time; of accounts, the time in the interval.
    pub seconds: f64,
    /// `seconds / count`; `None` without a count.
    pub mean_seconds: Option<f64>,
    /// The shortest that ended; `None` where it is not known.
    pub min_seconds: Option<f64>,
    /// The longest that ended; of accounts also what is running still; `None` where it is
    /// not known, as of `cpu`, of which no histogram is kept.
    pub max_seconds: Option<f64>,
    /// The median of what ended, within 6.25 %.
    pub p50_seconds: Option<f64>,
    /// The 99th percentile of what ended, within 6.25 %.
    pub p99_seconds: Option<f64>,
}

impl Timing {
    pub(crate) fn of(total: &Total, clock: &ClockInfo) -> Timing {
        Timing::with(total, |ticks| clock.seconds(ticks))
    }

    pub(crate) fn with(total: &Total, seconds: impl Fn(u64) -> f64) -> Timing {
        let sum = seconds(total.change.total);
        Timing {
            count: total.change.count,
            seconds: sum,
            mean_seconds: (total.change.count > 0).then(|| sum / total.change.count as f64),
            min_seconds: total.change.min.known().map(&seconds),
            max_seconds: total.change.max.known().map(&seconds),
            p50_seconds: total.quantile(0.50).map(&seconds),
            p99_seconds: total.quantile(0.99).map(&seconds),
        }
    }
}

/// An account of the ledger.
#[derive(Debug, Clone, Serialize)]
pub struct AccountRow {
    /// What the sessions were doing for their clients.
    pub phase: Arc<str>,
    /// "cpu", or the wait event as `Type:Event`.
    pub activity: Arc<str>,
    /// How often and how long.
    #[serde(flatten)]
    pub timing: Timing,
    /// Whether this is idling: waiting for the client between commands, the main loop of a
    /// background process, or uninstrumented time.
    pub idle: bool,
    #[serde(skip)]
    total: Total,
}

impl AccountRow {
    /// What `total` of the account `stat` means.
    pub fn of(stat: &Stat, total: Total, clock: &ClockInfo) -> AccountRow {
        AccountRow {
            phase: stat.phase().clone(),
            activity: stat.activity().clone(),
            timing: Timing::of(&total, clock),
            idle: is_idle(stat),
            total,
        }
    }
}

/// An activity, all phases together.
#[derive(Debug, Clone, Serialize)]
pub struct ActivityRow {
    /// "cpu", or the wait event as `Type:Event`.
    pub activity: Arc<str>,
    /// How often and how long.
    #[serde(flatten)]
    pub timing: Timing,
    /// Whether all of it is idling.
    pub idle: bool,
}

/// The commands of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CommandRow {
    /// "Query", "Execute", ...
    pub kind: String,
    /// Waiting for the command, since the one before was handled.
    pub read: Timing,
    /// Handling it, from its arrival until the next is waited for.
    pub handle: Timing,
}

/// Any other statistic.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatisticRow {
    /// Its name.
    pub name: String,
    /// "seconds" for what is kept in ticks, else its own.
    pub unit: String,
    /// How many.
    pub count: u64,
    /// Their sum.
    pub total: f64,
    /// The least.
    pub min: Option<f64>,
    /// The greatest.
    pub max: Option<f64>,
    /// The median, within 6.25 %.
    pub p50: Option<f64>,
    /// The 99th percentile, within 6.25 %.
    pub p99: Option<f64>,
}

/// Whether an account is idling.
pub fn is_idle(stat: &Stat) -> bool {
    let (phase, activity) = (&**stat.phase(), &**stat.activity());
    let at_rest = phase == "idle" || phase == "idle in transaction";
    (at_rest && activity.starts_with("Client:"))
        || activity.starts_with("Activity:")
        || phase == "off"
}

impl Interval {
    /// What happened between two snapshots of a segment; without a first one, since the last
    /// reset or since the segment was made.
    pub fn between(
        segment: &Segment,
        previous: Option<&Snapshot>,
        snapshot: &Snapshot,
    ) -> Interval {
        Interval::from(Frame::between(segment, previous, snapshot))
    }

    /// What a frame says, or the sum of some.
    pub fn of(frame: &Frame) -> Interval {
        let sums = Sums::of(frame);
        let clock = &frame.clock;
        let mut ledger: Vec<AccountRow> = sums
            .changed()
            .filter(|(stat, _)| stat.kind == StatKind::Account)
            .map(|(stat, total)| AccountRow::of(stat, total.clone(), clock))
            .collect();
        ledger.sort_by(|a, b| {
            (b.timing.seconds)
                .total_cmp(&a.timing.seconds)
                .then_with(|| (&a.phase, &a.activity).cmp(&(&b.phase, &b.activity)))
        });
        let commands = command_rows(&sums);
        let sum = |f: fn(&AccountRow) -> bool| -> f64 {
            ledger.iter().filter(|a| f(a)).map(|a| a.timing.seconds).fold(0.0, |sum, s| sum + s)
        };
        let uninstrumented_seconds = sum(|a| &*a.phase == "off");
        let interval_seconds = clock.seconds(frame.ticks);
        let wall_seconds = clock.seconds(frame.wall);
        let off = if frame.wall > 0 { uninstrumented_seconds / wall_seconds } else { 0.0 };
        let locks = Locks::of(&sums);
        let (functions, edges) = functions::rows(&sums);
        let files = files::rows(&sums);
        let (commits, checkpoints) = commits::rows(&sums, &files);
        let mut interval = Interval {
            time: frame.realtime_ns as f64 * 1e-9,
            interval_seconds,
            level: frame.level,
            level_left_seconds: frame.level_end.map(|end| clock.seconds(end.left)),
            level_then: frame.level_end.map(|end| end.then),
            clock: *clock,
            server: frame.server.clone(),
            cores: frame.cores,
            wall_seconds,
            busy_seconds: sum(|a| !a.idle),
            commands_handled: commands.iter().map(|c| c.handle.count).sum(),
            exact: uninstrumented_seconds == 0.0 && frame.is_whole(),
            torn_sessions: frame.torn_sessions,
            uninstrumented_seconds,
            instrumented_seconds: interval_seconds * (1.0 - off).max(0.0),
            locks_seconds: clock.seconds(frame.locks_ticks),
            overflow: frame.overflow,
            overflow_in_interval: frame.overflow_in_interval,
            sessions: frame.sessions.clone(),
            population: frame.population.clone(),
            ended: EndedRow {
                sessions: frame.ended_sessions,
                seconds: clock.seconds(frame.ended_ticks),
            },
            waits: Vec::new(),
            commands,
            lwlocks: locks.lwlocks,
            locks: locks.locks,
            deadlock_checks: locks.deadlock_checks,
            spin_delays: locks.spin_delays,
            functions_probed: frame.functions_probed,
            functions,
            edges,
            files,
            file_processes: files::by_process(frame),
            commits,
            checkpoints,
            wal: wal::rows(frame),
            statistics: statistic_rows(&sums),
            ledger,
            kernel: frame.kernel.clone(),
        };
        interval.waits = interval.waits_of_ledger();
        interval
    }

    /// The ledger without the processor's part, by activity; most first.
    pub fn waits_of_ledger(&self) -> Vec<ActivityRow> {
        self.activities_where(|a| !matches!(&*a.activity, "cpu" | "uninstrumented"))
    }

    /// The ledger by activity, all phases together; most first.
    pub fn activities(&self) -> Vec<ActivityRow> {
        self.activities_where(|_| true)
    }

    /// The same, of the accounts that `wanted` accepts.
    pub fn activities_where(&self, wanted: impl Fn(&AccountRow) -> bool) -> Vec<ActivityRow> {
        let mut sums: HashMap<&Arc<str>, (Total, bool)> = HashMap::new();
        for account in self.ledger.iter().filter(|a| wanted(a)) {
            let sum = sums.entry(&account.activity).or_insert_with(|| (Total::default(), true));
            sum.0.merge(&account.total);
            sum.1 &= account.idle;
        }
        let ticks_per_second = self.clock.ticks_per_second;
        let mut rows: Vec<ActivityRow> = sums
            .into_iter()
            .map(|(activity, (total, idle))| ActivityRow {
                activity: activity.clone(),
                timing: Timing::with(&total, |t| t as f64 / ticks_per_second),
                idle,
            })
            .collect();
        rows.sort_by(|a, b| {
            (b.timing.seconds)
                .total_cmp(&a.timing.seconds)
                .then_with(|| a.activity.cmp(&b.activity))
        });
        rows
    }
}

impl From<Frame> for Interval {
    fn from(mut frame: Frame) -> Interval {
        // There may be many.
        let sessions = std::mem::take(&mut frame.sessions);
        Interval { sessions, ..Interval::of(&frame) }
    }
}

fn command_rows(sums: &Sums<'_>) -> Vec<CommandRow> {
    let mut rows: HashMap<&str, CommandRow> = HashMap::new();
    for (stat, total) in sums.changed() {
        let Some((kind, is_handle)) = stat.command() else {
            continue;
        };
        let row = rows.entry(kind).or_insert_with(|| CommandRow {
            kind: kind.to_string(),
            read: Timing::default(),
            handle: Timing::default(),
        });
        let timing = Timing::of(total, sums.clock());
        if is_handle {
            row.handle = timing;
        } else {
            row.read = timing;
        }
    }
    let mut rows: Vec<CommandRow> = rows.into_values().collect();
    rows.sort_by(|a, b| {
        (b.handle.seconds).total_cmp(&a.handle.seconds).then_with(|| a.kind.cmp(&b.kind))
    });
    rows
}

fn statistic_rows(sums: &Sums<'_>) -> Vec<StatisticRow> {
    let clock = sums.clock();
    let mut rows: Vec<StatisticRow> = sums
        .changed()
        .filter(|(stat, _)| {
            stat.kind != StatKind::Account
                && stat.command().is_none()
                && !locks::is_of_lock(stat)
                && !functions::is_of_function(stat)
                && !files::is_of_file(stat)
                && !commits::is_of_commit(stat)
                && !wal::is_of_wal(stat)
        })
        .map(|(stat, total)| {
            let timed = stat.kind == StatKind::Timer;
            let number = |n: u64| if timed { clock.seconds(n) } else { n as f64 };
            StatisticRow {
                name: stat.name.clone(),
                unit: if timed { "seconds".to_string() } else { stat.unit.clone() },
                count: total.change.count,
                total: number(total.change.total),
                min: total.change.min.known().map(number),
                max: total.change.max.known().map(number),
                p50: total.quantile(0.50).map(number),
                p99: total.quantile(0.99).map(number),
            }
        })
        .collect();
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    rows
}
