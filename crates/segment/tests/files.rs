// SPDX-License-Identifier: PostgreSQL
//! Operations on files, WAL, commits and checkpoints in intervals, on segments written according to the layout.
#![allow(missing_docs)]

mod maker;

use maker::{Maker, Shape, Slot, Who, ACCOUNT, TIMER, VALUE};
use proptest::prelude::*;
use segment::clients::ClientTotals;
use segment::clock::monotonic_ns;
use segment::files::FileRow;
use segment::layout::header;
use segment::{Interval, Segment, Snapshot};
use std::collections::BTreeMap;
use tempfile::TempDir;

const SHAPE: Shape = Shape { slots: 8, groups: 4, stats_per_book: 32 };

fn make() -> (TempDir, Maker) {
    let folder = tempfile::tempdir().unwrap();
    let maker = Maker::new(&folder.path().join("pg_tally.1.2"), SHAPE);
    (folder, maker)
}

fn checkpointer() -> Who<'static> {
    let who = Who::client();
    Who { kind: "checkpointer", database_id: 0, database: "", user_id: 0, user: "", ..who }
}

fn step(segment: &mut Segment, previous: &mut Snapshot) -> Interval {
    let snapshot = segment.snapshot(Some(previous)).unwrap();
    let interval = Interval::between(segment, Some(previous), &snapshot);
    *previous = snapshot;
    interval
}

fn row<'i>(interval: &'i Interval, file: &str, operation: &str) -> &'i FileRow {
    let mut rows = interval.files.iter();
    rows.find(|row| &*row.file == file && &*row.operation == operation).unwrap()
}

#[test]
fn an_operation_has_its_bytes_its_failures_and_its_phases() {
    let (_folder, mut maker) = make();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let read = maker.stat("file::main@16385::read::execute", TIMER);
    let bind = maker.stat("file::main@16385::read::bind", TIMER);
    let failed = maker.stat("file::main@16385::read failed::execute", TIMER);
    let other = maker.stat("file::main::read::execute", TIMER);
    let odd = maker.stat("file::odd", TIMER);
    let mut slot = maker.claim(0, 1, Who::client(), cpu, monotonic_ns());
    slot.moved(read, 9_000_000, 1 << 40, false);
    maker.write(&slot);
    let mut segment = Segment::open(&maker.path).unwrap();
    let mut previous = segment.snapshot(None).unwrap();
    slot.moved(read, 2_000_000, 8192, false);
    slot.moved(read, 4_000_000, 8192, true);
    slot.moved(bind, 1_000_000, 4096, false);
    slot.moved(failed, 3_000_000, 0, false);
    slot.moved(other, 500_000, 100, true);
    slot.record(odd, 5);
    maker.write(&slot);

    let interval = step(&mut segment, &mut previous);
    assert_eq!(interval.files.len(), 2, "{:?}", interval.files);
    let row = row(&interval, "main", "read");
    assert_eq!(row.tablespace.as_deref(), Some("16385"), "the most time comes first");
    assert_eq!((row.timing.count, row.failed, row.bytes, row.sequential), (4, 1, 20480, 1));
    assert!((row.timing.seconds - 0.010).abs() < 1e-12);
    assert!((row.timing.mean_seconds.unwrap() - 0.0025).abs() < 1e-12);
    // The very first operation was longer, but it is not an extreme of this interval.
    assert!(row.timing.max_seconds.unwrap() < 0.005, "{row:?}");
    assert!((row.p95_seconds.unwrap() / 0.004 - 1.0).abs() < 0.0625, "{row:?}");
    assert_eq!(row.sequential_share(), Some(1.0 / 3.0));
    let phases: Vec<(&str, u64, u64, u64)> =
        row.phases.iter().map(|p| (&*p.phase, p.count, p.failed, p.bytes)).collect();
    assert_eq!(phases, [("execute", 3, 1, 16384), ("bind", 1, 0, 4096)]);

    let both: Vec<&FileRow> = interval.files.iter().collect();
    let sum = FileRow::sum(&both, 1e9);
    assert_eq!((&*sum.file, sum.tablespace.as_deref(), &*sum.operation), ("main", None, "read"));
    assert_eq!((sum.timing.count, sum.failed, sum.bytes, sum.sequential), (5, 1, 20580, 2));

    assert_eq!(interval.statistics.len(), 1, "other statistics are shown under their own name");
    assert_eq!(interval.statistics[0].name, "file::odd");
    assert!(step(&mut segment, &mut previous).files.is_empty());
}

#[test]
fn operations_are_counted_by_kind_of_process_ended_ones_included() {
    let (_folder, mut maker) = make();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let write = maker.stat("file::wal::write::execute", TIMER);
    let back = maker.stat("file::wal::write::background", TIMER);
    let mut group = maker.group(0);
    maker.group_kind(&group, "client backend");
    let now = monotonic_ns();
    let mut client = maker.claim(0, 1, Who::client(), cpu, now);
    client.moved(write, 1_000_000, 8192, false);
    maker.write(&client);
    let mut process = maker.claim(1, 1, checkpointer(), cpu, now);
    maker.write(&process);
    let mut segment = Segment::open(&maker.path).unwrap();
    let mut previous = segment.snapshot(None).unwrap();

    client.moved(write, 2_000_000, 16384, true);
    maker.merge(client, &mut group, monotonic_ns());
    // A session that starts and ends between two snapshots.
    let mut brief = maker.claim(0, 2, Who::client(), cpu, monotonic_ns());
    brief.moved(write, 4_000_000, 100, false);
    maker.merge(brief, &mut group, monotonic_ns());
    process.moved(back, 8_000_000, 7, false);
    maker.write(&process);

    let interval = step(&mut segment, &mut previous);
    let rows: Vec<(&str, &str, u64, u64, u64)> = interval
        .file_processes
        .iter()
        .map(|row| (&*row.process, &*row.operation, row.count, row.bytes, row.sequential))
        .collect();
    assert_eq!(
        rows,
        [("checkpointer", "write", 1, 7, 0), ("client backend", "write", 2, 16484, 1)],
        "most time first"
    );
    assert_eq!(row(&interval, "wal", "write").bytes, 16491);
    let client = &interval.file_processes[1];
    assert_eq!((client.tablespace.as_deref(), client.failed), (None, 0));
    assert!((client.seconds - 0.006).abs() < 1e-12);
}

#[test]
fn commits_and_checkpoints_have_their_parts() {
    let (_folder, mut maker) = make();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let mut slot = maker.claim(0, 1, Who::client(), cpu, monotonic_ns());
    let mut segment = Segment::open(&maker.path).unwrap();
    let mut previous = segment.snapshot(None).unwrap();
    let none = step(&mut segment, &mut previous);
    assert_eq!((none.commits.count, none.commits.commits_per_flush), (0, None));
    assert_eq!(none.commits.insertion, None);
    for (name, times) in [
        ("commit::leader", &[900_000u64, 1_100_000][..]),
        ("commit::group_committed", &[400_000, 500_000, 600_000]),
        ("commit::asynchronous", &[1_000]),
        ("commit::insert", &[10_000]),
        ("commit::insertion", &[2_000, 4_000]),
        ("commit::queue", &[300_000, 300_000, 300_000]),
        ("commit::delay", &[100_000]),
        ("commit::write", &[20_000, 40_000]),
        ("commit::sync", &[700_000, 900_000]),
        ("commit::replication", &[5_000_000]),
        ("commit::other", &[1]),
        ("checkpoint::total", &[27_000_000]),
        ("checkpoint::write", &[26_000_000]),
        ("checkpoint::sync", &[500_000]),
        ("file::wal::sync::execute", &[700_000, 900_000]),
        ("file::wal::sync::background", &[700_000]),
        ("file::main::sync::background", &[700_000]),
    ] {
        let stat = maker.stat(name, TIMER);
        times.iter().for_each(|&time| slot.record(stat, time));
    }
    maker.write(&slot);

    let interval = step(&mut segment, &mut previous);
    let c = &interval.commits;
    assert_eq!((c.count, c.flushes, c.commits_per_flush), (6, 3, Some(2.5)));
    let parts =
        [c.leader, c.group_committed, c.asynchronous, c.insert, c.queue, c.delay, c.write, c.sync];
    assert_eq!(parts.map(|part| part.count), [2, 3, 1, 1, 3, 1, 2, 2]);
    let means = parts.map(|part| (part.mean_seconds.unwrap() * 1e9).round() as u64);
    assert_eq!(means, [1_000_000, 500_000, 1_000, 10_000, 300_000, 100_000, 30_000, 800_000]);
    assert_eq!(c.replication.count, 1);
    assert_eq!(c.insertion.unwrap().mean_seconds.map(|s| (s * 1e9).round()), Some(3_000.0));
    let p = &interval.checkpoints;
    let seconds = [p.total, p.write, p.sync].map(|part| (part.seconds * 1e9).round() as u64);
    assert_eq!(seconds, [27_000_000, 26_000_000, 500_000]);
    let left: Vec<&str> = interval.statistics.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(left, ["commit::other"]);
}

#[test]
fn wal_is_counted_by_kind_of_process_and_client_messages_since_the_beginning() {
    let (_folder, mut maker) = make();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let off = maker.stat("off::uninstrumented", ACCOUNT);
    let handle = maker.stat("command::Query::handle", TIMER);
    let read = maker.stat("command::Query::read", TIMER);
    let [records, images, bytes, full] = ["records", "full_page_images", "bytes", "buffers_full"]
        .map(|name| maker.stat(&format!("wal::{name}"), VALUE));
    let other = maker.stat("wal::other", VALUE);
    let mut group = maker.group(0);
    maker.group_kind(&group, "client backend");
    let mut client = maker.claim(0, 1, Who::client(), cpu, monotonic_ns());
    client.record(records, 40);
    client.record(handle, 1_000_000);
    maker.write(&client);
    let mut process = maker.claim(1, 1, checkpointer(), cpu, monotonic_ns());
    maker.write(&process);
    let mut segment = Segment::open(&maker.path).unwrap();
    let mut previous = segment.snapshot(None).unwrap();

    for (stat, value) in [(records, 3), (records, 4), (bytes, 700), (images, 1), (full, 2)] {
        client.record(stat, value);
    }
    client.record(handle, 2_000_000);
    client.record(read, 9_000_000);
    client.record(off, 5);
    maker.merge(client, &mut group, monotonic_ns());
    process.record(records, 1);
    process.record(bytes, 100);
    process.record(other, 5);
    maker.write(&process);

    let interval = step(&mut segment, &mut previous);
    let rows: Vec<_> = interval
        .wal
        .iter()
        .map(|r| (&*r.process, r.records, r.full_page_images, r.bytes, r.buffers_full))
        .collect();
    assert_eq!(rows, [("client backend", 7, 1, 700, 2), ("checkpointer", 1, 0, 100, 0)]);
    let left: Vec<&str> = interval.statistics.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(left, ["wal::other"]);
    let clients = ClientTotals::from_snapshot(&previous);
    assert_eq!((clients.commands, clients.off_stretches, clients.resets), (2, 1, 0));
    assert!((clients.seconds - 0.003).abs() < 1e-12);
    assert!(step(&mut segment, &mut previous).wal.is_empty());
}

const NAMES: [&str; 5] = [
    "file::main::read::execute",
    "file::main::read::bind",
    "file::main@16385::extend::execute",
    "file::wal::sync failed::sync",
    "file::slru Xact::write::background",
];

/// A step in a server with two kinds of process; even sessions are clients.
#[derive(Debug, Clone)]
enum Step {
    Operation { session: usize, name: usize, ticks: u64, bytes: u64, follows: bool },
    End(usize),
    Look,
    Reset,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let operation = (0..4usize, 0..NAMES.len(), 1u64..1 << 40, 0u64..1 << 50, any::<bool>());
    let step = prop_oneof![
        8 => operation.prop_map(|(session, name, ticks, bytes, follows)| {
            Step::Operation { session, name, ticks, bytes, follows }
        }),
        2 => (0..4usize).prop_map(Step::End),
        3 => Just(Step::Look),
        1 => Just(Step::Reset),
    ];
    prop::collection::vec(step, 1..60)
}

/// Count, failed, ticks, bytes, sequential.
type Sums<K> = BTreeMap<K, [u64; 5]>;

fn add<K: Ord>(sums: &mut Sums<K>, key: K, numbers: [u64; 5]) {
    let sum = sums.entry(key).or_default();
    sum.iter_mut().zip(numbers).for_each(|(sum, n)| *sum += n);
}

fn ticks(seconds: f64) -> u64 {
    // A floating-point number of seconds loses a hundred nanoseconds per day.
    (seconds * 1e9 / 1e3).round() as u64
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn every_operation_is_counted_once_whatever_happens(steps in steps()) {
        let (_folder, mut maker) = make();
        let cpu = maker.stat("execute::cpu", ACCOUNT);
        let stats: Vec<u32> = NAMES.iter().map(|name| maker.stat(name, TIMER)).collect();
        let kinds = ["client backend", "checkpointer"];
        let mut groups = [maker.group(0), maker.group(1)];
        for (group, kind) in groups.iter().zip(kinds) {
            maker.group_kind(group, kind);
        }
        let mut sessions: [Option<Slot>; 4] = [const { None }; 4];
        let mut generations = [0u32; 4];
        let mut resets = 0;
        let mut segment = Segment::open(&maker.path).unwrap();
        let mut previous = segment.snapshot(None).unwrap();
        // The activity since the last snapshot, by name, and by kind of process and name.
        let mut files: Sums<usize> = Sums::new();
        let mut processes: Sums<(usize, usize)> = Sums::new();
        for step in steps.iter().chain([&Step::Look]) {
            match *step {
                Step::Operation { session, name, ticks, bytes, follows } => {
                    let kind = session % 2;
                    let slot = sessions[session].get_or_insert_with(|| {
                        generations[session] += 1;
                        let who = if kind == 0 { Who::client() } else { checkpointer() };
                        let now = monotonic_ns();
                        let mut slot =
                            maker.claim(session as u32, generations[session], who, cpu, now);
                        slot.resets = resets;
                        slot
                    });
                    if slot.resets != resets {
                        slot.heads.truncate(1);
                        slot.run_start = maker.get_u64(header::RESET_TICK as u64);
                        (slot.born, slot.resets) = (slot.run_start, resets);
                    }
                    slot.moved(stats[name], ticks, bytes, follows);
                    maker.write(slot);
                    let failed = u64::from(NAMES[name].contains("failed"));
                    let numbers = [1, failed, ticks, bytes, u64::from(follows)];
                    add(&mut files, name, numbers);
                    add(&mut processes, (kind, name), numbers);
                }
                Step::End(session) => if let Some(mut slot) = sessions[session].take() {
                    if slot.resets != resets {
                        slot.heads.truncate(1);
                    }
                    maker.merge(slot, &mut groups[session % 2], monotonic_ns());
                },
                Step::Reset => {
                    resets += 1;
                    maker.u64(header::RESET_TICK as u64, monotonic_ns());
                    maker.level_word(resets << 16 | 1);
                    for group in &mut groups {
                        group.heads.clear();
                        maker.write(group);
                    }
                    files.clear();
                    processes.clear();
                }
                Step::Look => {
                    let snapshot = segment.snapshot(Some(&previous)).unwrap();
                    let interval = Interval::between(&segment, Some(&previous), &snapshot);
                    previous = snapshot;
                    // "bind" counts as a phase in the row of "execute".
                    let merged = |name: usize| if name == 1 { 0 } else { name };
                    let mut expected: Sums<usize> = Sums::new();
                    files.iter().for_each(|(name, sums)| add(&mut expected, merged(*name), *sums));
                    let operation = |at: usize| {
                        let tags: Vec<&str> = NAMES[at].split("::").collect();
                        let file = tags[1].split('@').next().unwrap();
                        (file.to_string(), tags[2].trim_end_matches(" failed").to_string())
                    };
                    prop_assert_eq!(interval.files.len(), expected.len());
                    for (at, [count, failed, time, bytes, sequential]) in expected {
                        let (file, operation) = operation(at);
                        let row = row(&interval, &file, &operation);
                        prop_assert_eq!(
                            [row.timing.count, row.failed, row.bytes, row.sequential],
                            [count, failed, bytes, sequential]
                        );
                        prop_assert!(ticks(row.timing.seconds).abs_diff(time / 1000) <= 1);
                        let part = |of: fn(&segment::files::FilePhase) -> u64| -> u64 {
                            row.phases.iter().map(of).sum()
                        };
                        prop_assert_eq!(
                            [part(|p| p.count), part(|p| p.bytes), part(|p| p.sequential)],
                            [count, bytes, sequential]
                        );
                    }
                    let mut expected: Sums<(usize, usize)> = Sums::new();
                    for (&(kind, name), sums) in &processes {
                        add(&mut expected, (kind, merged(name)), *sums);
                    }
                    prop_assert_eq!(interval.file_processes.len(), expected.len());
                    for ((kind, at), [count, failed, _, bytes, sequential]) in expected {
                        let (file, operation) = operation(at);
                        let row = interval.file_processes.iter().find(|row| {
                            &*row.process == kinds[kind]
                                && (&*row.file, &*row.operation) == (&*file, &*operation)
                        });
                        let row = row.unwrap();
                        prop_assert_eq!(
                            [row.count, row.failed, row.bytes, row.sequential],
                            [count, failed, bytes, sequential]
                        );
                    }
                    files.clear();
                    processes.clear();
                }
            }
        }
    }
}
