// SPDX-License-Identifier: PostgreSQL
//! Unusual files: unlinked while open, in a thousand tablespaces, of more relations than the table can hold, in a
//! full tablespace in memory, and opened before a session loaded the library.

use crate::support;
use std::path::Path;
use std::process::Command;

use crate::support::slow_disk::rerun_in_mount_namespace;
use crate::support::{create_views, eventually};
use postgres::Client;
use scratch::{Builder, Cluster};

fn server() -> Builder {
    support::flushing().settings([
        ("shared_preload_libraries", "pg_tally"),
        ("shared_buffers", "1MB"),
        ("allow_in_place_tablespaces", "on"),
        ("checkpoint_timeout", "1h"),
        ("autovacuum", "off"),
    ])
}

fn with_views(builder: Builder) -> (Cluster, Client) {
    let cluster = support::start(builder);
    create_views(&cluster);
    let client = cluster.connect().unwrap();
    (cluster, client)
}

fn number(client: &mut Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}")).get(0)
}

#[test]
fn relations_are_shown_by_name_and_fork_and_temporary_ones_by_number() {
    let (_cluster, mut client) = with_views(server());
    for sql in [
        "create table named (n int, filler text)",
        "insert into named select n, repeat('x', 500) from generate_series(1, 5000) n",
        "create index named_n on named (n)",
        "create temp table fleeting (n int, filler text)",
        "set temp_buffers = '800kB'",
        "insert into fleeting select n, repeat('y', 500) from generate_series(1, 5000) n",
        "vacuum named",
        "checkpoint",
        "select count(*) from named",
        "truncate named",
    ] {
        client.batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let row = |client: &mut Client, what: &str| {
        let sql = format!(
            "select reads, read_bytes, extends, extend_bytes, syncs, truncates, max_read_seconds \
             from tally.relations where {what} order by extends + reads desc limit 1"
        );
        client.query_one(&sql, &[]).unwrap_or_else(|error| panic!("{what}: {error}"))
    };
    // After TRUNCATE, the table has a new file, and the old one no longer has a name.
    let old =
        row(&mut client, "relation is null and fork = 'main' and not temporary and extends > 300");
    let pages = number(&mut client, "select 5000::bigint / 15 + 1");
    assert!(old.get::<_, i64>(2) >= pages && old.get::<_, i64>(4) >= 1, "{old:?}");
    assert_eq!(old.get::<_, i64>(3), 8192 * old.get::<_, i64>(2));
    assert!(old.get::<_, i64>(0) >= pages && old.get::<_, f64>(6) > 0.0, "{old:?}");
    assert!(old.get::<_, i64>(5) >= 1, "its file was truncated: {old:?}");
    let catalog = row(&mut client, "relation = 'pg_class' and fork = 'main'");
    assert!(catalog.get::<_, i64>(0) > 0, "{catalog:?}");
    let shared = row(&mut client, "relation = 'pg_database' and datname is null");
    assert!(shared.get::<_, i64>(0) > 0, "{shared:?}");
    let fleeting = row(&mut client, "temporary and fork = 'main'");
    assert!(fleeting.get::<_, i64>(2) >= pages, "{fleeting:?}");
    let forks = "select count(distinct fork) from tally.relations where fork in ('fsm', 'vm')";
    assert_eq!(number(&mut client, forks), 2);
    // The totals agree with those by kind of file, as long as no other process does anything between the two
    // readings.
    for (columns, operation) in [("reads", "read"), ("writes", "write"), ("extends", "extend")] {
        let of_kinds = format!(
            "select sum(count)::bigint from tally.files where operation = '{operation}' and \
             file in ('main', 'fsm', 'vm', 'init', 'temporary relation')"
        );
        let of_relations = format!("select sum({columns})::bigint from tally.relations");
        let both = format!("select ({of_kinds}) - ({of_relations})");
        eventually(operation, || number(&mut client, &both) == 0);
    }
    assert_eq!(
        number(&mut client, "select count(*) from tally.relations where relation = '(others)'"),
        0
    );
    client.batch_execute("select tally.reset()").unwrap();
    let left = number(&mut client, "select coalesce(sum(extends), 0)::bigint from tally.relations");
    assert_eq!(left, 0);
}

#[test]
fn a_thousand_tablespaces_and_more_relations_than_the_table_holds_are_counted() {
    let builder = server().setting("pg_tally.max_relations", "300");
    let (_cluster, mut client) = with_views(builder);
    for n in 0..1000 {
        for sql in [
            format!("create tablespace s{n} location ''"),
            format!("create table t{n} (n int) tablespace s{n}"),
            format!("insert into t{n} values ({n})"),
        ] {
            client.batch_execute(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }
    client.batch_execute("checkpoint").unwrap();
    let status = "select value::bigint from tally.status where name = 'relations overflow'";
    assert!(number(&mut client, status) > 500);
    let rows = number(&mut client, "select count(*) from tally.relations");
    assert!((270..=301).contains(&rows), "{rows}");
    let others = "select extends from tally.relations where relation = '(others)'";
    assert!(number(&mut client, others) >= 600);
    let both = "select (select sum(count)::bigint from tally.files where operation = 'extend' and \
                file in ('main', 'fsm', 'vm', 'init', 'temporary relation', 'other')) - \
                (select sum(extends)::bigint from tally.relations)";
    assert_eq!(number(&mut client, both), 0);
    let spaces = "select count(distinct tablespace) from tally.relations";
    assert!(number(&mut client, spaces) > 150);
    let text = support::output(support::tally().arg("status").arg(support::segment(&_cluster)));
    assert!(text.contains("in a table of 300, "), "{text}");
}

#[test]
fn a_file_unlinked_while_open_is_counted_and_frees_its_name() {
    let (cluster, mut client) = with_views(server());
    let mut other = cluster.connect().unwrap();
    let mut all = 0;
    for round in 0..3 {
        for sql in [
            "create table dropped as select n, repeat('x', 500) filler from generate_series(1, 3000) n",
            "checkpoint",
        ] {
            client.batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        let node = number(&mut client, "select pg_relation_filenode('dropped')::bigint");
        // This session keeps the file open and does not notice that it was dropped.
        other.batch_execute("select count(*) from dropped").unwrap();
        client.batch_execute("drop table dropped").unwrap();
        client.batch_execute("checkpoint").unwrap();
        let sql = format!(
            "select reads from tally.relations where relfilenode = {node} and fork = 'main'"
        );
        let reads = number(&mut client, &sql);
        assert!(reads >= 150, "round {round}: {reads}");
        all += reads;
    }
    assert!(all > 0);
    client.batch_execute("select count(*) from pg_class").unwrap();
}

#[test]
fn files_opened_before_the_library_was_loaded_are_known_by_the_servers_names() {
    let builder = support::flushing().settings([
        ("session_preload_libraries", "pg_tally"),
        ("pg_tally.slow_threshold", "0"),
        ("wal_level", "minimal"),
        ("wal_skip_threshold", "0"),
        ("max_wal_senders", "0"),
    ]);
    let cluster = support::start(builder);
    let space = cluster.dir().join("far away");
    std::fs::create_dir(&space).unwrap();
    cluster.os_user().chown(&space).unwrap();
    let sql = format!("create tablespace far location '{}'", space.display());
    cluster.psql(&sql).unwrap();
    cluster.psql("create database there tablespace far").unwrap();
    let mut config = cluster.config();
    let mut client = config.dbname("there").connect(postgres::NoTls).unwrap();
    support::create_views_in(&mut client);
    drop(client);
    // This session opened the catalogs of this database before it loaded the library.
    let mut client = config.dbname("there").connect(postgres::NoTls).unwrap();
    client
        .batch_execute(
            "begin; create table u as select n, repeat('z', 300) from generate_series(1, 3000) n; commit",
        )
        .unwrap();
    let sql =
        "select count(*) from tally.relations where tablespace = 'far' and relation like 'pg\\_%'";
    assert!(number(&mut client, sql) > 3, "its catalogs have names");
    let sql = "select count(*) from tally.files where tablespace = 'far' and file = 'main'";
    assert!(number(&mut client, sql) > 0);
    // With wal_level minimal, the session that made and wrote a new table syncs it.
    let sql = "select text from tally.events where text like 'sync: % s, after % writes of %'";
    let rows = client.query(sql, &[]).unwrap();
    let texts: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    println!("{texts:#?}");
    assert!(texts.iter().any(|text| text.contains("/PG_15_")), "{texts:?}");
}

/// Mounts a small tmpfs in this test's mount namespace; returns false if that is not possible here.
fn mount_tmpfs(place: &Path) -> bool {
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(place);
    match mount.output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            println!("not tested: {}", String::from_utf8_lossy(&output.stderr));
            false
        }
        Err(error) => {
            println!("not tested: mount: {error}");
            false
        }
    }
}

#[test]
fn a_full_tablespace_in_memory_fails_inserts_as_it_does_without_the_extension() {
    if rerun_in_mount_namespace(
        "file_bad_input::a_full_tablespace_in_memory_fails_inserts_as_it_does_without_the_extension",
    ) {
        return;
    }
    let mut cluster = server().create().unwrap();
    let segment = support::segment(&cluster);
    cluster.also_remove(&segment);
    let space = cluster.dir().join("memory");
    std::fs::create_dir(&space).unwrap();
    if !mount_tmpfs(&space) {
        return;
    }
    cluster.os_user().chown(&space).unwrap();
    cluster.start().unwrap();
    create_views(&cluster);
    let mut client = cluster.connect().unwrap();
    for sql in [
        &format!("create tablespace memory location '{}'", space.display()),
        "create table m (filler text) tablespace memory",
        "insert into m select repeat('x', 500) from generate_series(1, 1000)",
        "checkpoint",
    ] {
        client.batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let of = |column: &str| {
        format!("select {column} from tally.relations where relation = 'm' and fork = 'main' and tablespace = 'memory'")
    };
    let grown = number(&mut client, &of("extends"));
    assert!(grown >= 60 && number(&mut client, &of("syncs")) >= 1, "{grown}");
    assert_eq!(number(&mut client, &of("failed")), 0);

    let error = client
        .batch_execute("insert into m select repeat('x', 500) from generate_series(1, 10000)")
        .unwrap_err();
    let db_error = error.as_db_error().unwrap();
    assert_eq!(db_error.code().code(), "53100", "{error}");
    assert!(db_error.message().starts_with("could not extend file"), "{error}");
    let sql = "select text from tally.events where kind = 'warning' order by number desc limit 1";
    eventually("the failure is reported", || {
        let row = client.query_opt(sql, &[]).unwrap();
        row.is_some_and(|row| {
            let text: String = row.get(0);
            println!("{text}");
            text.starts_with("extend failed: No space left on device: ")
                && text.contains("memory/PG_15_")
        })
    });
    assert_eq!(number(&mut client, &of("failed")), 1);
    let sql = "select sum(count)::bigint from tally.files where operation = 'extend' and failed";
    assert_eq!(number(&mut client, sql), 1);
    // The server keeps working.
    for sql in [
        "drop table m",
        "checkpoint",
        "create table m (filler text) tablespace memory",
        "insert into m values ('x')",
        "checkpoint",
    ] {
        client.batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    assert_eq!(number(&mut client, "select count(*) from m"), 1);
    let text = support::output(
        support::tally().args(["top", "--once", "--view", "io", "--interval", "0.5"]).arg(&segment),
    );
    assert!(text.contains("Relations, busiest first") || text.contains("Files"), "{text}");
    drop(client);
    // Unmount before the cluster is removed: a mount point cannot be removed.
    cluster.stop(scratch::StopMode::Fast).unwrap();
    assert!(Command::new("umount").arg(&space).status().unwrap().success());
}
