// SPDX-License-Identifier: PostgreSQL
//! Each rule just at its thresholds and just below them, and what it says.

use segment::clients::ClientActivity;
use segment::delta::EndedOrigin;
use segment::interval::{SessionAccount, SessionRow};
use segment::ClientWaits;

use view::blocking::{Blockers, Forest, Party, Wait};
use view::statements::{ActivityRow, CurrentRow, PlanRow, Split, StatementsTable};

use super::rules::{account, case, full_scan, interval, rules};
use super::*;

/// What is found of these accounts.
fn ledger(accounts: &[(&str, u64, f64)]) -> Vec<Rule> {
    rules(&diagnose(&case(&interval(accounts))))
}

fn of_statements(load: f64, statements: &StatementsTable) -> Vec<Diagnosis> {
    let interval = interval(&[("execute::cpu", 100, load)]);
    diagnose(&Case { statements: Some(statements), ..case(&interval) })
}

fn session(state: &'static str) -> SessionRow {
    let all = view::sample::interval().sessions.into_iter();
    SessionRow { state, ..all.into_iter().find(|row| row.kind == "client backend").unwrap() }
}

/// Everything that a diagnosis says, a line each.
fn printed(diagnosis: &Diagnosis) -> Vec<String> {
    [vec![diagnosis.text.clone()], diagnosis.evidence.clone()].concat()
}

#[test]
fn a_part_of_the_load_is_enough_from_its_threshold_on() {
    for (name, n, part, rule) in [
        ("execute::wait::Lock:tuple", 10, 0.1, Rule::Locks),
        ("execute::wait::LWLock:WALInsert", 100, 0.1, Rule::LightweightLocks),
        ("commit::wait::IPC:SyncRep", 100, 0.2, Rule::Replication),
        ("execute::wait::IO:DataFileRead", 20, 0.2, Rule::SlowDevice),
        ("execute::wait::IO:AioIoCompletion", 20, 0.2, Rule::SlowDevice),
        ("execute::wait::Client:ClientWrite", 100, 0.2, Rule::SlowClients),
    ] {
        let of_load = |load: f64, seconds: f64| {
            ledger(&[(name, n, seconds), ("execute::cpu", 9, load - seconds)])
        };
        assert_eq!(of_load(8.0, 8.0 * part), [rule], "{name}");
        assert_eq!(of_load(8.0, 8.0 * part - 0.01), [], "{name}");
        // Another load beside it hides nothing.
        let (enough, little) = match rule {
            Rule::LightweightLocks => (10.0, 9.99),
            _ => (5.0, 4.99),
        };
        assert_eq!(of_load(1000.0, enough), [rule], "{name}");
        assert_eq!(of_load(1000.0, little), [], "{name}");
        // Half a session in ten seconds, and a fifth of a second at least.
        assert_eq!(ledger(&[(name, n, 0.5)]), [rule], "{name}");
        assert_eq!(ledger(&[(name, n, 0.499)]), [], "{name}");
        let mut short = interval(&[(name, n, 0.2)]);
        (short.interval_seconds, short.instrumented_seconds) = (1.0, 1.0);
        assert_eq!(rules(&diagnose(&case(&short))), [rule], "{name}");
        short.ledger = vec![account((name, n, 0.199))];
        assert_eq!(rules(&diagnose(&case(&short))), [], "{name}");
        // What is in the background or idle is nobody's load.
        let background = name.replace("execute", "background").replace("commit", "background");
        assert_eq!(ledger(&[(&background, n, 8.0)]), [], "{name}");
    }
}

#[test]
fn commits_are_slow_from_5_ms_a_sync_on_if_half_a_session_waits_for_them() {
    let found = |parts: [f64; 3], mean: f64, p50: Option<f64>| {
        let mut interval = interval(&[("execute::cpu", 9, 10.0)]);
        let commits = &mut interval.commits;
        [commits.sync.seconds, commits.queue.seconds, commits.write.seconds] = parts;
        (commits.sync.mean_seconds, commits.sync.p50_seconds) = (Some(mean), p50);
        commits.commits_per_flush = Some(3.5);
        diagnose(&case(&interval))
    };
    let printed =
        found([2.5, 1.25, 1.25], 0.005, Some(0.005)).iter().map(printed).collect::<Vec<_>>();
    assert_eq!(
        printed,
        [[
            "Commits are slow because the sync of the WAL is slow: 5 ms each on average, 50.0 % of the sessions' time.",
            "Commits spent 2.50 s in their own syncs of the WAL, and 1.25 s waiting for their turn or for another session's sync.",
            "Each sync covers 3.50 commits.",
        ]]
    );
    for (parts, mean, p50) in [
        ([2.49, 1.25, 1.25], 0.005, None),
        ([2.5, 1.24, 1.25], 0.005, None),
        ([2.5, 1.25, 1.24], 0.005, None),
        ([2.5, 1.25, 1.25], 0.0049, None),
        // Some take long, as on a busy machine.
        ([2.5, 1.25, 1.25], 0.005, Some(0.0049)),
    ] {
        assert_eq!(found(parts, mean, p50), [], "{parts:?} {mean} {p50:?}");
    }
    // A few commits, each of them very slow.
    let few = [1.0, 0.5, 0.5];
    assert_eq!(rules(&found(few, 0.05, Some(0.05))), [Rule::Commits]);
    assert_eq!(found(few, 0.049, Some(0.05)), []);
}

#[test]
fn a_device_is_slow_from_5_ms_a_read_on() {
    let read = |n| {
        let interval = interval(&[("execute::wait::IO:DataFileRead", n, 2.0)]);
        (rules(&diagnose(&case(&interval))), limits(&case(&interval)))
    };
    assert_eq!(read(400), (vec![Rule::SlowDevice], vec![]));
    assert_eq!(read(401), (vec![], vec![Rule::BufferMisses]));
}

#[test]
fn connections_are_many_from_five_a_second_on() {
    let found = |ends: u64, startup: f64| {
        let mut interval = interval(&[
            ("startup::cpu", 50, startup),
            ("terminate::cpu", 50, 1.0),
            ("execute::cpu", 9, 7.0),
        ]);
        interval.commands = view::sample::interval().commands;
        interval.commands[1].kind = "Terminate".into();
        interval.commands[1].read.count = ends;
        interval.commands_handled = 100;
        diagnose(&case(&interval))
    };
    assert_eq!(
        printed(&found(50, 2.0)[0]),
        [
            "5 connections/s are opened and closed, which takes 30.0 % of the sessions' time.",
            "A connection takes 60 ms to open and close, and handles 2 commands.",
        ]
    );
    assert_eq!(found(49, 2.0), []);
    let origin = |application: &str, sessions: u64| EndedOrigin {
        kind: "client backend".into(),
        database: Some("shop".into()),
        user: Some("joe".into()),
        application: application.into(),
        sessions,
    };
    let from = |origins: &[EndedOrigin]| {
        let mut interval = interval(&[("startup::cpu", 50, 2.0), ("execute::cpu", 9, 1.0)]);
        interval.commands = view::sample::interval().commands;
        interval.commands[1].kind = "Terminate".into();
        interval.commands[1].read.count = 50;
        interval.ended_origins = origins.to_vec();
        diagnose(&case(&interval)).remove(0).text
    };
    let named =
        "% of the sessions' time; most of them by application billing, user joe, database shop.";
    let text = from(&[origin("billing", 40), origin("report", 10)]);
    assert!(text.ends_with(named), "{text}");
    let workers = EndedOrigin { kind: "parallel worker".into(), ..origin("", 900) };
    let text = from(&[workers, origin("billing", 40)]);
    assert!(text.ends_with(named), "{text}");
    let text = from(&[origin("billing", 20), origin("report", 20)]);
    assert!(text.ends_with("% of the sessions' time."), "{text}");
    // A fifth of a session is enough, whatever the load.
    assert_eq!(rules(&found(50, 1.0)), [Rule::Connections]);
    assert_eq!(found(50, 0.99), []);
}

#[test]
fn a_lock_wait_is_long_from_5_s_on_and_its_root_is_named() {
    let long = |seconds: f64| {
        let mut forest = view::sample::blocking();
        forest.roots.push(Party { waiters: 1, ..Party::default() });
        let queue = &mut forest.roots[0].blocks[0];
        queue
            .blocks
            .iter_mut()
            .for_each(|block| block.wait.as_mut().unwrap().seconds = seconds / 2.0);
        queue.wait = Some(Wait { seconds, ..queue.wait.take().unwrap() });
        let interval = interval(&[("execute::cpu", 9, 10.0)]);
        diagnose(&Case { blocking: Some(&forest), ..case(&interval) })
    };
    assert_eq!(long(4.99), []);
    let found = long(5.0);
    assert_eq!(
        printed(&found[0]),
        [
            "8 sessions wait for session 4304 (psql, joe@shop), idle in transaction for 41 s.",
            "Its last statement: UPDATE accounts SET balance = 0",
            "Longest: session 4310 (shop) waits for row (0,7) of relation accounts (ExclusiveLock) for 5 s.",
            "7 of them queue behind session 4310 (shop), which waits for row (0,7) of relation accounts \
             (ExclusiveLock): UPDATE accounts SET balance = $1 WHERE id = $2",
            "Another session blocks others, too.",
        ]
    );
    let advice = &found[0].advice;
    assert!(advice.contains("SELECT pg_terminate_backend(4304)"), "{advice}");
    assert!(
        advice.ends_with("ALTER ROLE joe SET idle_in_transaction_session_timeout = '1min'."),
        "{advice}"
    );
}

#[test]
fn who_blocks_for_a_moment_at_the_end_is_not_who_blocked_others_before() {
    let interval = interval(&[("execute::wait::Lock:tuple", 3, 60.0), ("execute::cpu", 9, 4.0)]);
    let mut blockers = Blockers::default();
    blockers.add(&view::sample::blocking(), interval.time - 4.0, 1.0);
    let mut end = view::sample::blocking();
    let root = &mut end.roots[0];
    (root.pid, root.state, root.transaction_seconds) = (4311, Some("active"), Some(0.008));
    let (blocking, blocker) = choose_blocking(Some(&end), blockers.main());
    let found = diagnose(&Case { blocking, blocker, ..case(&interval) });
    let text = "8 sessions wait for session 4304 (psql, joe@shop), idle in transaction for 41 s.";
    assert_eq!(found[0].text, text);
    let when =
        "As of 4 s before the end of this time. It blocked up to 8 sessions, 8 s of their time.";
    assert_eq!(found[0].evidence[0], when);
    // Without the former, the lock is passed on.
    let found = diagnose(&Case { blocking: Some(&end), ..case(&interval) });
    assert!(found[0].text.starts_with("Sessions spend 93.8 % of their time waiting for row locks"));
    // Who keeps others waiting now comes before those who did.
    end.roots[0].transaction_seconds = Some(2.0);
    let (blocking, blocker) = choose_blocking(Some(&end), blockers.main());
    assert_eq!((blocking, blocker), (Some(&end), None));
    // There is nobody for whom others waited most of the time.
    blockers.add(&end, interval.time, 1.0);
    assert_eq!(blockers.main(), None);
}

#[test]
fn ddl_behind_a_reader_has_other_advice() {
    let mut forest: Forest = view::sample::blocking();
    forest.roots[0].blocks[0].wait.as_mut().unwrap().mode = "AccessExclusiveLock";
    let interval = interval(&[("execute::wait::Lock:relation", 3, 6.0), ("execute::cpu", 9, 4.0)]);
    let found = diagnose(&Case { blocking: Some(&forest), ..case(&interval) });
    let first = "\"UPDATE accounts SET balance = $1 WHERE id = $2\" by session 4310 (shop) waits for session 4304 (psql, joe@shop), idle \
                 in transaction for 41 s; 7 sessions queue behind it.";
    assert_eq!(found[0].text, first);
    assert!(!found[0].evidence.iter().any(|text| text.contains("queue behind")), "named twice");
    let advice = &found[0].advice;
    assert!(advice.contains("SELECT pg_cancel_backend(4310)"), "{advice}");
    assert!(advice.contains("SELECT pg_terminate_backend(4304)"), "{advice}");
    let last = found[0].evidence.last().unwrap();
    let text = "Sessions spend 60.0 % of their time waiting for locks of other sessions: Lock:relation (3 waits ended, 6 s in \
                total).";
    assert_eq!(last, text);
}

#[test]
fn a_transaction_is_forgotten_after_a_minute() {
    let found = |sessions: Vec<SessionRow>| {
        let mut interval = interval(&[]);
        interval.sessions = sessions;
        diagnose(&case(&interval)).into_iter().map(|found| found.text).collect::<Vec<_>>()
    };
    let idle =
        |pid, seconds| SessionRow { pid, since_seconds: seconds, ..session("idle in transaction") };
    assert_eq!(found(vec![idle(1, 59.9)]), [""; 0]);
    assert_eq!(found(vec![SessionRow { since_seconds: 99.0, ..session("active") }]), [""; 0]);
    let one = "Idle in a transaction for 60 s: session 1 (application pgbench, user alice, database shop, client 10.0.0.5).";
    assert_eq!(found(vec![idle(1, 60.0)]), [one]);
    let nameless = SessionRow {
        application: String::new(),
        user: None,
        database: None,
        client_address: Some("local".into()),
        ..idle(8, 90.0)
    };
    let two = "Idle in a transaction for 90 s: session 8, and 1 more for over a minute.";
    assert_eq!(found(vec![idle(1, 60.0), nameless, idle(2, 1.0)]), [two]);
}

#[test]
fn an_index_is_missing_from_500_blocks_a_call_and_100_a_row_on() {
    let found = |rows: u64, blocks: [u64; 2], seconds: f64| {
        let mut statements = full_scan(seconds);
        let row = &mut statements.rows[0];
        (row.counters.rows, row.query) = (rows, Some("SELECT 1".into()));
        [row.counters.blocks.shared_hit, row.counters.blocks.shared_read] = blocks;
        of_statements(10.0, &statements)
    };
    let all = found(50, [4000, 1000], 2.0);
    let begin = "An index may be missing: \"SELECT 1\" (query ID ";
    let end = ") reads 3.91 MB per call to return 5 rows.";
    assert!(all[0].text.starts_with(begin) && all[0].text.ends_with(end), "{}", all[0].text);
    assert_eq!((rules(&all), all[0].confidence), (vec![Rule::MissingIndex], Confidence::Possible));
    assert!(found(10, [4000, 1000], 2.0)[0].text.ends_with(" to return 1 row."));
    assert_eq!(rules(&found(0, [5000, 0], 2.0)), [Rule::MissingIndex]);
    assert_eq!(found(50, [3999, 1000], 2.0), []);
    assert_eq!(found(51, [4000, 1000], 2.0), []);
    assert_eq!(found(50, [4000, 1000], 1.99), []);
    let mut nested = full_scan(9.0);
    nested.rows[0].toplevel = false;
    assert_eq!(of_statements(10.0, &nested), []);
}

#[test]
fn what_is_written_to_temporary_files_is_no_missing_index() {
    let mut statements = full_scan(2.0);
    statements.rows[0].counters.blocks.temp_written = 2560;
    let found = of_statements(10.0, &statements);
    assert_eq!(rules(&found), [Rule::TemporaryFiles]);
    assert!(found[0].text.contains("(20 MB written)"), "{}", found[0].text);
    assert!(
        found[0].advice.contains("SET LOCAL work_mem = '4MB' (a call writes files of 2 MB)"),
        "{}",
        found[0].advice
    );
    statements.rows[0].counters.blocks.temp_written = 0;
    (statements.rows[0].counters.temp_bytes, statements.rows[0].counters.temp_files) = (1, 1);
    assert_eq!(rules(&of_statements(10.0, &statements)), [Rule::TemporaryFiles]);
    statements.rows[0].seconds = 1.99;
    assert_eq!(of_statements(10.0, &statements), []);
}

#[test]
fn waits_for_temporary_files_and_the_wal_are_found_by_the_names_of_every_version() {
    let mut statements = full_scan(8.0);
    statements.rows[0].counters.blocks.temp_written = 2560;
    // All WAL is full-page images.
    (statements.rows[0].counters.wal.bytes, statements.rows[0].counters.wal.fpi) = (8192, 1);
    for (read, sync) in [("IO:BufFileRead", "IO:WALSync"), ("IO:BuffileRead", "IO:WalSync")] {
        let [read, sync] = [read, sync].map(|event| format!("execute::wait::{event}"));
        let interval =
            interval(&[(&read, 100, 2.0), (&sync, 100, 3.0), ("execute::cpu", 100, 5.0)]);
        let of_wal = [Checkpoint { ended: Some(interval.time), ..checkpoint("wal", 5.0) }];
        let case = Case { statements: Some(&statements), checkpoints: &of_wal, ..case(&interval) };
        let found = diagnose(&case);
        let of = |rule| found.iter().find(|found| found.rule == rule).unwrap();
        let evidence = of(Rule::TemporaryFiles).evidence.join(" ");
        assert!(evidence.contains("waited for these files for 2 s"), "{evidence}");
        assert_eq!(of(Rule::Checkpoints).seconds, 3.0, "{sync}");
    }
}

#[test]
fn planning_is_long_if_it_is_longer_than_executing_and_takes_a_millisecond() {
    let found = |calls: u64, seconds: [f64; 3], wal: u64| {
        let mut statements = view::sample::statements();
        statements.rows.truncate(1);
        statements.current.clear();
        let row = &mut statements.rows[0];
        row.activities.clear();
        row.split = Split::default();
        (row.calls, row.counters.wal.records) = (calls, wal);
        [row.planning.seconds, row.execution.seconds, row.seconds] = seconds;
        rules(&of_statements(10.0, &statements))
    };
    assert_eq!(found(10, [2.0, 1.99, 3.99], 0), [Rule::Planning]);
    assert_eq!(found(10, [2.0, 2.0, 4.0], 0), []);
    assert_eq!(found(10, [1.99, 1.0, 2.99], 0), []);
    assert_eq!(found(2000, [2.0, 1.0, 3.0], 0), [Rule::Planning]);
    assert_eq!(found(2001, [2.0, 1.0, 3.0], 0), []);
    // Parse analysis has no counter; nor has the commit of a statement that writes.
    assert_eq!(found(10, [0.1, 1.0, 3.0], 0), [Rule::Planning]);
    assert_eq!(found(10, [0.1, 1.0, 3.0], 1), []);
}

#[test]
fn the_time_of_parallel_workers_is_no_planning() {
    let found = |own: &str, workers: f64| {
        let mut statements = view::sample::statements();
        statements.rows.truncate(1);
        statements.current.clear();
        let row = &mut statements.rows[0];
        let activity = |phase: &str, seconds: f64| ActivityRow {
            phase: phase.into(),
            activity: "cpu".into(),
            class: segment::WaitClass::of_name("cpu"),
            count: 0,
            seconds,
        };
        row.activities = vec![activity(own, 2.1), activity("execute", workers)];
        row.split = Split::default();
        (row.calls, row.counters.wal.records) = (10, 0);
        [row.planning.seconds, row.execution.seconds, row.seconds] = [0.01, 2.0, 2.1 + workers];
        rules(&of_statements(10.0, &statements))
    };
    assert_eq!(found("simple query", 3.0), []);
    assert_eq!(found("execute", 3.0), []);
    assert_eq!(found("parse", 3.0), [Rule::Planning]);
}

#[test]
fn jit_is_a_problem_if_it_takes_a_third_of_the_time() {
    let found = |calls: u64, jit: f64, execution: f64| {
        let mut statements = view::sample::statements();
        statements.rows.truncate(1);
        statements.current.clear();
        let row = &mut statements.rows[0];
        row.calls = calls;
        (row.planning.seconds, row.execution.seconds, row.seconds) = (0.0, execution, execution);
        (row.counters.jit.generation_seconds, row.counters.jit.emission_seconds) =
            (jit / 2.0, jit / 2.0);
        of_statements(10.0, &statements)
    };
    let all = found(10, 1.5, 1.6);
    assert_eq!(rules(&all), [Rule::Jit]);
    let text = "JIT compilation takes 150 ms of the 160 ms of a call: \"";
    assert!(all[0].text.starts_with(text), "{}", all[0].text);
    assert!(all[0].advice.contains("ALTER SYSTEM SET jit = off"), "{}", all[0].advice);
    assert_eq!(found(10, 1.5, 4.6), []);
    assert_eq!(found(10, 0.99, 1.0), []);
    assert_eq!(found(751, 1.5, 1.6), []);
}

#[test]
fn a_statement_that_works_for_a_minute_without_an_end_is_named() {
    let of_sessions = |pids: &[i32], seconds: f64, activity: &str, text: &str| {
        let mut interval = interval(&[("execute::cpu", 1, 10.0)]);
        let row = |&pid: &i32| SessionRow { pid, slot: 3, generation: 4, ..session("active") };
        interval.sessions = pids.iter().map(row).collect();
        let mut statements = full_scan(0.0);
        let spent = ActivityRow {
            phase: "execute".into(),
            activity: activity.into(),
            class: segment::WaitClass::of_name(activity),
            count: 0,
            seconds,
        };
        let current = |&pid: &i32| CurrentRow {
            pid,
            slot: 3,
            generation: 4,
            queryid: Some(5),
            query: Some(text.into()),
            seconds,
            split: Split::from_activities(std::slice::from_ref(&spent)),
            activities: vec![spent.clone()],
        };
        statements.current = pids.iter().map(current).collect();
        diagnose(&Case { statements: Some(&statements), ..case(&interval) })
    };
    let found =
        |seconds: f64, activity: &str, text: &str| of_sessions(&[77], seconds, activity, text);
    let all = found(180.0, "cpu", "select count(*) from a, b");
    assert_eq!(
        all[0].text,
        "A statement has been running for 3 min: session 77 (application pgbench, user alice, database shop, \
         client 10.0.0.5), \"select count(*) from a, b\" (query ID 5)."
    );
    assert_eq!(all[0].evidence, ["So far, in percent of its time: cpu 100.0."]);
    assert!(all[0].advice.contains("SELECT pg_cancel_backend(77)"), "{}", all[0].advice);
    let two = of_sessions(&[77, 78], 180.0, "cpu", "select count(*) from a, b");
    let begin = "If they should not take so long, cancel them: SELECT pg_cancel_backend(77), pg_cancel_backend(78).";
    assert!(two[0].advice.starts_with(begin), "{}", two[0].advice);
    assert_eq!(found(59.9, "cpu", "select 1"), []);
    // A recording knows its session by the PID, which another one does not have.
    let interval = self::interval(&[("execute::cpu", 1, 10.0)]);
    let mut statements = full_scan(0.0);
    statements.current = vec![CurrentRow {
        pid: 77,
        query: Some("select count(*) from a, b".into()),
        seconds: 180.0,
        activities: vec![ActivityRow {
            phase: "execute".into(),
            activity: "cpu".into(),
            class: segment::WaitClass::Cpu,
            count: 0,
            seconds: 9.0,
        }],
        ..CurrentRow::default()
    }];
    let recorded = |pid: i32| {
        let sampled = [SessionRow { pid, slot: 0, generation: 0, ..session("active") }];
        let case = Case { statements: Some(&statements), sampled: &sampled, ..case(&interval) };
        diagnose(&case).iter().map(|found| found.text.clone()).collect::<String>()
    };
    assert!(recorded(77).contains("3 min: session 77 (application pgbench"));
    assert_eq!(recorded(78), "");
    for (activity, text) in [
        ("Client:ClientWrite", "select 1"),
        ("Lock:tuple", "update t set n = 1"),
        ("Timeout:PgSleep", "select pg_sleep(3600)"),
        ("cpu", "create index on t (n)"),
        ("cpu", "vacuum t"),
        ("cpu", "copy t to stdout"),
    ] {
        assert_eq!(found(180.0, activity, text), [], "{activity} {text}");
    }
}

pub(super) fn plan(
    statements: &StatementsTable,
    noted: [f64; 2],
    mean_seconds: f64,
    plan: &str,
) -> PlanRow {
    PlanRow {
        key: statements.rows[0].key,
        queryid: 1,
        planid: 1,
        noted: 2,
        mean_seconds,
        max_seconds: 1.0,
        rows_per_call: 1.0,
        cost: 1.0,
        first_noted: noted[0],
        last_noted: noted[1],
        plan: plan.into(),
        cut: false,
    }
}

#[test]
fn a_plan_is_worse_from_three_times_and_a_millisecond_on() {
    let mut statements = full_scan(1.0);
    (statements.rows[0].counters.blocks.shared_hit, statements.time) = (0, 100.0);
    let found = |plans: &[PlanRow], statements: &StatementsTable| {
        let interval = interval(&[("execute::cpu", 100, 10.0)]);
        diagnose(&Case { statements: Some(statements), plans, ..case(&interval) })
    };
    let with = |before: f64, now: f64| {
        let old = plan(&statements, [1.0, 20.0], before, "Index Scan using i on t");
        let worse = plan(&statements, [0.5, 10.0], 9.0, "Seq Scan on t");
        [plan(&statements, [60.0, 90.0], now, "Seq Scan on t"), old, worse]
    };
    let all = found(&with(0.001, 0.003), &statements);
    assert_eq!(rules(&all), [Rule::PlanChange]);
    let text = "A statement's plan changed 40 s ago (Seq Scan on t instead of Index Scan using i on t); a call now takes 3 ms \
                instead of 1 ms: ";
    assert!(all[0].text.starts_with(text), "{}", all[0].text);
    assert_eq!(rules(&found(&with(0.000_25, 0.001_25), &statements)), [Rule::PlanChange]);
    assert_eq!(found(&with(0.001, 0.002_99), &statements), []);
    assert_eq!(found(&with(0.000_25, 0.001_24), &statements), []);
    assert_eq!(found(&with(0.001, 0.003)[..1], &statements), [], "no plan before");
    let mut another = with(0.001, 0.003);
    another[1].key.id += 1;
    another[2].key.id += 1;
    assert_eq!(found(&another, &statements), []);
    statements.rows[0].seconds = 0.99;
    assert_eq!(found(&with_key(&statements), &statements), []);
}

fn with_key(statements: &StatementsTable) -> [PlanRow; 2] {
    [
        plan(statements, [60.0, 90.0], 0.003, "Seq Scan on t"),
        plan(statements, [1.0, 2.0], 0.001, "Index Scan"),
    ]
}

#[test]
fn forced_checkpoints_come_too_often_if_two_began_in_the_interval() {
    /// Length of the interval.
    const SPAN: f64 = 100.0;

    let mut interval = interval(&[("commit::wait::IO:WALSync", 9, 0.25)]);
    (interval.interval_seconds, interval.instrumented_seconds) = (SPAN, SPAN);
    let end = interval.time;
    let of = |apart, handled: f64| Checkpoint {
        ended: Some(end),
        buffers: 1234,
        seconds: 9.0,
        longest_sync_seconds: apart / 100.0,
        longest_sync_file: Some("base/5/2619".into()),
        before: Some(ClientActivity::from_totals(10.0, 1000, 1.0)),
        during: Some(ClientActivity::from_totals(10.0, 500, handled)),
        ..checkpoint("wal", apart)
    };
    let mut statements = full_scan(0.0);
    // Half of the WAL is full-page images.
    (statements.rows[0].counters.wal.bytes, statements.rows[0].counters.wal.fpi) =
        (1 << 30, 1 << 16);
    let found = |checkpoints: &[Checkpoint]| {
        diagnose(&Case { checkpoints, statements: Some(&statements), ..case(&interval) })
    };
    assert_eq!(found(&[of(60.0, 1.0)]), []);
    assert_eq!(found(&[Checkpoint { interval_seconds: None, ..of(10.0, 1.0) }]), []);
    // The one before began 0.1 s too early.
    let at = |ended| [Checkpoint { ended: Some(ended), ..of(30.0, 1.0) }];
    assert_eq!(found(&at(end - SPAN + 38.9)), []);
    assert_eq!(rules(&found(&at(end - SPAN + 39.1))), [Rule::Checkpoints]);
    let all = found(&[of(59.0, 0.6), of(1.0, 0.6)]);
    assert_eq!(
        printed(&all[0]),
        [
            "Checkpoints come every 30 s, because the WAL reaches max_wal_size in that time; all of the WAL is written by \
             \"UPDATE accounts SET balance = balance + $1 WHERE id = $2\" (query ID -4539648212360761856).",
            "Commands take 1.20 times as long during these checkpoints as before them.",
            "Longest sync: 590 ms, base/5/2619.",
            "The last one wrote 1,234 buffers in 9 s.",
        ]
    );
    let advice = &all[0].advice;
    assert!(
        advice.starts_with(
            "Raise max_wal_size: ALTER SYSTEM SET max_wal_size = '6GB'; SELECT pg_reload_conf()"
        ),
        "{advice}"
    );
    // The larger of what commands took longer and the share of full-page images in the waits for the WAL: a half.
    assert_eq!(found(&[of(10.0, 1.5)])[0].seconds, 1.0);
    assert_eq!(found(&[of(10.0, 0.1)])[0].seconds, 0.125);
    let slower = found(&[of(59.0, 0.59)]);
    assert!(!slower[0].evidence[0].contains("times as long"), "{:?}", slower[0].evidence);

    // With the same times: by checkpoint_timeout, and by a statement that asks for them.
    let because = |reason: &str| Checkpoint { reason: reason.into(), ..of(30.0, 1.0) };
    let of_time = found(&[because("time")]);
    assert_eq!(
        of_time[0].text,
        "Checkpoints come every 30 s, because checkpoint_timeout is set that low."
    );
    assert!(of_time[0].advice.starts_with("ALTER SYSTEM SET checkpoint_timeout = '5min'; "));
    assert_eq!(found(&[because("request")]), [], "a base backup");
    let mut asked = statements.clone();
    asked.rows[0].query = Some("/* cron */ checkpoint".into());
    let of_request = [because("request")];
    let case = Case { checkpoints: &of_request, statements: Some(&asked), ..case(&interval) };
    let asked = diagnose(&case).into_iter().find(|found| found.rule == Rule::Checkpoints).unwrap();
    let who = ") (user alice, database shop).";
    assert!(asked.text.starts_with(
        "Checkpoints come every 30 s, requested by \"/* cron */ checkpoint\" (query ID "
    ));
    assert!(asked.text.ends_with(who), "{}", asked.text);
}

#[test]
fn processors_are_full_when_more_is_wanted_than_there_are() {
    let found = |queue: f64, cpu: f64| {
        let mut interval = interval(&[("execute::cpu", 1000, 60.0)]);
        interval.kernel = segment::kernel::KernelView {
            available: true,
            run_queue_seconds: queue,
            cpu_account_seconds: cpu,
            ..Default::default()
        };
        limits(&case(&interval))
    };
    assert_eq!(found(18.0, 40.1), [Rule::Processors]);
    assert_eq!(found(18.0, 40.0), []);
    assert_eq!(found(17.9, 40.1), []);
}

#[test]
fn time_is_unexplained_from_more_than_a_hundredth_on() {
    let interval = |share: f64| {
        let mut interval = interval(&[("execute::cpu", 1000, 5.0)]);
        interval.kernel.samples = 1;
        interval.kernel.unexplained_share = share;
        interval.kernel.unexplained_seconds = 5.0 * share;
        interval
    };
    let found = |share: f64| rules(&diagnose(&case(&interval(share))));
    assert_eq!(found(0.01), []);
    assert_eq!(found(0.0101), [Rule::Unexplained]);

    // A process that a signal has stopped explains as much as it would have worked.
    let mut interval = interval(0.2);
    let stopped = |busy_seconds| vec![SessionRow { pid: 7, busy_seconds, ..session("active") }];
    let vacuum = view::vacuum::Vacuum {
        conditions: vec![view::vacuum::Condition {
            kind: view::vacuum::ConditionKind::Stopped,
            name: "joe shop [local] SELECT".into(),
            database: None,
            state: String::new(),
            count: 7,
            bytes: 0,
            seconds: None,
        }],
        ..Default::default()
    };
    for (busy, expected) in [(0.96, false), (0.5, true)] {
        interval.sessions = stopped(busy);
        let found = diagnose(&Case { vacuum: Some(&vacuum), ..case(&interval) });
        assert_eq!(rules(&found).contains(&Rule::Unexplained), expected, "{busy}");
    }
}

/// A client that sends statements one by one: (within a transaction, seconds that it takes), transactions, and calls of one
/// statement.
fn small(between: u64, waited: f64, ended: u64, calls: u64) -> Vec<Diagnosis> {
    let of = |phase: &str, count, seconds| SessionAccount {
        phase: phase.into(),
        activity: "Client:ClientRead".into(),
        count,
        seconds,
        idle: true,
    };
    let mut interval = interval(&[("execute::cpu", 100, 1.0)]);
    let quiet = SessionRow { pid: 9, ..session("idle") };
    interval.sessions = vec![
        SessionRow {
            pid: 7,
            busy_seconds: 2.0,
            accounts: vec![of("idle in transaction", between, waited), of("idle", ended, 1.0)],
            ..session("active")
        },
        quiet,
        // More commands, but five in a transaction.
        SessionRow {
            pid: 8,
            busy_seconds: 2.0,
            accounts: vec![of("idle in transaction", 500, 2.5), of("idle", 100, 1.0)],
            ..session("active")
        },
    ];
    interval.client_waits = ClientWaits::of_sessions(&interval.sessions);
    let mut statements = full_scan(0.1);
    statements.rows[0].calls = calls;
    diagnose(&Case { statements: Some(&statements), ..case(&interval) })
}

#[test]
fn small_statements_are_many_from_a_hundred_and_fifty_a_transaction_on() {
    let found = small(100, 2.0, 2, 40);
    let begin = "Session 7 (application pgbench, user alice, database shop, client 10.0.0.5) sends small statements one by one, most often \"";
    let end =
        ": 100 commands of 20 ms in 2 transactions; 50.0 % of the time, the server waits for its next command.";
    let [only] = found.as_slice() else { panic!("{found:?}") };
    assert!(only.text.starts_with(begin) && only.text.ends_with(end), "{}", only.text);
    assert_eq!(rules(&small(100, 2.0, 0, 40)), [Rule::ManySmallStatements]);
    assert_eq!(small(99, 2.0, 1, 90), []);
    assert_eq!(small(149, 2.0, 3, 90), []);
    assert_eq!(small(100, 1.99, 2, 40), []);
    assert_eq!(small(100, 2.0, 2, 39), []);
}

#[test]
fn where_sessions_are_not_known_the_ledger_tells_of_small_statements() {
    let found = |between: u64, waited: f64, calls: [u64; 2]| {
        let interval = interval(&[
            ("idle in transaction::wait::Client:ClientRead", between, waited),
            ("idle::wait::Client:ClientRead", 2, 5.0),
            ("execute::cpu", 100, 2.0),
        ]);
        let mut statements = view::sample::statements();
        statements.rows.truncate(2);
        statements.rows[1].activities.clear();
        for (row, calls) in statements.rows.iter_mut().zip(calls) {
            (row.calls, row.seconds) = (calls, 0.0);
            (row.planning.seconds, row.counters.temp_bytes) = (0.0, 0);
        }
        rules(&diagnose(&Case { statements: Some(&statements), ..case(&interval) }))
    };
    assert_eq!(found(100, 2.0, [80, 20]), [Rule::ManySmallStatements]);
    assert_eq!(found(100, 2.0, [20, 80]), [Rule::ManySmallStatements]);
    assert_eq!(found(99, 2.0, [80, 20]), []);
    assert_eq!(found(100, 2.0, [79, 21]), []);
}

#[test]
fn vacuum_is_late_after_ten_minutes_and_five_times_its_threshold() {
    let of = |ago, dead_rows| of_vacuum(Table { dead_rows, ..table(ago) }, &[]).len();
    assert_eq!([of(Some(600.0), 40_000), of(Some(601.0), 40_000)], [0, 1]);
    assert_eq!([of(None, 24_999), of(None, 25_000)], [0, 1]);
    let off = Table { autovacuum_off: true, ..table(Some(1.0)) };
    assert!(of_vacuum(off, &[])[0].starts_with("Autovacuum is off, and there are 40,000 dead rows"));
    let held = |seconds, transactions| {
        let holder = Holder {
            name: "slot s".into(),
            state: String::new(),
            transactions,
            seconds: Some(seconds),
            database: None,
        };
        of_vacuum(table(Some(30.0)), &[holder]).len()
    };
    assert_eq!([held(29.9, 1), held(30.0, 1), held(30.0, 0)], [0, 1, 0]);
}

#[test]
fn a_case_has_the_checkpoint_of_its_interval() {
    let mut reading = view::sample::reading();
    let count = |reading: &view::Reading| Case::from_reading(reading).checkpoints.len();
    let mut at = |interval: f64, ago: f64| {
        reading.interval.interval_seconds = interval;
        let last = reading.io.as_mut().unwrap().checkpoint.as_mut().unwrap();
        last.ended = Some(reading.interval.time - ago);
        count(&reading)
    };
    assert_eq!([at(1.0, 1.0), at(1.0, 1.1), at(90.0, 90.0), at(90.0, 91.0)], [1, 0, 1, 0]);
}

#[test]
fn the_statement_that_takes_a_fifth_of_a_wait_is_named() {
    let found = |seconds: f64| {
        let interval = interval(&[("execute::wait::IO:DataFileRead", 20_000, 5.0)]);
        let mut statements = view::sample::statements();
        statements.rows.truncate(2);
        statements.rows.iter_mut().for_each(|row| {
            (row.seconds, row.counters.temp_bytes, row.planning.seconds) = (0.0, 0, 0.0)
        });
        statements.rows[1].activities[1].seconds = seconds;
        let case = Case { statements: Some(&statements), ..case(&interval) };
        crate::diagnose(&case).limits[0].text.clone()
    };
    let named =
        ", 20.0 % of it in \"SELECT region, count(*) FROM orders GROUP BY region\" (query ID 4242).";
    assert!(found(1.0).ends_with(named), "{}", found(1.0));
    assert!(!found(0.99).contains("statement"), "{}", found(0.99));
}

#[test]
fn what_stands_weighs_a_tenth_of_a_session_and_what_is_possible_half() {
    let vacuum = dead_rows();
    let order = |seconds: f64, load: f64| {
        let statements = full_scan(seconds);
        let interval = interval(&[("execute::cpu", 9, load)]);
        let case = Case { statements: Some(&statements), vacuum: Some(&vacuum), ..case(&interval) };
        rules(&diagnose(&case))
    };
    assert_eq!(order(1.9, 2.0), [Rule::Vacuum, Rule::MissingIndex]);
    assert_eq!(order(2.1, 3.0), [Rule::MissingIndex, Rule::Vacuum]);
}

#[test]
fn an_answer_indents_consequences_and_separates_diagnoses() {
    let mut reading = view::sample::reading();
    reading.interval =
        interval(&[("commit::wait::IO:WALSync", 100, 5.0), ("execute::cpu", 9, 5.0)]);
    reading.interval.commits.sync.seconds = 5.0;
    reading.interval.commits.sync.mean_seconds = Some(0.05);
    let io = reading.io.as_mut().unwrap();
    let ended = Some(reading.interval.time);
    io.checkpoint = Some(Checkpoint { ended, ..checkpoint("wal", 5.0) });
    reading.statements = None;
    let lines = Diagnoses::examine(&reading).lines(1000);
    let begins: Vec<_> = lines
        .iter()
        .map(|line| (line.strong, line.text.chars().take(26).collect::<String>()))
        .collect();
    let at = |n: usize| (begins[n].0, begins[n].1.as_str());
    assert_eq!(at(0), (true, "1. Checkpoints come every "));
    assert_eq!(at(1), (false, "   What to do: Raise max_w"));
    let second = begins.iter().position(|begin| begin.1.starts_with("   2. ")).unwrap();
    assert_eq!(at(second - 1), (false, ""));
    assert_eq!(at(second), (true, "   2. As a consequence: Co"));
    assert_eq!(at(second + 1), (false, "      What to do: Put pg_w"));
    assert_eq!(at(second + 2), (false, "      5 s of the sessions'"));
    assert_eq!(begins.last().unwrap().1, "      Commits spent 5 s in");
    reading.uncovered_processes = Some(1);
    assert!(Diagnoses::examine(&reading)
        .uncovered()
        .unwrap()
        .starts_with("1 process of the server is not"));
    reading.uncovered_processes = Some(0);
    assert_eq!(Diagnoses::examine(&reading).uncovered(), None);
}
