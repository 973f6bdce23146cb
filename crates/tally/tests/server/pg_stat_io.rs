// SPDX-License-Identifier: PostgreSQL
//! Our file operations agree with pg_stat_io (16 and later), with every I/O method of the server (io_method, 18
//! and later): one read is one read, whichever process performs it.
//!
//! The view counts each block in 16; blocks, several of which may be read by one call, in 17; and calls and bytes
//! from 18 on. It counts in the process that requests the I/O. We count the system call in the process that makes
//! it (an I/O worker), and the blocks of a statement where they are requested, so totals over all processes are
//! compared.

use crate::support;
use std::collections::BTreeSet;
use std::time::Duration;

use postgres::Client;
use scratch::{Cluster, Load};

/// Reads, bytes read, writes, bytes written, syncs.
type Figures = [i64; 5];

const OURS: &str = "
select coalesce(sum(count) filter (where operation = 'read'), 0)::bigint,
       coalesce(sum(bytes) filter (where operation = 'read'), 0)::bigint,
       coalesce(sum(count) filter (where operation = 'write'), 0)::bigint,
       coalesce(sum(bytes) filter (where operation = 'write'), 0)::bigint,
       coalesce(sum(count) filter (where operation = 'sync'), 0)::bigint
from tally.files where not failed and file in ('main', 'fsm', 'vm')";

fn theirs(major: u32) -> String {
    let bytes = |of: &str| match major {
        16 | 17 => format!("sum({of}s * op_bytes)::bigint"),
        _ => format!("sum({of}_bytes)::bigint"),
    };
    format!(
        "select sum(reads)::bigint, {}, sum(writes)::bigint, {}, sum(fsyncs)::bigint \
         from pg_stat_io where object = 'relation'",
        bytes("read"),
        bytes("write")
    )
}

fn figures(client: &mut Client, sql: &str) -> Figures {
    let row = client.query_one(sql, &[]).unwrap();
    std::array::from_fn(|n| row.get(n))
}

/// Ours and the server's, at rest: both queries have run before, so they read nothing.
fn both(client: &mut Client, theirs: &str) -> [Figures; 2] {
    client.batch_execute("checkpoint").unwrap();
    let mut last = [[-1; 5]; 2];
    support::eventually("all processes have reported their statistics", || {
        client.batch_execute("select pg_stat_force_next_flush()").unwrap();
        std::thread::sleep(Duration::from_millis(1200));
        let now = [figures(client, OURS), figures(client, theirs)];
        std::mem::replace(&mut last, now) == now
    });
    last
}

/// The server's I/O methods; up to 17 there is one, without a name.
fn methods() -> Vec<String> {
    let cluster = support::start(support::plain());
    let sql = "select unnest(enumvals) from pg_settings where name = 'io_method'";
    let rows = cluster.connect().unwrap().query(sql, &[]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

fn server(method: Option<&str>) -> (Cluster, Client) {
    let mut builder = support::flushing().settings([
        ("shared_preload_libraries", "pg_tally"),
        // Less than the table, and enough for calls that read many blocks.
        ("shared_buffers", "16MB"),
        ("autovacuum", "off"),
        ("checkpoint_timeout", "1h"),
        ("max_parallel_workers_per_gather", "0"),
        ("track_io_timing", "on"),
    ]);
    if let Some(method) = method {
        builder = builder.setting("io_method", method);
    }
    let cluster = support::start(builder);
    cluster.pgbench_init(4).unwrap();
    let mut client = cluster.connect().unwrap();
    support::create_views_in(&mut client);
    client.batch_execute("vacuum analyze").unwrap();
    (cluster, client)
}

/// The processes that have read relations' files.
fn readers(client: &mut Client) -> BTreeSet<String> {
    let sql = "select distinct process from tally.files where operation = 'read' and file = 'main'";
    client.query(sql, &[]).unwrap().iter().map(|row| row.get(0)).collect()
}

fn compare(method: Option<&str>) {
    let (cluster, mut client) = server(method);
    let major = support::major();
    let sql = theirs(major);
    let before = both(&mut client, &sql);
    let load = cluster.pgbench().load(Load::TpcB).clients(4).jobs(2);
    load.arg("--scale=4").arg("--random-seed=1").transactions(300).run().unwrap();
    client.batch_execute("select max(abalance) from pgbench_accounts").unwrap();
    client.batch_execute("checkpoint").unwrap();
    // Processes report their figures later.
    let mut last = [[0; 5]; 2];
    support::eventually("reads, bytes, writes, bytes, syncs are the server's", || {
        client.batch_execute("select pg_stat_force_next_flush()").unwrap();
        let now = [figures(&mut client, OURS), figures(&mut client, &sql)];
        let since = [0, 1].map(|of| std::array::from_fn(|n| now[of][n] - before[of][n]));
        if since != last {
            println!("{method:?}: {:?}, the server {:?}", since[0], since[1]);
        }
        last = since;
        let [mut ours, theirs] = since;
        // A call reads several blocks, each of which 17 counts.
        if major == 17 {
            ours[0] = ours[1] / 8192;
        }
        ours == theirs
    });
    let [ours, theirs]: [Figures; 2] = last;
    assert!(theirs.iter().all(|&n| n > 5), "{theirs:?}");
    assert!(major < 17 || ours[0] < ours[1] / 8192, "a call reads several blocks");
    assert_eq!(readers(&mut client).contains("io worker"), method == Some("worker"));

    // The statement that requests the blocks has them, and they are those that were read from the relation.
    let sql = "select (select coalesce(sum(read_bytes), 0)::bigint from tally.relations \
                       where relation = 'pgbench_accounts' and fork = 'main'), \
                      (select coalesce(sum(shared_blks_read), 0)::bigint * 8192 from tally.statements \
                       where query like 'select sum(abalance)%'), \
                      (select sum(read_bytes)::bigint from tally.relations)";
    let read = |client: &mut Client| -> [i64; 3] {
        let row = client.query_one(sql, &[]).unwrap();
        std::array::from_fn(|n| row.get(n))
    };
    read(&mut client);
    let before = read(&mut client);
    client.batch_execute("select sum(abalance) from pgbench_accounts").unwrap();
    // I/O workers flush their figures when they next wait: everything that the statement requested has been
    // read.
    let mut after = read(&mut client);
    support::eventually("all reads are counted", || {
        after = read(&mut client);
        after[2] - before[2] >= after[1] - before[1]
    });
    let [table, statement, all] = std::array::from_fn(|n| after[n] - before[n]);
    println!("{table} bytes of the table, {statement} by the statement, {all} of all relations");
    assert!(table > 10_000_000, "{table}");
    // The statement may read an index and catalogs when it is planned.
    assert!((table..=all).contains(&statement), "{statement}, of the table {table}, of all {all}");
    assert!(all - table < 100 * 8192, "{all}, of the table {table}");

    let sql = "select wait_event from tally.waits where wait_event_type in ('IO', 'Activity') and count > 0";
    let waits: BTreeSet<String> =
        client.query(sql, &[]).unwrap().iter().map(|row| row.get(0)).collect();
    let expected: &[&str] = match method {
        Some("worker") => &["AioIoCompletion", "DataFileRead", "IoWorkerMain"],
        Some("io_uring") => &["AioIoUringSubmit"],
        _ => &["DataFileRead"],
    };
    for event in expected {
        assert!(waits.contains(*event), "{event} is not among {waits:?}");
    }
}

#[test]
fn reads_writes_and_syncs_agree_with_pg_stat_io() {
    if support::major() == 15 {
        println!("PostgreSQL 15 has no pg_stat_io; storage_views compares the older views");
        return;
    }
    let methods = methods();
    if methods.is_empty() {
        compare(None);
    }
    for method in &methods {
        compare(Some(method));
    }
}

#[test]
fn processes_are_named_as_in_pg_stat_activity() {
    let mut builder = support::plain().setting("shared_preload_libraries", "pg_tally");
    let major = support::major();
    if major >= 17 {
        builder = builder.setting("summarize_wal", "on").setting("wal_level", "replica");
    }
    let cluster = support::start(builder);
    let mut client = cluster.connect().unwrap();
    support::create_views_in(&mut client);
    let list = |client: &mut Client, sql: &str| -> BTreeSet<(i32, String)> {
        client.query(sql, &[]).unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
    };
    let (mut ours, mut theirs) = (BTreeSet::new(), BTreeSet::new());
    support::eventually("all processes are known", || {
        ours = list(&mut client, "select pid, kind from tally.sessions");
        theirs = list(&mut client, "select pid, backend_type from pg_stat_activity");
        ours == theirs
    });
    println!("{ours:?}");
    let mut expected = vec!["checkpointer", "background writer", "walwriter", "client backend"];
    if major >= 17 {
        expected.push("walsummarizer");
    }
    if major >= 18 {
        expected.push("io worker");
    }
    for kind in expected {
        assert!(ours.iter().any(|(_, name)| name == kind), "no {kind}");
    }
}
