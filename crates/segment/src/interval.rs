// SPDX-License-Identifier: PostgreSQL
//! The model of an interval, from which every view is built. docs/reference-json.md describes its
//! fields as they appear in JSON.
//!
//! Conservation: `wall_seconds` is the lifetime of all sessions in the interval, and equals the sum of
//! the ledger.

use crate::client_waits::ClientWaits;
use crate::commits::{self, Checkpoints, Commits};
use crate::delta::EndedOrigin;
use crate::directory::{Stat, StatKind};
use crate::files::{self, FileRow, ProcessFileRow};
use crate::frame::Frame;
use crate::frame_totals::FrameTotals;
use crate::functions::{self, EdgeRow, FunctionRow};
use crate::level::Level;
use crate::locks::{LockRow, Locks, LwlockRow, PhaseRow};
use crate::memory::SegmentMemory;
use crate::overflows::Overflows;
use crate::rows::{command_rows, own_commands, statistic_rows};
use crate::sampling::{self, Sampling, Spread};
use crate::segment::Segment;
use crate::snapshot::Snapshot;
use crate::timing::most_first;
use crate::total::Total;
use crate::wait_class::WaitClass;
use crate::wal::{self, WalRow};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;

pub use crate::clock::ClockInfo;
pub use crate::frame::ServerInfo;
pub use crate::rows::{AccountRow, ActivityRow, CommandRow, EndedRow, StatisticRow};
pub use crate::sessions::{HoldingRow, Pauses, Population, SessionAccount, SessionRow};
pub use crate::timing::Timing;

/// Two intervals are consecutive if the time between them is less than this fraction of the later one.
pub const SLACK: f64 = 0.5;

/// Whether an account is idle time; see [`Stat::is_idle`].
pub fn is_idle(stat: &Stat) -> bool {
    stat.is_idle()
}

/// The part of a time in which the level was not off, weighted by the lifetime of sessions: of `wall`, they lived
/// `uninstrumented` at level off.
pub fn instrumented_seconds(seconds: f64, uninstrumented: f64, wall: f64) -> f64 {
    let off = if wall > 0.0 { uninstrumented / wall } else { 0.0 };
    seconds * (1.0 - off).max(0.0)
}

/// Everything that one interval contains.
#[derive(Debug, Clone, Serialize)]
pub struct Interval {
    /// When it ended, seconds since 1970.
    pub time: f64,
    /// Its length.
    pub interval_seconds: f64,
    /// The level at its end.
    pub level: Level,
    /// Seconds until the level ends by itself, if it does.
    pub level_left_seconds: Option<f64>,
    /// The level after that.
    pub level_then: Option<Level>,
    /// The clock of the measurement.
    pub clock: ClockInfo,
    /// The measured server.
    pub server: ServerInfo,
    /// CPUs of the machine.
    pub cores: usize,
    /// Total lifetime of all sessions in the interval.
    pub wall_seconds: f64,
    /// Part of `wall_seconds` that was not idle.
    pub busy_seconds: f64,
    /// Client commands handled.
    pub commands_handled: u64,
    /// Commands of tally's own sessions, which `commands_handled` does not include.
    pub own_commands: u64,
    /// Whether the interval is complete: no uninstrumented time, no overflow, and no slot that could not be
    /// read consistently.
    pub exact: bool,
    /// How the figures were sampled; `None`: they were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
    /// Time of sessions at level off.
    pub uninstrumented_seconds: f64,
    /// The part of `interval_seconds` in which the level was not off, weighted by the lifetime of
    /// sessions. Rates are per second of this time.
    pub instrumented_seconds: f64,
    /// The part of `interval_seconds` at level locks. Rates of locks are per second of this time.
    pub locks_seconds: f64,
    /// Sessions read during an update.
    pub torn_sessions: usize,
    /// Overflows since the segment was created.
    pub overflow: Overflows,
    /// Overflows in this interval.
    pub overflow_in_interval: Overflows,
    /// Memory of the segment at the end of the interval; `None`: not known, as in a recording.
    #[serde(skip)]
    pub memory: Option<SegmentMemory>,
    /// The sessions at its end.
    pub sessions: Vec<SessionRow>,
    /// Numbers of sessions at its end, which recorded intervals also have.
    #[serde(skip)]
    pub population: Vec<Population>,
    /// The figures without tally's own sessions, for diagnoses: see [`Interval::without_own`].
    #[serde(skip)]
    pub others: Option<Box<Interval>>,
    /// The sessions that ended within it.
    pub ended: EndedRow,
    /// Kind, database and user of these sessions, most sessions first.
    #[serde(skip)]
    pub ended_origins: Vec<EndedOrigin>,
    /// How sessions waited for their clients, the longest waits first.
    #[serde(skip)]
    pub client_waits: Vec<ClientWaits>,
    /// The time of all sessions by phase and activity, longest first.
    pub ledger: Vec<AccountRow>,
    /// The same without CPU time, by activity, longest first.
    pub waits: Vec<ActivityRow>,
    /// The commands of clients by kind, longest time first.
    pub commands: Vec<CommandRow>,
    /// Lightweight locks by tranche, mode and phase, longest wait time first.
    pub lwlocks: Vec<LwlockRow>,
    /// Waits for heavyweight locks by type, mode and phase, longest time first.
    pub locks: Vec<LockRow>,
    /// Checks for deadlocks, by phase.
    pub deadlock_checks: Vec<PhaseRow>,
    /// Delays at contended spinlocks, by phase.
    pub spin_delays: Vec<PhaseRow>,
    /// Timed functions, called or not.
    pub functions_probed: usize,
    /// Their calls by function and phase, longest time first.
    pub functions: Vec<FunctionRow>,
    /// Calls of one function by another, longest time first.
    pub edges: Vec<EdgeRow>,
    /// Operations on files by kind of file, tablespace and operation, longest time first.
    pub files: Vec<FileRow>,
    /// The same by kind of process, longest time first.
    pub file_processes: Vec<ProcessFileRow>,
    /// Commits that wrote WAL.
    pub commits: Commits,
    /// Checkpoints that ended.
    pub checkpoints: Checkpoints,
    /// The WAL inserted by each kind of process, most bytes first.
    pub wal: Vec<WalRow>,
    /// All other statistics, by name.
    pub statistics: Vec<StatisticRow>,
    /// The kernel's view, which the caller fills in.
    pub kernel: crate::kernel::KernelView,
}

impl Interval {
    /// The changes between two snapshots of a segment; without a first one, since the last
    /// reset or the segment's creation.
    pub fn between(
        segment: &Segment,
        previous: Option<&Snapshot>,
        snapshot: &Snapshot,
    ) -> Interval {
        Interval::from(Frame::between(segment, previous, snapshot))
    }

    /// The interval of a frame, or of a sum of frames.
    pub fn from_frame(frame: &Frame) -> Interval {
        let sums = FrameTotals::add_up(frame);
        let clock = &frame.clock;
        let sampled = sampling::of_totals(&sums);
        let account = |(stat, total): (&Stat, &Total)| {
            let row = AccountRow::from_total(stat, total.clone(), clock);
            match &sampled {
                Some((sampling, spreads)) => {
                    row.with_spread(spreads.of_account(&stat.name), sampling)
                }
                None => row,
            }
        };
        let accounts = sums.changed().filter(|(stat, _)| stat.kind == StatKind::Account);
        let mut ledger: Vec<AccountRow> = accounts.map(account).collect();
        if sampled.as_ref().is_some_and(|(sampling, _)| !sampling.cpu_told_apart) {
            AccountRow::hide_cpu(&mut ledger, clock);
        }
        most_first!(ledger, timing.seconds, phase, activity);
        let commands = command_rows(frame);
        let sum = |f: fn(&AccountRow) -> bool| -> f64 {
            ledger.iter().filter(|a| f(a)).map(|a| a.timing.seconds).fold(0.0, |sum, s| sum + s)
        };
        let uninstrumented_seconds = sum(|a| &*a.phase == "off");
        let interval_seconds = clock.seconds(frame.ticks);
        let wall_seconds = clock.seconds(frame.wall);
        let locks = Locks::from_totals(&sums);
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
            own_commands: own_commands(frame),
            exact: uninstrumented_seconds == 0.0 && frame.is_whole() && sampled.is_none(),
            sampling: sampled.map(|(sampling, _)| sampling),
            torn_sessions: frame.torn_sessions,
            uninstrumented_seconds,
            instrumented_seconds: instrumented_seconds(
                interval_seconds,
                uninstrumented_seconds,
                wall_seconds,
            ),
            locks_seconds: clock.seconds(frame.locks_ticks),
            overflow: frame.overflow,
            overflow_in_interval: frame.overflow_in_interval,
            memory: frame.memory,
            sessions: frame.sessions.clone(),
            population: frame.population.clone(),
            others: None,
            ended: EndedRow {
                sessions: frame.ended_sessions,
                seconds: clock.seconds(frame.ended_ticks),
            },
            ended_origins: frame.ended_origins.clone(),
            client_waits: frame.client_waits.clone(),
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

    /// As [`Interval::from_frame`], including the figures that [`Interval::without_own`] needs.
    pub fn with_others(frame: &Frame) -> Interval {
        let others = frame.without_own().map(|frame| Box::new(Interval::from_frame(&frame)));
        Interval { others, ..Interval::from_frame(frame) }
    }

    /// All figures that come from statistics (ledger, commands, commits, locks, files), without tally's own
    /// sessions. Sessions, their numbers and the kernel's view are in the interval itself.
    pub fn without_own(&self) -> &Interval {
        self.others.as_deref().unwrap_or(self)
    }

    /// Whether its CPU time is known; otherwise its ledger has an activity [`sampling::UNKNOWN`] instead.
    pub fn tells_cpu_apart(&self) -> bool {
        self.sampling.is_none_or(|sampling| sampling.cpu_told_apart)
    }

    /// If the figures are estimates from samples: half the width of the 95 % interval of `busy_seconds`. What was not idle is the
    /// rest of what was, so it is at least as uncertain.
    pub fn busy_half_width(&self) -> Option<f64> {
        let sampling = self.sampling.as_ref()?;
        let of = |idle: bool| {
            let mut sum = Spread::default();
            let those = self.ledger.iter().filter(|account| account.idle == idle);
            those.filter_map(|account| account.spread).for_each(|spread| sum.add(spread));
            sum.half_width(sampling).0
        };
        Some(of(false).max(of(true)))
    }

    /// The same for the time of one session, whose samples are independent at most.
    pub fn session_half_width(&self, session: &SessionRow, seconds: f64) -> Option<f64> {
        let sampling = self.sampling.as_ref().filter(|sampling| sampling.per_second > 0.0)?;
        let lived = session.lived_seconds;
        let share = if lived > 0.0 { (seconds / lived).clamp(0.0, 1.0) } else { 0.0 };
        Some(lived * sampling::share_half_width(share, lived, 1.0 / sampling.per_second))
    }

    /// The ledger without CPU time, by activity, longest first.
    pub fn waits_of_ledger(&self) -> Vec<ActivityRow> {
        self.activities_where(|a| {
            !matches!(&*a.activity, "cpu" | "uninstrumented" | sampling::UNKNOWN)
        })
    }

    /// The ledger by activity, added up over all phases, longest first.
    pub fn activities(&self) -> Vec<ActivityRow> {
        self.activities_where(|_| true)
    }

    /// The same, with only the accounts that `wanted` accepts.
    pub fn activities_where(&self, wanted: impl Fn(&AccountRow) -> bool) -> Vec<ActivityRow> {
        /// The sum of one activity: its accounts' time, whether all of them are idle, how uncertain they are,
        /// and whether samples cannot distinguish one of them.
        struct ActivitySum {
            total: Total,
            idle: bool,
            spread: Option<Spread>,
            refused: bool,
        }

        let mut sums: HashMap<(&Arc<str>, WaitClass), ActivitySum> = HashMap::new();
        for account in self.ledger.iter().filter(|a| wanted(a)) {
            let sum = sums.entry((&account.activity, account.class)).or_insert_with(|| {
                ActivitySum { total: Total::default(), idle: true, spread: None, refused: false }
            });
            sum.refused |= account.timing.refused;
            sum.total.merge(&account.total);
            sum.idle &= account.idle;
            if let Some(spread) = account.spread {
                sum.spread.get_or_insert_default().add(spread);
            }
        }
        let ticks_per_second = self.clock.ticks_per_second;
        let mut rows: Vec<ActivityRow> = sums
            .into_iter()
            .map(|((activity, class), sum)| {
                let timing = Timing::with(&sum.total, |t| t as f64 / ticks_per_second);
                let timing = match sum.spread.zip(self.sampling) {
                    _ if sum.refused => timing.refuse(),
                    Some((spread, sampling)) => timing.with_spread(spread, &sampling),
                    None => timing,
                };
                ActivityRow { activity: activity.clone(), class, timing, idle: sum.idle }
            })
            .collect();
        most_first!(rows, timing.seconds, activity);
        rows
    }
}

impl From<Frame> for Interval {
    fn from(mut frame: Frame) -> Interval {
        // Moved rather than cloned, because there may be many.
        let sessions = std::mem::take(&mut frame.sessions);
        Interval { sessions, ..Interval::with_others(&frame) }
    }
}
