// SPDX-License-Identifier: PostgreSQL
//! Who or what caused it: sessions, processes, standbys and settings by name.

use segment::interval::{Pauses, SessionAccount, SessionRow};
use segment::{ClientWaits, Sampling, WaitClass};
use view::deadlocks::{Deadlock, DeadlockSession};
use view::statements::SessionCalls;
use view::vacuum::{Condition, ConditionKind};

use super::rules::{case, full_scan, interval, rules};
use super::*;

fn condition(kind: ConditionKind, name: &str, state: &str, count: i64, bytes: i64) -> Condition {
    let (name, state) = (name.to_owned(), state.to_owned());
    Condition { kind, name, database: None, state, count, bytes, seconds: None }
}

fn conditions(all: &[Condition]) -> Vacuum {
    Vacuum { conditions: all.to_vec(), ..Vacuum::default() }
}

#[test]
fn a_slot_whose_wal_was_removed_is_a_problem_of_its_own() {
    let slot = |name, state, bytes| condition(ConditionKind::Slot, name, state, 0, bytes);
    let vacuum = conditions(&[
        slot("a", "physical, lost", 0),
        slot("b", "logical, lost", 1 << 40),
        slot("c", "physical, inactive", 1 << 30),
    ]);
    let interval = interval(&[]);
    let found = diagnose(&Case { vacuum: Some(&vacuum), ..case(&interval) });
    let texts: Vec<&str> = found.iter().map(|found| found.text.as_str()).collect();
    let lost = "The server has removed WAL that replication slot a (physical, lost) needs: its consumer cannot continue.";
    assert_eq!(texts, [lost, "Replication slot c (physical, inactive) retains 1 GB of WAL."]);
    assert_eq!(found[0].evidence, ["The same: slot b (logical, lost)."]);
    let drops = ["a", "b"].map(|name| format!("SELECT pg_drop_replication_slot('{name}')"));
    assert_eq!(found[0].advice.commands(), drops);
}

#[test]
fn an_archiver_is_a_problem_if_it_fails_again_and_again_or_cannot_keep_up() {
    let archiver = |state: &str, bytes| {
        let seconds = Some(120.0);
        let row = condition(ConditionKind::Archiver, "000000010000000000000002", state, 5, bytes);
        Condition { seconds, ..row }
    };
    let disk = condition(ConditionKind::Disk, "WAL", "", 6 << 30, 100 << 30);
    let interval = interval(&[]);
    let of = |state: &str, bytes| {
        let vacuum = conditions(&[archiver(state, bytes), disk.clone()]);
        diagnose(&Case { vacuum: Some(&vacuum), ..case(&interval) })
    };
    assert_eq!(of("archives", 4 << 20), []);
    // Its next attempt may succeed.
    assert_eq!(of("failed: 000000010000000000000003", 16 << 20), []);
    let failing = of("fails: 000000010000000000000003", 48 << 20);
    let texts: Vec<&str> = failing.iter().map(|found| found.text.as_str()).collect();
    assert_eq!(
        texts,
        ["The archiver fails on WAL file 000000010000000000000003 and keeps retrying."]
    );
    assert_eq!(
        failing[0].evidence,
        [
            "48 MB of WAL are waiting; the server keeps them until they are archived.",
            "It archived 000000010000000000000002 last, 2 min ago."
        ]
    );
    let slow = of("archives", 5 << 30);
    assert_eq!(slow[0].text, "The archiver is falling behind: 5 GB of WAL are waiting.");
    assert_eq!((slow[0].rule, slow[0].kind), (Rule::Archiver, Kind::Problem));
    // It repeats nothing, although its last attempt failed. Without an attempt, what waits is not known.
    let idle = of("not configured", 48 << 20);
    assert!(idle[0].text.ends_with(": the server archives nothing and keeps all WAL."));
    assert_eq!(idle[0].evidence[0], failing[0].evidence[0]);
    assert_eq!(of("not configured", 0)[0].evidence, failing[0].evidence[1..]);
}

#[test]
fn wraparound_has_a_time_if_transactions_are_known() {
    let oldest = condition(ConditionKind::Age, "", "", 2_000_000_000, 1);
    let vacuum = conditions(&[Condition { database: Some("shop".into()), ..oldest }]);
    let mut interval = interval(&[]);
    interval.commits.count = 0;
    let evidence = |interval: &Interval| {
        diagnose(&Case { vacuum: Some(&vacuum), ..case(interval) })[0].evidence[0].clone()
    };
    assert_eq!(evidence(&interval), "144 million are left.");
    interval.commits.count = (interval.instrumented_seconds * 1_000.0) as u64;
    let left =
        "144 million are left, enough for 40.1 h at the present 1k transactions/s that write.";
    assert_eq!(evidence(&interval), left);
}

#[test]
fn what_keeps_transaction_ids_from_being_frozen_comes_first() {
    let of_database = |name: &str, holders: &[(&str, i64)]| {
        let oldest = condition(ConditionKind::Age, "", "", 700_000_000, 1);
        let holder = |(name, transactions): &(&str, i64)| Holder {
            name: (*name).into(),
            state: "inactive".into(),
            transactions: *transactions,
            seconds: None,
            database: None,
        };
        let vacuum = Vacuum {
            holders: holders.iter().map(holder).collect(),
            ..conditions(&[Condition { database: Some(name.into()), ..oldest }])
        };
        let interval = interval(&[]);
        diagnose(&Case { vacuum: Some(&vacuum), ..case(&interval) }).remove(0).advice
    };
    let slot = of_database("shop", &[("replication slot old", 350_000_000)]);
    let begin = "Replication slot old keeps rows from being frozen. If nobody needs the slot: SELECT pg_drop_replication_slot('old'). \
                 Then in database shop: VACUUM FREEZE.";
    assert_eq!(slot, begin);
    let other = of_database("shop", &[("replication slot old", 349_999_999)]);
    assert!(other.starts_with("In database shop: VACUUM FREEZE. Find out"), "{other}");
    // No session may connect to it.
    let template = of_database("template0", &[]);
    assert_eq!(template.commands()[0], "ALTER DATABASE template0 ALLOW_CONNECTIONS true");
}

fn session(pid: i32) -> SessionRow {
    let all = view::sample::interval().sessions.into_iter();
    SessionRow { pid, ..all.into_iter().find(|row| row.kind == "client backend").unwrap() }
}

#[test]
fn a_deadlock_has_two_sessions_and_two_statements() {
    let interval = interval(&[("execute::cpu", 9, 1.0)]);
    let deadlock = |ago: f64, statements: [i64; 2]| {
        let of = |pid: i32, id: i64| DeadlockSession {
            pid,
            name: format!("session {pid} (app, joe@shop)"),
            queryid: Some(id),
        };
        let [one, other] = statements;
        Deadlock { time: Some(interval.time - ago), cancelled: of(7, one), other: of(8, other) }
    };
    let mut statements = full_scan(0.1);
    statements.rows[0].queryid = Some(11);
    let texts = |known: &[Deadlock], counted: i64| {
        let mut counts = condition(ConditionKind::Deadlocks, "", "", counted, 0);
        counts.database = Some("shop".into());
        let vacuum = conditions(if counted > 0 { std::slice::from_ref(&counts) } else { &[] });
        let case = Case {
            known_deadlocks: known,
            statements: Some(&statements),
            vacuum: Some(&vacuum),
            ..case(&interval)
        };
        let found = diagnose(&case);
        assert!(found.iter().all(|found| found.rule == Rule::Deadlocks), "{found:?}");
        found.into_iter().map(|found| (found.text, found.evidence.join(" "))).collect::<Vec<_>>()
    };
    assert!(texts(&[deadlock(11.0, [11, 22])], 0).is_empty(), "before the interval");
    let one = texts(&[deadlock(5.0, [11, 22])], 0).remove(0);
    let begin = "A deadlock occurred in database shop: session 7 (app, joe@shop) in \"";
    assert!(one.0.starts_with(begin), "{}", one.0);
    assert!(
        one.0.ends_with("\" (query ID 11), and session 8 (app, joe@shop) in statement 22."),
        "{}",
        one.0
    );
    assert!(one.1.contains("the server cancelled session 7."), "{}", one.1);
    // Whoever was cancelled; the pair that met most often; the server has counted more than events are left.
    let several = [deadlock(5.0, [22, 11]), deadlock(4.0, [3, 4]), deadlock(3.0, [11, 22])];
    let several = texts(&several, 12).remove(0);
    assert!(
        several
            .0
            .starts_with("12 deadlocks occurred in database shop: the last one between session 7 "),
        "{}",
        several.0
    );
    assert!(several.1.contains("2 of the 3 whose statements are known"), "{}", several.1);
    // The same statement in both sessions is named once.
    let same = texts(&[deadlock(5.0, [11, 11])], 0).remove(0).0;
    let begin = "A deadlock occurred in database shop: session 7 (app, joe@shop) and session 8 (app, joe@shop), both executing \"";
    assert!(same.starts_with(begin) && same.ends_with("\" (query ID 11)."), "{same}");
}

/// The statements of sessions that wait for each other's locks.
fn waiting(rows: &[(&str, &str, u64, f64)]) -> view::statements::StatementsTable {
    let mut statements = view::sample::statements();
    let row = statements.rows[0].clone();
    statements.rows = (1..)
        .zip(rows)
        .map(|(id, (user, text, ended, seconds))| {
            let mut row = row.clone();
            (row.queryid, row.key.id) = (Some(id), id as u64);
            (row.user, row.database, row.query) =
                ((*user).into(), "shop".into(), Some((*text).into()));
            let mut wait = row.activities[0].clone();
            (wait.activity, wait.class) = ("Lock:transactionid".into(), segment::WaitClass::Lock);
            (wait.count, wait.seconds) = (*ended, *seconds);
            row.activities = vec![wait];
            row
        })
        .collect();
    statements
}

/// A deadlock makes its sessions wait for deadlock_timeout.
#[test]
fn waits_for_locks_are_a_consequence_of_the_deadlocks_that_explain_them() {
    let of = |pid: i32| DeadlockSession {
        pid,
        name: format!("session {pid} (app, joe@shop)"),
        queryid: Some(1),
    };
    let found = |deadlocks: usize| {
        let interval = interval(&[("execute::wait::Lock:transactionid", 30, 20.0)]);
        let time = Some(interval.time - 1.0);
        let known = vec![Deadlock { time, cancelled: of(7), other: of(8) }; deadlocks];
        let statements = waiting(&[("joe", "update t set n = n + 1 where id = $1", 30, 20.0)]);
        let case =
            Case { known_deadlocks: &known, statements: Some(&statements), ..case(&interval) };
        let found = diagnose(&case);
        found.iter().map(|found| (found.rule, found.consequence_of)).collect::<Vec<_>>()
    };
    assert_eq!(found(9), [(Rule::Deadlocks, None), (Rule::Locks, Some(Rule::Deadlocks))]);
    // Others wait for long, and one deadlock is not why.
    assert_eq!(found(1), [(Rule::Locks, None), (Rule::Deadlocks, None)]);
}

/// Who reads no further than the first sentence knows whom it is about.
#[test]
fn the_first_sentence_names_the_statement_or_the_session() {
    let first = |account: &str, class, name: &str, sessions: Vec<SessionRow>| {
        let mut interval = interval(&[(account, 300, 20.0)]);
        interval.sessions = sessions;
        let mut statements = waiting(&[
            ("joe", "update t set n = n + 1 where id = $1", 270, 18.0),
            ("joe", "select 1", 30, 2.0),
        ]);
        for row in &mut statements.rows {
            (row.activities[0].activity, row.activities[0].class) = (name.into(), class);
        }
        let found = diagnose(&Case { statements: Some(&statements), ..case(&interval) });
        let found = found.into_iter().next().unwrap();
        let again = found
            .evidence
            .iter()
            .any(|text| text.contains("of it is in ") && text.contains("(query ID 1)"));
        assert!(!(again && found.text.contains("(query ID 1)")), "named twice: {found:?}");
        found.text
    };
    let statement = ", 90.0 % of it in \"update t set n = n + 1 where id = $1\" (query ID 1).";
    for (account, class, begin) in [
        (
            "simple query::wait::Lock:transactionid",
            WaitClass::Lock,
            "Sessions spend 100.0 % of their time waiting for row locks of other sessions",
        ),
        (
            "simple query::wait::LWLock:ProcArray",
            WaitClass::Lwlock,
            "Sessions queue for the lightweight lock ProcArray 100.0 % of their time",
        ),
        (
            "execute::wait::Client:ClientWrite",
            WaitClass::Client,
            "Clients read their results too slowly: sessions spend 100.0 % of their time waiting to send them",
        ),
    ] {
        let name = account.split("::").last().unwrap();
        assert_eq!(first(account, class, name, Vec::new()), format!("{begin}{statement}"));
    }
    let slow = |seconds: f64| {
        let account = SessionAccount {
            phase: "execute".into(),
            activity: "Client:ClientWrite".into(),
            count: 9,
            seconds,
            idle: false,
        };
        let sessions = vec![SessionRow { accounts: vec![account], ..session(7) }];
        first(
            "execute::wait::Client:ClientWrite",
            WaitClass::Client,
            "Client:ClientWrite",
            sessions,
        )
    };
    assert!(
        slow(4.0).contains(" waiting to send them, 20.0 % of it by session 7 ("),
        "{}",
        slow(4.0)
    );
    assert!(slow(3.0).ends_with(statement), "{}", slow(3.0));
}

/// Ten samples a second.
fn sampling() -> Sampling {
    Sampling {
        samples: 100,
        sampled_seconds: 10.0,
        per_second: 10.0,
        longest_gap_seconds: None,
        late_seconds: 0.0,
        untold_seconds: 0.0,
        cpu_told_apart: true,
        doubt_seconds: 0.0,
        read_seconds: 0.0,
        cost_share: 0.0,
    }
}

#[test]
fn commits_of_aurora_that_wait_for_its_storage_are_a_limit() {
    let of = |storage: f64| {
        let interval =
            interval(&[("active::wait::IO:XactSync", 0, storage), ("active::cpu", 0, 10.0)]);
        Diagnoses::from_case(&case(&interval))
    };
    let found = of(30.0);
    assert_eq!(found.diagnoses, []);
    let [limit, ..] = &found.limits[..] else { panic!("{found:?}") };
    assert_eq!(limit.rule, Rule::Commits);
    assert!(limit.text.contains("Aurora's storage (IO:XactSync) 75.0 %"), "{}", limit.text);
    assert!(of(1.0).limits.iter().all(|limit| limit.rule != Rule::Commits));
}

/// Sessions that hold a row for 20 ms while they think, beside a load whose many waits are short.
#[test]
fn a_row_that_is_held_for_long_is_found_beside_a_load_that_passes_rows_on() {
    let interval = interval(&[
        ("simple query::wait::Lock:transactionid", 11_000, 44.0),
        ("simple query::cpu", 90_000, 10.0),
    ]);
    let found = |each: f64| {
        let held = ("worker", "update ticket set n = n + 1", 1000, 1000.0 * each);
        let passed = ("app", "update branches set n = n + 1", 10_000, 24.0);
        let statements = waiting(&[passed, held]);
        diagnose(&Case { statements: Some(&statements), ..case(&interval) })
    };
    let all = found(0.020);
    assert_eq!(rules(&all), [Rule::Locks]);
    assert!(
        all[0]
            .text
            .starts_with("Sessions of user worker in database shop wait for each other's locks, "),
        "{}",
        all[0].text
    );
    assert_eq!(all[0].seconds, 20.0);
    let evidence = all[0].evidence.join(" ");
    assert!(
        evidence.contains("\"update ticket set n = n + 1\" (query ID ")
            && evidence.contains("): 1,000 waits ended, 20 ms each."),
        "{evidence}"
    );
    assert_eq!(found(0.009), [], "passed on as soon as the work is done");
    // Samples do not tell how many waits ended: 0 is not "none has ended".
    let sampled = Interval { sampling: Some(sampling()), ..interval };
    let statements = waiting(&[("worker", "update ticket set n = n + 1", 0, 20.0)]);
    let all = diagnose(&Case { statements: Some(&statements), ..case(&sampled) });
    assert_eq!(all, [], "nothing is known of how long the row is held");
    let said = Diagnoses::from_case(&case(&sampled)).no_problem();
    assert!(said.starts_with("The samples show no problem."), "{said}");
}

fn waits_for(pid: i32, seconds: f64) -> view::blocking::Party {
    let wait = view::blocking::Wait { seconds, lock_type: "transactionid", ..Default::default() };
    view::blocking::Party { pid, wait: Some(wait), ..Default::default() }
}

/// Who is named is the one that others wait for longest, not the one for which most wait for a moment.
#[test]
fn a_session_that_one_waits_for_long_comes_before_a_load_that_waits_for_short() {
    let interval = interval(&[("execute::wait::Lock:transactionid", 900, 30.0)]);
    let root = |pid: i32, blocks: Vec<view::blocking::Party>| view::blocking::Party {
        waiters: blocks.len(),
        activity: Some("IPC:SyncRep".into()),
        pid,
        blocks,
        ..Default::default()
    };
    let mut forest = view::sample::blocking();
    forest.roots = vec![
        root(1, (2..6).map(|pid| waits_for(pid, 0.004)).collect()),
        root(7, vec![waits_for(8, 12.0)]),
    ];
    let case = Case { blocking: Some(&forest), ..case(&interval) };
    let found = diagnose(&case);
    assert!(found[0].text.starts_with("1 session waits for session 7"), "{}", found[0].text);
    // It would wait for a standby, if commits did.
    assert_eq!(found[0].consequence_of, None);
}

#[test]
fn waits_for_a_session_whose_commit_waits_for_a_standby_are_a_consequence() {
    let interval = interval(&[
        ("commit::wait::IPC:SyncRep", 0, 10.0),
        ("execute::wait::Lock:transactionid", 0, 30.0),
    ]);
    let mut forest = view::sample::blocking();
    let mut found = |activity: &str| {
        forest.roots = vec![view::blocking::Party {
            waiters: 1,
            activity: Some(activity.into()),
            pid: 7,
            blocks: vec![waits_for(8, 12.0)],
            ..Default::default()
        }];
        let found = diagnose(&Case { blocking: Some(&forest), ..case(&interval) });
        found.iter().map(|found| (found.rule, found.consequence_of)).collect::<Vec<_>>()
    };
    assert_eq!(
        found("IPC:SyncRep"),
        [(Rule::Replication, None), (Rule::Locks, Some(Rule::Replication))]
    );
    assert_eq!(found("Client:ClientRead"), [(Rule::Locks, None), (Rule::Replication, None)]);
}

/// Bursts of one session, with 1,000 commands.
fn bursts(pauses: Pauses, calls: u64) -> Vec<Diagnosis> {
    let mut interval = interval(&[("execute::cpu", 1000, 0.5)]);
    interval.sessions = vec![SessionRow {
        commands: 1000,
        busy_seconds: 0.5,
        slot: 3,
        pauses: Some(pauses),
        ..session(7)
    }];
    interval.client_waits = ClientWaits::of_sessions(&interval.sessions);
    let mut statements = full_scan(0.1);
    statements.rows[0].query = Some("SELECT name FROM item WHERE id = $1".into());
    statements.of_sessions = vec![
        SessionCalls { slot: 4, key: statements.rows[0].key, calls: 5000 },
        SessionCalls { slot: 3, key: statements.rows[0].key, calls },
    ];
    diagnose(&Case { statements: Some(&statements), ..case(&interval) })
}

#[test]
fn a_statement_in_bursts_is_that_sessions_own() {
    let django = Pauses { short: 990, short_seconds: 0.5, long: 10, long_seconds: 2.0, middle: 3 };
    let found = bursts(django, 980);
    let text = "Session 7 (application pgbench, user alice, database shop, client 10.0.0.5) sends one statement again and again, 980 \
                times in 10 s, in bursts of 99 commands, each a transaction of its own: \"";
    assert_eq!(rules(&found), [Rule::ManySmallStatements]);
    assert!(found[0].text.starts_with(text), "{}", found[0].text);
    assert_eq!(found[0].seconds, 1.0);
    // Another session's calls are not its own, and many statements are no habit that one statement would end.
    assert_eq!(bursts(django, 1200), []);
    assert_eq!(bursts(django, 399), []);
    // Commands at random times, one command a request, a load without pauses, and two bursts in ten seconds.
    for healthy in [
        Pauses { middle: 743, ..django },
        Pauses { short: 299, ..django },
        Pauses { long: 0, long_seconds: 0.0, ..django },
        Pauses { long: 2, ..django },
        Pauses { short_seconds: 4.8, long_seconds: 0.5, ..django },
        // The server works for longer than the client takes: a load that a busy machine delays now and then.
        Pauses { short_seconds: 0.17, ..django },
        Pauses { short_seconds: 9.1, long_seconds: 1.0, ..django },
    ] {
        assert_eq!(bursts(healthy, 980), [], "{healthy:?}");
    }
    // A busy machine delays some of the commands, and makes the bursts last longer than the pauses.
    for delayed in [
        Pauses { middle: 742, ..django },
        Pauses { short_seconds: 7.0, long_seconds: 2.0, ..django },
        Pauses { short_seconds: 2.0, long_seconds: 0.9, ..django },
    ] {
        assert_eq!(rules(&bursts(delayed, 980)), [Rule::ManySmallStatements], "{delayed:?}");
    }
}

#[test]
fn a_stopped_process_is_named_once_and_where_it_is_the_cause() {
    let stopped = |name: &str, pid| condition(ConditionKind::Stopped, name, "", pid, 0);
    let mut quiet = interval(&[]);
    quiet.sessions = vec![SessionRow { activity: "cpu".into(), since_seconds: 9.0, ..session(7) }];
    let vacuum = conditions(&[stopped("joe shop [local] SELECT", 7), stopped("checkpointer ", 20)]);
    let found = diagnose(&Case { vacuum: Some(&vacuum), ..case(&quiet) });
    assert_eq!(
        found[0].text,
        "A process of the server is stopped (state T in ps): the checkpointer (process 20)."
    );
    assert!(found[0].advice.contains("kill -CONT 20."), "{}", found[0].advice);
    assert!(found[0].evidence.join(" ").contains("Process 7 (joe shop"), "{:?}", found[0]);
    let vacuum = conditions(&[stopped("joe shop [local] SELECT", 7)]);
    let found = diagnose(&Case { vacuum: Some(&vacuum), ..case(&quiet) });
    assert!(
        found[0].text.contains("the process of session 7 (application pgbench"),
        "{:?}",
        found[0]
    );
    assert!(found[0].evidence[0].ends_with("It has been in cpu for 9 s."), "{:?}", found[0]);
    // The session that others wait for.
    let forest = view::sample::blocking();
    let vacuum = conditions(&[stopped("joe shop [local] idle in transaction", 4304)]);
    let waits = interval(&[("execute::wait::Lock:tuple", 3, 6.0)]);
    let case_of = |vacuum| Case { vacuum: Some(vacuum), blocking: Some(&forest), ..case(&waits) };
    let found = diagnose(&case_of(&vacuum));
    assert_eq!(rules(&found), [Rule::Locks]);
    assert!(found[0].text.ends_with("whose process is stopped (state T in ps)."), "{:?}", found[0]);
    assert!(found[0].advice.contains("kill -CONT 4304."), "{:?}", found[0]);
    // The log collector.
    let vacuum = conditions(&[stopped("logger ", 30)]);
    let log = interval(&[("execute::wait::Call:log_pipe", 100, 8.0)]);
    let found = diagnose(&Case { vacuum: Some(&vacuum), ..case(&log) });
    assert_eq!(rules(&found), [Rule::LogPipe]);
    assert!(found[0].text.contains("the log collector (process 30) is stopped"), "{:?}", found[0]);
    assert!(found[0].advice.contains("kill -CONT 30."), "{:?}", found[0]);
}

#[test]
fn the_size_of_the_wal_is_raised_from_what_it_is() {
    const MB: i64 = 1 << 20;
    let mut statements = full_scan(0.1);
    let interval = interval(&[("execute::cpu", 9, 1.0)]);
    let checkpoints = [ended(&interval, checkpoint("wal", 5.0))];
    let mut advice = |megabytes: u64, setting: Option<(&str, i64)>| {
        statements.rows[0].counters.wal.bytes = megabytes << 20;
        let setting = setting.map(|(state, mb)| {
            condition(ConditionKind::Setting, "max_wal_size", state, 0, mb * MB)
        });
        let vacuum = conditions(setting.as_slice());
        let case = Case {
            statements: Some(&statements),
            checkpoints: &checkpoints,
            vacuum: Some(&vacuum),
            ..case(&interval)
        };
        diagnose(&case).into_iter().find(|found| found.rule == Rule::Checkpoints).unwrap().advice
    };
    // 10 MB/s for five minutes, 1.9 times.
    let set = "ALTER SYSTEM SET max_wal_size = '6GB'; SELECT pg_reload_conf()";
    assert!(advice(100, None).starts_with(&format!("Raise max_wal_size: {set}. At the")));
    assert!(advice(100, Some(("1GB", 1024)))
        .starts_with(&format!("Raise max_wal_size, which is 1GB now: {set}. At")));
    let raised = advice(100, Some(("8GB", 8192)));
    assert!(raised.starts_with("max_wal_size is 8GB now, enough for"), "{raised}");
    assert!(!raised.contains("ALTER SYSTEM"), "{raised}");
    // The rate is not known: 5 s of WAL fit.
    let set = "Raise max_wal_size, which is 64MB now: ALTER SYSTEM SET max_wal_size = '4GB'; SELECT pg_reload_conf().";
    assert!(advice(0, Some(("64MB", 64))).starts_with(set));
    assert!(advice(0, None).starts_with("Raise max_wal_size to 60 times its size."));
}

#[test]
fn of_several_standbys_the_one_that_is_not_connected_is_named() {
    let mut waits = interval(&[("commit::wait::IPC:SyncRep", 0, 8.0)]);
    waits.sessions =
        vec![SessionRow { activity: "IPC:SyncRep".into(), since_seconds: 90.0, ..session(7) }];
    let found = |setting: &str| {
        let standby =
            |name: &str, state, pid| condition(ConditionKind::Standby, name, state, pid, 0);
        let vacuum = conditions(&[
            standby(setting, "setting", 0),
            standby("A", "sync, streaming", 40),
            standby("c", "potential, streaming", 41),
        ]);
        diagnose(&Case { vacuum: Some(&vacuum), ..case(&waits) }).remove(0)
    };
    let lacks = found("FIRST 3 (a, b, c)");
    let text = "Commits have been stuck for 90 s: all that wait for a standby wait for standby b, which is not connected \
                (synchronous_standby_names = 'FIRST 3 (a, b, c)')";
    assert!(lacks.text.starts_with(text), "{}", lacks.text);
    let release = "ALTER SYSTEM SET synchronous_standby_names = 'FIRST 2 (\"A\", c)'; SELECT pg_reload_conf()";
    assert!(lacks.advice.contains(release), "{}", lacks.advice);
    let slow = found("FIRST 2 (a, b, c)");
    assert!(slow.text.contains(" wait for standby A (walsender 40)"), "{}", slow.text);
    assert!(slow.advice.contains("synchronous_standby_names = ''"), "{}", slow.advice);
    // Samples do not tell how many commits have completed.
    waits.sampling = Some(sampling());
    let seen = diagnose(&case(&waits)).remove(0);
    assert!(seen.text.starts_with("Commits wait for synchronous standbys: "), "{}", seen.text);
}

#[test]
fn a_table_that_throttles_its_own_vacuum_is_told_apart() {
    let advice = |state: &str| {
        let worker = Condition {
            database: Some("shop".into()),
            seconds: Some(700.0),
            ..condition(ConditionKind::Throttled, "orders", state, 50, 40_000)
        };
        let vacuum = Vacuum { conditions: vec![worker], ..dead_rows() };
        let interval = interval(&[]);
        let found = diagnose(&Case { vacuum: Some(&vacuum), ..case(&interval) });
        found.into_iter().find(|found| found.rule == Rule::VacuumThrottled).unwrap().advice
    };
    let server = "autovacuum_vacuum_cost_delay = 2ms, autovacuum_vacuum_cost_limit = 200";
    assert!(advice(server).starts_with("Speed it up: ALTER SYSTEM SET"));
    let table =
        "autovacuum_vacuum_cost_delay = 100 of the table, autovacuum_vacuum_cost_limit = 200";
    let reset = "Its table has settings of its own: ALTER TABLE orders RESET (autovacuum_vacuum_cost_delay, ";
    assert!(advice(table).starts_with(reset), "{}", advice(table));
}

/// 64 clients change one row, or queue for it while they hold another; or eight rows, each held for long.
#[test]
fn a_hot_row_is_a_limit_however_many_wait_for_it() {
    let waits = |ended, seconds| interval(&[("execute::wait::Lock:transactionid", ended, seconds)]);
    let hot = waits(6000, 600.0);
    assert_eq!((rules(&diagnose(&case(&hot))), limits(&case(&hot))), (vec![], vec![Rule::Locks]));
    let held = waits(800, 80.0);
    let mut forest = view::sample::blocking();
    forest.roots = vec![view::blocking::Party { waiters: 1, ..Default::default() }; 8];
    let found = diagnose(&Case { blocking: Some(&forest), ..case(&held) });
    assert_eq!(rules(&found), [Rule::Locks]);
}

#[test]
fn the_sequence_whose_page_sessions_queue_for_is_named() {
    let found_in = |activity: &str, query: &str, owner: &str, count: i64| {
        let waits = interval(&[(&format!("execute::wait::{activity}"), 100, 6.0)]);
        let mut statements = view::sample::statements();
        statements.rows.truncate(1);
        let row = &mut statements.rows[0];
        (row.calls, row.query, row.database) = (1000, Some(query.into()), "shop".into());
        row.activities.truncate(1);
        (row.activities[0].activity, row.activities[0].seconds) = (activity.into(), 5.0);
        let mut sequence = condition(ConditionKind::Sequence, "order_id_seq", owner, count, 0);
        sequence.database = Some("shop".into());
        let vacuum = conditions(&[sequence]);
        let case = Case { statements: Some(&statements), vacuum: Some(&vacuum), ..case(&waits) };
        let all = diagnose(&case);
        all.into_iter().find(|found| found.rule == Rule::LightweightLocks).unwrap()
    };
    let found = |query: &str, owner: &str, count: i64| {
        found_in("LWLock:BufferContent", query, owner, count)
    };
    let latest = found_in("Buffer:BufferExclusive", "SELECT nextval($1)", "", 900);
    let named = found("SELECT nextval($1)", "", 900);
    assert_eq!(latest.text, named.text);
    let text = "Sessions queue for the page of sequence order_id_seq of database shop (lightweight lock BufferContent) ";
    assert!(named.text.starts_with(text), "{}", named.text);
    assert!(named.advice.starts_with("ALTER SEQUENCE order_id_seq CACHE 100 (in database shop)"));
    assert!(found("INSERT INTO orders (n) VALUES ($1)", "orders", 900).text.contains("sequence"));
    for (query, owner, count) in [
        ("SELECT nextval($1)", "", 499),
        ("UPDATE orders SET n = n + 1", "orders", 900),
        ("INSERT INTO others (n) VALUES ($1)", "orders", 900),
    ] {
        assert!(!found(query, owner, count).text.contains("sequence"), "{query}");
    }
}

/// Waits for locks of pages, in a statement of user alice; others' load takes so many seconds.
fn page_waits(query: &str, seconds: f64, others: f64, known: &[Condition]) -> Vec<Diagnosis> {
    const ACTIVITY: &str = "LWLock:BufferContent";
    let waits = interval(&[
        (&format!("execute::wait::{ACTIVITY}"), 1000, seconds),
        ("execute::cpu", 10, others),
    ]);
    let mut statements = view::sample::statements();
    statements.rows.truncate(1);
    let row = &mut statements.rows[0];
    (row.query, row.database, row.user) = (Some(query.into()), "shop".into(), "alice".into());
    (row.calls, row.seconds) = (1000, 10.0);
    row.activities.truncate(1);
    (row.activities[0].activity, row.activities[0].seconds) = (ACTIVITY.into(), seconds);
    row.activities[0].class = segment::WaitClass::Lwlock;
    let vacuum = conditions(known);
    let case = Case { statements: Some(&statements), vacuum: Some(&vacuum), ..case(&waits) };
    let found = diagnose(&case).into_iter();
    found.filter(|found| found.rule == Rule::LightweightLocks).collect()
}

#[test]
fn the_index_into_whose_last_page_all_insert_is_named() {
    let mut index = condition(ConditionKind::AscendingIndex, "orders_pkey", "orders", 900, 0);
    index.database = Some("shop".into());
    let found = |query: &str| page_waits(query, 6.0, 1.0, std::slice::from_ref(&index)).remove(0);
    let insert = found("INSERT INTO public.orders (n) VALUES ($1)");
    let text = "Sessions queue for the last page of index orders_pkey on table orders of database shop (lightweight lock \
                BufferContent) ";
    assert!(insert.text.starts_with(text), "{}", insert.text);
    assert!(insert.advice.contains("partition orders by hash"), "{}", insert.advice);
    let pages =
        "Sessions queue for pages of table orders of database shop and its indexes (lightweight";
    assert!(found("update orders set n = n + 1").text.starts_with(pages));
    let other = found("insert into items values ($1)");
    assert!(other.text.contains("pages of table items of database shop"), "{}", other.text);
    let unknown = found("select * from orders");
    assert!(unknown.text.starts_with("Sessions queue for the lightweight lock BufferContent"));
    // A sequence is easier to change.
    let mut sequence = condition(ConditionKind::Sequence, "orders_id_seq", "orders", 900, 0);
    sequence.database = Some("shop".into());
    let both = page_waits("insert into orders values ($1)", 6.0, 1.0, &[index.clone(), sequence]);
    assert!(both[0].text.contains("the page of sequence orders_id_seq"), "{}", both[0].text);
    assert!(both[0].advice.contains("last page of index orders_pkey, too"), "{}", both[0].advice);
}

/// A second load beside it makes it neither smaller nor larger.
#[test]
fn a_queue_of_one_application_is_named_beside_a_load_of_others() {
    let found = |seconds: f64, others: f64| page_waits("select 1", seconds, others, &[]);
    let text = "Sessions of user alice in database shop queue for the lightweight lock BufferContent 50.0 % of their time.";
    assert_eq!(found(5.0, 95.0)[0].text, text);
    assert_eq!(found(2.0, 98.0).len(), 1);
    // Too little for anybody, or a part of a load that waits little.
    assert_eq!(found(1.9, 98.0), []);
    assert_eq!(page_waits("select 1", 0.9, 9.5, &[]), []);
}

#[test]
fn sessions_that_wait_for_each_other_are_told_that_their_order_differs() {
    let waits = interval(&[("execute::wait::Lock:transactionid", 0, 20.0)]);
    let mut forest = view::sample::blocking();
    forest.roots = vec![view::blocking::Party {
        pid: 7,
        waiters: 1,
        blocks: vec![waits_for(8, 12.0)],
        ..Default::default()
    }];
    forest.deadlocks = vec![view::blocking::UnresolvedDeadlock { pids: vec![7, 8] }];
    let found = diagnose(&Case { blocking: Some(&forest), ..case(&waits) });
    let evidence = found[0].evidence.join(" ");
    assert!(evidence.contains("Sessions 7 and 8 wait for each other"), "{evidence}");
    assert!(found[0].advice.contains("SELECT pg_cancel_backend(7)"), "{}", found[0].advice);
}

/// Of a recording, what a worker did is known from samples.
#[test]
fn a_recorded_worker_that_sleeps_is_throttled() {
    let worker = Condition {
        database: Some("shop".into()),
        seconds: Some(70.0),
        ..condition(
            ConditionKind::Throttled,
            "orders",
            "autovacuum_vacuum_cost_delay = 100ms",
            50,
            0,
        )
    };
    let vacuum = Vacuum { conditions: vec![worker], ..dead_rows() };
    let interval = interval(&[]);
    let found = |pid: i32, asleep: f64| {
        let of = |activity: &str, seconds: f64| SessionAccount {
            phase: "background".into(),
            activity: activity.into(),
            count: 0,
            seconds,
            idle: false,
        };
        let sampled = [SessionRow {
            lived_seconds: 10.0,
            kind: "autovacuum worker".into(),
            accounts: vec![of("Timeout:VacuumDelay", asleep), of("cpu", 10.0 - asleep)],
            ..session(pid)
        }];
        let case = Case { vacuum: Some(&vacuum), sampled: &sampled, ..case(&interval) };
        rules(&diagnose(&case)).contains(&Rule::VacuumThrottled)
    };
    assert_eq!([found(50, 9.0), found(50, 4.0), found(51, 9.0)], [true, false, false]);
}

#[test]
fn a_file_system_that_is_nearly_full_is_named() {
    const GB: i64 = 1 << 30;
    let disk =
        |name: &str, free: i64, size: i64| condition(ConditionKind::Disk, name, "", free, size);
    let found = |disks: &[Condition]| {
        let (interval, vacuum) = (interval(&[]), conditions(disks));
        let found = diagnose(&Case { vacuum: Some(&vacuum), ..case(&interval) });
        found.into_iter().map(|found| found.text).collect::<String>()
    };
    let both = [disk("data directory", GB, 100 * GB), disk("WAL", GB, 100 * GB)];
    let [free, size] = [GB, 100 * GB].map(|size| view::units::bytes(size as f64));
    let text = format!(
        "The file system of the data directory and WAL is nearly full: {free} of {size} are free."
    );
    assert_eq!(found(&both), text);
    let one = found(&[disk("data directory", 9 * GB, 100 * GB), disk("WAL", GB, 40 * GB)]);
    assert!(one.starts_with("The file system of the WAL is nearly full"), "{one}");
    // Much is free, or a large part of it.
    assert_eq!(found(&[disk("WAL", 4 * GB, 100 * GB), disk("WAL", GB, 20 * GB)]), "");
}
