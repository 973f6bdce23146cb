// SPDX-License-Identifier: PostgreSQL
//! Damage to the segment's file never stops a running server.
//!
//! Random bytes are written in 20 rounds with a fixed seed; `make verify` runs 500 rounds with a random one.
//! PGTALLY_ATTACK_ROUNDS sets another number.

use crate::support;
use crate::support::verify::{Claim, Trial};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use postgres::Client;
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};
use scratch::{Cluster, Load, RunningPgbench, StopMode};
use segment::layout::header;
use segment::Segment;

const HEADER: u64 = header::SIZE as u64;
/// End of the words that readers look at.
const HEADER_END: u64 = header::ENDED_TICK as u64;
const SLOTS: u64 = header::SLOTS as u64;
const STATS_PER_BOOK: u64 = header::STATS_PER_BOOK as u64;
const ENTRIES: u64 = header::ENTRIES as u64;
const PID_NAMESPACE: u64 = header::PID_NAMESPACE as u64;
const SETS: u64 = header::SETS as u64;
const SYSTEM_ID: u64 = header::SYSTEM_ID as u64;
const STATEMENTS_DROPPED: u64 = header::STATEMENTS_DROPPED as u64;
const MERGE_LOCK: u64 = header::MERGE_LOCK as u64;
const MERGE_LOCK_BOOT_NS: u64 = header::MERGE_LOCK_BOOT_NS as u64;

fn rounds(otherwise: u32) -> u32 {
    std::env::var("PGTALLY_ATTACK_ROUNDS").map_or(otherwise, |text| text.parse().unwrap())
}

/// Small books, so that random bytes hit memory in use.
fn server() -> Cluster {
    server_with_statements("200")
}

fn server_with_statements(max: &str) -> Cluster {
    let cluster = support::start(
        support::plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("restart_after_crash", "on")
            .setting("autovacuum_naptime", "1s")
            .setting("pg_tally.max_statistics", "128")
            .setting("pg_tally.max_statements", max)
            .setting("pg_tally.max_relations", "50"),
    );
    cluster.pgbench_init(1).unwrap();
    support::create_views(&cluster);
    cluster
}

/// A server, its postmaster and its segment's file.
struct Victim {
    cluster: Cluster,
    postmaster: u32,
    path: PathBuf,
    file: File,
}

impl Victim {
    fn new(cluster: Cluster) -> Self {
        let path = support::segment(&cluster);
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        Self { postmaster: cluster.postmaster_pid().unwrap(), path, file, cluster }
    }

    /// Opens the file again, because the server may have created another one.
    fn reopen(&mut self) {
        self.file = OpenOptions::new().read(true).write(true).open(&self.path).unwrap();
    }

    fn put(&self, offset: u64, bytes: &[u8]) {
        self.file.write_all_at(bytes, offset).unwrap();
    }

    fn word(&self, offset: u64) -> u64 {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, offset).unwrap();
        u64::from_ne_bytes(bytes)
    }

    fn crashes(&self) -> usize {
        self.cluster.log().matches("was terminated by signal").count()
    }

    /// Asserts that after `what` the same postmaster runs and accepts sessions.
    fn survives(&self, what: &str) {
        support::eventually(&format!("sessions are accepted after {what}"), || {
            assert!(scratch::alive(self.postmaster), "the postmaster died of {what}");
            self.cluster.connect().is_ok_and(|mut client| client.simple_query("select 1").is_ok())
        });
        assert_eq!(self.cluster.postmaster_pid().unwrap(), self.postmaster, "after {what}");
    }
}

/// Sessions that stay connected, and sessions that connect for each transaction; both run for a while.
fn load(cluster: &Cluster) -> [RunningPgbench; 2] {
    load_of(cluster, 300, 50)
}

/// The same, without end.
fn endless_load(cluster: &Cluster) -> [RunningPgbench; 2] {
    load_of(cluster, 10_000_000, 10_000_000)
}

fn load_of(cluster: &Cluster, lasting: u64, short: u64) -> [RunningPgbench; 2] {
    let of_lasting = cluster.pgbench().load(Load::TpcB).clients(3).arg("--max-tries=100");
    let of_short = cluster.pgbench().load(Load::Select).clients(1).arg("-C");
    [
        of_lasting.transactions(lasting).spawn().unwrap(),
        of_short.transactions(short).spawn().unwrap(),
    ]
}

/// Waits until the server has worked, that is, has inserted this many bytes of WAL.
fn has_worked(client: &mut Client, bytes: i64) {
    let mut so_far = || -> i64 {
        let sql = "select (pg_current_wal_insert_lsn() - '0/0')::bigint";
        client.query_one(sql, &[]).unwrap().get(0)
    };
    let begin = so_far();
    support::eventually("the server works", || so_far() >= begin + bytes);
}

#[test]
fn truncating_the_file_ends_no_process() {
    let mut victim = Victim::new(server());
    for length in [0, 8, HEADER, 3 * HEADER, 1 << 20] {
        let mut client = victim.cluster.connect().unwrap();
        let load = load(&victim.cluster);
        has_worked(&mut client, 30_000);
        victim.file.set_len(length).unwrap();
        for bench in load {
            let result = bench.wait().unwrap();
            assert_eq!(result.failed, 0, "cut to {length}");
            assert!(result.transactions > 0, "cut to {length}");
        }
        victim.survives(&format!("a cut to {length} bytes"));
        assert_eq!(victim.crashes(), 0, "{}", victim.cluster.log_tail(20));
        // A new session reports why it has no slot.
        let failure =
            victim.cluster.psql("select value from tally.status where name = 'reason'").unwrap();
        assert!(failure.contains("was truncated"), "{length}: {failure}");
        // The next start creates another file.
        victim.cluster.restart().unwrap();
        victim.postmaster = victim.cluster.postmaster_pid().unwrap();
        victim.reopen();
        let active = "select value from tally.status where name = 'active'";
        assert_eq!(victim.cluster.psql(active).unwrap().trim(), "yes");
    }
}

#[test]
fn removing_the_file_ends_no_process() {
    let victim = Victim::new(server());
    std::fs::remove_file(&victim.path).unwrap();
    let [lasting, short] = load(&victim.cluster);
    assert_eq!(lasting.wait().unwrap().failed + short.wait().unwrap().failed, 0);
    // After a crash the server creates a new file.
    support::eventually("the sessions have ended", || {
        victim.cluster.backend_pids().unwrap().is_empty()
    });
    let checkpointer = victim
        .cluster
        .processes()
        .into_iter()
        .find(|process| process.title.contains("checkpointer"))
        .unwrap();
    victim.cluster.kill9(checkpointer.pid).unwrap();
    support::eventually("the server has restarted", || victim.crashes() == 1);
    victim.survives("a crash without a segment");
    let mut segment = Segment::open(&victim.path).unwrap();
    let snapshot = segment.snapshot(None).unwrap();
    assert!(snapshot.books.len() > 3, "{}", snapshot.books.len());
    // The new file lists the probes too.
    assert!(segment.probes().unwrap().iter().any(|probe| probe.name == "import fsync"));
}

#[test]
fn no_word_of_the_header_ends_the_postmaster() {
    let victim = Victim::new(server());
    for (n, offset) in (0..HEADER_END).step_by(8).enumerate() {
        let before = victim.word(offset);
        for word in [u64::MAX, 0x7FFF_FFFF_FFFF_FFFF] {
            victim.put(offset, &word.to_ne_bytes());
            // A session starts, works and ends.
            let session = victim.cluster.connect();
            assert!(scratch::alive(victim.postmaster), "the postmaster died of word {offset}");
            if let Ok(mut client) = session {
                let _ = client.simple_query("select count(*) from pgbench_branches");
            }
        }
        victim.put(offset, &before.to_ne_bytes());
        if n % 32 == 0 {
            victim.survives(&format!("words up to {offset}"));
        }
    }
    victim.survives("every word of the header");
    assert_eq!(victim.crashes(), 0, "{}", victim.cluster.log_tail(20));
}

#[test]
fn words_from_which_addresses_are_computed_are_not_trusted() {
    let victim = Victim::new(server());
    let mut busy = endless_load(&victim.cluster);
    let mut idle = victim.cluster.connect().unwrap();
    for offset in [SLOTS, STATS_PER_BOOK, ENTRIES] {
        let before = victim.word(offset);
        victim.put(offset, &[0xFF; 8]);
        has_worked(&mut idle, 30_000);
        idle.simple_query("select 1").unwrap();
        drop(victim.cluster.connect().unwrap());
        victim.put(offset, &before.to_ne_bytes());
    }
    assert!(busy.iter_mut().all(RunningPgbench::running), "{}", victim.cluster.log_tail(20));
    busy.iter_mut().for_each(RunningPgbench::kill);
    victim.survives("three words");
    assert_eq!(victim.crashes(), 0, "{}", victim.cluster.log_tail(20));
}

/// Ranges of the file that have memory, and are therefore in use.
fn extents(file: &File) -> Vec<(u64, u64)> {
    let mut extents = Vec::new();
    let mut at = 0;
    while let Ok(from) = rustix::fs::seek(file, rustix::fs::SeekFrom::Data(at)) {
        let to = rustix::fs::seek(file, rustix::fs::SeekFrom::Hole(from)).unwrap();
        extents.push((from, to));
        at = to;
    }
    extents
}

/// Writes random or extreme bytes to a range in use; returns what it wrote, for messages.
fn scribble(victim: &Victim, random: &mut StdRng) -> String {
    let extents = extents(&victim.file);
    if extents.is_empty() {
        return "nothing".into();
    }
    let (from, to) = extents[random.random_range(0..extents.len())];
    let offset = match random.random_range(0..4) {
        0 => random.random_range(0..HEADER / 8) * 8,
        _ => random.random_range(from / 8..to / 8) * 8,
    };
    let length = *[4, 8, 8, 64, 512, 4096][random.random_range(0..6)..].first().unwrap();
    let mut bytes = vec![0; length];
    match random.random_range(0..4) {
        0 => bytes.fill(0xFF),
        1 => bytes.fill(0),
        2 => bytes.fill(random.random()),
        _ => random.fill_bytes(&mut bytes),
    }
    // Never beyond the end: extending the file is another attack.
    let length = length.min((to.max(HEADER) - offset.min(to.max(HEADER))) as usize);
    victim.put(offset, &bytes[..length]);
    format!("{length} bytes {:02x?}... at {offset}", &bytes[..length.min(8)])
}

/// Queries that read or reset the segment.
const QUERIES: [&str; 9] = [
    "select count(*) from tally.ledger",
    "select count(*) from tally.sessions",
    "select count(*) from tally.statements",
    "select count(*) from tally.relations",
    "select count(*) from tally.locks",
    "select count(*) from tally.events",
    "select * from tally.checkpoints",
    "select count(*) from tally.status",
    "select tally.reset()",
];

#[test]
fn random_bytes_in_a_live_segment_end_neither_postmaster_nor_backends() {
    const SEED: u64 = 7;
    random_bytes(rounds(20), SEED);
}

#[test]
#[ignore = "verify: random bytes in a live segment"]
fn verify_random_bytes_in_a_live_segment_end_no_process() {
    let text = "random bytes in a live segment end neither postmaster nor backends";
    Claim { text, alarm: 0.0, n: 1, m: 1 }.check(|seed| {
        let result = random_bytes(rounds(500), seed);
        Trial { holds: true, result, half_width: "-".into() }
    });
}

/// Returns a summary.
fn random_bytes(rounds: u32, seed: u64) -> String {
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut victim = Victim::new(server());
    let mut busy = endless_load(&victim.cluster);
    let mut starts = 0;
    for round in 0..rounds {
        let mut written = Vec::new();
        for _ in 0..random.random_range(1..20) {
            written.push(scribble(&victim, &mut random));
        }
        if random.random_bool(0.3) {
            let level = ["off", "waits", "locks"][random.random_range(0..3)];
            let _ = support::tally().args(["level", level]).arg(&victim.path).output();
        }
        let query = QUERIES[random.random_range(0..QUERIES.len())];
        if let Ok(mut client) = victim.cluster.connect() {
            let _ = client.simple_query(query);
            let _ = client.simple_query("select count(*) from pgbench_accounts where aid < 100");
        }
        assert!(
            scratch::alive(victim.postmaster),
            "round {round}, seed {seed}: the postmaster died after {written:#?}\n{}",
            victim.cluster.log_tail(20)
        );
        // Starts with a new file, as after damage that cannot be repaired.
        if round % 8 == 7 {
            victim.survives(&format!("round {round}, seed {seed}"));
            victim.cluster.stop(StopMode::Fast).unwrap();
            let _ = std::fs::remove_file(&victim.path);
            victim.cluster.start().unwrap();
            victim.postmaster = victim.cluster.postmaster_pid().unwrap();
            victim.reopen();
            starts += 1;
        } else if !victim.path.exists() || victim.word(0) == 0 {
            victim.survives(&format!("round {round}, seed {seed}"));
            victim.reopen();
        }
        if busy.iter_mut().any(|bench| !bench.running()) {
            busy.iter_mut().for_each(RunningPgbench::kill);
            victim.survives("the end of a load");
            busy = endless_load(&victim.cluster);
        }
    }
    busy.iter_mut().for_each(RunningPgbench::kill);
    victim.survives("all rounds");
    // Backends do not crash either, although their figures are wrong.
    let panics = victim.cluster.log().matches("PANIC").count();
    assert_eq!(panics, 0, "{}", victim.cluster.log_tail(50));
    assert_eq!(
        victim.crashes(),
        0,
        "seed {seed}: a backend crashed\n{}",
        victim.cluster.log_tail(50)
    );
    victim.cluster.stop(StopMode::Fast).unwrap();
    let summary = format!("{rounds} rounds, {starts} starts with a new file");
    println!("{summary}");
    summary
}

fn boot_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// An idle process that plays the part of one that was stopped while holding locks.
fn holder() -> std::process::Child {
    std::process::Command::new("sleep").arg("600").spawn().unwrap()
}

/// Runs `work` while blocking system calls are traced in all of the server's processes; no session's process
/// makes any.
fn no_session_waits(victim: &Victim, work: impl FnOnce() -> Vec<i32>) {
    let postmaster = i32::try_from(victim.postmaster).unwrap();
    let trace =
        support::strace::Strace::start("clock_nanosleep,nanosleep,sched_yield", &[postmaster]);
    let sessions = work();
    if let Some(calls) = trace.map(support::strace::Strace::stop) {
        let waited = calls.iter().find(|call| sessions.contains(&call.pid));
        assert!(waited.is_none(), "a session waited: {waited:?}");
    }
}

/// According to the segment, a stopped process holds the merge lock.
#[test]
fn a_stopped_holder_of_the_merge_lock_delays_no_session() {
    let victim = Victim::new(server());
    let mut holder = holder();
    victim.put(MERGE_LOCK_BOOT_NS, &boot_ns().to_ne_bytes());
    victim.put(MERGE_LOCK, &holder.id().to_ne_bytes());
    no_session_waits(&victim, || {
        (0..40).map(|_| support::pid_of(&mut victim.cluster.connect().unwrap())).collect()
    });
    holder.kill().unwrap();
    holder.wait().unwrap();
    // Now that the holder has ended, the next session merges all of them.
    drop(victim.cluster.connect().unwrap());
    support::eventually("all ended sessions are merged", || {
        drop(victim.cluster.connect().unwrap());
        let segment = Segment::open(&victim.path).unwrap();
        segment.population().unwrap() < 12
    });
}

/// According to the segment, a stopped process holds the locks of all sets of statements. Sessions execute new
/// statements and end, while others do the same; each execution is counted, with its text once the process has
/// ended.
#[test]
fn a_stopped_holder_of_the_locks_of_statements_delays_no_session_and_costs_no_count() {
    const SESSIONS: usize = 8;
    const STATEMENTS: usize = 20;
    // Space for those of the extension's script, too: none may be evicted.
    let victim = Victim::new(server_with_statements("1000"));
    let execute = |client: &mut Client, session: usize| {
        for n in 0..STATEMENTS {
            // The number of terms makes it another statement.
            let terms = ["1"].repeat(2 + session * STATEMENTS + n).join("+");
            client.simple_query(&format!("select {terms} as held")).unwrap();
        }
    };
    let mut stay: Vec<_> = (0..SESSIONS).map(|_| victim.cluster.connect().unwrap()).collect();
    let mut pids: Vec<_> = stay.iter_mut().map(support::pid_of).collect();
    let mut holder = holder();
    let (sets, shape) = (victim.word(SETS), victim.word(SETS + 8));
    let (count, stride) = (shape & 0xFFFF_FFFF, shape >> 32);
    for set in 0..count {
        victim.put(sets + set * stride + 8, &boot_ns().to_ne_bytes());
        victim.put(sets + set * stride, &holder.id().to_ne_bytes());
    }
    no_session_waits(&victim, || {
        for (session, client) in stay.iter_mut().enumerate() {
            execute(client, session);
            // The statements that the ended sessions leave must fit into the one slot that they all use.
            if session < 2 {
                let mut ends = victim.cluster.connect().unwrap();
                pids.push(support::pid_of(&mut ends));
                execute(&mut ends, session);
            }
        }
        pids
    });
    assert_eq!(victim.word(STATEMENTS_DROPPED), 0);
    holder.kill().unwrap();
    holder.wait().unwrap();
    // A process that has spun for it in vain rarely checks whether the holder has ended, so the sets are taken
    // over one by one.
    let kept = |victim: &Victim| {
        (0..count).any(|set| victim.word(sets + set * stride) as u32 == holder.id())
    };
    let mut rounds = 0;
    while rounds < 2 || kept(&victim) {
        assert!(rounds < 100, "a set's lock is still that of the ended process");
        for (session, client) in stay.iter_mut().enumerate() {
            execute(client, session);
        }
        rounds += 1;
    }
    // With its text at the first execution that gets the lock.
    for (session, client) in stay.iter_mut().enumerate() {
        execute(client, session);
    }
    let sql = "select count(*), min(calls), max(calls) from tally.statements
               where query like 'select $1+% as held'";
    let row = victim.cluster.connect().unwrap().query_one(sql, &[]).unwrap();
    assert_eq!(row.get::<_, i64>(0), (SESSIONS * STATEMENTS) as i64);
    assert_eq!((row.get::<_, i64>(1), row.get::<_, i64>(2)), (rounds + 2, rounds + 3));
    assert_eq!(victim.word(STATEMENTS_DROPPED), 0);
    assert_eq!(victim.crashes(), 0, "{}", victim.cluster.log_tail(20));
}

fn population(path: &Path) -> u32 {
    Segment::open(path).unwrap().population().unwrap()
}

#[test]
fn a_server_in_a_new_container_reuses_the_segment_of_the_last_one() {
    let mut victim = Victim::new(server());
    let mut clients: Vec<_> = (0..10).map(|_| victim.cluster.connect().unwrap()).collect();
    for client in &mut clients {
        client.simple_query("select 1").unwrap();
    }
    // All processes at once, as when a container is killed: none can release its slot.
    let signal = |pid: u32, signal| {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    };
    signal(victim.postmaster, rustix::process::Signal::STOP);
    for process in victim.cluster.processes() {
        signal(process.pid, rustix::process::Signal::KILL);
    }
    victim.cluster.kill9_postmaster().unwrap();
    drop(clients);
    assert!(population(&victim.path) > 10);
    // What the segment of another container looks like.
    victim.put(PID_NAMESPACE, &4_026_531_000_u64.to_ne_bytes());
    let made = Segment::open(&victim.path).unwrap().header().created_realtime_ns;
    victim.cluster.start().unwrap();
    victim.postmaster = victim.cluster.postmaster_pid().unwrap();
    victim.survives("a new container");
    let segment = Segment::open(&victim.path).unwrap();
    assert_eq!(segment.header().created_realtime_ns, made, "it is the same segment");
    assert_eq!(segment.server_runs(), Some(true));
    let kept = segment.population().unwrap();
    assert!(kept < 10, "{kept} slots are claimed, some by dead processes");
}

#[test]
fn a_new_cluster_in_the_same_directory_gets_its_own_segment() {
    let mut victim = Victim::new(server());
    let made = Segment::open(&victim.path).unwrap().header().created_realtime_ns;
    victim.cluster.kill9_postmaster().unwrap();
    let before = victim.word(SYSTEM_ID);
    assert_ne!(before, 0);
    let control = victim.cluster.psql("select 1");
    assert!(control.is_err());
    // The same inode, but the system identifier of another cluster.
    victim.put(SYSTEM_ID, &(before ^ 1).to_ne_bytes());
    victim.cluster.start().unwrap();
    let segment = Segment::open(&victim.path).unwrap();
    assert_ne!(segment.header().created_realtime_ns, made);
    victim.reopen();
    assert_eq!(victim.word(SYSTEM_ID), before);
    let shown = victim.cluster.psql("select system_identifier from pg_control_system()").unwrap();
    assert_eq!(shown.trim(), before.to_string());
}
