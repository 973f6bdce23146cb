// SPDX-License-Identifier: PostgreSQL
//! Frames of an imaginary server, and their sums.

#![allow(dead_code)] // Each test uses only a part of this module.

use recording::{About, Batch, RetentionPolicy, RowBuilder, ServerRow, Writer};
use segment::delta::{Change, Extreme, Total};
use segment::directory::{Stat, StatKind};
use segment::frame::FrameStat;
use segment::interval::{ClockInfo, ServerInfo};
use segment::kernel::KernelView;
use segment::{Frame, Histogram, Level, Overflows};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// 2026-03-01 00:00:00 UTC, microseconds since 1970.
pub const MIDNIGHT: i64 = 1_772_323_200_000_000;
pub const SECOND: i64 = 1_000_000;
/// Ticks of the clock per second.
pub const RATE: f64 = 2.5e9;

pub fn about() -> About {
    About {
        format: recording::FORMAT,
        made_by: "a test".to_string(),
        host: "machine".to_string(),
        server: "PostgreSQL 15.20".to_string(),
        data_directory: "/data".to_string(),
        interval_ns: 1_000_000_000,
        detail_ns: 10_000_000_000,
        begun_us: MIDNIGHT,
    }
}

pub fn server(number: u32, time_us: i64) -> ServerRow {
    ServerRow {
        frame: 0,
        time_us,
        server: number,
        name: "PostgreSQL 15.20".into(),
        data_directory: "/data".into(),
        clock: "tsc".into(),
        created_us: time_us,
        ..ServerRow::default()
    }
}

pub fn stat(process: &str, name: &str, kind: StatKind, values: &[u64]) -> FrameStat {
    let mut histogram = Histogram::new();
    values.iter().for_each(|value| histogram.add(*value, 1));
    let extreme = |value: Option<&u64>| value.map_or(Extreme::None, |value| Extreme::Of(*value));
    FrameStat {
        process: process.into(),
        stat: Arc::new(Stat::new(name.to_string(), kind, "ticks".to_string())),
        total: Total {
            change: Change {
                count: values.len() as u64,
                total: values.iter().sum(),
                min: extreme(values.iter().min()),
                max: extreme(values.iter().max()),
                amount: 8192 * values.len() as u64,
                follows: values.len() as u64 / 2,
            },
            histogram,
        },
    }
}

/// Pseudo-random numbers, the same in each run.
pub struct Dice(pub u64);

impl Dice {
    pub fn throw(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % below.max(1)
    }
}

/// The interval of a second that ended at this time.
pub fn frame(time_us: i64, dice: &mut Dice) -> Frame {
    let mut values = |n: u64, below: u64| -> Vec<u64> {
        (0..1 + dice.throw(n)).map(|_| 1 + dice.throw(below)).collect()
    };
    let statistics = vec![
        stat("client backend", "execute::cpu", StatKind::Account, &values(30, 40_000_000)),
        stat(
            "client backend",
            "execute::wait::IO:DataFileRead",
            StatKind::Account,
            &values(9, 2_000_000),
        ),
        stat("client backend", "idle::wait::Client:ClientRead", StatKind::Account, &values(5, 9)),
        stat("checkpointer", "execute::cpu", StatKind::Account, &values(3, 10_000_000)),
        stat("client backend", "command::Query::handle", StatKind::Timer, &values(40, 5_000_000)),
        stat("client backend", "file::main::read::execute", StatKind::Timer, &values(5, 700_000)),
        stat("client backend", "queue length", StatKind::Value, &values(5, 70)),
    ];
    let accounts = statistics.iter().filter(|statistic| statistic.stat.kind == StatKind::Account);
    Frame {
        realtime_ns: time_us as u64 * 1000,
        monotonic_ns: (time_us - MIDNIGHT) as u64 * 1000,
        ticks: RATE as u64 + 1,
        clock: ClockInfo { kind: "tsc", ticks_per_second: RATE },
        level: Level::Waits,
        level_end: None,
        server: ServerInfo {
            name: "PostgreSQL 15.20".to_string(),
            host: "/data".to_string(),
            segment: String::new(),
            pid: None,
            port: None,
            producer: String::new(),
            created: 0.0,
        },
        cores: 2,
        wall: accounts.map(|account| account.total.change.total).sum(),
        locks_ticks: 0,
        torn_sessions: 0,
        nameless: 0,
        overflow: Overflows::default(),
        overflow_in_interval: Overflows::default(),
        memory: None,
        functions_probed: 0,
        sessions: Vec::new(),
        population: Vec::new(),
        ended_sessions: 1,
        ended_origins: Vec::new(),
        client_waits: Vec::new(),
        ended_ticks: 7,
        statistics,
        kernel: KernelView::default(),
    }
}

/// Writes frames of one second each, with details every ten seconds.
pub struct Maker {
    pub writer: Writer,
    pub row_builder: RowBuilder,
    pub dice: Dice,
    /// The sum of all frames written.
    pub sum: Option<Frame>,
    pub time_us: i64,
    /// How far the time of day has been set forward.
    pub leap: i64,
}

impl Maker {
    pub fn new(directory: &Path) -> Maker {
        Maker::with_retention(directory, RetentionPolicy::default(), MIDNIGHT)
    }

    pub fn with_retention(directory: &Path, policy: RetentionPolicy, begin_us: i64) -> Maker {
        let mut writer = Writer::open(directory, about(), policy).unwrap();
        // A thread that is still merging one hour would leave the next for later.
        writer.threaded = false;
        if writer.next_frame() == 1 {
            let servers = vec![server(1, begin_us)];
            writer.push(Batch { servers, ..Batch::default() }).unwrap();
        }
        Maker {
            writer,
            row_builder: RowBuilder::new(),
            dice: Dice(7),
            sum: None,
            time_us: begin_us,
            leap: 0,
        }
    }

    /// The batch of the next second.
    pub fn batch(&mut self) -> (Frame, Batch) {
        self.time_us += SECOND;
        let mut frame = frame(self.time_us, &mut self.dice);
        frame.realtime_ns += self.leap as u64 * 1000;
        let number = self.writer.next_frame();
        let mut batch = self.row_builder.frame(&frame, number, 1);
        if number.is_multiple_of(10) {
            batch.histograms = self.row_builder.histograms(number);
        }
        (frame, batch)
    }

    pub fn second(&mut self) {
        let (frame, batch) = self.batch();
        self.writer.push(batch).unwrap();
        match &mut self.sum {
            Some(sum) => sum.merge(&frame),
            None => self.sum = Some(frame),
        }
    }

    pub fn seconds(&mut self, n: usize) {
        (0..n).for_each(|_| self.second());
    }
}

/// Process, name, count, seconds or sum, bytes and follows of each statistic, sorted.
pub fn statistics_of(frame: &Frame) -> Vec<(String, String, u64, f64, u64, u64)> {
    let mut rows: Vec<_> = frame
        .statistics
        .iter()
        .map(|statistic| {
            let change = &statistic.total.change;
            let total = match statistic.stat.kind {
                StatKind::Value => change.total as f64,
                _ => frame.clock.seconds(change.total),
            };
            let name = statistic.stat.name.clone();
            (
                statistic.process.to_string(),
                name,
                change.count,
                total,
                change.amount,
                change.follows,
            )
        })
        .collect();
    rows.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    rows
}

/// Checks that both have the same statistics, with times equal within this many nanoseconds.
pub fn assert_same(a: &Frame, b: &Frame, ns: f64) {
    let (a_rows, b_rows) = (statistics_of(a), statistics_of(b));
    assert_eq!(a_rows.len(), b_rows.len());
    for (a, b) in a_rows.iter().zip(&b_rows) {
        assert_eq!((&a.0, &a.1, a.2, a.4, a.5), (&b.0, &b.1, b.2, b.4, b.5));
        assert!((a.3 - b.3).abs() <= ns * 1e-9, "{a:?} {b:?}");
    }
    let seconds = |frame: &Frame, ticks| frame.clock.seconds(ticks);
    assert!((seconds(a, a.ticks) - seconds(b, b.ticks)).abs() <= ns * 1e-9);
    assert!((seconds(a, a.wall) - seconds(b, b.wall)).abs() <= ns * 1e-9);
}

/// Checks that both have the same histograms.
pub fn assert_same_spread(a: &Frame, b: &Frame) {
    for statistic in &a.statistics {
        let same = b
            .statistics
            .iter()
            .find(|o| o.process == statistic.process && o.stat == statistic.stat);
        let same = same.unwrap();
        let buckets = |total: &Total| total.histogram.buckets().collect::<Vec<_>>();
        assert_eq!(buckets(&statistic.total), buckets(&same.total), "{}", statistic.stat.name);
        let near = |a: Extreme, b: Extreme| match (a, b) {
            (Extreme::Of(a), Extreme::Of(b)) => a.abs_diff(b) <= 3,
            (a, b) => a == b,
        };
        assert!(near(statistic.total.change.min, same.total.change.min), "{}", statistic.stat.name);
        assert!(near(statistic.total.change.max, same.total.change.max), "{}", statistic.stat.name);
    }
}

/// The files in and below a directory.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.push(path);
        }
    }
    all.sort();
    all
}

/// Copies a directory recursively.
pub fn copy(from: &Path, to: &Path) {
    for path in files(from) {
        let target = to.join(path.strip_prefix(from).unwrap());
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(&path, &target).unwrap();
    }
}
