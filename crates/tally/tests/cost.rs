// SPDX-License-Identifier: PostgreSQL
//! `tally cost` on live servers.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use postgres::NoTls;
use rustix::process::{kill_process, Pid, Signal};
use scratch::Cluster;
use segment::{set_level, Level, LevelEnd, LevelSetting, LevelSwitch, Segment};
use support::{complaint, output, plain, segment, shared, start, tally};

fn level(cluster: &Cluster) -> Level {
    Segment::open(&segment(cluster)).unwrap().level().unwrap()
}

/// Do this while two sessions send one command after the other.
fn under_load<T>(cluster: &Cluster, what: impl FnOnce() -> T) -> T {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = cluster.config().connect(NoTls).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    client.simple_query("select 1").unwrap();
                }
            });
        }
        let _stop = Stop(&stop);
        support::eventually("the load is there", || cluster.backend_pids().unwrap().len() == 2);
        what()
    })
}

#[test]
fn commands_are_counted_at_every_level_and_to_the_last_one() {
    let cluster = shared();
    let mut client = cluster.connect().unwrap();
    let pid: i32 = client.query_one("select pg_backend_pid()", &[]).unwrap().get(0);
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
        // The last answer may come before its message is done with, not before it is counted.
        let after = segment.book_counters(slot, counter).unwrap();
        assert_eq!(after.calls - before.calls, 700, "{level}");
        assert_eq!(after.seq > before.seq, level == Level::Waits, "{level}");
    }
}

#[test]
fn a_scratch_server_is_measured_and_the_result_is_complete() {
    let text = output(tally().args([
        "cost",
        "--workload",
        "select",
        "--minutes",
        "0.1",
        "--seed",
        "7",
        "--margin",
        "50",
        "--json",
    ]));
    let result: serde_json::Value = serde_json::from_str(&text).unwrap();
    let number = |path: &str| result.pointer(path).and_then(serde_json::Value::as_f64);
    for path in [
        "/cpu/percent",
        "/cpu/half_width",
        "/cpu/rank_p",
        "/throughput/percent",
        "/placebo/cpu/percent",
        "/placebo/throughput/half_width",
        "/off/cpu_seconds_per_unit",
        "/on/units_per_second",
        "/host/processors",
        "/rounds/discarded/idle",
    ] {
        assert!(number(path).is_some(), "{path} is missing: {text}");
    }
    assert_eq!(result["level"], "waits");
    assert_eq!(result["unit"], "transaction");
    assert_eq!(result["seed"], 7);
    assert_eq!(result["verdict"], "within", "{text}");
    assert!(number("/on/changes").unwrap() > 0.0);
    assert!(number("/off/changes").unwrap() < 0.05 * number("/on/changes").unwrap(), "{text}");
    let (effect, placebo) = (number("/cpu/half_width"), number("/placebo/cpu/half_width"));
    let ratio = placebo.unwrap() / effect.unwrap();
    assert!((0.4..2.5).contains(&ratio), "{ratio}");
}

#[test]
fn the_users_own_server_is_measured_per_command_and_its_level_put_back() {
    let cluster = shared();
    for found in [Level::Waits, Level::Off] {
        set_level(&segment(&cluster), found).unwrap();
        let data = cluster.data_dir().to_str().unwrap();
        let text =
            under_load(&cluster, || output(tally().args(["cost", "--minutes", "0.05", data])));
        assert!(text.contains("CPU per command"), "{text}");
        assert!(text.contains("2 backends") || text.contains("to 2 backends"), "{text}");
        assert!(text.contains("Margin 0.30 %"), "{text}");
        assert_eq!(level(&cluster), found);
    }
}

#[test]
fn the_cost_of_locks_is_measured_and_a_level_with_an_end_keeps_it() {
    let cluster = shared();
    let switch = Segment::open(&segment(&cluster)).unwrap().level_switch().unwrap();
    let hour = Segment::open(&segment(&cluster)).unwrap().clock().ticks(3600.0);
    let tick = Segment::open(&segment(&cluster)).unwrap().clock().now() + hour;
    let found =
        LevelSetting { level: Level::Locks, end: Some(LevelEnd { tick, then: Level::Waits }) };
    switch.apply(found);
    let data = cluster.data_dir().to_str().unwrap();
    let text = under_load(&cluster, || {
        output(tally().args(["cost", "--level", "locks", "--minutes", "0.05", "--json", data]))
    });
    let result: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(result["level"], "locks");
    // A select takes locks, which only this level looks at.
    assert!(result.pointer("/on/changes").unwrap().as_f64().unwrap() > 0.0, "{text}");
    assert_eq!(switch.level_setting(), found);
}

#[test]
fn a_signal_puts_the_level_back() {
    let cluster = shared();
    for (found, signal) in [(Level::Off, Signal::INT), (Level::Waits, Signal::TERM)] {
        set_level(&segment(&cluster), found).unwrap();
        under_load(&cluster, || {
            let child = Command::new(env!("CARGO_BIN_EXE_tally"))
                .args(["cost", "--minutes", "5"])
                .arg(cluster.data_dir())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_secs(2));
            kill_process(Pid::from_child(&child), signal).unwrap();
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains(&format!("the level is {found} again")), "{said}");
        });
        assert_eq!(level(&cluster), found);
    }
}

#[test]
fn a_server_without_clients_is_an_error_that_says_so() {
    let cluster = shared();
    let data = cluster.data_dir().to_str().unwrap();
    let said = complaint(tally().args(["cost", "--minutes", "0.02", data]), 1);
    assert!(said.contains("no client is connected"), "{said}");
    assert_eq!(level(&cluster), Level::Waits);
}

#[test]
fn who_may_not_write_the_segment_is_told_who_may() {
    if !rustix::process::geteuid().is_root() {
        println!("not tested: only root can become somebody else");
        return;
    }
    let cluster = start(plain().setting("shared_preload_libraries", "pg_tally").group_access(true));
    let group = cluster.data_dir().metadata().map(|m| std::os::unix::fs::MetadataExt::gid(&m));
    // The build's folder may be closed to others.
    let folder = tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(0o755))
        .tempdir()
        .unwrap();
    let program = folder.path().join("tally");
    std::fs::copy(env!("CARGO_BIN_EXE_tally"), &program).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--clear-groups", "--regid", &group.unwrap().to_string()])
        .arg(&program)
        .args(["cost", "--minutes", "0.02"])
        .arg(segment(&cluster))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no permission to change its level"), "{said}");
    assert!(said.contains("postgres") && said.contains("root"), "{said}");
}

#[test]
fn the_cost_of_nothing_is_a_question_wrongly_put() {
    let said = complaint(tally().args(["cost", "--level", "off"]), 2);
    assert!(said.contains("--level"), "{said}");
}

#[test]
fn the_cost_of_statements_is_measured_at_a_level_that_stays() {
    let text = output(tally().args([
        "cost",
        "--of",
        "statements",
        "--workload",
        "distinct",
        "--minutes",
        "0.1",
        "--margin",
        "50",
        "--json",
    ]));
    let result: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&result["of"], &result["level"]), (&"statements".into(), &"waits".into()));
    assert_eq!(result["verdict"], "within", "{text}");
    let changes = |side: &str| result[side]["changes"].as_u64().unwrap();
    assert!(changes("on") > result["on"]["commands"].as_u64().unwrap(), "{text}");
    assert!(changes("off") < changes("on") / 20, "{text}");
}

#[test]
fn statements_go_on_afterwards_even_if_a_run_before_was_killed() {
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
        let text = output(tally().args(["cost", "--of", "statements", "--minutes", "0.05", data]));
        assert!(text.contains("Cost of statements at level waits"), "{text}");
    });
    assert!(!switch.statements_paused());
    assert_eq!(switch.level(), Level::Locks);
}

#[test]
fn statements_that_are_not_looked_at_have_no_cost_to_be_told() {
    for (setting, value, said) in [
        ("pg_tally.statements", "none", "pg_tally.statements is none"),
        ("pg_tally.max_statements", "0", "no statements are kept"),
    ] {
        let cluster =
            start(plain().setting("shared_preload_libraries", "pg_tally").setting(setting, value));
        let data = cluster.data_dir().to_str().unwrap();
        let complaint = under_load(&cluster, || {
            complaint(tally().args(["cost", "--of", "statements", "--minutes", "0.05", data]), 1)
        });
        assert!(complaint.contains(said), "{complaint}");
    }
}
