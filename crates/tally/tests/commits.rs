// SPDX-License-Identifier: PostgreSQL
//! The commit path: who has flushed and who was carried, commit_delay's sleep and the flush, against
//! pgbench's and the server's own counts.
//!
//! PGTALLY_COMMITS_SECONDS sets how long each run takes.

mod support;

use std::time::Duration;

use postgres::Client;
use scratch::{Cluster, Load};
use support::{create_views, eventually};

const CLIENTS: u32 = 32;

/// In microseconds; not the 1000 that a process sleeps first at a spinlock that stays taken.
const DELAY: &str = "1500";

/// A server whose commits reach the disk, with the command's views and a table to insert into.
fn server() -> (Cluster, Client) {
    let cluster = support::start(support::plain().fsync(true).settings([
        ("shared_preload_libraries", "pg_tally"),
        ("track_wal_io_timing", "on"),
        ("checkpoint_timeout", "1h"),
        ("max_wal_size", "4GB"),
        // Hardly anybody else commits or flushes.
        ("autovacuum", "off"),
        ("wal_writer_delay", "10s"),
        ("wal_writer_flush_after", "1GB"),
        ("max_prepared_transactions", "4"),
    ]));
    create_views(&cluster);
    let mut client = cluster.connect().unwrap();
    client.batch_execute("create table t (n int); checkpoint").unwrap();
    (cluster, client)
}

/// tally.commits, all syncs of WAL, and the server's pg_stat_wal.
#[derive(Debug, Clone, Copy, Default)]
struct Figures {
    led: i64,
    carried: i64,
    asynchronous: i64,
    seconds: f64,
    queue_seconds: f64,
    delays: i64,
    delay_seconds: f64,
    sync_seconds: f64,
    syncs: i64,
    wal_syncs: i64,
    wal_sync_seconds: f64,
}

impl Figures {
    /// So far. What processes keep to themselves for a while, they have told by then.
    fn read(client: &mut Client) -> Self {
        let sql =
            "select leader, group_committed, asynchronous, c.seconds, queue_seconds, delays, delay_seconds, \
                          coalesce(f.syncs, 0) as syncs, coalesce(f.seconds, 0) as sync_seconds, \
                          wal_sync, wal_sync_time / 1000 as wal_sync_seconds \
                   from tally.commits c, pg_stat_wal, \
                        (select sum(count)::bigint as syncs, sum(seconds) as seconds \
                         from tally.files where file = 'wal' and operation = 'sync') f";
        client.batch_execute("select pg_stat_force_next_flush()").unwrap();
        std::thread::sleep(Duration::from_millis(1200));
        let row = client.query_one(sql, &[]).unwrap();
        Self {
            led: row.get("leader"),
            carried: row.get("group_committed"),
            asynchronous: row.get("asynchronous"),
            seconds: row.get("seconds"),
            queue_seconds: row.get("queue_seconds"),
            delays: row.get("delays"),
            delay_seconds: row.get("delay_seconds"),
            sync_seconds: row.get("sync_seconds"),
            syncs: row.get("syncs"),
            wal_syncs: row.get("wal_sync"),
            wal_sync_seconds: row.get("wal_sync_seconds"),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            led: self.led - before.led,
            carried: self.carried - before.carried,
            asynchronous: self.asynchronous - before.asynchronous,
            seconds: self.seconds - before.seconds,
            queue_seconds: self.queue_seconds - before.queue_seconds,
            delays: self.delays - before.delays,
            delay_seconds: self.delay_seconds - before.delay_seconds,
            sync_seconds: self.sync_seconds - before.sync_seconds,
            syncs: self.syncs - before.syncs,
            wal_syncs: self.wal_syncs - before.wal_syncs,
            wal_sync_seconds: self.wal_sync_seconds - before.wal_sync_seconds,
        }
    }

    fn commits(self) -> i64 {
        self.led + self.carried + self.asynchronous
    }

    fn per_flush(self) -> f64 {
        (self.led + self.carried) as f64 / self.led as f64
    }
}

fn seconds() -> u64 {
    std::env::var("PGTALLY_COMMITS_SECONDS").map_or(4, |text| text.parse().expect("a number"))
}

/// A run of single inserts: transactions, what we say, transactions a second.
fn run(cluster: &Cluster, client: &mut Client) -> (u64, Figures, f64) {
    let before = Figures::read(client);
    let insert = Load::Script("insert into t values (1);\n".into());
    let pgbench = cluster.pgbench().load(insert).clients(CLIENTS).jobs(2);
    let result = pgbench.duration(Duration::from_secs(seconds())).run().unwrap();
    let others = "select count(*) from pg_stat_activity where application_name = 'pgbench'";
    eventually("all sessions have ended", || {
        client.query_one(others, &[]).unwrap().get::<_, i64>(0) == 0
    });
    (result.transactions, Figures::read(client).since(before), result.tps)
}

fn set(cluster: &Cluster, client: &mut Client, name: &str, value: &str) {
    client.batch_execute(&format!("alter system set {name} = '{value}'")).unwrap();
    cluster.reload().unwrap();
    eventually("the setting is in force", || {
        let sql = format!("select setting from pg_settings where name = '{name}'");
        client.query_one(&sql, &[]).unwrap().get::<_, &str>(0) == value
    });
}

#[test]
fn commits_are_those_that_led_a_flush_and_those_that_were_carried_with_and_without_delay() {
    let (cluster, mut client) = server();
    let mut runs = Vec::new();
    for delay in ["0", DELAY] {
        set(&cluster, &mut client, "commit_delay", delay);
        let (transactions, figures, tps) = run(&cluster, &mut client);
        let f = figures;
        println!(
            "commit_delay {delay}: {tps:.0} transactions a second, {:.1} commits a flush, \
             means in ms: commit {:.2}, queue {:.2}, delay {:.2}, flush {:.2}; {f:?}",
            f.per_flush(),
            f.seconds / f.commits() as f64 * 1e3,
            f.queue_seconds / f.commits() as f64 * 1e3,
            f.delay_seconds / f.led as f64 * 1e3,
            f.sync_seconds / f.syncs as f64 * 1e3,
        );
        assert_eq!(f.commits() as u64, transactions, "commits");
        assert_eq!(f.asynchronous, 0);
        assert!(f.carried > 0 && f.led > 0);
        // What the WAL writer has done it may tell the server later, and it syncs a lot at once.
        assert!((f.led..=f.syncs).contains(&f.wal_syncs), "syncs");
        let (ours, theirs) = (f.sync_seconds, f.wal_sync_seconds);
        let untold = f.syncs - f.wal_syncs;
        assert!(
            ours >= 0.98 * theirs && (untold > 0 || ours <= 1.02 * theirs),
            "syncs took {ours} s, for the server {theirs} s"
        );
        runs.push(figures);
    }
    let [without, with] = &runs[..] else { unreachable!() };
    assert_eq!((without.delays, without.delay_seconds), (0, 0.0));
    assert!(with.delays > 0 && with.delays <= with.led, "{} delays", with.delays);
    let mean = with.delay_seconds / with.delays as f64;
    assert!((0.0015..0.01).contains(&mean), "a delay of {mean} s");
    assert!(with.per_flush() > without.per_flush(), "a flush carries no more");
}

#[test]
fn commits_that_do_not_wait_and_transactions_that_write_nothing_are_told_apart() {
    let (cluster, mut client) = server();
    let mut session = cluster.connect().unwrap();
    let mut counts = |sql: &str, times: usize| {
        let before = Figures::read(&mut client);
        for _ in 0..times {
            session.batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        let figures = Figures::read(&mut client).since(before);
        (figures.led, figures.carried, figures.asynchronous)
    };
    let (led, carried, asynchronous) = counts("insert into t values (1)", 20);
    assert_eq!((led + carried, asynchronous), (20, 0));
    assert_eq!(counts("select count(*) from t", 20), (0, 0, 0), "nothing written");
    assert_eq!(counts("begin; select 1; commit", 5), (0, 0, 0), "nothing written");
    assert_eq!(counts("begin; insert into t values (1); rollback", 5), (0, 0, 0), "rolled back");
    let local = "begin; set local synchronous_commit = off; insert into t values (1); commit";
    assert_eq!(counts(local, 20), (0, 0, 20));
    // One that drops files has to last all the same.
    let drop = "begin; set local synchronous_commit = off; create table u (); drop table u; commit";
    let (led, carried, asynchronous) = counts(drop, 3);
    assert_eq!((led + carried, asynchronous), (3, 0));
    assert_eq!(counts("select txid_current()", 5), (0, 0, 0), "a number, and nothing written");
    // Nothing waits between the commit and the end of what follows it in the same message.
    let write = "begin; set local synchronous_commit = off; insert into t values (1); commit";
    let failed = format!("{write}; begin; insert into t values (1); rollback");
    assert_eq!(counts(&failed, 20), (0, 0, 20), "one that is rolled back follows");
}

/// Led or carried, asynchronous; and the seconds of all.
fn quick(client: &mut Client) -> ([i64; 2], f64) {
    let sql = "select leader + group_committed, asynchronous, seconds from tally.commits";
    let row = client.query_one(sql, &[]).unwrap();
    ([row.get(0), row.get(1)], row.get(2))
}

fn lsn(client: &mut Client) -> String {
    client.query_one("select pg_current_wal_insert_lsn()::text", &[]).unwrap().get(0)
}

/// The records of the log between two places that make a transaction, or its end, durable.
fn records(cluster: &Cluster, client: &mut Client, from: &str, to: &str) -> i64 {
    client.batch_execute("checkpoint").unwrap();
    let waldump = std::process::Command::new(cluster.binaries().program("pg_waldump"))
        .arg("-p")
        .arg(cluster.data_dir().join("pg_wal"))
        .args(["-s", from, "-e", to, "--rmgr=Transaction"])
        .output()
        .unwrap();
    let text = String::from_utf8(waldump.stdout).unwrap();
    let kinds = ["desc: COMMIT ", "desc: COMMIT_PREPARED ", "desc: PREPARE "];
    text.lines().filter(|line| kinds.iter().any(|kind| line.contains(kind))).count() as i64
}

#[test]
fn what_is_prepared_what_ends_so_and_what_only_notifies_count_as_the_log_has_them() {
    let (cluster, mut client) = server();
    let mut session = cluster.connect().unwrap();
    // What it does, how often; how many wait for a flush of each, and how many do not.
    let two_phases = "begin; insert into t values (1); prepare transaction 'p'";
    let reads_too = "begin; select txid_current(); notify c; commit";
    let writes_too = "begin; insert into t values (1); notify c; commit";
    let asynchronous = "begin; set local synchronous_commit = off; insert into t values (1); \
                        prepare transaction 'p'";
    let steps: &[(&[&str], [i64; 2])] = &[
        (&["insert into t values (1)"], [1, 0]),
        (&[two_phases, "commit prepared 'p'"], [2, 0]),
        (&[asynchronous, "set synchronous_commit = off", "commit prepared 'p'"], [2, 0]),
        (&["set synchronous_commit = on", two_phases, "rollback prepared 'p'"], [1, 0]),
        (&["begin; prepare transaction 'p'", "commit prepared 'p'"], [2, 0]),
        (&["notify c"], [0, 1]),
        (&["notify c, 'other'", "select 1"], [0, 1]),
        (&["select pg_notify('c', 'function')"], [0, 1]),
        (&["begin; notify c; notify c, 'two'; commit"], [0, 1]),
        (&[reads_too], [0, 1]),
        (&[writes_too], [1, 0]),
        (&["begin; notify c; rollback"], [0, 0]),
        (&["select 1", "listen c", "unlisten c"], [0, 0]),
        // A message without a wait between the transactions.
        (&["begin; notify c; commit; begin; notify c; commit; begin; select 1; rollback"], [0, 2]),
    ];
    for (number, (step, expected)) in steps.iter().enumerate() {
        const TIMES: i64 = 5;
        let (before, seconds_before) = quick(&mut client);
        let from = lsn(&mut client);
        let began = std::time::Instant::now();
        for _ in 0..TIMES {
            for sql in *step {
                session.batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
            }
        }
        let took = began.elapsed().as_secs_f64();
        session.query("select 1", &[]).unwrap();
        let (after, seconds) = quick(&mut client);
        let to = lsn(&mut client);
        let counted = [0, 1].map(|i| after[i] - before[i]);
        assert_eq!(counted, expected.map(|n| n * TIMES), "{step:?}");
        assert!(seconds - seconds_before <= took, "{step:?}: {seconds} s in all");
        let logged = records(&cluster, &mut client, &from, &to);
        assert_eq!(logged, counted[0] + counted[1], "step {number} in the log: {step:?}");
    }
    // In a process that has notified as in one that has not: a number, and nothing written.
    let before = quick(&mut client).0;
    session.batch_execute("select txid_current()").unwrap();
    session.query("select 1", &[]).unwrap();
    assert_eq!(quick(&mut client).0, before);
}

#[test]
fn where_writes_are_syncs_who_writes_has_led() {
    let (cluster, mut client) = server();
    let led = "select leader, group_committed, write_seconds from tally.commits";
    for method in ["open_datasync", "open_sync"] {
        set(&cluster, &mut client, "wal_sync_method", method);
        // One after the other: each finds its own WAL unwritten.
        let mut session = cluster.connect().unwrap();
        let before = client.query_one(led, &[]).unwrap();
        for _ in 0..20 {
            session.batch_execute("insert into t values (1)").unwrap();
        }
        session.query("select 1", &[]).unwrap();
        let after = client.query_one(led, &[]).unwrap();
        let grown = |i: usize| after.get::<_, i64>(i) - before.get::<_, i64>(i);
        assert_eq!((grown(0), grown(1)), (20, 0), "{method}");
        // Many at once.
        let writes = "select wal_write from pg_stat_wal";
        Figures::read(&mut client);
        let before: i64 = client.query_one(writes, &[]).unwrap().get(0);
        let (transactions, figures, tps) = run(&cluster, &mut client);
        let written: i64 = client.query_one(writes, &[]).unwrap().get::<_, i64>(0) - before;
        println!("{method}: {tps:.0} transactions a second, {written} writes; {figures:?}");
        assert_eq!(figures.commits() as u64, transactions, "{method}");
        assert!(figures.carried > 0 && figures.led > 0, "{method}: {figures:?}");
        assert!(figures.led <= written, "{method}: {} led, {written} writes", figures.led);
        // By the server's count; a new segment's file is synced when it is made, whatever the method.
        assert_eq!(figures.wal_syncs, 0, "{method}");
    }
}

#[test]
fn a_commits_end_is_not_that_of_a_transaction_that_follows_and_writes_nothing() {
    let (cluster, mut client) = server();
    let mut session = cluster.connect().unwrap();
    let spin =
        "do $$ begin while clock_timestamp() < now() + interval '0.2 s' loop end loop; end $$";
    let write = "begin; set local synchronous_commit = off; insert into t values (1); commit";
    let before = Figures::read(&mut client);
    for _ in 0..5 {
        session.batch_execute(&format!("{write}; begin; {spin}; commit")).unwrap();
    }
    let figures = Figures::read(&mut client).since(before);
    assert_eq!(figures.asynchronous, 5);
    assert!(figures.seconds < 0.2, "5 commits of {} s", figures.seconds);
}

#[test]
fn inserting_a_commits_wal_is_timed_while_the_level_is_locks_and_unknown_before() {
    let (cluster, mut client) = server();
    let mut session = cluster.connect().unwrap();
    // Insertions of commits, their seconds; holds of the locks on inserting WAL, theirs; commits.
    let mut read = || -> (Option<i64>, Option<f64>, i64, f64, i64) {
        let sql = "select insertions, insertion_seconds, \
                          coalesce((select sum(held_count) from tally.lwlocks \
                                    where lock = 'WALInsert' and mode = 'exclusive'), 0)::bigint, \
                          coalesce((select sum(held_seconds) from tally.lwlocks \
                                    where lock = 'WALInsert' and mode = 'exclusive'), 0), \
                          commits from tally.commits";
        let row = client.query_one(sql, &[]).unwrap();
        (row.get(0), row.get(1), row.get(2), row.get(3), row.get(4))
    };
    session.batch_execute("insert into t values (1)").unwrap();
    let (insertions, seconds, ..) = read();
    assert_eq!((insertions, seconds), (None, None));
    let segment = support::segment(&cluster);
    support::output(support::tally().args(["level", "locks"]).arg(&segment));
    session.batch_execute("select pg_sleep(0.001)").unwrap();
    let (_, _, held_before, held_seconds_before, commits) = read();
    const TIMES: i64 = 50;
    for _ in 0..TIMES {
        session.batch_execute("insert into t select generate_series(1, 10)").unwrap();
    }
    // What a session has done is recorded, and what it held noted, when it waits again.
    session.batch_execute("select pg_sleep(0.001)").unwrap();
    let (insertions, seconds, held, held_seconds, commits_now) = read();
    assert_eq!(commits_now - commits, TIMES);
    assert_eq!(insertions, Some(TIMES), "one each");
    let (seconds, all) = (seconds.unwrap(), held_seconds - held_seconds_before);
    println!("{TIMES} commits' own {seconds} s of {all} s for {} insertions", held - held_before);
    // Ten rows and a commit each: a commit's own is one insertion of eleven.
    assert!(held - held_before >= 11 * TIMES);
    assert!(seconds > 0.0 && seconds < 0.6 * all, "{seconds} s of {all} s");
}
