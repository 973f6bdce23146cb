// SPDX-License-Identifier: PostgreSQL
//! A made-up recording for tests of the report: ten minutes on two CPUs, with a gap, three checkpoints and a step
//! in one wait.

use std::sync::{Arc, OnceLock};

use jiff::tz::TimeZone;
use segment::delta::{Change, Extreme, Total};
use segment::directory::{Stat, StatKind};
use segment::frame::{Frame, FrameStat, Population};
use segment::{EventKind, Histogram, Interval, Payload};
use view::settings::SettingChange;
use view::HostMetrics;

use super::assemble;
use super::material::{Latency, Material, Moment, RelationTimes, Run, Setting};
use super::parts;
use super::point::{Figures, Point};
use view::document::{Axis, Document, Fact, Gap, Mark, MeasuredTime, Ranking, RankingRow};
use view::events::Row;
use view::io::Device;
use view::sample;

pub const FROM: f64 = 1_700_000_000.0;
const SECONDS: usize = 600;
/// Nothing was measured in these seconds.
const GAP: std::ops::Range<usize> = 360..390;
const CHECKPOINTS: [(f64, f64); 3] = [(60.0, 118.0), (250.0, 310.0), (480.0, 545.0)];

/// The document made from it.
pub fn document(material: Material) -> Document {
    let mut document = assemble::document(material, &TimeZone::UTC).unwrap();
    document.made.time = FROM + 1_000.0;
    document
}

fn in_checkpoint(at: usize) -> bool {
    CHECKPOINTS.iter().any(|&(from, to)| from <= at as f64 && (at as f64) < to)
}

/// A number between 0 and 1 that depends only on the arguments.
fn noise(at: usize, of: usize) -> f64 {
    let mut n = (at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (of as u64 + 7) << 17;
    n ^= n >> 31;
    n = n.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    n ^= n >> 29;
    n as f64 / u64::MAX as f64
}

/// How often and how long an activity took place in one second.
struct SampleActivity {
    name: String,
    kind: StatKind,
    count: u64,
    seconds: f64,
    bytes: u64,
    process: &'static str,
}

fn did(name: &str, kind: StatKind, count: u64, seconds: f64) -> SampleActivity {
    SampleActivity {
        name: name.to_string(),
        kind,
        count,
        seconds,
        bytes: 0,
        process: "client backend",
    }
}

impl SampleActivity {
    fn stat(self) -> FrameStat {
        let total = (self.seconds * 1e9).round() as u64;
        let each = total.checked_div(self.count).unwrap_or(0);
        let mut histogram = Histogram::new();
        // Half, once, and twice as long.
        if self.kind == StatKind::Timer || self.name.contains("::wait::") {
            for (of, part) in [(each / 2, self.count / 2), (each, self.count / 4)] {
                histogram.add(of, part);
            }
            histogram.add(each * 2, self.count - self.count / 2 - self.count / 4);
        }
        let (min, max) = match self.count {
            0 => (Extreme::None, Extreme::None),
            _ => (Extreme::Of(each / 2), Extreme::Of(each * 2)),
        };
        let (count, amount) = (self.count, self.bytes);
        FrameStat {
            process: self.process.into(),
            stat: Arc::new(Stat::new(self.name, self.kind, "ticks".to_string())),
            total: Total {
                change: Change { count, total, min, max, amount, follows: 0 },
                histogram,
            },
        }
    }
}

/// The statistics of one second.
fn second(at: usize) -> Vec<FrameStat> {
    let slow = if in_checkpoint(at) { 1.8 } else { 1.0 };
    let step: f64 = if at >= 420 { 2.6 } else { 1.0 };
    let commands = (4_000.0 / slow / step.sqrt() * (0.95 + 0.1 * noise(at, 99))) as u64;
    let commits = commands / 7;
    let accounts: [(&str, &str, f64, u64); 16] = [
        ("simple query", "cpu", 0.92 / slow, commands * 3),
        ("commit", "cpu", 0.34 / slow, commits),
        ("commit", "wait::IO:WALSync", 0.92 * slow, commits / 3),
        ("commit", "wait::LWLock:WALWrite", 0.78 * slow, commits / 2),
        ("simple query", "wait::Lock:transactionid", 0.31 * step, commits / 9),
        ("simple query", "wait::IO:DataFileRead", 0.24, 1_000),
        ("simple query", "wait::Client:ClientWrite", 0.19, 90),
        ("simple query", "wait::LWLock:ProcArray", 0.13, 400),
        ("simple query", "wait::LWLock:BufferContent", 0.11, 300),
        ("simple query", "wait::IPC:ParallelFinish", 0.09, 7),
        ("background", "wait::IO:DataFileWrite", 0.08 * slow, 400),
        ("simple query", "wait::Lock:tuple", 0.05 * step, 30),
        ("commit", "wait::IO:WALWrite", 0.04, commits / 3),
        ("background", "wait::LWLock:WALInsert", 0.02, 2),
        ("simple query", "wait::BufferPin:BufferPin", 0.01, 1),
        ("background", "wait::Activity:CheckpointerMain", 1.0, 1),
    ];
    let mut all: Vec<SampleActivity> = Vec::new();
    for (of, (phase, activity, seconds, count)) in accounts.into_iter().enumerate() {
        let seconds = seconds * (0.9 + 0.2 * noise(at, of));
        all.push(did(&format!("{phase}::{activity}"), StatKind::Account, count, seconds));
    }
    let busy: f64 = all.iter().map(|did| did.seconds).sum::<f64>() - all[15].seconds;
    let idle = 8.0 - busy.min(8.0);
    all.push(did("idle::wait::Client:ClientRead", StatKind::Account, commands, idle));
    let timer = |name: &str, count, seconds| did(name, StatKind::Timer, count, seconds);
    let sync = 0.000_6 * slow;
    all.extend([
        timer("command::Query::handle", commands, busy),
        timer("command::Query::read", commands, idle),
        timer("commit::leader", commits / 3, (commits / 3) as f64 * sync * 1.5),
        timer("commit::group_committed", commits - commits / 3, commits as f64 * sync),
        timer("commit::sync", commits / 3, (commits / 3) as f64 * sync),
        timer("lwlock::WALWrite::held::commit::exclusive", commits, 0.3),
        timer("lwlock::WALWrite::acquire::commit::exclusive", commits, 0.78 * slow),
        timer("lwlock::WALWrite::wait::commit::exclusive", commits / 2, 0.77 * slow),
        timer("lwlock::ProcArray::held::simple query::shared", 9 * commands, 0.012),
        timer("lwlock::ProcArray::acquire::simple query::shared", 9 * commands, 0.001),
        timer("lock::transactionid::wait::simple query::ShareLock", commits / 9, 0.31 * step),
        timer("function::XLogFlush::inclusive::commit", commits, 1.6 * slow),
        timer("function::XLogFlush::exclusive::commit", commits, 0.9 * slow),
    ]);
    let file = |name: &str, process, count: u64, seconds, bytes| SampleActivity {
        bytes,
        process,
        ..timer(&format!("file::{name}"), count, seconds)
    };
    let written = if in_checkpoint(at) { 5_000 } else { 400 };
    all.extend([
        file("wal::sync::commit", "client backend", commits / 3, (commits / 3) as f64 * sync, 0),
        file("wal::write::commit", "client backend", commits / 3, 0.04, commands * 300),
        file("main::read::simple query", "client backend", 1_000, 0.24, 8_192_000),
        file("main::write::background", "checkpointer", written, 0.08 * slow, written << 13),
    ]);
    all.into_iter().map(SampleActivity::stat).collect()
}

fn frame(at: usize) -> Frame {
    let statistics = second(at);
    let accounts = statistics.iter().filter(|statistic| statistic.stat.kind == StatKind::Account);
    let like = sample::interval();
    let of =
        |process: &str, state, sessions| Population { process: process.into(), state, sessions };
    Frame {
        realtime_ns: ((FROM + at as f64 + 1.0) * 1e9) as u64,
        monotonic_ns: at as u64 * 1_000_000_000,
        ticks: 1_000_000_000,
        clock: like.clock,
        level: like.level,
        level_end: None,
        server: like.server,
        cores: like.cores,
        wall: accounts.map(|account| account.total.change.total).sum(),
        locks_ticks: if at < 60 { 1_000_000_000 } else { 0 },
        torn_sessions: 0,
        nameless: 0,
        overflow: like.overflow,
        overflow_in_interval: like.overflow_in_interval,
        memory: None,
        functions_probed: 1,
        sessions: Vec::new(),
        population: vec![of("client backend", "active", 4), of("client backend", "idle", 4)],
        ended_sessions: 0,
        ended_origins: Vec::new(),
        client_waits: Vec::new(),
        ended_ticks: 0,
        statistics,
        kernel: Default::default(),
    }
}

/// One frame a second, none in the gap.
pub fn frames() -> impl Iterator<Item = (usize, Option<Frame>)> {
    (0..SECONDS).map(|at| (at, (!GAP.contains(&at)).then(|| frame(at))))
}

fn event(at: f64, kind: EventKind, process: &str, text: &str) -> Row {
    Row {
        number: at as u64,
        time: Some(FROM + at),
        pid: 4210,
        process: Some(process.to_string()),
        database: None,
        user: None,
        kind,
        text: text.to_string(),
        payload: Payload::of_text(kind, text),
        lost: 0,
    }
}

fn events() -> Vec<Row> {
    let mut events = vec![
        event(117.4, EventKind::Slow, "checkpointer", "sync: 0.810 s: base/16384/16397"),
        event(
            302.0,
            EventKind::Slow,
            "client backend",
            "sync: 0.310 s: pg_wal/0000000100000000000000A1",
        ),
        event(544.9, EventKind::Slow, "checkpointer", "sync: 0.520 s: base/16384/16403"),
        event(400.0, EventKind::Note, "client backend", "the level is waits"),
    ];
    events.extend(CHECKPOINTS.iter().map(|(from, to)| {
        let text = format!(
            "checkpoint ends: reason=time total={0} slru=0.002 write={0} sync=1.2 buffers=8123 \
             files=32 longest=0.810 added=0 removed=0 recycled=33 file=base/16384/16397",
            to - from
        );
        event(*to, EventKind::Checkpoint, "checkpointer", &text)
    }));
    events.sort_by_key(|row| row.number);
    events
}

fn latency() -> Vec<Latency> {
    let measured = (0..SECONDS / 10).filter(|at| !GAP.contains(&(10 * at)));
    measured
        .map(|at| {
            let mut histogram = Histogram::new();
            for command in 0..400 {
                let skew = noise(command, at);
                histogram.add((80_000.0 + 4_000_000.0 * skew.powi(6)) as u64, 10);
            }
            let start = FROM + 10.0 * at as f64;
            Latency { start, seconds: 10.0, seconds_per_tick: 1e-9, histogram }
        })
        .collect()
}

/// The material of the report.
pub fn material() -> Material {
    static MADE: OnceLock<Material> = OnceLock::new();
    MADE.get_or_init(make).clone()
}

/// Two statements, the second one only in the last minutes.
fn rankings(points: &[Point]) -> Vec<Ranking> {
    let axis = Axis {
        time: points.iter().step_by(10).map(|point| point.start).collect(),
        seconds: points
            .chunks(10)
            .map(|points| points.iter().map(|point| point.seconds).sum())
            .collect(),
    };
    let row = |name: &str, class, from: f64, each: f64| RankingRow {
        name: name.to_string(),
        class: Some(class),
        statement: None,
        seconds: axis
            .time
            .iter()
            .zip(&axis.seconds)
            .map(|(time, seconds)| if *time < from { 0.0 } else { seconds * each })
            .collect(),
    };
    let rows = vec![
        row(
            "UPDATE pgbench_branches SET bbalance = bbalance + $1 WHERE bid = $2",
            "lock",
            FROM,
            0.75,
        ),
        row("SELECT '<b>' || count(*) FROM pgbench_accounts", "cpu", FROM + 480.0, 0.5),
    ];
    let ranking = Ranking {
        id: "statements",
        section: "statements",
        title: "Statements",
        axis,
        rows: Vec::new(),
    };
    vec![ranking.with_rows(rows, 10)]
}

fn make() -> Material {
    let mut whole: Option<Frame> = None;
    let mut points = Vec::new();
    for (at, frame) in frames() {
        let start = FROM + at as f64;
        let host =
            Some(HostMetrics { busy: 1.6, iowait: 0.2, runnable: Some(1.0 + 2.0 * noise(at, 5)) });
        points.push(match &frame {
            None => Point { start, seconds: 0.0, figures: None },
            Some(frame) => {
                let interval = Interval::from_frame(frame);
                let seconds = interval.instrumented_seconds;
                Point {
                    start,
                    seconds,
                    figures: Some(Figures {
                        host,
                        sums: parts::sums(&interval),
                        ..Figures::from_interval(&interval)
                    }),
                }
            }
        });
        match (&mut whole, frame) {
            (Some(whole), Some(frame)) => whole.merge(&frame),
            (None, frame) => whole = frame,
            (_, None) => {}
        }
    }
    let whole = Interval::from_frame(&whole.unwrap());
    let moments = points
        .iter()
        .map(|p| Moment {
            start: p.start,
            seconds: p.seconds,
            commands: p.figures.as_ref().map_or(0, |f| f.commands),
            commits: p.figures.as_ref().map(|f| f.commits),
        })
        .collect();
    let mut statements = sample::statements();
    let hostile =
        "SELECT '<script>alert(1)</script>' || '</table>' FROM \"<b>bold</b>\" WHERE a & b";
    statements.rows[1].query = Some(hostile.into());
    statements.interval_seconds = Some(whole.interval_seconds);
    Material {
        blocking: None,
        blocker: None,
        vacuum: None,
        measured: MeasuredTime {
            recording: "/srv/recording".to_string(),
            host: "db1".to_string(),
            from: FROM,
            to: FROM + SECONDS as f64,
            interval_seconds: 1.0,
            detail_seconds: Some(10.0),
            intervals: (SECONDS - GAP.len()) as u64,
            facts: vec![
                Fact { name: "Machine", text: "2 cores, 8 GB of memory, Linux 6.1".to_string() },
                Fact { name: "Level", text: "waits for 510 s, locks for 60 s".to_string() },
            ],
            ..MeasuredTime::default()
        },
        whole,
        statements: Some(statements),
        sessions: None,
        histories: None,
        rankings: rankings(&points),
        statement_parts: None,
        points,
        moments,
        latency: latency(),
        events: events(),
        marks: vec![Mark {
            time: FROM + 390.0,
            until: None,
            kind: "start".to_string(),
            text: "the server started".to_string(),
        }],
        gaps: vec![Gap {
            from: FROM + GAP.start as f64,
            to: FROM + GAP.end as f64,
            reason: "the server was down".to_string(),
        }],
        settings: vec![
            Setting {
                group: "server".into(),
                name: "commit_delay".into(),
                value: "0".into(),
                changed: Some(FROM + 420.0),
            },
            Setting {
                group: "server".into(),
                name: "shared_buffers".into(),
                value: "256MB".into(),
                changed: None,
            },
        ],
        setting_changes: vec![SettingChange {
            time: FROM + 420.0,
            name: "commit_delay".into(),
            before: "10 us".into(),
            after: "0".into(),
        }],
        runs: vec![Run {
            command: "pgbench -c 8 -T 600".to_string(),
            from: FROM,
            to: Some(FROM + 600.0),
            exit_code: Some(0),
            output: "pgbench (15.20)\ntps = 571.3 (without initial connection time)\n".to_string(),
        }],
        relations: RelationTimes::default(),
        client: None,
        cost: None,
        log: Vec::new(),
        devices: vec![Device {
            name: "nvme0n1 (data, WAL)".to_string(),
            direct: true,
            reads: 120.0,
            read_bytes: 983_040.0,
            read_seconds: Some(0.000_12),
            writes: 840.0,
            written_bytes: 9_000_000.0,
            write_seconds: Some(0.000_4),
            flushes: Some(410.0),
            flush_seconds: Some(0.000_55),
            queue: 0.6,
            utilisation: 0.42,
        }],
        problems: Vec::new(),
    }
}
