// SPDX-License-Identifier: PostgreSQL
//! The blockers that waiting sessions look up themselves are equal to pg_blocking_pids() for random lock graphs:
//! relations, rows, transactions, advisory locks, positions in queues, deadlocks, parallel workers.
//!
//! Before the next statement is sent, the previous one has either completed or is shown as waiting in the
//! server's lock table, so each seed has its graph. PGTALLY_GRAPHS sets the number of graphs; `make verify` tries
//! others.

use crate::support;
use crate::support::verify::{Claim, Trial};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scratch::Cluster;
use segment::{Blocked, Interval, Segment};
use view::blocking::Waiting;

const GRAPHS: u64 = 96;
const SEED: u64 = 1;
/// Number of graphs at a time, each with sessions and objects of its own.
const AT_A_TIME: usize = 16;
const SESSIONS: usize = 8;
const STEPS: usize = 14;
/// Long enough for all sessions to look up their blockers.
const PATIENCE: Duration = Duration::from_secs(60);

/// A session that executes the statements it is sent, one after the other.
struct Session {
    pid: i32,
    orders: Sender<String>,
    busy: Arc<AtomicBool>,
}

impl Session {
    fn start(cluster: &Cluster) -> Session {
        let mut client = cluster.config().connect(NoTls).unwrap();
        let pid = support::pid_of(&mut client);
        let (orders, incoming) = channel::<String>();
        let busy = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&busy);
        std::thread::spawn(move || {
            for sql in incoming {
                // Errors are part of it: a failed transaction holds no locks.
                let _ = client.simple_query(&sql);
                done.store(false, Ordering::Release);
            }
        });
        Session { pid, orders, busy }
    }

    fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Acquire)
    }

    fn order(&self, sql: &str) {
        self.busy.store(true, Ordering::Release);
        self.orders.send(sql.to_string()).unwrap();
    }
}

/// A graph's sessions, and one that observes who waits.
struct Sessions {
    all: Vec<Session>,
    observer: Mutex<Client>,
}

impl Sessions {
    fn start(cluster: &Cluster) -> Self {
        let mut observer = cluster.connect().unwrap();
        observer.batch_execute(&format!("set {} = off", force_parallel())).unwrap();
        let all = (0..SESSIONS).map(|_| Session::start(cluster)).collect();
        Self { all, observer: Mutex::new(observer) }
    }

    /// Sends a statement; returns when every session is done, or waits for a lock.
    fn order(&self, session: usize, sql: &str) {
        // A parallel query waits if one of its processes does.
        let waiting = "select distinct coalesce(a.leader_pid, a.pid) from pg_locks l \
                       join pg_stat_activity a using (pid) where not l.granted";
        self.all[session].order(sql);
        let began = Instant::now();
        let busy = |session: &&Session| session.is_busy();
        loop {
            std::thread::sleep(Duration::from_millis(1));
            if !self.all.iter().any(|session| busy(&session)) {
                return;
            }
            let rows = self.observer.lock().unwrap().query(waiting, &[]).unwrap();
            let waiting: BTreeSet<i32> = rows.iter().map(|row| row.get(0)).collect();
            if self.all.iter().filter(busy).all(|session| waiting.contains(&session.pid)) {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "{sql}: neither done nor waiting");
        }
    }
}

/// The setting that makes queries run in parallel workers.
fn force_parallel() -> &'static str {
    if support::major() >= 16 {
        "debug_parallel_query"
    } else {
        "force_parallel_mode"
    }
}

/// A statement that takes a lock of the graph, and perhaps waits for it.
fn statement(random: &mut StdRng, graph: usize) -> String {
    const MODES: [&str; 8] = [
        "access share",
        "row share",
        "row exclusive",
        "share update exclusive",
        "share",
        "share row exclusive",
        "exclusive",
        "access exclusive",
    ];
    const STRENGTHS: [&str; 4] = ["update", "no key update", "share", "key share"];
    let key = random.random_range(1..4);
    match random.random_range(0..20) {
        0..4 => format!("select pg_advisory_xact_lock({graph}, {key})"),
        4..6 => format!("select pg_advisory_xact_lock_shared({graph}, {key})"),
        6..10 => {
            let mode = MODES[random.random_range(0..MODES.len())];
            format!("lock table t{graph} in {mode} mode")
        }
        10..14 => format!("update t{graph} set v = v + 1 where id = {key}"),
        14..17 => {
            let strength = STRENGTHS[random.random_range(0..STRENGTHS.len())];
            format!("select * from t{graph} where id = {key} for {strength}")
        }
        17..18 => format!("insert into t{graph} values ({}, 0)", 100 + key),
        // A parallel worker or its leader waits.
        _ => format!("select lock_in_worker({graph}, {key})"),
    }
}

/// The blockers of each waiting session; the processes of a parallel query count as one.
type Graph = BTreeMap<i32, BTreeSet<i32>>;

fn theirs(client: &mut Client) -> Graph {
    // The function is volatile; it takes all of the lock manager's locks each time.
    let sql = "select coalesce(leader_pid, pid), pg_blocking_pids(coalesce(leader_pid, pid)) \
               from pg_stat_activity where wait_event_type = 'Lock'";
    let rows = client.query(sql, &[]).unwrap();
    let waits = rows.iter().map(|row| (row.get(0), row.get::<_, Vec<i32>>(1)));
    waits.map(|(pid, blockers)| (pid, blockers.into_iter().collect())).collect()
}

/// Ours, and the sessions that have more blockers than a slot can list.
fn ours(segment: &mut Segment) -> (Graph, BTreeMap<i32, u16>) {
    let blocked = segment.blocked().unwrap();
    let snapshot = segment.snapshot(None).unwrap();
    let sessions = Interval::between(segment, None, &snapshot).sessions;
    let (mut graph, mut more) = (Graph::new(), BTreeMap::new());
    let waiting = Waiting::from_sessions(&sessions);
    for wait in &blocked {
        let Some(row) = waiting.row(wait) else { continue };
        let pid = row.leader_pid.unwrap_or(row.pid);
        graph.entry(pid).or_default().extend(wait.blockers.iter().copied());
        if usize::from(wait.count) > wait.blockers.len() {
            more.insert(pid, wait.count);
        }
    }
    (graph, more)
}

/// What differs.
fn differences(theirs: &Graph, ours: &(Graph, BTreeMap<i32, u16>)) -> Vec<String> {
    let (graph, more) = ours;
    let pids: BTreeSet<i32> = theirs.keys().chain(graph.keys()).copied().collect();
    let none = BTreeSet::new();
    let differs = |pid: &i32| {
        let (their, our) = (theirs.get(pid).unwrap_or(&none), graph.get(pid).unwrap_or(&none));
        match more.get(pid) {
            Some(count) => !our.is_subset(their) || their.len() != usize::from(*count),
            None => our != their,
        }
    };
    let describe = |pid: i32| {
        format!("{pid}: {:?} by the server, {:?} by us", theirs.get(&pid), graph.get(&pid))
    };
    pids.into_iter().filter(differs).map(describe).collect()
}

/// What occurred in the graphs of a round.
#[derive(Debug, Default)]
struct SeenGraph {
    graphs: u64,
    waits: usize,
    blockers: usize,
    more_than_listed: usize,
    circles: usize,
    workers: usize,
    /// Waits for another waiter of the same lock, in its queue.
    in_queue: usize,
    kinds: BTreeMap<u8, usize>,
}

/// Whether any session waits for itself behind others.
fn has_circle(graph: &Graph, pid: i32) -> bool {
    let mut all = BTreeSet::new();
    let mut next = vec![pid];
    while let Some(at) = next.pop() {
        for blocker in graph.get(&at).into_iter().flatten() {
            if *blocker == pid {
                return true;
            }
            if all.insert(*blocker) {
                next.push(*blocker);
            }
        }
    }
    false
}

#[test]
fn blockers_equal_those_of_the_server() {
    compare(number_of_graphs(GRAPHS), SEED);
}

#[test]
#[ignore = "verify: who blocks whom in random graphs of locks"]
fn verify_blockers_equal_those_of_the_server() {
    let graphs = number_of_graphs(1000);
    let text = "blockers equal those of pg_blocking_pids() in each of 1,000 random graphs of locks";
    Claim { text, alarm: 0.0, n: 1, m: 1 }.check(|seed| {
        let seen = compare(graphs, seed);
        Trial { holds: true, result: format!("{} waits", seen.waits), half_width: "-".into() }
    });
}

fn number_of_graphs(usual: u64) -> u64 {
    std::env::var("PGTALLY_GRAPHS").map_or(usual, |text| text.parse().expect("a number"))
}

/// Compares that many graphs, the first of which has this seed.
fn compare(wanted: u64, seed: u64) -> SeenGraph {
    println!("seed {seed}");
    let force = force_parallel();
    let cluster = support::start(
        support::plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("deadlock_timeout", "10min")
            .setting("max_connections", "200")
            .setting("max_worker_processes", "150")
            .setting("max_parallel_workers", "140")
            .setting(force, "on")
            .setting("autovacuum", "off"),
    );
    let mut client = cluster.connect().unwrap();
    client
        .batch_execute(&format!(
            "set {force} = off; \
             create function lock_in_worker(int, int) returns int language plpgsql parallel safe as \
             'begin perform pg_advisory_xact_lock($1, $2); return 1; end'"
        ))
        .unwrap();
    for graph in 0..AT_A_TIME {
        let sql = format!(
            "create table t{graph} (id int primary key, v int); \
             insert into t{graph} select n, 0 from generate_series(1, 3) n"
        );
        client.batch_execute(&sql).unwrap();
    }
    let mut segment = Segment::open(&support::segment(&cluster)).unwrap();
    let graphs: Vec<Sessions> = (0..AT_A_TIME).map(|_| Sessions::start(&cluster)).collect();

    let mut seen = SeenGraph::default();
    while seen.graphs < wanted {
        std::thread::scope(|scope| {
            for (graph, sessions) in graphs.iter().enumerate() {
                let mut random =
                    StdRng::seed_from_u64(seed.wrapping_add(seen.graphs + graph as u64));
                scope.spawn(move || {
                    let members = random.random_range(2..=SESSIONS);
                    (0..members).for_each(|session| sessions.order(session, "begin"));
                    if members == SESSIONS && random.random_bool(0.5) {
                        // More sessions block the last one than a slot can list.
                        let lock = format!("select pg_advisory_xact_lock_shared({graph}, 1)");
                        (1..SESSIONS).for_each(|session| sessions.order(session, &lock));
                        sessions.order(0, &format!("select pg_advisory_xact_lock({graph}, 1)"));
                    }
                    for _ in 0..random.random_range(members..=STEPS) {
                        let session = random.random_range(0..members);
                        let sql = statement(&mut random, graph);
                        if !sessions.all[session].is_busy() {
                            sessions.order(session, &sql);
                        }
                    }
                });
            }
        });
        // Nothing changes now. A session looks up its blockers again at least once per second.
        let (mut their, mut our) = (theirs(&mut client), ours(&mut segment));
        let began = Instant::now();
        let mut wrong = differences(&their, &our);
        while !wrong.is_empty() && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(50));
            (their, our) = (theirs(&mut client), ours(&mut segment));
            wrong = differences(&their, &our);
        }
        assert!(
            wrong.is_empty(),
            "graphs from seed {}: {} of {} waits differ\n{}",
            seed.wrapping_add(seen.graphs),
            wrong.len(),
            their.len(),
            wrong.join("\n")
        );
        seen.graphs += AT_A_TIME as u64;
        seen.waits += their.len();
        seen.blockers += their.values().map(BTreeSet::len).sum::<usize>();
        seen.more_than_listed += our.1.len();
        seen.circles += their.keys().filter(|pid| has_circle(&their, **pid)).count();
        let blocked: Vec<Blocked> = segment.blocked().unwrap();
        let members: BTreeSet<i32> =
            graphs.iter().flat_map(|graph| &graph.all).map(|session| session.pid).collect();
        for wait in blocked
            .iter()
            .filter(|session| our.0.contains_key(&session.pid) || !members.contains(&session.pid))
        {
            *seen.kinds.entry(wait.lock.kind).or_default() += 1;
            seen.workers += usize::from(!members.contains(&wait.pid));
        }
        let lock_of = |pid: &i32| {
            blocked.iter().find(|session| session.pid == *pid).map(|session| &session.lock)
        };
        let waits =
            our.0.iter().flat_map(|(pid, them)| them.iter().map(move |blocker| (pid, blocker)));
        let queues =
            |(a, b): &(&i32, &i32)| lock_of(a).is_some_and(|lock| lock_of(b) == Some(lock));
        seen.in_queue += waits.filter(queues).count();
        // The transactions end; a waiter that gets its lock meanwhile completes as well.
        let all: Vec<&Session> = graphs.iter().flat_map(|graph| &graph.all).collect();
        while all.iter().any(|session| session.is_busy()) {
            let busy: Vec<i32> =
                all.iter().filter(|session| session.is_busy()).map(|session| session.pid).collect();
            client
                .query("select pg_cancel_backend(pid) from unnest($1::int[]) pid", &[&busy])
                .unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
        for graph in &graphs {
            (0..SESSIONS).for_each(|session| graph.order(session, "rollback"));
        }
        support::eventually("nobody is blocked", || {
            theirs(&mut client).is_empty() && ours(&mut segment).0.is_empty()
        });
    }
    println!("{seen:?}");
    assert!(seen.waits as u64 >= wanted, "{seen:?}");
    // Relations, rows, transactions, advisory locks.
    for kind in [0, 4, 5, 10] {
        assert!(seen.kinds.contains_key(&kind), "no lock of type {kind}: {seen:?}");
    }
    assert!(seen.circles > 0 && seen.workers > 0 && seen.more_than_listed > 0, "{seen:?}");
    assert!(seen.in_queue > 0, "{seen:?}");
    seen
}
