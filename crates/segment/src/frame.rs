// SPDX-License-Identifier: PostgreSQL
//! A frame: the contents of one interval, independent of the live segment. Frames of consecutive
//! intervals can be added up, so the same code creates an [`crate::Interval`] of any length, live or
//! recorded.

use crate::client_waits::ClientWaits;
use crate::clock::ClockInfo;
use crate::delta::{Delta, EndedOrigin, Total};
use crate::directory::{Stat, StatKind};
use crate::kernel::KernelView;
use crate::level::Level;
use crate::memory::SegmentMemory;
use crate::overflows::Overflows;
use crate::own;
use crate::segment::Segment;
pub use crate::sessions::Population;
use crate::sessions::{self, SessionRow};
use crate::snapshot::Snapshot;
use crate::total::scaled;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;

/// The contents of one interval. Times are in ticks of `clock`.
#[derive(Debug, Clone)]
pub struct Frame {
    /// When it ended, ns since 1970, by the machine's clock.
    pub realtime_ns: u64,
    /// When it ended, ns of CLOCK_MONOTONIC.
    pub monotonic_ns: u64,
    /// Its length; for a sum, the total of its parts.
    pub ticks: u64,
    /// The clock of its ticks.
    pub clock: ClockInfo,
    /// The level at its end.
    pub level: Level,
    /// When that level ends by itself.
    pub level_end: Option<LevelRemaining>,
    /// The measured server.
    pub server: ServerInfo,
    /// CPUs of the machine; 0: not known.
    pub cores: usize,
    /// Total lifetime of all sessions in it.
    pub wall: u64,
    /// The part of its length at level locks.
    pub locks_ticks: u64,
    /// Sessions read during an update.
    pub torn_sessions: usize,
    /// Statistics whose name is unknown.
    pub nameless: u64,
    /// Overflows since the segment was created.
    pub overflow: Overflows,
    /// Overflows in the interval; at least one name or statistic if there were any before.
    pub overflow_in_interval: Overflows,
    /// Memory of the segment at the end of the interval; `None`: not known.
    pub memory: Option<SegmentMemory>,
    /// Timed functions, called or not.
    pub functions_probed: usize,
    /// The sessions at its end; none in a sum or a recording.
    pub sessions: Vec<SessionRow>,
    /// Numbers of sessions at its end.
    pub population: Vec<Population>,
    /// Sessions that ended within it ...
    pub ended_sessions: u64,
    /// ... and their lifetime in it.
    pub ended_ticks: u64,
    /// Kind, database and user of these sessions, most sessions first; empty in a recording.
    pub ended_origins: Vec<EndedOrigin>,
    /// How sessions waited for their clients, the longest waits first.
    pub client_waits: Vec<ClientWaits>,
    /// Totals by kind of process and statistic, without zeros, in no particular order.
    pub statistics: Vec<FrameStat>,
    /// The kernel's view, which the caller fills in.
    pub kernel: KernelView,
}

/// How a level ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelRemaining {
    /// Ticks until the level ends.
    pub left: u64,
    /// The level after that.
    pub then: Level,
}

/// One statistic of the processes of one kind.
#[derive(Debug, Clone)]
pub struct FrameStat {
    /// "client backend", ...
    pub process: Arc<str>,
    /// The statistic.
    pub stat: Arc<Stat>,
    /// Its change in the interval.
    pub total: Total,
}

/// Overflows in the interval; a process that still has no slot counts in every interval.
fn overflow_between(previous: Option<&Snapshot>, snapshot: &Snapshot) -> Overflows {
    let mut new = previous.map_or(snapshot.overflows, |p| snapshot.overflows.since(&p.overflows));
    if snapshot.refused_claims && new.slots == 0 && new.memory == 0 {
        // The counts so far show whether slots or memory were missing.
        let missing = if snapshot.overflows.slots > 0 { &mut new.slots } else { &mut new.memory };
        *missing = 1;
    }
    new.with_lasting(&snapshot.overflows)
}

impl Frame {
    /// A frame without length and counts, of a machine with one CPU, for sources other than servers, which fill in what
    /// they have.
    pub fn empty(clock: ClockInfo, level: Level, server: ServerInfo) -> Self {
        Self {
            realtime_ns: 0,
            monotonic_ns: 0,
            ticks: 0,
            clock,
            level,
            level_end: None,
            server,
            cores: 1,
            wall: 0,
            locks_ticks: 0,
            torn_sessions: 0,
            nameless: 0,
            overflow: Overflows::default(),
            overflow_in_interval: Overflows::default(),
            memory: None,
            functions_probed: 0,
            sessions: Vec::new(),
            population: Vec::new(),
            ended_sessions: 0,
            ended_ticks: 0,
            ended_origins: Vec::new(),
            client_waits: Vec::new(),
            statistics: Vec::new(),
            kernel: KernelView::default(),
        }
    }

    /// Time of processes that were not idle.
    pub fn busy_seconds(&self) -> f64 {
        let busy = |statistic: &&FrameStat| {
            statistic.stat.kind == StatKind::Account && !statistic.stat.is_idle()
        };
        self.clock.seconds(
            self.statistics.iter().filter(busy).map(|statistic| statistic.total.change.total).sum(),
        )
    }

    /// The changes between two snapshots of a segment; without a first one, since the last
    /// reset or the segment's creation.
    pub fn between(segment: &Segment, previous: Option<&Snapshot>, snapshot: &Snapshot) -> Frame {
        let delta = Delta::between(previous, snapshot);
        let clock = &snapshot.clock;
        let lived = delta.sessions.iter().map(|s| s.lived);
        let before = previous.filter(|p| p.resets == snapshot.resets);
        let locks = snapshot.locks_ticks.saturating_sub(before.map_or(0, |p| p.locks_ticks));
        let sessions = sessions::rows(&delta);
        Frame {
            realtime_ns: snapshot.realtime_ns,
            monotonic_ns: clock.ns_of(snapshot.tick),
            ticks: delta.ticks,
            clock: ClockInfo {
                kind: clock.kind().name(),
                ticks_per_second: clock.ticks_per_second(),
            },
            level: snapshot.level,
            level_end: snapshot.level_end.map(|end| LevelRemaining {
                left: end.tick.saturating_sub(snapshot.tick),
                then: end.then,
            }),
            server: ServerInfo::from_segment(segment),
            cores: segment.cores(),
            wall: lived.fold(delta.ended_ticks, u64::saturating_add),
            locks_ticks: locks.min(delta.ticks),
            torn_sessions: snapshot.books.iter().filter(|b| b.torn).count(),
            nameless: snapshot.nameless,
            overflow: snapshot.overflows,
            overflow_in_interval: overflow_between(previous, snapshot),
            memory: segment.memory(),
            functions_probed: functions_probed(segment),
            population: sessions::population(&sessions),
            client_waits: ClientWaits::of_sessions(&sessions),
            sessions,
            ended_sessions: delta.ended_sessions,
            ended_ticks: delta.ended_ticks,
            ended_origins: delta.ended_origins.clone(),
            statistics: statistics(delta),
            kernel: KernelView::default(),
        }
    }

    /// Whether nothing is missing, except perhaps time at level off.
    pub fn is_whole(&self) -> bool {
        self.overflow_in_interval.is_zero() && self.nameless == 0 && self.torn_sessions == 0
    }

    /// The frame without the statistics of tally's own sessions; `None`: there are none.
    pub(crate) fn without_own(&self) -> Option<Frame> {
        let is_own = |statistic: &FrameStat| own::is_process(&statistic.process);
        self.statistics.iter().any(is_own).then(|| {
            let mut others = self.clone();
            others.statistics.retain(|statistic| !is_own(statistic));
            others
        })
    }

    /// Ticks of sessions at level off.
    pub fn uninstrumented_ticks(&self) -> u64 {
        let off = self.statistics.iter().filter(|statistic| {
            statistic.stat.kind == StatKind::Account && &**statistic.stat.phase() == "off"
        });
        off.fold(0, |sum, statistic| sum.saturating_add(statistic.total.change.total))
    }

    /// Add the frame of a later interval. Values at an instant (level, number of sessions) become those of the
    /// later frame; the rows of individual sessions are dropped.
    pub fn merge(&mut self, later: &Frame) {
        let ratio = self.clock.ticks_per_second / later.clock.ticks_per_second;
        let scale = |ticks: u64| scaled(ticks, ratio);
        self.ticks = self.ticks.saturating_add(scale(later.ticks));
        self.wall = self.wall.saturating_add(scale(later.wall));
        self.locks_ticks = self.locks_ticks.saturating_add(scale(later.locks_ticks));
        self.ended_ticks = self.ended_ticks.saturating_add(scale(later.ended_ticks));
        self.ended_sessions = self.ended_sessions.saturating_add(later.ended_sessions);
        self.torn_sessions = self.torn_sessions.max(later.torn_sessions);
        self.nameless = self.nameless.max(later.nameless);
        self.overflow_in_interval.add(&later.overflow_in_interval);
        self.merge_statistics(later, ratio);
        self.sessions.clear();
        EndedOrigin::merge(&mut self.ended_origins, &later.ended_origins);
        ClientWaits::merge(&mut self.client_waits, &later.client_waits);
        (self.realtime_ns, self.monotonic_ns) = (later.realtime_ns, later.monotonic_ns);
        (self.level, self.overflow) = (later.level, later.overflow);
        self.memory = later.memory;
        self.level_end = later.level_end.map(|end| LevelRemaining { left: scale(end.left), ..end });
        self.server = later.server.clone();
        (self.cores, self.functions_probed) = (later.cores, later.functions_probed);
        self.population = later.population.clone();
        self.kernel = later.kernel.clone();
    }

    fn merge_statistics(&mut self, later: &Frame, ratio: f64) {
        let known: HashMap<_, usize> = self
            .statistics
            .iter()
            .enumerate()
            .map(|(at, statistic)| (statistic.key(), at))
            .collect();
        let indexes: Vec<Option<usize>> =
            later.statistics.iter().map(|statistic| known.get(&statistic.key()).copied()).collect();
        for (statistic, index) in later.statistics.iter().zip(indexes) {
            let total = statistic.total.rescaled(ratio, statistic.stat.kind);
            match index.and_then(|at| self.statistics.get_mut(at)) {
                Some(sum) => sum.total.merge(&total),
                None => self
                    .statistics
                    .push(FrameStat { total: total.into_owned(), ..statistic.clone() }),
            }
        }
    }
}

impl FrameStat {
    /// For statistics of the clients' commands: the kind of command, and whether the statistic is the time of handling
    /// it.
    pub fn command(&self) -> Option<(&str, bool)> {
        self.stat.command().filter(|_| own::is_client(&self.process))
    }

    pub(crate) fn key(&self) -> (Arc<str>, Arc<Stat>) {
        (self.process.clone(), self.stat.clone())
    }
}

fn statistics(delta: Delta<'_>) -> Vec<FrameStat> {
    let directory = &delta.snapshot.directory;
    let mut statistics = Vec::new();
    for kind in delta.kinds {
        for (id, total) in (0..).zip(kind.totals) {
            if total.change.is_zero() {
                continue;
            }
            if let Some(stat) = directory.shared(id) {
                let (process, stat) = (kind.kind.clone(), stat.clone());
                statistics.push(FrameStat { process, stat, total });
            }
        }
    }
    statistics
}

/// The number of timed functions; 0 if the table of probes cannot be read.
fn functions_probed(segment: &Segment) -> usize {
    segment.probes().map_or(0, |probes| probes.iter().filter(|p| p.is_of_function()).count())
}

/// The server that a segment describes.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ServerInfo {
    /// "PostgreSQL 15.20", or the producer if it is not a server.
    pub name: String,
    /// The data directory, or another measured program.
    pub host: String,
    /// The segment's file.
    pub segment: String,
    /// The server's first process; `None` when unknown.
    pub pid: Option<u32>,
    /// The server's port; `None` when unknown.
    pub port: Option<u32>,
    /// The program that writes the segment.
    pub producer: String,
    /// When the segment was created, seconds since 1970; for a server that preloads pg_tally,
    /// this is its start.
    pub created: f64,
}

impl ServerInfo {
    fn from_segment(segment: &Segment) -> ServerInfo {
        let header = segment.header();
        let known = |n: u32| (n != 0).then_some(n);
        let name = if header.server.is_empty() { &header.producer } else { &header.server };
        ServerInfo {
            name: name.clone(),
            host: header.host.clone(),
            segment: segment.path().display().to_string(),
            pid: known(header.server_pid),
            port: known(header.server_port),
            producer: header.producer.clone(),
            created: header.created_realtime_ns as f64 * 1e-9,
        }
    }
}
