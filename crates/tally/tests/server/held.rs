// SPDX-License-Identifier: PostgreSQL
//! A lock held for a known time is reported as held for that time, and its waiter as having waited.
//!
//! strace holds a session at the system call that syncs the WAL, so that the session holds WALWriteLock for as
//! long as the test wants. Both ends of the hold are bounded from below and from above, by the segment's own
//! clock, so the figures lie between these bounds on any machine. If strace may not trace, the tests print a
//! message and pass.

use crate::support;
use crate::support::rest::{account, book};
use crate::support::strace::Strace;
use crate::support::{eventually, output, tally};
use postgres::{Client, NoTls};
use rustix::process::{kill_process, Pid, Signal};
use scratch::Cluster;
use segment::book::Hold;
use segment::{EventKind, Segment, Snapshot};
use serde_json::Value;

const LOCK: &str = "WALWrite";

/// Number and ticks of the lock's times, in all phases and modes: "held", "wait", "acquire".
fn sum(snapshot: &Snapshot, pid: i32, part: &str) -> (u64, u64) {
    let begin = format!("lwlock::{LOCK}::{part}::");
    let heads = book(snapshot, pid).heads.iter().filter(|head| {
        snapshot.directory.get(head.stat).is_some_and(|stat| stat.name.starts_with(&begin))
    });
    heads.fold((0, 0), |sum, head| (sum.0 + head.count, sum.1 + head.total))
}

/// A server for sessions that commit.
fn start() -> Cluster {
    let cluster = support::start(
        support::flushing()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.level", "locks")
            .setting("wal_sync_method", "fdatasync")
            .setting("autovacuum", "off"),
    );
    cluster.psql("create table t (n int)").unwrap();
    cluster
}

/// A session that holds the lock.
struct Holder {
    pid: i32,
    hold: Hold,
    /// Its process continues when this is dropped.
    strace: Strace,
}

/// A session that waits for its client. It records its lock holds before it waits, unless the next command has
/// already arrived.
fn idle_session(cluster: &Cluster, segment: &mut Segment) -> (Client, i32) {
    let mut session = cluster.config().connect(NoTls).unwrap();
    session.batch_execute("insert into t values (1)").unwrap();
    let pid = support::pid_of(&mut session);
    eventually("it waits for its client", || {
        let snapshot = segment.snapshot(None).unwrap();
        account(&snapshot, pid).is_some_and(|name| name.ends_with("wait::Client:ClientRead"))
    });
    (session, pid)
}

/// Two sessions commit; one is stopped while it holds the lock. Calls `check` with it and the PID of the other.
/// Afterwards both have committed, even if a check fails.
fn with_the_lock_held(
    cluster: &Cluster,
    segment: &mut Segment,
    check: impl FnOnce(&mut Segment, Holder, i32),
) {
    let (mut first, pid) = idle_session(cluster, segment);
    let (mut second, waiter) = idle_session(cluster, segment);
    let commit = |session: &mut Client| session.batch_execute("insert into t values (1)").unwrap();
    std::thread::scope(|scope| {
        let Some(strace) = Strace::hold("fdatasync", pid) else { return };
        scope.spawn(|| commit(&mut first));
        eventually("a session syncs the WAL", || strace.holds(pid, "fdatasync"));
        scope.spawn(|| commit(&mut second));
        let snapshot = segment.snapshot(None).unwrap();
        let book = book(&snapshot, pid);
        assert!(book.holding as usize >= book.holds.len());
        let of_lock = |hold: &&Hold| snapshot.tranches.name(hold.tranche) == LOCK;
        let hold = *book.holds.iter().find(of_lock).expect("it holds the lock");
        check(segment, Holder { pid, hold, strace }, waiter);
    });
}

/// Waits until the other session waits for the lock; returns when that was seen, and since when it has waited.
fn waits_for_the_lock(segment: &mut Segment, waiter: i32) -> (u64, u64) {
    let mut seen = None;
    eventually("the other session waits for the lock", || {
        let snapshot = segment.snapshot(None).unwrap();
        let run = account(&snapshot, waiter);
        let waits = run.is_some_and(|name| name.ends_with("wait::LWLock:WALWrite"));
        seen = waits.then(|| (snapshot.clock.now(), book(&snapshot, waiter).run_start));
        waits
    });
    seen.unwrap()
}

/// The hold has ended before the system call that wakes the other session, however long that takes.
#[test]
fn waking_those_that_wait_for_a_lock_is_not_part_of_the_hold() {
    let cluster = start();
    let mut segment = Segment::open(&support::segment(&cluster)).unwrap();
    with_the_lock_held(&cluster, &mut segment, |segment, holder, waiter| {
        let Holder { pid, hold, strace } = holder;
        waits_for_the_lock(segment, waiter);
        let (count, before) = sum(&segment.snapshot(None).unwrap(), pid, "held");
        // Stopped when it returns from that system call; held at the next one that wakes a process.
        signal(pid, Signal::STOP);
        let _cont = Cont(pid);
        drop(strace);
        let Some(waking) = Strace::hold("futex", pid) else { return };
        let continues = segment.snapshot(None).unwrap().clock.now();
        signal(pid, Signal::CONT);
        eventually("it wakes the other session", || waking.holds(pid, "futex"));
        let wakes = segment.snapshot(None).unwrap().clock.now();
        drop(waking);
        let mut after = (0, 0);
        eventually("the hold is counted", || {
            after = sum(&segment.snapshot(None).unwrap(), pid, "held");
            after.0 > count
        });
        assert_eq!(after.0, count + 1, "holds");
        let (held, min, max) = (after.1 - before, continues - hold.since, wakes - hold.since);
        assert!((min..=max).contains(&held), "held {held}, not {min} to {max} ticks");
    });
}

#[test]
fn a_lock_held_for_a_known_time_is_reported_as_held_for_that_time() {
    let cluster = start();
    let path = support::segment(&cluster);
    let mut segment = Segment::open(&path).unwrap();
    with_the_lock_held(&cluster, &mut segment, |segment, holder, waiter| {
        let Holder { pid, hold, strace } = holder;
        assert!(!hold.shared, "WAL is written under the lock in exclusive mode");
        let (waits_at, waits_since) = waits_for_the_lock(segment, waiter);

        // Meanwhile the lock is shown as held, with its age.
        let clock = segment.snapshot(None).unwrap().clock;
        let mut top = tally();
        top.args(["top", "--once", "--json", "--no-witness", "--interval", "200ms"]).arg(&path);
        let before = clock.seconds(clock.now() - hold.since);
        let top: Value = serde_json::from_str(&output(&mut top)).unwrap();
        let after = clock.seconds(clock.now() - hold.since);
        let sessions = top["sessions"].as_array().unwrap();
        let session = sessions.iter().find(|session| session["pid"] == pid).unwrap();
        let shown = session["holding"].as_array().unwrap();
        let shown = shown.iter().find(|hold| hold["lock"] == LOCK).unwrap();
        assert_eq!(shown["mode"], "exclusive");
        let age = shown["seconds"].as_f64().unwrap();
        assert!(before <= age && age <= after, "{before} to {after}: {shown}");

        // A wait is reported after a second. The event names the blocker.
        let is_wait = |event: &segment::Event| {
            event.kind == EventKind::Blocked
                && event.pid == waiter
                && event.text.contains(&format!("LWLock {LOCK}"))
                && event.text.contains(&format!("process {pid} "))
        };
        eventually("the lock was held for a second", || {
            clock.seconds(clock.now() - waits_at) > 1.1
        });
        let snapshot = segment.snapshot(None).unwrap();
        assert_eq!(book(&snapshot, pid).holds.iter().find(|h| h.lock == hold.lock), Some(&hold));
        // Neither is counted before its end.
        let (held_before, waited_before) =
            (sum(&snapshot, pid, "held"), sum(&snapshot, waiter, "wait"));
        let continues = snapshot.clock.now();
        drop(strace);
        let mut snapshot = segment.snapshot(None).unwrap();
        eventually("hold and wait are counted", || {
            snapshot = segment.snapshot(None).unwrap();
            let counted = |pid, part, before: (u64, u64)| sum(&snapshot, pid, part).0 > before.0;
            counted(pid, "held", held_before) && counted(waiter, "wait", waited_before)
        });
        let now = snapshot.clock.now();
        let held = sum(&snapshot, pid, "held").1 - held_before.1;
        let (min, max) = (continues - hold.since, now - hold.since);
        assert!((min..=max).contains(&held), "held {held}, not {min} to {max} ticks");
        let waited = sum(&snapshot, waiter, "wait").1 - waited_before.1;
        let (min, max) = (continues - waits_at, now - waits_since);
        assert!((min..=max).contains(&waited), "waited {waited}, not {min} to {max} ticks");
        eventually("the wait is reported", || segment.events(0).unwrap().iter().any(is_wait));
    });
    // At rest no lock is held.
    eventually("nothing is held", || {
        let snapshot = segment.snapshot(None).unwrap();
        snapshot.books.iter().all(|book| book.holding == 0 && book.holds.is_empty())
    });
}

fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Resumes a session if a check fails.
struct Cont(i32);

impl Drop for Cont {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_raw(self.0).unwrap(), Signal::CONT);
    }
}
