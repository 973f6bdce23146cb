// SPDX-License-Identifier: PostgreSQL
//! Calls are counted exactly: an independent witness counts the same number in the same processes, over at least
//! 100,000 calls.
//!
//! The witness is bpftrace on the kernel's tracepoints and on libc's sem_wait; it requires root. Without it, the
//! test prints a message and passes.

use crate::support;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Barrier;
use std::time::Duration;

use crate::support::readings::{differences, Counts as CountsOf, OfProcess, Readings};
use crate::support::witness::Witness;
use postgres::{Client, NoTls, SimpleQueryMessage};
use segment::Segment;

const SESSIONS: usize = 8;
/// Transactions of each session: seven messages each, so seven waits for the client.
const TRANSACTIONS: usize = 2500;
const MIN_EVENTS: u64 = 100_000;
/// How much less work an emulated server does.
const EMULATED: usize = 20;

/// A probe of pg_tally and the corresponding probe of bpftrace.
const CALLS: [(&str, &str); 6] = [
    ("import fsync", "tracepoint:syscalls:sys_enter_fsync"),
    ("import fdatasync", "tracepoint:syscalls:sys_enter_fdatasync"),
    ("import pread", "tracepoint:syscalls:sys_enter_pread64"),
    ("import pwrite", "tracepoint:syscalls:sys_enter_pwrite64"),
    ("import epoll_wait", "tracepoint:syscalls:sys_enter_epoll_wait"),
    ("import sem_wait", "uprobe:LIBC:sem_wait"),
];

/// The calls that the witness sees. arm64 has no system call epoll_wait: libc uses epoll_pwait.
fn calls() -> Vec<(&'static str, String)> {
    let seen =
        CALLS.iter().filter(|(_, probe)| !support::emulated() || !probe.starts_with("uprobe:"));
    seen.map(|&(name, probe)| match support::emulated() {
        true => (name, probe.replace("epoll_wait", "epoll_pwait")),
        false => (name, probe.into()),
    })
    .collect()
}

/// Counts by process and probe.
type Counts = CountsOf<(i32, String)>;

/// The witness's program.
fn program(libc: &str) -> String {
    let mut program = String::new();
    for (name, probe) in calls() {
        let probe = probe.replace("LIBC", libc);
        writeln!(program, "{probe} /comm == \"postgres\"/ {{ @[pid, \"{name}\"] = count(); }}")
            .unwrap();
    }
    let exit = calls()[4].1.replace("sys_enter", "sys_exit");
    writeln!(
        program,
        "{exit} /comm == \"postgres\" && args->ret == 0/ {{ @[pid, \"{SLICE}\"] = count(); }}"
    )
    .unwrap();
    program
}

/// A sleep of a session that ends without an event. The server's own waits have no timeout; the probe divides a
/// long wait for a lock into calls that have one.
const SLICE: &str = "slice";

/// The counts of pg_tally's probes in every process.
fn ours(segment: &mut Segment) -> Counts {
    let probes = segment.probes().unwrap();
    let snapshot = segment.snapshot(None).unwrap();
    let mut counts = Counts::new();
    for book in &snapshot.books {
        for (name, _) in calls() {
            let probe = probes.iter().find(|probe| probe.name == name).unwrap();
            counts.insert((book.pid, name.into()), book.calls[probe.index as usize]);
        }
    }
    counts
}

/// The libc that this process has mapped.
fn libc_of(pid: u32) -> String {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mut paths = maps.lines().filter_map(|line| line.split_ascii_whitespace().nth(5));
    paths.rfind(|path| path.ends_with("libc.so.6")).unwrap().into()
}

#[test]
fn counts_of_calls_equal_those_of_the_kernel() {
    let scale = if support::emulated() { EMULATED } else { 1 };
    if support::emulated() {
        println!("not tested of sem_wait: uprobes do not see the code of an emulated server");
    }
    // Few buffers, so that pages are read and evicted; fsync for commits.
    let cluster = support::start(
        support::flushing()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("shared_buffers", "2MB")
            .setting("autovacuum", "off"),
    );
    cluster.pgbench_init(2).unwrap();
    let libc = libc_of(cluster.postmaster_pid().unwrap());
    let mut segment = Segment::open(&support::segment(&cluster)).unwrap();
    let (connected, go, done) =
        (Barrier::new(SESSIONS + 1), Barrier::new(SESSIONS + 1), Barrier::new(SESSIONS + 1));
    let finished = Barrier::new(SESSIONS + 1);
    let mut pids = Vec::new();
    let readings = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..SESSIONS)
            .map(|session| {
                let (connected, go, done, finished) = (&connected, &go, &done, &finished);
                let config = cluster.config();
                scope.spawn(move || {
                    let mut client = config.connect(NoTls).unwrap();
                    let pid = pid_and_nothing_to_flush(&mut client);
                    connected.wait();
                    go.wait();
                    for n in 0..TRANSACTIONS / scale {
                        transaction(&mut client, session, n);
                    }
                    if session == 0 {
                        client.batch_execute("checkpoint").unwrap();
                    }
                    pid_and_nothing_to_flush(&mut client);
                    done.wait();
                    finished.wait();
                    pid
                })
            })
            .collect();
        connected.wait();
        let_timers_expire();
        let readings = Readings::around(
            || ours(&mut segment),
            || Witness::start(&program(&libc)),
            |_| {
                go.wait();
                done.wait();
                let_timers_expire();
            },
            Witness::stop,
        );
        if readings.is_none() {
            go.wait();
            done.wait();
        }
        finished.wait();
        pids = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        readings
    });
    let Some((readings, seen)) = readings else { return };
    let mut seen: Counts = seen
        .into_iter()
        .map(|(key, count)| ((key[0].parse().unwrap(), key[1].clone()), count))
        .collect();
    for pid in &pids {
        let slices = seen.remove(&(*pid, SLICE.into())).unwrap_or(0);
        if let Some(calls) = seen.get_mut(&(*pid, "import epoll_wait".into())) {
            *calls -= slices;
        }
    }
    let (ours, judged) = (readings.gained(), readings.judged_of(&pids));
    let wrong = differences(&ours, &seen, &judged);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let mut by_call = BTreeMap::<&str, u64>::new();
    for (key, count) in ours.iter().filter(|(key, _)| judged.contains(&key.pid())) {
        *by_call.entry(&key.1).or_default() += count;
    }
    let events: u64 = by_call.values().sum();
    println!("{events} events: {by_call:?}");
    assert!(events >= MIN_EVENTS / scale as u64, "only {events} events");
    for (name, _) in calls() {
        assert!(by_call.contains_key(name) || name == "import fsync", "no {name} at all");
    }

    // The checkpointer does most of the fsyncs.
    let synced: Counts = ours
        .into_iter()
        .filter(|((pid, name), _)| !pids.contains(pid) && name == "import fsync")
        .collect();
    println!("{} fsyncs by others", synced.values().sum::<u64>());
    assert!(!synced.is_empty(), "no fsync at all");
    for (key, &count) in synced.iter().filter(|(key, _)| readings.was_idle(key.pid())) {
        assert_eq!(count, seen.get(key).copied().unwrap_or(0), "{key:?}");
    }
}

/// A session's pid, by a command after which it has no statistics to flush.
fn pid_and_nothing_to_flush(client: &mut Client) -> i32 {
    let sql = "select pg_backend_pid(), pg_stat_force_next_flush()";
    let messages = client.simple_query(sql).unwrap();
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    row.unwrap().parse().unwrap()
}

/// A session that idles with statistics to flush sets a timer of ten seconds (postgres.c,
/// IDLE_STATS_UPDATE_TIMEOUT). A later flush disables the timeout but leaves the interval timer, whose signal
/// wakes the session once (timeout.c). Afterwards, a session that has nothing to flush sleeps however long the
/// witness takes to start or to stop.
fn let_timers_expire() {
    std::thread::sleep(Duration::from_millis(11_000));
}

/// pgbench's TPC-B transaction, one message per statement.
fn transaction(client: &mut postgres::Client, session: usize, n: usize) {
    let account = (session * 7919 + n * 104_729) % 200_000 + 1;
    for sql in [
        "begin".to_string(),
        format!("update pgbench_accounts set abalance = abalance + 1 where aid = {account}"),
        format!("select abalance from pgbench_accounts where aid = {account}"),
        format!("update pgbench_tellers set tbalance = tbalance + 1 where tid = {}", n % 20 + 1),
        format!("update pgbench_branches set bbalance = bbalance + 1 where bid = {}", n % 2 + 1),
        format!("insert into pgbench_history (tid, bid, aid, delta) values (1, 1, {account}, 1)"),
        "commit".to_string(),
    ] {
        client.simple_query(&sql).unwrap();
    }
}
