// SPDX-License-Identifier: PostgreSQL
//! `tally cost` on live servers.

use crate::support;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::programs;
use crate::support::verify::{Claim, Trial};
use crate::support::{complaint, output, plain, segment, shared, start, tally};
use postgres::NoTls;
use rustix::process::{kill_process, Pid, Signal};
use scratch::Cluster;
use segment::{set_level, Level, LevelEnd, LevelSetting, LevelSwitch, Segment};

fn level(cluster: &Cluster) -> Level {
    Segment::open(&segment(cluster)).unwrap().level().unwrap()
}

/// Runs `what` while two sessions send commands continuously.
fn under_load<T>(cluster: &Cluster, what: impl FnOnce() -> T) -> T {
    let select = |stop: &AtomicBool| {
        let mut client = cluster.config().connect(NoTls).unwrap();
        while !stop.load(Ordering::Relaxed) {
            client.simple_query("select 1").unwrap();
        }
    };
    support::while_working(&[&select, &select], || {
        // A session takes its slot while it waits for a message.
        let has_slots = |pids: Vec<u32>| {
            let snapshot = Segment::open(&segment(cluster)).unwrap().snapshot(None).unwrap();
            let has_slot = |pid: &u32| snapshot.books.iter().any(|book| book.pid == *pid as i32);
            pids.len() == 2 && pids.iter().all(has_slot)
        };
        let is_measured = segment(cluster).exists();
        support::eventually("the load runs", || {
            let pids = cluster.backend_pids().unwrap();
            if is_measured {
                has_slots(pids)
            } else {
                pids.len() == 2
            }
        });
        what()
    })
}

#[test]
fn every_command_is_counted_at_every_level() {
    let cluster = shared();
    let mut client = cluster.connect().unwrap();
    let pid = support::pid_of(&mut client);
    let segment = Segment::open(&segment(&cluster)).unwrap();
    let probes = segment.probes().unwrap();
    let counter = probes.iter().find(|probe| probe.name == "messages").unwrap().index;
    let slot = segment.claims().unwrap().into_iter().find(|claim| claim.pid == pid).unwrap().slot;
    for level in [Level::Off, Level::Waits, Level::Off] {
        set_level(segment.path(), level).unwrap();
        client.simple_query("select 1").unwrap();
        let before = segment.book_counters(slot, counter).unwrap();
        for _ in 0..700 {
            client.simple_query("select 1").unwrap();
        }
        // The last response may arrive before its message is finished, but not before it is counted.
        let after = segment.book_counters(slot, counter).unwrap();
        assert_eq!(after.calls - before.calls, 700, "{level}");
        assert_eq!(after.seq > before.seq, level == Level::Waits, "{level}");
    }
}

/// A number in the JSON of a result.
fn number(result: &serde_json::Value, path: &str) -> Option<f64> {
    result.pointer(path).and_then(serde_json::Value::as_f64)
}

/// The output of `tally cost` with these arguments, with slices long enough for sessions that get little CPU.
fn result(arguments: &[&str]) -> serde_json::Value {
    let mut command = tally();
    command.args(["cost", "--margin", "50", "--json", "--slice", "50ms"]).args(arguments);
    serde_json::from_str(&output(&mut command)).unwrap()
}

#[test]
fn the_result_on_a_scratch_server_is_complete() {
    let result = result(&["--workload", "select", "--minutes", "0.1", "--seed", "7"]);
    for path in [
        "/off/cpu_seconds_per_unit",
        "/on/units_per_second",
        "/host/processors",
        "/rounds/discarded/idle",
    ] {
        assert!(number(&result, path).is_some(), "{path} is missing: {result}");
    }
    assert_eq!(result["level"], "waits");
    assert_eq!(result["unit"], "transaction");
    assert_eq!(result["seed"], 7);
    check_verdict(&result);
    assert!(number(&result, "/on/changes").unwrap() > 0.0);
    let changes = |side: &str| number(&result, &format!("/{side}/changes")).unwrap();
    assert!(changes("off") < changes("on"), "{result}");
}

/// A verdict has a reason if it is inconclusive, and figures unless there were too few rounds, as on a very busy
/// machine.
fn check_verdict(result: &serde_json::Value) {
    assert_eq!(result["margin_percent"], 50.0);
    let reason = result["reason"].as_str().unwrap();
    match result["verdict"].as_str() {
        Some("within" | "exceeds") => assert!(reason.is_empty(), "{result}"),
        Some("inconclusive") => assert!(!reason.is_empty(), "{result}"),
        _ => panic!("{result}"),
    }
    for path in [
        "/cpu/percent",
        "/cpu/half_width",
        "/cpu/rank_p",
        "/throughput/percent",
        "/placebo/cpu/percent",
        "/placebo/throughput/half_width",
    ] {
        let too_few = reason.contains("usable rounds, at least");
        assert_eq!(number(result, path).is_some(), !too_few, "{path}: {result}");
    }
}

#[test]
#[ignore = "verify: the cost of a level is within 50 %, and the placebo has the same half-width"]
fn verify_the_cost_of_a_level() {
    Claim {
        text: "measuring at level waits costs less than 50 % of a select's CPU time, and the A/A control is as precise",
        alarm: 0.02,
        n: 2,
        m: 3,
    }
    .check(|seed| {
        let seed = (seed % 1_000_000).to_string();
        let minutes = ["--workload", "select", "--minutes", "0.5", "--seed", &seed];
        let result = result(&minutes);
        let of = |path: &str| number(&result, path).unwrap_or(f64::NAN);
        let (effect, placebo) = (of("/cpu/half_width"), of("/placebo/cpu/half_width"));
        let few = of("/off/changes") < 0.05 * of("/on/changes");
        Trial {
            holds: result["verdict"] == "within" && (0.4..2.5).contains(&(placebo / effect)) && few,
            result: format!("{:.2} %, A/A {:.2} %", of("/cpu/percent"), of("/placebo/cpu/percent")),
            half_width: format!("{effect:.2} %"),
        }
    });
}

#[test]
fn the_users_server_is_measured_per_command_and_its_level_restored() {
    let cluster = shared();
    for found in [Level::Waits, Level::Off] {
        set_level(&segment(&cluster), found).unwrap();
        let data = cluster.data_dir().to_str().unwrap();
        let arguments = ["cost", "--minutes", "0.03", "--slice", "50ms", data];
        let text = under_load(&cluster, || output(tally().args(arguments)));
        // The session that checked whether the load runs may still be ending: "2 to 3 backends".
        let number =
            text.split("its own load, ").nth(1).and_then(|rest| rest.split(" backends").next());
        assert!(number.is_some_and(|number| number.split(" to ").any(|n| n == "2")), "{text}");
        assert!(text.contains("Margin 0.30 %"), "{text}");
        assert_eq!(level(&cluster), found);
    }
}

#[test]
fn measuring_level_locks_restores_a_level_and_its_end() {
    let cluster = shared();
    let switch = Segment::open(&segment(&cluster)).unwrap().level_switch().unwrap();
    let hour = Segment::open(&segment(&cluster)).unwrap().clock().ticks(3600.0);
    let tick = Segment::open(&segment(&cluster)).unwrap().clock().now() + hour;
    let found =
        LevelSetting { level: Level::Locks, end: Some(LevelEnd { tick, then: Level::Waits }) };
    switch.apply(found);
    let data = cluster.data_dir().to_str().unwrap();
    let text = under_load(&cluster, || {
        let slice = ["--slice", "50ms", "--minutes", "0.03"];
        output(tally().args(["cost", "--level", "locks", "--json", data]).args(slice))
    });
    let result: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(result["level"], "locks");
    // A select takes locks, which only level locks counts.
    assert!(result.pointer("/on/changes").unwrap().as_f64().unwrap() > 0.0, "{text}");
    assert_eq!(switch.level_setting(), found);
}

#[test]
fn a_signal_restores_the_level() {
    let cluster = shared();
    for (found, signal) in [(Level::Off, Signal::INT), (Level::Waits, Signal::TERM)] {
        set_level(&segment(&cluster), found).unwrap();
        under_load(&cluster, || {
            let child = Command::new(env!("CARGO_BIN_EXE_tally"))
                .args(["cost", "--minutes", "5", "--slice", "50ms"])
                .arg(cluster.data_dir())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            support::eventually("the level is toggled", || level(&cluster) != found);
            kill_process(Pid::from_child(&child), signal).unwrap();
            let output = child.wait_with_output().unwrap();
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{error}");
            assert!(error.contains(&format!("level {found} has been restored")), "{error}");
        });
        assert_eq!(level(&cluster), found);
    }
}

#[test]
fn a_server_without_clients_is_an_error_that_says_so() {
    let cluster = shared();
    let data = cluster.data_dir().to_str().unwrap();
    let error = complaint(tally().args(["cost", "--minutes", "0.02", data]), 1);
    assert!(error.contains("no client backend to measure"), "{error}");
    assert_eq!(level(&cluster), Level::Waits);
}

#[test]
fn without_permission_the_error_names_the_users_who_have_it() {
    if !rustix::process::geteuid().is_root() {
        println!("not tested: only root can run as another user");
        return;
    }
    let cluster = start(plain().setting("shared_preload_libraries", "pg_tally").group_access(true));
    let group = cluster.data_dir().metadata().map(|m| std::os::unix::fs::MetadataExt::gid(&m));
    // Other users may not be able to read the build's directory.
    let folder = tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(0o755))
        .tempdir()
        .unwrap();
    let program = folder.path().join("tally");
    programs::copy(env!("CARGO_BIN_EXE_tally"), &program);
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--clear-groups", "--regid", &group.unwrap().to_string()])
        .arg(&program)
        .args(["cost", "--minutes", "0.02"])
        .arg(segment(&cluster))
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("no permission to change its level"), "{error}");
    assert!(error.contains("postgres") && error.contains("root"), "{error}");
}

#[test]
fn the_cost_of_level_off_is_a_usage_error() {
    let error = complaint(tally().args(["cost", "--level", "off"]), 2);
    assert!(error.contains("--level"), "{error}");
}

#[test]
fn the_cost_of_statements_is_measured_at_a_constant_level() {
    let of = ["--of", "statements", "--workload", "distinct", "--minutes", "0.1"];
    let result = result(&of);
    assert_eq!((&result["of"], &result["level"]), (&"statements".into(), &"waits".into()));
    check_verdict(&result);
    let changes = |side: &str| result[side]["changes"].as_u64().unwrap();
    assert!(changes("on") > result["on"]["commands"].as_u64().unwrap(), "{result}");
    assert!(changes("off") < changes("on"), "{result}");
}

#[test]
fn statements_are_resumed_even_after_a_killed_run() {
    let cluster = shared();
    let switch = LevelSwitch::open(&segment(&cluster)).unwrap();
    switch.set(Level::Locks);
    let data = cluster.data_dir().to_str().unwrap();
    under_load(&cluster, || {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tally"))
            .args(["cost", "--of", "statements", "--minutes", "5", data])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        support::eventually("statements are paused", || switch.statements_paused());
        assert_eq!(switch.level(), Level::Waits);
        child.kill().unwrap();
        child.wait().unwrap();
        switch.pause_statements(true);
        switch.set(Level::Locks);
        let of = ["cost", "--of", "statements", "--minutes", "0.03", "--slice", "50ms", data];
        let text = output(tally().args(of));
        assert!(text.contains("Cost of statements at level waits"), "{text}");
    });
    assert!(!switch.statements_paused());
    assert_eq!(switch.level(), Level::Locks);
}

#[test]
fn the_cost_of_statements_is_an_error_if_they_are_off() {
    for (setting, value, error) in [
        ("pg_tally.statements", "none", "pg_tally.statements is none"),
        ("pg_tally.max_statements", "0", "keeps no statements"),
    ] {
        let cluster =
            start(plain().setting("shared_preload_libraries", "pg_tally").setting(setting, value));
        let data = cluster.data_dir().to_str().unwrap();
        let complaint = under_load(&cluster, || {
            complaint(tally().args(["cost", "--of", "statements", "--minutes", "0.05", data]), 1)
        });
        assert!(complaint.contains(error), "{complaint}");
    }
}
