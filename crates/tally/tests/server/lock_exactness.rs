// SPDX-License-Identifier: PostgreSQL
//! Lightweight locks are counted exactly: for each tranche and mode, our acquisitions, failures, releases and
//! waits equal the firings of the server's USDT probes in the same processes. Since PostgreSQL 19, locks on
//! buffer contents are not lightweight locks and have no USDT probes: there, bpftrace counts the calls of their
//! functions.
//!
//! Runs at least 200,000 events; PGTALLY_EVENTS sets another number. bpftrace requires root; if it cannot run,
//! the test prints a message and passes.

use crate::support;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::FileExt;

use crate::support::gate::{self, Gate};
use crate::support::lazy;
use crate::support::readings::{differences, Counts as CountsOf, OfProcess, Readings};
use crate::support::witness::Witness;
use postgres::Client;
use segment::Segment;

const SESSIONS: u32 = 8;
const POSTGRES: &str = "usdt:POSTGRES:postgresql:";

/// One counter: process, tranche, mode, event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    pid: i32,
    tranche: String,
    event: &'static str,
    /// Empty if the server's probe does not have it.
    mode: &'static str,
}

impl OfProcess for Key {
    fn pid(&self) -> i32 {
        self.pid
    }

    fn of_process(&self, pid: i32) -> Self {
        Self { pid, ..self.clone() }
    }
}

type Counts = CountsOf<Key>;

/// The server's probes, our names for them, and whether they have the mode.
const PROBES: [(&str, &str, bool); 7] = [
    ("lwlock__acquire", "acquire", true),
    ("lwlock__condacquire", "acquire", true),
    ("lwlock__acquire__or__wait", "acquire", true),
    ("lwlock__condacquire__fail", "failed", true),
    ("lwlock__acquire__or__wait__fail", "failed", true),
    ("lwlock__release", "held", false),
    ("lwlock__wait__start", "wait", true),
];

const EVENTS: [&str; 4] = ["acquire", "held", "wait", "failed"];

/// bpftrace's program. It counts by the address of the tranche's name: the page with the name may be absent in a
/// process, and a probe cannot wait until the kernel has read it.
fn program(postgres: &str) -> String {
    PROBES
        .iter()
        .map(|(probe, _, has_mode)| {
            let place = POSTGRES.replace("POSTGRES", postgres);
            let mode = if *has_mode { "arg1" } else { "9" };
            format!(
                "{place}{probe} /comm == \"postgres\"/ \
                 {{ @[pid, \"{probe}\", arg0, {mode}] = count(); }}\n"
            )
        })
        .collect()
}

/// The tranche of the locks on buffer contents.
const BUFFERS: &str = "BufferContent";

/// bpftrace's program for the locks on buffer contents since 19, in the same form as the other one. The tranche's
/// name has the address 1. Modes are those of its BufferLockMode; local buffers have negative numbers. In
/// Debian's build, none of these functions calls another.
fn buffer_program(postgres: &str) -> String {
    let this = "comm == \"postgres\"";
    let locked = "\"lwlock__acquire\"";
    let failed = "\"lwlock__condacquire__fail\"";
    let mut program = format!(
        "uprobe:{postgres}:LockBufferInternal /{this} && (int32) arg0 > 0/ \
         {{ @[pid, {locked}, 1, (int64) (arg1 & 0xff)] = count(); }}\n"
    );
    for function in ["ConditionalLockBuffer", "ConditionalLockBufferForCleanup"] {
        program += &format!(
            "uprobe:{postgres}:{function} /{this}/ {{ @shared[tid] = (int32) arg0 > 0; }}\n\
             uretprobe:{postgres}:{function} /@shared[tid] && {this}/ \
             {{ if (retval & 0xff) {{ @[pid, {locked}, 1, 3] = count(); }} \
             else {{ @[pid, {failed}, 1, 3] = count(); }} }}\n"
        );
    }
    program
        + &format!(
            "uprobe:{postgres}:LockBufferForCleanup /{this} && (int32) arg0 > 0/ \
             {{ @[pid, {locked}, 1, 3] = count(); }}\n"
        )
}

/// Reads a text from a process's memory.
fn text_at(pid: u32, address: u64) -> String {
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let mut bytes = [0; 64];
    let read = memory.read_at(&mut bytes, address).unwrap();
    let text = bytes[..read].split(|&byte| byte == 0).next().unwrap();
    String::from_utf8(text.to_vec()).unwrap()
}

/// bpftrace's counts for these processes, converted to ours. All processes of a server have its code at the same
/// addresses.
fn theirs(postmaster: u32, pids: &BTreeSet<i32>, seen: Vec<(Vec<String>, u64)>) -> Counts {
    let mut counts = Counts::new();
    for (key, count) in seen {
        let [pid, probe, name, mode] = &key[..] else { panic!("{key:?}") };
        if !pids.contains(&pid.parse().unwrap()) {
            continue;
        }
        let (_, event, _) = PROBES.iter().find(|(name, ..)| name == probe).unwrap();
        let key = Key {
            pid: pid.parse().unwrap(),
            tranche: match name.as_str() {
                "1" => BUFFERS.into(),
                name => text_at(postmaster, name.parse().unwrap()),
            },
            event,
            mode: match (name.as_str(), mode.as_str()) {
                ("1", "2") => "share-exclusive",
                ("1", "3") | (_, "0") => "exclusive",
                (_, "1") => "shared",
                _ => "",
            },
        };
        *counts.entry(key).or_default() += count;
    }
    counts
}

/// What our probes counted in each process, summed over phases.
fn ours(segment: &mut Segment) -> Counts {
    let snapshot = segment.snapshot(None).unwrap();
    let mut counts = Counts::new();
    for book in &snapshot.books {
        for head in &book.heads {
            let Some(stat) = snapshot.directory.get(head.stat) else { continue };
            let tags: Vec<&str> = stat.name.split("::").collect();
            let ["lwlock", tranche, event, _, mode] = tags[..] else { continue };
            if head.count == 0 {
                continue;
            }
            let event = PROBES.iter().map(|(_, ours, _)| *ours).find(|ours| *ours == event);
            let event = event.unwrap_or_else(|| panic!("{}", stat.name));
            let mode = match (event, mode) {
                ("held", "exclusive" | "shared" | "share-exclusive") => "",
                // The server's probe reports a wait for a variable as a wait for the lock.
                (_, "exclusive") | ("wait", "variable") => "exclusive",
                (_, "shared") => "shared",
                (_, "share-exclusive") => "share-exclusive",
                _ => panic!("{}", stat.name),
            };
            let key = Key { pid: book.pid, tranche: tranche.into(), event, mode };
            *counts.entry(key).or_default() += head.count;
        }
    }
    counts
}

/// A session that has waited for a heavyweight lock for 100 ms looks up its blockers, with a LockManager lock in
/// shared mode, which we do not count because the server did not request it. The load has no such lock of its
/// own. bpftrace attaches and detaches its probes one after the other while the sessions wait, so it may see the
/// acquisition without the release, or the reverse.
fn leave_out_look_ups(ours: &Counts, theirs: &mut Counts) {
    for (key, seen) in theirs {
        if key.tranche == "LockManager" && (key.mode == "shared" || key.event == "held") {
            let more = seen.saturating_sub(ours.get(key).copied().unwrap_or(0));
            assert!(more <= 200, "{key:?}: {more} more than ours, too many for look-ups");
            *seen -= more;
        }
    }
}

/// Causes errors, one of them while a lightweight lock is held: pg_xact_status fails on a future transaction
/// under XactTruncationLock.
fn fail(client: &mut Client) {
    client.batch_execute("select 1/0").unwrap_err();
    client.batch_execute("select pg_xact_status('9000000000')").unwrap_err();
    client.batch_execute("begin; savepoint a; insert into pgbench_history values (1)").unwrap();
    client.batch_execute("select pg_xact_status('9000000000')").unwrap_err();
    client.batch_execute("rollback to a; select txid_current(); rollback").unwrap();
}

#[test]
fn lightweight_lock_counts_equal_those_of_the_servers_usdt_probes() {
    let wanted: u64 =
        std::env::var("PGTALLY_EVENTS").map_or(200_000, |text| text.parse().expect("a number"));
    // Few buffers, so that pages are read and evicted; commits wait for the disk. bpftrace sees this server alone.
    let (_folder, binaries) = lazy::copied();
    let cluster = support::start(
        support::flushing()
            .binaries(binaries)
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.level", "locks")
            .setting("shared_buffers", "2MB")
            .setting("deadlock_timeout", "10min")
            .setting("autovacuum", "off"),
    );
    cluster.pgbench_init(2).unwrap();
    // Whether the locks on buffer contents are not lightweight locks.
    let buffers = support::major() >= 19;
    let postmaster = cluster.postmaster_pid().unwrap();
    let postgres = cluster.binaries().program("postgres");
    let mut segment = Segment::open(&support::segment(&cluster)).unwrap();
    let mut gate = Gate::new(&cluster);
    let pgbench = gate::pgbench(&cluster, SESSIONS, &gate::tpcb());
    let mut failing = cluster.connect().unwrap();
    let failing_pid = support::pid_of(&mut failing);

    let mut pids = gate.assembled(SESSIONS as usize);
    pids.push(failing_pid);
    let readings = Readings::around(
        || ours(&mut segment),
        || {
            let postgres = postgres.to_str().unwrap();
            let of_buffers = if buffers { buffer_program(postgres) } else { String::new() };
            Witness::start(&(program(postgres) + &of_buffers))
        },
        |counted| {
            gate.open();
            loop {
                let counts = counted();
                let of = counts.iter().filter(|(key, _)| pids.contains(&key.pid));
                let kinds: BTreeSet<&str> = of.clone().map(|(key, _)| key.event).collect();
                if of.map(|(_, n)| n).sum::<u64>() >= wanted && kinds.len() == EVENTS.len() {
                    break;
                }
                fail(&mut failing);
            }
            gate.close();
            gate.assembled(SESSIONS as usize);
        },
        Witness::stop,
    );
    let Some((readings, seen)) = readings else { return };
    drop(pgbench);

    let (mut gained, judged) = (readings.gained(), readings.judged());
    readings.judged_of(&pids);
    if buffers {
        // Each lock that was acquired was released. bpftrace cannot count this, because it would also count
        // releases of pages that the buffer manager created and locked by itself. It has no waits either.
        for (key, &held) in gained.iter().filter(|(key, _)| key.tranche == BUFFERS) {
            if key.event == "held" {
                let acquired = gained.iter().filter(|(other, _)| {
                    (other.pid, &other.tranche, other.event) == (key.pid, &key.tranche, "acquire")
                });
                assert_eq!(acquired.map(|(_, n)| n).sum::<u64>(), held, "{key:?}");
            }
        }
        let modes: BTreeSet<&str> =
            gained.keys().filter(|key| key.tranche == BUFFERS).map(|key| key.mode).collect();
        assert!(modes.contains("exclusive") && modes.contains("shared"), "{modes:?}");
        gained.retain(|key, _| key.tranche != BUFFERS || matches!(key.event, "acquire" | "failed"));
    }
    let mut theirs = theirs(postmaster, &judged, seen);
    leave_out_look_ups(&gained, &mut theirs);
    let wrong = differences(&gained, &theirs, &judged);
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
    let mut by_event = BTreeMap::<(&str, &str), u64>::new();
    for (key, count) in gained.iter().filter(|(key, _)| judged.contains(&key.pid)) {
        *by_event.entry((key.event, key.mode)).or_default() += count;
    }
    let total: u64 = by_event.values().sum();
    println!("{total} events of {} processes: {by_event:?}", judged.len());
    assert!(total >= wanted * 3 / 4, "only {total} events");
    for event in EVENTS {
        assert!(by_event.keys().any(|(of, _)| *of == event), "no {event} at all");
    }
    let failing = |event| {
        let of = |key: &&Key| key.pid == failing_pid && key.tranche == "XactTruncation";
        gained
            .keys()
            .filter(of)
            .filter(|key| key.event == event)
            .map(|key| gained[key])
            .sum::<u64>()
    };
    assert!(failing("held") > 0 && failing("held") == failing("acquire"), "errors under a lock");
}
