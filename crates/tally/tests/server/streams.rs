// SPDX-License-Identifier: PostgreSQL
//! Buffered streams: a read from the buffer cannot block and is not a wait.

use crate::support;
use crate::support::strace::Strace;

#[test]
fn only_what_fills_a_streams_buffer_is_a_wait() {
    let preloaded = support::plain().setting("shared_preload_libraries", "pg_tally");
    // Its workers begin sessions, too.
    let cluster = support::start(preloaded.setting("autovacuum", "off"));
    support::create_views(&cluster);
    // The relation cache's file exists from now on.
    let mut client = cluster.connect().unwrap();
    client.simple_query("select 1").unwrap();
    let mut calls = || -> i64 {
        let sql = "select calls from tally.probes where name = 'import fread'";
        client.query_one(sql, &[]).unwrap().get(0)
    };
    let before = calls();
    let postmaster = i32::try_from(cluster.postmaster_pid().unwrap()).unwrap();
    let trace = Strace::start("read", &[postmaster]);
    let mut session = cluster.connect().unwrap();
    session.simple_query("select 1").unwrap();
    let pid = support::pid_of(&mut session);
    let gained = calls() - before;
    // At least one system call for each file where that can be seen, of some 3,000 library calls.
    assert!((1..100).contains(&gained), "{gained} reads of streams in a session's beginning");
    if let Some(reads) = trace.map(Strace::stop) {
        let reads = reads.iter().filter(|call| call.pid == pid).count() as i64;
        assert!(gained <= reads, "{gained} waits in fread, and {reads} reads of the system");
    }
}
