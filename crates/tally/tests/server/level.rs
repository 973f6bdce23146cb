// SPDX-License-Identifier: PostgreSQL
//! `tally level`: sets the level permanently, for a limited time or for a duty cycle, and restores it even after
//! a kill.

use crate::support;
use std::process::{Child, Command, Stdio};

use crate::maker::{Maker, Shape, Who, ACCOUNT};
use crate::support::{complaint, eventually, output, tally};
use rustix::process::{kill_process, Pid, Signal};
use segment::clock::monotonic_ns;
use segment::layout::header;
use segment::{set_level, Level, LevelEnd, LevelSetting, LevelSwitch, Segment};
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

/// Seconds at level locks so far.
fn at_locks(maker: &Maker) -> f64 {
    maker.get_u64(header::LOCKS_TICKS as u64) as f64 * 1e-9
}

#[test]
fn after_its_time_the_level_is_restored() {
    let (_folder, maker) = made();
    let began = monotonic_ns();
    for found in [Level::Waits, Level::Off] {
        set_level(&maker.path, found).unwrap();
        let (code, text) = outcome(for_a_while(&["--for", "200ms"], &maker));
        assert_eq!(code, Some(0), "{text}");
        let expected = format!("level locks for 200 ms, then {found}\nlevel {found} again\n");
        assert_eq!(text, expected);
        let setting = Segment::open(&maker.path).unwrap().level_setting().unwrap();
        assert_eq!(setting, LevelSetting { level: found, end: None });
    }
    let (spent, all) = (at_locks(&maker), (monotonic_ns() - began) as f64 * 1e-9);
    assert!((0.4..=all).contains(&spent), "{spent} s at level locks, of {all} s");
}

#[test]
fn a_signal_restores_the_level_and_a_kill_leaves_its_end_in_the_segment() {
    let (_folder, maker) = made();
    for signal in [Signal::INT, Signal::TERM] {
        let child = for_a_while(&["--for", "600s"], &maker);
        eventually("the level is set", || level(&maker) == Level::Locks);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let (code, text) = outcome(child);
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("the level is waits again"), "{text}");
        assert_eq!(level(&maker), Level::Waits);
    }
    let began = monotonic_ns();
    let child = for_a_while(&["--for", "600s"], &maker);
    eventually("the level is set", || level(&maker) == Level::Locks);
    let text = output(tally().arg("level").arg(&maker.path));
    assert!(text.starts_with("locks, for another ") && text.ends_with("then waits\n"), "{text}");
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    outcome(child);
    let end = Segment::open(&maker.path).unwrap().level_setting().unwrap().end.unwrap();
    assert_eq!(end.then, Level::Waits);
    let length = 600_000_000_000;
    assert!((began + length..=monotonic_ns() + length).contains(&end.tick), "{end:?}");
}

#[test]
fn a_level_set_meanwhile_by_another_command_stays() {
    let (_folder, maker) = made();
    let child = for_a_while(&["--for", "600s"], &maker);
    eventually("the level is set", || level(&maker) == Level::Locks);
    set_level(&maker.path, Level::Off).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let (code, text) = outcome(child);
    assert_eq!((code, level(&maker)), (Some(1), Level::Off), "{text}");
    assert!(text.contains("another process has set the level to off"), "{text}");
    // After a shorter period of another command, the longer one is in force again.
    set_level(&maker.path, Level::Waits).unwrap();
    let long = for_a_while(&["--for", "600s"], &maker);
    eventually("the level is set", || level(&maker) == Level::Locks);
    let switch = LevelSwitch::open(&maker.path).unwrap();
    let before = switch.level_setting();
    assert_eq!(outcome(for_a_while(&["--for", "200ms"], &maker)).0, Some(0));
    assert_eq!(switch.level_setting(), before);
    kill_process(Pid::from_child(&long), Signal::INT).unwrap();
    outcome(long);
    assert_eq!(level(&maker), Level::Waits);
}

/// Runs a duty cycle until the level has changed this many times. Returns the seconds at level locks, and the
/// total.
fn duty(turn: &str, every: &str, changes: u32) -> (f64, f64) {
    let (_folder, maker) = made();
    let began = monotonic_ns();
    let child = for_a_while(&["--for", turn, "--every", every], &maker);
    let (mut seen, mut last) = (0, level(&maker));
    eventually("the level changes", || {
        let now = level(&maker);
        seen += u32::from(now != last);
        last = now;
        if seen >= changes {
            Ok(())
        } else {
            Err(seen)
        }
    });
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let (code, text) = outcome(child);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("interrupted; level waits"), "{text}");
    assert_eq!(level(&maker), Level::Waits);
    (at_locks(&maker), (monotonic_ns() - began) as f64 * 1e-9)
}

#[test]
fn with_duty_the_level_is_set_again_and_again() {
    let (spent, all) = duty("100ms", "250ms", 6);
    assert!(spent > 0.0 && spent < all, "{spent} s at level locks, of {all} s");
}

#[test]
#[ignore = "verify: a duty cycle of 200 ms each 500 ms is at its level for 40 % of the time"]
fn verify_duty_has_its_share_of_the_time() {
    let text = "a duty cycle of 200 ms each 500 ms is at its level for 40 % of the time";
    support::verify::Claim { text, alarm: 0.02, n: 2, m: 3 }.check(|_| {
        let (spent, all) = duty("200ms", "500ms", 20);
        let share = spent / all;
        support::verify::Trial {
            holds: (share - 0.4).abs() < 0.06,
            result: format!("{:.1} %", 100.0 * share),
            half_width: "-".into(),
        }
    });
}

#[test]
fn a_restart_of_the_server_ends_the_turn() {
    let (folder, maker) = made();
    let child = for_a_while(&["--for", "600s"], &maker);
    eventually("the level is set", || level(&maker) == Level::Locks);
    let next = folder.path().join("new");
    Maker::new(&next, Shape { slots: 4, groups: 2, stats_per_book: 16 });
    std::fs::rename(&next, &maker.path).unwrap();
    let (code, text) = outcome(child);
    assert_eq!(code, Some(1));
    assert!(text.contains("was restarted"), "{text}");
    assert_eq!(level(&maker), Level::Waits);
}

/// The state that a killed command leaves.
#[test]
fn a_live_servers_processes_restore_the_level_when_the_command_is_killed() {
    let cluster = support::shared();
    let mut client = cluster.connect().unwrap();
    let path = support::segment(&cluster);
    let switch = LevelSwitch::open(&path).unwrap();
    let tick = switch.clock().now() + switch.clock().ticks(0.2);
    let end = Some(LevelEnd { tick, then: Level::Waits });
    switch.apply(LevelSetting { level: Level::Locks, end });
    eventually("the server's processes restore the level", || {
        client.simple_query("select 1").unwrap();
        let setting = switch.level_setting();
        if setting == (LevelSetting { level: Level::Waits, end: None }) {
            Ok(())
        } else {
            Err(setting)
        }
    });
    assert!(switch.clock().now() >= tick, "before its time");
}
