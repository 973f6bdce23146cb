// SPDX-License-Identifier: PostgreSQL
//! Made-up intervals for tests of the views.

use std::collections::BTreeMap;
use std::path::Path;

use segment::commits::{Checkpoints, Commits};
use segment::delta::{Change, Extreme, Total};
use segment::directory::{Stat, StatKind};
use segment::files::{FilePhase, FileRow, FileTotals, ProcessFileRow};
use segment::functions::{EdgeRow, FunctionRow, FunctionTotals};
use segment::interval::{
    AccountRow, ClockInfo, CommandRow, EndedRow, HoldingRow, Interval, ServerInfo, SessionRow,
    Timing,
};
use segment::kernel::KernelView;
use segment::locks::{LockRow, LwlockRow, LwlockTotals, PhaseRow};
use segment::relations::{RelationKey, RelationTiming};
use segment::statements::{Blocks, StatementCounters, Wal};
use segment::wal::WalRow;
use segment::WaitClass;
use segment::{
    Clock, ClockKind, EventKind, Histogram, Level, Overflows, Payload, RelationRow, StatementKey,
};

use super::blocking::{Forest, Party, Wait};
use super::io::{Checkpoint, Io, RelationNames, Running, Tablespaces};
use super::statements::{
    ActivityRow, Bucket, CurrentRow, Moments, Quantiles, Split, StatementFigures, StatementsTable,
    TableRow,
};
use crate::events::Row;
use crate::Reading;

fn account(name: &str, values: &[u64]) -> AccountRow {
    let total = total(values.iter().copied());
    let clock = ClockInfo { kind: "monotonic", ticks_per_second: 1e9 };
    let stat = Stat::new(name.to_string(), StatKind::Account, "ticks".to_string());
    AccountRow::from_total(&stat, total, &clock)
}

fn timing(count: u64, seconds: f64) -> Timing {
    let mean = seconds / count as f64;
    Timing {
        count,
        seconds,
        mean_seconds: Some(mean),
        min_seconds: Some(mean / 8.0),
        max_seconds: Some(mean * 100.0),
        p50_seconds: Some(mean * 0.8),
        p99_seconds: Some(mean * 9.0),
        half_width_seconds: None,
        doubt_seconds: 0.0,
        refused: false,
    }
}

fn total(values: impl Iterator<Item = u64> + Clone) -> Total {
    let mut histogram = Histogram::new();
    for value in values.clone() {
        histogram.add(value, 1);
    }
    let of = |value: Option<u64>| value.map_or(Extreme::None, Extreme::Of);
    Total {
        change: Change {
            count: values.clone().count() as u64,
            total: values.clone().sum(),
            min: of(values.clone().min()),
            max: of(values.max()),
            ..Change::default()
        },
        histogram,
    }
}

/// Counts and milliseconds of held, acquire and wait.
fn lwlock(lock: &str, mode: &str, phase: &str, parts: [(u64, u64); 3], failed: u64) -> LwlockRow {
    let [held, acquire, wait] =
        parts.map(|(count, ms)| total((0..count).map(move |_| ms * 1_000_000 / count)));
    LwlockRow::from_totals([lock, mode, phase], LwlockTotals { held, acquire, wait, failed }, 1e9)
}

fn function(name: &str, phase: &str, calls: &[u64], exclusive: u64, counted: u64) -> FunctionRow {
    let inclusive = total(calls.iter().copied());
    let totals = FunctionTotals { inclusive, exclusive, counted, ..FunctionTotals::default() };
    FunctionRow::from_totals([name, phase], totals, 1e9)
}

fn edge(caller: &str, callee: &str, count: u64, seconds: f64) -> EdgeRow {
    EdgeRow { caller: caller.into(), callee: callee.into(), timing: timing(count, seconds) }
}

fn session(pid: i32, state: &'static str, phase: &str, activity: &str) -> SessionRow {
    let client = state != "background";
    let busy = if state == "active" { 0.75 } else { 0.0 };
    SessionRow {
        pid,
        leader_pid: None,
        kind: if client { "client backend" } else { "checkpointer" }.to_string(),
        database: client.then(|| "shop".to_string()),
        user: client.then(|| "alice".to_string()),
        application: if client { "pgbench" } else { "" }.to_string(),
        client_address: client.then(|| "10.0.0.5".to_string()),
        phase: phase.into(),
        activity: activity.into(),
        class: WaitClass::of_name(activity),
        since_seconds: 0.0123,
        transaction_seconds: (client && state != "idle").then_some(0.5),
        age_seconds: Some(3_600.0),
        state,
        lived_seconds: 1.0,
        busy_seconds: busy,
        cpu_seconds: Some(busy / 2.0),
        commands: if client { 1200 } else { 0 },
        slot: pid as u32,
        generation: 1,
        holding_count: 0,
        holding: Vec::new(),
        accounts: Vec::new(),
        pauses: None,
    }
}

/// The same with statements.
pub fn reading() -> Reading {
    Reading {
        statements: Some(statements()),
        io: Some(io()),
        asked: true,
        ..Reading::new(interval())
    }
}

/// Eight sessions that wait for a row, one behind the other, and the session that blocks them.
pub fn blocking() -> Forest {
    let waiter = |pid, seconds, blocks| Party {
        pid,
        application: Some("shop".into()),
        state: Some("active"),
        activity: Some("Lock:tuple".into()),
        since_seconds: Some(seconds),
        query: Some("UPDATE accounts SET balance = $1 WHERE id = $2".into()),
        wait: Some(Wait {
            pid,
            lock: "row (0,7) of relation accounts".into(),
            lock_type: "tuple",
            mode: "ExclusiveLock",
            seconds,
            blockers: vec![4304],
            blocker_count: 1,
        }),
        blocks,
        ..Party::default()
    };
    let behind = (1..8).map(|n| waiter(4310 + n, 40.0 - f64::from(n), Vec::new())).collect();
    let root = Party {
        pid: 4304,
        application: Some("psql".into()),
        user: Some("joe".into()),
        database: Some("shop".into()),
        client_address: Some("10.0.0.7".into()),
        transaction_seconds: Some(63.0),
        state: Some("idle in transaction"),
        since_seconds: Some(41.0),
        query: Some("UPDATE accounts SET balance = 0".into()),
        waiters: 8,
        blocks: vec![Party { waiters: 7, ..waiter(4310, 41.0, behind) }],
        ..Party::default()
    };
    Forest { blocked: 8, roots: vec![root], deadlocks: Vec::new() }
}

/// One kind of file operation: microseconds of each, total bytes, sequential operations.
fn file(names: [&str; 3], count: u64, us: u64, bytes: u64, sequential: u64) -> FileRow {
    let mut all = total((0..count).map(move |n| (us + n % 7) * 1_000));
    (all.change.amount, all.change.follows) = (bytes, sequential);
    let phase = FilePhase {
        phase: "execute".into(),
        count,
        failed: 0,
        bytes,
        sequential,
        seconds: all.change.total as f64 * 1e-9,
    };
    FileRow::from_totals(names, FileTotals { all, failed: 0 }, vec![phase], 1e9)
}

fn files() -> Vec<FileRow> {
    vec![
        file(["wal", "", "sync"], 405, 600, 0, 0),
        file(["wal", "", "write"], 410, 22, 3_600_000, 409),
        file(["main", "16385", "read"], 310, 55, 310 << 13, 290),
        file(["main", "pg_default", "extend"], 64, 30, 64 << 13, 64),
        file(["main", "pg_default", "write"], 900, 9, 900 << 13, 31),
        file(["main", "pg_default", "open"], 12, 15, 0, 0),
        file(["main", "pg_default", "sync"], 4, 20_000, 0, 0),
        file(["slru Xact", "", "write"], 1, 12, 8192, 0),
        file(["temporary", "pg_default", "unlink"], 2, 8_000, 0, 0),
    ]
}

fn file_processes() -> Vec<ProcessFileRow> {
    let row = |process: &str, row: FileRow| ProcessFileRow {
        process: process.into(),
        count: row.timing.count,
        failed: row.failed,
        bytes: row.bytes,
        sequential: row.sequential,
        seconds: row.timing.seconds,
        file: row.file,
        tablespace: row.tablespace,
        operation: row.operation,
    };
    let mut rows: Vec<ProcessFileRow> =
        files().into_iter().take(4).map(|file| row("client backend", file)).collect();
    rows.extend(files().into_iter().skip(4).map(|file| row("checkpointer", file)));
    rows
}

/// A running checkpoint, a completed one, and two slow operations; no device is known.
pub fn io() -> Io {
    let row = |kind, ago: f64, process: &str, text: &str| Row {
        number: 1,
        time: Some(1_700_000_000.0 - ago),
        pid: 4210,
        process: Some(process.to_string()),
        database: None,
        user: None,
        kind,
        text: text.to_string(),
        payload: Payload::of_text(kind, text),
        lost: 0,
    };
    let ended = "checkpoint ends: reason=time total=26.951 slru=0.002 write=26.810 sync=0.120 \
                 buffers=1234 files=32 longest=0.080 added=0 removed=0 recycled=2 file=base/5/2619";
    Io {
        checkpoint_running: Some(Running {
            begun: Some(1_700_000_000.0 - 3.2),
            reason: "request".to_string(),
            seconds: Some(3.2),
            before: None,
            during: None,
        }),
        checkpoint: Payload::of_text(EventKind::Checkpoint, ended)
            .and_then(|payload| Checkpoint::from_payload(&payload, Some(1_700_000_000.0 - 301.0))),
        slow: vec![
            row(EventKind::Slow, 75.0, "client backend", "Lock:transactionid: 1.500 s"),
            row(EventKind::Slow, 2.5, "checkpointer", "sync: 7.020 s: pg_xact/000C"),
        ],
        relations: Some(relations()),
        relations_seconds: None,
        relation_names: RelationNames(BTreeMap::from([((Some(5), 1663, 16384), "orders".into())])),
        tablespaces: Tablespaces::default(),
        devices: None,
        devices_problem: Some("the segment names no data directory".to_string()),
        recorded: None,
    }
}

/// A table, its index in another tablespace, and the row of the relations that did not fit.
fn relations() -> Vec<RelationRow> {
    let timing = |count: u64, bytes: u64, max_seconds: Option<f64>| RelationTiming {
        count,
        bytes,
        seconds: count as f64 * 0.0002,
        max_seconds,
    };
    let row = |tablespace, relfilenode, read, write| {
        let none = timing(0, 0, None);
        RelationRow {
            key: RelationKey::default(),
            tablespace,
            database_id: tablespace.map(|_| 5),
            database: tablespace.map(|_| "shop".to_string()),
            relfilenode,
            fork: tablespace.map(|_| "main"),
            temporary: false,
            seconds: 0.12,
            failed: 0,
            read,
            write,
            extend: none,
            sync: none,
            truncate: none,
        }
    };
    vec![
        row(Some(1663), Some(16384), timing(400, 400 * 8192, Some(0.004)), timing(0, 0, None)),
        row(Some(16390), Some(16387), timing(100, 819_200, None), timing(30, 245_760, Some(0.02))),
        row(None, None, timing(2, 16384, None), timing(0, 0, None)),
    ]
}

fn activity(phase: &str, activity: &str, count: u64, seconds: f64) -> ActivityRow {
    let class = WaitClass::of_name(activity);
    ActivityRow { phase: phase.into(), activity: activity.into(), class, count, seconds }
}

fn statement(
    id: u64,
    query: &str,
    calls: &[u64],
    activities: Vec<ActivityRow>,
) -> StatementFigures {
    let total = total(calls.iter().copied());
    let clock = Clock::new(Path::new(""), ClockKind::Monotonic, 0, 0, false).unwrap();
    let timing = account("execute::cpu", calls).timing;
    let quantile = |q| total.quantile(q).map(|ticks| ticks as f64 * 1e-9);
    StatementFigures {
        key: StatementKey {
            id,
            database_id: 5,
            user_id: 10,
            toplevel: true,
            ..StatementKey::default()
        },
        queryid: (id != 0).then_some(id as i64),
        toplevel: true,
        database: "shop".to_string(),
        user: "alice".to_string(),
        query: (!query.is_empty()).then(|| query.into()),
        query_bytes: query.len() as u32,
        calls: timing.count,
        seconds: activities.iter().map(|a| a.seconds).sum(),
        split: Split::from_activities(&activities),
        activities,
        execution: Moments {
            count: timing.count,
            seconds: timing.seconds,
            mean_seconds: timing.mean_seconds,
            stddev_seconds: timing.mean_seconds.map(|mean| mean / 3.0),
            min_seconds: timing.min_seconds,
            max_seconds: timing.max_seconds,
        },
        quantiles: Quantiles {
            p50_seconds: quantile(0.50),
            p90_seconds: quantile(0.90),
            p95_seconds: quantile(0.95),
            p99_seconds: quantile(0.99),
            p999_seconds: quantile(0.999),
        },
        counters: StatementCounters { rows: timing.count, ..StatementCounters::default() },
        first_seen: (id != 0).then_some(1_700_000_000.0 - 7_200.0),
        last_seen: (id != 0).then_some(1_700_000_000.0 - 0.25),
        histogram: Bucket::all(&total.histogram, &clock),
        seconds_per_tick: 1e-9,
        ..StatementFigures::default()
    }
}

/// Three statements, one of them nested in another, and the unidentified ones.
pub fn statements() -> StatementsTable {
    let us = 1_000;
    let calls: Vec<u64> = (0..2000u64).map(|n| 90 * us + n * n * 20).collect();
    let text = "UPDATE accounts\n   SET balance = balance + $1\n WHERE id = $2";
    let mut update = statement(
        0xC0FF_EE00_C0FF_EE00,
        text,
        &calls,
        vec![
            activity("simple query", "IO:WALSync", 1900, 0.31),
            activity("simple query", "LWLock:WALWrite", 700, 0.12),
            activity("simple query", "cpu", 6000, 0.105),
            activity("simple query", "Lock:transactionid", 40, 0.045),
        ],
    );
    update.counters.blocks =
        Blocks { shared_hit: 8000, shared_read: 120, shared_dirtied: 210, ..update.blocks };
    update.counters.io.read_seconds = 0.0123;
    update.counters.wal = Wal { records: 4000, fpi: 31, bytes: 553_000 };
    update.counters.errors = 2;
    update.running = 1;
    let report = "SELECT region, count(*) FROM orders GROUP BY region";
    let mut select = statement(
        4242,
        report,
        &[38_000 * us],
        vec![
            activity("execute", "cpu", 3, 0.021),
            activity("execute", "IO:DataFileRead", 310, 0.017),
        ],
    );
    select.counters.blocks = Blocks { shared_hit: 90, shared_read: 310, ..select.blocks };
    select.planning = Moments { count: 1, mean_seconds: Some(0.0002), ..Moments::default() };
    (select.counters.temp_files, select.counters.temp_bytes) = (1, 4 << 20);
    (select.counters.workers, select.counters.worker_seconds) = (2, 0.07);
    select.counters.rows = 12;
    let mut nested = statement(
        77,
        "SELECT price FROM goods WHERE id = $1",
        &[10 * us; 300],
        vec![activity("simple query", "cpu", 300, 0.004)],
    );
    nested.toplevel = false;
    nested.key.toplevel = false;
    let unknown = statement(0, "", &[], vec![activity("simple query", "cpu", 2, 0.002)]);
    let mut rows = vec![update, select, nested, unknown];
    let seconds = rows.iter().filter(|row| row.toplevel).map(|row| row.seconds).sum();
    rows.iter_mut().for_each(|row| row.share = row.seconds / seconds);
    let running = vec![
        activity("execute", "LWLock:WALWrite", 7, 0.009),
        activity("execute", "cpu", 5, 0.003),
    ];
    StatementsTable {
        time: 1_700_000_000.0,
        interval_seconds: Some(1.0),
        seconds,
        table: TableRow { used: 312, capacity: 5000, evicted: 17, ..TableRow::default() },
        current: vec![CurrentRow {
            pid: 4301,
            slot: 4301,
            generation: 1,
            queryid: Some(0xC0FF_EE00_C0FF_EE00_u64 as i64),
            query: Some(text.into()),
            seconds: 0.012,
            split: Split::from_activities(&running),
            activities: running,
        }],
        rows,
        ..StatementsTable::default()
    }
}

/// One second of five processes.
pub fn interval() -> Interval {
    let ms = 1_000_000;
    let ledger = vec![
        account("idle::wait::Client:ClientRead", &[700 * ms, 300 * ms]),
        account("background::wait::Activity:CheckpointerMain", &[1000 * ms]),
        account("execute::cpu", &[300 * ms, 120 * ms, 30 * ms, 100_000]),
        account("execute::wait::LWLock:WALWrite", &[200 * ms, 50 * ms, 2 * ms, 40_000]),
        account("parse::cpu", &[20 * ms, 7 * ms]),
        account("execute::wait::IO:WALSync", &[90 * ms, 8 * ms]),
        account("execute::wait::Lock:transactionid", &[45 * ms]),
        account("sync::wait::IO:WALSync", &[12 * ms]),
    ];
    let busy: f64 = ledger.iter().filter(|a| !a.idle).map(|a| a.timing.seconds).sum();
    let wall: f64 = ledger.iter().map(|a| a.timing.seconds).sum();
    let mut interval = Interval {
        time: 1_700_000_000.0,
        interval_seconds: 1.0,
        level: Level::Locks,
        level_left_seconds: Some(42.0),
        level_then: Some(Level::Waits),
        clock: ClockInfo { kind: "tsc", ticks_per_second: 1e9 },
        server: ServerInfo {
            name: "PostgreSQL 15.20".to_string(),
            host: "/srv/postgresql/15/main".to_string(),
            segment: "/dev/shm/pg_tally.fe00.2a5f31".to_string(),
            pid: Some(4200),
            port: Some(5432),
            producer: "pg_tally 0.3.0".to_string(),
            created: 1_700_000_000.0 - 93_784.0,
        },
        cores: 2,
        wall_seconds: wall,
        busy_seconds: busy,
        commands_handled: 3600,
        own_commands: 0,
        exact: true,
        sampling: None,
        uninstrumented_seconds: 0.0,
        instrumented_seconds: 1.0,
        locks_seconds: 0.5,
        torn_sessions: 0,
        overflow: Overflows::default(),
        overflow_in_interval: Overflows::default(),
        memory: None,
        sessions: vec![
            session(4301, "active", "execute", "LWLock:WALWrite"),
            session(4302, "active", "execute", "cpu"),
            session(4303, "idle", "idle", "Client:ClientRead"),
            session(4304, "idle in transaction", "idle in transaction", "Client:ClientRead"),
            session(4210, "background", "background", "Activity:CheckpointerMain"),
        ],
        population: Vec::new(),
        others: None,
        ended: EndedRow { sessions: 3, seconds: 0.4 },
        ended_origins: Vec::new(),
        client_waits: Vec::new(),
        ledger,
        waits: Vec::new(),
        commands: vec![
            CommandRow {
                kind: "Execute".to_string(),
                read: timing(1800, 0.9),
                handle: timing(1800, 0.7),
            },
            CommandRow {
                kind: "Parse".to_string(),
                read: timing(1800, 0.1),
                handle: timing(1800, 0.05),
            },
        ],
        lwlocks: vec![
            lwlock("WALWrite", "exclusive", "execute", [(400, 120), (400, 900), (250, 880)], 31),
            lwlock("ProcArray", "exclusive", "execute", [(2000, 8), (2000, 3), (12, 3)], 0),
            lwlock("ProcArray", "shared", "execute", [(5000, 5), (5000, 0), (0, 0)], 0),
            lwlock("ProcArray", "shared", "bind", [(1800, 2), (1800, 1), (3, 1)], 0),
        ],
        locks: vec![LockRow {
            kind: "transactionid".into(),
            mode: "ShareLock".into(),
            phase: "execute".into(),
            wait: timing(20, 0.045),
        }],
        deadlock_checks: vec![PhaseRow { phase: "execute".into(), timing: timing(1, 0.0002) }],
        spin_delays: vec![PhaseRow { phase: "execute".into(), timing: timing(7, 0.001) }],
        functions_probed: 3,
        functions: vec![
            function("XLogFlush", "execute", &[9_000_000, 70_000], 8_000_000, 0),
            function("XLogFlush", "sync", &[12_000_000], 11_000_000, 0),
            function("heap_insert", "execute", &[4_000, 5_000, 6_000], 15_000, 41_000),
        ],
        edges: vec![
            edge("RecordTransactionCommit", "XLogFlush", 3, 0.02107),
            edge("XLogFlush", "issue_xlog_fsync", 3, 0.002),
            edge("simple_heap_insert", "heap_insert", 3, 0.000015),
            edge("heap_insert", "heap_insert", 1, 0.000001),
        ],
        files: files(),
        file_processes: file_processes(),
        commits: Commits {
            count: 1600,
            leader: timing(400, 0.36),
            group_committed: timing(1150, 0.69),
            asynchronous: timing(50, 0.0005),
            flushes: 405,
            commits_per_flush: Some(1550.0 / 400.0),
            queue: timing(1150, 0.6),
            delay: timing(90, 0.099),
            sync: timing(400, 0.24),
            ..Commits::default()
        },
        checkpoints: Checkpoints::default(),
        wal: vec![WalRow {
            process: "client backend".to_string(),
            records: 40_000,
            full_page_images: 200,
            bytes: 6_291_456,
            buffers_full: 3,
        }],
        statistics: Vec::new(),
        kernel: KernelView {
            available: true,
            sessions: 5,
            cpu_account_seconds: 0.477,
            on_cpu_seconds: 0.45,
            run_queue_seconds: 0.05,
            runnable_inside_waits_seconds: 0.023,
            unexplained_seconds: 0.0018,
            unexplained_share: 0.002,
            unexplained_error: 0.004,
            samples: 1234,
            samples_unexplained: 2,
            ..KernelView::default()
        },
    };
    let held = |lock: &str, seconds| HoldingRow { lock: lock.into(), mode: "exclusive", seconds };
    interval.sessions[1].holding = vec![held("WALWrite", 0.0042), held("WALInsert", 0.00003)];
    interval.sessions[1].holding_count = 2;
    interval.waits = interval.waits_of_ledger();
    interval
}
