// SPDX-License-Identifier: PostgreSQL
//! Everything at once: load, errors, cancels, deadlocks, parallel queries, autovacuum and killed
//! processes, while the level and the list of timed functions change at random. Nothing crashes or hangs,
//! and afterwards no lock is shown as held and time is conserved.
//!
//! The next change happens when every worker has made progress since the last one. 12 changes with a fixed seed;
//! `make stress` has 1,000 with a random one. PGTALLY_STRESS_CHANGES sets another number.

use crate::support;
use crate::support::verify::{Claim, Trial};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use scratch::{Cluster, Load};
use segment::{set_level, Level, Segment};

/// Changes between two kills.
const KILL_EVERY: u64 = 4;
/// A worker without progress for this long hangs; a crash and its recovery take less.
const PATIENCE: Duration = Duration::from_secs(90);

/// Functions of every kind, with globs, and some that cannot be probed.
const FUNCTIONS: [&str; 24] = [
    "palloc",
    "pfree",
    "hash_search_with_hash_value",
    "LWLockHeldByMe*",
    "LockBuffer",
    "ReadBuffer*",
    "ExecInitNode",
    "copyObjectImpl",
    "expression_tree_*",
    "errstart",
    "errfinish",
    "int4div",
    "ProcessInterrupts",
    "standard_Executor*",
    "heap_*",
    "CommitTransactionCommand",
    "AbortCurrentTransaction",
    "LockAcquireExtended",
    "ProcSleep",
    "DeadLock*",
    "SimpleLru*",
    "XLog*",
    "no_such_function",
    "*Parallel*",
];

/// What the workers share.
struct Stress {
    cluster: Cluster,
    end: AtomicBool,
}

/// A task that repeats; it reconnects when it loses its connection.
struct Worker {
    name: &'static str,
    /// Completed rounds.
    done: AtomicU64,
    work: fn(&Stress, &mut Client, &mut StdRng) -> Result<(), postgres::Error>,
}

impl Worker {
    fn new(
        name: &'static str,
        work: fn(&Stress, &mut Client, &mut StdRng) -> Result<(), postgres::Error>,
    ) -> Self {
        Self { name, done: AtomicU64::new(0), work }
    }

    fn run(&self, stress: &Stress, mut rng: StdRng) {
        let mut client = None;
        while !stress.end.load(Ordering::Relaxed) {
            let Some(connection) = &mut client else {
                // The server may be recovering.
                client = stress.cluster.connect().ok();
                std::thread::sleep(Duration::from_millis(20));
                continue;
            };
            if (self.work)(stress, connection, &mut rng).is_ok() {
                self.done.fetch_add(1, Ordering::Relaxed);
            } else if connection.is_closed() || connection.batch_execute("rollback").is_err() {
                client = None;
            }
        }
    }
}

/// Runs a statement that must fail; the connection must survive.
fn wrong(client: &mut Client, sql: &str) -> Result<(), postgres::Error> {
    match client.batch_execute(sql) {
        Err(error) if client.is_closed() || error.code().is_none() => Err(error),
        _ => Ok(()),
    }
}

fn errors(_: &Stress, client: &mut Client, _: &mut StdRng) -> Result<(), postgres::Error> {
    wrong(client, "select 1/0")?;
    // Raised while a lightweight lock is held.
    wrong(client, "select pg_xact_status('9000000000')")?;
    wrong(client, "select no_such_column")?;
    wrong(client, "begin; insert into pgbench_history values (1); savepoint a; select 1/0")?;
    client.batch_execute("rollback to a; commit")?;
    client.batch_execute(
        "do $$ begin for i in 0..20 loop begin perform 1 / (i % 2);
         exception when division_by_zero then null; end; end loop; end $$",
    )?;
    client.batch_execute("set statement_timeout = 5")?;
    wrong(client, "select count(*) from pgbench_accounts a, pgbench_accounts b")?;
    client.batch_execute("reset statement_timeout")
}

fn cancels(_: &Stress, client: &mut Client, rng: &mut StdRng) -> Result<(), postgres::Error> {
    let token = client.cancel_token();
    let pause = Duration::from_millis(rng.random_range(0..30));
    let canceller = std::thread::spawn(move || {
        std::thread::sleep(pause);
        let _ = token.cancel_query(NoTls);
    });
    let result = wrong(
        client,
        "create temp table if not exists c (n int, t text);
         insert into c select n, repeat('x', 100) from generate_series(1, 20000) n;
         create index if not exists c_n on c (n); drop table c",
    );
    canceller.join().unwrap();
    result?;
    wrong(client, "rollback")
}

fn parallel(_: &Stress, client: &mut Client, _: &mut StdRng) -> Result<(), postgres::Error> {
    client.batch_execute(
        "set parallel_setup_cost = 0; set parallel_tuple_cost = 0;
         set min_parallel_table_scan_size = 0; set max_parallel_workers_per_gather = 3",
    )?;
    client.batch_execute("select sum(abalance), count(distinct bid) from pgbench_accounts")?;
    wrong(client, "select sum(1 / (aid % 5000)) from pgbench_accounts")
}

fn locks(_: &Stress, client: &mut Client, _: &mut StdRng) -> Result<(), postgres::Error> {
    client.batch_execute("create table if not exists tables (n int); truncate tables")?;
    wrong(client, "begin; lock table pgbench_branches in share mode nowait; rollback")?;
    wrong(client, "rollback")?;
    // Each is a transaction of its own.
    for sql in ["vacuum pgbench_branches", "analyze pgbench_tellers", "checkpoint"] {
        client.batch_execute(sql)?;
    }
    Ok(())
}

fn churn(stress: &Stress, _: &mut Client, _: &mut StdRng) -> Result<(), postgres::Error> {
    let mut client = stress.cluster.config().connect(NoTls)?;
    client.batch_execute("select count(*) from pgbench_branches")
}

/// Sets a list of functions for a session or a transaction.
fn own_lists(_: &Stress, client: &mut Client, rng: &mut StdRng) -> Result<(), postgres::Error> {
    let list = random_list(rng);
    client.batch_execute("set client_min_messages = error")?;
    client.batch_execute(&format!(
        "set pg_tally.functions = '{list}'; select count(*) from pg_class"
    ))?;
    client.batch_execute("begin; set local pg_tally.functions = 'palloc'; select 1; rollback")?;
    wrong(client, "begin; set local pg_tally.functions = 'err*'; select 1/0; commit")?;
    client.batch_execute("rollback; set pg_tally.functions = ''; select 1")?;
    // The list changes while timed functions are on the stack.
    client.batch_execute(
        "set pg_tally.functions = 'standard_ExecutorRun, ExecInitNode, exec*, int4div';
         select set_config('pg_tally.functions', case when n % 2 = 0 then 'int4div' else
         'standard_ExecutorRun, palloc' end, false), 7 / (n + 1) from generate_series(1, 6) n;
         reset pg_tally.functions",
    )
}

fn random_list(rng: &mut impl Rng) -> String {
    let count = rng.random_range(0..8);
    FUNCTIONS.choose_multiple(rng, count).copied().collect::<Vec<_>>().join(", ")
}

/// Repeats pgbench, since the server loses its sessions now and then.
fn pgbench(stress: &Stress, load: &Load, done: &AtomicU64) {
    while !stress.end.load(Ordering::Relaxed) {
        let run = stress.cluster.pgbench().load(load.clone()).clients(6).jobs(2);
        let run = run.transactions(50).arg("--max-tries=1000").spawn();
        if run.and_then(|run| run.wait()).is_ok() {
            done.fetch_add(1, Ordering::Relaxed);
        } else {
            // A run that lost its server counts too if it made progress.
            done.fetch_add(u64::from(stress.cluster.connect().is_ok()), Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Updates two rows in random order, which causes deadlocks.
fn deadlocks() -> Load {
    Load::Script(
        "\\set a random(1, 4)\n\\set b random(1, 4)\nbegin;\n\
         update pgbench_tellers set tbalance = tbalance + 1 where tid = :a;\n\
         update pgbench_tellers set tbalance = tbalance + 1 where tid = :b;\nend;\n"
            .into(),
    )
}

/// Changes level and list, and sometimes kills a process, until this many changes have been made and `check`,
/// which waits until every worker has made progress, succeeds. Returns the number of kills.
fn torment(stress: &Stress, rng: &mut StdRng, wanted: u64, check: &mut dyn FnMut() -> bool) -> u64 {
    let path = support::segment(&stress.cluster);
    let (mut kills, mut changes, mut content) = (0, 0, false);
    while changes < wanted || !content {
        let level = [Level::Off, Level::Waits, Level::Locks, Level::Locks][rng.random_range(0..4)];
        set_level(&path, level).unwrap();
        let list = random_list(rng);
        let edges = if rng.random() { "on" } else { "off" };
        stress
            .cluster
            .append_config(&format!(
                "pg_tally.functions = '{list}'\npg_tally.function_edges = {edges}\n"
            ))
            .unwrap();
        stress.cluster.reload().unwrap();
        if changes % KILL_EVERY == KILL_EVERY / 2 {
            std::thread::sleep(Duration::from_millis(rng.random_range(0..300)));
            let processes = stress.cluster.processes();
            if let Some(victim) = processes.choose(rng) {
                stress.cluster.kill9(victim.pid).unwrap();
                kills += 1;
            }
        }
        changes += 1;
        content = check();
    }
    println!("{changes} changes of level and list");
    kills
}

/// The server's log, read as it grows, since it gets long.
struct Log {
    file: BufReader<File>,
    last: VecDeque<String>,
    /// Killed processes, and statements that failed with these errors.
    killed: u64,
    deadlocks: u64,
    cancelled: u64,
}

impl Log {
    fn open(cluster: &Cluster) -> Self {
        let file = BufReader::new(File::open(cluster.log_path()).unwrap());
        Self { file, last: VecDeque::new(), killed: 0, deadlocks: 0, cancelled: 0 }
    }

    /// Checks that no process ended by a signal other than SIGKILL or had to be killed by the server.
    fn check(&mut self) {
        let mut line = String::new();
        while self.file.read_line(&mut line).unwrap() > 0 {
            self.killed += u64::from(line.contains("was terminated by signal 9:"));
            self.deadlocks += u64::from(line.contains("deadlock detected"));
            self.cancelled += u64::from(line.contains("due to user request"));
            let died = line.contains("was terminated by signal") && !line.contains("signal 9:");
            let fatal = ["PANIC", "recalcitrant", "stack smashing", "TRAP:", "stuck spinlock"];
            let bad = died || fatal.iter().any(|text| line.contains(text));
            self.last.push_back(std::mem::take(&mut line));
            if self.last.len() > 40 {
                self.last.pop_front();
            }
            assert!(!bad, "{}", self.last.iter().map(String::as_str).collect::<String>());
        }
    }
}

#[test]
fn under_mixed_stress_nothing_crashes_hangs_or_stays_held() {
    const SEED: u64 = 1;
    under_stress(changes(12), SEED);
}

#[test]
#[ignore = "verify: random stress"]
fn verify_under_random_stress_nothing_crashes_hangs_or_stays_held() {
    let text = "under random stress nothing crashes, hangs or stays held";
    Claim { text, alarm: 0.0, n: 1, m: 1 }.check(|seed| {
        let result = under_stress(changes(200), seed);
        Trial { holds: true, result, half_width: "-".into() }
    });
}

fn changes(usual: u64) -> u64 {
    std::env::var("PGTALLY_STRESS_CHANGES").map_or(usual, |text| text.parse().expect("a number"))
}

/// Returns a summary.
fn under_stress(changes: u64, seed: u64) -> String {
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let cluster = support::start(
        support::plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.level", "locks")
            .setting("pg_tally.block_threshold", "10ms")
            .setting("max_connections", "60")
            .setting("max_worker_processes", "16")
            .setting("shared_buffers", "8MB")
            .setting("deadlock_timeout", "20ms")
            .setting("autovacuum_naptime", "1s")
            .setting("autovacuum_vacuum_threshold", "10")
            .setting("autovacuum_vacuum_scale_factor", "0")
            .setting("autovacuum_analyze_threshold", "10")
            .setting("log_min_messages", "error")
            .setting("log_min_error_statement", "panic"),
    );
    cluster.pgbench_init(1).unwrap();
    let path = support::segment(&cluster);
    let stress = Stress { cluster, end: AtomicBool::new(false) };
    let workers = [
        Worker::new("errors", errors),
        Worker::new("cancels", cancels),
        Worker::new("parallel queries", parallel),
        Worker::new("locks", locks),
        Worker::new("connections", churn),
        Worker::new("lists of one's own", own_lists),
    ];
    let loads = [("TPC-B", Load::TpcB), ("deadlocks", deadlocks())];
    let runs = [AtomicU64::new(0), AtomicU64::new(0)];
    let mut log = Log::open(&stress.cluster);
    let kills = std::thread::scope(|scope| {
        for worker in &workers {
            let (stress, rng) = (&stress, StdRng::seed_from_u64(rng.random()));
            scope.spawn(move || worker.run(stress, rng));
        }
        for ((_, load), done) in loads.iter().zip(&runs) {
            let stress = &stress;
            scope.spawn(move || pgbench(stress, load, done));
        }
        let _end = End(&stress.end);
        let progress = || -> Vec<(&str, u64)> {
            let names = workers.iter().map(|worker| worker.name);
            let names = names.chain(loads.iter().map(|(name, _)| *name));
            let counts = workers.iter().map(|worker| &worker.done).chain(&runs);
            names.zip(counts.map(|done| done.load(Ordering::Relaxed))).collect()
        };
        let mut check = || {
            let (before, began) = (progress(), Instant::now());
            loop {
                log.check();
                let now = progress();
                let mut waited = before.iter().zip(&now).filter(|(then, now)| then.1 == now.1);
                let Some(((name, _), _)) = waited.next() else { break };
                assert!(
                    began.elapsed() < PATIENCE,
                    "{name}: nothing done for {PATIENCE:?}\n{}",
                    stress.cluster.log_tail(40)
                );
                std::thread::sleep(Duration::from_millis(50));
            }
            log.deadlocks > 0 && log.cancelled > 0
        };
        let kills = torment(&stress, &mut rng, changes, &mut check);
        println!("{kills} kills; rounds: {:?}", progress());
        kills
    });

    let cluster = &stress.cluster;
    log.check();
    assert!(log.killed <= kills, "{} died of {kills} kills", log.killed);
    let summary = format!(
        "{kills} kills, {} deadlocks, {} statements cancelled",
        log.deadlocks, log.cancelled
    );
    println!("{summary}");

    // The load has ended.
    cluster.append_config("pg_tally.functions = 'standard_ExecutorRun'\n").unwrap();
    cluster.reload().unwrap();
    support::eventually("the server accepts sessions", || cluster.psql("select 1").is_ok());
    for level in [Level::Off, Level::Locks] {
        set_level(&path, level).unwrap();
        let load = cluster.pgbench().load(Load::TpcB).clients(4).transactions(50);
        assert_eq!(load.run().unwrap().transactions, 200);
    }
    let mut segment = Segment::open(&path).unwrap();
    let mut client = cluster.connect().unwrap();
    client.batch_execute("select count(*) from pgbench_branches").unwrap();
    support::eventually("no lock is held", || {
        segment.snapshot(None).unwrap().books.iter().all(|book| book.holding == 0)
    });
    support::eventually("no more slots are claimed than there are processes", || {
        segment.population().unwrap() as usize <= cluster.processes().len() + 1
    });
    let snapshot = segment.snapshot(None).unwrap();
    assert_eq!(snapshot.overflows.lost_merges, 0, "a slot was found damaged");
    assert!(!snapshot.stuck_merge);
    for book in &snapshot.books {
        assert!(!book.torn, "slot {} could not be read consistently", book.slot);
        let (accounts, lived) = (book.accounted(&snapshot.directory), book.now - book.born);
        assert_eq!(accounts, lived, "pid {} ({})", book.pid, book.identity.kind);
    }
    let pid = support::pid_of(&mut client);
    let of = |begin: &str| -> u64 {
        let book = snapshot.books.iter().find(|book| book.pid == pid).unwrap();
        let heads = book.heads.iter().filter(|head| {
            let stat = snapshot.directory.get(head.stat);
            stat.is_some_and(|stat| stat.name.starts_with(begin))
        });
        heads.map(|head| head.count).sum()
    };
    assert!(of("lwlock::") > 0, "locks are no longer counted");
    assert!(
        of("function::standard_ExecutorRun::inclusive::") > 0,
        "functions are no longer counted"
    );
    summary
}

/// Ends the workers when a check fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
