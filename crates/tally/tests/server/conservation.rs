// SPDX-License-Identifier: PostgreSQL
//! Conservation of time: in every second, the accounts of every session add up to the second, whatever
//! the session does.
//!
//! Takes 20 seconds; PGTALLY_CONSERVATION_SECONDS sets another duration.

use crate::support;
use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use postgres::NoTls;
use scratch::{Cluster, Load};
use segment::directory::StatKind;
use segment::{Segment, Snapshot};

/// Share of an interval that may be unaccounted for.
const TOLERANCE: f64 = 0.001;
const LOCK_WAIT: Duration = Duration::from_secs(8);

/// Ticks in those of a session's accounts that the filter selects.
fn accounted(snapshot: &Snapshot, book: &segment::Book, wanted: impl Fn(&str) -> bool) -> u64 {
    book.heads
        .iter()
        .filter_map(|head| Some((head, snapshot.directory.get(head.stat)?)))
        .filter(|(_, stat)| stat.kind == StatKind::Account && wanted(&stat.name))
        .map(|(head, _)| head.total)
        .sum()
}

fn is_row_lock(account: &str) -> bool {
    account.ends_with("Lock:transactionid") || account.ends_with("Lock:tuple")
}

/// Checks one interval; returns the number of checks.
fn check(before: &Snapshot, after: &Snapshot) -> usize {
    let mut checked = 0;
    for book in &after.books {
        assert!(!book.torn, "slot {} could not be read consistently", book.slot);
        // Since the session started, and since the last snapshot if it was there.
        let since_birth = (book.now - book.born, accounted(after, book, |_| true));
        let earlier = before.book(book.slot, book.generation);
        let since_then = earlier.filter(|b| b.born == book.born).map(|earlier| {
            let then = accounted(before, earlier, |_| true);
            (book.now - earlier.now, since_birth.1 - then)
        });
        for (lived, accounts) in [Some(since_birth), since_then].into_iter().flatten() {
            let off = accounts.abs_diff(lived) as f64;
            assert!(
                off <= TOLERANCE * lived as f64,
                "pid {} ({}): lived {lived} ticks, accounts hold {accounts}",
                book.pid,
                book.identity.kind
            );
            checked += 1;
        }
    }
    checked
}

/// Runs sessions of all kinds until `stop`: sleeping, idle in transaction, copying, parallel, failing,
/// cancelled, and short ones.
fn rough_life(cluster: &Cluster, stop: &AtomicBool, connections: &AtomicU64) {
    let running = || !stop.load(Ordering::Relaxed);
    let config = cluster.config();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = config.connect(NoTls).unwrap();
            while running() {
                client.batch_execute("select pg_sleep(3)").unwrap();
            }
        });
        scope.spawn(|| {
            let mut client = config.connect(NoTls).unwrap();
            client.batch_execute("begin; select 1").unwrap();
            while running() {
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        scope.spawn(|| {
            let mut client = config.connect(NoTls).unwrap();
            client.batch_execute("create table copied (n int, t text)").unwrap();
            while running() {
                let mut copy = client.copy_in("copy copied from stdin").unwrap();
                for n in 0..20_000 {
                    writeln!(copy, "{n}\tsome text that fills a row").unwrap();
                }
                copy.finish().unwrap();
                std::io::copy(
                    &mut client.copy_out("copy copied to stdout").unwrap(),
                    &mut std::io::sink(),
                )
                .unwrap();
                client.batch_execute("truncate copied").unwrap();
            }
        });
        scope.spawn(|| {
            let mut client = config.connect(NoTls).unwrap();
            client
                .batch_execute(
                    "set parallel_setup_cost = 0; set parallel_tuple_cost = 0; \
                     set min_parallel_table_scan_size = 0; \
                     select set_config(name, 'on', false) from pg_settings \
                     where name in ('force_parallel_mode', 'debug_parallel_query')",
                )
                .unwrap();
            while running() {
                client.query_one("select sum(abalance) from pgbench_accounts", &[]).unwrap();
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        scope.spawn(|| {
            let mut client = config.connect(NoTls).unwrap();
            while running() {
                client.batch_execute("select 1/0").unwrap_err();
                client.batch_execute("begin; select no_such_column").unwrap_err();
                client.batch_execute("rollback").unwrap();
                client
                    .batch_execute("set statement_timeout = '20ms'; select pg_sleep(1)")
                    .unwrap_err();
                client.query("select $1::int / 0", &[&1i32]).unwrap_err();
            }
        });
        scope.spawn(|| {
            let mut client = config.connect(NoTls).unwrap();
            while running() {
                let cancel = client.cancel_token();
                let canceller = std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(30));
                    let _ = cancel.cancel_query(NoTls);
                });
                // A cancel request that comes too early has no effect.
                let _ = client.batch_execute("select pg_sleep(0.5)");
                canceller.join().unwrap();
            }
        });
        // Up to 200 connections per second.
        for _ in 0..4 {
            scope.spawn(|| {
                let mut next = Instant::now();
                while running() {
                    let mut client = config.connect(NoTls).unwrap();
                    client.batch_execute("select 1").unwrap();
                    connections.fetch_add(1, Ordering::Relaxed);
                    next = (next + Duration::from_millis(20)).max(Instant::now());
                    std::thread::sleep(next.saturating_duration_since(Instant::now()));
                }
            });
        }
    });
}

/// An interval of the waiting session, in seconds.
#[derive(Debug)]
struct Interval {
    lived: f64,
    /// In accounts of row locks.
    waited: f64,
    /// On a processor or waiting for one, by the kernel's figures; 0 if it has none.
    awake: f64,
}

/// Time that a process has been on a processor or waiting for one, in seconds.
fn awake_seconds(pid: i32) -> f64 {
    let figures = process::Proc::default().schedstat(pid as u32);
    figures.map_or(0.0, |it| (it.on_cpu_ns + it.run_queue_ns) as f64 / 1e9)
}

/// One session waits eight seconds for a row that another has changed. Publishes the waiter's pid.
/// Returns how long the waiter's client waited.
fn row_lock_wait(cluster: &Cluster, waiter: &AtomicI32) -> Duration {
    let mut holder = cluster.connect().unwrap();
    let mut blocked = cluster.connect().unwrap();
    holder.batch_execute("create table locked (n int); insert into locked values (1)").unwrap();
    let pid: i32 = blocked.query_one("select pg_backend_pid()", &[]).unwrap().get(0);
    holder.batch_execute("begin; update locked set n = 2").unwrap();
    // So that snapshots before and after the wait contain the session.
    let idle = || std::thread::sleep(Duration::from_millis(1500));
    idle();
    let took = std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            waiter.store(pid, Ordering::Relaxed);
            let began = Instant::now();
            blocked.batch_execute("update locked set n = 3").unwrap();
            began.elapsed()
        });
        std::thread::sleep(LOCK_WAIT);
        holder.batch_execute("commit").unwrap();
        client.join().unwrap()
    });
    idle();
    took
}

#[test]
fn the_accounts_of_every_session_add_up_to_every_second() {
    let length = std::env::var("PGTALLY_CONSERVATION_SECONDS")
        .map_or(20, |text| text.parse::<u64>().unwrap())
        .max(16);
    let cluster = support::start(
        support::plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("max_connections", "60")
            .setting("log_min_messages", "fatal"),
    );
    cluster.pgbench_init(4).unwrap();
    let (stop, connections, waiter) =
        (AtomicBool::new(false), AtomicU64::new(0), AtomicI32::new(0));
    let mut segment = Segment::open(&support::segment(&cluster)).unwrap();
    let load = cluster.pgbench().load(Load::TpcB).clients(16).jobs(2);
    let mut pgbench = load.duration(Duration::from_secs(length + 60)).spawn().unwrap();

    let mut waits: Vec<Interval> = Vec::new();
    let mut awake_before = 0.0;
    let mut sessions: HashMap<(u32, u32), i32> = HashMap::new();
    let took = std::thread::scope(|scope| {
        scope.spawn(|| rough_life(&cluster, &stop, &connections));
        let lock_wait = scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(1));
            row_lock_wait(&cluster, &waiter)
        });
        // Ends the threads even if a check fails.
        let _stop = Stop(&stop);
        let min_checks = if support::emulated() { 4 } else { 20 * 2 };
        let mut before = segment.snapshot(None).unwrap();
        let (began, first) = (Instant::now(), before.tick);
        for second in 0..length {
            let next = began + Duration::from_secs(second + 1);
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            let after = segment.snapshot(Some(&before)).unwrap();
            let checked = check(&before, &after);
            assert!(second < 3 || checked > min_checks, "second {second}: only {checked} checks");
            assert_eq!(after.overflows, before.overflows, "second {second}");

            for book in &after.books {
                sessions.insert((book.slot, book.generation), book.pid);
                if book.pid != waiter.load(Ordering::Relaxed) {
                    continue;
                }
                let awake = awake_seconds(book.pid);
                if let Some(earlier) = before.book(book.slot, book.generation) {
                    let waited = accounted(&after, book, is_row_lock)
                        - accounted(&before, earlier, is_row_lock);
                    waits.push(Interval {
                        lived: after.clock.seconds(book.now - earlier.now),
                        waited: after.clock.seconds(waited),
                        awake: awake - awake_before,
                    });
                }
                awake_before = awake;
            }
            before = after;
        }
        // Ticks convert to real seconds.
        let (ticks, elapsed) = (before.tick - first, began.elapsed().as_secs_f64());
        let ratio = before.clock.seconds(ticks) / elapsed;
        assert!((ratio - 1.0).abs() < 0.02, "{ticks} ticks in {elapsed} s");
        lock_wait.join().unwrap().as_secs_f64()
    });
    assert!(pgbench.running(), "the load has ended");

    waits.retain(|it| it.waited > 0.0);
    // On a busy machine snapshots may be late, so there are fewer, longer intervals.
    assert!((5..=11).contains(&waits.len()), "{waits:?}");
    // The session wakes up for the check for deadlocks, and may then wait for a processor.
    for it in &waits[1..waits.len() - 1] {
        let asleep = it.lived - it.awake;
        assert!(it.waited > 0.98 * asleep && it.waited < 1.02 * it.lived, "{it:?} of {waits:?}");
    }
    let total: f64 = waits.iter().map(|it| it.waited).sum();
    assert!(total > 0.98 * LOCK_WAIT.as_secs_f64(), "{total} s: {waits:?}");
    assert!(total <= took && took - total < 0.5, "{total} s of {took} s: {waits:?}");

    let rate = connections.load(Ordering::Relaxed) as f64 / length as f64;
    println!("{} sessions seen, {rate:.0} connections per second", sessions.len());
    let min = if support::emulated() { 1.0 } else { 20.0 };
    assert!(rate > min, "only {rate} connections per second");
}

/// Sets the flag when dropped.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
