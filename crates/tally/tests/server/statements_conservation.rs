// SPDX-License-Identifier: PostgreSQL
//! Conservation per statement: in each phase the time of all statements equals the ledger's, while
//! sessions work, wait, fail, end, and execute a statement.
//!
//! Takes 12 seconds; PGTALLY_CONSERVATION_SECONDS sets another length.

use crate::support;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};
use rand::Rng;
use scratch::{Cluster, Load};

/// Permitted difference as a share of a phase's time ...
const TOLERANCE: f64 = 0.001;
/// ... and in seconds: a session may be read while it records a message's end, and if it waits for a CPU then
/// ([`CpuWaits`]) by as much more ...
const BUSY: f64 = 0.005;
/// ... and in seconds when all sessions are idle.
const AT_REST: f64 = 0.0005;

/// The phases in which a session works for statements.
const PHASES: &str = "'simple query', 'parse', 'bind', 'describe', 'execute', 'close', 'sync', \
                      'flush', 'function call', 'copy'";

/// The account for time in accounts beyond a statement's limit, which only statements such as parallel
/// index builds exceed.
const OVERFLOW: &str = "other";

type Seconds = BTreeMap<String, f64>;

fn by_phase(client: &mut Client, sql: &str) -> Seconds {
    client.query(sql, &[]).unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
}

fn ledger(client: &mut Client) -> Seconds {
    let sql = format!(
        "select phase, sum(seconds) from tally.ledger
         where kind in ('client backend', 'parallel worker') and phase in ({PHASES}) group by 1"
    );
    by_phase(client, &sql)
}

fn statements(client: &mut Client) -> Seconds {
    // The ends of sessions are checked separately.
    let sql = "select phase, sum(seconds) from tally.statement_activities
               where toplevel and phase <> 'terminate' group by 1";
    by_phase(client, sql)
}

/// The end of a session counts for its last statement until the session flushes its statements. The time
/// after that, and the end of a session without any statement, is only in the ledger. So statements have at
/// most the ledger's time in this phase. Returns both.
fn check_ends(client: &mut Client, floor: f64) -> (f64, f64) {
    let seconds = |client: &mut Client, table: &str, of: &str| -> f64 {
        let sql = format!("select coalesce(sum(seconds), 0) from tally.{table} where {of}");
        client.query_one(&sql, &[]).unwrap().get(0)
    };
    let terminate = "phase = 'terminate' and";
    let ours = seconds(client, "statement_activities", &format!("{terminate} toplevel"));
    let sessions = "kind in ('client backend', 'parallel worker')";
    let all = seconds(client, "ledger", &format!("{terminate} {sessions}"));
    println!("ends: {ours} of {all} s");
    assert!(ours <= all * (1.0 + TOLERANCE) + floor, "{ours} s of {all} s of ends are statements'");
    (ours, all)
}

/// Checks that the statements' time is between two readings of the ledger, within tolerances.
fn assert_between(what: &str, got: f64, (min, max): (f64, f64), below: f64, above: f64) {
    assert!(
        got >= min * (1.0 - TOLERANCE) - below && got <= max * (1.0 + TOLERANCE) + above,
        "{what}: statements have {got} s, the ledger from {min} to {max} s"
    );
}

/// The time that each of a server's processes but one has waited for a CPU, by the kernel.
///
/// A session that has read the clock at a message's end and then waits for a CPU seems to work until it gets one,
/// when the time that it has waited is added here. So within a reading no phase is wrong by more than what is added
/// meanwhile.
struct CpuWaits {
    postmaster: u32,
    reader: u32,
    since: Instant,
    waited: BTreeMap<u32, Duration>,
}

impl CpuWaits {
    fn begin(cluster: &Cluster, client: &mut Client) -> CpuWaits {
        let reader: i32 = client.query_one("select pg_backend_pid()", &[]).unwrap().get(0);
        let (postmaster, reader) = (cluster.postmaster_pid().unwrap(), reader as u32);
        CpuWaits { postmaster, reader, since: Instant::now(), waited: waited(postmaster, reader) }
    }

    /// Seconds waited since then by all processes. One that has ended may have waited all the time.
    fn seconds(&self) -> f64 {
        let now = waited(self.postmaster, self.reader);
        let zero = Duration::ZERO;
        let more: Duration = now
            .iter()
            .map(|(pid, time)| time.saturating_sub(*self.waited.get(pid).unwrap_or(&zero)))
            .sum();
        let ended = self.waited.keys().filter(|pid| !now.contains_key(pid)).count();
        (more + self.since.elapsed() * ended as u32).as_secs_f64()
    }
}

fn waited(postmaster: u32, except: u32) -> BTreeMap<u32, Duration> {
    let proc = process::Proc::default();
    let others = proc.children(postmaster).into_iter().filter(|&pid| pid != except);
    others
        .filter_map(|pid| Some((pid, Duration::from_nanos(proc.schedstat(pid)?.run_queue_ns))))
        .collect()
}

/// The statements' time, and the ledger's before and after it.
struct Readings {
    before: Seconds,
    ours: Seconds,
    after: Seconds,
}

impl Readings {
    fn take(client: &mut Client) -> Readings {
        Readings { before: ledger(client), ours: statements(client), after: ledger(client) }
    }

    /// Checks that the statements' time is between the ledger's, within `floor` seconds. Returns the ledger's.
    fn check(&self, client: &mut Client, floor: f64) -> f64 {
        let Readings { before, ours, after } = self;
        println!(
            "before {before:.4?}\nstatements {ours:.4?}\nafter {after:.4?}\nwithin {floor:.4} s"
        );
        for phase in ours.keys().filter(|phase| *phase != OVERFLOW) {
            assert!(after.contains_key(phase), "{phase} is none of the ledger's: {after:?}");
        }
        let of = |seconds: &Seconds, phase: &str| seconds.get(phase).copied().unwrap_or(0.0);
        let all = |seconds: &Seconds| seconds.values().sum::<f64>();
        for (phase, &most) in after {
            let less = floor + of(ours, OVERFLOW);
            assert_between(phase, of(ours, phase), (of(before, phase), most), less, floor);
        }
        assert_between("all", all(ours), (all(before), all(after)), floor, floor);
        assert!(of(ours, OVERFLOW) < 0.001 * all(ours), "too much without an account");
        check_ends(client, floor);
        all(after)
    }
}

/// While sessions work.
fn check_busy(cluster: &Cluster, client: &mut Client) {
    let waits = CpuWaits::begin(cluster, client);
    let readings = Readings::take(client);
    readings.check(client, BUSY + waits.seconds());
}

/// While all sessions are idle. Returns the ledger's time.
fn check_at_rest(client: &mut Client) -> f64 {
    Readings::take(client).check(client, AT_REST)
}

/// Compares each activity, CPU and each wait event, when all sessions are idle.
fn check_activities(client: &mut Client) {
    let read = |client: &mut Client, sql: &str| -> BTreeMap<String, (f64, i64)> {
        let rows = client.query(sql, &[]).unwrap();
        rows.iter().map(|row| (row.get(0), (row.get(1), row.get(2)))).collect()
    };
    let sql = format!(
        "select phase || ' ' || activity, sum(seconds), sum(count)::bigint from tally.ledger
         where kind in ('client backend', 'parallel worker') and phase in ({PHASES}) group by 1"
    );
    let before = read(client, &sql);
    let ours = read(
        client,
        "select phase || ' ' || activity, sum(seconds), sum(count)::bigint
         from tally.statement_activities where toplevel group by 1",
    );
    let after = read(client, &sql);
    let overflow = ours.iter().find(|(account, _)| account.starts_with(OVERFLOW));
    let overflow = overflow.map_or((0.0, 0), |(_, &found)| found);
    for (account, (max, max_count)) in &after {
        let (min, min_count) = before.get(account).copied().unwrap_or_default();
        let (got, count) = ours.get(account).copied().unwrap_or_default();
        assert_between(account, got, (min, *max), AT_REST + overflow.0, AT_REST);
        if !account.ends_with(" cpu") {
            assert!(
                count >= min_count - overflow.1 && count <= *max_count,
                "{account}: {count} times, the ledger from {min_count} to {max_count}"
            );
        }
    }
}

/// Runs sessions that do whatever may lose time, until `stop`.
fn rough_life(cluster: &Cluster, stop: &AtomicBool) {
    let running = || !stop.load(Ordering::Relaxed);
    let session = |work: fn(&mut Client)| {
        let config = cluster.config();
        move || {
            let mut client = config.connect(NoTls).unwrap();
            while running() {
                work(&mut client);
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(session(sleeps));
        scope.spawn(session(copies));
        scope.spawn(session(errors));
        scope.spawn(session(cancels));
        scope.spawn(session(parallel));
        scope.spawn(session(portals));
        // Sessions that end flush into the table.
        scope.spawn(|| {
            while running() {
                let mut client = cluster.config().connect(NoTls).unwrap();
                client.batch_execute("select count(*) from pgbench_branches").unwrap();
                let _ = client.batch_execute("begin; select 1 / 0");
            }
        });
    });
}

/// Executing a statement nearly always.
fn sleeps(client: &mut Client) {
    client.batch_execute("select pg_sleep(3)").unwrap();
    let length = 0.7f64;
    client.query("select pg_sleep($1)", &[&length]).unwrap();
    client.batch_execute("select pg_sleep(0.2); select count(*) from pgbench_accounts").unwrap();
}

fn copies(client: &mut Client) {
    client.batch_execute("create temp table if not exists copied (n int, t text)").unwrap();
    let mut copy = client.copy_in("copy copied from stdin").unwrap();
    for n in 0..5000 {
        writeln!(copy, "{n}\tsome text that fills a row").unwrap();
    }
    copy.finish().unwrap();
    let mut out = client.copy_out("copy copied to stdout").unwrap();
    std::io::copy(&mut out, &mut std::io::sink()).unwrap();
    drop(out);
    let mut copy = client.copy_in("copy copied (n) from stdin").unwrap();
    copy.write_all(b"1\nnone\n").unwrap();
    assert!(copy.finish().is_err());
    client.batch_execute("truncate copied").unwrap();
}

fn errors(client: &mut Client) {
    for sql in [
        "selec 1",
        "select 1 / 0",
        "select no_such_column",
        "begin; select count(*) from pgbench_tellers; select 1 / 0",
        "select 'in a failed transaction'",
    ] {
        assert!(client.batch_execute(sql).is_err());
    }
    client.batch_execute("rollback").unwrap();
    assert!(client.query("select 1 / $1::int", &[&0]).is_err());
    assert!(client.query("selec 1", &[]).is_err());
    client
        .batch_execute(
            "do $$ begin for i in 0..20 loop begin perform 1 / (i % 2);
             exception when division_by_zero then null; end; end loop; end $$; ; ",
        )
        .unwrap();
    client.batch_execute("").unwrap();
    client.batch_execute("/* nothing */").unwrap();
}

fn cancels(client: &mut Client) {
    client.batch_execute("set statement_timeout = 5").unwrap();
    assert!(client.batch_execute("select pg_sleep(10)").is_err());
    let _ = client.query("select count(*) from pgbench_accounts a, pgbench_accounts b", &[]);
    // The time may be up before these begin, too.
    while client.batch_execute("reset statement_timeout").is_err() {}
    let token = client.cancel_token();
    let canceller = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(rand::rng().random_range(0..20)));
        let _ = token.cancel_query(NoTls);
    });
    let _ = client.batch_execute("select pg_sleep(0.03); select count(*) from pgbench_accounts");
    canceller.join().unwrap();
    // A late cancel may hit this.
    let _ = client.batch_execute("select 1");
}

fn parallel(client: &mut Client) {
    client
        .batch_execute(
            "set parallel_setup_cost = 0; set parallel_tuple_cost = 0;
             set min_parallel_table_scan_size = 0; set max_parallel_workers_per_gather = 2",
        )
        .unwrap();
    client.query("select sum(abalance) from pgbench_accounts", &[]).unwrap();
    client.batch_execute("select count(*) from pgbench_accounts").unwrap();
    std::thread::sleep(Duration::from_millis(100));
}

fn portals(client: &mut Client) {
    let mut transaction = client.transaction().unwrap();
    let statement = transaction.prepare("select aid from pgbench_accounts where aid < $1").unwrap();
    let portal = transaction.bind(&statement, &[&500]).unwrap();
    for _ in 0..4 {
        transaction.query_portal(&portal, 100).unwrap();
    }
    transaction
        .batch_execute(
            "declare c cursor for select aid from pgbench_accounts; fetch 50 from c; fetch 10 from c;
             do $$ declare opened refcursor := 'opened'; begin
                 open opened for select count(*) from pgbench_accounts;
             end $$;
             fetch all from opened",
        )
        .unwrap();
    transaction.commit().unwrap();
}

/// Sets the flag on drop.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn length() -> Duration {
    let seconds = std::env::var("PGTALLY_CONSERVATION_SECONDS");
    Duration::from_secs(seconds.map_or(12, |text| text.parse().expect("a number")))
}

fn server(settings: &[(&str, &str)]) -> Cluster {
    let cluster = support::start(
        support::plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("max_worker_processes", "8")
            // Parallel builds of pgbench's indexes have more wait events than a statement has
            // accounts.
            .setting("max_parallel_maintenance_workers", "0")
            .settings(settings.iter().copied()),
    );
    cluster.pgbench_init(2).unwrap();
    support::create_views(&cluster);
    cluster
}

#[test]
fn the_time_of_all_statements_equals_the_ledgers() {
    let cluster = server(&[("pg_tally.statements", "all")]);
    let mut observer = cluster.connect().unwrap();
    let stop = AtomicBool::new(false);
    let mut runs: Vec<_> = ["simple", "extended", "prepared"]
        .into_iter()
        .map(|protocol| {
            let run = cluster.pgbench().load(Load::TpcB).clients(2).protocol(protocol);
            run.duration(Duration::from_secs(3600)).arg("--define=scale=2").spawn().unwrap()
        })
        .collect();
    std::thread::scope(|scope| {
        scope.spawn(|| rough_life(&cluster, &stop));
        let _stop = Stop(&stop);
        let began = Instant::now();
        while began.elapsed() < length() {
            std::thread::sleep(Duration::from_secs(2));
            check_busy(&cluster, &mut observer);
        }
    });
    for run in &mut runs {
        assert!(run.running(), "the load has ended");
        run.kill();
    }
    support::eventually("all sessions have ended", || cluster.backend_pids().unwrap().len() == 1);
    // Everything is in the table now.
    let all = check_at_rest(&mut observer);
    check_activities(&mut observer);
    let (ours, ends) = check_ends(&mut observer, AT_REST);
    assert!(ours > 0.0, "of {ends} s in which sessions ended no statement has any");
    assert!(all > length().as_secs_f64(), "hardly anything was done: {all} s");
}

#[test]
fn a_statement_in_flight_shows_its_time() {
    let cluster = server(&[]);
    let mut observer = cluster.connect().unwrap();
    let sql = "select coalesce(sum(seconds) filter (where activity ~ 'PgSleep'), 0)
               from tally.statement_activities where toplevel";
    let slept = |client: &mut Client| -> f64 { client.query_one(sql, &[]).unwrap().get(0) };
    let work: [fn(&mut Client); 2] = [
        |client| client.batch_execute("select pg_sleep(3)").unwrap(),
        |client| drop(client.query("select pg_sleep($1)", &[&3f64]).unwrap()),
    ];
    for (at, work) in work.into_iter().enumerate() {
        let start = slept(&mut observer);
        let config = cluster.config();
        let sleeper = std::thread::spawn(move || work(&mut config.connect(NoTls).unwrap()));
        support::eventually("a session sleeps", || slept(&mut observer) > start + 0.1);
        let (first, began) = (slept(&mut observer), Instant::now());
        std::thread::sleep(Duration::from_secs(1));
        let (second, elapsed) = (slept(&mut observer), began.elapsed().as_secs_f64());
        assert!((second - first - elapsed).abs() < 0.1, "{first} s, {elapsed} s later {second} s");
        check_busy(&cluster, &mut observer);
        sleeper.join().unwrap();
        let after = slept(&mut observer) - start;
        assert!((3.0..3.5).contains(&after), "{after} s by protocol {at}");
        check_busy(&cluster, &mut observer);
    }
}

/// From 18 on, DECLARE gives the query of its cursor an id; on all versions a query that a function opens has one.
#[test]
fn a_commit_that_closes_a_cursor_counts_no_time_twice() {
    let cluster = support::start(
        support::flushing()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.statements", "all")
            .setting("commit_delay", "100000")
            .setting("commit_siblings", "0"),
    );
    support::create_views(&cluster);
    let mut observer = cluster.connect().unwrap();
    let mut client = cluster.connect().unwrap();
    client.batch_execute("create table written (n int)").unwrap();
    observer.batch_execute("select tally.reset()").unwrap();
    for opens in [
        "declare c cursor for select pg_sleep(0.4)",
        "do $$ declare c refcursor := 'c'; begin open c for select pg_sleep(0.4); end $$",
    ] {
        client.batch_execute("begin").unwrap();
        client.batch_execute(opens).unwrap();
        client.batch_execute("fetch all from c").unwrap();
        client.batch_execute("insert into written values (1)").unwrap();
        client.batch_execute("commit").unwrap();
    }
    let mut seconds = |of: &str| -> f64 {
        let sql = format!(
            "select coalesce(sum(seconds), 0) from tally.statement_activities a
             left join tally.statements s using (userid, dbid, toplevel, queryid) where {of}"
        );
        observer.query_one(&sql, &[]).unwrap().get(0)
    };
    let slept = seconds("toplevel and activity ~ 'PgSleep'");
    assert!(
        (0.8..1.1).contains(&slept),
        "{slept} s of 0.8 s are statements' that a client asked for"
    );
    let fetched = seconds("toplevel and activity ~ 'PgSleep' and query ilike 'fetch%'");
    assert!((fetched - slept).abs() < 1e-6, "{fetched} s of {slept} s are FETCH's");
    let nested = seconds("not toplevel and activity ~ 'PgSleep'");
    let counted = if support::major() >= 18 { slept } else { slept / 2.0 };
    assert!((nested - counted).abs() < 0.01, "{nested} s of {slept} s are the cursors' queries'");
    let delay = "activity ~* 'commit_?delay'";
    let delayed = seconds(&format!("toplevel and {delay}"));
    assert!(delayed >= 0.2, "two commits waited {delayed} s for others");
    let committed = seconds(&format!("toplevel and {delay} and query ilike 'commit%'"));
    assert!((committed - delayed).abs() < 1e-6, "{committed} s of {delayed} s are COMMIT's");
}

/// A statement in progress counts its time from the reset on, and its execution when it ends.
#[test]
fn a_reset_clears_statements_in_progress_and_loses_no_execution() {
    let cluster = server(&[]);
    let mut observer = cluster.connect().unwrap();
    let config = cluster.config();
    let sleeper = std::thread::spawn(move || {
        let mut client = config.connect(NoTls).unwrap();
        client.batch_execute("select pg_sleep(2) as over_a_reset").unwrap();
        client
    });
    let pid = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'";
    support::eventually("a session sleeps", || {
        observer.query_one(pid, &[]).unwrap().get::<_, i64>(0) == 1
    });
    std::thread::sleep(Duration::from_millis(500));
    let reset = Instant::now();
    observer.batch_execute("select tally.reset()").unwrap();
    let _client = sleeper.join().unwrap();
    let left = reset.elapsed().as_secs_f64();
    let sql = "select calls, total_exec_time / 1000, ledger_time / 1000 from tally.statements
               where query like '%over_a_reset%' and query not like '%ledger_time%'";
    let row = observer.query_one(sql, &[]).unwrap();
    let (calls, executed, ledger): (i64, f64, f64) = (row.get(0), row.get(1), row.get(2));
    assert_eq!(calls, 1);
    assert!((2.0..2.5).contains(&executed), "{executed} s");
    assert!((ledger - left).abs() < 0.1, "{ledger} s since the reset, about {left} s");
    check_busy(&cluster, &mut observer);
}
