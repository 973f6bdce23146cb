// SPDX-License-Identifier: PostgreSQL
//! The SQL views: their sums and privileges.

mod support;

use support::{create_views, segment, shared};

#[test]
fn a_role_sees_of_others_only_that_they_exist() {
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

/// The postmaster maps nothing that others can write to, so its time is not measured.
#[test]
fn the_postmaster_is_not_instrumented() {
    let cluster = shared();
    create_views(&cluster);
    let sql = "select count(*) filter (where kind = 'postmaster'), count(*) from tally.ledger";
    let mut client = cluster.connect().unwrap();
    let row = client.query_one(sql, &[]).unwrap();
    assert_eq!(row.get::<_, i64>(0), 0);
    assert!(row.get::<_, i64>(1) > 0);
    let segment = segment(&cluster);
    let maps = |pid| std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mapped = |pid: u32| maps(pid).contains(segment.to_str().unwrap());
    assert!(!mapped(cluster.postmaster_pid().unwrap()));
    // Long-lived processes only: another session may just end or not have mapped the segment yet.
    let lasting = "select pid from pg_stat_activity where pid = pg_backend_pid() \
                   or backend_type in ('checkpointer', 'background writer', 'walwriter', \
                                       'autovacuum launcher')";
    let children = client.query(lasting, &[]).unwrap();
    assert_eq!(children.len(), 5);
    assert!(children.iter().all(|child| mapped(child.get::<_, i32>(0) as u32)));
}
