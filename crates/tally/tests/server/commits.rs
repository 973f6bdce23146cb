// SPDX-License-Identifier: PostgreSQL
//! The commit path: leaders and group-committed commits, the sleep of commit_delay, and the flush. Compared
//! with the counts of pgbench and of the server.
//!
//! PGTALLY_COMMITS_SECONDS sets the duration of each run.

use crate::support;
use std::time::Duration;

use crate::support::{create_views, eventually};
use postgres::Client;
use scratch::{Cluster, Load};

const CLIENTS: u32 = 32;

/// In microseconds. Not 1000: that is also the first sleep of a process at a contended spinlock.
const DELAY: &str = "1500";

/// A server with fsync, the views and a table to insert into.
fn server() -> (Cluster, Client) {
    let cluster = support::start(support::flushing().settings([
        ("shared_preload_libraries", "pg_tally"),
        ("track_wal_io_timing", "on"),
        ("checkpoint_timeout", "1h"),
        ("max_wal_size", "4GB"),
        // Few other commits and flushes.
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

/// Figures of tally.commits, of all WAL syncs, and of pg_stat_wal.
#[derive(Debug, Clone, Copy, Default)]
struct Figures {
    leader: i64,
    group_committed: i64,
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

/// Writes and syncs of the WAL by the server's own count. From 18 on, they are in pg_stat_io.
fn wal_view(major: u32) -> &'static str {
    match major {
        15..=17 => "(select wal_write, wal_sync, wal_sync_time from pg_stat_wal) w",
        _ => {
            "(select sum(writes)::bigint as wal_write, sum(fsyncs)::bigint as wal_sync, \
             sum(fsync_time) as wal_sync_time from pg_stat_io where object = 'wal' and context = 'normal') w"
        }
    }
}

impl Figures {
    /// The figures so far. Waits until processes have published their pending statistics.
    fn read(client: &mut Client) -> Self {
        let sql = format!(
            "select leader, group_committed, asynchronous, c.seconds, queue_seconds, delays, delay_seconds, \
                          coalesce(f.syncs, 0) as syncs, coalesce(f.seconds, 0) as sync_seconds, \
                          wal_sync, wal_sync_time / 1000 as wal_sync_seconds \
                   from tally.commits c, {}, \
                        (select sum(count)::bigint as syncs, sum(seconds) as seconds \
                         from tally.files where file = 'wal' and operation = 'sync') f",
            wal_view(support::major())
        );
        client.batch_execute("select pg_stat_force_next_flush()").unwrap();
        std::thread::sleep(Duration::from_millis(1200));
        let row = client.query_one(&sql, &[]).unwrap();
        Self {
            leader: row.get("leader"),
            group_committed: row.get("group_committed"),
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
            leader: self.leader - before.leader,
            group_committed: self.group_committed - before.group_committed,
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
        self.leader + self.group_committed + self.asynchronous
    }

    fn per_flush(self) -> f64 {
        (self.leader + self.group_committed) as f64 / self.leader as f64
    }
}

fn seconds() -> u64 {
    let usual = if support::emulated() { 20 } else { 4 };
    std::env::var("PGTALLY_COMMITS_SECONDS").map_or(usual, |text| text.parse().expect("a number"))
}

fn clients() -> u32 {
    if support::emulated() {
        8
    } else {
        CLIENTS
    }
}

/// A run of single inserts: pgbench's transactions, our figures, transactions per second.
fn run(cluster: &Cluster, client: &mut Client) -> (u64, Figures, f64) {
    let before = Figures::read(client);
    let insert = Load::Script("insert into t values (1);\n".into());
    let pgbench = cluster.pgbench().load(insert).clients(clients()).jobs(2);
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
fn leaders_and_group_committed_commits_add_up_with_and_without_commit_delay() {
    let (cluster, mut client) = server();
    let mut runs = Vec::new();
    for delay in ["0", DELAY] {
        set(&cluster, &mut client, "commit_delay", delay);
        let (transactions, figures, tps) = run(&cluster, &mut client);
        let f = figures;
        println!(
            "commit_delay {delay}: {tps:.0} transactions/s, {:.1} commits per flush, \
             means in ms: commit {:.2}, queue {:.2}, delay {:.2}, flush {:.2}; {f:?}",
            f.per_flush(),
            f.seconds / f.commits() as f64 * 1e3,
            f.queue_seconds / f.commits() as f64 * 1e3,
            f.delay_seconds / f.leader as f64 * 1e3,
            f.sync_seconds / f.syncs as f64 * 1e3,
        );
        assert_eq!(f.commits() as u64, transactions, "commits");
        assert_eq!(f.asynchronous, 0);
        assert!(f.group_committed > 0 && f.leader > 0);
        // The WAL writer may report its syncs to pg_stat_wal later, and they are long.
        assert!((f.leader..=f.syncs).contains(&f.wal_syncs), "syncs");
        let (ours, theirs) = (f.sync_seconds, f.wal_sync_seconds);
        let unreported = f.syncs - f.wal_syncs;
        assert!(
            ours >= 0.98 * theirs && (unreported > 0 || ours <= 1.02 * theirs),
            "syncs took {ours} s, for the server {theirs} s"
        );
        runs.push(figures);
    }
    let [without, with] = &runs[..] else { unreachable!() };
    assert_eq!((without.delays, without.delay_seconds), (0, 0.0));
    assert!(with.delays > 0 && with.delays <= with.leader, "{} delays", with.delays);
    // How late a sleeper is woken, and how many commits a flush has, is the machine's affair.
    let mean = with.delay_seconds / with.delays as f64;
    assert!(mean >= 0.0015, "a delay of {mean} s");
    assert!(with.delay_seconds <= with.seconds, "a delay is part of a commit");
}

#[test]
fn asynchronous_commits_and_read_only_transactions_are_distinguished() {
    let (cluster, mut client) = server();
    let mut session = cluster.connect().unwrap();
    let mut counts = |sql: &str, times: usize| {
        let before = Figures::read(&mut client);
        for _ in 0..times {
            session.batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        let figures = Figures::read(&mut client).since(before);
        (figures.leader, figures.group_committed, figures.asynchronous)
    };
    let (leader, group_committed, asynchronous) = counts("insert into t values (1)", 20);
    assert_eq!((leader + group_committed, asynchronous), (20, 0));
    assert_eq!(counts("select count(*) from t", 20), (0, 0, 0), "nothing written");
    assert_eq!(counts("begin; select 1; commit", 5), (0, 0, 0), "nothing written");
    assert_eq!(counts("begin; insert into t values (1); rollback", 5), (0, 0, 0), "rolled back");
    let local = "begin; set local synchronous_commit = off; insert into t values (1); commit";
    assert_eq!(counts(local, 20), (0, 0, 20));
    // A transaction that drops files must be durable nevertheless.
    let drop = "begin; set local synchronous_commit = off; create table u (); drop table u; commit";
    let (leader, group_committed, asynchronous) = counts(drop, 3);
    assert_eq!((leader + group_committed, asynchronous), (3, 0));
    assert_eq!(counts("select txid_current()", 5), (0, 0, 0), "an xid, but nothing written");
    // No wait separates the commit from what follows in the same message.
    let write = "begin; set local synchronous_commit = off; insert into t values (1); commit";
    let failed = format!("{write}; begin; insert into t values (1); rollback");
    assert_eq!(counts(&failed, 20), (0, 0, 20), "a rolled back transaction follows");
}

/// Synchronous and asynchronous commits, and the seconds of all.
fn quick(client: &mut Client) -> ([i64; 2], f64) {
    let sql = "select leader + group_committed, asynchronous, seconds from tally.commits";
    let row = client.query_one(sql, &[]).unwrap();
    ([row.get(0), row.get(1)], row.get(2))
}

fn lsn(client: &mut Client) -> String {
    client.query_one("select pg_current_wal_insert_lsn()::text", &[]).unwrap().get(0)
}

/// Number of WAL records between two LSNs that commit or prepare a transaction.
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
fn prepared_transactions_and_notifications_count_as_in_the_wal() {
    let (cluster, mut client) = server();
    let mut session = cluster.connect().unwrap();
    // The statements of a step, and its numbers of synchronous and asynchronous commits.
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
        // Several transactions in one message, without a wait between them.
        (&["begin; notify c; commit; begin; notify c; commit; begin; select 1; rollback"], [0, 2]),
    ];
    for (number, (step, expected)) in steps.iter().enumerate() {
        const TIMES: i64 = 5;
        let run = |session: &mut Client| {
            for sql in *step {
                session.batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
            }
        };
        // With checksums, the standard from 18 on, the first look at a catalog's rows writes WAL, which is then flushed.
        run(&mut session);
        session.query("select 1", &[]).unwrap();
        let (before, seconds_before) = quick(&mut client);
        let from = lsn(&mut client);
        let began = std::time::Instant::now();
        (0..TIMES).for_each(|_| run(&mut session));
        let took = began.elapsed().as_secs_f64();
        session.query("select 1", &[]).unwrap();
        let (after, seconds) = quick(&mut client);
        let to = lsn(&mut client);
        let counted = [0, 1].map(|i| after[i] - before[i]);
        assert_eq!(counted, expected.map(|n| n * TIMES), "{step:?}");
        assert!(seconds - seconds_before <= took, "{step:?}: {seconds} s total");
        let logged = records(&cluster, &mut client, &from, &to);
        assert_eq!(logged, counted[0] + counted[1], "step {number} in the WAL: {step:?}");
    }
    // An xid without a write does not count, also after a NOTIFY in the same process.
    let before = quick(&mut client).0;
    session.batch_execute("select txid_current()").unwrap();
    session.query("select 1", &[]).unwrap();
    assert_eq!(quick(&mut client).0, before);
}

#[test]
fn with_open_sync_methods_the_process_that_writes_is_the_leader() {
    let (cluster, mut client) = server();
    let commits = "select leader, group_committed, write_seconds from tally.commits";
    for method in ["open_datasync", "open_sync"] {
        set(&cluster, &mut client, "wal_sync_method", method);
        // One commit at a time, so each has WAL of its own to write.
        let mut session = cluster.connect().unwrap();
        let before = client.query_one(commits, &[]).unwrap();
        for _ in 0..20 {
            session.batch_execute("insert into t values (1)").unwrap();
        }
        session.query("select 1", &[]).unwrap();
        let after = client.query_one(commits, &[]).unwrap();
        let grown = |i: usize| after.get::<_, i64>(i) - before.get::<_, i64>(i);
        assert_eq!((grown(0), grown(1)), (20, 0), "{method}");
        // Concurrent commits.
        let writes = &format!("select wal_write from {}", wal_view(support::major()));
        Figures::read(&mut client);
        let before: i64 = client.query_one(writes, &[]).unwrap().get(0);
        let (transactions, figures, tps) = run(&cluster, &mut client);
        let written: i64 = client.query_one(writes, &[]).unwrap().get::<_, i64>(0) - before;
        println!("{method}: {tps:.0} transactions/s, {written} writes; {figures:?}");
        assert_eq!(figures.commits() as u64, transactions, "{method}");
        assert!(figures.group_committed > 0 && figures.leader > 0, "{method}: {figures:?}");
        assert!(
            figures.leader <= written,
            "{method}: {} leaders, {written} writes",
            figures.leader
        );
        // pg_stat_wal counts none. A new WAL file is synced when created, with any method.
        assert_eq!(figures.wal_syncs, 0, "{method}");
    }
}

#[test]
fn a_commit_does_not_include_a_read_only_transaction_that_follows() {
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
fn inserting_the_commit_record_is_timed_at_level_locks_only() {
    let (cluster, mut client) = server();
    let mut session = cluster.connect().unwrap();
    // Insertions of commit records and their seconds; holds of WALInsert locks and their seconds; commits.
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
    // A session records its work and its lock holds at its next wait.
    session.batch_execute("select pg_sleep(0.001)").unwrap();
    let (insertions, seconds, held, held_seconds, commits_now) = read();
    assert_eq!(commits_now - commits, TIMES);
    assert_eq!(insertions, Some(TIMES), "one each");
    let (seconds, all) = (seconds.unwrap(), held_seconds - held_seconds_before);
    println!("{TIMES} commits' own {seconds} s of {all} s for {} insertions", held - held_before);
    // Each transaction has ten rows and a commit record: one of eleven insertions is the commit's.
    assert!(held - held_before >= 11 * TIMES);
    assert!(seconds > 0.0 && seconds < 0.6 * all, "{seconds} s of {all} s");
}
