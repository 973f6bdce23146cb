// SPDX-License-Identifier: PostgreSQL
//! A load that uses files of all kinds: few buffers, little work_mem, fsync, another tablespace; and one
//! session that copies, rewrites, truncates and drops tables.

use std::path::PathBuf;

use postgres::Client;
use scratch::{Builder, Cluster};

use super::gate;

/// Settings that make a small database use files often.
pub fn server() -> Builder {
    super::flushing().settings([
        ("shared_preload_libraries", "pg_tally"),
        // Enough for all temporary tables; none must be evicted.
        ("pg_tally.max_relations", "20000"),
        ("shared_buffers", "1MB"),
        ("work_mem", "64kB"),
        ("maintenance_work_mem", "1MB"),
        ("temp_buffers", "800kB"),
        ("effective_io_concurrency", "8"),
        ("backend_flush_after", "64kB"),
        ("bgwriter_delay", "10ms"),
        ("bgwriter_flush_after", "64kB"),
        ("min_parallel_table_scan_size", "0"),
        ("parallel_setup_cost", "0"),
        ("parallel_tuple_cost", "0"),
        ("max_parallel_workers_per_gather", "0"),
        // No session wakes up while all wait at the gate.
        ("deadlock_timeout", "10min"),
        ("checkpoint_timeout", "1h"),
        ("autovacuum", "off"),
        // So sessions sync files too, and no process logs snapshots for standbys.
        ("wal_level", "minimal"),
        ("max_wal_senders", "0"),
    ])
}

/// Creates the tables; returns the tablespace's directory.
pub fn fill(cluster: &Cluster) -> PathBuf {
    let space = cluster.dir().join("elsewhere");
    std::fs::create_dir(&space).unwrap();
    cluster.os_user().chown(&space).unwrap();
    cluster.psql(&format!("create tablespace elsewhere location '{}'", space.display())).unwrap();
    cluster.pgbench_init(2).unwrap();
    cluster
        .psql(
            "create table wide (id int, other int, filler text) tablespace elsewhere; \
             insert into wide select n, n % 100, repeat('x', 100) from generate_series(1, 2500) n; \
             create index on wide (other)",
        )
        .unwrap();
    cluster.psql("vacuum analyze wide").unwrap();
    space
}

/// The script of pgbench's sessions, behind the gate: TPC-B, and in turn a sort, a hash join or a temporary table
/// larger than memory, a table that is created and dropped, a vacuum.
pub fn script() -> String {
    gate::tpcb()
        + "\\set what (:turn + 4 * :client_id) % 16 + 1
\\set turn :turn + 1
\\if :what <= 2
set temp_tablespaces = 'elsewhere';
select count(*) from (select * from wide order by filler, id desc offset 10) s;
reset temp_tablespaces;
\\elif :what <= 3
select count(*) from (select * from wide order by filler, id desc offset 10) s;
\\elif :what <= 4
set max_parallel_workers_per_gather = 2;
set enable_mergejoin = off;
select count(*) from wide a join wide b using (id) where a.filler = b.filler;
reset enable_mergejoin;
reset max_parallel_workers_per_gather;
\\elif :what <= 8
set enable_indexscan = off;
set enable_seqscan = off;
select sum(id) from wide where other between 10 and 40;
reset enable_indexscan;
reset enable_seqscan;
\\elif :what <= 9
create temp table t (n int, filler text);
insert into t select n, repeat('y', 400) from generate_series(1, 2500) n;
select count(*) from t;
drop table t;
\\elif :what <= 11
create table short_lived_:client_id (id int primary key, filler text);
insert into short_lived_:client_id select n, 'z' from generate_series(1, 300) n;
truncate short_lived_:client_id;
drop table short_lived_:client_id;
\\elif :what <= 13
vacuum pgbench_tellers;
\\endif
"
}

/// Runs in one additional session meanwhile.
pub fn churn(client: &mut Client, cluster: &Cluster) {
    let file = cluster.host().join("out.copy");
    let file = file.display();
    for sql in [
        &format!("copy pgbench_accounts to '{file}'"),
        "create table again (like pgbench_accounts)",
        &format!("copy again from '{file}'"),
        &format!(
            "begin; create table once (like pgbench_accounts); copy once from '{file}'; commit"
        ),
        "create index on again (aid)",
        "checkpoint",
        "vacuum (freeze) again",
        "delete from again where aid > 100000",
        "vacuum again",
        "alter table again set tablespace elsewhere",
        "vacuum full wide",
        "reindex table pgbench_accounts",
        "create unlogged table loose (id int primary key)",
        "truncate once",
        "create database copied strategy file_copy",
        "checkpoint",
        "drop database copied",
        "drop table again, once, loose",
        "checkpoint",
    ] {
        client.batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}
