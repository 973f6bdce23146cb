// SPDX-License-Identifier: PostgreSQL
//! tally.checkpoints and tally.writers: a checkpoint's reason and duration, what was written where, and
//! client activity before, during and after it. Compared with the server's log and views and with
//! pgbench's log of each transaction.

use crate::support;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{create_views, eventually};
use postgres::Client;
use scratch::{Builder, Cluster, Load};
use segment::{EventKind, Segment};
use serde_json::Value;

const CLIENTS: u32 = 4;

fn builder() -> Builder {
    support::plain().settings([
        ("shared_preload_libraries", "pg_tally"),
        ("log_checkpoints", "on"),
        ("autovacuum", "off"),
        // Only checkpoints write.
        ("bgwriter_lru_maxpages", "0"),
    ])
}

/// A server with the views, and with a table in another tablespace.
fn start(builder: Builder) -> (Cluster, Client) {
    let cluster = support::start(builder);
    create_views(&cluster);
    let space = cluster.dir().join("elsewhere");
    std::fs::create_dir(&space).unwrap();
    cluster.os_user().chown(&space).unwrap();
    cluster.psql(&format!("create tablespace elsewhere location '{}'", space.display())).unwrap();
    let mut client = cluster.connect().unwrap();
    client
        .batch_execute("create table t (n int); create table u (n int) tablespace elsewhere")
        .unwrap();
    (cluster, client)
}

/// All columns of tally.checkpoints, in the order in which the checkpoints ended.
fn checkpoints(client: &mut Client) -> Vec<Value> {
    let sql = "select row_to_json(c)::text from tally.checkpoints c order by number";
    let rows = client.query(sql, &[]).unwrap();
    rows.iter().map(|row| serde_json::from_str(row.get(0)).unwrap()).collect()
}

fn ended(client: &mut Client) -> usize {
    checkpoints(client).len()
}

fn number(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or_else(|| panic!("{name} in {row}"))
}

/// What the log says about each checkpoint: its flags, and "wrote 12 buffers ...".
fn logged_checkpoints(cluster: &Cluster) -> Vec<(String, String)> {
    let log = cluster.log();
    let after = |text: &str| -> Vec<String> {
        log.lines().filter_map(|l| l.split_once(text)).map(|(_, rest)| rest.to_string()).collect()
    };
    after("checkpoint starting:").into_iter().zip(after("checkpoint complete: ")).collect()
}

/// The number after `name`, as in "write=0.123 s".
fn figure(line: &str, name: &str) -> f64 {
    let (_, rest) = line.split_once(name).unwrap_or_else(|| panic!("{name} in {line}"));
    let digits = rest.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().unwrap()
}

/// End and duration of each of pgbench's transactions, in seconds.
fn transactions(folder: &Path) -> Vec<(f64, f64)> {
    let files = std::fs::read_dir(folder).unwrap().flatten();
    let texts = files.map(|file| std::fs::read_to_string(file.path()).unwrap());
    let line = |line: &str| {
        let field = |n| line.split(' ').nth(n).unwrap().parse::<f64>().unwrap();
        (field(4) + field(5) * 1e-6, field(2) * 1e-6)
    };
    texts.flat_map(|text| text.lines().map(line).collect::<Vec<_>>()).collect()
}

/// When the client figures of a checkpoint were read: at its start and after its end.
fn readings(client: &mut Client, number: i64) -> (f64, f64) {
    let sql = "select extract(epoch from max(at) filter (where text like 'checkpoint begins:%' and \
                                             number < $1))::float8, \
                      extract(epoch from min(at) filter (where text like 'checkpoint clients:%' and \
                                             number > $1))::float8 from tally.events";
    let row = client.query_one(sql, &[&number]).unwrap();
    (row.get(0), row.get(1))
}

/// Number and total duration of the transactions that ended in this interval, widened by `give` at both
/// ends.
fn within(all: &[(f64, f64)], from: f64, to: f64, give: f64) -> (f64, f64) {
    let in_it = all.iter().filter(|(end, _)| (from - give..to + give).contains(end));
    in_it.fold((0.0, 0.0), |(count, sum), (_, took)| (count + 1.0, sum + took))
}

#[test]
fn client_activity_before_during_and_after_a_checkpoint_matches_pgbenchs_log() {
    let (cluster, mut client) = start(
        builder()
            .settings([("checkpoint_timeout", "30s"), ("checkpoint_completion_target", "0.1")]),
    );
    client.batch_execute("insert into u select generate_series(1, 20000); checkpoint").unwrap();
    let logs = cluster.dir().join("transactions");
    std::fs::create_dir(&logs).unwrap();
    cluster.os_user().chown(&logs).unwrap();
    let load = Load::Script("insert into t select 1 from pg_sleep(0.004);\n".into());
    let pgbench = cluster.pgbench().load(load).clients(CLIENTS).duration(Duration::from_secs(9));
    let prefix = format!("--log-prefix={}", logs.join("log").display());
    let running = pgbench.arg("--log").arg(&prefix).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    let watch = Instant::now();
    client.batch_execute("update u set n = n + 1").unwrap();
    let updated = watch.elapsed().as_secs_f64();
    // A spread checkpoint, which takes a tenth of the interval.
    let before = ended(&mut client);
    let watch = Instant::now();
    client.batch_execute("select pg_backup_start('spread'); select pg_backup_stop()").unwrap();
    let spread_took = watch.elapsed().as_secs_f64();
    eventually("the checkpoint is reported", || ended(&mut client) > before);
    std::thread::sleep(Duration::from_millis(1500));
    let rows = checkpoints(&mut client);
    let now: f64 = client
        .query_one("select extract(epoch from clock_timestamp())::float8", &[])
        .unwrap()
        .get(0);
    running.wait().unwrap();
    let all = transactions(&logs);

    let (anchor, spread) = (&rows[before - 1], &rows[before]);
    assert_eq!(spread["reason"], "request");
    let at = |row: &Value| row["number"].as_i64().unwrap();
    let (_, since) = readings(&mut client, at(anchor));
    let (begun, over) = readings(&mut client, at(spread));
    assert!(over - begun > 1.0, "{spread}");
    // The figures contain the load and the few commands of this session.
    for (when, from, to) in
        [("before", since, begun), ("during", begun, over), ("after", over, now)]
    {
        let of = |name: &str| number(spread, &format!("{when}_{name}"));
        // Time of this session's own long commands: the update before, the spread checkpoint after.
        let own = match when {
            "before" => updated,
            "after" => spread_took,
            _ => 0.0,
        };
        let (min_count, _) = within(&all, from, to, -0.05);
        let (max_count, took) = within(&all, from, to, 0.05);
        println!(
            "{when}: {} commands in {} s of {:.3} ms each; pgbench {min_count} to {max_count}, {:.3} ms each",
            of("commands"),
            of("seconds"),
            of("mean_handle_seconds") * 1e3,
            took / max_count * 1e3,
        );
        assert!((of("seconds") - (to - from)).abs() < 0.05, "{when}: {from} to {to}, {spread}");
        assert!((min_count..=max_count + 40.0).contains(&of("commands")), "{when}: {spread}");
        let per_second = of("commands") / of("seconds");
        assert!((of("commands_per_second") - per_second).abs() < 0.01 * per_second, "{when}");
        // pgbench's latency includes the network and scheduling, most of it where others use the processors;
        // this session's own commands are few but may be long.
        let share = (of("mean_handle_seconds") * of("commands") - own) / took;
        assert!((0.1..1.1).contains(&share), "{when}: {share} of the latency");
    }

    // The next one is timed. Its "before" is the "after" of the last one.
    let count = rows.len();
    for _ in 0..3 {
        if ended(&mut client) == count {
            std::thread::sleep(Duration::from_secs(9));
        }
    }
    eventually("a timed checkpoint", || ended(&mut client) > count);
    let rows = checkpoints(&mut client);
    let (last, timed) = (&rows[count - 1], &rows[count]);
    assert_eq!(timed["reason"], "time", "{timed}");
    for part in ["seconds", "commands", "mean_handle_seconds"] {
        assert_eq!(last[format!("after_{part}")], timed[format!("before_{part}")]);
    }
    assert!((number(timed, "interval_seconds") - 30.0).abs() < 2.0, "{timed}");
    assert_eq!(number(timed, "target"), 0.1);
    let spread = number(timed, "write_seconds") / 30.0;
    assert!((number(timed, "spread") - spread).abs() < 0.01, "{timed}");
    let log = logged_checkpoints(&cluster);
    let flags: Vec<&str> = log.iter().map(|(flags, _)| flags.trim()).collect();
    assert_eq!(flags[flags.len() - 1], "time", "{flags:?}");
}

#[test]
fn reason_buffers_and_times_of_a_checkpoint_match_the_log_and_the_servers_views() {
    let (cluster, mut client) = start(builder().settings([
        ("checkpoint_timeout", "1h"),
        ("max_wal_size", "32MB"),
        ("min_wal_size", "32MB"),
        ("wal_level", "minimal"),
        ("max_wal_senders", "0"),
    ]));
    // Some makers' servers lack it; then the sum alone is compared.
    let cache = support::has_module("pg_buffercache");
    if cache {
        client.batch_execute("create extension pg_buffercache").unwrap();
    } else {
        println!("not tested: buffers by tablespace; this server has no pg_buffercache");
    }
    let dirty = "select count(*) from pg_buffercache where isdirty and reltablespace = \
                 (select oid from pg_tablespace where spcname = 'elsewhere')";
    // From 17 on, the checkpointer has a view of its own.
    let written = match support::major() {
        15 | 16 => "select buffers_checkpoint from pg_stat_bgwriter",
        _ => "select buffers_written from pg_stat_checkpointer",
    };
    let buffers = |client: &mut Client| -> i64 {
        client.batch_execute("select pg_stat_force_next_flush()").unwrap();
        std::thread::sleep(Duration::from_millis(1200));
        client.query_one(written, &[]).unwrap().get(0)
    };
    client.batch_execute("insert into u select generate_series(1, 100); checkpoint").unwrap();
    let before = (ended(&mut client), buffers(&mut client));
    client.batch_execute("insert into u select generate_series(1, 50000)").unwrap();
    client.batch_execute("insert into t select 1; delete from pg_shdescription").unwrap();
    let expected = cache.then(|| client.query_one(dirty, &[]).unwrap().get::<_, i64>(0));
    assert!(expected.is_none_or(|count| count > 200), "{expected:?}");
    client.batch_execute("checkpoint").unwrap();
    eventually("the checkpoint is reported", || ended(&mut client) > before.0);
    let rows = checkpoints(&mut client);
    let row = &rows[before.0];
    let by: BTreeMap<String, i64> =
        serde_json::from_value(row["buffers_by_tablespace"].clone()).unwrap();
    println!("{by:?}, {expected:?} dirty elsewhere");
    assert_eq!(by["elsewhere"], expected.unwrap_or(by["elsewhere"]));
    assert!(by["pg_default"] > 0 && by["slru"] > 0);
    let slru = by["slru"];
    assert_eq!(by.values().sum::<i64>(), row["buffers"].as_i64().unwrap(), "SLRUs included");
    assert_eq!(by.values().sum::<i64>() - slru, buffers(&mut client) - before.1, "without them");
    assert_eq!(row["reason"], "request");

    // tally.writers distinguishes the processes that wrote.
    let writer = |client: &mut Client, process: &str| -> (i64, i64) {
        let sql = "select coalesce(sum(blocks_written), 0)::bigint, \
                          coalesce(sum(extensions), 0)::bigint from tally.writers where process = $1";
        let row = client.query_one(sql, &[&process]).unwrap();
        (row.get(0), row.get(1))
    };
    let bgwriter = format!("select ({written}), buffers_clean from pg_stat_bgwriter");
    let theirs = client.query_one(&bgwriter, &[]).unwrap();
    assert_eq!(writer(&mut client, "checkpointer").0, theirs.get::<_, i64>(0));
    assert_eq!(writer(&mut client, "background writer").0, theirs.get::<_, i64>(1));
    assert!(writer(&mut client, "client backend").1 > 200, "the session added blocks itself");

    // More WAL than max_wal_size starts a checkpoint.
    let count = ended(&mut client);
    client.batch_execute("insert into t select generate_series(1, 400000)").unwrap();
    eventually("a checkpoint because of WAL", || ended(&mut client) > count);
    client.batch_execute("checkpoint").unwrap();
    let rows = checkpoints(&mut client);
    let log = logged_checkpoints(&cluster);
    println!("{log:?}");
    assert_eq!(rows.len(), log.len(), "all are reported");
    // The server skips a checkpoint if nothing has happened since the last; such a checkpoint has no event.
    let begun = "select count(*) from tally.events where text like 'checkpoint begins:%'";
    assert_eq!(client.query_one(begun, &[]).unwrap().get::<_, i64>(0), rows.len() as i64);
    let reasons: Vec<&str> = rows.iter().map(|row| row["reason"].as_str().unwrap()).collect();
    assert!(reasons.contains(&"wal") && reasons.contains(&"request"), "{reasons:?}");
    for (row, (flags, line)) in rows.iter().zip(&log) {
        let reason = row["reason"].as_str().unwrap();
        let expected = ["time", "wal"].into_iter().find(|word| flags.contains(word));
        assert_eq!(reason, expected.unwrap_or("request"), "{flags}");
        // From 18 on, buffers of SLRUs are named separately.
        let slru = line.contains(" SLRU buffers").then(|| figure(line, "), wrote "));
        assert_eq!(number(row, "buffers"), figure(line, "wrote ") + slru.unwrap_or(0.0), "{line}");
        assert_eq!(number(row, "wal_recycled"), figure(line, "removed, "));
        assert_eq!(number(row, "files_synced"), figure(line, "sync files="));
        for (ours, theirs) in [("write_seconds", "write="), ("sync_seconds", " sync=")] {
            assert!((number(row, ours) - figure(line, theirs)).abs() < 0.002, "{ours}: {line}");
        }
    }
}

#[test]
fn client_figures_are_null_if_they_would_be_incomplete() {
    let (cluster, mut client) = start(builder().setting("checkpoint_timeout", "1h"));
    let mut other = cluster.connect().unwrap();
    client.batch_execute("checkpoint; insert into t select 1; checkpoint").unwrap();
    let rows = checkpoints(&mut client);
    let whole = rows.last().unwrap();
    assert!(number(whole, "before_commands") >= 0.0 && number(whole, "after_commands") >= 1.0);
    // Work done while the level is off is not counted.
    let segment = support::segment(&cluster);
    for level in ["off", "waits"] {
        support::output(support::tally().args(["level", level]).arg(&segment));
        other.batch_execute("select pg_sleep(0.01)").unwrap();
    }
    client.batch_execute("insert into t select 1; checkpoint").unwrap();
    let rows = checkpoints(&mut client);
    let cut = &rows[rows.len() - 1];
    assert_eq!(
        (&cut["before_commands"], &rows[rows.len() - 2]["after_commands"]),
        (&Value::Null, &Value::Null)
    );
    assert!(number(cut, "during_commands") >= 0.0);
    // After a reset, figures that began before it are unknown.
    client.batch_execute("insert into t select 1; checkpoint; select tally.reset()").unwrap();
    let rows = checkpoints(&mut client);
    let last = rows.last().unwrap();
    assert_eq!(last["after_commands"], Value::Null);
    assert!(number(last, "before_commands") >= 0.0, "{last}");
}

#[test]
fn a_failed_checkpoint_has_an_event_and_is_no_longer_running() {
    let (cluster, mut client) = start(builder().setting("checkpoint_timeout", "1h"));
    client.batch_execute("checkpoint; insert into t select 1").unwrap();
    let count = ended(&mut client);
    let folder = cluster.data_dir().join("pg_logical/snapshots");
    let aside = cluster.data_dir().join("pg_logical/aside");
    std::fs::rename(&folder, &aside).unwrap();
    client.batch_execute("checkpoint").unwrap_err();
    let failed = "select count(*) from tally.events where kind = 'checkpoint' and \
                  text like 'checkpoint failed: reason=request total=%'";
    eventually("the failure is reported", || {
        client.query_one(failed, &[]).unwrap().get::<_, i64>(0) == 1
    });
    assert_eq!(ended(&mut client), count);
    let segment = support::segment(&cluster);
    let mut top = support::tally();
    top.args(["top", "--once", "--json", "--interval", "0.2", "--no-witness"]).arg(&segment);
    let interval: Value = serde_json::from_str(&support::output(&mut top)).unwrap();
    assert_eq!(interval["io"]["checkpoint_running"], Value::Null);
    std::fs::rename(&aside, &folder).unwrap();
    client.batch_execute("checkpoint").unwrap();
    eventually("the next one is reported", || ended(&mut client) == count + 1);
    // The server and the command have the same words for all five kinds of events.
    let sql = "select number, text from tally.events where kind = 'checkpoint' order by number";
    let theirs: Vec<(i64, String)> =
        client.query(sql, &[]).unwrap().iter().map(|row| (row.get(0), row.get(1))).collect();
    let events = Segment::open(&segment).unwrap().events(0).unwrap();
    let ours: Vec<(i64, String)> = events
        .into_iter()
        .filter(|event| event.kind == EventKind::Checkpoint)
        .map(|event| (event.number as i64, event.text))
        .collect();
    assert!(ours.len() >= 10, "{ours:?}");
    assert_eq!(ours, theirs);
}
