// SPDX-License-Identifier: PostgreSQL
//! CPU time of statements (pg_tally.statements_cpu). The witness is /proc/PID/schedstat, read while the session
//! sleeps at a gate within the statement, or between two statements: the time that the kernel has counted
//! meanwhile bounds that of the statement.

use crate::support;
use postgres::Client;
use scratch::{Cluster, StopMode};
use serde_json::Value;

use crate::support::{create_views, eventually, major, output, plain, segment, start, tally};

/// Each of the two readings of a difference is truncated to whole microseconds, for user mode and for the kernel.
const CUT: f64 = 2e-6;

/// CPU seconds of a process, once it sleeps. The kernel shows no system call for a running process, and counts
/// its time when it has stopped running.
fn cpu_asleep(pid: i32) -> f64 {
    let of = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap();
    eventually("the process is asleep", || !of("syscall").starts_with("running"));
    of("schedstat").split(' ').next().unwrap().parse::<f64>().unwrap() * 1e-9
}

fn server(settings: &[(&str, &str)]) -> Cluster {
    let cluster = start(
        plain()
            .setting("shared_preload_libraries", "pg_tally")
            // Nobody wakes up at a gate.
            .setting("deadlock_timeout", "1h")
            .settings(settings.iter().copied()),
    );
    create_views(&cluster);
    let sql = "create table gate_in (); create table gate_out (); create table one (n int); insert into one values (1);
        create function work(n int) returns bigint parallel safe language plpgsql as $$
        declare total bigint;
        begin
            perform count(*) from gate_in;
            select sum(i) into total from generate_series(1, n) i;
            perform count(*) from gate_out;
            return total;
        end $$";
    cluster.connect().unwrap().batch_execute(sql).unwrap();
    cluster
}

/// Runs `sql` in that session, a call of work(). Returns the CPU seconds of the process that does the work: on
/// arrival at the first gate, and at the second one.
fn run(cluster: &Cluster, client: &mut Client, sql: &str) -> (f64, f64) {
    let mut observer = cluster.connect().unwrap();
    let close = |gate: &str| {
        let mut holder = cluster.connect().unwrap();
        holder.batch_execute(&format!("begin; lock table {gate}")).unwrap();
        holder
    };
    let (gate_in, gate_out) = (close("gate_in"), close("gate_out"));
    let mut arrival = |gate: &str| {
        let sql =
            format!("select pid from pg_locks where relation = '{gate}'::regclass and not granted");
        let row = eventually("somebody is at the gate", || observer.query_opt(&sql, &[]).unwrap());
        cpu_asleep(row.get(0))
    };
    std::thread::scope(|scope| {
        let session = scope.spawn(|| client.batch_execute(sql).unwrap());
        let at_first = arrival("gate_in");
        drop(gate_in);
        let at_second = arrival("gate_out");
        drop(gate_out);
        session.join().unwrap();
        (at_first, at_second)
    })
}

/// CPU seconds of the statement whose text is like this, in user mode and in the kernel; `None` if not measured.
fn cpu_of(client: &mut Client, query: &str, toplevel: bool) -> Option<f64> {
    let sql = "select user_time + system_time, (user_time is null) = (system_time is null) from tally.statements \
               where query like $1 and toplevel = $2";
    let rows = client.query(sql, &[&query, &toplevel]).unwrap();
    let [row] = &rows[..] else { panic!("{} rows of {query}: {rows:?}", rows.len()) };
    assert!(row.get::<_, bool>(1), "both are measured, or neither");
    row.get::<_, Option<f64>>(0).map(|ms| ms * 1e-3)
}

#[test]
fn the_cpu_time_of_a_statement_is_what_the_kernel_counts_in_it() {
    let cluster = server(&[("pg_tally.statements", "all"), ("pg_tally.statements_cpu", "on")]);
    let mut observer = cluster.connect().unwrap();
    let mut client = cluster.connect().unwrap();
    let pid = support::pid_of(&mut client);
    client.batch_execute("prepare prepared(int) as select work($1) as prepared").unwrap();
    for (sql, query) in [
        ("select work(200000)", "select work($1)"),
        ("execute prepared(200000)", "prepare prepared(int) as select work($1) as prepared"),
        ("do $$ begin perform work(200000); end $$", "do $$ begin perform work(200000); end $$"),
    ] {
        observer.batch_execute("select tally.reset()").unwrap();
        let before = cpu_asleep(pid);
        let (at_first, at_second) = run(&cluster, &mut client, sql);
        let after = cpu_asleep(pid);
        let counted = cpu_of(&mut observer, query, true).unwrap();
        assert!(
            counted >= at_second - at_first - CUT && counted <= after - before + CUT,
            "{sql}: {counted} s; within it {}, around it {}",
            at_second - at_first,
            after - before
        );
        // The statement that it executes between the gates.
        let nested = cpu_of(&mut observer, "select sum(i) %", false).unwrap();
        assert!(
            nested > 0.0 && nested <= at_second - at_first + CUT && nested <= counted,
            "{sql}: {nested} s of {counted}"
        );
    }
}

/// Within a clock tick of the kernel, too: a few tenths of a millisecond each.
#[test]
fn short_statements_have_cpu_time() {
    let cluster = server(&[("pg_tally.statements_cpu", "on")]);
    let mut client = cluster.connect().unwrap();
    for columns in 1..=20 {
        let columns = vec!["max(i)"; columns].join(", ");
        client.batch_execute(&format!("select {columns} from generate_series(1, 1000) i")).unwrap();
    }
    let sql =
        "select count(*), count(user_time) from tally.statements where query like 'select max(i)%'";
    let row = client.query_one(sql, &[]).unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (20, 20));
}

#[test]
fn the_cpu_time_of_a_parallel_worker_is_its_leaders_statements() {
    let forced = if major() >= 16 { "debug_parallel_query" } else { "force_parallel_mode" };
    let cluster = server(&[("pg_tally.statements_cpu", "on"), (forced, "on")]);
    let mut observer = cluster.connect().unwrap();
    let mut client = cluster.connect().unwrap();
    let pid = support::pid_of(&mut client);
    observer.batch_execute("select tally.reset()").unwrap();
    let before = cpu_asleep(pid);
    let (_, at_second) = run(&cluster, &mut client, "select work(200000) from one");
    let after = cpu_asleep(pid);
    let row = "select workers from tally.statements where query = 'select work($1) from one'";
    eventually("the worker has ended", || {
        observer.query_one(row, &[]).unwrap().get::<_, i64>(0) == 1
    });
    let counted = cpu_of(&mut observer, "select work($1) from one", true).unwrap();
    assert!(counted >= at_second - CUT, "{counted} s of {at_second}");
    assert!(counted > after - before, "{counted} s, and the leader alone {}", after - before);
}

#[test]
fn it_is_null_where_it_was_not_measured_and_is_the_same_in_every_output() {
    let mut cluster = server(&[]);
    let mut observer = cluster.connect().unwrap();
    let mut client = cluster.connect().unwrap();
    let work = |client: &mut Client, aggregate: &str| {
        let sql = format!("select {aggregate}(i) from generate_series(1, 50000) i");
        client.batch_execute(&sql).unwrap();
    };
    let of = |client: &mut Client, aggregate: &str| {
        cpu_of(client, &format!("select {aggregate}(i) %"), true)
    };
    work(&mut client, "min");
    client.batch_execute("set pg_tally.statements_cpu = on").unwrap();
    work(&mut client, "max");
    let failing = "select sum(1 / (i - 50000)) from generate_series(1, 50000) i";
    // Its planning would count.
    client.batch_execute("set pg_tally.statements_planning = off").unwrap();
    assert!(client.batch_execute(failing).is_err());
    let measured = of(&mut observer, "max").unwrap();
    assert!(measured > 0.0);
    assert_eq!(of(&mut observer, "min"), None);
    assert_eq!(cpu_of(&mut observer, "select sum($1 /%", true), None);

    // For the statement that changes the setting, only the end or only the start is measured.
    let setting = "select count(*), count(user_time) from tally.statements where query like 'set pg_tally.statements_cpu%'";
    let setting = |client: &mut Client| {
        let row = client.query_one(setting, &[]).unwrap();
        (row.get::<_, i64>(0) > 0, row.get::<_, i64>(1))
    };
    assert_eq!(setting(&mut observer), (true, 0));

    // Off again, and in another session, which never requested it.
    client.batch_execute("set pg_tally.statements_cpu = off").unwrap();
    work(&mut client, "max");
    work(&mut observer, "max");
    work(&mut client, "avg");
    assert_eq!(of(&mut observer, "max"), Some(measured));
    assert_eq!(of(&mut observer, "avg"), None);
    assert_eq!(setting(&mut observer), (true, 0));

    drop(client);
    let text = output(tally().args(["statements", "--json"]).arg(segment(&cluster)));
    let json: Value = serde_json::from_str(&text).unwrap();
    let row = |name: &str| {
        let rows = json["rows"].as_array().unwrap();
        let named = |row: &&Value| row["query"].as_str().is_some_and(|query| query.contains(name));
        let row = rows.iter().find(named).unwrap();
        ["user_seconds", "system_seconds"].map(|part| row[part].as_f64())
    };
    assert_eq!(row("min(i)"), [None, None]);
    let [user, system] = row("max(i)").map(Option::unwrap);
    assert_eq!((user * 1e6).round() + (system * 1e6).round(), (measured * 1e6).round());

    drop(observer);
    cluster.stop(StopMode::Fast).unwrap();
    cluster.start().unwrap();
    let mut observer = cluster.connect().unwrap();
    assert_eq!(of(&mut observer, "max"), Some(measured));
    assert_eq!(of(&mut observer, "min"), None);
}
