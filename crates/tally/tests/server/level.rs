// SPDX-License-Identifier: PostgreSQL
//! `tally level`: sets the level for good, for a time or for a duty cycle, and restores it even after a kill.

use crate::support;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::maker::{Maker, Shape, Who, ACCOUNT};
use crate::support::{complaint, eventually, output, tally};
use rustix::process::{kill_process, Pid, Signal};
use segment::clock::monotonic_ns;
use segment::layout::header;
use segment::{set_level, Level, LevelSetting, LevelSwitch, Segment};
use tempfile::TempDir;

fn made() -> (TempDir, Maker) {
    let folder = tempfile::tempdir().unwrap();
    let shape = Shape { slots: 4, groups: 2, stats_per_book: 16 };
    let mut maker = Maker::new(&folder.path().join("pg_tally.1.2"), shape);
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    maker.claim(0, 1, Who::client(), cpu, monotonic_ns());
    (folder, maker)
}

fn level(maker: &Maker) -> Level {
    Segment::open(&maker.path).unwrap().level().unwrap()
}

fn for_a_while(args: &[&str], maker: &Maker) -> Child {
    Command::new(env!("CARGO_BIN_EXE_tally"))
        .args(["level", "locks"])
        .args(args)
        .arg(&maker.path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn outcome(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn the_level_is_shown_and_set() {
    let (_folder, maker) = made();
    assert_eq!(output(tally().arg("level").arg(&maker.path)), "waits\n");
    let text = output(tally().args(["level", "locks"]).arg(&maker.path));
    assert!(text.contains("level locks (it was waits)") && text.contains("restarts"), "{text}");
    assert_eq!(output(tally().arg("level").arg(&maker.path)), "locks\n");
    let json = output(tally().args(["level", "off", "--json"]).arg(&maker.path));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["level"], &json["level_then"]), (&"off".into(), &serde_json::Value::Null));
    assert_eq!(level(&maker), Level::Off);
}

#[test]
fn a_wrong_level_or_time_is_refused_with_the_valid_ones() {
    let (_folder, maker) = made();
    for args in [&["lokcs"][..], &["lokcs", "--for", "1s"]] {
        let text = complaint(tally().arg("level").args(args).arg(&maker.path), 2);
        for word in ["lokcs", "off", "waits", "locks"] {
            assert!(text.contains(word), "{text}");
        }
    }
    assert!(complaint(tally().args(["level", "lokcs"]), 2).contains("locks"));
    for args in [
        &["locks", "--every", "5s"][..],
        &["locks", "--for", "5s", "--every", "5s"],
        &["locks", "--for", "5s", "--every", "4s"],
        &["locks", "--for", "0"],
        &["locks", "--for", "1s", "--json"],
    ] {
        complaint(tally().arg("level").args(args), 2);
    }
    complaint(tally().args(["level", "--for", "1s"]).arg(&maker.path), 2);
    assert_eq!(level(&maker), Level::Waits);
}

#[test]
fn after_its_time_the_level_is_restored() {
    let (_folder, maker) = made();
    for found in [Level::Waits, Level::Off] {
        set_level(&maker.path, found).unwrap();
        let child = for_a_while(&["--for", "1s"], &maker);
        eventually("the level is set", || level(&maker) == Level::Locks);
        let setting = Segment::open(&maker.path).unwrap().level_setting().unwrap();
        assert_eq!(setting.end.map(|end| end.then), Some(found));
        let text = output(tally().arg("level").arg(&maker.path));
        assert!(text.starts_with("locks, for another "), "{text}");
        assert!(text.ends_with(&format!("then {found}\n")), "{text}");
        let (code, text) = outcome(child);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains(&format!("level {found} again")), "{text}");
        let setting = Segment::open(&maker.path).unwrap().level_setting().unwrap();
        assert_eq!(setting, LevelSetting { level: found, end: None });
    }
    let spent = maker.get_u64(header::LOCKS_TICKS as u64) as f64 * 1e-9;
    assert!((1.9..4.0).contains(&spent), "{spent} s at level locks, of two seconds");
}

#[test]
fn a_signal_restores_the_level_and_a_kill_leaves_its_end_in_the_segment() {
    let (_folder, maker) = made();
    for signal in [Signal::INT, Signal::TERM] {
        let child = for_a_while(&["--for", "60s"], &maker);
        eventually("the level is set", || level(&maker) == Level::Locks);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let (code, text) = outcome(child);
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("the level is waits again"), "{text}");
        assert_eq!(level(&maker), Level::Waits);
    }
    let child = for_a_while(&["--for", "60s"], &maker);
    eventually("the level is set", || level(&maker) == Level::Locks);
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    outcome(child);
    let end = Segment::open(&maker.path).unwrap().level_setting().unwrap().end.unwrap();
    assert_eq!(end.then, Level::Waits);
    let left = end.tick - monotonic_ns();
    assert!(left > 0 && left < 60_000_000_000, "{left}");
}

#[test]
fn a_level_set_meanwhile_by_another_command_stays() {
    let (_folder, maker) = made();
    let child = for_a_while(&["--for", "1s"], &maker);
    eventually("the level is set", || level(&maker) == Level::Locks);
    set_level(&maker.path, Level::Off).unwrap();
    let (code, text) = outcome(child);
    assert_eq!((code, level(&maker)), (Some(1), Level::Off), "{text}");
    assert!(text.contains("another process has set the level to off"), "{text}");
    // After a shorter turn of another command the longer one is in force again.
    set_level(&maker.path, Level::Waits).unwrap();
    let long = for_a_while(&["--for", "60s"], &maker);
    eventually("the level is set", || level(&maker) == Level::Locks);
    let switch = LevelSwitch::open(&maker.path).unwrap();
    let before = switch.level_setting();
    assert_eq!(outcome(for_a_while(&["--for", "200ms"], &maker)).0, Some(0));
    assert_eq!(switch.level_setting(), before);
    kill_process(Pid::from_child(&long), Signal::INT).unwrap();
    outcome(long);
    assert_eq!(level(&maker), Level::Waits);
}

#[test]
fn with_duty_the_level_is_set_for_its_share_of_the_time() {
    let (_folder, maker) = made();
    let child = for_a_while(&["--for", "200ms", "--every", "500ms"], &maker);
    let (mut locks, mut changes, mut last) = (0, 0, level(&maker));
    let began = monotonic_ns();
    while monotonic_ns() - began < 3_000_000_000 {
        let now = level(&maker);
        changes += u32::from(now != last);
        locks += u32::from(now == Level::Locks);
        last = now;
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let (code, text) = outcome(child);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("interrupted; level waits"), "{text}");
    assert!(changes >= 6, "{changes} changes in six periods");
    assert!(locks > 0);
    assert_eq!(level(&maker), Level::Waits);
    let spent = maker.get_u64(header::LOCKS_TICKS as u64) as f64 * 1e-9;
    assert!((0.6..2.4).contains(&spent), "{spent} s at level locks in three");
}

#[test]
fn a_restart_of_the_server_ends_the_turn() {
    let (folder, maker) = made();
    let child = for_a_while(&["--for", "60s"], &maker);
    eventually("the level is set", || level(&maker) == Level::Locks);
    let next = folder.path().join("new");
    Maker::new(&next, Shape { slots: 4, groups: 2, stats_per_book: 16 });
    std::fs::rename(&next, &maker.path).unwrap();
    let (code, text) = outcome(child);
    assert_eq!(code, Some(1));
    assert!(text.contains("was restarted"), "{text}");
    assert_eq!(level(&maker), Level::Waits);
}

#[test]
fn a_live_servers_processes_restore_the_level_when_the_command_is_killed() {
    let cluster = support::shared();
    let mut client = cluster.connect().unwrap();
    let path = support::segment(&cluster);
    let data = cluster.data_dir().to_str().unwrap().to_string();
    let mut child = Command::new(env!("CARGO_BIN_EXE_tally"))
        .args(["level", "locks", "--for", "2s", &data])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let segment = Segment::open(&path).unwrap();
    eventually("the level is set", || segment.level().unwrap() == Level::Locks);
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the server's processes restore the level", || {
        client.simple_query("select 1").unwrap();
        segment.level_setting().unwrap() == LevelSetting { level: Level::Waits, end: None }
    });
}
