// SPDX-License-Identifier: PostgreSQL
//! `tally top --replay`: synthetic recordings as text, as JSON and in a real terminal.

use crate::support;
use std::path::{Path, PathBuf};

use crate::frames::{Maker, MIDNIGHT, SECOND};
use crate::support::tmux::Tmux;
use assert_cmd::Command;
use recording::{Batch, DeviceRow, EventRow, GapRow, KernelRow, RelationRow};
use segment::Interval;
use serde_json::Value;
use tempfile::TempDir;

/// Two minutes, a gap of ten seconds, another half minute, with a slow sync in the second minute; and the
/// sum.
fn recording() -> (TempDir, PathBuf, Interval) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording");
    let mut maker = Maker::new(&path);
    maker.seconds(120);
    let from_us = maker.time_us;
    maker.time_us += 10 * SECOND;
    let gap = GapRow {
        time_us: maker.time_us,
        from_us,
        length_ns: 10_000_000_000,
        reason: "the recorder was stopped".into(),
        ..GapRow::default()
    };
    let event = EventRow {
        time_us: MIDNIGHT + 95 * SECOND,
        server: 1,
        number: 1,
        pid: 4242,
        kind: "slow".into(),
        text: "sync: 2.500 s: pg_xact/0000".into(),
        ..EventRow::default()
    };
    let (gaps, events) = (vec![gap], vec![event]);
    maker.writer.push(Batch { gaps, events, ..Batch::default() }).unwrap();
    maker.seconds(30);
    let sum = Interval::from_frame(maker.sum.as_ref().unwrap());
    maker.writer.close().unwrap();
    (folder, path, sum)
}

fn replay(args: &[&str], path: &Path) -> Command {
    let mut command = support::tally();
    command.env("TZ", "UTC").args(["top", "--replay"]).arg(path).args(args);
    command
}

fn intervals(args: &[&str], path: &Path) -> Vec<Value> {
    let text = support::output(replay(args, path).arg("--json"));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn seconds(intervals: &[Value]) -> f64 {
    let ledger = intervals.iter().flat_map(|interval| interval["ledger"].as_array().unwrap());
    ledger.map(|account| account["seconds"].as_f64().unwrap()).sum()
}

fn close(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-6
}

#[test]
fn intervals_of_any_length_add_up_to_the_recording() {
    let (_folder, path, sum) = recording();
    let whole: f64 = sum.ledger.iter().map(|account| account.timing.seconds).sum();
    for (args, count) in
        [(&["--interval", "1"][..], 150), (&[], 150), (&["--interval", "10"], 15), (&["--once"], 1)]
    {
        let found = intervals(args, &path);
        assert_eq!(found.len(), count, "{args:?}");
        assert!(close(seconds(&found), whole), "{args:?}: {} {whole}", seconds(&found));
        let commands: u64 =
            found.iter().map(|interval| interval["commands_handled"].as_u64().unwrap()).sum();
        assert_eq!(commands, sum.commands_handled, "{args:?}");
    }
    let part = intervals(&["--since", "00:01:30", "--until", "00:01:40"], &path);
    assert_eq!(part.len(), 10);
    assert_eq!(part[9]["time"], (MIDNIGHT / SECOND + 100) as f64);
    assert_eq!(part[9]["io"]["slow"][0]["text"], "sync: 2.500 s: pg_xact/0000");
    assert_eq!(part[3]["io"]["slow"].as_array().unwrap().len(), 0, "it comes later");
    assert_eq!(intervals(&["--since", "-20s", "--count", "3"], &path).len(), 3);
}

#[test]
fn diagnoses_cover_the_last_ten_seconds_as_in_a_live_view() {
    let (_folder, path, _) = recording();
    let seconds = |args: &[&str]| -> Vec<f64> {
        let all = intervals(args, &path);
        all.iter().map(|interval| interval["diagnosed_seconds"].as_f64().unwrap().round()).collect()
    };
    let each = seconds(&[]);
    assert_eq!(each[..4], [1.0, 2.0, 3.0, 4.0]);
    assert!(each[9..120].iter().all(|seconds| *seconds == 10.0), "{each:?}");
    assert_eq!(each[120..123], [1.0, 2.0, 3.0], "after a gap");
    assert_eq!(seconds(&["--interval", "4"])[5], 12.0, "whole steps");
    assert_eq!(seconds(&["--interval", "20"])[2], 20.0);
    assert_eq!(seconds(&["--once"]), [150.0]);
}

#[test]
fn percentiles_need_the_length_of_a_detail_interval() {
    let (_folder, path, sum) = recording();
    let p99 = |interval: &Value| interval["commands"][0]["handle"]["p99_seconds"].clone();
    assert!(intervals(&[], &path).iter().all(|interval| p99(interval).is_null()));
    assert!(intervals(&["--interval", "10"], &path)
        .iter()
        .all(|interval| p99(interval).is_number()));
    let once = intervals(&["--once"], &path);
    let recorded = sum.commands[0].handle.p99_seconds.unwrap();
    assert!(close(p99(&once[0]).as_f64().unwrap(), recorded), "{} {recorded}", p99(&once[0]));
    let text = support::output(replay(&["--once", "--view", "io"], &path).arg("--no-config"));
    assert!(text.contains("sync: 2.500 s") && text.contains("no device was recorded"), "{text}");
}

#[test]
fn devices_relations_and_kernel_figures_are_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording");
    let mut maker = Maker::new(&path);
    for second in 1..=40u64 {
        let (_, mut batch) = maker.batch();
        let (frame, time_us) = (batch.frames[0].frame, batch.frames[0].time_us);
        batch.devices = vec![DeviceRow {
            frame,
            time_us,
            device: "sda".into(),
            interval_ns: 1_000_000_000,
            direct: true,
            writes: second,
            written_bytes: second << 20,
            write_ns: second * 2_000_000,
            ..DeviceRow::default()
        }];
        if second % 10 == 0 {
            batch.relations = vec![RelationRow {
                frame,
                time_us,
                interval_ns: 10_000_000_000,
                tablespace: 1663,
                database_id: 5,
                relfilenode: 16384,
                fork: "main".into(),
                database: "shop".into(),
                reads: 100 * second,
                read_bytes: 819_200 * second,
                read_ns: 1_000_000 * second,
                read_max_ns: (second == 20).then_some(7_000_000),
                ..RelationRow::default()
            }];
            batch.kernel = vec![KernelRow {
                frame,
                time_us,
                interval_ns: 10_000_000_000,
                sessions: 3,
                cpu_account_ns: 4_000_000_000,
                on_cpu_ns: 5_000_000_000,
                run_queue_ns: 1_000_000_000,
                ..KernelRow::default()
            }];
        }
        maker.writer.push(batch).unwrap();
    }
    maker.writer.close().unwrap();
    let once = &intervals(&["--once"], &path)[0];
    let relation = &once["io"]["relations"][0];
    assert_eq!((&relation["database"], &relation["relfilenode"]), (&"shop".into(), &16384.into()));
    assert_eq!(relation["read"]["count"], 100 * (10 + 20 + 30 + 40));
    assert_eq!(relation["read"]["max_seconds"], 0.007);
    assert_eq!(once["io"]["relations_seconds"], Value::Null);
    let device = &once["io"]["recorded"]["devices"][0];
    assert_eq!((&device["name"], &device["write_seconds"]), (&"sda".into(), &0.002.into()));
    assert!(close(device["writes"].as_f64().unwrap(), 20.5));
    assert!(close(once["kernel"]["on_cpu_seconds"].as_f64().unwrap(), 20.0));
    assert!(close(once["kernel"]["runnable_inside_waits_seconds"].as_f64().unwrap(), 8.0));
    // A second within the third detail interval shows the last complete one: the second.
    let second = &intervals(&["--since", "00:00:24", "--until", "00:00:25"], &path)[0];
    assert_eq!(second["io"]["relations"][0]["read"]["count"], 2000);
    assert!(close(second["io"]["relations_seconds"].as_f64().unwrap(), 10.0));
    assert_eq!(second["io"]["recorded"]["devices"][0]["writes"], 25.0);
    assert!(close(second["kernel"]["of_seconds"].as_f64().unwrap(), 10.0));
    assert!(close(second["kernel"]["on_cpu_seconds"].as_f64().unwrap(), 5.0));
    let steps = intervals(&["--interval", "20"], &path);
    assert_eq!(steps[1]["io"]["relations"][0]["read"]["count"], 7000);
    assert_eq!(steps[1]["kernel"]["of_seconds"], Value::Null);
    let view = ["--since", "00:00:24", "--until", "00:00:25", "--view", "io", "--no-config"];
    let text = support::output(&mut replay(&view, &path));
    for part in ["shop/16384", "recorded per 10.0 s", "sda", "kernel, 10.0 s together"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_recording_is_played_paused_and_searched() {
    let (_folder, path, _sum) = recording();
    let tally = env!("CARGO_BIN_EXE_tally");
    // It is longer than the patience of the test.
    let tmux = Tmux::run(100, 30, &format!("{tally} top --replay {}", path.display()));
    let seen = tmux.until_seen("REPLAY x");
    assert!(seen.contains("x1: 2026-03-01 00:0") && seen.contains("of 150"), "{seen}");
    let number = |seen: &str| -> Option<u32> {
        let (_, rest) = seen.split_once(", interval ")?;
        rest.split(' ').next()?.parse().ok()
    };
    let first = number(&seen);
    tmux.until("a later interval", |seen| number(seen) > first);
    tmux.press(&["1", "p"]);
    tmux.until_seen("x1, stopped");
    tmux.press(&["t", "0", "0", ":", "0", "2", ":", "1", "1", "Enter"]);
    let seen = tmux.until_seen("00:02:11 UTC, interval 121 of 150");
    assert!(seen.contains(
        "gap before this interval: the recorder was stopped; nothing was recorded for 10"
    ));
    assert!(seen.contains("IO:DataFileRead") && seen.contains("recorded per 10 s"));
    tmux.press(&["Left", "Left"]);
    tmux.until_seen("00:01:59 UTC, interval 119 of 150");
    tmux.press(&["d", "1", "0", "Enter"]);
    let seen = tmux.until_seen("00:02:00 UTC, interval 12 of 15");
    assert!(!seen.contains("recorded per"), "{seen}");
    tmux.press(&["9"]);
    tmux.until_seen("sync: 2.500 s");
    tmux.press(&["4"]);
    tmux.until_seen("only the number of sessions");
    tmux.press(&["8"]);
    tmux.until_seen("no statements were recorded");
    tmux.press(&["1", "l"]);
    tmux.until_seen("interval 15 of 15");
    tmux.press(&["+", "+", "+", "+", "+", "+"]);
    tmux.until_seen("x64, stopped");
    tmux.press(&["p"]);
    tmux.until_seen("end of the replay");
    tmux.press(&["q"]);
    tmux.until_seen("ended with 0");
}

#[test]
fn what_cannot_be_replayed_is_an_error_with_a_reason() {
    let (folder, path, _sum) = recording();
    let once = |args: &[&str], path: &Path, code| {
        support::complaint(replay(args, path).arg("--once"), code)
    };
    assert!(once(&[], folder.path(), 1).contains("not a recording"));
    assert!(once(&[], Path::new("/nowhere"), 1).contains("/nowhere"));
    assert!(
        once(&["--since", "00:02", "--until", "00:01"], &path, 2).contains("--since and --until")
    );
    assert!(once(&["--since", "2027-01-01"], &path, 2).contains("nothing was recorded"));
    assert!(
        once(&["--from", "2027-01-01"], &path, 2).contains("nothing was recorded"),
        "as before"
    );
    assert!(once(&["--host", "other"], &path, 2).contains("hosts: machine"));
    assert!(once(&["--since", "soon"], &path, 2).contains("14:30"));
    assert!(once(&["--speed", "0"], &path, 2).contains("between 0.125 and 1024"));
    assert!(once(&["--leaders"], &path, 2).contains("--leaders"));
    let without = support::complaint(support::tally().args(["top", "--speed", "2"]), 2);
    assert!(without.contains("--replay"), "{without}");
}

#[test]
fn a_damaged_file_is_reported_and_the_rest_is_replayed() {
    let (_folder, path, _sum) = recording();
    let mut files: Vec<PathBuf> = Vec::new();
    let mut folders = vec![path.join("statistics")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry)
            } else {
                files.push(entry)
            }
        }
    }
    files.sort();
    let bytes = std::fs::read(&files[0]).unwrap();
    std::fs::write(&files[0], &bytes[..bytes.len() / 2]).unwrap();
    let output = replay(&["--json"], &path).output().unwrap();
    assert!(output.status.success());
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains(files[0].to_str().unwrap()), "{message}");
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 150);
}
