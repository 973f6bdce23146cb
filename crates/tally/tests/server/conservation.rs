// SPDX-License-Identifier: PostgreSQL
//! Conservation of time: between any two readings, the accounts of every session add up to the time between them,
//! whatever the session does.

use crate::support;
use std::collections::HashSet;
use std::io::Write;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};
use scratch::{Cluster, Load};
use segment::book::Head;
use segment::directory::StatKind;
use segment::{Book, Segment, Snapshot};

/// The clock's rate was measured against another clock when the segment was created.
const RATE: f64 = 1e-3;

/// Ticks in the accounts of a session that the filter selects.
fn accounted(snapshot: &Snapshot, book: &Book, wanted: impl Fn(&str) -> bool) -> u64 {
    let account = |head: &&Head| {
        let stat = snapshot.directory.get(head.stat);
        stat.is_some_and(|stat| stat.kind == StatKind::Account && wanted(&stat.name))
    };
    book.heads.iter().filter(account).map(|head| head.total).sum()
}

fn is_row_lock(account: &str) -> bool {
    account.ends_with("Lock:transactionid") || account.ends_with("Lock:tuple")
}

/// Checks an interval to the tick; returns the number of checks. What a reader may see of a book whose owner was
/// stopped during an update is covered by the stepper of libtally's tests.
fn check(before: &Snapshot, after: &Snapshot) -> usize {
    let mut checked = 0;
    for book in after.books.iter().filter(|book| !book.torn) {
        // Since the session started, and since the last snapshot if it was there.
        let since_birth = (book.now - book.born, accounted(after, book, |_| true));
        let earlier = before.book(book.slot, book.generation);
        let since_then =
            earlier.filter(|earlier| earlier.born == book.born && !earlier.torn).map(|earlier| {
                let then = accounted(before, earlier, |_| true);
                (book.now - earlier.now, since_birth.1 - then)
            });
        for (lived, accounts) in [Some(since_birth), since_then].into_iter().flatten() {
            let (pid, kind) = (book.pid, &book.identity.kind);
            assert_eq!(
                accounts, lived,
                "pid {pid} ({kind}, {:?}): ticks in accounts, and lived",
                book.life
            );
            checked += 1;
        }
    }
    checked
}

/// The work of a session in one of its rounds.
type Work = fn(&mut Client);

fn sleeps(client: &mut Client) {
    client.batch_execute("select pg_sleep(0.5)").unwrap();
}

fn copies(client: &mut Client) {
    client.batch_execute("create temp table if not exists copied (n int, t text)").unwrap();
    let mut copy = client.copy_in("copy copied from stdin").unwrap();
    for n in 0..20_000 {
        writeln!(copy, "{n}\tsome text that fills a row").unwrap();
    }
    copy.finish().unwrap();
    let mut out = client.copy_out("copy copied to stdout").unwrap();
    std::io::copy(&mut out, &mut std::io::sink()).unwrap();
    drop(out);
    client.batch_execute("truncate copied").unwrap();
}

fn parallel(client: &mut Client) {
    client
        .batch_execute(
            "set parallel_setup_cost = 0; set parallel_tuple_cost = 0; \
             set min_parallel_table_scan_size = 0; \
             select set_config(name, 'on', false) from pg_settings \
             where name in ('force_parallel_mode', 'debug_parallel_query')",
        )
        .unwrap();
    client.query_one("select sum(abalance) from pgbench_accounts", &[]).unwrap();
}

fn errors(client: &mut Client) {
    client.batch_execute("select 1/0").unwrap_err();
    client.batch_execute("begin; select no_such_column").unwrap_err();
    client.batch_execute("rollback; reset statement_timeout").unwrap();
    client.batch_execute("set statement_timeout = '20ms'; select pg_sleep(60)").unwrap_err();
    client.query("select $1::int / 0", &[&1i32]).unwrap_err();
}

fn is_cancelled(client: &mut Client) {
    let cancel = client.cancel_token();
    let (done, wait) = channel();
    let canceller = std::thread::spawn(move || {
        // A cancel request that comes too early has no effect.
        while wait.recv_timeout(Duration::from_millis(10)).is_err() {
            let _ = cancel.cancel_query(NoTls);
        }
    });
    client.batch_execute("select pg_sleep(60)").unwrap_err();
    done.send(()).unwrap();
    canceller.join().unwrap();
    // A late one may hit this.
    let _ = client.batch_execute("select 1");
}

/// Sessions of all kinds, their rounds, and whether each round is a session of its own.
const LIVES: [(Work, usize, bool); 9] = [
    (sleeps, 4, false),
    (copies, 6, false),
    (parallel, 15, false),
    (errors, 15, false),
    (is_cancelled, 15, false),
    (|client| client.batch_execute("select 1").unwrap(), 100, true),
    (|client| client.batch_execute("begin; select 1").unwrap(), 100, true),
    (|client| drop(client.query("select 1", &[]).unwrap()), 100, true),
    (|client| client.batch_execute("select 1/0").unwrap_err().code().map(drop).unwrap(), 100, true),
];

fn live(cluster: &Cluster, (work, rounds, apart): (Work, usize, bool)) {
    let connect = || cluster.connect().unwrap();
    let mut client = connect();
    for _ in 0..rounds {
        if apart {
            client = connect();
        }
        work(&mut client);
    }
}

/// A session waits for a row that another session has changed, while readings are taken. In an interval within
/// the wait, all of the session's time belongs to the wait, and the wait is as long as the clients observed.
fn row_lock_wait(cluster: &Cluster) {
    let mut segment = Segment::open(&support::segment(cluster)).unwrap();
    let mut holder = cluster.connect().unwrap();
    let mut blocked = cluster.connect().unwrap();
    holder.batch_execute("create table locked (n int); insert into locked values (1)").unwrap();
    let pid = support::pid_of(&mut blocked);
    holder.batch_execute("begin; update locked set n = 2").unwrap();
    let waited = |snapshot: &Snapshot| {
        let book = snapshot.books.iter().find(|book| book.pid == pid).unwrap();
        (book.now, accounted(snapshot, book, is_row_lock))
    };
    let before = waited(&segment.snapshot(None).unwrap()).1;
    let began = Instant::now();
    let client = std::thread::spawn(move || {
        blocked.batch_execute("update locked set n = 3").unwrap();
        blocked
    });
    let mut last = support::eventually("it waits", || {
        let seen = waited(&segment.snapshot(None).unwrap());
        (seen.1 > before).then_some(seen)
    });
    let waiting = Instant::now();
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(100));
        let seen = waited(&segment.snapshot(None).unwrap());
        assert_eq!(seen.1 - last.1, seen.0 - last.0, "ticks of the wait, and lived");
        last = seen;
    }
    let min = waiting.elapsed().as_secs_f64();
    holder.batch_execute("commit").unwrap();
    let _blocked = client.join().unwrap();
    let max = began.elapsed().as_secs_f64();
    let after = segment.snapshot(None).unwrap();
    let seconds = after.clock.seconds(waited(&after).1 - before);
    let bracket = min * (1.0 - RATE)..max * (1.0 + RATE);
    assert!(bracket.contains(&seconds), "{seconds} s of {min} to {max} s");
}

/// Runs everything once. Returns the number of checks and of the sessions seen.
fn conserve() -> (usize, usize) {
    let cluster = support::start(support::plain().settings([
        ("shared_preload_libraries", "pg_tally"),
        ("max_connections", "60"),
        // The deadlock check would interrupt the wait for a row.
        ("deadlock_timeout", "1h"),
        ("log_min_messages", "fatal"),
    ]));
    cluster.pgbench_init(4).unwrap();
    let mut segment = Segment::open(&support::segment(&cluster)).unwrap();
    let load = cluster.pgbench().load(Load::TpcB).clients(16).jobs(2);
    let mut pgbench = load.duration(Duration::from_secs(3600)).spawn().unwrap();
    let mut idle = cluster.connect().unwrap();
    idle.batch_execute("begin; select 1").unwrap();

    let (mut checked, mut sessions) = (0, HashSet::new());
    let earliest = Instant::now();
    let mut before = segment.snapshot(None).unwrap();
    let (latest, first) = (Instant::now(), before.tick);
    std::thread::scope(|scope| {
        let mut threads = vec![scope.spawn(|| row_lock_wait(&cluster))];
        threads.extend(LIVES.map(|life| {
            let cluster = &cluster;
            scope.spawn(move || live(cluster, life))
        }));
        let mut done = false;
        while !done {
            std::thread::sleep(Duration::from_millis(50));
            done = threads.iter().all(|thread| thread.is_finished());
            let after = segment.snapshot(Some(&before)).unwrap();
            checked += check(&before, &after);
            assert_eq!(after.overflows, before.overflows);
            sessions.extend(after.books.iter().map(|book| (book.slot, book.generation)));
            before = after;
        }
    });
    assert!(pgbench.running(), "the load has ended");
    pgbench.kill();

    // Ticks convert to real seconds.
    let min = latest.elapsed().as_secs_f64() * (1.0 - RATE);
    let last = segment.snapshot(None).unwrap();
    let max = earliest.elapsed().as_secs_f64() * (1.0 + RATE);
    let seconds = last.clock.seconds(last.tick - first);
    assert!((min..=max).contains(&seconds), "{seconds} s of {min} to {max} s");
    (checked, sessions.len())
}

#[test]
fn the_accounts_of_every_session_add_up_between_any_two_readings() {
    let (checked, sessions) = conserve();
    println!("{checked} checks of {sessions} sessions");
    // For each reading, at least pgbench's sessions, since their start and since the last reading.
    assert!(checked > 16 * 2, "{checked} checks of {sessions} sessions");
}

#[test]
#[ignore = "verify: the accounts add up to the tick for PGTALLY_CONSERVATION_SECONDS (600)"]
fn verify_the_accounts_of_every_session_add_up() {
    let length = std::env::var("PGTALLY_CONSERVATION_SECONDS");
    let length = Duration::from_secs(length.map_or(600, |text| text.parse().unwrap()));
    let began = Instant::now();
    let mut checked = 0;
    while began.elapsed() < length {
        checked += conserve().0;
    }
    println!("verify\tthe accounts of every session add up\t{checked} checks\t-\t-\t0");
}
