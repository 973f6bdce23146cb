// SPDX-License-Identifier: PostgreSQL
//! Locks in `tally top`, from segments that the test writes and from live servers.

use crate::support;
use std::time::{Duration, Instant};

use crate::maker::{Maker, Shape, Slot, Who, ACCOUNT, NAME, TIMER};
use crate::support::paused::between_readings;
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

/// The output of `top` with these arguments for an interval in which these events happen.
fn seen(maker: &mut Maker, slot: &mut Slot, args: &[&str], happen: &[(&str, &[u64])]) -> String {
    let path = maker.path.clone();
    let args = [&["top", "--once", "--no-witness"], args].concat();
    between_readings(&args, &path, || {
        for (name, values) in happen {
            let stat = maker.stat(name, TIMER);
            values.iter().for_each(|&value| slot.record(stat, value));
        }
        maker.write(slot);
    })
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

/// Whether rates over this many seconds match these totals, as far as the printed digits tell.
fn add_up(rates: &[f64], seconds: f64, totals: &[f64]) -> bool {
    rates.len() == totals.len()
        && rates.iter().zip(totals).all(|(rate, total)| {
            let rounded = 0.005 * (rate + seconds) + 1e-4;
            (rate * seconds - total).abs() <= rounded
        })
}

/// The seconds at level locks and of the interval, from the table's first line.
fn seconds(text: &str) -> [f64; 2] {
    let first = text.lines().next().unwrap();
    let found: Vec<f64> = first.split([' ', '(']).filter_map(|word| word.parse().ok()).collect();
    found.try_into().unwrap_or_else(|_| panic!("{text}"))
}

const PER_SECOND: [&str; 3] = ["--view", "lwlocks", "--per-second"];

#[test]
fn rates_per_second_are_of_the_time_at_level_locks() {
    let (_folder, mut maker, mut slot) = made();
    set_level(&maker.path, Level::Locks).unwrap();
    let text = seen(&mut maker, &mut slot, &PER_SECOND, ACQUIRED);
    assert!(text.contains("TIME and AVG in milliseconds"), "{text}");
    let heads: Vec<&str> = text.lines().nth(2).unwrap().split_whitespace().collect();
    assert_eq!(heads.join(" "), "LOCK COUNT TIME AVG COUNT TIME AVG COUNT TIME AVG");
    let [locks, whole] = seconds(&text);
    assert!((locks - whole).abs() < 0.011, "{text}");
    // Counts and times of: held, acquired, waited for.
    let found = figures(&text, "ProcArray exclusive execute");
    let [a, b, mean_held, c, d, mean_acquired, e, f, mean_waited] = found[..] else {
        panic!("{text}")
    };
    assert!(add_up(&[a, b, c, d, e, f], locks, &[2.0, 6.0, 2.0, 9.0, 1.0, 8.0]), "{text}");
    assert_eq!([mean_held, mean_acquired, mean_waited], [3.0, 4.5, 8.0], "{text}");
    let found = figures(&text, "WALWrite shared bind");
    assert!(
        add_up(&[found[0], found[1], found[3], found[4]], locks, &[1.0, 1.0, 1.0, 0.0]),
        "{text}"
    );
    for (command, time, mean) in [("read Execute", 4.0, 2.0), ("handle Execute", 10.0, 5.0)] {
        let found = figures(&text, command);
        assert!(add_up(&found[..2], whole, &[2.0, time]) && found[2] == mean, "{text}");
    }
}

#[test]
fn a_part_of_the_time_at_the_level_has_the_rates_of_that_part() {
    let (_folder, mut maker, mut slot) = made();
    set_level(&maker.path, Level::Locks).unwrap();
    let path = maker.path.clone();
    let mut bounds = [0.0; 2];
    let began = Instant::now();
    let text = between_readings(&[&["top", "--once"][..], &PER_SECOND].concat(), &path, || {
        for (name, values) in ACQUIRED {
            let stat = maker.stat(name, TIMER);
            values.iter().for_each(|&value| slot.record(stat, value));
        }
        maker.write(&slot);
        let read = Instant::now();
        // Makes the part long enough for its two decimals.
        std::thread::sleep(Duration::from_millis(500));
        let at_least = read.elapsed();
        set_level(&path, Level::Waits).unwrap();
        bounds = [at_least, began.elapsed()].map(|bound| bound.as_secs_f64());
        std::thread::sleep(Duration::from_millis(100));
    });
    let [locks, whole] = seconds(&text);
    let [min, max] = bounds;
    assert!(min - 0.005 <= locks && locks <= max + 0.005, "{min} to {max}: {text}");
    assert!(locks + 0.09 <= whole, "{text}");
    let found = figures(&text, "ProcArray exclusive execute");
    assert!(add_up(&found[..2], locks, &[2.0, 6.0]), "{text}");
    assert_eq!(found[2], 3.0, "an average is none per second: {text}");
    // Both levels measure commands.
    let found = figures(&text, "handle Execute");
    assert!(add_up(&found[..2], whole, &[2.0, 10.0]) && found[2] == 5.0, "{text}");
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
    assert_eq!(interval["locks_seconds"], interval["interval_seconds"]);
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
    let pid = support::pid_of(&mut client);
    let mut holder = cluster.connect().unwrap();
    holder.batch_execute("begin; lock table t in access exclusive mode").unwrap();
    let began = Instant::now();
    let mut waiter = Some(std::thread::spawn(move || {
        client.batch_execute("select from t").unwrap();
        client
    }));
    let mut observer = cluster.connect().unwrap();
    eventually("it waits for the lock", || {
        let sql = "select 1 from pg_locks where pid = $1 and not granted";
        observer.query_opt(sql, &[&pid]).unwrap().is_some()
    });
    let mut bounds = [Duration::ZERO; 2];
    let text = between_readings(&["top", "--once", "--json"], target.as_ref(), || {
        let read = Instant::now();
        std::thread::sleep(Duration::from_millis(50));
        bounds[0] = read.elapsed();
        holder.batch_execute("commit").unwrap();
        let mut client = waiter.take().unwrap().join().unwrap();
        bounds[1] = began.elapsed();
        // The activity of a session is recorded at its next wait.
        client.batch_execute("select 1").unwrap();
        holder.batch_execute("select 1").unwrap();
    });
    let interval: Value = serde_json::from_str(&text).unwrap();
    let lock = &interval["locks"].as_array().unwrap().iter().find(|l| l["type"] == "relation");
    let lock = lock.unwrap_or_else(|| panic!("no lock on a relation: {text}"));
    assert_eq!(lock["mode"], "AccessShareLock");
    let waited = lock["wait"]["seconds"].as_f64().unwrap();
    let [min, max] = bounds.map(|bound| bound.as_secs_f64());
    assert!(min <= waited && waited <= max, "not {min} to {max}: {lock}");
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
