// SPDX-License-Identifier: PostgreSQL
//! Locks in `tally top`, from segments that the test writes and from live servers.

use crate::support;
use std::time::Duration;

use crate::maker::{Maker, Shape, Slot, Who, ACCOUNT, NAME, TIMER};
use crate::support::{complaint, eventually, output, tally};
use segment::clock::monotonic_ns;
use segment::{set_level, Level};
use serde_json::Value;
use tempfile::TempDir;

const SHAPE: Shape = Shape { slots: 4, groups: 2, stats_per_book: 32 };

fn made() -> (TempDir, Maker, Slot) {
    let folder = tempfile::tempdir().unwrap();
    let mut maker = Maker::new(&folder.path().join("pg_tally.1.2"), SHAPE);
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let slot = maker.claim(0, 1, Who::client(), cpu, monotonic_ns());
    (folder, maker, slot)
}

/// Runs `top` with these arguments for two seconds, in which these events happen.
fn seen(maker: &mut Maker, slot: &mut Slot, args: &[&str], happen: &[(&str, &[u64])]) -> String {
    let mut command = tally();
    command.args(["top", "--once", "--no-witness", "--interval", "2"]).args(args).arg(&maker.path);
    let top = std::thread::spawn(move || output(&mut command));
    std::thread::sleep(Duration::from_secs(1));
    for (name, values) in happen {
        let stat = maker.stat(name, TIMER);
        values.iter().for_each(|&value| slot.record(stat, value));
    }
    maker.write(slot);
    top.join().unwrap()
}

const ACQUIRED: &[(&str, &[u64])] = &[
    ("lwlock::ProcArray::held::execute::exclusive", &[2_000_000, 4_000_000]),
    ("lwlock::ProcArray::acquire::execute::exclusive", &[0, 9_000_000]),
    ("lwlock::ProcArray::wait::execute::exclusive", &[8_000_000]),
    ("lwlock::WALWrite::held::bind::shared", &[1_000_000]),
    ("lwlock::WALWrite::acquire::bind::shared", &[0]),
    ("lock::transactionid::wait::execute::ShareLock", &[30_000_000]),
    ("lock::deadlock::check::execute", &[5_000]),
    ("spin::delay::execute", &[70_000]),
    ("command::Execute::read", &[1_000_000, 3_000_000]),
    ("command::Execute::handle", &[5_000_000, 5_000_000]),
];

/// The figures of the line with this beginning.
fn figures(text: &str, begin: &str) -> Vec<f64> {
    let line = text.lines().find(|line| line.starts_with(begin));
    let line = line.unwrap_or_else(|| panic!("no line {begin}: {text}"));
    line[begin.len()..].split_whitespace().map(|n| n.parse().unwrap_or(f64::NAN)).collect()
}

fn near(found: &[f64], expected: &[f64]) -> bool {
    found.len() == expected.len()
        && found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 0.1 * b.abs())
}

#[test]
fn rates_per_second_are_of_the_time_at_level_locks() {
    let (_folder, mut maker, mut slot) = made();
    set_level(&maker.path, Level::Locks).unwrap();
    let text = seen(&mut maker, &mut slot, &["--view", "lwlocks", "--per-second"], ACQUIRED);
    assert!(text.contains("TIME and AVG in milliseconds"), "{text}");
    let heads: Vec<&str> = text.lines().nth(2).unwrap().split_whitespace().collect();
    assert_eq!(heads.join(" "), "LOCK COUNT TIME AVG COUNT TIME AVG COUNT TIME AVG");
    // The interval is two seconds.
    let found = figures(&text, "ProcArray exclusive execute");
    assert!(near(&found, &[1.0, 3.0, 3.0, 1.0, 4.5, 4.5, 0.5, 4.0, 8.0]), "{text}");
    let found = figures(&text, "WALWrite shared bind");
    assert!(near(&found[..6], &[0.5, 0.5, 1.0, 0.5, 0.0, 0.0]), "{text}");
    assert!(near(&figures(&text, "read Execute"), &[1.0, 2.0, 2.0]), "{text}");
    assert!(near(&figures(&text, "handle Execute"), &[1.0, 5.0, 5.0]), "{text}");
}

#[test]
fn half_of_the_time_at_the_level_doubles_the_rates() {
    let (_folder, mut maker, mut slot) = made();
    set_level(&maker.path, Level::Locks).unwrap();
    let path = maker.path.clone();
    let later = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(1));
        set_level(&path, Level::Waits).unwrap();
    });
    let text = seen(&mut maker, &mut slot, &["--view", "lwlocks", "--per-second"], ACQUIRED);
    later.join().unwrap();
    let first = text.lines().next().unwrap();
    let locks: f64 = first.split_whitespace().nth(3).unwrap().parse().unwrap();
    assert!((0.5..1.5).contains(&locks), "{text}");
    let found = figures(&text, "ProcArray exclusive execute");
    assert!((found[0] * locks - 2.0).abs() < 0.1, "{text}");
    assert!(near(&found[2..3], &[3.0]), "an average is none per second: {text}");
    // Both levels measure commands.
    assert!(near(&figures(&text, "handle Execute"), &[1.0, 5.0, 5.0]), "{text}");
}

#[test]
fn a_level_below_locks_is_reported_with_the_command_that_raises_it() {
    let (_folder, mut maker, mut slot) = made();
    let text = seen(&mut maker, &mut slot, &["--view", "lwlocks"], &[]);
    assert!(text.contains("level is waits") && text.contains("tally level locks"), "{text}");
    let text = seen(&mut maker, &mut slot, &["--view", "locks"], &[]);
    assert!(text.contains("tally level locks"), "{text}");
}

#[test]
fn locks_have_panes_and_json_and_are_absent_from_statistics() {
    let (_folder, mut maker, mut slot) = made();
    set_level(&maker.path, Level::Locks).unwrap();
    maker.stat("tranche::4::ProcArray", NAME);
    maker.holds(0, &[(0x1000, monotonic_ns() - 3_000_000_000, 4, 1)]);
    let text = seen(&mut maker, &mut slot, &[], ACQUIRED);
    for word in ["LWLocks", "ProcArray", "exclusive execute", "transactionid", "deadlock check"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(text.contains("HOLDS") && text.contains("ProcArray shared"), "{text}");
    let text = seen(&mut maker, &mut slot, &["--json"], ACQUIRED);
    let interval: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(interval["lwlocks"].as_array().unwrap().len(), 2);
    let row = &interval["lwlocks"][0];
    assert_eq!((&row["lock"], &row["mode"]), (&"ProcArray".into(), &"exclusive".into()));
    assert_eq!(row["wait"]["count"], 1);
    assert_eq!(interval["locks"][0]["type"], "transactionid");
    assert_eq!(interval["spin_delays"][0]["count"], 1);
    assert_eq!(interval["statistics"].as_array().unwrap().len(), 0, "{text}");
    let held = &interval["sessions"][0]["holding"][0];
    assert_eq!((&held["lock"], &held["mode"]), (&"ProcArray".into(), &"shared".into()));
    assert!(held["seconds"].as_f64().unwrap() > 3.0);
    let locks = interval["locks_seconds"].as_f64().unwrap();
    assert!((locks / interval["interval_seconds"].as_f64().unwrap() - 1.0).abs() < 0.01);
}

#[test]
fn the_table_per_second_has_lightweight_locks_only() {
    let (_folder, maker, _slot) = made();
    for args in [&["--per-second"][..], &["--per-second", "--view", "waits"]] {
        complaint(tally().arg("top").args(args).arg(&maker.path), 2);
    }
}

#[test]
fn locks_of_a_live_server_are_shown() {
    check_locks(&support::shared());
}

#[test]
fn locks_of_sessions_are_shown_where_only_sessions_are_instrumented() {
    check_locks(&support::sessions());
}

fn check_locks(cluster: &scratch::Cluster) {
    let target = cluster.data_dir().to_str().unwrap().to_string();
    let mut client = cluster.connect().unwrap();
    client.batch_execute("create table t (n int)").unwrap();
    output(tally().args(["level", "locks", &target]));
    let holder = std::thread::spawn({
        let mut other = cluster.connect().unwrap();
        move || {
            other
                .batch_execute("begin; lock table t in access exclusive mode; select pg_sleep(1)")
                .unwrap();
            other.batch_execute("commit").unwrap();
        }
    });
    std::thread::sleep(Duration::from_millis(300));
    let waiter = std::thread::spawn(move || client.batch_execute("select from t").unwrap());
    let text = output(tally().args(["top", "--once", "--json", "--interval", "2", &target]));
    holder.join().unwrap();
    waiter.join().unwrap();
    let interval: Value = serde_json::from_str(&text).unwrap();
    let lock = &interval["locks"].as_array().unwrap().iter().find(|l| l["type"] == "relation");
    let lock = lock.unwrap_or_else(|| panic!("no lock on a relation: {text}"));
    assert_eq!(lock["mode"], "AccessShareLock");
    assert!(lock["wait"]["seconds"].as_f64().unwrap() > 0.2, "{lock}");
    let held = interval["lwlocks"].as_array().unwrap();
    let of = |name: &str| held.iter().any(|l| l["lock"] == name && l["held"]["count"] != 0);
    assert!(of("LockManager"), "{text}");
    eventually("nobody holds a lock any more", || {
        let text = output(tally().args(["top", "--once", "--json", "--interval", "0.1", &target]));
        let interval: Value = serde_json::from_str(&text).unwrap();
        let sessions = interval["sessions"].as_array().unwrap();
        sessions.iter().all(|session| session["holding_count"] == 0)
    });
}
