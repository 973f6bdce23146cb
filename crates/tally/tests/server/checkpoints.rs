// SPDX-License-Identifier: PostgreSQL
//! tally.checkpoints and tally.writers: a checkpoint's reason and duration, what was written where, and client
//! activity before, during and after it. Compared with the server's log and views, and with commands that the
//! test counts while strace holds the checkpointer in a sync.

use crate::support;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use crate::support::strace::Strace;
use crate::support::{create_views, eventually};
use postgres::{Client, SimpleQueryMessage};
use scratch::{Builder, Cluster};
use segment::{EventKind, Segment};
use serde_json::Value;

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

/// All columns of tally.checkpoints, in the order in which the checkpoints ended. Queried in one message, which
/// is not counted yet when its response is produced.
fn checkpoints(client: &mut Client) -> Vec<Value> {
    let sql = "select row_to_json(c)::text from tally.checkpoints c order by number";
    let messages = client.simple_query(sql).unwrap();
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    rows.map(|text| serde_json::from_str(text).unwrap()).collect()
}

/// The same, once there are this many: the last one is reported after its response.
fn when_ended(client: &mut Client, count: usize) -> Vec<Value> {
    let mut rows = Vec::new();
    eventually("the checkpoint is reported", || {
        rows = checkpoints(client);
        rows.len() >= count
    });
    assert_eq!(rows.len(), count);
    rows
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

/// Commands that all processes have handled, and their time in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Handled {
    commands: u64,
    seconds: f64,
}

impl Handled {
    fn so_far(segment: &mut Segment) -> Self {
        let snapshot = segment.snapshot(None).unwrap();
        let heads = snapshot.books.iter().chain(&snapshot.groups).flat_map(|book| &book.heads);
        let (commands, ticks) = heads.fold((0, 0), |sum, head| {
            let stat = snapshot.directory.get(head.stat);
            let counts = stat.is_some_and(|stat| {
                stat.name.starts_with("command::") && stat.name.ends_with("::handle")
            });
            if counts {
                (sum.0 + head.count, sum.1 + head.total)
            } else {
                sum
            }
        });
        Self { commands, seconds: snapshot.clock.seconds(ticks) }
    }

    /// Waits until this many commands are counted, after which all sessions are idle.
    fn when_counted(segment: &mut Segment, commands: u64) -> Self {
        let mut handled = Self::so_far(segment);
        eventually("all commands are counted", || {
            handled = Self::so_far(segment);
            handled.commands >= commands
        });
        assert_eq!(handled.commands, commands);
        handled
    }

    fn since(self, earlier: Self) -> Self {
        Self { commands: self.commands - earlier.commands, seconds: self.seconds - earlier.seconds }
    }
}

/// A checkpoint during which only the test's own work ran.
struct Held {
    /// Bounds of the readings of its start and its end.
    begun: [Instant; 2],
    over: [Instant; 2],
    /// The commands handled by then. The session that requested the checkpoint may receive its response before or
    /// after the end is read.
    at_begin: Handled,
    at_end: [Handled; 2],
}

/// Runs a checkpoint, and `during` while it is held. All sessions are idle.
fn held_checkpoint(
    cluster: &Cluster,
    segment: &mut Segment,
    client: &mut Client,
    during: impl FnOnce(&mut Segment),
) -> Option<Held> {
    let processes = cluster.processes();
    let process = processes.iter().find(|process| process.title.contains("checkpointer")).unwrap();
    let pid = process.pid as i32;
    let strace = Strace::hold("fsync", pid)?;
    let count = |segment: &Segment| {
        let events = segment.events(0).unwrap();
        events.iter().filter(|event| event.text.starts_with("checkpoint clients:")).count()
    };
    let ended = count(segment);
    let asked = Instant::now();
    std::thread::scope(|scope| {
        let checkpoint = scope.spawn(|| client.batch_execute("checkpoint").unwrap());
        eventually("the checkpointer syncs", || strace.holds(pid, "fsync"));
        let begun = [asked, Instant::now()];
        let at_begin = Handled::so_far(segment);
        during(segment);
        let before_answer = Handled::so_far(segment);
        let released = Instant::now();
        drop(strace);
        checkpoint.join().unwrap();
        eventually("the checkpoint is reported", || count(segment) > ended);
        let over = [released, Instant::now()];
        let answered = Handled::when_counted(segment, before_answer.commands + 1);
        Some(Held { begun, over, at_begin, at_end: [before_answer, answered] })
    })
}

/// The seconds between two instants, each of which has two bounds.
fn between(from: [Instant; 2], to: [Instant; 2]) -> RangeInclusive<f64> {
    let seconds = |from, to: Instant| to.saturating_duration_since(from).as_secs_f64();
    seconds(from[1], to[0])..=seconds(from[0], to[1])
}

/// Checks the figures of the clients at one time: "before", "during", "after".
fn has_activity(row: &Value, when: &str, handled: &[Handled], seconds: RangeInclusive<f64>) {
    let of = |name: &str| number(row, &format!("{when}_{name}"));
    println!(
        "{when}: {} commands in {} s; {handled:?} in {seconds:?}",
        of("commands"),
        of("seconds")
    );
    assert!(seconds.contains(&of("seconds")), "{when}: {seconds:?}, {row}");
    let own = of("mean_handle_seconds") * of("commands");
    let is = |handled: &&Handled| {
        handled.commands as f64 == of("commands")
            && (own - handled.seconds).abs() < 1e-6 * (1.0 + handled.seconds)
    };
    assert!(handled.iter().any(|handled| is(&handled)), "{when}: {handled:?}, {row}");
    let per_second = of("commands") / of("seconds");
    assert!((of("commands_per_second") - per_second).abs() < 0.001 + 1e-5 * per_second, "{when}");
}

#[test]
fn client_activity_before_during_and_after_a_checkpoint_is_counted_to_the_command() {
    let (cluster, mut client) = start(
        builder()
            .fsync(true)
            .settings([("checkpoint_timeout", "30s"), ("checkpoint_completion_target", "0.1")]),
    );
    let mut worker = cluster.connect().unwrap();
    let mut segment = Segment::open(&support::segment(&cluster)).unwrap();
    let mut run = |segment: &mut Segment, commands: u64| {
        let so_far = Handled::so_far(segment).commands;
        for n in 0..commands {
            worker.batch_execute(&format!("insert into u select generate_series(1, {n})")).unwrap();
        }
        Handled::when_counted(segment, so_far + commands)
    };
    let begun = Instant::now();
    let idle = |client: &mut Client, segment: &mut Segment| {
        let pid = support::pid_of(client);
        eventually("the session waits for its client", || {
            let snapshot = segment.snapshot(None).unwrap();
            let book = snapshot.books.iter().find(|book| book.pid == pid).unwrap();
            let run = book.run().and_then(|id| snapshot.directory.get(id));
            run.is_some_and(|stat| stat.name.ends_with("::wait::Client:ClientRead"))
        });
    };
    idle(&mut client, &mut segment);
    run(&mut segment, 5);
    let before = ended(&mut client);
    idle(&mut client, &mut segment);
    let anchor = held_checkpoint(&cluster, &mut segment, &mut client, |_| ());
    run(&mut segment, 40);
    let spread = held_checkpoint(&cluster, &mut segment, &mut client, |segment| {
        assert_eq!(run(segment, 30).commands, Handled::so_far(segment).commands);
    });
    if let (Some(anchor), Some(this)) = (anchor, spread) {
        let handled = run(&mut segment, 20);
        let asked = Instant::now();
        let rows = checkpoints(&mut client);
        let asked = [asked, Instant::now()];
        let row = &rows[before + 1];
        assert_eq!((rows.len(), &row["reason"]), (before + 2, &"request".into()));
        let since = |to: Handled, from: [Handled; 2]| from.map(|from| to.since(from));
        let first = since(this.at_begin, anchor.at_end);
        has_activity(row, "before", &first, between(anchor.over, this.begun));
        let during = this.at_end.map(|end| end.since(this.at_begin));
        has_activity(row, "during", &during, between(this.begun, this.over));
        assert_eq!(during[0].commands, 30);
        has_activity(row, "after", &since(handled, this.at_end), between(this.over, asked));
    }

    // The next one is timed. Its "before" is the "after" of the last one.
    client.batch_execute("insert into u select generate_series(1, 20000)").unwrap();
    let count = ended(&mut client);
    let waits = Instant::now();
    while ended(&mut client) == count {
        assert!(waits.elapsed() < Duration::from_secs(120), "no timed checkpoint");
        std::thread::sleep(Duration::from_millis(100));
    }
    let rows = checkpoints(&mut client);
    let (last, timed) = (&rows[count - 1], &rows[count]);
    assert_eq!(timed["reason"], "time", "{timed}");
    for part in ["seconds", "commands", "mean_handle_seconds"] {
        assert_eq!(last[format!("after_{part}")], timed[format!("before_{part}")]);
    }
    // The server counts whole seconds until it is due.
    let interval = number(timed, "interval_seconds");
    assert!(interval >= 29.0 && interval <= begun.elapsed().as_secs_f64(), "{timed}");
    assert_eq!(number(timed, "target"), 0.1);
    let spread = number(timed, "write_seconds") / 30.0;
    // The view rounds it.
    assert!((number(timed, "spread") - spread).abs() < 1e-3, "{timed}");
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
    let buffers = |client: &mut Client| -> i64 { client.query_one(written, &[]).unwrap().get(0) };
    // The checkpointer reports its counts after the answer.
    let equals_our_count = |client: &mut Client| {
        let ours = "select coalesce(sum(blocks_written), 0)::bigint from tally.writers \
                    where process = 'checkpointer'";
        eventually("the server counts what we count", || {
            buffers(client) == client.query_one(ours, &[]).unwrap().get::<_, i64>(0)
        });
    };
    let count = ended(&mut client);
    client.batch_execute("insert into u select generate_series(1, 100); checkpoint").unwrap();
    when_ended(&mut client, count + 1);
    equals_our_count(&mut client);
    let before = buffers(&mut client);
    client.batch_execute("insert into u select generate_series(1, 50000)").unwrap();
    client.batch_execute("insert into t select 1; delete from pg_shdescription").unwrap();
    let expected = cache.then(|| client.query_one(dirty, &[]).unwrap().get::<_, i64>(0));
    assert!(expected.is_none_or(|count| count > 200), "{expected:?}");
    client.batch_execute("checkpoint").unwrap();
    let rows = when_ended(&mut client, count + 2);
    let row = &rows[count + 1];
    let by: BTreeMap<String, i64> =
        serde_json::from_value(row["buffers_by_tablespace"].clone()).unwrap();
    println!("{by:?}, {expected:?} dirty elsewhere");
    assert_eq!(by["elsewhere"], expected.unwrap_or(by["elsewhere"]));
    assert!(by["pg_default"] > 0 && by["slru"] > 0);
    let slru = by["slru"];
    assert_eq!(by.values().sum::<i64>(), row["buffers"].as_i64().unwrap(), "SLRUs included");
    equals_our_count(&mut client);
    assert_eq!(by.values().sum::<i64>() - slru, buffers(&mut client) - before, "without them");
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
    let log = logged_checkpoints(&cluster);
    println!("{log:?}");
    let rows = when_ended(&mut client, log.len());
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
    let count = ended(&mut client);
    client.batch_execute("checkpoint; insert into t select 1").unwrap();
    when_ended(&mut client, count + 1);
    client.batch_execute("checkpoint").unwrap();
    let rows = when_ended(&mut client, count + 2);
    let whole = rows.last().unwrap();
    assert!(number(whole, "before_commands") >= 1.0 && number(whole, "after_commands") >= 0.0);
    // Work done while the level is off is not counted.
    let segment = support::segment(&cluster);
    for level in ["off", "waits"] {
        support::output(support::tally().args(["level", level]).arg(&segment));
        other.batch_execute("select pg_sleep(0.01)").unwrap();
    }
    client.batch_execute("insert into t select 1; checkpoint").unwrap();
    let rows = when_ended(&mut client, count + 3);
    let cut = &rows[rows.len() - 1];
    assert_eq!(
        (&cut["before_commands"], &rows[rows.len() - 2]["after_commands"]),
        (&Value::Null, &Value::Null)
    );
    assert!(number(cut, "during_commands") >= 0.0);
    // After a reset, figures that began before it are unknown.
    client.batch_execute("insert into t select 1; checkpoint").unwrap();
    when_ended(&mut client, count + 4);
    client.batch_execute("select tally.reset()").unwrap();
    let rows = checkpoints(&mut client);
    let last = rows.last().unwrap();
    assert_eq!(last["after_commands"], Value::Null);
    assert!(number(last, "before_commands") >= 0.0, "{last}");
}

#[test]
fn a_failed_checkpoint_has_an_event_and_is_no_longer_running() {
    let (cluster, mut client) = start(builder().setting("checkpoint_timeout", "1h"));
    let count = ended(&mut client) + 1;
    client.batch_execute("checkpoint; insert into t select 1").unwrap();
    when_ended(&mut client, count);
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
    when_ended(&mut client, count + 1);
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
