// SPDX-License-Identifier: PostgreSQL
//! The statements of a Java client: executions agree with proxies that count them, and messages with the server's
//! counts, with the oldest and the newest driver.

use crate::support;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::support::java::{agent, java, Java};
use crate::support::{eventually, output, tally};
use segment::{Interval, Segment};
use serde_json::Value;

/// The driver's own statement, with which a pool checks a connection.
const CHECK: &str = "(empty, as of Connection.isValid)";

/// Rounds of the program, each of about 20 executions: 20, or PGTALLY_CALLS.
fn rounds() -> u64 {
    std::env::var("PGTALLY_CALLS").map_or(20, |text| text.parse::<u64>().unwrap().div_ceil(20))
}

fn row<'v>(json: &'v Value, text: &str) -> &'v Value {
    let rows = json["calls"].as_array().unwrap();
    rows.iter().find(|row| row["text"] == text).unwrap_or_else(|| panic!("{text}: {json:#}"))
}

/// Messages that the server has read.
fn commands(path: &Path) -> u64 {
    let mut segment = Segment::open(path).unwrap();
    let snapshot = segment.snapshot(None).unwrap();
    let interval = Interval::between(&segment, None, &snapshot);
    interval.commands.iter().map(|command| command.read.count).sum()
}

#[test]
fn the_agents_code_fits_into_the_oldest_and_the_newest_driver_and_a_pool() {
    let Some(java) = java() else { return };
    let built = agent().parent().unwrap().to_owned();
    let jars = ["old", "lib"].map(|folder| std::fs::read_dir(built.join(folder)).unwrap());
    let jars = jars.into_iter().flatten().map(|jar| jar.unwrap().path());
    let known = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("postgresql-") || name.starts_with("HikariCP-")
    };
    let jars: Vec<_> = jars.filter(|path| known(path)).collect();
    assert_eq!(jars.len(), 3, "{jars:?}");
    let mut check = assert_cmd::Command::new(&java.program);
    check.arg("-cp").arg(agent()).arg("org.pgtally.agent.LibraryCheck").args(&jars);
    let text = output(&mut check);
    for line in text.lines() {
        let (name, found) = line.split_once('\t').unwrap();
        let (fits, left_out) = found.split_once('\t').unwrap();
        let points = if name.starts_with("postgresql-") { 30 } else { 1 };
        assert!(fits.parse::<u32>().unwrap() >= points && left_out.is_empty(), "{line}");
    }
    // A library without any call point is refused.
    let mut check = Command::new(&java.program);
    check.arg("-cp").arg(agent()).arg("org.pgtally.agent.LibraryCheck").arg(agent());
    assert!(!check.output().unwrap().status.success());
}

#[test]
fn executions_and_messages_agree_with_proxies_and_the_server() {
    let Some(java) = java() else { return };
    let rounds = rounds();
    let (cluster, port) =
        support::on_loopback(support::plain().setting("shared_preload_libraries", "pg_tally"));
    let url = format!("jdbc:postgresql://127.0.0.1:{port}/postgres?sslmode=disable");
    for java in [java.clone(), Java { old_driver: true, ..java }] {
        let program = ["org.pgtally.test.Statements", &url, "postgres", &rounds.to_string()];
        let mut client = java.start("methods=none.None", &program);
        let before = commands(&support::segment(&cluster));
        let lines = client.finish();
        let json = client.calls();
        let mut counted = 0;
        for line in lines.iter().filter_map(|line| line.strip_prefix("counted ")) {
            let (count, text) = line.split_once(' ').unwrap();
            let found = &row(&json, text)["execute"]["count"];
            assert_eq!(found, count.parse::<u64>().unwrap(), "{text}: {json:#}");
            counted += 1;
        }
        assert_eq!(counted, 12, "{lines:?}");
        let sum = |key: &str| -> u64 {
            let rows = json["calls"].as_array().unwrap();
            rows.iter().map(|row| row[key].as_u64().unwrap()).sum()
        };
        // Two connections have ended, each by a message that belongs to no statement; the last one may not have
        // been read yet.
        eventually("its sessions have ended", || {
            cluster.processes().iter().all(|process| !process.title.contains("127.0.0.1"))
        });
        let server = commands(&support::segment(&cluster)) - before;
        assert_eq!(sum("messages") + 2, server, "{json:#}");
        println!("{server} messages");
        let bytes = ["bytes_sent", "bytes_received"].map(sum);
        let witness = lines.iter().find_map(|line| line.strip_prefix("bytes ")).unwrap();
        assert_eq!(format!("{} {}", bytes[0], bytes[1]), witness, "{json:#}");
        println!("{witness} bytes sent and received");
        // Each prepared statement was made and closed once; the others were not prepared.
        for call in json["calls"].as_array().unwrap() {
            let text = call["text"].as_str().unwrap();
            if text == CHECK {
                continue;
            }
            let made = if text.contains('?') { &call["execute"]["count"] } else { &Value::from(0) };
            assert_eq!([&call["prepare"]["count"], &call["close"]["count"]], [made; 2], "{call:#}");
        }
        let long = row(&json, "select repeat(?::text, 100000)");
        assert!(long["bytes_received"].as_u64().unwrap() > 100_000 * rounds, "{long:#}");

        let cursor = row(&json, "select * from generate_series(1, ?)");
        assert_eq!([&cursor["rows"], &cursor["fetch"]["count"]], [25 * rounds, 2 * rounds]);
        assert_eq!([&cursor["round_trips"], &cursor["max_rows"]], [3 * rounds, 10]);
        let copied = ["copy t from stdin", "copy (select 1) to stdout"];
        let copied = copied.map(|text| row(&json, text)["rows"].as_u64());
        assert_eq!(copied, [Some(2 * rounds), Some(rounds)], "{json:#}");
        let batch = row(&json, "insert into t values (?)");
        assert_eq!([&batch["batches"], &batch["batched"]], [rounds, 3 * rounds]);
        assert_eq!(row(&json, "select 1/0")["failed"], rounds);
        let child = row(&json, "select max(a) from t where a < ?");
        assert_eq!([&child["repeating_transactions"], &child["max_repeated"]], [1, 12]);
        assert_eq!(json["pool_wait"]["count"], 3, "{json:#}");
        for call in json["calls"].as_array().unwrap() {
            let seconds = |key: &str| call[key].as_f64().unwrap();
            let on_the_wire = ["execute", "fetch"]
                .map(|part| call[part]["seconds"].as_f64().unwrap())
                .iter()
                .sum();
            assert!(seconds("wait_seconds") <= on_the_wire, "{call:#}");
            assert!(seconds("first_seconds") <= on_the_wire, "{call:#}");
        }
        assert_eq!(json["exact"], true);

        let text = output(tally().arg("calls").arg(client.segment()));
        for expected in [
            "(N+1 problem): select max(a)",
            "12000 rows at once",
            "ELAPSED",
            "waits for a pooled connection",
        ] {
            assert!(text.replace(',', "").contains(expected), "{expected}: {text}");
        }
        let left_out = output(tally().arg("status").arg(client.segment()));
        assert!(!left_out.contains("no such method"), "{left_out}");
        client.end();
    }
}

#[test]
fn statements_that_are_repeated_by_mistake_are_named_and_no_others() {
    let Some(java) = java() else { return };
    let (_cluster, port) = support::on_loopback(support::plain());
    let url = format!("jdbc:postgresql://127.0.0.1:{port}/postgres?sslmode=disable");
    for java in [java.clone(), Java { old_driver: true, ..java }] {
        let mut client = java.start("threads=16", &["org.pgtally.test.Repeated", &url, "postgres"]);
        let lines = client.finish();
        let json = client.calls();
        let calls = json["calls"].as_array().unwrap();
        // The name of a column of each statement says which it is.
        let texts = |wanted: fn(&Value) -> bool| -> BTreeSet<&str> {
            calls
                .iter()
                .filter(|call| wanted(call))
                .map(|call| call["text"].as_str().unwrap())
                .collect()
        };
        let bad = texts(|call| call["text"].as_str().unwrap().contains("bad_"));
        assert_eq!(bad.len(), 9, "{bad:?}");
        assert_eq!(texts(|call| call["repeated"] != 0), bad);
        for call in calls.iter().filter(|call| call["repeated"] != 0) {
            let figures =
                ["repeating_transactions", "repeated", "max_repeated"].map(|key| &call[key]);
            assert_eq!(figures, [1, 12, 12], "{call:#}");
        }
        assert!(
            calls.iter().filter(|call| call["text"].as_str().unwrap().contains("good_")).count()
                > 6
        );
        // Comments are no part of a text.
        let commented = row(&json, "select number bad_commented from child where parent = ?");
        assert_eq!(commented["execute"]["count"], 12);
        // More texts than have a row of their own: all executions are counted.
        let counted: u64 = lines[0].strip_prefix("executed ").unwrap().parse().unwrap();
        let of_the_pool = |call: &&Value| {
            let text = call["text"].as_str().unwrap();
            text == CHECK || text.starts_with("SHOW") || text.starts_with("SET")
        };
        let own = calls.iter().filter(|call| !of_the_pool(call));
        let all: u64 = own.map(|call| call["execute"]["count"].as_u64().unwrap()).sum();
        let others = row(&json, "(statements without an entry of their own)");
        assert!(others["execute"]["count"].as_u64() > Some(40), "{others:#}");
        assert_eq!(all, counted, "{json:#}");

        let status = output(tally().arg("status").arg(client.segment()));
        assert!(status.starts_with("client         Java "), "{status}");
        for servers in ["server", "preload", "pg_tally.max", "port", "relations"] {
            let lines = status.lines().filter(|line| !line.starts_with("segment"));
            assert_eq!(
                lines.filter(|line| line.contains(servers)).count(),
                0,
                "{servers}: {status}"
            );
        }
        client.child.kill().unwrap();
        client.child.wait().unwrap();
        let status = output(tally().arg("status").arg(client.segment()));
        assert!(status.contains("the process has ended; this is its last state"), "{status}");
    }
}

#[test]
fn a_borrowed_connection_that_is_not_used_is_named_until_it_is_returned() {
    let Some(java) = java() else { return };
    let (_cluster, port) = support::on_loopback(support::plain());
    let url = format!("jdbc:postgresql://127.0.0.1:{port}/postgres?sslmode=disable");
    for java in [java.clone(), Java { old_driver: true, ..java }] {
        let mut client =
            java.start("threads=16,unused=1", &["org.pgtally.test.Unused", &url, "postgres"]);
        let mut unused = Value::Null;
        eventually("it is named", || {
            unused = client.calls()["unused"].take();
            unused.as_array().unwrap().len() == 1
        });
        assert_eq!([&unused[0]["pool"], &unused[0]["thread"]], ["shop", "forgetful"]);
        assert!(unused[0]["server"].as_str().unwrap().starts_with("server process "), "{unused}");
        assert!(unused[0]["seconds"].as_f64() >= Some(1.0), "{unused}");
        let text = output(tally().arg("calls").arg(client.segment()));
        assert!(text.contains("borrowed from pool shop and not used for "), "{text}");
        // Where the thread was at that time.
        let events = output(tally().arg("events").arg(client.segment()));
        assert!(events.contains("org.pgtally.test.Unused.keep"), "{events}");
        // The pool opens its connections one after the other.
        let mut json = Value::Null;
        eventually("all connections are open", || {
            json = client.calls();
            json["open_connections"]["max"] == 3
        });
        assert_eq!(json["borrowed_connections"]["max"], 2, "{json:#}");
        let text = output(tally().arg("calls").arg(client.segment()));
        let line = text.lines().find(|line| line.contains(" connections open on average")).unwrap();
        assert!(line.starts_with(|c: char| c.is_ascii_digit()) && !text.contains('\\'), "{text}");
        client.finish();
        eventually("it is returned", || client.calls()["unused"].as_array().unwrap().is_empty());
        client.end();
    }
}

#[test]
fn a_client_s_limits_are_named_by_the_agent_s_options() {
    let Some(java) = java() else { return };
    let options = "methods=org.pgtally.test.Edges$Calls,threads=1,edges=on";
    let mut client = java.start(options, &["org.pgtally.test.Edges", "4", "10"]);
    client.finish();
    let status = output(tally().arg("status").arg(client.segment()));
    // Of its threads, and of the virtual machine's pauses.
    assert_eq!(status.matches("raise the agent's option threads").count(), 2, "{status}");
    assert!(!status.contains("pg_tally.max"), "{status}");
    client.end();
}
