// SPDX-License-Identifier: PostgreSQL
//! A log collector that stops: processes wait for its pipe, and their wait has a name.

use crate::support;
use crate::support::stopped::Stopped;
use crate::support::{create_views, eventually, plain, start};
use postgres::NoTls;

#[test]
fn a_session_that_waits_for_the_log_collector_is_shown_with_what_it_waits_for() {
    let cluster = start(
        plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.slow_threshold", "1ms")
            .setting("logging_collector", "on")
            .setting("autovacuum", "off"),
    );
    create_views(&cluster);
    let mut admin = cluster.connect().unwrap();
    let mut talker = cluster.config().connect(NoTls).unwrap();
    let pid = support::pid_of(&mut talker);
    let logger = "select pid from tally.sessions where kind = 'logger'";
    let logger: i32 =
        eventually("it is instrumented", || admin.query_opt(logger, &[]).unwrap()).get(0);
    std::thread::scope(|scope| {
        let stopped = Stopped::new(logger);
        scope.spawn(move || {
            // More than a pipe can hold.
            let sql = "do $$ begin for n in 1..2000 loop raise log '%', repeat('x', 1000); end loop; end $$";
            talker.batch_execute(sql).unwrap();
            talker.batch_execute("select 1").unwrap();
        });
        // Until the pipe is full, each write is this activity too, for a moment.
        eventually("it waits for the pipe, for longer than the threshold", || {
            let sql = "select activity = 'Call:log_pipe' and since_seconds > 0.01 from tally.sessions where pid = $1";
            admin.query_one(sql, &[&pid]).unwrap().get::<_, Option<bool>>(0) == Some(true)
        });
        drop(stopped);
    });
    let event =
        "select text from tally.events where pid = $1 and kind = 'slow' and text ~ ': log pipe$'";
    eventually("the wait is reported", || !admin.query(event, &[&pid]).unwrap().is_empty());
    let writes = "select sum(count)::bigint from tally.files where file = 'log pipe' and operation = 'write'";
    assert!(admin.query_one(writes, &[]).unwrap().get::<_, i64>(0) > 0);
    let unnamed = "select count(*) from tally.waits where wait_event = 'write'";
    assert_eq!(admin.query_one(unnamed, &[]).unwrap().get::<_, i64>(0), 0);
}
