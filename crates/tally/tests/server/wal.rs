// SPDX-License-Identifier: PostgreSQL
//! tally.wal: the WAL that each kind of process inserts, compared with pg_stat_wal.

use crate::support;
use std::time::Duration;

use crate::support::{create_views, eventually};
use postgres::Client;
use scratch::{Cluster, Load};

/// Records, full-page images, bytes, times the buffers were full.
type Figures = [i64; 4];

fn ours(client: &mut Client) -> Figures {
    let sql = "select sum(records)::bigint, sum(fpi)::bigint, sum(bytes)::bigint, \
                      sum(buffers_full)::bigint from tally.wal";
    let row = client.query_one(sql, &[]).unwrap();
    [0, 1, 2, 3].map(|n| row.get(n))
}

fn theirs(client: &mut Client) -> Figures {
    let sql = "select wal_records, wal_fpi, wal_bytes::bigint, wal_buffers_full from pg_stat_wal";
    let row = client.query_one(sql, &[]).unwrap();
    [0, 1, 2, 3].map(|n| row.get(n))
}

fn since(now: Figures, before: Figures) -> Figures {
    std::array::from_fn(|n| now[n] - before[n])
}

/// The difference between the server's counts and ours: activity before its processes were instrumented.
/// Processes add their counts to the server's later, so this waits until the difference stays the same.
fn beyond(client: &mut Client) -> Figures {
    let mut same = 0;
    let mut last = [0; 4];
    eventually("the server's count is complete", || {
        client.batch_execute("select pg_stat_force_next_flush()").unwrap();
        std::thread::sleep(Duration::from_millis(250));
        let now = since(theirs(client), ours(client));
        same = if now == last { same + 1 } else { 0 };
        last = now;
        same == 4
    });
    last
}

/// Our counts. Waits until the server's count is larger by this.
fn equal(client: &mut Client, beyond: Figures) -> Figures {
    let mut figures = [[0; 4]; 2];
    eventually("the server has the same figures", || {
        client.batch_execute("select pg_stat_force_next_flush()").unwrap();
        let now = [ours(client), theirs(client)];
        if now != figures {
            println!("records, full-page images, bytes, buffers full: {now:?}");
        }
        figures = now;
        since(now[1], now[0]) == beyond
    });
    figures[0]
}

fn server(autovacuum: &str) -> (Cluster, Client) {
    let cluster = support::start(support::plain().settings([
        ("shared_preload_libraries", "pg_tally"),
        ("wal_buffers", "64kB"),
        ("autovacuum", autovacuum),
        ("autovacuum_naptime", "1s"),
        ("checkpoint_timeout", "1h"),
        ("max_prepared_transactions", "4"),
        ("min_parallel_index_scan_size", "0"),
    ]));
    create_views(&cluster);
    let client = cluster.connect().unwrap();
    (cluster, client)
}

#[test]
fn the_wal_of_all_processes_equals_the_servers_count() {
    let (cluster, mut client) = server("on");
    cluster.pgbench_init(1).unwrap();
    let beyond = beyond(&mut client);
    let before = ours(&mut client);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let load = cluster.pgbench().load(Load::TpcB).clients(4).jobs(2);
            load.transactions(150).run().unwrap();
        });
        // Sessions that hardly ever wait and soon end.
        scope.spawn(|| {
            let insert = "insert into pgbench_history (tid, filler) values (1, repeat('x', 20));\n";
            let load = cluster.pgbench().load(Load::Script(insert.into())).clients(3);
            load.arg("-C").transactions(30).run().unwrap();
        });
        let mut session = cluster.connect().unwrap();
        session
            .batch_execute(
                "set synchronous_commit = off; create table t (id int primary key, filler text); \
                 insert into t select n, repeat('y', 50) from generate_series(1, 60000) n",
            )
            .unwrap();
        for n in 0..2000 {
            session.execute("insert into t values ($1, 'z')", &[&(100_000 + n)]).unwrap();
        }
        session.batch_execute("begin; delete from t where id < 500; rollback").unwrap();
        session.batch_execute("begin; insert into t values (0); prepare transaction 'p'").unwrap();
        session.batch_execute("commit prepared 'p'").unwrap();
        session
            .batch_execute("checkpoint; update t set filler = filler || 'a'; checkpoint")
            .unwrap();
    });
    let figures = since(equal(&mut client, beyond), before);
    assert!(figures.iter().all(|&n| n > 10), "{figures:?}");
    eventually("all kinds of processes have inserted WAL", || {
        let sql = "select array_agg(process order by process) from tally.wal where bytes > 0";
        let kinds: Vec<String> = client.query_one(sql, &[]).unwrap().get(0);
        ["autovacuum worker", "checkpointer", "client backend"]
            .iter()
            .all(|kind| kinds.iter().any(|k| k == kind))
    });
    equal(&mut client, beyond);
    let sql = "select insertions is null and insertion_seconds is null from tally.wal";
    assert!(client.query(sql, &[]).unwrap().iter().all(|row| row.get(0)), "not at level waits");
}

#[test]
fn wal_inserted_while_the_level_is_off_does_not_count_and_a_reset_starts_from_zero() {
    let (cluster, mut client) = server("off");
    client.batch_execute("create table t (n int)").unwrap();
    let segment = support::segment(&cluster);
    let set =
        |level: &str| drop(support::output(support::tally().args(["level", level]).arg(&segment)));
    let before = ours(&mut client);
    set("off");
    client.batch_execute("insert into t select generate_series(1, 1000)").unwrap();
    set("waits");
    // The session notices the new level at its next command.
    client.batch_execute("select 1").unwrap();
    client.batch_execute("insert into t select generate_series(1, 100)").unwrap();
    let records = since(ours(&mut client), before)[0];
    assert!((100..300).contains(&records), "{records} records");
    client.batch_execute("select tally.reset()").unwrap();
    client.batch_execute("select 1").unwrap();
    client.batch_execute("insert into t select generate_series(1, 100)").unwrap();
    let records = ours(&mut client)[0];
    assert!((100..300).contains(&records), "{records} records since the reset");
}

#[test]
fn wal_of_parallel_workers_is_counted_once_with_their_leader() {
    let (_cluster, mut client) = server("off");
    client
        .batch_execute(
            "create table t (a int, b int, c int) with (autovacuum_enabled = off); \
             insert into t select n, n, n from generate_series(1, 50000) n; \
             create index on t (a); create index on t (b); create index on t (c); \
             delete from t where a % 3 = 0; checkpoint",
        )
        .unwrap();
    let beyond = beyond(&mut client);
    equal(&mut client, beyond);
    let before = theirs(&mut client);
    // The end of the WAL, and our counts.
    let both = |client: &mut Client| -> [i64; 2] {
        let sql = "select (pg_current_wal_insert_lsn() - '0/0')::bigint";
        [client.query_one(sql, &[]).unwrap().get(0), ours(client)[2]]
    };
    let from = both(&mut client);
    client.batch_execute("vacuum (parallel 2) t").unwrap();
    let to = both(&mut client);
    let (log, bytes) = (to[0] - from[0], to[1] - from[1]);
    // With workers for which the leader does not wait, the server counts their WAL twice.
    client.batch_execute("select pg_stat_force_next_flush()").unwrap();
    let theirs = since(theirs(&mut client), before)[2];
    println!("{log} bytes of WAL, {bytes} by us, {theirs} by the server");
    let workers = "select coalesce(sum(records), 0)::bigint from tally.wal \
                   where process = 'parallel worker'";
    assert_eq!(client.query_one(workers, &[]).unwrap().get::<_, i64>(0), 0);
    // The WAL also has page headers and padding.
    assert!((0.95..=1.0).contains(&(bytes as f64 / log as f64)), "{bytes} of {log}");
}
