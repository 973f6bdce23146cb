// SPDX-License-Identifier: PostgreSQL
//! Conservation per statement: in each phase, the time of all statements equals that of the ledger, while
//! sessions execute a statement, and after they have worked, waited, failed and ended.

use crate::support;
use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scratch::{Cluster, Load};

/// Permitted difference as a share of a phase's time, and in seconds.
const TOLERANCE: f64 = 0.001;
const FLOOR: f64 = 0.0005;

/// The phases in which a session works for statements.
const PHASES: &str = "'simple query', 'parse', 'bind', 'describe', 'execute', 'close', 'sync', \
                      'flush', 'function call', 'copy'";

/// The account for time in accounts beyond a statement's limit, which only statements such as parallel index
/// builds exceed.
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

/// The end of a session counts for its last statement until the session flushes its statements. The time after
/// that, and the end of a session without any statement, is only in the ledger. Therefore statements have at most
/// the ledger's time in this phase. Returns both.
fn check_ends(client: &mut Client) -> (f64, f64) {
    let seconds = |client: &mut Client, table: &str, of: &str| -> f64 {
        let sql = format!("select coalesce(sum(seconds), 0) from tally.{table} where {of}");
        client.query_one(&sql, &[]).unwrap().get(0)
    };
    let terminate = "phase = 'terminate' and";
    let ours = seconds(client, "statement_activities", &format!("{terminate} toplevel"));
    let sessions = "kind in ('client backend', 'parallel worker')";
    let all = seconds(client, "ledger", &format!("{terminate} {sessions}"));
    println!("ends: {ours} of {all} s");
    assert!(ours <= all * (1.0 + TOLERANCE) + FLOOR, "{ours} s of {all} s of ends are statements'");
    (ours, all)
}

/// Checks that the statements' time is between two readings of the ledger, within tolerances.
fn assert_between(what: &str, got: f64, (min, max): (f64, f64), below: f64, above: f64) {
    assert!(
        got >= min * (1.0 - TOLERANCE) - below && got <= max * (1.0 + TOLERANCE) + above,
        "{what}: statements have {got} s, the ledger from {min} to {max} s"
    );
}

/// Checks the statements' time between two readings of the ledger, for sessions that are idle or wait within a
/// statement. Returns the ledger's time.
fn check(client: &mut Client) -> f64 {
    let (before, ours, after) = (ledger(client), statements(client), ledger(client));
    println!("before {before:.4?}\nstatements {ours:.4?}\nafter {after:.4?}");
    for phase in ours.keys().filter(|phase| *phase != OVERFLOW) {
        assert!(after.contains_key(phase), "{phase} is none of the ledger's: {after:?}");
    }
    let of = |seconds: &Seconds, phase: &str| seconds.get(phase).copied().unwrap_or(0.0);
    let all = |seconds: &Seconds| seconds.values().sum::<f64>();
    for (phase, &most) in &after {
        let less = FLOOR + of(&ours, OVERFLOW);
        assert_between(phase, of(&ours, phase), (of(&before, phase), most), less, FLOOR);
    }
    assert_between("all", all(&ours), (all(&before), all(&after)), FLOOR, FLOOR);
    assert!(of(&ours, OVERFLOW) < 0.001 * all(&ours), "too much without an account");
    check_ends(client);
    all(&after)
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
        assert_between(account, got, (min, *max), FLOOR + overflow.0, FLOOR);
        if !account.ends_with(" cpu") {
            assert!(
                count >= min_count - overflow.1 && count <= *max_count,
                "{account}: {count} times, the ledger from {min_count} to {max_count}"
            );
        }
    }
}

/// Waits within a statement while the gate is closed.
const GATE: &str = "pg_advisory_xact_lock_shared(4711)";

/// The work of a session in a round, and how it then waits at the gate.
type Work = fn(&Cluster, &mut Client, &mut StdRng);
type Wait = fn(&mut Client);

/// Anything that could lose time.
const LIVES: [(Work, Wait); 7] = [
    (sleeps, |client| client.batch_execute(&format!("select {GATE}")).unwrap()),
    (copies, |client| {
        let mut out = client.copy_out(&format!("copy (select {GATE}) to stdout")).unwrap();
        std::io::copy(&mut out, &mut std::io::sink()).unwrap();
    }),
    (errors, |client| {
        client.batch_execute(&format!("do $$ begin perform {GATE}; end $$")).unwrap()
    }),
    (cancels, |client| drop(client.query(&format!("select {GATE}, $1::int"), &[&1]).unwrap())),
    (parallel, |client| drop(client.query(&format!("select {GATE}"), &[]).unwrap())),
    (portals, |client| {
        let fetch = format!("begin; declare c cursor for select {GATE}; fetch all from c; commit");
        client.batch_execute(&fetch).unwrap();
    }),
    // Its earlier sessions have ended, which flushes into the table.
    (sessions_end, |client| client.batch_execute(&format!("select 1; select {GATE}")).unwrap()),
];

/// A gate, closed at first.
struct Gate {
    holder: Client,
}

impl Gate {
    fn new(cluster: &Cluster) -> Gate {
        let mut gate = Gate { holder: cluster.connect().unwrap() };
        gate.close();
        gate
    }

    fn close(&mut self) {
        self.holder.batch_execute("select pg_advisory_lock(4711)").unwrap();
    }

    fn open(&mut self) {
        self.holder.batch_execute("select pg_advisory_unlock(4711)").unwrap();
    }

    /// Waits until this many sessions wait at it, according to our figures.
    fn assembled(client: &mut Client, sessions: i64) {
        let sql = "select count(*) from tally.sessions where activity = 'Lock:advisory'";
        support::eventually("the sessions wait at the gate", || {
            let waiting: i64 = client.query_one(sql, &[]).unwrap().get(0);
            if waiting == sessions {
                Ok(())
            } else {
                Err(waiting)
            }
        });
    }
}

/// Opens the gate on drop: sessions must not wait forever if a check fails.
struct Opened<'g>(&'g mut Gate);

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        self.0.open();
    }
}

fn sleeps(_: &Cluster, client: &mut Client, _: &mut StdRng) {
    client.batch_execute("select pg_sleep(0.5)").unwrap();
    client.query("select pg_sleep($1)", &[&0.3f64]).unwrap();
    client.batch_execute("select pg_sleep(0.2); select count(*) from pgbench_accounts").unwrap();
}

fn sessions_end(cluster: &Cluster, _: &mut Client, _: &mut StdRng) {
    for _ in 0..20 {
        let mut client = cluster.connect().unwrap();
        client.batch_execute("select count(*) from pgbench_branches").unwrap();
        client.batch_execute("begin; select 1 / 0").unwrap_err();
    }
}

fn copies(_: &Cluster, client: &mut Client, _: &mut StdRng) {
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

fn errors(_: &Cluster, client: &mut Client, _: &mut StdRng) {
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

fn cancels(_: &Cluster, client: &mut Client, random: &mut StdRng) {
    client.batch_execute("set statement_timeout = 5").unwrap();
    assert!(client.batch_execute("select pg_sleep(10)").is_err());
    let _ = client.query("select count(*) from pgbench_accounts a, pgbench_accounts b", &[]);
    // The time may be up before these begin, too.
    while client.batch_execute("reset statement_timeout").is_err() {}
    let token = client.cancel_token();
    let later = Duration::from_millis(random.random_range(0..20));
    let canceller = std::thread::spawn(move || {
        std::thread::sleep(later);
        let _ = token.cancel_query(NoTls);
    });
    let _ = client.batch_execute("select pg_sleep(0.03); select count(*) from pgbench_accounts");
    canceller.join().unwrap();
    // A late cancel may hit this.
    let _ = client.batch_execute("select 1");
}

fn parallel(_: &Cluster, client: &mut Client, _: &mut StdRng) {
    client
        .batch_execute(
            "set parallel_setup_cost = 0; set parallel_tuple_cost = 0;
             set min_parallel_table_scan_size = 0; set max_parallel_workers_per_gather = 2",
        )
        .unwrap();
    client.query("select sum(abalance) from pgbench_accounts", &[]).unwrap();
    client.batch_execute("select count(*) from pgbench_accounts").unwrap();
}

fn portals(_: &Cluster, client: &mut Client, _: &mut StdRng) {
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

fn server(settings: &[(&str, &str)]) -> Cluster {
    let cluster = support::start(
        support::plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("max_worker_processes", "8")
            // Parallel builds of pgbench's indexes have more wait events than a statement has
            // accounts.
            .setting("max_parallel_maintenance_workers", "0")
            // Its check would interrupt waits at the gate.
            .setting("deadlock_timeout", "1h")
            .settings(settings.iter().copied()),
    );
    cluster.pgbench_init(2).unwrap();
    support::create_views(&cluster);
    cluster
}

/// Rounds of work, after each of which every session is checked within a statement, then at its end.
fn conserve(rounds: usize, seed: u64) {
    let cluster = server(&[("pg_tally.statements", "all")]);
    let mut observer = cluster.connect().unwrap();
    let mut gate = Gate::new(&cluster);
    let mut lives = LIVES.map(|(work, wait)| (cluster.connect().unwrap(), work, wait));
    for round in 0..rounds {
        std::thread::scope(|scope| {
            for protocol in ["simple", "extended", "prepared"] {
                let run = cluster.pgbench().load(Load::TpcB).clients(2).protocol(protocol);
                let run = run.transactions(100).arg("--define=scale=2");
                scope.spawn(move || run.run().unwrap());
            }
            for (number, (client, work, _)) in lives.iter_mut().enumerate() {
                let mut random = StdRng::seed_from_u64(seed ^ (round * 100 + number) as u64);
                let cluster = &cluster;
                scope.spawn(move || (0..2).for_each(|_| work(cluster, client, &mut random)));
            }
        });
        std::thread::scope(|scope| {
            for (client, _, wait) in &mut lives {
                scope.spawn(|| wait(client));
            }
            let _open = Opened(&mut gate);
            Gate::assembled(&mut observer, LIVES.len() as i64);
            check(&mut observer);
        });
        gate.close();
    }
    drop((lives, gate));
    let sessions = "select count(*) from tally.sessions where kind = 'client backend'";
    support::eventually("all sessions have ended", || {
        observer.query_one(sessions, &[]).unwrap().get::<_, i64>(0) == 1
    });
    // Everything is in the table now.
    check(&mut observer);
    check_activities(&mut observer);
    let (ours, ends) = check_ends(&mut observer);
    assert!(ours > 0.0, "of {ends} s in which sessions ended no statement has any");
}

#[test]
fn the_time_of_all_statements_equals_the_ledgers() {
    conserve(2, 1);
}

#[test]
#[ignore = "verify: the time of all statements equals the ledger's, PGTALLY_CONSERVATION_ROUNDS (50) rounds"]
fn verify_the_time_of_all_statements_equals_the_ledgers() {
    let rounds = std::env::var("PGTALLY_CONSERVATION_ROUNDS");
    let rounds = rounds.map_or(50, |text| text.parse().unwrap());
    let claim = "the time of all statements equals the ledger's";
    support::verify::Claim { text: claim, alarm: 0.0, n: 1, m: 1 }.check(|seed| {
        conserve(rounds, seed);
        let result = format!("{rounds} rounds");
        support::verify::Trial { holds: true, result, half_width: "-".into() }
    });
}

/// A session that executes a statement until it is released.
struct InFlight {
    gate: Gate,
    began: Instant,
    thread: std::thread::JoinHandle<Client>,
    waiting: Instant,
}

impl InFlight {
    fn start(cluster: &Cluster, observer: &mut Client, wait: Wait) -> InFlight {
        let gate = Gate::new(cluster);
        let mut client = cluster.connect().unwrap();
        let began = Instant::now();
        let thread = std::thread::spawn(move || {
            wait(&mut client);
            client
        });
        Gate::assembled(observer, 1);
        InFlight { gate, began, thread, waiting: Instant::now() }
    }

    /// Ends it. Returns the session, and bounds of how long it has waited.
    fn end(mut self) -> (Client, (f64, f64)) {
        let min = self.waiting.elapsed().as_secs_f64();
        self.gate.open();
        let client = self.thread.join().unwrap();
        (client, (min, self.began.elapsed().as_secs_f64()))
    }
}

/// Checks that a time measured by the server lies between two that clients measured around it.
fn assert_within(what: &str, got: f64, (min, max): (f64, f64)) {
    assert!(
        got >= min * (1.0 - TOLERANCE) && got <= max * (1.0 + TOLERANCE),
        "{what}: {got} s of {min} to {max} s"
    );
}

#[test]
fn a_statement_in_flight_shows_its_time() {
    let cluster = server(&[]);
    let mut observer = cluster.connect().unwrap();
    let sql = "select coalesce(sum(seconds) filter (where activity = 'Lock:advisory'), 0)
               from tally.statement_activities where toplevel";
    let waited = |client: &mut Client| -> f64 { client.query_one(sql, &[]).unwrap().get(0) };
    for (at, (_, wait)) in LIVES.into_iter().enumerate() {
        let start = waited(&mut observer);
        let session = InFlight::start(&cluster, &mut observer, wait);
        let before = Instant::now();
        let first = waited(&mut observer);
        let between = Instant::now();
        std::thread::sleep(Duration::from_millis(200));
        let min = between.elapsed().as_secs_f64();
        let second = waited(&mut observer);
        let max = before.elapsed().as_secs_f64();
        assert_within(&format!("statement {at} in flight"), second - first, (min, max));
        check(&mut observer);
        let (_client, bracket) = session.end();
        let idle = "select count(*) from tally.sessions where activity = 'Lock:advisory'";
        support::eventually("it has ended", || {
            observer.query_one(idle, &[]).unwrap().get::<_, i64>(0) == 0
        });
        assert_within(&format!("statement {at}"), waited(&mut observer) - start, bracket);
        check(&mut observer);
    }
}

/// From 18 on, DECLARE gives the query of its cursor an ID; in all versions, a query that a function opens has
/// one.
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
    let seconds = |observer: &mut Client, of: &str| -> f64 {
        let sql = format!(
            "select coalesce(sum(seconds), 0) from tally.statement_activities a
             left join tally.statements s using (userid, dbid, toplevel, queryid) where {of}"
        );
        observer.query_one(&sql, &[]).unwrap().get(0)
    };
    let (asleep, mut slept) = ("toplevel and activity ~ 'PgSleep'", [0.0; 2]);
    for (at, opens) in [
        "declare c cursor for select pg_sleep(0.4)",
        "do $$ declare c refcursor := 'c'; begin open c for select pg_sleep(0.4); end $$",
    ]
    .into_iter()
    .enumerate()
    {
        client.batch_execute("begin").unwrap();
        client.batch_execute(opens).unwrap();
        let began = Instant::now();
        client.batch_execute("fetch all from c").unwrap();
        let fetched = began.elapsed().as_secs_f64();
        client.batch_execute("insert into written values (1)").unwrap();
        client.batch_execute("commit").unwrap();
        slept[at] = seconds(&mut observer, asleep) - slept[0];
        assert_within("asleep in statements of the client", slept[at], (0.4, fetched));
    }
    let all = slept[0] + slept[1];
    let fetched = seconds(&mut observer, &format!("{asleep} and query ilike 'fetch%'"));
    assert!((fetched - all).abs() < 1e-6, "{fetched} s of {all} s are FETCH's");
    let nested = seconds(&mut observer, "not toplevel and activity ~ 'PgSleep'");
    let counted = if support::major() >= 18 { all } else { slept[1] };
    assert!((nested - counted).abs() < 1e-6, "{nested} s of {counted} s are the cursors' queries'");
    let delay = "activity ~* 'commit_?delay'";
    let delayed = seconds(&mut observer, &format!("toplevel and {delay}"));
    assert!(delayed >= 0.2, "two commits waited {delayed} s for others");
    let committed =
        seconds(&mut observer, &format!("toplevel and {delay} and query ilike 'commit%'"));
    assert!((committed - delayed).abs() < 1e-6, "{committed} s of {delayed} s are COMMIT's");
}

/// A statement in progress counts its time from the reset on, and its execution when it ends.
#[test]
fn a_reset_clears_statements_in_progress_and_loses_no_execution() {
    let cluster = server(&[]);
    let mut observer = cluster.connect().unwrap();
    let session = InFlight::start(&cluster, &mut observer, |client| {
        client.batch_execute(&format!("select {GATE} as over_a_reset")).unwrap();
    });
    std::thread::sleep(Duration::from_millis(200));
    let before = Instant::now();
    observer.batch_execute("select tally.reset()").unwrap();
    let after = Instant::now();
    std::thread::sleep(Duration::from_millis(100));
    let min = after.elapsed().as_secs_f64();
    let (_client, bracket) = session.end();
    let sql = "select calls, total_exec_time / 1000, ledger_time / 1000 from tally.statements
               where query like '%over_a_reset%' and query not like '%ledger_time%'";
    let row = support::eventually("its execution is counted", || {
        let row = observer.query_opt(sql, &[]).unwrap()?;
        (row.get::<_, i64>(0) == 1).then_some(row)
    });
    let most = before.elapsed().as_secs_f64();
    assert_within("executed", row.get(1), bracket);
    assert_within("since the reset", row.get(2), (min, most));
    check(&mut observer);
}
