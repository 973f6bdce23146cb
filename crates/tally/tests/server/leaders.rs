// SPDX-License-Identifier: PostgreSQL
//! Parallel workers have their own rows or, on request, are counted with their leaders.

use crate::support;
use crate::support::shared_server::Profile;
use segment::{Interval, Segment};
use serde_json::Value;

/// An interval of the command.
fn top(segment: &std::path::Path, more: &[&str]) -> Value {
    let mut command = support::tally();
    command.args(["top", "--once", "--json", "--no-witness", "--interval", "0.3"]).args(more);
    serde_json::from_str(&support::output(command.arg(segment))).unwrap()
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-6 * a.abs(), "{a} s, {b} s");
}

#[test]
fn parallel_workers_have_rows_of_their_own_or_are_counted_with_their_leader() {
    let database = Profile::Preloaded.database();
    let mut client = database.connect();
    client
        .batch_execute(
            "create table numbers as select generate_series(1, 100000) n; analyze numbers; \
             set parallel_setup_cost = 0; set parallel_tuple_cost = 0; \
             set min_parallel_table_scan_size = 0; set max_parallel_workers_per_gather = 2",
        )
        .unwrap();
    let leader = support::pid_of(&mut client);
    let cancel = client.cancel_token();
    let query = std::thread::spawn(move || {
        // One Gather, and no worker finishes its part.
        let forever = "select count(*) from numbers where pg_sleep(86400) is null";
        client.batch_execute(forever).unwrap_err()
    });

    // Of the same two readings: a leader's time with its workers is the sum.
    let mut segment = Segment::open(&database.segment()).unwrap();
    let apart = support::eventually("workers work for the leader", || {
        let first = segment.snapshot(None).unwrap();
        let last = segment.snapshot(Some(&first)).unwrap();
        let interval = Interval::between(&segment, Some(&first), &last);
        let led = interval.sessions.iter().filter(|row| row.leader_pid == Some(leader));
        (led.count() == 2).then_some(interval)
    });
    let mut together = apart.clone();
    together.roll_up_workers();
    assert!(together.sessions.iter().all(|row| row.leader_pid != Some(leader)));
    let of_leader = |row: &&segment::interval::SessionRow| row.pid == leader;
    let family = apart
        .sessions
        .iter()
        .filter(|row| of_leader(row) || row.leader_pid == Some(leader))
        .map(|row| row.lived_seconds);
    near(together.sessions.iter().find(of_leader).unwrap().lived_seconds, family.sum());

    // Whether apart or together, the rows add up to the time of all sessions.
    for (more, workers) in [(&[][..], 2), (&["--leaders"], 0)] {
        let interval = top(&database.segment(), more);
        let rows = interval["sessions"].as_array().unwrap();
        let led = rows.iter().filter(|row| row["leader_pid"] == leader).count();
        assert_eq!(led, workers, "{more:?}");
        let lived: f64 = rows.iter().map(|row| row["lived_seconds"].as_f64().unwrap()).sum();
        let ended = interval["ended"]["seconds"].as_f64().unwrap();
        near(lived + ended, interval["wall_seconds"].as_f64().unwrap());
    }
    cancel.cancel_query(postgres::NoTls).unwrap();
    query.join().unwrap();
}
