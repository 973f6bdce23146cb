// SPDX-License-Identifier: PostgreSQL
//! A wait that signals interrupt is one wait: a wait of the server's lock manager, of its replication, of a
//! function that sleeps, and of a session for its client. They are interrupted by reloads, by deadlock_timeout
//! with its log message, and by another session's signal.
//!
//! No time is bounded: the account of the wait has all the time since the wait was first seen, minus the growth
//! of the process's other accounts.

use crate::support;
use crate::support::rest::book;
use crate::support::{create_views, eventually, plain, segment, start};
use postgres::{Client, NoTls};
use scratch::Cluster;
use segment::book::Head;
use segment::{Interval, Payload, Segment, Snapshot};

const WAKES: usize = 4;

fn server() -> Cluster {
    let cluster = start(
        plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.slow_threshold", "1ms")
            .setting("log_lock_waits", "on")
            .setting("deadlock_timeout", "20ms")
            .setting("autovacuum", "off"),
    );
    create_views(&cluster);
    cluster.psql("create table t (n int primary key, v int); insert into t values (1, 0)").unwrap();
    cluster
}

fn session(cluster: &Cluster) -> (Client, i32) {
    let mut client = cluster.config().connect(NoTls).unwrap();
    let pid = support::pid_of(&mut client);
    (client, pid)
}

/// The account of this activity.
fn head<'s>(snapshot: &'s Snapshot, pid: i32, activity: &str) -> Option<&'s Head> {
    let is = |head: &&Head| {
        snapshot.directory.get(head.stat).is_some_and(|stat| stat.name.ends_with(activity))
    };
    book(snapshot, pid).heads.iter().find(is)
}

fn runs(snapshot: &Snapshot, pid: i32, activity: &str) -> bool {
    let run = book(snapshot, pid).run().and_then(|id| snapshot.directory.get(id));
    run.is_some_and(|stat| stat.name.ends_with(activity))
}

/// Calls of all probes by that process.
fn calls(snapshot: &Snapshot, pid: i32) -> u64 {
    book(snapshot, pid).calls.iter().sum()
}

/// Reloads the configuration until the process has noticed it this many times and waits again.
fn wake(segment: &mut Segment, admin: &mut Client, pid: i32, activity: &str) {
    for _ in 0..WAKES {
        let before = calls(&segment.snapshot(None).unwrap(), pid);
        admin.execute("select pg_reload_conf()", &[]).unwrap();
        eventually("it has noticed, and waits again", || {
            let snapshot = segment.snapshot(None).unwrap();
            calls(&snapshot, pid) > before && runs(&snapshot, pid, activity)
        });
    }
}

/// A wait in progress that is interrupted: its account has no completed event, and all the time since it was
/// first seen. `end` ends it.
fn is_one_wait(
    cluster: &Cluster,
    segment: &mut Segment,
    pid: i32,
    activity: &str,
    end: impl FnOnce(),
) {
    let (mut admin, _) = session(cluster);
    eventually("it waits", || runs(&segment.snapshot(None).unwrap(), pid, activity));
    let first = segment.snapshot(None).unwrap();
    let others = |snapshot: &Snapshot| {
        let wait = head(snapshot, pid, activity).unwrap();
        book(snapshot, pid).accounted(&snapshot.directory) - wait.total
    };
    let before = head(&first, pid, activity).unwrap().count;
    wake(segment, &mut admin, pid, activity);
    let waited = first.clock.seconds(first.clock.now() - first.tick);
    // It may be about to resume the wait.
    let snapshot = eventually("it waits", || {
        Some(segment.snapshot(None).unwrap()).filter(|snapshot| runs(snapshot, pid, activity))
    });
    let wait = head(&snapshot, pid, activity).unwrap();
    assert_eq!(
        wait.count, before,
        "{activity}: it goes on, and parts of it count as waits that have ended"
    );
    let rest = snapshot.clock.seconds(others(&snapshot) - others(&first));
    let since = {
        let interval = Interval::between(segment, None, &snapshot);
        interval.sessions.iter().find(|session| session.pid == pid).unwrap().since_seconds
    };
    assert!(
        since + rest + 1e-6 >= waited,
        "{activity}: since {since} s, {rest} s elsewhere, and it was seen {waited} s ago"
    );
    end();
    let mut wait = Head::default();
    eventually("the wait counts", || {
        wait = head(&segment.snapshot(None).unwrap(), pid, activity).unwrap().clone();
        wait.count > before
    });
    // The server reads a signal that ends the wait from a descriptor, with a call of its own.
    assert!(wait.count <= before + 2, "{activity}: {} waits", wait.count - before);
    let longest = snapshot.clock.seconds(wait.max);
    assert!(
        longest + 1e-6 >= since,
        "{activity}: {longest} s at most, and it had lasted {since} s"
    );
    if activity.starts_with("Timeout:") {
        return;
    }
    let slow: Vec<f64> = segment
        .events(0)
        .unwrap()
        .into_iter()
        .filter(|event| event.pid == pid)
        .filter_map(|event| match event.payload {
            Some(Payload::Slow(slow)) if slow.operation == activity => Some(slow.seconds),
            _ => None,
        })
        .collect();
    assert_eq!(slow.len(), 1, "{activity}: {slow:?}");
    assert!(slow[0] >= since - 1e-6, "{activity}: {slow:?}, and it had lasted {since} s");
}

/// Runs it in a session of its own while `check` observes it.
fn while_running(cluster: &Cluster, sql: &str, check: impl FnOnce(i32)) {
    let (mut client, pid) = session(cluster);
    std::thread::scope(|scope| {
        let running = scope.spawn(move || {
            // Whether it was cancelled does not matter.
            let _ = client.batch_execute(sql);
            let _ = client.batch_execute("select 1");
            client
        });
        check(pid);
        // The session stays until then.
        drop(running.join().unwrap());
    });
}

#[test]
fn a_wait_that_signals_interrupt_is_one_wait_since_its_beginning() {
    let cluster = server();
    let mut segment = Segment::open(&segment(&cluster)).unwrap();

    // For a lock: deadlock_timeout interrupts it as well, and the server logs that.
    let (mut holder, _) = session(&cluster);
    holder.batch_execute("begin; update t set v = 1").unwrap();
    while_running(&cluster, "update t set v = 2", |pid| {
        is_one_wait(&cluster, &mut segment, pid, "Lock:transactionid", || {
            holder.batch_execute("commit").unwrap();
        });
    });

    // In a function.
    let (mut admin, _) = session(&cluster);
    while_running(&cluster, "select pg_sleep(3600)", |pid| {
        is_one_wait(&cluster, &mut segment, pid, "Timeout:PgSleep", || {
            admin.execute("select pg_cancel_backend($1)", &[&pid]).unwrap();
        });
    });

    // For a standby that never connects.
    admin.batch_execute("alter system set synchronous_standby_names = 'nobody'").unwrap();
    admin.batch_execute("select pg_reload_conf()").unwrap();
    eventually("it is in force", || {
        let row = admin.query_one("show synchronous_standby_names", &[]).unwrap();
        row.get::<_, String>(0) == "nobody"
    });
    while_running(&cluster, "update t set v = 3", |pid| {
        is_one_wait(&cluster, &mut segment, pid, "IPC:SyncRep", || {
            admin.execute("select pg_cancel_backend($1)", &[&pid]).unwrap();
        });
    });
}

#[test]
fn a_session_is_idle_in_transaction_since_its_last_message() {
    const IDLE: &str = "idle in transaction::wait::Client:ClientRead";
    let cluster = server();
    let mut segment = Segment::open(&segment(&cluster)).unwrap();
    let (mut admin, _) = session(&cluster);
    let (mut client, pid) = session(&cluster);
    client.batch_execute("begin; select 1").unwrap();
    eventually("it waits", || runs(&segment.snapshot(None).unwrap(), pid, IDLE));
    let first = segment.snapshot(None).unwrap();
    let waited = || first.clock.seconds(first.clock.now() - first.tick);
    wake(&mut segment, &mut admin, pid, IDLE);
    // A reset does not make it younger.
    admin.batch_execute("select tally.reset()").unwrap();
    let at_least = waited();
    let shown: f64 = admin
        .query_one("select since_seconds from tally.sessions where pid = $1", &[&pid])
        .unwrap()
        .get(0);
    // The server and the reader measure the clock's rate apart.
    assert!(shown >= 0.999 * at_least, "idle for {shown} s, and it was seen {at_least} s ago");
    let at_least = waited();
    let snapshot = segment.snapshot(None).unwrap();
    let interval = Interval::between(&segment, None, &snapshot);
    let row = interval.sessions.iter().find(|session| session.pid == pid).unwrap();
    assert!(row.since_seconds + 1e-6 >= at_least, "{} s of {at_least}", row.since_seconds);
    assert_eq!(row.state, "idle in transaction");
}
