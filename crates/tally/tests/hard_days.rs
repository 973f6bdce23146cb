// SPDX-License-Identifier: PostgreSQL
//! Hard days: full tables, kills, strangers' files, rights. The server runs as it would
//! without us, and what was lost is counted.
//!
//! PGTALLY_KILLS sets how often processes are killed (10).

mod house;

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use house::{create_views, eventually, plain, segment, shared, start};
use scratch::{Cluster, Load};
use segment::{Level, Segment, Snapshot};

fn kills() -> usize {
    std::env::var("PGTALLY_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(10)
}

fn with(name: &str, value: &str) -> Cluster {
    start(plain().setting("shared_preload_libraries", "pg_tally").setting(name, value))
}

fn open(cluster: &Cluster) -> Segment {
    Segment::open(&segment(cluster)).unwrap()
}

/// Count and ticks of every statistic of all sessions and groups together.
fn totals(snapshot: &Snapshot) -> std::collections::BTreeMap<String, (u64, u64)> {
    let mut totals = std::collections::BTreeMap::new();
    for head in snapshot.books.iter().chain(&snapshot.groups).flat_map(|book| &book.heads) {
        let Some(stat) = snapshot.directory.get(head.stat) else { continue };
        let sum: &mut (u64, u64) = totals.entry(stat.name.to_string()).or_default();
        sum.0 += head.count;
        sum.1 += head.total;
    }
    totals
}

/// No total of `later` is less than it was. Counts and times of what has ended only grow;
/// time that was running in a killed process ends with it, so a little may be taken back.
fn assert_never_backwards(earlier: &Snapshot, later: &Snapshot) {
    let after = totals(later);
    for (name, (count, _)) in totals(earlier) {
        let now = after.get(&name).map_or(0, |total| total.0);
        assert!(now >= count, "{name}: count went from {count} to {now}");
    }
}

#[test]
fn more_names_than_fit_are_counted_and_time_stays_conserved() {
    let cluster = with("pg_tally.max_names", "64");
    let mut client = cluster.connect().unwrap();
    cluster.pgbench_init(1).unwrap();
    cluster.pgbench().clients(4).transactions(50).run().unwrap();
    for statement in [
        "create table t as select generate_series(1, 1000) x",
        "copy t to '/dev/null'",
        "vacuum analyze",
        "checkpoint",
        "select pg_sleep(0.01)",
    ] {
        client.batch_execute(statement).unwrap();
    }
    client.query("select count(*) from t", &[]).unwrap();
    let snapshot = open(&cluster).snapshot(None).unwrap();
    assert!(snapshot.overflows.directory > 0, "{:?}", snapshot.overflows);
    assert!(totals(&snapshot)["other::overflow"].0 > 0);
    for book in &snapshot.books {
        assert_eq!(book.accounted(&snapshot.directory), book.now - book.born);
    }
}

#[test]
fn more_accounts_than_a_book_holds_share_one_and_time_stays_conserved() {
    let cluster = with("pg_tally.max_statistics", "16");
    cluster.pgbench_init(1).unwrap();
    for protocol in ["simple", "extended", "prepared"] {
        cluster.pgbench().protocol(protocol).clients(4).transactions(50).run().unwrap();
    }
    let snapshot = open(&cluster).snapshot(None).unwrap();
    assert!(snapshot.overflows.statistics > 0, "{:?}", snapshot.overflows);
    for book in &snapshot.books {
        assert_eq!(book.accounted(&snapshot.directory), book.now - book.born);
    }
}

#[test]
fn a_folder_that_cannot_be_written_leaves_a_server_that_runs_and_says_so_once() {
    let cluster = with("pg_tally.directory", "/nonexistent");
    assert_eq!(cluster.psql("select 1").unwrap(), "1");
    assert_eq!(cluster.log().matches("pg_tally is not active").count(), 1, "{}", cluster.log());
}

#[test]
fn a_strangers_file_is_left_alone_and_damaged_ones_are_replaced() {
    for content in [vec![], vec![0; 8192], b"TALLYSEG but then nothing of the kind".to_vec()] {
        let mut cluster = plain().setting("shared_preload_libraries", "pg_tally").create().unwrap();
        let path = segment(&cluster);
        cluster.also_remove(&path);
        std::fs::write(&path, &content).unwrap();
        cluster.account().own(&path).unwrap();
        cluster.start().unwrap();
        assert!(!open(&cluster).claims().unwrap().is_empty(), "it is replaced");
    }
    if !rustix::process::geteuid().is_root() {
        return; // no stranger at hand
    }
    let mut cluster = plain().setting("shared_preload_libraries", "pg_tally").create().unwrap();
    let path = segment(&cluster);
    cluster.also_remove(&path);
    std::fs::write(&path, "root's own").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    cluster.start().unwrap();
    assert_eq!(cluster.psql("select 1").unwrap(), "1");
    assert!(cluster.log().contains("pg_tally is not active"), "{}", cluster.log());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "root's own");
}

#[test]
fn a_data_directory_with_group_access_has_a_segment_with_group_access() {
    let mode = |cluster: &Cluster| {
        std::fs::metadata(segment(cluster)).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode(&shared()), 0o600);
    let cluster = start(plain().setting("shared_preload_libraries", "pg_tally").group_access(true));
    assert_eq!(mode(&cluster), 0o640);
}

#[test]
fn two_servers_have_two_segments() {
    let (one, two) = (shared(), shared());
    assert_ne!(segment(&one), segment(&two));
    for cluster in [&one, &two] {
        assert_eq!(open(cluster).header().host, cluster.data_dir().to_str().unwrap());
        assert_eq!(open(cluster).header().server_pid, cluster.postmaster_pid().unwrap());
    }
}

#[test]
fn a_change_of_level_takes_hold_in_running_backends_at_once() {
    let cluster = shared();
    let mut session = cluster.connect().unwrap();
    session.batch_execute("select pg_sleep(0.01)").unwrap();
    let mut segment = open(&cluster);
    let queries = |segment: &mut Segment| {
        totals(&segment.snapshot(None).unwrap())
            .get("command::Query::handle")
            .map_or(0, |total| total.0)
    };
    cluster.psql("alter system set pg_tally.level = 'off'").unwrap();
    cluster.reload().unwrap();
    eventually("the level is off", || segment.level().unwrap() == Level::Off);
    let before = queries(&mut segment);
    for _ in 0..10 {
        session.batch_execute("select 1").unwrap();
    }
    assert!(queries(&mut segment) <= before + 1);
    cluster.psql("alter system reset pg_tally.level").unwrap();
    cluster.reload().unwrap();
    eventually("the level is back", || segment.level().unwrap() == Level::Waits);
    let before = queries(&mut segment);
    for _ in 0..10 {
        session.batch_execute("select 1").unwrap();
    }
    assert!(queries(&mut segment) >= before + 9);
    let snapshot = segment.snapshot(None).unwrap();
    assert!(totals(&snapshot)["off::uninstrumented"].1 > 0);
    for book in &snapshot.books {
        assert_eq!(book.accounted(&snapshot.directory), book.now - book.born);
    }
}

#[test]
fn killed_backends_are_folded_once_and_no_slot_leaks() {
    let cluster = shared();
    cluster.pgbench_init(1).unwrap();
    let mut segment = open(&cluster);
    let mut earlier = segment.snapshot(None).unwrap();
    let idle = earlier.books.len();
    for turn in 0..kills() {
        let mut load = cluster
            .pgbench()
            .load(if turn % 2 == 0 { Load::Select } else { Load::TpcB })
            .clients(4)
            .duration(Duration::from_secs(60))
            .spawn()
            .unwrap();
        let mut pids = Vec::new();
        eventually("the load runs", || {
            pids = cluster.backend_pids().unwrap_or_default();
            pids.len() == 4
        });
        std::thread::sleep(Duration::from_millis(37 * (turn as u64 % 5 + 1)));
        cluster.kill9(pids[turn % 4]).unwrap();
        eventually("the server notices and recovers", || {
            cluster.log().matches("all server processes terminated").count() == turn + 1
                && cluster.psql("select 1").is_ok()
        });
        load.kill();
        let later = segment.snapshot(Some(&earlier)).unwrap();
        assert_never_backwards(&earlier, &later);
        earlier = later;
    }
    eventually("only the server's own processes have slots", || {
        segment.snapshot(None).unwrap().books.len() <= idle + 1
    });
    let overflows = segment.overflows().unwrap();
    assert!(overflows.is_zero(), "{overflows:?}");
}

#[test]
fn a_killed_postmaster_comes_back_and_totals_go_on() {
    let mut cluster = shared();
    cluster.pgbench_init(1).unwrap();
    for _ in 0..kills().div_ceil(3) {
        let mut segment = open(&cluster);
        let load = cluster.pgbench().clients(4).duration(Duration::from_secs(60)).spawn().unwrap();
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(300) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let earlier = segment.snapshot(None).unwrap();
        cluster.kill9_postmaster().unwrap();
        drop(load);
        cluster.start().unwrap();
        let mut segment = open(&cluster);
        assert_eq!(segment.server_runs(), Some(true));
        let later = segment.snapshot(None).unwrap();
        assert_never_backwards(&earlier, &later);
        assert_eq!(cluster.psql("select count(*) from pgbench_branches").unwrap(), "1");
        assert!(segment.overflows().unwrap().is_zero());
    }
}

#[test]
fn a_role_sees_of_others_only_that_they_are_there() {
    let cluster = shared();
    create_views(&cluster);
    cluster
        .psql("create role poor login; create role watcher login; grant pg_monitor to watcher")
        .unwrap();
    let as_role = |role: &str, sql: &str| {
        let mut config = cluster.config();
        config.user(role);
        let mut client = config.connect(postgres::NoTls).unwrap();
        client.query_one(sql, &[]).map(|row| row.get::<_, i64>(0))
    };
    let _other = cluster.connect().unwrap();
    let seen = "select count(phase) from tally.sessions where usename = 'postgres'";
    assert_eq!(as_role("poor", seen).unwrap(), 0);
    assert!(as_role("watcher", seen).unwrap() >= 1);
    assert!(as_role("poor", "select count(*) from tally.ledger").unwrap() > 0);
    assert!(as_role("poor", "select 1::bigint from tally.reset()").is_err());
}

#[test]
fn the_views_add_up() {
    let cluster = shared();
    create_views(&cluster);
    let mut client = cluster.connect().unwrap();
    client.batch_execute("select pg_sleep(0.2)").unwrap();
    let row = client
        .query_one(
            "select (select seconds from tally.waits where wait_event = 'PgSleep'), \
                    (select sum(seconds) from tally.ledger), \
                    (select sum(count) from tally.commands where command = 'Query' \
                     and part = 'handle')::bigint, \
                    (select count(*) from tally.probes where installed)",
            &[],
        )
        .unwrap();
    let (slept, all): (f64, f64) = (row.get(0), row.get(1));
    assert!((0.2..0.3).contains(&slept), "{slept}");
    assert!(all > slept);
    assert!(row.get::<_, i64>(2) >= 1 && row.get::<_, i64>(3) > 10);
    client.batch_execute("select tally.reset()").unwrap();
    let after: f64 = client.query_one("select sum(seconds) from tally.ledger", &[]).unwrap().get(0);
    assert!(after < all, "{after} after a reset, {all} before");
}
