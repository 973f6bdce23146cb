// SPDX-License-Identifier: PostgreSQL
//! A lock held for a known time is reported as held for that time, and its waiter as having waited.
//!
//! A session that writes WAL is stopped (SIGSTOP) while it holds WALWriteLock. It holds the lock during
//! fdatasync, which the signal does not interrupt, so the session mostly stops right after.

use crate::support;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::strace::Strace;
use crate::support::{eventually, output, tally};
use postgres::{Client, NoTls};
use rand::Rng;
use rustix::process::{kill_process, Pid, Signal};
use scratch::Cluster;
use segment::book::Hold;
use segment::{Book, EventKind, Segment, Snapshot};
use serde_json::Value;

const STOP: Duration = Duration::from_secs(1);
const LOCK: &str = "WALWrite";

fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Stops a process and waits until it has stopped.
fn stop(pid: i32) {
    signal(pid, Signal::STOP);
    eventually("a process stops", || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat[stat.rfind(')').unwrap()..].starts_with(") T")
    });
}

fn book(snapshot: &Snapshot, pid: i32) -> &Book {
    snapshot.books.iter().find(|book| book.pid == pid).unwrap()
}

/// The longest of the lock's times in ticks, in any phase and mode: "held", "wait", "acquire".
fn longest(snapshot: &Snapshot, pid: i32, part: &str) -> u64 {
    let begin = format!("lwlock::{LOCK}::{part}::");
    let heads = book(snapshot, pid).heads.iter().filter(|head| {
        let stat = snapshot.directory.get(head.stat);
        head.count > 0 && stat.is_some_and(|stat| stat.name.starts_with(&begin))
    });
    heads.map(|head| head.max).max().unwrap_or(0)
}

/// Commits in a session until `end`; sends the session's pid.
fn commits(cluster: &Cluster, end: &AtomicBool, pid: &std::sync::mpsc::Sender<i32>) {
    let mut client = cluster.config().connect(NoTls).unwrap();
    pid.send(pid_of(&mut client)).unwrap();
    while !end.load(Ordering::Relaxed) {
        client.batch_execute("insert into t values (1)").unwrap();
    }
}

fn pid_of(client: &mut Client) -> i32 {
    client.query_one("select pg_backend_pid()", &[]).unwrap().get(0)
}

/// Stops the session again and again until it has stopped with the lock held.
fn stop_with_the_lock(segment: &mut Segment, pid: i32) -> Hold {
    let mut hold = None;
    eventually("a session is stopped while it holds the lock", || {
        stop(pid);
        let snapshot = segment.snapshot(None).unwrap();
        let book = book(&snapshot, pid);
        assert!(book.holding as usize >= book.holds.len());
        let of_lock = |hold: &&Hold| snapshot.tranches.name(hold.tranche) == LOCK;
        hold = book.holds.iter().find(of_lock).filter(|_| !book.torn).copied();
        if hold.is_none() {
            signal(pid, Signal::CONT);
            let pause = rand::rng().random_range(500..5000);
            std::thread::sleep(Duration::from_micros(pause));
        }
        hold.is_some()
    });
    hold.unwrap()
}

/// A server for sessions that commit.
fn start() -> Cluster {
    let cluster = support::start(
        support::flushing()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.level", "locks")
            .setting("autovacuum", "off"),
    );
    cluster.psql("create table t (n int)").unwrap();
    cluster
}

/// What the session does now.
fn account(snapshot: &Snapshot, pid: i32) -> Option<&str> {
    let id = book(snapshot, pid).run()?;
    snapshot.directory.get(id).map(|stat| stat.name.as_str())
}

/// Two sessions commit; the first is stopped while it holds the lock. Calls `check` with the process ids of this one
/// and of the other, and the hold. Afterwards both have ended, also when a check fails.
fn with_the_lock_held(
    cluster: &Cluster,
    segment: &mut Segment,
    check: impl FnOnce(&mut Segment, i32, i32, Hold),
) {
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (sender, pids) = std::sync::mpsc::channel();
        for _ in 0..2 {
            let (end, sender) = (&end, sender.clone());
            scope.spawn(move || commits(cluster, end, &sender));
        }
        let _end = End(&end);
        let (holder, waiter) = (pids.recv().unwrap(), pids.recv().unwrap());
        let hold = stop_with_the_lock(segment, holder);
        let _cont = Cont(holder);
        check(segment, holder, waiter, hold);
    });
}

/// The holder's system call that wakes the other session takes three seconds, for which the lock is free.
#[test]
fn waking_those_that_wait_for_a_lock_is_not_part_of_the_hold() {
    const DELAY: Duration = Duration::from_secs(3);
    let cluster = start();
    let mut segment = Segment::open(&support::segment(&cluster)).unwrap();
    with_the_lock_held(&cluster, &mut segment, |segment, holder, waiter, hold| {
        eventually("the other session waits for the lock", || {
            let snapshot = segment.snapshot(None).unwrap();
            account(&snapshot, waiter).is_some_and(|name| name.ends_with("wait::LWLock:WALWrite"))
        });
        let Some(strace) = Strace::delay("futex", DELAY, holder) else { return };
        let continues = segment.snapshot(None).unwrap().clock.now();
        let began = Instant::now();
        signal(holder, Signal::CONT);
        let mut snapshot = segment.snapshot(None).unwrap();
        let until_then = continues - hold.since;
        eventually("the hold is counted", || {
            snapshot = segment.snapshot(None).unwrap();
            longest(&snapshot, holder, "held") >= until_then
        });
        assert!(began.elapsed() >= DELAY, "nobody was woken: {:?}", began.elapsed());
        let more = snapshot.clock.seconds(longest(&snapshot, holder, "held") - until_then);
        assert!(more < DELAY.as_secs_f64() / 2.0, "held for {more} s longer");
        println!("held for {more:.4} s longer; woke the other in {:?}", began.elapsed());
        drop(strace);
    });
}

#[test]
fn a_lock_held_for_a_known_time_is_reported_as_held_for_that_time() {
    let cluster = start();
    let path = support::segment(&cluster);
    let mut segment = Segment::open(&path).unwrap();
    with_the_lock_held(&cluster, &mut segment, |segment, holder, waiter, hold| {
        assert!(!hold.shared, "WAL is written under the lock in exclusive mode");
        let began = Instant::now();

        // The other session starts to wait for the lock.
        let mut seen = None;
        eventually("the other session waits for the lock", || {
            let snapshot = segment.snapshot(None).unwrap();
            let run = account(&snapshot, waiter);
            let waits = run.is_some_and(|name| name.ends_with("wait::LWLock:WALWrite"));
            seen = waits.then(|| (snapshot.clock.now(), book(&snapshot, waiter).run_start));
            waits
        });
        let (waits_at, waits_since) = seen.unwrap();

        // While the holder is stopped, the lock is shown as held, with its age.
        let mut top = tally();
        top.args(["top", "--once", "--json", "--no-witness", "--interval", "200ms"]).arg(&path);
        let top: Value = serde_json::from_str(&output(&mut top)).unwrap();
        let sessions = top["sessions"].as_array().unwrap();
        let session = sessions.iter().find(|session| session["pid"] == holder).unwrap();
        let shown = session["holding"].as_array().unwrap();
        let shown = shown.iter().find(|hold| hold["lock"] == LOCK).unwrap();
        assert_eq!(shown["mode"], "exclusive");
        assert!((0.2..60.0).contains(&shown["seconds"].as_f64().unwrap()), "{shown}");

        std::thread::sleep(STOP.saturating_sub(began.elapsed()));
        let snapshot = segment.snapshot(None).unwrap();
        assert_eq!(book(&snapshot, holder).holds.iter().find(|h| h.lock == hold.lock), Some(&hold));
        let second = snapshot.clock.ticks(1.0);
        assert!(longest(&snapshot, holder, "held") < second, "counted before its release");
        assert!(longest(&snapshot, waiter, "wait") < second, "counted before its end");
        let (continues, stood) = (snapshot.clock.now(), began.elapsed());
        signal(holder, Signal::CONT);
        eventually("the hold is counted", || {
            let snapshot = segment.snapshot(None).unwrap();
            longest(&snapshot, holder, "held") >= second
        });
        eventually("the wait is counted", || {
            let snapshot = segment.snapshot(None).unwrap();
            longest(&snapshot, waiter, "wait") >= second
        });
        let snapshot = segment.snapshot(None).unwrap();
        let now = snapshot.tick;
        let held = longest(&snapshot, holder, "held");
        assert!(held >= continues - hold.since, "held {held}, stood {}", continues - hold.since);
        assert!(held <= now - hold.since, "held {held} ticks of {}", now - hold.since);
        assert!(snapshot.clock.seconds(held) >= stood.as_secs_f64(), "{held} ticks, {stood:?}");
        let waited = longest(&snapshot, waiter, "wait");
        assert!(waited >= continues - waits_at, "waited {waited} of {}", continues - waits_at);
        assert!(waited <= now - waits_since, "waited {waited} of {}", now - waits_since);
        println!(
            "stood {stood:?}; held {:.4} s, waited {:.4} s",
            snapshot.clock.seconds(held),
            snapshot.clock.seconds(waited)
        );

        // An event names the blocker.
        let is_wait = |event: &segment::Event| {
            event.kind == EventKind::Blocked
                && event.pid == waiter
                && event.text.contains(&format!("LWLock {LOCK}"))
                && event.text.contains(&format!("process {holder} "))
        };
        let mut events = Vec::new();
        eventually("the wait is reported", || {
            events = segment.events(0).unwrap();
            events.iter().any(is_wait)
        });
        println!("{}", events.iter().find(|event| is_wait(event)).unwrap().text);
    });
    // At rest no lock is held.
    eventually("nothing is held", || {
        let snapshot = segment.snapshot(None).unwrap();
        snapshot.books.iter().all(|book| book.holding == 0 && book.holds.is_empty())
    });
}

/// Resumes a session when a check fails.
struct Cont(i32);

impl Drop for Cont {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_raw(self.0).unwrap(), Signal::CONT);
    }
}

/// Ends the sessions when a check fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
