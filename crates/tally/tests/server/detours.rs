// SPDX-License-Identifier: PostgreSQL
//! Detours under difficult conditions: no file descriptors for a while, a wait that started before level locks,
//! thousands of functions probed in one session.

use crate::support;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::eventually;
use crate::support::lazy::never_calling;
use postgres::Client;
use scratch::{Binaries, Cluster};
use segment::{set_level, Level, ProbeState, Segment, Snapshot};

/// Lets a process open no more files, or as many as its hard limit allows. Runs as the server's user,
/// who has permission.
fn limit_files(cluster: &Cluster, pid: i32, files: bool) {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let soft = if files { line.split_ascii_whitespace().nth(4).unwrap() } else { "0" };
    let mut command = cluster.os_user().command(Path::new("prlimit"));
    let status = command.args(["--pid", &pid.to_string(), &format!("--nofile={soft}:")]).status();
    assert!(status.unwrap().success());
}

/// The sum of the counts of the selected statistics of one process.
fn count(snapshot: &Snapshot, pid: i32, wanted: impl Fn(&str) -> bool) -> u64 {
    let books = snapshot.books.iter().filter(|book| book.pid == pid);
    let heads = books.flat_map(|book| &book.heads);
    let of = |stat| snapshot.directory.get(stat).is_some_and(|stat| wanted(&stat.name));
    heads.filter(|head| of(head.stat)).map(|head| head.count).sum()
}

fn counted(path: &Path, pid: i32, wanted: impl Fn(&str) -> bool) -> u64 {
    count(&Segment::open(path).unwrap().snapshot(None).unwrap(), pid, wanted)
}

/// The calls of all probes in a process. Each wait has at least one.
fn calls(path: &Path, pid: i32) -> u64 {
    let snapshot = Segment::open(path).unwrap().snapshot(None).unwrap();
    let book = snapshot.books.iter().find(|book| book.pid == pid).unwrap();
    book.calls.iter().sum()
}

/// Whether the process waits for its client's next command, so that nothing is pending.
fn waits_for_a_command(path: &Path, pid: i32) -> bool {
    let snapshot = Segment::open(path).unwrap().snapshot(None).unwrap();
    let book = snapshot.books.iter().find(|book| book.pid == pid).unwrap();
    book.heads.iter().filter(|head| head.running > 0).any(|head| {
        let stat = snapshot.directory.get(head.stat).unwrap();
        stat.name.ends_with("::wait::Client:ClientRead")
    })
}

/// Sets level `locks` while a session cannot open files, then lets it open files again.
fn locks_are_counted_once_files_can_be_opened(cluster: &Cluster) {
    let path = support::segment(cluster);
    let mut client = cluster.connect().unwrap();
    let pid = support::pid_of(&mut client);
    let locks = || counted(&path, pid, |name| name.starts_with("lwlock::"));
    // The client may receive the response before the session has recorded everything.
    let mut work = || {
        client.batch_execute("select count(*) from pg_class").unwrap();
        eventually("the session waits again", || waits_for_a_command(&path, pid));
    };
    work();
    limit_files(cluster, pid, false);
    let calls_before = calls(&path, pid);
    set_level(&path, Level::Locks).unwrap();
    for _ in 0..3 {
        work();
    }
    assert_eq!(locks(), 0, "the level took effect without a descriptor: nothing is tested");
    let refused = calls(&path, pid) - calls_before;
    limit_files(cluster, pid, true);
    // The session retries after at most twice as many waits as it has had. Each `work` has at least one
    // wait.
    for _ in 0..2 * refused + 4 {
        work();
    }
    assert!(locks() > 0, "level locks never came into force");
    set_level(&path, Level::Waits).unwrap();
    work();
    let (then, ()) = (locks(), work());
    assert_eq!(locks(), then, "locks are counted at level waits");

    // The reverse: the level cannot be lowered for a while.
    set_level(&path, Level::Locks).unwrap();
    work();
    limit_files(cluster, pid, false);
    let calls_before = calls(&path, pid);
    set_level(&path, Level::Waits).unwrap();
    work();
    let refused = calls(&path, pid) - calls_before;
    limit_files(cluster, pid, true);
    for _ in 0..2 * refused + 4 {
        work();
    }
    let (then, ()) = (locks(), work());
    assert_eq!(locks(), then, "level locks is still in force");
    let events = Segment::open(&path).unwrap().events(0).unwrap();
    let reported = events.iter().filter(|e| e.text.contains("in this process, will retry")).count();
    assert_eq!(reported, 2, "{events:?}");
}

#[test]
fn a_temporary_lack_of_descriptors_only_delays_level_locks() {
    locks_are_counted_once_files_can_be_opened(&support::shared());
}

/// Here the session creates its own stubs, which needs a descriptor too.
#[test]
fn a_temporary_lack_of_descriptors_only_delays_level_locks_with_session_preload() {
    locks_are_counted_once_files_can_be_opened(&support::sessions());
}

const CHUNK: usize = 128;

/// Functions of the server that can be probed, except those that the test counts.
fn probeable(client: &mut Client) -> Vec<String> {
    let sql = "select name from tally.probeable('*') where probeable and module = 'postgres' \
               and name <> 'int4div' and name not like '%lock%' and name not like 'tuplesort%' \
               order by md5(name) limit 1300";
    client.query(sql, &[]).unwrap().iter().map(|row| row.get(0)).collect()
}

fn installed(path: &Path) -> usize {
    let probes = Segment::open(path).unwrap().probes().unwrap();
    let left_out: Vec<_> = probes
        .iter()
        .filter(|probe| probe.name.starts_with("function ") && probe.state == ProbeState::LeftOut)
        .collect();
    assert!(left_out.is_empty(), "{left_out:?}");
    probes.iter().filter(|probe| probe.name.starts_with("function ")).count()
}

/// A server with the views, its segment and a session.
fn with_views() -> (Cluster, PathBuf, Client) {
    let cluster = support::shared();
    support::create_views(&cluster);
    let (path, client) = (support::segment(&cluster), cluster.connect().unwrap());
    (cluster, path, client)
}

/// int4div is called once for each of these rows.
fn divide(client: &mut Client, rows: i32) {
    client.query_one("select sum(n / 7) from generate_series(1, $1) n", &[&rows]).unwrap();
}

fn divisions(path: &Path, pid: i32) -> u64 {
    counted(path, pid, |name| name.starts_with("function::int4div::inclusive::"))
}

/// A stub is not given to another function while a second thread could run in it; an emulator has a second
/// thread.
fn stubs_stay_in_use() -> bool {
    if support::emulated() {
        println!("not tested: an emulated server's processes have a second thread");
    }
    support::emulated()
}

#[test]
fn any_number_of_functions_can_be_probed_in_successive_lists() {
    if stubs_stay_in_use() {
        return;
    }
    let (_cluster, path, mut client) = with_views();
    let pid = support::pid_of(&mut client);
    let names = probeable(&mut client);
    assert_eq!(names.len(), 1300);
    client.batch_execute("set pg_tally.functions = 'int4div'").unwrap();
    divide(&mut client, 1000);
    assert_eq!(divisions(&path, pid), 1000);
    for chunk in names.chunks(CHUNK) {
        client.batch_execute(&format!("set pg_tally.functions = '{}'", chunk.join(","))).unwrap();
        assert_eq!(installed(&path), chunk.len());
        divide(&mut client, 10);
    }
    assert_eq!(divisions(&path, pid), 1000);
    // Another function uses its first stub now.
    client.batch_execute("set pg_tally.functions = 'int4div'").unwrap();
    divide(&mut client, 1000);
    assert_eq!(divisions(&path, pid), 2000);
}

#[test]
fn calls_return_through_their_stubs_even_if_the_list_has_changed() {
    if stubs_stay_in_use() {
        return;
    }
    let (_cluster, path, mut client) = with_views();
    let pid = support::pid_of(&mut client);
    let names = probeable(&mut client);
    let lists: Vec<String> = names.chunks(CHUNK).map(|chunk| chunk.join(",")).collect();
    client
        .batch_execute(
            "create function change(lists text[]) returns int language plpgsql as $$ \
             declare list text; begin foreach list in array lists loop \
             perform set_config('pg_tally.functions', list, false); end loop; return 1; end $$",
        )
        .unwrap();
    // All of these are on the stack while the lists change.
    let around = "standard_ExecutorRun,PortalRun,exec_simple_query,plpgsql_call_handler,\
                  ExecInterpExpr,ExecutorRun";
    for round in 1..=3u64 {
        client.batch_execute(&format!("set pg_tally.functions = '{around}'")).unwrap();
        let row = client.query_one("select change($1)", &[&lists]).unwrap();
        assert_eq!(row.get::<_, i32>(0), 1);
        client.batch_execute("set pg_tally.functions = 'int4div'").unwrap();
        divide(&mut client, 100);
        assert_eq!(divisions(&path, pid), 100 * round);
    }
}

/// Runs a query in a second session of the same server, and waits for it with dblink's own wait events. The query
/// waits for a lock until the first session has been seen to wait.
fn wait_for_another_session(cluster: &Cluster, client: &mut Client, pid: i32) {
    client.batch_execute("create extension if not exists dblink").unwrap();
    let mut holder = cluster.connect().unwrap();
    holder.batch_execute("select pg_advisory_lock(1)").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let sql =
                "select * from dblink($1, 'select 1 from pg_advisory_lock(1)') as answer(n int)";
            assert_eq!(client.query(sql, &[&cluster.connection_string()]).unwrap().len(), 1);
        });
        eventually("the session waits for the other one", || {
            let sql = "select wait_event_type = 'Extension' and exists (select from pg_locks where not granted) \
                       from pg_stat_activity where pid = $1";
            holder.query_one(sql, &[&pid]).unwrap().get::<_, Option<bool>>(0) == Some(true)
        });
        holder.batch_execute("select pg_advisory_unlock(1)").unwrap();
    });
    // The last wait is recorded when the next one starts.
    client.batch_execute("select pg_sleep(0.01)").unwrap();
}

/// From PostgreSQL 17 on, extensions name their wait events. A probe may not take a lock to look up such a name.
#[test]
fn wait_events_of_extensions_have_the_names_that_the_extensions_gave_them() {
    if !support::has_module("dblink") {
        println!("not tested: the server has no dblink");
        return;
    }
    for cluster in [support::shared(), support::sessions()] {
        let path = support::segment(&cluster);
        let mut client = cluster.connect().unwrap();
        let pid = support::pid_of(&mut client);
        wait_for_another_session(&cluster, &mut client, pid);
        let waits = |part: &str| counted(&path, pid, |name| name.contains(part));
        if support::major() < 17 {
            assert!(waits("::wait::Extension:Extension") > 0);
            assert_eq!(waits("::wait::Extension:Dblink"), 0);
            continue;
        }
        assert!(waits("::wait::Extension:DblinkGetConnect") > 0);
        assert!(waits("::wait::Extension:DblinkGetResult") > 0);
        assert_eq!(waits("::wait::Extension:#"), 0);
        let probes = Segment::open(&path).unwrap().probes().unwrap();
        for function in ["WaitEventExtensionNew", "WaitEventInjectionPointNew"] {
            let name = format!("detour {function}");
            let probe = probes.iter().find(|probe| probe.name == name).unwrap();
            assert_eq!(probe.state, ProbeState::Installed, "{name}: {}", probe.reason);
        }
    }
}

/// An error is caused under a lock, which the server then releases with all others.
fn fail_under_a_lock(client: &mut Client) {
    client.batch_execute("select pg_xact_status('9000000000')").unwrap_err();
    client.batch_execute("select 1").unwrap();
}

/// Whether LWLockReleaseAll contains a copy of LWLockRelease. This depends on the version and on the server's
/// compiler, so calls are counted without level `locks`.
fn release_all_contains_a_copy() -> bool {
    const FAILURES: i64 = 20;
    let cluster = support::sessions();
    let path = support::segment(&cluster);
    let mut client = cluster.connect().unwrap();
    let pid = support::pid_of(&mut client);
    let calls = |function: &str| {
        counted(&path, pid, |name| name.starts_with(&format!("function::{function}::inclusive::")))
            as i64
    };
    let functions = "LWLockAcquire,LWLockConditionalAcquire,LWLockAcquireOrWait,LWLockRelease";
    client.batch_execute(&format!("set pg_tally.functions = '{functions}'")).unwrap();
    let unreleased = || calls("LWLockAcquire") - calls("LWLockRelease");
    client.batch_execute("select 1").unwrap();
    let before = unreleased();
    for _ in 0..FAILURES {
        fail_under_a_lock(&mut client);
    }
    assert!(calls("LWLockRelease") > 0);
    unreleased() - before > FAILURES / 2
}

/// If LWLockReleaseAll contains a copy of LWLockRelease (PostgreSQL 18, or link-time optimisation), its releases
/// are not seen without a detour of their own. Otherwise it calls LWLockRelease.
#[test]
fn locks_whose_releases_are_not_seen_are_not_counted_and_status_says_why() {
    let cluster = support::start(
        support::plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.level", "locks")
            .setting("pg_tally.leave_out", "\"LWLockReleaseAll\""),
    );
    let copied = release_all_contains_a_copy();
    let path = support::segment(&cluster);
    let segment = Segment::open(&path).unwrap();
    let mut client = cluster.connect().unwrap();
    let pid = support::pid_of(&mut client);
    let locks = || counted(&path, pid, |name| name.starts_with("lwlock::"));
    fail_under_a_lock(&mut client);
    let reason = || {
        let probes = segment.probes().unwrap();
        let probe = probes.into_iter().find(|probe| probe.name == "detour LWLockAcquire").unwrap();
        (probe.state == ProbeState::LeftOut).then_some(probe.reason)
    };
    if !copied {
        for _ in 0..20 {
            fail_under_a_lock(&mut client);
        }
        assert_eq!(reason(), None);
        assert!(locks() > 0);
        return;
    }
    eventually("the missing release is noticed", || reason().is_some());
    let reason = reason().unwrap();
    assert!(reason.starts_with("calls do not balance: 1 lock"), "{reason}");
    let text = support::output(support::tally().arg("status").arg(cluster.data_dir()));
    assert!(text.contains("calls do not balance"), "{text}");
    let events = segment.events(0).unwrap();
    let warns = |text: &str| text.starts_with("lightweight locks are no longer counted");
    assert_eq!(events.iter().filter(|e| warns(&e.text)).count(), 1, "{events:?}");
    // Neither this process nor any other continues to count.
    let then = locks();
    fail_under_a_lock(&mut client);
    assert_eq!(locks(), then);
    let mut other = cluster.connect().unwrap();
    let others = support::pid_of(&mut other);
    fail_under_a_lock(&mut other);
    fail_under_a_lock(&mut other);
    assert_eq!(counted(&path, others, |name| name.starts_with("lwlock::")), 0);
    let snapshot = Segment::open(&path).unwrap().snapshot(None).unwrap();
    assert!(snapshot.books.iter().all(|book| book.holding == 0), "a lock seems to be held");
}

/// The reason why a probe was left out; None if it is installed.
fn left_out(path: &Path, name: &str) -> Option<String> {
    let probes = Segment::open(path).unwrap().probes().unwrap();
    let probe = probes.into_iter().find(|probe| probe.name == name).unwrap();
    (probe.state == ProbeState::LeftOut).then_some(probe.reason)
}

fn warnings(path: &Path, text: &str) -> usize {
    let events = Segment::open(path).unwrap().events(0).unwrap();
    events.iter().filter(|event| event.text.contains(text)).count()
}

/// As with link-time optimisation: most callers of LWLockAcquire contain copies of it.
#[test]
fn locks_whose_acquisitions_are_not_seen_are_not_counted_and_status_says_why() {
    let (_folder, binaries) = never_calling("LWLockAcquire", "pg_stat_file");
    let cluster = support::start(
        support::plain()
            .binaries(binaries)
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.level", "locks"),
    );
    let path = support::segment(&cluster);
    let mut client = cluster.connect().unwrap();
    let pid = support::pid_of(&mut client);
    eventually("releases without acquisitions are noticed", || {
        client.batch_execute("select count(*) from pg_class").unwrap();
        left_out(&path, "detour LWLockRelease").is_some()
    });
    let reason = left_out(&path, "detour LWLockAcquire").unwrap();
    assert!(reason.starts_with("calls do not balance: "), "{reason}");
    assert!(reason.ends_with("locks have no matching acquisition in an idle process"), "{reason}");
    assert_eq!(warnings(&path, "lightweight locks are no longer counted"), 1);
    let text = support::output(support::tally().arg("status").arg(cluster.data_dir()));
    assert!(text.contains("calls do not balance"), "{text}");
    let locks = || counted(&path, pid, |name| name.starts_with("lwlock::"));
    client.batch_execute("select 1").unwrap();
    let then = locks();
    client.batch_execute("select count(*) from pg_class").unwrap();
    assert_eq!(locks(), then);
}

/// As with link-time optimisation: the main loop contains a copy of pq_getbyte.
#[test]
fn phases_are_guessed_where_the_main_loop_does_not_call_the_redirected_function() {
    const REASON: &str = "the main loop does not call it";
    let (_folder, binaries) = never_calling("pq_getbyte", "pq_peekbyte");
    let cluster = support::start(
        support::plain().binaries(binaries).setting("shared_preload_libraries", "pg_tally"),
    );
    let path = support::segment(&cluster);
    let mut client = cluster.connect().unwrap();
    let pid = support::pid_of(&mut client);
    // A message that arrives before the session waits for it is not seen.
    for _ in 0..5 {
        eventually("the session waits", || waits_for_a_command(&path, pid));
        client.batch_execute("select pg_sleep(0.01)").unwrap();
    }
    eventually("the last wait is recorded", || {
        counted(&path, pid, |name| name == "simple query::wait::Timeout:PgSleep") == 5
    });
    assert_eq!(counted(&path, pid, |name| name.starts_with("startup::wait::Timeout:PgSleep")), 0);
    assert!(counted(&path, pid, |name| name == "command::Other::handle") >= 4);
    for probe in ["detour pq_getbyte", "messages"] {
        let reason = left_out(&path, probe).unwrap_or_default();
        assert!(reason.starts_with(REASON), "{probe}: {reason}");
    }
    let text = support::output(support::tally().arg("status").arg(cluster.data_dir()));
    assert!(text.contains(REASON), "{text}");
    // Another session guesses as well, and does not warn once more.
    let mut other = cluster.connect().unwrap();
    let others = support::pid_of(&mut other);
    eventually("it waits", || waits_for_a_command(&path, others));
    other.batch_execute("select pg_sleep(0.01)").unwrap();
    eventually("its wait is recorded", || {
        counted(&path, others, |name| name == "simple query::wait::Timeout:PgSleep") == 1
    });
    assert_eq!(warnings(&path, "phases of sessions are not distinguished"), 1);
}

/// The library made from `leaving.cc`, and its functions in SQL; None if there is no compiler for the server.
fn with_functions_that_are_left(cluster: &Cluster) -> Option<tempfile::TempDir> {
    if support::emulated() {
        println!("not tested: there is no compiler of C++ for an emulated server");
        return None;
    }
    let mode = std::fs::Permissions::from_mode(0o755);
    let folder = tempfile::Builder::new().permissions(mode).tempdir().unwrap();
    let library = folder.path().join("leaving.so");
    let include = Binaries::find().unwrap().config("--includedir-server").unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/leaving.cc");
    let compiled = Command::new("c++")
        .args(["-O2", "-fPIC", "-shared", "-I", &include, source, "-o"])
        .arg(&library)
        .output();
    let Ok(output) = compiled else {
        println!("not tested: there is no c++");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut client = cluster.connect().unwrap();
    for (function, argument) in [
        ("left_by_exception", "int"),
        ("left_by_jump", "int"),
        ("coroutine_on_the_heap", ""),
        ("coroutine_on_the_stack", ""),
    ] {
        let library = library.display();
        let sql =
            format!("create function {function}({argument}) returns int language c as '{library}'");
        client.batch_execute(&sql).unwrap();
    }
    Some(folder)
}

fn calls_of(path: &Path, pid: i32, function: &str) -> u64 {
    counted(path, pid, |name| name.starts_with(&format!("function::{function}::inclusive::")))
}

/// An exception that meets a frame without a description ends the process.
#[test]
fn exceptions_and_jumps_pass_functions_that_are_timed() {
    const TIMED: &str = "left_throws,left_passes,left_jumps,standard_ExecutorRun";
    let cluster = support::shared();
    let Some(_folder) = with_functions_that_are_left(&cluster) else { return };
    let path = support::segment(&cluster);
    let mut client = cluster.connect().unwrap();
    let pid = support::pid_of(&mut client);
    // The library is loaded by the first call.
    let sums =
        "select sum(left_by_exception(n)), sum(left_by_jump(n)) from generate_series(1, 100) n";
    // 50 even numbers and one each; -1 for each odd one.
    let expected: (i64, i64) = (2550, 2550);
    for functions in ["", TIMED] {
        client.batch_execute(&format!("set pg_tally.functions = '{functions}'")).unwrap();
        let row = client.query_one(sums, &[]).unwrap();
        assert_eq!((row.get(0), row.get(1)), expected, "timed: '{functions}'");
    }
    // What was left is counted by the next call that is followed, and by the end of the query that contains it.
    for function in ["left_throws", "left_passes", "left_jumps"] {
        assert_eq!(calls_of(&path, pid, function), 100, "{function}");
    }
}

/// A coroutine that has a part of the main stack as its own returns to frames that seemed to have been left.
#[test]
fn coroutines_return_as_ever_where_their_functions_are_timed() {
    let cluster = support::shared();
    let Some(_folder) = with_functions_that_are_left(&cluster) else { return };
    let path = support::segment(&cluster);
    for stack in ["coroutine_on_the_heap", "coroutine_on_the_stack"] {
        let mut client = cluster.connect().unwrap();
        let pid = support::pid_of(&mut client);
        for functions in ["", "left_yields,left_resumes"] {
            client.batch_execute(&format!("set pg_tally.functions = '{functions}'")).unwrap();
            for _ in 0..3 {
                let row = client.query_one(&format!("select {stack}()"), &[]).unwrap();
                assert_eq!(row.get::<_, i32>(0), 3313, "{stack}, timed: '{functions}'");
            }
        }
        // Calls on another stack are not followed; after the first return out of order, no call is.
        let (yields, resumes) =
            (calls_of(&path, pid, "left_yields"), calls_of(&path, pid, "left_resumes"));
        match stack {
            "coroutine_on_the_heap" => assert_eq!((yields, resumes), (0, 9)),
            _ => assert!(yields + resumes > 0),
        }
    }
    assert_eq!(warnings(&path, "coroutines on its main stack"), 1);
}
