// SPDX-License-Identifier: PostgreSQL
//! Activities that span a reset or a change of level: waits are reported and counted once, in full; commits and
//! commands are counted when they end; nested statements keep the part after the reset. Checked against pgbench's
//! count, and times against the clients' clocks around what the server was seen to do.

use crate::support;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::{create_views, eventually};
use postgres::Client;
use scratch::{Cluster, Load};
use segment::{set_level, Level};

const CLIENTS: i64 = 6;
/// The clock's rate was measured against another clock when the segment was created.
const RATE: f64 = 1e-3;

fn server(settings: &[(&str, &str)]) -> (Cluster, Client) {
    let builder = support::plain().settings([
        ("shared_preload_libraries", "pg_tally"),
        ("pg_tally.slow_threshold", "100ms"),
        ("autovacuum", "off"),
        ("checkpoint_timeout", "1h"),
        // deadlock_timeout would split a wait for a lock.
        ("deadlock_timeout", "1h"),
    ]);
    let cluster = support::start(builder.settings(settings.iter().copied()));
    create_views(&cluster);
    let mut client = cluster.connect().unwrap();
    client.batch_execute("create table t (n int)").unwrap();
    // Its last command is counted when it ends.
    let others = "select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()";
    eventually("the session that created the views has ended", || number(&mut client, others) == 0);
    (cluster, client)
}

fn level(cluster: &Cluster, level: Level) {
    set_level(&support::segment(cluster), level).unwrap();
}

fn number(client: &mut Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).unwrap().get(0)
}

fn waiting(client: &mut Client, event: &str) -> i64 {
    let sql = format!("select count(*) from pg_stat_activity where wait_event = '{event}'");
    number(client, &sql)
}

/// Slow waits of a session for a table: the seconds in "Lock:relation: 1.503 s".
fn slow(client: &mut Client, pid: i32) -> Vec<f64> {
    let sql = "select text from tally.events where kind = 'slow' and pid = $1 \
               and text like '%Lock:relation: %' order by number";
    let rows = client.query(sql, &[&pid]).unwrap();
    let seconds = |text: &str| text.split(": ").nth(1)?.split(' ').next()?.parse().ok();
    rows.iter().map(|row| seconds(row.get(0)).unwrap()).collect()
}

/// A change that happens during or after an operation.
type Change = fn(&Cluster, &mut Client);

const CHANGES: [(&str, Change); 6] = [
    ("nothing", |_, _| ()),
    ("level locks", |cluster, _| level(cluster, Level::Locks)),
    ("a reset", |_, client| client.batch_execute("select tally.reset()").unwrap()),
    ("level waits", |cluster, _| level(cluster, Level::Waits)),
    ("two resets and level locks", |cluster, client| {
        client.batch_execute("select tally.reset()").unwrap();
        level(cluster, Level::Locks);
        client.batch_execute("select tally.reset()").unwrap();
    }),
    ("level off", |cluster, _| level(cluster, Level::Off)),
];

#[test]
fn a_slow_wait_is_reported_once_and_in_full_whatever_changes_during_it_or_after() {
    let (cluster, mut client) = server(&[]);
    let mut holder = cluster.connect().unwrap();
    for (name, change) in CHANGES {
        for after in [false, true] {
            let mut waiter = cluster.connect().unwrap();
            let pid = support::pid_of(&mut waiter);
            holder.batch_execute("begin; lock table t; select pg_advisory_lock(1)").unwrap();
            let began = Instant::now();
            // Works after the lock until it gets an advisory lock, without any other wait.
            let thread = std::thread::spawn(move || {
                let spin = "do $$ begin lock table t; \
                            while not pg_try_advisory_xact_lock(1) loop end loop; end $$";
                waiter.batch_execute(spin).unwrap();
                waiter
            });
            eventually("it waits", || waiting(&mut client, "relation") == 1);
            let waiting_since = Instant::now();
            std::thread::sleep(Duration::from_millis(100));
            if !after {
                change(&cluster, &mut client);
            }
            std::thread::sleep(Duration::from_millis(20));
            let min = waiting_since.elapsed().as_secs_f64();
            holder.batch_execute("rollback").unwrap();
            eventually("it works", || waiting(&mut client, "relation") == 0);
            let max = began.elapsed().as_secs_f64();
            if after {
                change(&cluster, &mut client);
            }
            holder.batch_execute("select pg_advisory_unlock(1)").unwrap();
            let mut waiter = thread.join().unwrap();
            waiter.batch_execute("select 1").unwrap();
            let waits = slow(&mut client, pid);
            println!("{name}, after: {after}: {waits:?}, {min} to {max} s");
            let [one] = waits[..] else { panic!("{name}, after: {after}: {waits:?}") };
            assert!((min - 0.002..max + 0.002).contains(&one), "{name}: {one} s");
            level(&cluster, Level::Waits);
        }
    }
}

#[test]
fn commits_and_commands_that_span_resets_and_changes_of_level_are_counted_once_when_they_end() {
    let (cluster, mut client) = server(&[]);
    let commits = "select commits from tally.commits";
    let commands = "select coalesce(sum(count), 0)::bigint from tally.commands \
                    where command = 'Query' and part = 'handle'";
    for (name, change) in &CHANGES[..5] {
        client.batch_execute("alter system set synchronous_standby_names = 'nobody'").unwrap();
        cluster.reload().unwrap();
        eventually("the setting is in effect", || {
            let row = client.query_one("show synchronous_standby_names", &[]).unwrap();
            row.get::<_, &str>(0) == "nobody"
        });
        let resets = name.contains("reset");
        let before =
            if resets { [0, 0] } else { [commits, commands].map(|s| number(&mut client, s)) };
        let threads: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let mut session = cluster.connect().unwrap();
                std::thread::spawn(move || {
                    session.batch_execute("insert into t values (1)").unwrap();
                    session
                })
            })
            .collect();
        eventually("all wait", || waiting(&mut client, "SyncRep") == CLIENTS);
        let waiting_since = Instant::now();
        std::thread::sleep(Duration::from_millis(50));
        change(&cluster, &mut client);
        std::thread::sleep(Duration::from_millis(50));
        let min = waiting_since.elapsed().as_secs_f64() * (1.0 - RATE);
        client.query("alter system reset synchronous_standby_names", &[]).unwrap();
        cluster.reload().unwrap();
        let mut sessions: Vec<Client> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        // A session publishes its figures when it waits for its client again.
        for session in &mut sessions {
            session.query("select 1", &[]).unwrap();
        }
        let row = client
            .query_one(
                "select commits, seconds, max_seconds, replication_seconds from tally.commits",
                &[],
            )
            .unwrap();
        let counted: i64 = row.get(0);
        println!("{name}: {row:?}");
        assert_eq!(counted - before[0], CLIENTS, "{name}");
        assert!(row.get::<_, f64>("max_seconds") >= min, "{name}: whole");
        if resets {
            assert!(row.get::<_, f64>("replication_seconds") >= min * CLIENTS as f64, "{name}");
        }
        // Theirs, and the command that ran the reset, which ends after it.
        let own = if resets { 1 } else { 0 };
        assert_eq!(number(&mut client, commands) - before[1], CLIENTS + own, "{name}");
    }
}

/// Transactions of one insert each, by four sessions, until the level has changed a hundred times; returns their number.
fn while_the_level_changes(cluster: &Cluster, levels: &[Level]) -> i64 {
    let changes = AtomicUsize::new(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let n = changes.fetch_add(1, Ordering::Relaxed);
                level(cluster, levels[n % levels.len()]);
                std::thread::sleep(Duration::from_millis(7));
            }
        });
        let insert = || Load::Script("insert into t values (1);\n".into());
        let mut transactions = 0;
        while changes.load(Ordering::Relaxed) < 100 {
            let run = cluster.pgbench().load(insert()).clients(4).jobs(2).transactions(500).run();
            transactions += run.unwrap().transactions as i64;
        }
        done.store(true, Ordering::Relaxed);
        transactions
    })
}

#[test]
fn no_commit_or_command_is_lost_while_the_level_keeps_changing() {
    let (cluster, mut client) = server(&[]);
    let counts = "select commits, (select sum(count)::bigint from tally.commands \
                  where command = 'Query' and part = 'handle') from tally.commits";
    let before = client.query_one(counts, &[]).unwrap();
    let transactions = while_the_level_changes(&cluster, &[Level::Locks, Level::Waits]);
    level(&cluster, Level::Waits);
    let others = "select count(*) from pg_stat_activity where application_name = 'pgbench'";
    eventually("all sessions have ended", || number(&mut client, others) == 0);
    let after = client.query_one(counts, &[]).unwrap();
    let grown = |i: usize| after.get::<_, i64>(i) - before.get::<_, i64>(i);
    assert_eq!((grown(0), grown(1)), (transactions, transactions), "commits, commands");
}

/// With the level off for part of the time, some are not counted, but none is invented.
#[test]
fn a_level_that_is_off_at_times_invents_nothing() {
    let (cluster, mut client) = server(&[]);
    let levels = [Level::Off, Level::Locks, Level::Off, Level::Waits];
    let transactions = while_the_level_changes(&cluster, &levels) + 1;
    level(&cluster, Level::Waits);
    client.batch_execute("insert into t values (2)").unwrap();
    let commits = number(&mut client, "select commits from tally.commits");
    println!("{commits} of {transactions} commits");
    assert!(commits > 0 && commits <= transactions, "{commits} of {transactions}");
    let most = "select max(count)::bigint from tally.commands";
    assert!(number(&mut client, most) <= transactions + 100);
}

#[test]
fn nested_statements_keep_what_follows_a_reset() {
    let (_cluster, mut client) = server(&[("pg_tally.statements", "all")]);
    client
        .batch_execute(
            "create function within() returns int language plpgsql as $$ begin \
                perform pg_sleep(0.05); perform pg_sleep(0.05); perform pg_sleep(0.05); \
                perform tally.reset(), pg_sleep(0.03) as with_reset; \
                return 1; end $$",
        )
        .unwrap();
    for _ in 0..3 {
        let began = Instant::now();
        client.batch_execute("select within()").unwrap();
        let took = began.elapsed().as_secs_f64();
        let sql = "select activity, sum(count)::float8 as count, sum(seconds) as seconds \
                   from tally.statement_activities a join tally.statements s using (queryid) \
                   where query like '%with_reset%' and not a.toplevel group by 1";
        let rows = client.query(sql, &[]).unwrap();
        assert!(!rows.is_empty());
        for row in rows {
            let (activity, count, seconds): (&str, f64, f64) = (row.get(0), row.get(1), row.get(2));
            println!("{activity}: {count}, {seconds} s of {took} s");
            assert!(count <= 2.0, "{activity}: {count}");
            assert!(
                (0.0..took * (1.0 + RATE) - 0.15).contains(&seconds),
                "{activity}: {seconds} s"
            );
            if activity == "Timeout:PgSleep" {
                assert!(count == 1.0 && seconds >= 0.03, "{activity}: {count}, {seconds} s");
            }
        }
    }
}
