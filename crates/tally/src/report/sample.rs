// SPDX-License-Identifier: PostgreSQL
//! A recording that never was, for tests of the report: ten minutes of two processors, with a
//! gap, three checkpoints and a step in one wait.

use std::sync::Arc;

use jiff::tz::TimeZone;
use segment::{EventKind, Histogram};

use super::assemble;
use super::document::{Document, Fact, Gap, Mark};
use super::material::{Device, Latency, Material, Moment, Run, Setting};
use super::point::{Figures, Host, Point};
use crate::events::Row;
use crate::model::sample;

pub const FROM: f64 = 1_700_000_000.0;
const SECONDS: usize = 600;
/// Nothing was measured from here to there.
const GAP: std::ops::Range<usize> = 360..390;
const CHECKPOINTS: [(f64, f64); 3] = [(60.0, 118.0), (250.0, 310.0), (480.0, 545.0)];

/// The document made of it.
pub fn document(material: Material) -> Document {
    let mut document = assemble::document(material, &TimeZone::UTC).unwrap();
    document.made.time = FROM + 1_000.0;
    document
}

fn in_checkpoint(at: usize) -> bool {
    CHECKPOINTS.iter().any(|&(from, to)| from <= at as f64 && (at as f64) < to)
}

/// Between 0 and 1, always the same for the same number.
fn noise(at: usize, of: usize) -> f64 {
    let mut n = (at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (of as u64 + 7) << 17;
    n ^= n >> 31;
    n = n.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    n ^= n >> 29;
    n as f64 / u64::MAX as f64
}

fn figures(at: usize) -> Figures {
    let slow = if in_checkpoint(at) { 1.8 } else { 1.0 };
    let step = if at >= 420 { 2.6 } else { 1.0 };
    let base: [(&str, f64); 14] = [
        ("cpu", 1.26 / slow),
        ("IO:WALSync", 0.92 * slow),
        ("LWLock:WALWrite", 0.78 * slow),
        ("Lock:transactionid", 0.31 * step),
        ("IO:DataFileRead", 0.24),
        ("Client:ClientWrite", 0.19),
        ("LWLock:ProcArray", 0.13),
        ("LWLock:BufferContent", 0.11),
        ("IPC:ParallelFinish", 0.09),
        ("IO:DataFileWrite", 0.08 * slow),
        ("Lock:tuple", 0.05 * step),
        ("IO:WALWrite", 0.04),
        ("Timeout:VacuumDelay", 0.02),
        ("BufferPin:BufferPin", 0.01),
    ];
    let activities: Vec<(Arc<str>, f64)> = base
        .iter()
        .enumerate()
        .map(|(of, (name, seconds))| ((*name).into(), seconds * (0.9 + 0.2 * noise(at, of))))
        .collect();
    let busy: f64 = activities.iter().map(|a| a.1).sum();
    let commands = (4_000.0 / slow / step.sqrt() * (0.95 + 0.1 * noise(at, 99))) as u64;
    let interval = sample::interval();
    Figures {
        activities,
        commands,
        handle_seconds: busy,
        read_seconds: 8.0 - busy.min(8.0),
        commits: commands / 7,
        led: interval.commits.led,
        sync: interval.commits.sync,
        flushes: commands / 20,
        read_bytes: 8_000_000,
        written_bytes: if in_checkpoint(at) { 40_000_000 } else { 3_000_000 },
        wal_bytes: commands * 300,
        host: Some(Host { busy: 1.6, iowait: 0.2, waiting: Some(0.4 * noise(at, 5)) }),
        sessions: vec![("active".to_string(), 3.0), ("idle".to_string(), 5.0)],
    }
}

fn points() -> Vec<Point> {
    (0..SECONDS)
        .map(|at| {
            let start = FROM + at as f64;
            match GAP.contains(&at) {
                true => Point { start, seconds: 0.0, figures: None },
                false => Point { start, seconds: 1.0, figures: Some(figures(at)) },
            }
        })
        .collect()
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
    (0..SECONDS / 10)
        .map(|at| {
            let mut histogram = Histogram::new();
            for command in 0..400 {
                let skew = noise(command, at);
                histogram.add((80_000.0 + 4_000_000.0 * skew.powi(6)) as u64, 10);
            }
            Latency {
                start: FROM + 10.0 * at as f64,
                seconds: 10.0,
                histogram: (!GAP.contains(&(10 * at))).then_some(histogram),
            }
        })
        .collect()
}

/// What it is all made of. The accounts of the whole are those of the points.
pub fn material() -> Material {
    let points = points();
    let moments = points
        .iter()
        .map(|p| Moment {
            start: p.start,
            seconds: p.seconds,
            commands: p.figures.as_ref().map_or(0, |f| f.commands),
            commits: p.figures.as_ref().map(|f| f.commits),
        })
        .collect();
    let mut whole = sample::interval();
    let covered = (SECONDS - GAP.len()) as f64;
    (whole.time, whole.interval_seconds) = (FROM + SECONDS as f64, covered);
    (whole.instrumented_seconds, whole.locks_seconds) = (covered, 60.0);
    let mut statements = sample::statements();
    let hostile =
        "SELECT '<script>alert(1)</script>' || '</table>' FROM \"<b>bold</b>\" WHERE a & b";
    statements.rows[1].query = Some(hostile.into());
    Material {
        recording: "/srv/recording".to_string(),
        host: "db1".to_string(),
        from: FROM,
        to: FROM + SECONDS as f64,
        interval_seconds: 1.0,
        detail_seconds: Some(10.0),
        intervals: (SECONDS - GAP.len()) as u64,
        whole,
        statements: Some(statements),
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
        facts: vec![
            Fact { name: "Machine", text: "2 cores, 8 GB of memory, Linux 6.1".to_string() },
            Fact { name: "Level", text: "waits for 510 s, locks for 60 s".to_string() },
        ],
        settings: vec![
            Setting { name: "commit_delay".into(), value: "0".into(), changed: Some(FROM + 420.0) },
            Setting { name: "shared_buffers".into(), value: "256MB".into(), changed: None },
        ],
        runs: vec![Run {
            command: "pgbench -c 8 -T 600".to_string(),
            from: FROM,
            to: Some(FROM + 600.0),
            exit_code: Some(0),
            output: "pgbench (15.20)\ntps = 571.3 (without initial connection time)\n".to_string(),
        }],
        devices: vec![Device {
            name: "nvme0n1 (data, WAL)".to_string(),
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
