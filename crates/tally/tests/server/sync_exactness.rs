// SPDX-License-Identifier: PostgreSQL
//! The data that a sync had to write: number and bytes of the writes to its file since the previous sync, by any
//! process, agree with strace's.
//!
//! The order of a write and a sync by two processes at nearly the same time is uncertain, for us and for strace.
//! Therefore each count has a lower and an upper bound; they are equal if all processes were seen at rest between
//! the writes and the sync, as in the last checkpoint of each round. If strace may not trace, the test prints a
//! message and passes.

use crate::support;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use crate::support::file_kinds::FileKinds;
use crate::support::strace::{Call, Strace};
use crate::support::{rest, storage};
use postgres::Client;
use segment::{EventKind, Segment};

const CALLS: &str = "pwrite64,pwritev,write,fsync,fdatasync,open,openat,unlink,rename";
const SESSIONS: usize = 4;
/// Of each session in each turn.
const TRANSACTIONS: usize = 25;
/// Turns of load and checkpoint.
const ROUNDS: usize = 4;

/// The two instants between which each process was seen at rest.
type Rests = BTreeMap<i32, (f64, f64)>;

/// Writes and bytes.
type WritesAndBytes = (u64, u64);

/// A write, by strace.
#[derive(Debug)]
struct Write {
    pid: i32,
    /// When it has certainly been counted: its process has started the next call, or was seen at rest.
    counted: f64,
    bytes: u64,
}

/// A sync, by strace: bounds of what its file's syncs, up to this one, had to write since the trace started.
#[derive(Debug)]
struct Sync {
    path: PathBuf,
    /// When it began.
    at: f64,
    min: WritesAndBytes,
    max: WritesAndBytes,
    /// Those of the writes so far that other processes made.
    others: u64,
}

/// Syncs by process, in order.
fn theirs(calls: &[Call], places: &FileKinds, rests: &[Rests]) -> BTreeMap<i32, Vec<Sync>> {
    let mut writes: HashMap<PathBuf, Vec<Write>> = HashMap::new();
    let mut syncs: BTreeMap<i32, Vec<Sync>> = BTreeMap::new();
    let mut begun: HashMap<i32, Vec<f64>> = HashMap::new();
    for call in calls {
        begun.entry(call.pid).or_default().push(call.at);
    }
    // When each process's last call ended. The amount that a sync has to write is determined after that.
    let mut ended: HashMap<i32, f64> = HashMap::new();
    for call in calls {
        let taken = ended.insert(call.pid, call.ended).unwrap_or(0.0);
        match call.name.as_str() {
            "unlink" if call.result == Some(0) => {
                writes.remove(&places.whole(call.text(0).unwrap()));
            }
            // A renamed file was synced before and is synced again.
            "open" | "openat" | "unlink" | "rename" => (),
            name => {
                let Some(file) = call.descriptor_file().filter(|file| file.starts_with('/')) else {
                    continue;
                };
                let path = PathBuf::from(file);
                if !name.ends_with("sync") {
                    let Some(bytes) = call.result.filter(|&n| n > 0) else { continue };
                    let of_process = &begun[&call.pid];
                    let next = of_process.partition_point(|at| *at <= call.at);
                    let next = of_process.get(next).copied().unwrap_or(f64::INFINITY);
                    let rest = rests.iter().filter_map(|rests| rests.get(&call.pid));
                    let rest = rest.filter(|(before, _)| call.ended <= *before);
                    let counted = rest.map(|(_, after)| *after).fold(next, f64::min);
                    let write = Write { pid: call.pid, counted, bytes: bytes as u64 };
                    writes.entry(path).or_default().push(write);
                    continue;
                }
                let all = writes.get(&path).map_or(&[][..], Vec::as_slice);
                let sum = |wanted: &dyn Fn(&Write) -> bool| {
                    let add = |sum: WritesAndBytes, write: &Write| (sum.0 + 1, sum.1 + write.bytes);
                    all.iter().filter(|write| wanted(write)).fold((0, 0), add)
                };
                let min = sum(&|write| write.pid == call.pid || write.counted <= taken);
                let max = sum(&|_| true);
                let others = sum(&|write| write.pid != call.pid).0;
                let sync = Sync { path, at: call.at, min, max, others };
                syncs.entry(call.pid).or_default().push(sync);
            }
        }
    }
    syncs
}

/// "sync: 0.000 s, after 2 writes of 16384 bytes: base/5/16384"
fn parse(text: &str) -> Option<(WritesAndBytes, &str)> {
    let rest = text.strip_prefix("sync: ")?;
    let (what, path) = rest.split_once(" s").and_then(|(_, rest)| rest.split_once(": "))?;
    let Some(what) = what.strip_prefix(", after ") else { return Some(((0, 0), path)) };
    let mut words = what.split(' ');
    let writes = words.next()?.parse().ok()?;
    let bytes = words.nth(2)?.parse().ok()?;
    Some(((writes, bytes), path))
}

/// Transactions as of TPC-B, all over the tables.
fn transactions(session: &mut Client, number: usize) {
    for n in 0..TRANSACTIONS {
        let random = (number * TRANSACTIONS + n) * 7919;
        let (aid, tid, bid) = (random % 200_000 + 1, random % 20 + 1, random % 2 + 1);
        let sql = format!(
            "begin; update pgbench_accounts set abalance = abalance + 1 where aid = {aid}; \
             update pgbench_tellers set tbalance = tbalance + 1 where tid = {tid}; \
             update pgbench_branches set bbalance = bbalance + 1 where bid = {bid}; \
             insert into pgbench_history (tid, bid, aid, delta) values ({tid}, {bid}, {aid}, 1); end"
        );
        session.batch_execute(&sql).unwrap();
    }
}

#[test]
fn a_sync_event_counts_all_writes_since_the_previous_sync() {
    let server = storage::server().settings([
        // Every wait counts as slow, so that each sync is reported.
        ("pg_tally.slow_threshold", "0"),
        ("pg_tally.max_events", "65536"),
        ("bgwriter_delay", "50ms"),
    ]);
    let cluster = support::start(server);
    let space = storage::fill(&cluster);
    let places = FileKinds::new(&cluster, space);
    let mut other = cluster.connect().unwrap();
    other.batch_execute("checkpoint").unwrap();
    let segment = Segment::open(&support::segment(&cluster)).unwrap();
    let mut of_rests = Segment::open(&support::segment(&cluster)).unwrap();
    let mut traced: Vec<i32> = cluster.processes().iter().map(|p| p.pid as i32).collect();
    // A process reports its last operation when its next one begins.
    rest::seen(&mut of_rests, &traced);

    traced.push(cluster.postmaster_pid().unwrap() as i32);
    let begun = segment.event_count().unwrap();
    let Some(strace) = Strace::start(CALLS, &traced) else { return };
    let mut sessions: Vec<Client> = (0..SESSIONS).map(|_| cluster.connect().unwrap()).collect();
    let mut rests = Vec::new();
    let pids: Vec<i32> = cluster.processes().iter().map(|process| process.pid as i32).collect();
    for round in 0..ROUNDS {
        std::thread::scope(|scope| {
            for (number, session) in sessions.iter_mut().enumerate() {
                scope.spawn(move || transactions(session, SESSIONS * round + number));
            }
            for sql in [
            "create table again (like pgbench_accounts)",
            "insert into again select * from pgbench_accounts limit 2000",
            "checkpoint",
            "begin; create table once (like again); insert into once select * from again; commit",
            "alter table again set tablespace elsewhere",
            "insert into again select * from once",
            "drop table once",
            "checkpoint",
            "update again set bid = 0 where aid < 500",
            "drop table again",
            ] {
                other.batch_execute(sql).unwrap_or_else(|error| panic!("{round}: {sql}: {error}"));
            }
        });
        // Nobody writes now.
        rests.push(rest::seen(&mut of_rests, &pids));
        other.batch_execute("checkpoint").unwrap();
        rests.push(rest::seen(&mut of_rests, &pids));
    }
    other.batch_execute("checkpoint; select pg_switch_wal()").unwrap();
    rest::seen(&mut of_rests, &pids);
    let calls = strace.stop();
    let events = segment.events(begun).unwrap();

    let lost = segment.event_count().unwrap() - begun - events.len() as u64;
    assert_eq!(lost, 0, "of {} events", events.len());
    let mut ours: BTreeMap<i32, Vec<(WritesAndBytes, PathBuf)>> = BTreeMap::new();
    for event in events.iter().filter(|event| event.kind == EventKind::Slow) {
        let Some((sum, path)) = parse(&event.text) else { continue };
        ours.entry(event.pid).or_default().push((sum, places.data.join(path)));
    }

    // In the order in which a file's syncs started, our sums are within strace's bounds.
    let theirs = theirs(&calls, &places, &rests);
    let mut wrong = Vec::new();
    let mut taken: HashMap<&PathBuf, Vec<(WritesAndBytes, &Sync)>> = HashMap::new();
    for (pid, syncs) in &theirs {
        let reported = ours.get(pid).map_or(&[][..], Vec::as_slice);
        // The last sync of a process may be missing: it is reported at the process's next wait.
        if reported.len() < syncs.len().saturating_sub(1) {
            wrong.push(format!("{pid}: {} of {} syncs are reported", reported.len(), syncs.len()));
        }
        for ((sum, path), sync) in reported.iter().zip(syncs) {
            if *path != sync.path {
                wrong.push(format!(
                    "{pid}: {} is reported as {}",
                    sync.path.display(),
                    path.display()
                ));
            }
            taken.entry(&sync.path).or_default().push((*sum, sync));
        }
    }
    let (mut exact, mut by_others) = (0, 0);
    let mut files = BTreeSet::new();
    for (path, mut syncs) in taken {
        syncs.sort_by(|(_, a), (_, b)| a.at.total_cmp(&b.at));
        let mut all = (0, 0);
        for (sum, sync) in syncs {
            all = (all.0 + sum.0, all.1 + sum.1);
            if all < sync.min || all > sync.max {
                wrong.push(format!("{}: {all:?}, the witness {sync:?}", path.display()));
            }
            let certain = sync.min == sync.max && sum.0 > 0;
            exact += u64::from(certain);
            by_others += u64::from(certain && sync.others > 0);
        }
        files.insert(places.kind(path));
    }
    let syncs = theirs.values().flatten().count();
    println!("{exact} of {syncs} syncs have certain counts, {by_others} of files others wrote to: {files:?}");
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
    assert!(exact >= 30 && by_others >= 10, "only {exact}, {by_others} of files others wrote to");
    for kind in ["main", "wal", "slru Xact", "control"] {
        assert!(files.contains(kind), "no sync of {kind}");
    }
}
