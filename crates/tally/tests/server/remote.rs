// SPDX-License-Identifier: PostgreSQL
//! A segment that its server transfers through a connection: the figures are those of the file.

use crate::support;
use std::collections::HashMap;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::quantiles::local_entry;
use crate::support::reachable::{Reachable, PASSWORD};
use crate::support::{complaint, eventually, output, segment, tally, while_working};
use live::follower::{Figures, FollowOptions, Follower, Step};
use live::target::SegmentSource;
use pq::Conninfo;
use segment::book::{Head, Life};
use segment::layout::{header, local_statement, set, statement, SET_LOG};
use segment::{Book, Parts, Segment, Snapshot};
use serde_json::Value;

/// The position of the regions of books and of statements in the header.
const BOOKS: u64 = header::BOOKS as u64;
const STATEMENTS: u64 = header::STATEMENTS as u64;
/// The position of the flag that a statement is in use.
const STATE: u64 = statement::STATE as u64;

fn place(server: &Reachable, role: &str) -> SegmentSource {
    SegmentSource::Server(Conninfo::parse(&server.full_string(role)).unwrap())
}

/// The books of sessions and groups, by number and generation.
fn books(snapshot: &Snapshot) -> HashMap<(u32, u32), &Book> {
    let all = snapshot.books.iter().chain(&snapshot.groups);
    all.map(|book| ((book.slot, book.generation), book)).collect()
}

/// The parts that do not depend on the instant: heads are in the order of their first use.
fn settled(book: &Book) -> Vec<[u64; 6]> {
    let of = |head: &Head| {
        [head.count, head.total - head.running, head.min, head.max, head.amount, head.follows]
    };
    book.heads.iter().map(of).collect()
}

fn histograms(book: &Book) -> Vec<Vec<(usize, u64)>> {
    book.heads.iter().map(|head| book.histogram(head).buckets().collect()).collect()
}

#[test]
fn the_figures_are_those_of_the_file() {
    let server = Reachable::start(&[]);
    let mut client = server.cluster.connect().unwrap();
    client
        .batch_execute("create table t as select generate_series(1, 1000) i; checkpoint")
        .unwrap();
    let work = |stop: &AtomicBool| {
        let mut client = server.cluster.connect().unwrap();
        while !stop.load(Ordering::Relaxed) {
            for sql in ["select count(*) from t", "update t set i = i + 1 where i = 7", "select 1"]
            {
                client.batch_execute(sql).unwrap();
            }
            // Its slot is merged into its group.
            drop(server.cluster.connect().unwrap());
        }
    };
    let mut local = Segment::open(&segment(&server.cluster)).unwrap();
    let mut remote = place(&server, "watcher").open().unwrap();
    assert!(remote.is_complete());
    // Under load: between two readings of the file.
    let mut seen = Vec::new();
    while_working(&[&work, &work], || {
        for _ in 0..20 {
            let first = local.snapshot(None).unwrap();
            remote.refresh().unwrap();
            let there = remote.snapshot(None).unwrap();
            seen.push((first, there, local.snapshot(None).unwrap()));
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let mut compared = 0;
    for (first, there, last) in &seen {
        let whole = |snapshot: &Snapshot| -> u64 {
            snapshot
                .books
                .iter()
                .chain(&snapshot.groups)
                .map(|book| book.accounted(&snapshot.directory))
                .sum()
        };
        // No second is missing or counted twice, whatever was merged meanwhile.
        assert!(whole(first) <= whole(there) && whole(there) <= whole(last));
        for book in &there.books {
            let age = book.now - book.born;
            let live = book.life == Life::Alive && !book.torn;
            assert!(!live || book.accounted(&there.directory) == age, "{book:?}");
        }
        let (first, last) = (books(first), books(last));
        for (id, book) in books(there) {
            let (Some(first), Some(last)) = (first.get(&id), last.get(&id)) else { continue };
            // Time that waits to be recorded may be counted twice in a book whose owner was stopped in an
            // update.
            if first.torn || book.torn || last.torn {
                continue;
            }
            // An activity in progress may end earlier than it was seen to run: its end is read from the clock
            // before it is published.
            let ended = |head: &Head| head.total - head.running;
            for ((first, there), last) in first.heads.iter().zip(&book.heads).zip(&last.heads) {
                assert!(first.count <= there.count && there.count <= last.count, "{id:?}");
                let (first, there, last) = (ended(first), ended(there), ended(last));
                assert!(first <= there && there <= last, "{id:?}: {first} {there} {last}");
            }
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared}");

    // At rest, equal to the tick, including histograms, for sessions that did nothing between two readings of
    // the file.
    let first = local.snapshot(None).unwrap();
    remote.refresh().unwrap();
    let there = remote.snapshot(None).unwrap();
    let last = local.snapshot(None).unwrap();
    let (last, known) = (books(&last), books(&first));
    let still: Vec<_> = books(&there)
        .into_iter()
        .filter_map(|(id, book)| Some((*known.get(&id)?, *last.get(&id)?, book)))
        .filter(|(first, last, _)| settled(first) == settled(last) && first.calls == last.calls)
        .collect();
    assert!(still.len() >= 5, "{}", still.len());
    for (file, _, brought) in still {
        assert_eq!(brought.identity, file.identity);
        assert_eq!(settled(brought), settled(file), "{}", file.identity.kind);
        assert_eq!(histograms(brought), histograms(file), "{}", file.identity.kind);
        assert_eq!(
            (&brought.calls, brought.born, brought.run_start),
            (&file.calls, file.born, file.run_start)
        );
    }
    assert_eq!(
        (there.resets, there.level, &there.overflows),
        (first.resets, first.level, &first.overflows)
    );
    // A tick is as long.
    let ratio = remote.clock().ticks_per_second() / local.clock().ticks_per_second();
    assert!((ratio - 1.0).abs() < 1e-4, "{ratio}");

    // Statements, relations, plans and events.
    remote.want(Parts::STATEMENTS.and(Parts::PLANS).and(Parts::RELATIONS)).unwrap();
    let (here, there) =
        (local.statements().unwrap().unwrap(), remote.statements().unwrap().unwrap());
    let rows = |all: &segment::StatementsReading| -> HashMap<String, Value> {
        let all =
            view::statements::StatementsTable::between(None, &std::sync::Arc::new(all.clone()));
        let rows = serde_json::to_value(&all).unwrap()["rows"].as_array().unwrap().clone();
        // Not the statements that the connections themselves executed meanwhile.
        let ours = |row: &Value| {
            row["query"].as_str().is_some_and(|query| query.starts_with("/* tally */"))
        };
        let key = |row: &Value| format!("{} {} {}", row["queryid"], row["user"], row["toplevel"]);
        rows.into_iter().filter(|row| !ours(row)).map(|row| (key(&row), row)).collect()
    };
    let (here, there) = (rows(&here), rows(&there));
    assert!(here.len() >= 5, "{here:?}");
    for (key, row) in &here {
        let other = &there[key];
        for field in ["calls", "rows", "query", "min_seconds", "max_seconds", "database"] {
            let (a, b) = (&row[field], &other[field]);
            let near =
                a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| (a - b).abs() <= 1e-4 * a.abs());
            assert!(a == b || near, "{key} {field}: {a} {b}");
        }
    }
    let events = |segment: &Segment| -> Vec<(u64, u64, String)> {
        let all = segment.events(0).unwrap();
        all.into_iter().map(|event| (event.number, event.tick, event.kind.to_string())).collect()
    };
    assert_eq!(events(&local), events(&remote));
    assert!(!events(&local).is_empty());
    assert_eq!(local.plans().unwrap().len(), remote.plans().unwrap().len());
    let sums = |segment: &Segment| {
        let all = segment.relations().unwrap().unwrap().since(None);
        let total =
            |relation: &segment::RelationRow| serde_json::to_value(relation).unwrap().to_string();
        let mut all: Vec<String> = all.iter().map(total).collect();
        all.sort();
        all.len()
    };
    assert_eq!(sums(&local), sums(&remote));
}

/// According to the segment, a writer was stopped in an update: of a session's book, then of a statement.
#[test]
fn what_cannot_be_read_whole_is_known_as_such() {
    let server = Reachable::start(&[]);
    // A session that ends passes its statements to the table.
    server.cluster.connect().unwrap().batch_execute("select 1").unwrap();
    let mut client = server.cluster.connect().unwrap();
    let pid = support::pid_of(&mut client);
    let path = segment(&server.cluster);
    let mut local = Segment::open(&path).unwrap();
    let mut remote = place(&server, "watcher").open().unwrap();
    remote.want(Parts::STATEMENTS).unwrap();
    let torn = |remote: &mut Segment| -> (Vec<i32>, u32) {
        remote.refresh().unwrap();
        let books = remote.snapshot(None).unwrap().books;
        let books = books.iter().filter(|book| book.torn).map(|book| book.pid);
        (books.collect(), remote.statements().unwrap().unwrap().torn())
    };
    let book =
        local.snapshot(None).unwrap().books.into_iter().find(|book| book.pid == pid).unwrap();
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let word = |at: u64| {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, at).unwrap();
        u64::from_ne_bytes(bytes)
    };
    let set = |at: u64, word: u64| file.write_all_at(&word.to_ne_bytes(), at).unwrap();
    // For a region: its offset, then the number and the size of its entries.
    let at_of = |region: u64, n: u64| word(region) + n * (word(region + 8) >> 32);
    let at = at_of(BOOKS, u64::from(book.slot));
    eventually("it waits for a message", || {
        let snapshot = local.snapshot(None).unwrap();
        let book = snapshot.books.iter().find(|book| book.pid == pid).unwrap();
        let runs = book.run().and_then(|stat| Some(&snapshot.directory.get(stat)?.name));
        if runs.is_some_and(|name| name.starts_with("idle")) {
            Ok(())
        } else {
            Err(runs.cloned())
        }
    });
    let seq = word(at);
    assert!(!torn(&mut remote).0.contains(&pid));
    set(at, seq | 1);
    assert!(torn(&mut remote).0.contains(&pid));
    set(at, seq);
    assert!(!torn(&mut remote).0.contains(&pid));

    let used = |at: &u64| word(*at + STATE) as u32 == 1;
    let all = word(STATEMENTS + 8) & u64::from(u32::MAX);
    let at = (0..all).map(|n| at_of(STATEMENTS, n)).find(used).unwrap();
    let seq = word(at);
    assert_eq!(torn(&mut remote).1, 0);
    set(at, seq | 1);
    // Only what flushes have changed is transferred again.
    let mut remote = place(&server, "watcher").open().unwrap();
    assert_eq!((torn(&mut remote).1, local.statements().unwrap().unwrap().torn()), (1, 1));
    assert_eq!(torn(&mut remote).1, 1);
    set(at, seq);
    assert_eq!((torn(&mut remote).1, local.statements().unwrap().unwrap().torn()), (0, 0));
}

/// A process may stop between the last two steps of a flush: its statement is in the table, and its local entry not released.
/// However long that lasts, nobody counts it twice (format/FORMAT.md, section 8, Reading, step 4).
#[test]
fn a_local_entry_that_a_log_names_does_not_count() {
    let server = Reachable::start(&[]);
    let mut client = server.cluster.connect().unwrap();
    // Its local entry is this session's, which does not end before the test.
    let mut worker = server.cluster.connect().unwrap();
    for _ in 0..3 {
        worker.batch_execute("select 1 as flushed_and_not_released").unwrap();
    }
    let of_statement = "from tally.statements where query like 'select $1 as flushed_and_not%'";
    let id = format!("select queryid {of_statement}");
    let queryid: i64 = client.query_one(&id, &[]).unwrap().get(0);
    let path = segment(&server.cluster);
    let mut local = Segment::open(&path).unwrap();
    let mut remote = place(&server, "watcher").open().unwrap();
    remote.want(Parts::STATEMENTS).unwrap();
    let calls_of = |segment: &mut Segment| -> u64 {
        let all = segment.statements().unwrap().unwrap();
        let own = all.statements().iter().filter(|statement| statement.key.query_id() == queryid);
        own.map(|statement| statement.calls()).sum()
    };
    let mut calls = || {
        remote.refresh().unwrap();
        let sum = format!("select coalesce(sum(calls), 0)::bigint {of_statement}");
        let of_view: i64 = client.query_one(&sum, &[]).unwrap().get(0);
        [calls_of(&mut local), of_view as u64, calls_of(&mut remote)]
    };
    assert_eq!(calls(), [3, 3, 3]);

    let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let word = |at: u64| {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, at).unwrap();
        u64::from_ne_bytes(bytes)
    };
    let (slot, index, at) = local_entry(&file, queryid as u64);
    let generation = word(at + local_statement::GENERATION as u64);
    let item = generation << 24 | u64::from(index) << 16 | u64::from(slot);
    let sets = header::SETS as u64;
    for n in 0..word(sets + 8) & u64::from(u32::MAX) {
        let at = word(sets) + n * (word(sets + 8) >> 32);
        // Not at the last flush: the reading need not have seen that one.
        let position = (word(at + set::FLUSHES as u64) + 5) % SET_LOG as u64;
        if word(at) >> 32 != 0 {
            file.write_all_at(&item.to_ne_bytes(), at + set::LOG as u64 + position * 8).unwrap();
        }
    }
    for _ in 0..3 {
        assert_eq!(calls(), [0, 0, 0]);
    }
}

#[test]
fn a_role_gets_what_postgresql_would_show_it() {
    let server = Reachable::start(&[]);
    let mut poor = server.cluster.config().user("poor").connect(postgres::NoTls).unwrap();
    poor.batch_execute("select 'of poor', 1, 2, 3").unwrap();
    let mut other = server.cluster.connect().unwrap();
    other.batch_execute("select 'of postgres', 1, 2; checkpoint").unwrap();
    let statements = |role: &str| {
        let mut command = tally();
        command.env("PGPASSWORD", PASSWORD).args(["statements", "--all", "--json"]);
        output(command.arg(server.string(role)))
    };
    let (all, own) = (statements("watcher"), statements("poor"));
    assert!(all.contains("select $1, $2, $3\"") && all.contains("select $1, $2, $3, $4"), "{all}");
    assert!(own.contains("select $1, $2, $3, $4") && !own.contains("select $1, $2, $3\""), "{own}");
    let own: Value = serde_json::from_str(&own).unwrap();
    let mut users: Vec<&Value> =
        own["rows"].as_array().unwrap().iter().map(|row| &row["user"]).collect();
    users.dedup();
    assert_eq!(users, ["poor"]);
    assert!(
        own["host"].as_str().unwrap().ends_with("only sessions and statements of your own roles"),
        "{own}"
    );
    // The transferred data contains neither the other role's sessions nor the location of the data directory;
    // seen_by_role examines each byte.
    let mut segment = place(&server, "poor").open().unwrap();
    segment.want(Parts::STATEMENTS.and(Parts::PLANS).and(Parts::RELATIONS)).unwrap();
    assert!(!segment.is_complete());
    let snapshot = segment.snapshot(None).unwrap();
    assert!(snapshot.books.iter().chain(&snapshot.groups).all(|book| book.identity.user == "poor"));
    assert_eq!(segment.events(0).unwrap().len(), 0);
    let data = server.cluster.data_dir().display().to_string();
    assert!(!segment.header().host.contains(&data));
}

#[test]
fn a_member_of_a_role_sees_its_sessions_but_not_its_statements() {
    let server = Reachable::start(&[]);
    let quoted = PASSWORD.replace('\'', "''");
    server
        .cluster
        .psql(&format!("create role leader login password '{quoted}' in role poor"))
        .unwrap();
    let mut poor = server.cluster.config().user("poor").connect(postgres::NoTls).unwrap();
    // Flushed into the table, in the session's cache, and in progress.
    poor.batch_execute("select 'flushed', 1, 2").unwrap();
    drop(poor);
    let mut poor = server.cluster.config().user("poor").connect(postgres::NoTls).unwrap();
    poor.batch_execute("select 'cached', 1, 2, 3; begin; select 'last', 1, 2, 3, 4").unwrap();
    let mut leader = server.cluster.config().user("leader").connect(postgres::NoTls).unwrap();
    let rows = leader
        .query(
            "select queryid is null and query = '<insufficient privilege>' from tally.statements
             where usename = 'poor'",
            &[],
        )
        .unwrap();
    assert!(rows.len() >= 3 && rows.iter().all(|row| row.get(0)), "{rows:?}");
    let mut command = tally();
    command.env("PGPASSWORD", PASSWORD).args(["statements", "--all", "--json"]);
    let brought = output(command.arg(server.string("leader")));
    assert!(!brought.contains("\"poor\""), "{brought}");
    let mut segment = place(&server, "leader").open().unwrap();
    segment.want(Parts::STATEMENTS.and(Parts::PLANS)).unwrap();
    let snapshot = segment.snapshot(None).unwrap();
    assert!(snapshot.books.iter().any(|book| book.identity.user == "poor"));
}

#[test]
fn the_verbs_work_through_a_connection() {
    let server = Reachable::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("r");
    let target = server.string("watcher");
    let run = |args: &[&str]| {
        let mut command = tally();
        command.env("PGPASSWORD", PASSWORD).args(args);
        output(&mut command)
    };
    let elsewhere = "run tally where the server runs";
    let top: Value = serde_json::from_str(&run(&["top", "--once", "--json", &target])).unwrap();
    assert!(top.to_string().contains(elsewhere), "{top}");
    assert!(top["ledger"].as_array().is_some_and(|rows| !rows.is_empty()), "{top}");
    assert!(run(&["top", "--once", "--view", "io", &target]).contains(elsewhere));
    let status: Value = serde_json::from_str(&run(&["status", "--json", &target])).unwrap();
    assert_eq!(status["segment"]["resident_bytes"], Value::Null);
    assert_eq!(status["witness"]["available"], false);
    assert_eq!(run(&["level", &target]), "waits\n");
    run(&["statements", &target]);
    run(&["events", &target]);
    run(&["blocking", &target]);
    run(&["doctor", "--for", "1s", &target]);
    run(&["functions", "--interval", "200ms", &target]);
    run(&["record", "--for", "2s", "-o", recording.to_str().unwrap(), &target]);
    assert!(run(&["report", recording.to_str().unwrap()]).contains("PostgreSQL"));
    // Anything that would change the segment, or measure on its machine, is refused.
    for verb in [
        &["level", "locks"][..],
        &["cost"],
        &["record", "--duty", "1s/2s", "-o", "/nonexistent/x"],
        &["record", "--parameters", "-o", "/nonexistent/x"],
        &["top", "--json", "--once", "--parameters"],
    ] {
        let mut command = tally();
        command.env("PGPASSWORD", PASSWORD).args(verb).arg(&target);
        let error = complaint(&mut command, 1);
        assert!(error.contains("only on the server's machine"), "{verb:?}: {error}");
    }
}

#[test]
fn time_limits_of_the_role_do_not_end_a_recording() {
    let server = Reachable::start(&[]);
    // A session is idle for longer between two intervals, and reading everything takes longer than a statement
    // may.
    for (limit, value) in [
        ("statement_timeout", "1ms"),
        ("lock_timeout", "1ms"),
        ("idle_in_transaction_session_timeout", "1s"),
        ("idle_session_timeout", "1s"),
    ] {
        server.cluster.psql(&format!("alter role watcher set {limit} = '{value}'")).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let mut record = tally();
    record.env("PGPASSWORD", PASSWORD).args(["record", "--json", "--interval", "2s"]);
    record.args(["--for", "5s", "-o", folder.path().join("r").to_str().unwrap()]);
    let json: Value = serde_json::from_str(&output(record.arg(server.string("watcher")))).unwrap();
    assert!(json["intervals"].as_u64().unwrap() > 1, "{json}");
    assert_eq!((&json["gaps"], &json["notes"]), (&0.into(), &serde_json::json!([])), "{json}");
}

#[test]
fn a_dropped_database_is_the_reason_of_a_gap_and_nothing_recorded_is_an_error() {
    let mut server = Reachable::start(&[]);
    server.cluster.psql("create database shop").unwrap();
    let mut shop = server.cluster.config().dbname("shop").connect(postgres::NoTls).unwrap();
    shop.batch_execute("create extension pg_tally").unwrap();
    drop(shop);
    let of_shop = |role: &str| server.full_string(role).replace("dbname=postgres", "dbname=shop");
    let source = SegmentSource::Server(Conninfo::parse(&of_shop("watcher")).unwrap());
    let wanted = FollowOptions { figures: Figures::Frames, ..FollowOptions::default() };
    let mut follower = Follower::open(source, wanted).unwrap();
    assert!(matches!(follower.step(false)[..], [Step::Events(_), Step::Frame(_)]));
    // A session that was merely terminated is opened again in the same step.
    let end =
        "select pg_terminate_backend(pid, 60000) from pg_stat_activity where datname = 'shop'";
    server.cluster.psql(end).unwrap();
    let steps = follower.step(false);
    assert!(
        matches!(&steps[..], [Step::Ended(why), Step::Attached { fresh: false }]
        if why.starts_with("could not read the segment: ")),
        "{steps:?}"
    );
    server.cluster.psql("drop database shop with (force)").unwrap();
    let steps = follower.step(false);
    let [Step::Ended(_), Step::Absent(absent)] = &steps[..] else { panic!("{steps:?}") };
    assert!(absent.to_string().contains("database \"shop\" does not exist"), "{absent}");
    let folder = tempfile::tempdir().unwrap();
    let refused = |target: &str| {
        let output = folder.path().join("r");
        let mut record = tally();
        record.args(["record", "--for", "1s", "-o", output.to_str().unwrap(), target]);
        complaint(&mut record, 1)
    };
    let error = refused(&of_shop("watcher"));
    assert!(error.contains("database \"shop\" does not exist"), "{error}");
    // A server that may start again, and does not.
    let path = folder.path().join("segment");
    std::fs::copy(segment(&server.cluster), &path).unwrap();
    server.cluster.stop(scratch::StopMode::Fast).unwrap();
    let error = refused(path.to_str().unwrap());
    assert!(error.contains("nothing was recorded: "), "{error}");
}

#[test]
fn a_restart_is_followed() {
    let mut server = Reachable::start(&[]);
    let wanted =
        FollowOptions { figures: Figures::Intervals, statements: true, ..FollowOptions::default() };
    let mut follower = Follower::open(place(&server, "watcher"), wanted).unwrap();
    let interval =
        |steps: Vec<Step>| steps.into_iter().any(|step| matches!(step, Step::Interval(_)));
    assert!(interval(follower.step(true)));
    server.cluster.stop(scratch::StopMode::Fast).unwrap();
    let steps = follower.step(true);
    assert!(matches!(steps[..], [Step::Ended(_), Step::Absent(_)]), "{steps:?}");
    assert!(matches!(follower.step(true)[..], [Step::Absent(_)]));
    server.cluster.start().unwrap();
    let steps = follower.step(true);
    assert!(matches!(steps[..], [Step::Attached { .. }]), "{steps:?}");
    assert!(interval(follower.step(true)));
    // A single connection that breaks.
    server
        .cluster
        .psql("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'watcher'")
        .unwrap();
    let steps = follower.step(true);
    assert!(matches!(steps[..], [Step::Ended(_), Step::Attached { fresh: false }]), "{steps:?}");
    eventually("it is attached again", || interval(follower.step(true)));
}

#[test]
fn the_error_names_what_is_missing() {
    let server = Reachable::start(&[]);
    let error = |target: &str| {
        let mut command = tally();
        complaint(command.env("PGPASSWORD", PASSWORD).args(["top", "--once"]).arg(target), 1)
    };
    let target = server.string("watcher");
    server.cluster.psql("create database other").unwrap();
    let message = error(&target.replace("dbname=postgres", "dbname=other"));
    assert!(message.contains("database other does not have the extension pg_tally"), "{message}");
    // An earlier version, and a function of that name that does not belong to the extension.
    server
        .cluster
        .psql("alter extension pg_tally drop function tally.segment_changes(bigint, integer)")
        .unwrap();
    let message = error(&target);
    assert!(message.contains("an earlier version"), "{message}");
    // Neither password nor certificate.
    let wrong = tally().env("PGPASSWORD", "x").args(["top", "--once", &target]).output().unwrap();
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("password authentication failed"));
    let message =
        error(&target.replace(&server.certificate.display().to_string(), "/etc/hostname"));
    assert!(message.contains("root certificate"), "{message}");
    let message = error(&target.replace("verify-full", "disable"));
    assert!(message.contains("no pg_hba.conf entry"), "{message}");
}

/// The function belongs to the extension, but the owner of the database has written another one, just as another
/// server may return anything.
#[test]
fn no_answer_ends_the_command_but_with_an_error() {
    let server = Reachable::start(&[]);
    let columns = [
        ("next_mark", "bigint", "1"),
        ("tick", "bigint", "1"),
        ("monotonic_ns", "bigint", "1"),
        ("realtime_ns", "bigint", "1"),
        ("sees_all", "boolean", "true"),
        ("processors", "integer", "1"),
        ("slot_ticks", "bytea", r"'\x00'"),
        ("raw_size", "integer", "0"),
        ("changes", "bytea", "''"),
    ];
    let answer = |values: &[&str]| {
        let outs: Vec<String> =
            columns.iter().map(|(name, of, _)| format!("out {name} {of}")).collect();
        let sql = format!(
            "create or replace function tally.segment_changes(mark bigint default 0, parts integer default 7, {}) \
             returns setof record language sql as $$ select {} $$",
            outs.join(", "),
            values.join(", ")
        );
        server.cluster.psql(&sql).unwrap();
        let mut command = tally();
        command.env("PGPASSWORD", PASSWORD).args(["top", "--once"]).arg(server.string("watcher"));
        complaint(&mut command, 1)
    };
    let usual: Vec<String> =
        columns.iter().map(|(_, of, value)| format!("{value}::{of}")).collect();
    let usual: Vec<&str> = usual.iter().map(String::as_str).collect();
    for at in 0..columns.len() {
        let mut values = usual.clone();
        let null = format!("null::{}", columns[at].1);
        values[at] = &null;
        let message = answer(&values);
        assert!(!message.contains("panicked") && message.starts_with("tally: "), "{message}");
    }
    // The original contents: an empty image.
    let message = answer(&usual);
    assert!(message.starts_with("tally: "), "{message}");
}

#[test]
fn a_snapshot_is_small() {
    let server = Reachable::start(&[]);
    let mut client = server.cluster.connect().unwrap();
    let mut call = |mark: i64| -> (i64, i32) {
        let sql = "select next_mark, length(slot_ticks) + length(changes) from tally.segment_changes($1, 0)";
        let row = client.query_one(sql, &[&mark]).unwrap();
        (row.get(0), row.get(1))
    };
    let (mark, first) = call(0);
    let (next, second) = call(mark);
    assert!(second < 4096 && second < first / 4, "{first} {second}");
    // Another reader's mark makes the server transfer everything again.
    let (_, again) = call(mark);
    assert!(again > first / 2, "{first} {again}");
    assert_ne!(next, mark);
}
