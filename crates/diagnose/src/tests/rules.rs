// SPDX-License-Identifier: PostgreSQL
//! Each rule that a test with a server does not plant: what it finds, and below which size it is silent.

use segment::delta::{Change, Total};
use segment::directory::{Stat, StatKind};
use segment::interval::{AccountRow, ClockInfo};
use segment::kernel::KernelView;
use segment::{Histogram, Interval, WaitClass};
use view::statements::{ActivityRow, StatementsTable};

use super::{diagnose, limits};
use crate::{Case, Diagnosis, Rule};

/// Seconds of the interval.
const LENGTH: f64 = 10.0;

pub(super) fn account((name, count, seconds): (&str, u64, f64)) -> AccountRow {
    let stat = Stat::new(name.to_string(), StatKind::Account, "ticks".to_string());
    let change = Change { count, total: (seconds * 1e9) as u64, ..Change::default() };
    let clock = ClockInfo { kind: "monotonic", ticks_per_second: 1e9 };
    AccountRow::from_total(&stat, Total { change, histogram: Histogram::new() }, &clock)
}

/// Ten seconds with these accounts (name, number, seconds) and nothing else.
pub(super) fn interval(accounts: &[(&str, u64, f64)]) -> Interval {
    let mut interval = view::sample::interval();
    (interval.interval_seconds, interval.instrumented_seconds) = (LENGTH, LENGTH);
    interval.cores = 4;
    interval.ledger = accounts.iter().copied().map(account).collect();
    interval.sessions.clear();
    interval.commands.clear();
    interval.lwlocks.clear();
    interval.commits = segment::commits::Commits::default();
    interval.kernel = KernelView::default();
    interval
}

pub(super) fn case(interval: &Interval) -> Case<'_> {
    Case {
        whole: interval,
        sampled: &[],
        statements: None,
        checkpoints: &[],
        known_deadlocks: &[],
        blocking: None,
        blocker: None,
        plans: &[],
        vacuum: None,
    }
}

/// One statement that reads 10,000 blocks for a row, and took this long.
pub(super) fn full_scan(seconds: f64) -> StatementsTable {
    let mut statements = view::sample::statements();
    statements.rows.truncate(1);
    let row = &mut statements.rows[0];
    (row.calls, row.counters.rows, row.seconds) = (10, 10, seconds);
    row.counters.blocks.shared_hit = 100_000;
    row.activities.clear();
    statements
}

/// What is found of these accounts.
fn diagnose_accounts(accounts: &[(&str, u64, f64)]) -> Vec<Diagnosis> {
    diagnose(&case(&interval(accounts)))
}

pub(super) fn rules(found: &[Diagnosis]) -> Vec<Rule> {
    found.iter().map(|found| found.rule).collect()
}

/// The same accounts, a hundredth of the time: the same shares of almost nothing.
fn is_silent_about_little(accounts: &[(&str, u64, f64)]) {
    let little: Vec<_> =
        accounts.iter().map(|(name, n, seconds)| (*name, n / 100, seconds / 100.0)).collect();
    assert_eq!(rules(&diagnose_accounts(&little)), []);
}

#[test]
fn standbys_that_commits_wait_for() {
    let accounts = [("commit::wait::IPC:SyncRep", 100, 8.0), ("execute::cpu", 100, 2.0)];
    let found = diagnose_accounts(&accounts);
    assert_eq!(rules(&found), [Rule::Replication]);
    assert!(found[0].text.contains("80.0 % of the sessions' time"), "{}", found[0].text);
    is_silent_about_little(&accounts);
    assert_eq!(rules(&diagnose_accounts(&[accounts[1]])), []);
}

/// A wait that goes on is in the total, and has no figures of its own yet.
#[test]
fn what_is_not_known_is_left_out_of_sentences() {
    let activities =
        ["Lock:relation", "LWLock:WALInsert", "IO:DataFileRead", "IPC:SyncRep", "IO:WALSync"];
    let names = activities.map(|activity| format!("execute::wait::{activity}"));
    let cpu = ("execute::cpu", 100, 2.0);
    let mut intervals: Vec<Interval> =
        names.iter().map(|name| interval(&[(name, 0, 8.0), cpu])).collect();
    let mut statements = full_scan(9.0);
    statements.rows[0].execution.mean_seconds = None;
    statements.rows[0].planning.mean_seconds = None;
    let mut planned = statements.clone();
    (planned.rows[0].planning.seconds, planned.rows[0].execution.seconds) = (5.0, 1.0);
    planned.rows[0].planning.mean_seconds = Some(0.5);
    intervals.push(interval(&[("execute::cpu", 100, 10.0)]));
    let mut rules = std::collections::BTreeSet::new();
    for interval in &intervals {
        for statements in [None, Some(&statements), Some(&planned)] {
            let found = crate::diagnose(&Case { statements, ..case(interval) });
            for finding in found.problems.into_iter().chain(found.limits) {
                let sentences = [
                    finding.evidence.clone(),
                    vec![finding.text.clone(), finding.advice.to_string()],
                ]
                .concat();
                for sentence in sentences {
                    let dash = sentence
                        .split([' ', ',', '('])
                        .any(|word| word.trim_end_matches(['.', ')']) == "-");
                    assert!(!dash && !sentence.contains(" ,"), "{sentence}");
                }
                rules.insert(format!("{:?}", finding.rule));
            }
        }
    }
    for rule in
        ["Locks", "LightweightLocks", "BufferMisses", "Replication", "MissingIndex", "Planning"]
    {
        assert!(rules.contains(rule), "{rule}: {rules:?}");
    }
}

#[test]
fn the_longest_wait_may_be_one_that_goes_on() {
    let mut interval = interval(&[
        ("execute::wait::Lock:relation", 0, 8.0),
        ("execute::wait::Lock:tuple", 2, 1.0),
    ]);
    interval.sessions = view::sample::interval().sessions;
    interval.sessions.truncate(1);
    (interval.sessions[0].activity, interval.sessions[0].since_seconds) =
        ("Lock:relation".into(), 240.0);
    let forest = view::sample::blocking();
    let found = diagnose(&Case { blocking: Some(&forest), ..case(&interval) });
    let evidence = found[0].evidence.join(" ");
    for part in [
        "Lock:relation (none has ended, 8 s in this time; the longest lasts 4 min)",
        "Lock:tuple (2 waits ended, 1 s in this time; the longest lasts 41 s)",
    ] {
        assert!(evidence.contains(part), "{evidence}");
    }
    let found = diagnose(&Case {
        blocking: Some(&forest),
        ..case(&Interval { sessions: Vec::new(), ..interval })
    });
    let evidence = found[0].evidence.join(" ");
    assert!(evidence.contains("Lock:relation (none has ended, 8 s in total),"), "{evidence}");
}

/// Blocks are written once when files are made, and once more in each pass that merges them.
#[test]
fn the_size_of_temporary_files_is_not_what_is_written_to_them() {
    const MB: u64 = 1 << 20;

    let interval = interval(&[("execute::cpu", 100, 10.0)]);
    let mut statements = view::sample::statements();
    statements.rows.truncate(1);
    for (files, size, written, text, each) in [
        (
            4,
            80,
            160,
            "(80 MB in 4 files; 160 MB written, in several passes)",
            "work_mem = '40MB' (a call writes files of 20 MB)",
        ),
        (4, 80, 81, "(80 MB in 4 files)", "work_mem = '40MB' (a call writes files of 20 MB)"),
        (1, 80, 81, "(80 MB in 1 file)", "work_mem = '40MB' (a call writes files of 20 MB)"),
        (0, 0, 160, "(160 MB written)", "work_mem = '80MB'"),
    ] {
        let row = &mut statements.rows[0];
        (row.calls, row.seconds, row.counters.temp_files, row.counters.temp_bytes) =
            (4, 9.0, files, size * MB);
        row.counters.blocks.temp_written = written * MB / 8192;
        let found = diagnose(&Case { statements: Some(&statements), ..case(&interval) });
        let finding = found.iter().find(|found| found.rule == Rule::TemporaryFiles).unwrap();
        assert!(finding.text.contains(text), "{}", finding.text);
        assert!(finding.advice.contains(each), "{}", finding.advice);
    }
}

#[test]
fn a_log_that_takes_no_messages() {
    let accounts = [("execute::wait::Call:log_pipe", 100, 8.0), ("execute::cpu", 100, 2.0)];
    let found = diagnose_accounts(&accounts);
    assert_eq!(rules(&found), [Rule::LogPipe]);
    assert!(found[0].text.contains("80.0 % of their time"), "{}", found[0].text);
    is_silent_about_little(&accounts);
    assert_eq!(rules(&diagnose_accounts(&[accounts[1]])), []);
}

#[test]
fn slow_reads_are_the_device_and_many_fast_ones_are_a_limit() {
    let cpu = ("execute::cpu", 100, 1.0);
    let slow = [("execute::wait::IO:DataFileRead", 100, 2.0), cpu];
    let found = diagnose_accounts(&slow);
    assert_eq!(rules(&found), [Rule::SlowDevice]);
    assert!(found[0].text.contains("slow: 20 ms each"), "{}", found[0].text);
    // Which files they are.
    let evidence = found[0].evidence.join(" ");
    assert!(evidence.contains("Slowest reads: files main in tablespace 16385, "), "{evidence}");
    let many = [("execute::wait::IO:DataFileRead", 20_000, 2.0), cpu];
    assert_eq!(rules(&diagnose_accounts(&many)), []);
    let found = crate::diagnose(&case(&interval(&many))).limits;
    assert_eq!(rules(&found), [Rule::BufferMisses]);
    assert!(found[0].text.contains("2k/s, 100 us each"), "{}", found[0].text);
    is_silent_about_little(&slow);
    is_silent_about_little(&many);
}

/// Two commits out of three wait for the turn to flush the WAL, and a hot row is passed on once a commit.
#[test]
fn a_load_that_commits_and_shares_a_row_is_healthy() {
    let load = |rows: u64| {
        let mut interval = interval(&[
            ("simple query::wait::Lock:transactionid", rows, 20.0),
            ("simple query::wait::LWLock:WALWrite", 10_000, 15.0),
            ("simple query::wait::IO:WALSync", 8_000, 9.0),
            ("simple query::cpu", 100_000, 6.0),
        ]);
        let commits = &mut interval.commits;
        (commits.count, commits.sync.seconds, commits.queue.seconds) = (10_000, 9.0, 15.0);
        (commits.sync.mean_seconds, commits.commits_per_flush) = (Some(0.001_1), Some(1.25));
        interval
    };
    let healthy = load(10_000);
    assert_eq!(rules(&diagnose(&case(&healthy))), []);
    let found = crate::diagnose(&case(&healthy)).limits;
    assert_eq!(
        found[1].headline(),
        "Limit: sessions spend 40.0 % of their time waiting for rows that others change, 2 ms each."
    );
    assert_eq!(
        found[0].headline(),
        "Limit: commits, 1k/s, wait for the WAL 48.0 % of the sessions' time: a sync takes 1.10 ms, and one is under way 90.0 % of the time."
    );
    // The same row, held for longer than the commits take.
    assert_eq!(rules(&diagnose(&case(&load(500)))), [Rule::Locks]);
    // Slow commits keep it for as long as they take.
    let mut slow = load(500);
    (slow.commits.count, slow.commits.sync.mean_seconds) = (500, Some(0.018));
    assert_eq!(rules(&diagnose(&case(&slow))), [Rule::Commits]);

    // Commits of 8 ms, and holds of 22 ms: those of a client that thinks are its own.
    let mut held = load(900);
    (held.commits.count, held.commits.sync.mean_seconds) = (3000, Some(0.003));
    assert_eq!(rules(&diagnose(&case(&held))), []);
    let client = |user: &str, in_transaction| segment::ClientWaits {
        user: Some(user.into()),
        database: Some("shop".into()),
        in_transaction,
        in_transaction_seconds: 6.0,
        ..Default::default()
    };
    let mut statements = full_scan(0.1);
    statements.rows[0].activities = vec![ActivityRow {
        phase: "simple query".into(),
        activity: "Lock:transactionid".into(),
        class: WaitClass::Lock,
        count: 900,
        seconds: 20.0,
    }];
    for (user, waits, expected) in
        [("alice", 1000, vec![]), ("bob", 600, vec![]), ("alice", 600, vec![Rule::Locks])]
    {
        held.client_waits = vec![client(user, waits)];
        let case = Case { statements: Some(&statements), ..case(&held) };
        assert_eq!(rules(&diagnose(&case)), expected, "{user} {waits}");
    }
}

#[test]
fn planning_that_takes_longer_than_executing() {
    let interval = interval(&[("simple query::cpu", 1000, 5.0)]);
    let mut statements = view::sample::statements();
    statements.rows.truncate(1);
    let planned = |statements: &mut StatementsTable, planning: f64| {
        let row = &mut statements.rows[0];
        (row.calls, row.planning.seconds, row.execution.seconds) = (100, planning, 1.0);
        let case = Case { statements: Some(statements), ..case(&interval) };
        rules(&diagnose(&case))
    };
    assert_eq!(planned(&mut statements, 3.0), [Rule::Planning]);
    assert_eq!(planned(&mut statements, 0.9), []);
    statements.rows[0].own = true;
    assert_eq!(planned(&mut statements, 3.0), []);
}

/// A table that statements of that kind fill, on that server.
fn flood_of(kind: &str, server: &str) -> Vec<Diagnosis> {
    flood_in(kind, server, false)
}

/// The same of a recording, or of a running server.
fn flood_in(kind: &str, server: &str, recorded: bool) -> Vec<Diagnosis> {
    let mut interval = interval(&[("simple query::cpu", 1000, 5.0)]);
    interval.server.name = server.to_owned();
    let mut statements = view::sample::statements();
    statements.rows.clear();
    statements.interval_seconds = Some(10.0);
    statements.flood = Some(view::statements::Flood {
        kind: kind.to_owned(),
        once: 4900,
        kept: 6260,
        recorded,
        evicted: 1204,
        examples: vec!["set a.b = 'n1'".into(), "set a.b =\n 'n2'".into()],
    });
    diagnose(&Case { statements: Some(&statements), ..case(&interval) })
}

#[test]
fn a_small_file_system_is_named_when_memory_is_refused_and_before() {
    const MB: u64 = 1 << 20;
    let found = |refused: u64, held: u64, limit: u64| {
        let mut interval = interval(&[("simple query::cpu", 1000, 5.0)]);
        interval.overflow_in_interval.memory = refused;
        interval.memory = Some(segment::SegmentMemory { held, limit, size: 900 * MB });
        diagnose(&case(&interval))
    };
    let refused = found(3, 15 * MB + MB / 2, 16 * MB);
    assert_eq!(rules(&refused), [Rule::SmallFileSystem]);
    assert_eq!(
        refused[0].text,
        "The file system of the segment is too small: 3 times in 10 s there was no memory for a session or statement, \
         whose figures are missing."
    );
    assert_eq!(
        refused[0].evidence,
        ["The segment takes 15.5 MB and may take 16 MB: a quarter of its file system. The rest is left to the server, \
          as for parallel queries."]
    );
    assert!(refused[0].advice.contains("--shm-size"), "{}", refused[0].advice);
    assert!(found(0, 12 * MB, 16 * MB)[0].text.contains("may get no memory"));
    assert!(found(0, 11 * MB, 16 * MB).is_empty());
    // Its own size limits it, as on any large file system.
    assert!(found(0, 890 * MB, 900 * MB).is_empty());
    // What takes time comes first.
    let mut busy = interval(&[("simple query::wait::Lock:relation", 10, 9.0)]);
    busy.overflow_in_interval.memory = 1;
    let rules = rules(&diagnose(&case(&busy)));
    assert_eq!(rules, [Rule::Locks, Rule::SmallFileSystem]);
}

#[test]
fn statements_that_ran_once_and_fill_the_table() {
    let found = flood_of("SET", "PostgreSQL 15.20");
    assert_eq!(rules(&found), [Rule::StatementFlood]);
    assert_eq!(
        found[0].text,
        "4,900 of the 6,260 statements kept are SET that ran once; 1,204 statements were evicted in 10 s."
    );
    let recorded = flood_in("SET", "PostgreSQL 15.20", true);
    assert!(recorded[0].text.starts_with("4,900 of the 6,260 statements recorded are SET"));
    assert_eq!(found[0].evidence, ["For example: set a.b = 'n1'; set a.b = 'n2'."]);
    assert_eq!(
        found[0].advice,
        "Each value makes a separate statement: set pg_tally.statements_utility = off. PostgreSQL 18 and later \
         count them as one, whatever the value. Or raise pg_tally.max_statements."
    );
    let advice = |kind: &str, server: &str| flood_of(kind, server).remove(0).advice;
    assert!(!advice("SET", "PostgreSQL 18.1").contains("later"));
    let savepoints = advice("SAVEPOINT, RELEASE and ROLLBACK TO", "PostgreSQL 16.2");
    assert!(
        savepoints.contains("same names") && savepoints.contains("17 and later"),
        "{savepoints}"
    );
    assert!(advice("CREATE TABLE", "PostgreSQL 18.1").contains("ON COMMIT DELETE ROWS"));
    assert!(advice("SELECT", "PostgreSQL 19rc1")
        .starts_with("Their texts differ in more than constants"));
}

#[test]
fn processors_that_all_are_busy() {
    let mut interval = interval(&[("execute::cpu", 1000, 60.0)]);
    let full = |run_queue_seconds, cpu_account_seconds| KernelView {
        available: true,
        run_queue_seconds,
        cpu_account_seconds,
        ..KernelView::default()
    };
    interval.kernel = full(25.0, 60.0);
    assert_eq!(rules(&diagnose(&case(&interval))), []);
    let found = crate::diagnose(&case(&interval)).limits;
    assert_eq!(
        found[0].headline(),
        "Limit: on average, 6.00 sessions compete for 4 processors, and wait for one 41.7 % of the sessions' time."
    );
    // Four sessions on four processors wait for none, and other programs may take them from two.
    for (queue, cpu) in [(1.0, 39.0), (25.0, 39.0), (5.0, 60.0)] {
        interval.kernel = full(queue, cpu);
        assert_eq!(limits(&case(&interval)), [], "{queue} {cpu}");
    }
}

#[test]
fn time_that_is_not_explained_beyond_its_error() {
    let mut interval = interval(&[("execute::cpu", 1000, 5.0)]);
    let view = |share, error| KernelView {
        samples: 1000,
        unexplained_share: share,
        unexplained_error: error,
        unexplained_seconds: share * 5.0,
        ..KernelView::default()
    };
    for (share, error, expected) in
        [(0.05, 0.01, vec![Rule::Unexplained]), (0.011, 0.002, vec![]), (0.0, 0.0, vec![])]
    {
        interval.kernel = view(share, error);
        assert_eq!(rules(&diagnose(&case(&interval))), expected, "{share}");
    }
    interval.kernel = view(0.5, 0.01);
    interval.ledger = vec![account(("execute::cpu", 10, 0.1))];
    assert_eq!(rules(&diagnose(&case(&interval))), [], "half of nothing");
}

#[test]
fn what_tally_itself_does_counts_in_no_share() {
    let startup = ("startup::cpu", 20, 0.9);
    let mut whole = interval(&[startup, ("execute::wait::IO:DataFileRead", 20, 0.9)]);
    assert_eq!(rules(&diagnose(&case(&whole))), [Rule::SlowDevice]);
    whole.others = Some(Box::new(interval(&[])));
    assert_eq!(rules(&diagnose(&case(&whole))), []);
    let mut statements = full_scan(1.0);
    let found = |statements: &StatementsTable| {
        let interval = interval(&[("execute::cpu", 10, 1.0)]);
        rules(&diagnose(&Case { statements: Some(statements), ..case(&interval) }))
    };
    assert_eq!(found(&statements), [Rule::MissingIndex]);
    statements.rows[0].own = true;
    assert_eq!(found(&statements), []);
}

#[test]
fn parallel_workers_that_end_are_no_connections() {
    let mut interval = interval(&[("startup::cpu", 500, 2.0), ("execute::cpu", 500, 2.0)]);
    interval.ended.sessions = 500;
    assert_eq!(rules(&diagnose(&case(&interval))), []);
    let mut ends = view::sample::interval().commands.remove(0);
    ends.kind = "Terminate".into();
    ends.read.count = 500;
    interval.commands = vec![ends];
    let found = diagnose(&case(&interval));
    assert_eq!(rules(&found), [Rule::Connections]);
    assert!(found[0].text.starts_with("50 connections/s"), "{}", found[0].text);
}

#[test]
fn a_dump_goes_as_fast_as_its_file_and_is_no_slow_client() {
    let interval =
        interval(&[("execute::wait::Client:ClientWrite", 500, 5.0), ("execute::cpu", 500, 2.0)]);
    let mut statements = view::sample::statements();
    statements.rows.truncate(1);
    let row = &mut statements.rows[0];
    row.activities.truncate(1);
    (row.activities[0].activity, row.activities[0].seconds) = ("Client:ClientWrite".into(), 4.8);
    let mut found = |text: &str| {
        statements.rows[0].query = Some(text.into());
        rules(&diagnose(&Case { statements: Some(&statements), ..case(&interval) }))
    };
    assert_eq!(found("COPY public.t (id, v) TO stdout"), []);
    assert_eq!(found("copy (select * from t) to stdout"), [Rule::SlowClients]);
}
