// SPDX-License-Identifier: PostgreSQL
//! Storage in `tally top` on a live server: the activity of a session and the checkpointer in the interval, the
//! devices, and slow operations.

use crate::support;
use crate::support::eventually;
use crate::support::json_reference::{assert_documented, fields, PAGE};
use crate::support::top::Top;
use segment::clock::realtime_ns;

use scratch::Cluster;
use serde_json::Value;

const COMMITS: u64 = 40;
/// Minimum duration of such a wait, seconds; longer than the threshold of slow operations.
const WAIT: f64 = 0.25;

/// A server with an additional tablespace, and the tablespace's OID.
fn server() -> (Cluster, u32) {
    let cluster = support::start(
        support::flushing()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.slow_threshold", "200ms")
            .setting("allow_in_place_tablespaces", "on")
            .setting("checkpoint_timeout", "1h")
            .setting("autovacuum", "off"),
    );
    let mut client = cluster.connect().unwrap();
    client.batch_execute("create tablespace other location ''").unwrap();
    client
        .batch_execute(
            "create table t (n int); create table u (n int) tablespace other; \
             insert into t select generate_series(1, 20000); insert into u select 1; checkpoint",
        )
        .unwrap();
    let oid = client.query_one("select oid from pg_tablespace where spcname = 'other'", &[]);
    (cluster, oid.unwrap().get(0))
}

/// Runs single commits, a checkpoint, and a commit that waits for a lock for longer than the threshold.
fn work(cluster: &Cluster) {
    let (mut one, mut other) = (cluster.connect().unwrap(), cluster.connect().unwrap());
    for n in 0..COMMITS - 3 {
        one.execute("insert into t values ($1)", &[&(n as i32)]).unwrap();
    }
    one.batch_execute("insert into u select generate_series(1, 5000)").unwrap();
    let mut holder = one.transaction().unwrap();
    holder.batch_execute("update u set n = 2 where ctid = '(0,1)'").unwrap();
    let waiter = std::thread::spawn(move || {
        other.batch_execute("update u set n = 3 where ctid = '(0,1)'").unwrap();
    });
    eventually("it waits for the lock", || {
        let waits = "select count(*) from pg_stat_activity where wait_event = 'transactionid'";
        holder.query_one(waits, &[]).unwrap().get::<_, i64>(0) == 1
    });
    holder.batch_execute(&format!("select pg_sleep({WAIT})")).unwrap();
    holder.commit().unwrap();
    waiter.join().unwrap();
    one.batch_execute("checkpoint").unwrap();
}

fn rows_where<'v>(interval: &'v Value, list: &str, wanted: &[(&str, &str)]) -> Vec<&'v Value> {
    let rows = interval[list].as_array().unwrap().iter();
    rows.filter(|row| wanted.iter().all(|(name, text)| row[*name] == *text)).collect()
}

fn sum(rows: &[&Value], name: &str) -> f64 {
    rows.iter().map(|row| row[name].as_f64().unwrap()).sum()
}

#[test]
fn file_operations_are_shown_with_commits_checkpoint_and_devices() {
    let (cluster, tablespace) = server();
    let segment = support::segment(&cluster);
    let mut top = Top::start(&["--interval", "0.5", "--no-witness"], &segment);
    let mut intervals = vec![top.interval()];
    // The command attached before the work, so all of the work is in the intervals.
    let began = realtime_ns() as f64 * 1e-9;
    work(&cluster);
    let worked = realtime_ns() as f64 * 1e-9 - began;
    eventually("the checkpoint is in an interval, and all before it", || {
        intervals.push(top.interval());
        ended(&intervals) > 0
    });
    intervals.push(top.interval());
    drop(top);

    let all = fields(&intervals);
    assert_documented(PAGE, &all);

    let total = |list: &str, wanted: &[(&str, &str)], name: &str| -> f64 {
        intervals.iter().map(|interval| sum(&rows_where(interval, list, wanted), name)).sum()
    };
    let commits = |name: &str| -> u64 {
        intervals.iter().map(|interval| interval["commits"][name].as_u64().unwrap()).sum()
    };
    assert_eq!(commits("count"), COMMITS);
    let leaders: u64 =
        intervals.iter().map(|i| i["commits"]["leader"]["count"].as_u64().unwrap()).sum();
    let syncs = total("files", &[("file", "wal"), ("operation", "sync")], "count");
    assert!(leaders > 0 && syncs as u64 >= leaders, "{leaders} leaders, {syncs} syncs");
    assert_eq!(syncs as u64, commits("flushes"));

    // The WAL is written whole pages at a time, and the table's file grew by 5,000 rows.
    let wal = total("files", &[("file", "wal"), ("operation", "write")], "bytes");
    assert!(wal >= 8192.0 && wal % 8192.0 == 0.0, "{wal}");
    let number = tablespace.to_string();
    let there = [("file", "main"), ("tablespace", number.as_str()), ("operation", "extend")];
    let grown = total("files", &there, "bytes");
    let size: i64 =
        cluster.connect().unwrap().query_one("select pg_relation_size('u')", &[]).unwrap().get(0);
    assert_eq!(grown as i64, size - 8192, "one page was there before");
    let sequential = total("files", &there, "sequential");
    let count = total("files", &there, "count");
    assert!(sequential > 0.0 && sequential <= count, "{sequential} of {count}");

    // The same by kind of process; the session has ended and its book is merged.
    for (process, file, operation) in [
        ("client backend", "wal", "write"),
        ("client backend", "main", "extend"),
        ("checkpointer", "main", "write"),
        ("checkpointer", "control", "sync"),
    ] {
        let wanted = [("process", process), ("file", file), ("operation", operation)];
        assert!(total("file_processes", &wanted, "count") > 0.0, "{wanted:?}");
    }
    for name in ["count", "bytes", "sequential", "failed"] {
        let (files, processes) = (total("files", &[], name), total("file_processes", &[], name));
        assert_eq!(files, processes, "{name}");
    }

    let last = intervals.last().unwrap();
    assert_eq!(ended(&intervals), 1);
    let checkpoint = &last["io"]["checkpoint"];
    assert_eq!(checkpoint["reason"], "request");
    assert!(checkpoint["buffers"].as_u64().unwrap() > 0, "{checkpoint}");
    let (time, at) = (last["time"].as_f64().unwrap(), checkpoint["ended"].as_f64().unwrap());
    assert!(began <= at && at <= time, "{began} {at} {time}");
    assert_eq!(last["io"]["checkpoint_running"], Value::Null);

    let slow: Vec<&str> = last["io"]["slow"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["text"].as_str().unwrap())
        .collect();
    let waits = slow.iter().filter_map(|text| text.strip_prefix("Lock:transactionid: "));
    let lengths: Vec<f64> =
        waits.map(|rest| rest.split(' ').next().unwrap().parse().unwrap()).collect();
    assert_eq!(lengths.len(), 1, "{slow:?}");
    assert!((WAIT..=worked).contains(&lengths[0]), "{lengths:?} of {worked}");

    // The clients' activity before and during the checkpoint, the tablespace of its buffers and its name.
    for when in ["before", "during", "after"] {
        assert!(checkpoint[when]["commands"].as_u64().is_some(), "{when}: {checkpoint}");
    }
    assert!(checkpoint["before"]["commands"].as_u64().unwrap() >= COMMITS - 3, "{checkpoint}");
    let written = checkpoint["buffers_by_tablespace"].as_array().unwrap();
    assert!(written.iter().any(|w| w["tablespace"] == number.as_str()), "{checkpoint}");
    let spaces = last["io"]["tablespaces"].as_array().unwrap();
    let space = spaces.iter().find(|space| space["oid"] == tablespace).unwrap();
    assert_eq!(space["name"], "other", "{space}");
    assert!(space["location"].as_str().unwrap().ends_with(&number), "{space}");
    let wal = total("wal", &[("process", "client backend")], "records");
    assert!(wal >= 5000.0, "{wal}");

    devices(last, cluster.data_dir(), tablespace);
    text_of(&segment);
}

/// How many checkpoints have ended.
fn ended(intervals: &[Value]) -> u64 {
    let counts = intervals
        .iter()
        .map(|interval| interval["checkpoints"]["total"]["count"].as_u64().unwrap());
    counts.sum()
}

/// Checks that every location has a device with figures, or a reason.
fn devices(interval: &Value, data: &std::path::Path, tablespace: u32) {
    let devices = &interval["io"]["devices"];
    assert_eq!(interval["io"]["devices_problem"], Value::Null);
    let places = devices["locations"].as_array().unwrap();
    assert_eq!(places[0]["path"], data.to_str().unwrap());
    let other = places.iter().find(|place| place["oid"] == tablespace);
    assert!(other.is_some(), "{places:?}");
    let of = |list: &Value, number: &Value| {
        list.as_array().unwrap().iter().find(|row| row["number"] == *number).cloned()
    };
    for place in places {
        let at = place["file_system"].as_u64().unwrap() as usize;
        let backing = &devices["file_systems"][at]["backing"];
        match backing["is"].as_str().unwrap() {
            "device" => {
                assert!(of(&devices["devices"], &backing["device"]).is_some(), "{devices}");
                let row = of(&devices["figures"]["devices"], &backing["device"]).unwrap();
                assert!(row["figures"].is_object() || row["problem"].is_string(), "{row}");
            }
            "none" => assert!(backing["text"].is_string()),
            _ => {}
        }
    }
    let server = &devices["figures"]["server"];
    assert!(server["processes_count"].as_u64().unwrap() >= 5, "{devices}");
}

fn text_of(segment: &std::path::Path) {
    let text = support::output(
        support::tally().args(["top", "--once", "--view", "io", "--interval", "0.1"]).arg(segment),
    );
    for title in [
        "Files",
        "Commits",
        "Checkpoints",
        "Devices",
        "Page cache and devices, by process",
        "Slow operations, latest last",
    ] {
        assert!(text.lines().any(|line| line == title), "{title}: {text}");
    }
    assert!(text.contains("on request, took"), "{text}");
    assert!(text.contains("] Lock:transactionid: "), "{text}");
    assert!(text.contains("the server's processes read"), "{text}");
    assert!(!text.contains("Ledger"), "{text}");
}
