// SPDX-License-Identifier: PostgreSQL
//! `tally top` as text and JSON, on segments that the test writes.

use std::io::{BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use crate::maker::{Maker, Who, ACCOUNT, TIMER};
use crate::support::json_reference::{assert_documented, documented, fields, PAGE};
use crate::support::top::Top;
use crate::support::{eventually, line_of};
use crate::waiting::{segment, SHAPE};
use segment::clock::monotonic_ns;
use segment::layout::header;
use serde_json::Value;

fn top(args: &[&str], path: &PathBuf) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tally"));
    command.arg("top").args(args).arg(path);
    command
}

fn run(args: &[&str], path: &PathBuf) -> Output {
    top(args, path).output().unwrap()
}

#[test]
fn intervals_as_json_are_as_documented() {
    let (_folder, path, mut maker) = segment();
    let begun = Instant::now();
    let mut top = Top::start(&["--interval", "0.2"], &path);
    top.interval();
    let first = Instant::now();
    let mut intervals = vec![top.interval(), top.interval()];
    // A second session does a bit of everything.
    let read = first.elapsed().as_secs_f64();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let mut slot = maker.claim(1, 1, Who::client(), cpu, monotonic_ns());
    for name in [
        "lwlock::ProcArray::held::execute::shared",
        "lock::relation::wait::execute::ShareLock",
        "lock::deadlock::check::execute",
        "spin::delay::execute",
        "function::XLogFlush::inclusive::execute",
        "edge::XLogFlush::pg_fsync",
        "file::main@16385::read::execute",
        "file::wal::sync failed::execute",
        "commit::leader",
        "commit::sync",
        "checkpoint::total",
        "something::else",
    ] {
        let stat = maker.stat(name, TIMER);
        slot.record(stat, 1000);
    }
    maker.write(&slot);
    maker.event(1, 4, "sync: 7.020 s: pg_xact/000C");
    maker.event(2, 5, "checkpoint ends: reason=time total=1.5 file=base/5/1");
    maker.event(3, 5, "checkpoint begins: reason=request");
    // The fields in the document's section on intervals are exactly those that exist.
    let (document, _) = PAGE.split_once("# The JSON of `tally statements`").unwrap();
    let documented = documented(document, "[samples](any-server.md)");
    eventually("all documented fields are written", || {
        intervals.push(top.interval());
        let written = fields(&intervals);
        documented.iter().all(|name| written.contains(*name))
    });
    assert_documented(document, fields(&intervals));

    let number = |value: &Value| value.as_f64().unwrap();
    for interval in &intervals {
        let wall = number(&interval["wall_seconds"]);
        let accounts = interval["ledger"].as_array().unwrap().iter();
        let sum: f64 = accounts.map(|account| number(&account["seconds"])).sum();
        assert!((sum / wall - 1.0).abs() < 1e-9, "{sum} {wall}");
    }
    // The session has lived as long as the intervals: longer than the test observed between two of them, and no
    // longer than it observed in total.
    let sessions = |interval: &Value| interval["sessions"].as_array().unwrap().clone();
    let lived: f64 = intervals
        .iter()
        .map(|interval| {
            let sessions = sessions(interval);
            let session = sessions.iter().find(|row| row["activity"] == "IO:WALSync").unwrap();
            assert_eq!(session["pid"], std::process::id());
            number(&session["lived_seconds"])
        })
        .sum();
    let longest = begun.elapsed().as_secs_f64();
    assert!((read..longest).contains(&lived), "{read} {lived} {longest}");
}

#[test]
fn the_requested_number_of_intervals_is_printed() {
    let (_folder, path, _maker) = segment();
    let output = run(&["--json", "--count", "3", "--interval", "0.1", "--no-witness"], &path);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 3);
    let kernel = &serde_json::from_str::<Value>(text.lines().last().unwrap()).unwrap()["kernel"];
    assert_eq!(kernel["available"], false);
    assert!(kernel["reason"].as_str().unwrap().contains("--no-witness"));
}

#[test]
fn one_interval_as_text_has_every_pane_and_no_colour() {
    let (_folder, path, _maker) = segment();
    let output = run(&["--once", "--interval", "0.1"], &path);
    let text = String::from_utf8(output.stdout).unwrap();
    for word in ["PostgreSQL 15.20", "Ledger", "Waits", "Commands", "Sessions", "IO:WALSync"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!text.contains('\x1b'));
    let only = run(&["--once", "--interval", "0.1", "--view", "waits"], &path);
    let text = String::from_utf8(only.stdout).unwrap();
    assert!(text.contains("\nWAIT ") && !text.contains("Sessions"), "{text}");
}

#[test]
fn it_ends_quietly_when_the_reader_closes_the_pipe() {
    let (_folder, path, _maker) = segment();
    let mut child = top(&["--json", "--interval", "0.1"], &path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let line = line_of(&mut BufReader::new(child.stdout.take().unwrap()));
    assert!(line.ends_with("}\n"));
    let status = child.wait().unwrap();
    let mut message = String::new();
    child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
    assert!(status.success() && message.is_empty(), "{status} {message}");
}

#[test]
fn a_server_that_restarts_is_followed() {
    let (folder, path, maker) = segment();
    let mut top = Top::start(&["--interval", "0.1"], &path);
    assert!(top.interval().to_string().contains("WALSync"));
    std::fs::remove_file(&path).unwrap();
    drop(maker);
    top.until_printed("the server has ended");
    let half_made = folder.path().join("new");
    let mut next = Maker::new(&half_made, SHAPE);
    let cpu = next.stat("parse::cpu", ACCOUNT);
    next.claim(0, 1, Who::client(), cpu, monotonic_ns());
    std::fs::rename(&half_made, &path).unwrap();
    eventually("the new server's session is read", || {
        top.interval().to_string().contains("\"parse\"")
    });
    top.until_printed("was restarted");
}

#[test]
fn a_server_that_restarts_with_the_same_segment_is_followed() {
    let (_folder, path, maker) = segment();
    let mut top = Top::start(&["--interval", "0.1"], &path);
    assert!(top.interval().to_string().contains("WALSync"));
    let mut ended = Command::new("true").spawn().unwrap();
    maker.u32(header::SERVER_PID as u64, ended.id());
    ended.wait().unwrap();
    top.until_printed("the server has stopped");
    maker.u32(header::SERVER_PID as u64, std::process::id());
    top.until_printed("was restarted");
    assert!(top.interval().to_string().contains("WALSync"));
}

#[test]
fn what_cannot_be_shown_is_an_error_with_a_reason() {
    let (folder, path, maker) = segment();
    let mut child = Command::new("true").spawn().unwrap();
    maker.u32(header::SERVER_PID as u64, child.id());
    child.wait().unwrap();
    let dead = run(&["--once"], &path);
    assert_eq!(dead.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&dead.stderr).contains("is no longer running"));

    let other = folder.path().join("other");
    std::fs::write(&other, "nothing of the kind").unwrap();
    let refused = run(&["--once"], &other);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("not a segment"));
}
