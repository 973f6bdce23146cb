// SPDX-License-Identifier: PostgreSQL
//! Parallel workers have their own rows or, on request, are counted with their leaders.

use crate::support;
use serde_json::Value;

/// Pid, leader and time of every session in one interval.
fn sessions(segment: &std::path::Path, more: &[&str]) -> Vec<(i64, Option<i64>, f64)> {
    let text = support::output(
        support::tally()
            .args(["top", "--once", "--json", "--no-witness", "--interval", "0.5"])
            .args(more)
            .arg(segment),
    );
    let interval: Value = serde_json::from_str(&text).unwrap();
    let rows = interval["sessions"].as_array().unwrap();
    rows.iter()
        .map(|row| {
            let number = |name: &str| row[name].as_f64().unwrap();
            (row["pid"].as_i64().unwrap(), row["leader_pid"].as_i64(), number("lived_seconds"))
        })
        .collect()
}

#[test]
fn parallel_workers_have_rows_of_their_own_or_are_counted_with_their_leader() {
    let cluster = support::shared();
    cluster
        .psql("create table numbers as select generate_series(1, 100000) n; analyze numbers")
        .unwrap();
    let segment = support::segment(&cluster);
    let mut client = cluster.connect().unwrap();
    let pid: i32 = client.query_one("select pg_backend_pid()", &[]).unwrap().get(0);
    let cancel = client.cancel_token();
    let query = std::thread::spawn(move || {
        client
            .batch_execute(
                "set parallel_setup_cost = 0; set parallel_tuple_cost = 0; \
                 set min_parallel_table_scan_size = 0; set max_parallel_workers_per_gather = 2; \
                 set enable_nestloop = on; set enable_hashjoin = off; set enable_mergejoin = off; \
                 select count(*) from numbers a, numbers b where a.n + b.n = 0",
            )
            .unwrap_err()
    });
    let leader = i64::from(pid);
    support::eventually("workers work for the leader", || {
        sessions(&segment, &[]).iter().any(|row| row.1 == Some(leader))
    });

    let apart = sessions(&segment, &[]);
    let workers = apart.iter().filter(|row| row.1 == Some(leader)).count();
    let alone = apart.iter().find(|row| row.0 == leader).unwrap().2;
    assert!(alone < 0.9, "the leader alone lived {alone} s of half a second");

    let together = sessions(&segment, &["--leaders"]);
    assert!(together.iter().all(|row| row.1.is_none()), "{together:?}");
    let all = together.iter().find(|row| row.0 == leader).unwrap().2;
    let expected = 0.5 * (workers + 1) as f64;
    assert!(all > 0.8 * expected, "{workers} workers and their leader lived {all} s");

    cancel.cancel_query(postgres::NoTls).unwrap();
    query.join().unwrap();
}
