// SPDX-License-Identifier: PostgreSQL
//! What the catalogs say about a server's health, planted all at once: WAL archiving that fails, a receiver and a slot, bloat,
//! unused and duplicate indexes. Read without the extension, by a role that is only a member of pg_monitor.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use scratch::Cluster;
use serde_json::Value;

use crate::support::recorder::Recorder;
use crate::support::serving::Serving;
use crate::support::{eventually, has_module, output, plain, start, tally};

/// A program that receives WAL until the test ends.
struct Receiver(Child);

impl Receiver {
    fn start(cluster: &Cluster, into: &Path) -> Receiver {
        let connection = format!("{} application_name=copy", cluster.connection_string());
        let child = Command::new(cluster.binaries().program("pg_receivewal"))
            .args(["--synchronous", "--no-loop", "-d", &connection, "-D"])
            .arg(into)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Receiver(child)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

type Row = BTreeMap<String, Value>;

/// The rows of these tables in JSON, by the table's name, each with its cells by column.
fn tables(json: &Value) -> BTreeMap<String, Vec<Row>> {
    let of_table = |table: &Value| {
        let columns = table["columns"].as_array().unwrap();
        let keys: Vec<&str> =
            columns.iter().map(|column| column["key"].as_str().unwrap()).collect();
        let row = |cells: &Value| {
            let cells = cells.as_array().unwrap();
            keys.iter().map(|key| key.to_string()).zip(cells.iter().cloned()).collect()
        };
        let rows = table["rows"].as_array().unwrap().iter().map(row).collect();
        (table["id"].as_str().unwrap().to_owned(), rows)
    };
    json.as_array().unwrap().iter().map(of_table).collect()
}

fn names(rows: &[Row]) -> Vec<&str> {
    rows.iter().filter_map(|row| row["name"].as_str()).collect()
}

/// What the doctor says to this user, who connects to the server and samples it.
fn doctor(cluster: &Cluster, user: &str) -> Value {
    let connection = cluster.connection_string().replace("user=postgres", &format!("user={user}"));
    let mut doctor = tally();
    doctor.args(["doctor", "--json", "--for", "1"]).arg(connection);
    serde_json::from_str(&output(&mut doctor)).unwrap()
}

#[test]
fn everything_that_is_planted_is_found_without_the_extension() {
    let folder = tempfile::tempdir().unwrap();
    let [works, received] = ["works", "received"].map(|name| folder.path().join(name));
    std::fs::write(&works, "").unwrap();
    std::fs::create_dir(&received).unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let archive = format!("test -e {}", works.display());
    let cluster = start(
        plain()
            .setting("archive_mode", "on")
            .setting("archive_command", &archive)
            .setting("autovacuum", "off"),
    );
    cluster.psql("create role watcher login in role pg_monitor").unwrap();
    // Three quarters of each are empty pages' worth of space; only the first one's rows have known widths for everybody.
    cluster
        .psql(
            "create table numbers (id bigint, n bigint, m int, k int); create table texts (id int, text text); \
             insert into numbers select i, i, i, i from generate_series(1, 100000) i; \
             insert into texts select i, repeat('x', i % 60) from generate_series(1, 100000) i; \
             create table full_ones (like texts); insert into full_ones select * from texts; \
             create index texts_unused on texts (text, id); create index numbers_one on numbers (n); \
             create index numbers_two on numbers (n); create unique index full_ones_key on full_ones (id); \
             create index full_ones_used on full_ones (text) with (deduplicate_items = off); \
             delete from numbers where id % 4 > 0; delete from texts where id % 4 > 0",
        )
        .unwrap();
    for table in ["numbers", "texts", "full_ones"] {
        cluster.psql(&format!("vacuum (analyze) {table}")).unwrap();
    }
    let used = "set enable_seqscan = off; set enable_bitmapscan = off; select id from full_ones where text = 'x'";
    cluster.psql(used).unwrap();
    // Otherwise the slot retains all WAL of the above.
    cluster.psql("checkpoint").unwrap();
    cluster.psql("select pg_create_physical_replication_slot('kept', true)").unwrap();
    let _receiver = Receiver::start(&cluster, &received);
    eventually("WAL is received, and statistics are there", || {
        let sql = "select (select count(*) from pg_stat_replication where state = 'streaming' and flush_lsn is not null) \
                   + (select count(*) from pg_stat_user_indexes where indexrelname = 'full_ones_used' and idx_scan > 0)";
        cluster.psql(sql).unwrap() == "2"
    });
    let archiver = |what: &str| {
        eventually(what, || {
            let sql = "select last_failed_time > coalesce(last_archived_time, '-infinity'), archived_count > 0 from pg_stat_archiver";
            let expected = if what == "it fails" { "t\tt" } else { "\tt" };
            cluster.psql(sql).unwrap() == expected
        });
    };
    archiver("it archives");

    // None of these is a problem.
    let healthy = doctor(&cluster, "watcher");
    assert_eq!(healthy["healthy"], true, "{healthy:#}");
    let of_monitor = tables(&healthy["health"]);
    assert_eq!(of_monitor["archiver"][0]["state"], "archives");
    assert_eq!(of_monitor["slots"][0]["name"], "kept");
    assert_eq!(of_monitor["replication"][0]["name"], "copy");
    assert_eq!(of_monitor["transaction_ids"].len(), 3, "{of_monitor:?}");
    assert!(names(&of_monitor["sizes"]).contains(&"texts"), "{of_monitor:?}");
    assert!(names(&of_monitor["unused_indexes"]).contains(&"texts_unused"), "{of_monitor:?}");
    assert!(!names(&of_monitor["unused_indexes"]).contains(&"full_ones_used"), "{of_monitor:?}");
    assert!(!names(&of_monitor["unused_indexes"]).contains(&"full_ones_key"), "{of_monitor:?}");
    let duplicates = &of_monitor["duplicate_indexes"];
    assert_eq!(names(duplicates), ["numbers_two"]);
    assert_eq!(
        (&duplicates[0]["table"], &duplicates[0]["like"]),
        (&"numbers".into(), &"numbers_one".into())
    );
    // Its role may not see the statistics of texts.
    assert_eq!(names(&of_monitor["bloat"]), ["numbers"]);
    if has_module("pgstattuple") {
        cluster.psql("create extension pgstattuple").unwrap();
        let of_owner = tables(&doctor(&cluster, "postgres")["health"]);
        let mut found = names(&of_owner["bloat"]);
        found.sort_unstable();
        assert_eq!(found, ["numbers", "texts"]);
        for row in &of_owner["bloat"] {
            let name = row["name"].as_str().unwrap();
            let free = format!("select free_space::float8 / table_len from pgstattuple('{name}')");
            let exact: f64 = cluster.psql(&free).unwrap().parse().unwrap();
            let estimate = row["bloat_share"].as_f64().unwrap();
            println!("{name}: estimate {estimate}, exact {exact}");
            assert!((estimate - exact).abs() < 0.1, "{name}: {estimate}, {exact}");
        }
    }

    std::fs::remove_file(&works).unwrap();
    cluster.psql("create table t (i int); select pg_switch_wal()").unwrap();
    archiver("it fails");
    let failing = doctor(&cluster, "watcher");
    let all = failing["diagnoses"].as_array().unwrap();
    assert_eq!(all.len(), 1, "{failing:#}");
    assert_eq!((&all[0]["rule"], &all[0]["kind"]), (&"archiver".into(), &"problem".into()));
    assert!(all[0]["text"].as_str().unwrap().starts_with("The archiver fails on WAL file 0000"));

    // A recorder asks at its beginning, and a page of metrics when it is asked.
    let directory = folder.path().join("recording");
    let connection = cluster.connection_string().replace("user=postgres", "user=watcher");
    let recorder =
        Recorder::start_as(OsStr::new(&connection), "nobody", &directory, &["--interval", "500ms"]);
    recorder.wait_for_condition("duplicate-index");
    recorder.end(Signal::INT);
    let mut report = tally();
    let report: Value =
        serde_json::from_str(&output(report.args(["report", "--json"]).arg(&directory))).unwrap();
    let section = report["sections"].as_array().unwrap().iter().find(|one| one["id"] == "health");
    let ids: Vec<&str> =
        section.unwrap()["tables"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(ids, view::health::TABLES);
    let recorded = tables(&report["tables"]);
    for id in ["unused_indexes", "duplicate_indexes", "bloat", "slots"] {
        // Their sizes may have changed in between, and so their order.
        let sorted = |rows| {
            let mut names = names(rows);
            names.sort_unstable();
            names
        };
        assert_eq!(sorted(&recorded[id]), sorted(&of_monitor[id]), "{id}");
    }
    let serving = Serving::start_command(
        Command::new(assert_cmd::cargo::cargo_bin("tally")),
        &connection,
        "127.0.0.1:0",
        &["--no-token", "--health"],
    );
    let mut metrics = String::new();
    eventually("the metrics have the answer", || {
        metrics = serving.get("/metrics").unwrap_or_default();
        metrics.contains("pgtally_archiver_waiting_bytes ")
    });
    for line in [
        "pgtally_slot_retained_bytes{slot=\"kept\",state=\"physical, inactive\"} ",
        "pgtally_duplicate_index_bytes{database=\"postgres\",table=\"numbers\",index=\"numbers_two\"} ",
        "pgtally_table_bloat_estimate_bytes{database=\"postgres\",table=\"numbers\"} ",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    crate::dashboards::every_chart_of_health_has_data(&serving);

    let mut printed = tally();
    let printed = output(printed.arg("health").arg(&connection));
    for text in ["WAL archiving\n", "\nDuplicate indexes\n", "numbers_two"] {
        assert!(printed.contains(text), "{text}: {printed}");
    }
    // Nothing is tried any more.
    cluster.psql("alter system set archive_command = ''").unwrap();
    cluster.psql("select pg_reload_conf()").unwrap();
    eventually("the server has no archive_command", || {
        cluster.psql("show archive_command").unwrap().is_empty()
    });
    let idle = doctor(&cluster, "watcher");
    assert_eq!(tables(&idle["health"])["archiver"][0]["state"], "not configured");
    let texts = idle["diagnoses"].as_array().unwrap().iter().map(|one| &one["text"]);
    let expected = "WAL archiving is on, but neither archive_command nor archive_library is set: the server archives nothing and \
                    keeps all WAL.";
    assert_eq!(texts.collect::<Vec<_>>(), [expected]);
}

/// The shortest of five runs of a query.
fn milliseconds(cluster: &Cluster, sql: &str) -> f64 {
    let mut client = cluster.client().unwrap();
    client.batch_execute("set search_path = pg_catalog, pg_temp").unwrap();
    let times = (0..5).map(|_| {
        let began = std::time::Instant::now();
        client.texts(sql).unwrap();
        began.elapsed().as_secs_f64() * 1e3
    });
    times.fold(f64::INFINITY, f64::min)
}

#[test]
#[ignore = "verify: what the queries cost in a database with 10,000 tables"]
fn verify_what_the_queries_cost() {
    let cluster = start(plain().setting("autovacuum", "off"));
    for hundred in 0..100 {
        let tables = (0..100).map(|n| {
            let name = format!("t{hundred}_{n}");
            format!("create table {name} (id bigint primary key, a int, b text); create index on {name} (a); ")
        });
        cluster.psql(&tables.collect::<String>()).unwrap();
        let large = format!("insert into t{hundred}_0 select i, i, repeat('x', i % 50) from generate_series(1, 20000) i");
        cluster.psql(&large).unwrap();
    }
    cluster.psql("vacuum analyze").unwrap();
    println!("{}", cluster.psql("select count(*) || ' relations' from pg_class").unwrap());
    let mut all = 0.0;
    for query in live::vacuum::queries() {
        let query = query.replace("$1", "8");
        let took = milliseconds(&cluster, &query);
        all += took;
        let name = query.split("select '").nth(1).and_then(|rest| rest.split('\'').next());
        println!("{took:8.1} ms  {}", name.unwrap_or("dead rows, snapshots, databases"));
    }
    println!("{all:8.1} ms  all");
}

#[test]
#[ignore = "verify: how far estimates of bloat are from what pgstattuple measures"]
fn verify_estimates_of_bloat() {
    const KINDS: [(&str, &str, &str); 7] = [
        ("numbers", "a int, b bigint, c int, d int", "i, i, i, i"),
        ("padded", "a int, b bool, c bigint, d bool, e bigint", "i, true, i, true, i"),
        ("texts", "a int, b text", "i, repeat('x', i % 60)"),
        (
            "mixed",
            "a int, b text, c bigint, d text, e timestamptz",
            "i, repeat('x', i % 30), i, repeat('y', i % 11), now()",
        ),
        (
            "nulls",
            "a int, b text, c int",
            "i, case when i % 2 = 0 then repeat('x', i % 60) end, null",
        ),
        ("wide", "a int, b text", "i, repeat('x', 300 + i % 600)"),
        (
            "compressed",
            "a int, b text",
            "i, repeat('x', case i % 20 when 0 then 5000 else i % 100 end)",
        ),
    ];
    let cluster = start(plain().setting("autovacuum", "off"));
    cluster.psql("create extension pgstattuple").unwrap();
    let mut worst: f64 = 0.0;
    for (name, columns, values) in KINDS {
        for removed in [0, 30, 75] {
            let table = format!("{name}_{removed}");
            cluster
                .psql(&format!(
                    "create table {table} ({columns}); insert into {table} select {values} from generate_series(1, 100000) i; \
                     delete from {table} where a % 100 < {removed}"
                ))
                .unwrap();
            cluster.psql(&format!("vacuum (analyze) {table}")).unwrap();
            let found = tables(&doctor(&cluster, "postgres")["health"]);
            let rows = found.get("bloat").map_or(&[][..], Vec::as_slice);
            let row = rows.iter().find(|row| row["name"] == table.as_str());
            // A table with an estimate of less than a fifth is not listed.
            let (least, most) = row.map_or((0.0, 0.2), |row| {
                let estimate = row["bloat_share"].as_f64().unwrap();
                (estimate, estimate)
            });
            let exact =
                format!("select free_space::float8 / table_len from pgstattuple('{table}')");
            let exact: f64 = cluster.psql(&exact).unwrap().parse().unwrap();
            println!("{table:14} estimate {least:.3} to {most:.3}  exact {exact:.3}");
            worst = worst.max(least - exact).max(exact - most);
        }
    }
    println!("largest difference {worst:.3}");
    assert!(worst < 0.1, "{worst}");
}
