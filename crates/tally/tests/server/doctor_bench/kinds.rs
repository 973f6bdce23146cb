// SPDX-License-Identifier: PostgreSQL
//! The kinds of problems that the bench plants. A new kind is one entry of [`KINDS`].

use std::sync::atomic::Ordering;
use std::time::Duration;

use postgres::NoTls;
use rustix::process::{kill_process, Pid, Signal};

use super::scene::Scene;
use super::servers::Profile;
use crate::support::eventually;

/// A kind of problem.
pub struct Kind {
    pub name: &'static str,
    /// Rules that name its mechanism.
    pub rules: &'static [&'static str],
    /// Rules that may be right as well, beside it.
    pub beside: &'static [&'static str],
    pub profile: Profile,
    /// How old it must be to be a problem, seconds.
    pub ripens: u64,
    /// Plants it, and notes which words must be said of it.
    pub plant: fn(&mut Scene),
    /// Beginnings of the statements in its advice that end it when they are executed as they are.
    pub cure: &'static [&'static str],
}

const KIND: Kind = Kind {
    name: "",
    rules: &[],
    beside: &[],
    profile: Profile::Ordinary,
    ripens: 0,
    plant: |_| (),
    cure: &[],
};

/// What takes longer than this is old for the rules about sessions and transactions that last, seconds.
const OLD: u64 = 62;

const TERMINATE: &[&str] = &["SELECT pg_terminate_backend"];

/// All of them.
pub const KINDS: &[Kind] = &[
    Kind { name: "missing-index", rules: &["missing-index"], plant: missing_index, ..KIND },
    Kind {
        name: "missing-index-in-function",
        rules: &["missing-index"],
        plant: missing_index_in_function,
        ..KIND
    },
    Kind {
        name: "foreign-key-without-index",
        rules: &["missing-index"],
        plant: foreign_key,
        ..KIND
    },
    Kind {
        name: "plan-change",
        rules: &["plan-change"],
        beside: &["missing-index"],
        plant: plan_change,
        ..KIND
    },
    Kind { name: "temporary-files", rules: &["temporary-files"], plant: temporary_files, ..KIND },
    Kind {
        name: "slow-wal-device",
        rules: &["commits"],
        profile: Profile::SlowWal,
        plant: slow_wal,
        ..KIND
    },
    Kind { name: "connection-storm", rules: &["connections"], plant: connections, ..KIND },
    Kind { name: "slow-reader", rules: &["slow-clients"], plant: slow_reader, ..KIND },
    Kind { name: "hot-row", rules: &["locks"], plant: hot_row, ..KIND },
    Kind {
        name: "forgotten-transaction",
        rules: &["locks"],
        plant: forgotten_transaction,
        cure: TERMINATE,
        ..KIND
    },
    Kind {
        name: "ddl-queue",
        rules: &["locks"],
        plant: ddl_queue,
        cure: &["SELECT pg_cancel_backend"],
        ..KIND
    },
    Kind {
        name: "advisory-lock",
        rules: &["locks"],
        plant: advisory_lock,
        cure: TERMINATE,
        ..KIND
    },
    Kind { name: "deadlocks", rules: &["deadlocks"], beside: &["locks"], plant: deadlocks, ..KIND },
    Kind {
        name: "lightweight-lock",
        rules: &["lightweight-locks"],
        beside: &["statement-flood"],
        profile: Profile::StatementTable,
        plant: lightweight_lock,
        ..KIND
    },
    Kind {
        name: "held-snapshot",
        rules: &["vacuum-behind"],
        beside: &["idle-in-transaction"],
        plant: held_snapshot,
        cure: TERMINATE,
        ..KIND
    },
    Kind { name: "row-by-row", rules: &["many-small-statements"], plant: row_by_row, ..KIND },
    Kind {
        name: "row-by-row-autocommit",
        rules: &["many-small-statements"],
        plant: row_by_row_autocommit,
        ..KIND
    },
    Kind {
        name: "frequent-checkpoints",
        rules: &["checkpoints"],
        profile: Profile::SmallWal,
        plant: checkpoints,
        cure: &["ALTER SYSTEM SET max_wal_size", "SELECT pg_reload_conf"],
        ..KIND
    },
    Kind { name: "planning", rules: &["planning"], plant: planning, ..KIND },
    Kind {
        name: "jit",
        rules: &["jit"],
        plant: jit,
        cure: &["ALTER SYSTEM SET jit = off", "SELECT pg_reload_conf"],
        ..KIND
    },
    Kind {
        name: "throttled-autovacuum",
        rules: &["vacuum-throttled"],
        beside: &["vacuum-behind"],
        profile: Profile::ThrottledVacuum,
        ripens: OLD,
        plant: throttled_vacuum,
        cure: &[
            "ALTER SYSTEM SET autovacuum_vacuum_cost_limit",
            "ALTER SYSTEM SET autovacuum_vacuum_cost_delay",
            "SELECT pg_reload_conf",
            "SELECT pg_cancel_backend",
        ],
    },
    Kind {
        name: "stale-statistics",
        rules: &["stale-statistics"],
        beside: &["missing-index"],
        plant: stale_statistics,
        cure: &["ANALYZE"],
        ..KIND
    },
    Kind {
        name: "catalog-bloat",
        rules: &["catalog-bloat"],
        plant: catalog_bloat,
        cure: &["VACUUM FULL"],
        ..KIND
    },
    Kind {
        name: "inactive-slot",
        rules: &["replication-slot"],
        plant: inactive_slot,
        cure: &["SELECT pg_drop_replication_slot"],
        ..KIND
    },
    Kind {
        name: "lagging-slot",
        rules: &["replication-slot"],
        profile: Profile::InMemory,
        plant: lagging_slot,
        ..KIND
    },
    Kind {
        name: "standby-gone",
        rules: &["replication"],
        plant: standby_gone,
        cure: &["ALTER SYSTEM SET synchronous_standby_names", "SELECT pg_reload_conf"],
        ..KIND
    },
    Kind {
        name: "prepared-transaction-blocks",
        rules: &["locks", "prepared-transaction"],
        beside: &["prepared-transaction"],
        plant: prepared_blocks,
        cure: &["ROLLBACK PREPARED"],
        ..KIND
    },
    Kind {
        name: "prepared-transaction-left",
        rules: &["prepared-transaction"],
        ripens: OLD,
        plant: prepared_left,
        cure: &["ROLLBACK PREPARED"],
        ..KIND
    },
    Kind {
        name: "wraparound",
        rules: &["wraparound"],
        profile: Profile::Old,
        plant: |scene| scene.must_name("VACUUM FREEZE"),
        ..KIND
    },
    Kind {
        name: "endless-statements",
        rules: &["long-statement"],
        ripens: OLD,
        plant: endless,
        cure: &["SELECT pg_cancel_backend"],
        ..KIND
    },
    Kind {
        name: "idle-in-transaction",
        rules: &["idle-in-transaction"],
        ripens: OLD,
        plant: idle_in_transaction,
        cure: TERMINATE,
        ..KIND
    },
    Kind {
        name: "blocked-log",
        rules: &["log-pipe", "stopped-process"],
        beside: &["stopped-process", "log-pipe"],
        profile: Profile::LogCollector,
        plant: blocked_log,
        ..KIND
    },
    Kind {
        name: "stopped-session",
        rules: &["locks", "stopped-process"],
        beside: &["locks", "stopped-process"],
        plant: stopped_session,
        ..KIND
    },
    Kind {
        name: "autovacuum-off",
        rules: &["vacuum-behind"],
        plant: autovacuum_off,
        cure: &["VACUUM "],
        ..KIND
    },
];

fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

/// A table of so many rows with this column, without an index on it.
fn filled(scene: &Scene, table: &str, column: &str, rows: u64) {
    scene.sql(&format!(
        "create table {table} (id int primary key, {column} int, filler text);
         insert into {table} select n, n % 5000, repeat('x', 100) from generate_series(1, {rows}) n"
    ));
    scene.sql(&format!("vacuum analyze {table}"));
}

fn missing_index(scene: &mut Scene) {
    let (table, column) = (scene.table(), scene.column());
    scene.must_name(&column);
    filled(scene, &table, &column, scene.by(60_000, 250_000));
    let rest = scene.by(10, 0);
    for _ in 0..scene.by(1, 2) {
        let application = scene.application();
        let sql = format!("select id, filler from {table} where {column} = ");
        let mut n = 0;
        scene.again(&application, move |client| {
            n += 1;
            let _ = client.simple_query(&format!("{sql}{}", n % 5000));
            pause(rest);
        });
    }
}

fn missing_index_in_function(scene: &mut Scene) {
    let (table, column) = (scene.table(), scene.column());
    filled(scene, &table, &column, scene.by(60_000, 200_000));
    scene.sql(&format!(
        "create function total(wanted int) returns bigint language plpgsql as
         $$ begin return (select count(*) from {table} where {column} = wanted); end $$"
    ));
    let rest = scene.by(10, 0);
    scene.again("reporter", move |client| {
        let _ = client.simple_query("select total(4711)");
        pause(rest);
    });
}

fn foreign_key(scene: &mut Scene) {
    let (child, column) = (scene.table(), scene.column());
    filled(scene, &child, &column, scene.by(60_000, 200_000));
    scene.sql(&format!(
        "create table parent as select n as id from generate_series(0, 9999) n;
         alter table parent add primary key (id);
         alter table {child} add foreign key ({column}) references parent (id)"
    ));
    let mut n = 5000;
    scene.again("cleanup", move |client| {
        n = if n < 9999 { n + 1 } else { 5000 };
        let _ = client.simple_query(&format!("delete from parent where id = {n}"));
        let _ =
            client.simple_query(&format!("insert into parent values ({n}) on conflict do nothing"));
    });
}

fn plan_change(scene: &mut Scene) {
    let (table, column) = (scene.table(), scene.column());
    filled(scene, &table, &column, scene.by(60_000, 200_000));
    scene.sql(&format!("create index on {table} ({column})"));
    let sql = format!("select id, filler from {table} where {column} = ");
    for _ in 0..scene.by(1, 2) {
        let (sql, mut n) = (sql.clone(), 0);
        scene.again("webshop", move |client| {
            n += 1;
            let _ = client.simple_query(&format!("{sql}{}", n % 5000));
            pause(5);
        });
    }
    // A third of the watch is before it.
    let before = Duration::from_secs(1 + scene.seconds / 3);
    let config = scene.config("migration");
    scene.thread(move || {
        std::thread::sleep(before);
        if let Ok(mut client) = config.connect(NoTls) {
            let _ = client.batch_execute(&format!("drop index {table}_{column}_idx"));
        }
    });
}

fn temporary_files(scene: &mut Scene) {
    let table = scene.table();
    scene.sql(&format!(
        "create table {table} as select n, md5(n::text) || repeat('x', 50) as filler from generate_series(1, {}) n;
         analyze {table}",
        scene.by(60_000, 200_000)
    ));
    let sql =
        format!("select count(*) from (select filler from {table} order by filler offset 1) s");
    let rest = scene.by(50, 0);
    scene.again("reporter", move |client| {
        let _ = client.simple_query(&sql);
        pause(rest);
    });
}

fn slow_wal(scene: &mut Scene) {
    scene.must_name("sync of the WAL");
    let table = scene.table();
    scene.truth.pop();
    scene.sql(&format!("create table {table} (n int)"));
    for _ in 0..scene.by(2, 4) {
        let sql = format!("insert into {table} values (1)");
        scene.again("importer", move |client| {
            let _ = client.simple_query(&sql);
        });
    }
}

fn connections(scene: &mut Scene) {
    let application = scene.application();
    scene.must_name(&application);
    let role = scene.role.clone();
    scene.must_name(role);
    let rest = scene.by(20, 0);
    for _ in 0..scene.by(2, 4) {
        let (config, stop) = (scene.config(&application), scene.stop());
        scene.thread(move || {
            while !stop.load(Ordering::Relaxed) {
                if let Ok(mut client) = config.connect(NoTls) {
                    let _ = client.simple_query("select 1");
                }
                pause(rest);
            }
        });
    }
}

fn slow_reader(scene: &mut Scene) {
    let application = scene.application();
    scene.must_name(&application);
    for _ in 0..scene.by(1, 3) {
        scene.reads_slowly(
            &application,
            "select repeat('x', 1000) from generate_series(1, 1000000)",
        );
    }
}

fn hot_row(scene: &mut Scene) {
    let table = scene.table();
    scene.sql(&format!("create table {table} (n int); insert into {table} values (0)"));
    let held = scene.by(15, 30);
    for _ in 0..scene.by(3, 6) {
        let sql = format!("begin; update {table} set n = n + 1");
        scene.again("worker", move |client| {
            let _ = client.batch_execute(&sql);
            pause(held);
            let _ = client.batch_execute("commit");
        });
    }
}

/// This many sessions wait for the lock.
fn wait(scene: &mut Scene, sql: &str, sessions: usize) {
    for _ in 0..sessions {
        scene.once("webshop", sql);
    }
    scene.until(&format!(
        "select count(*) >= {sessions} from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock'"
    ));
}

fn forgotten_transaction(scene: &mut Scene) {
    let (table, application) = (scene.table(), scene.application());
    scene.must_name(&application);
    scene.sql(&format!(
        "create table {table} (id int primary key, n int); insert into {table} values (1, 0), (2, 0)"
    ));
    let (mut holder, pid) = scene.session(&application);
    scene.must_name(pid);
    holder.batch_execute(&format!("begin; update {table} set n = 1 where id = 1")).unwrap();
    scene.keep(holder);
    wait(scene, &format!("update {table} set n = n + 1 where id = 1"), scene.by(1, 4));
}

fn ddl_queue(scene: &mut Scene) {
    let table = scene.table();
    scene.sql(&format!("create table {table} (n int); insert into {table} values (0)"));
    let (mut root, pid) = scene.session("reporter");
    scene.must_name(pid);
    if scene.severe {
        let sql = format!("select n, pg_sleep(600) from {table}");
        drop(root);
        scene.truth.pop();
        let pid = scene.once("reporter", &sql);
        scene.must_name(pid);
        scene.until("select count(*) > 0 from pg_stat_activity where wait_event = 'PgSleep'");
    } else {
        root.batch_execute(&format!("begin; select n from {table}")).unwrap();
        scene.keep(root);
    }
    let ddl = scene.once("migration", &format!("alter table {table} add column note text"));
    scene.must_name(ddl);
    scene
        .until(&format!("select wait_event_type = 'Lock' from pg_stat_activity where pid = {ddl}"));
    wait(scene, &format!("select n from {table}"), scene.by(2, 5));
}

fn advisory_lock(scene: &mut Scene) {
    let application = scene.application();
    scene.must_name(&application);
    let key = scene.number(1, 9999);
    let (mut holder, pid) = scene.session(&application);
    scene.must_name(pid);
    holder.batch_execute(&format!("select pg_advisory_lock({key})")).unwrap();
    scene.keep(holder);
    wait(scene, &format!("select pg_advisory_lock({key})"), scene.by(1, 4));
}

fn deadlocks(scene: &mut Scene) {
    let table = scene.table();
    scene.sql(&format!(
        "create table {table} (id int primary key, n int); insert into {table} values (1, 0), (2, 0)"
    ));
    let rest = scene.by(300, 20);
    for [first, second] in [[1, 2], [2, 1]] {
        let change =
            [first, second].map(|id| format!("update {table} set n = n + 1 where id = {id}"));
        scene.again("transfers", move |client| {
            let _ = client.batch_execute(&format!("begin; {}", change[0]));
            pause(50);
            let _ = client.batch_execute(&change[1]);
            let _ = client.batch_execute("commit");
            pause(rest);
        });
    }
}

fn lightweight_lock(scene: &mut Scene) {
    scene.must_name("pg_stat_statements");
    scene.superuser().batch_execute("create extension if not exists pg_stat_statements").unwrap();
    for writer in 0..scene.by(4, 6) {
        let mut n = writer;
        scene.again("worker", move |client| {
            n += 7;
            let columns = (0..9).map(|bit| if n >> bit & 1 == 0 { "1 + 1" } else { "1 - 1" });
            let _ =
                client.simple_query(&format!("select {}", columns.collect::<Vec<_>>().join(", ")));
        });
    }
    for _ in 0..3 {
        scene.again("monitor", |client| {
            let _ = client.simple_query("select count(*) from pg_stat_statements");
        });
    }
}

/// A table, all of whose rows are dead once.
fn with_dead_rows(scene: &Scene, table: &str, rows: u64) {
    scene.sql(&format!("create table {table} (id int, v int) with (autovacuum_enabled = off)"));
    scene.sql(&format!("insert into {table} select n, 0 from generate_series(1, {rows}) n"));
    scene.sql(&format!("analyze {table}"));
}

fn held_snapshot(scene: &mut Scene) {
    let (table, application) = (scene.table(), scene.application());
    scene.must_name(&application);
    let rows = scene.by(30_000, 120_000);
    with_dead_rows(scene, &table, rows);
    let (mut holder, pid) = scene.session(&application);
    scene.must_name(pid);
    holder
        .batch_execute(&format!(
            "begin isolation level repeatable read; select count(*) from {table}"
        ))
        .unwrap();
    scene.keep(holder);
    scene.sql(&format!("update {table} set v = v + 1"));
    scene.sql(&format!("vacuum {table}"));
    scene.until(&format!(
        "select n_dead_tup >= {rows} and last_vacuum is not null from pg_stat_user_tables where relname = '{table}'"
    ));
}

fn autovacuum_off(scene: &mut Scene) {
    let table = scene.table();
    let rows = scene.by(30_000, 120_000);
    with_dead_rows(scene, &table, rows);
    scene.sql(&format!("update {table} set v = v + 1"));
    scene.until(&format!(
        "select n_dead_tup >= {rows} from pg_stat_user_tables where relname = '{table}'"
    ));
}

fn items(scene: &Scene, table: &str) {
    scene.sql(&format!(
        "create table {table} (id int primary key, name text);
         insert into {table} select n, 'x' from generate_series(1, 1000) n; analyze {table}"
    ));
}

fn row_by_row(scene: &mut Scene) {
    let (table, application) = (scene.table(), scene.application());
    scene.must_name(&application);
    items(scene, &table);
    let (all, think) = (scene.by(200, 1000), scene.by(300, 0));
    scene.again(&application, move |client| {
        let _ = client.batch_execute("begin");
        for id in 1..=all {
            let _ = client.simple_query(&format!("select name from {table} where id = {id}"));
            pause(1);
        }
        let _ = client.batch_execute("commit");
        pause(think);
    });
}

fn row_by_row_autocommit(scene: &mut Scene) {
    let (table, application) = (scene.table(), scene.application());
    scene.must_name(&application);
    items(scene, &table);
    let all = scene.by(80, 300);
    scene.again(&application, move |client| {
        let _ = client.simple_query(&format!("select id from {table} order by id limit {all}"));
        for id in 1..=all {
            let _ = client.simple_query(&format!("select name from {table} where id = {id}"));
            pause(1);
        }
        pause(200);
    });
}

fn checkpoints(scene: &mut Scene) {
    scene.must_name("max_wal_size");
    let table = scene.table();
    scene.truth.pop();
    scene.sql(&format!("create table {table} (n int, filler text)"));
    let rest = scene.by(100, 0);
    let sql =
        format!("insert into {table} select n, repeat('x', 500) from generate_series(1, 2000) n");
    scene.again("importer", move |client| {
        let _ = client.simple_query(&sql);
        pause(rest);
    });
}

fn planning(scene: &mut Scene) {
    let table = scene.table();
    scene.sql(&format!(
        "create table {table} as select n from generate_series(1, 10) n; analyze {table}"
    ));
    let list: Vec<String> = (0..5000).map(|n| n.to_string()).collect();
    let sql = format!("select n from {table} where n in ({}) and n < 0", list.join(", "));
    let rest = scene.by(10, 0);
    scene.again("webshop", move |client| {
        let _ = client.simple_query(&sql);
        pause(rest);
    });
}

fn jit(scene: &mut Scene) {
    let table = scene.table();
    // The table is behind the beginning that sentences show.
    scene.truth.pop();
    scene.must_name("select sum(n), avg(n)");
    scene.sql(&format!(
        "create table {table} as select n from generate_series(1, 100) n; analyze {table}"
    ));
    scene.admin(&format!("alter role {} set jit_above_cost = 0", scene.role));
    scene.at_the_end("alter system reset jit");
    scene.at_the_end("select pg_reload_conf()");
    let sql = format!(
        "select sum(n), avg(n), min(n), max(n), count(*) filter (where n % 3 = 1), sum(n * n) from {table} where n > 5"
    );
    let rest = scene.by(30, 0);
    scene.again("reporter", move |client| {
        let _ = client.simple_query(&sql);
        pause(rest);
    });
}

fn throttled_vacuum(scene: &mut Scene) {
    let table = scene.table();
    scene.must_name("autovacuum_vacuum_cost_delay");
    let rows = scene.by(150_000, 250_000);
    scene.sql(&format!(
        "create table {table} (id int, v int, filler text) with (autovacuum_enabled = off)"
    ));
    scene.sql(&format!(
        "insert into {table} select n, 0, repeat('x', 100) from generate_series(1, {rows}) n"
    ));
    scene.sql(&format!("analyze {table}"));
    for _ in 0..2 {
        scene.sql(&format!("update {table} set v = v + 1"));
    }
    scene.sql(&format!("alter table {table} reset (autovacuum_enabled)"));
    scene.until(&format!(
        "select count(*) > 0 from pg_stat_activity where backend_type = 'autovacuum worker' and query like '%{table}%'"
    ));
}

fn stale_statistics(scene: &mut Scene) {
    let (table, column) = (scene.table(), scene.column());
    let rows = scene.by(4_000, 8_000);
    scene.sql(&format!(
        "create table {table} (id int, {column} int) with (autovacuum_enabled = off);
         insert into {table} select n, n % 10 from generate_series(1, {rows}) n"
    ));
    scene.until(&format!(
        "select n_live_tup >= {rows} from pg_stat_user_tables where relname = '{table}'"
    ));
    let sql =
        format!("select count(*) from {table} a join {table} b using ({column}) where a.id < b.id");
    let rest = scene.by(50, 0);
    scene.again("reporter", move |client| {
        let _ = client.simple_query(&sql);
        pause(rest);
    });
}

/// Autovacuum may come at any time: then space is used again, and empty pages at the end are given back. So the table grows until
/// it has its size, with rows that stay in all of its parts.
fn catalog_bloat(scene: &mut Scene) {
    /// Bytes.
    const MB: i64 = 1 << 20;

    scene.must_name("pg_attribute");
    scene.must_name(scene.database.clone());
    let columns: Vec<String> = (0..1500).map(|n| format!("c{n} int")).collect();
    let sql = format!("create temporary table x ({}); drop table x", columns.join(", "));
    let (mut client, _) = scene.session("importer");
    let wanted = scene.by(20, 32) * MB;
    let mut size = 0;
    for n in 0.. {
        client.batch_execute(&sql).unwrap();
        if n % 8 == 0 {
            let kept = columns[..40].join(", ");
            client.batch_execute(&format!("create table kept_{n} ({kept})")).unwrap();
            let row = client.query_one("select pg_relation_size('pg_attribute')", &[]).unwrap();
            size = row.get(0);
        }
        if size >= wanted {
            break;
        }
        assert!(n < 2000, "pg_attribute has {size} bytes");
    }
    // The last rows stay, so vacuum gives back little.
    let bloated = format!("select pg_relation_size('pg_attribute') >= {}", 17 * MB);
    scene.until(&bloated);
    drop(client);
    scene.until(
        "select n_dead_tup > 100000 or n_live_tup < 10000 from pg_stat_sys_tables where relname = 'pg_attribute'",
    );
}

fn switch_wal(scene: &Scene, times: usize) {
    let mut client = scene.cluster.connect().unwrap();
    for _ in 0..times {
        client
            .batch_execute(
                "select pg_logical_emit_message(false, 'x', 'x'); select pg_switch_wal()",
            )
            .unwrap();
    }
}

fn inactive_slot(scene: &mut Scene) {
    let slot = format!("slot_{}", scene.number(100, 999));
    scene.must_name(&slot);
    if scene.severe {
        scene
            .superuser()
            .batch_execute(&format!(
                "select pg_create_logical_replication_slot('{slot}', 'pgoutput')"
            ))
            .unwrap();
    } else {
        scene.admin(&format!("select pg_create_physical_replication_slot('{slot}', true)"));
    }
    scene.at_the_end(&format!(
        "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = '{slot}'"
    ));
    switch_wal(scene, scene.by(4, 10));
}

fn lagging_slot(scene: &mut Scene) {
    let slot = format!("slot_{}", scene.number(100, 999));
    scene.must_name(&slot);
    scene.admin(&format!("select pg_create_physical_replication_slot('{slot}', true)"));
    scene.at_the_end(&format!(
        "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = '{slot}'"
    ));
    let pid = scene.program("pg_receivewal", &["-D", ".", "-S", &slot]);
    scene.until(&format!("select active from pg_replication_slots where slot_name = '{slot}'"));
    scene.freeze(pid);
    switch_wal(scene, scene.by(270, 330));
}

fn standby_gone(scene: &mut Scene) {
    let name = format!("standby_{}", scene.number(10, 99));
    scene.must_name(&name);
    let table = scene.table();
    scene.truth.pop();
    scene.sql(&format!("create table {table} (n int)"));
    // First of what is undone.
    scene.at_the_end("alter system reset synchronous_standby_names");
    scene.at_the_end("select pg_reload_conf()");
    scene.admin(&format!("alter system set synchronous_standby_names = '{name}'"));
    scene.admin("select pg_reload_conf()");
    let cluster = scene.cluster;
    eventually("the setting is known", || {
        cluster.psql("show synchronous_standby_names").is_ok_and(|value| value == name)
    });
    for _ in 0..scene.by(1, 4) {
        scene.once("webshop", &format!("insert into {table} values (1)"));
    }
    scene.until("select count(*) > 0 from pg_stat_activity where wait_event = 'SyncRep'");
}

fn prepared(scene: &mut Scene) -> String {
    let table = scene.table();
    scene.truth.pop();
    scene.sql(&format!("create table {table} (n int); insert into {table} values (0)"));
    let gid = format!("xa-{}", scene.number(1000, 9999));
    scene.must_name(&gid);
    scene.sql(&format!("begin; update {table} set n = 1; prepare transaction '{gid}'"));
    table
}

fn prepared_blocks(scene: &mut Scene) {
    let table = prepared(scene);
    wait(scene, &format!("update {table} set n = n + 1"), scene.by(1, 4));
}

fn prepared_left(scene: &mut Scene) {
    prepared(scene);
}

fn endless(scene: &mut Scene) {
    let table = scene.table();
    scene.sql(&format!(
        "create table {table} as select n from generate_series(1, 30000) n; analyze {table}"
    ));
    let sql = format!("select count(*) from {table} a, {table} b, {table} c where a.n < b.n + c.n");
    let pid = scene.once("reporter", &sql);
    scene.must_name(pid);
    if scene.severe {
        let pid = scene.once("reporter", &sql);
        scene.must_name(pid);
    }
}

fn idle_in_transaction(scene: &mut Scene) {
    let (table, application) = (scene.table(), scene.application());
    scene.truth.pop();
    scene.must_name(&application);
    scene.sql(&format!("create table {table} (n int); insert into {table} values (0)"));
    let (mut holder, pid) = scene.session(&application);
    scene.must_name(pid);
    let sql = scene.by("select n from", "select n from only");
    holder.batch_execute(&format!("begin; {sql} {table}")).unwrap();
    scene.keep(holder);
}

fn blocked_log(scene: &mut Scene) {
    let logger = scene
        .cluster
        .processes()
        .iter()
        .find(|process| process.title.contains("logger"))
        .expect("the server has a log collector")
        .pid as i32;
    scene.must_name(logger);
    scene.admin(&format!("alter role {} set log_min_duration_statement = 0", scene.role));
    // It must not be stopped when the server ends.
    kill_process(Pid::from_raw(logger).unwrap(), Signal::CONT).unwrap();
    scene.freeze(logger);
    let text = "x".repeat(3000);
    for _ in 0..scene.by(1, 3) {
        let sql = format!("select '{text}'");
        scene.again("webshop", move |client| {
            let _ = client.simple_query(&sql);
        });
    }
    scene.until("select count(*) > 0 from pg_stat_activity where application_name = 'webshop' and state = 'active'");
    // Until the pipe is full.
    pause(1000);
}

/// Its client has not forgotten it: its process is stopped.
fn stopped_session(scene: &mut Scene) {
    let (table, application) = (scene.table(), scene.application());
    scene.truth.pop();
    scene.must_name(&application);
    scene.sql(&format!(
        "create table {table} (id int primary key, n int); insert into {table} values (1, 0), (2, 0)"
    ));
    let (mut holder, pid) = scene.session(&application);
    scene.must_name(format!("kill -CONT {pid}"));
    holder.batch_execute(&format!("begin; update {table} set n = 1 where id = 1")).unwrap();
    scene.keep(holder);
    scene.freeze(pid);
    wait(scene, &format!("update {table} set n = n + 1 where id = 1"), scene.by(1, 4));
}
