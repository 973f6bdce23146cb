// SPDX-License-Identifier: PostgreSQL
//! Lightweight locks are counted exactly: for each tranche and mode as many acquisitions,
//! failures, releases and waits as the server's own probes (USDT) fire in the same processes.
//!
//! 200,000 events by default; PGTALLY_EVENTS sets another number. The witness needs root;
//! where it is not to be had the test says so and passes.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::FileExt;

use postgres::Client;
use segment::Segment;
use support::gate::{self, Gate};
use support::readings::{differences, Counts as CountsOf, OfProcess, Readings};
use support::witness::Witness;

const SESSIONS: u32 = 8;
const POSTGRES: &str = "usdt:POSTGRES:postgresql:";

/// What one process did with the locks of one tranche.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    pid: i32,
    tranche: String,
    event: &'static str,
    /// Empty where the server's probe does not say.
    mode: &'static str,
}

impl OfProcess for Key {
    fn pid(&self) -> i32 {
        self.pid
    }
}

type Counts = CountsOf<Key>;

/// The server's probes, what they mean in our terms, and whether they tell the mode.
const PROBES: [(&str, &str, bool); 7] = [
    ("lwlock__acquire", "acquire", true),
    ("lwlock__condacquire", "acquire", true),
    ("lwlock__acquire__or__wait", "acquire", true),
    ("lwlock__condacquire__fail", "failed", true),
    ("lwlock__acquire__or__wait__fail", "failed", true),
    ("lwlock__release", "held", false),
    ("lwlock__wait__start", "wait", true),
];

/// What the witness is to count. A tranche is told by the address of its name: the page of
/// the name itself may be missing in a process, and the kernel does not fetch it here.
fn program(postgres: &str) -> String {
    PROBES
        .iter()
        .map(|(probe, _, has_mode)| {
            let place = POSTGRES.replace("POSTGRES", postgres);
            let mode = if *has_mode { "arg1" } else { "9" };
            format!(
                "{place}{probe} /comm == \"postgres\"/ \
                 {{ @[pid, \"{probe}\", arg0, {mode}] = count(); }}\n"
            )
        })
        .collect()
}

/// A text in the memory of a process.
fn text_at(pid: u32, address: u64) -> String {
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let mut bytes = [0; 64];
    let read = memory.read_at(&mut bytes, address).unwrap();
    let text = bytes[..read].split(|&byte| byte == 0).next().unwrap();
    String::from_utf8(text.to_vec()).unwrap()
}

/// The witness's counts in our terms, of these processes; it has seen all servers' that run
/// the same program. All processes of one have its code at the same addresses.
fn theirs(postmaster: u32, pids: &BTreeSet<i32>, seen: Vec<(Vec<String>, u64)>) -> Counts {
    let mut counts = Counts::new();
    for (key, count) in seen {
        let [pid, probe, name, mode] = &key[..] else { panic!("{key:?}") };
        if !pids.contains(&pid.parse().unwrap()) {
            continue;
        }
        let (_, event, _) = PROBES.iter().find(|(name, ..)| name == probe).unwrap();
        let key = Key {
            pid: pid.parse().unwrap(),
            tranche: text_at(postmaster, name.parse().unwrap()),
            event,
            mode: match mode.as_str() {
                "0" => "exclusive",
                "1" => "shared",
                _ => "",
            },
        };
        *counts.entry(key).or_default() += count;
    }
    counts
}

/// What our probes have counted, of every process there is; phases together.
fn ours(segment: &mut Segment) -> Counts {
    let snapshot = segment.snapshot(None).unwrap();
    let mut counts = Counts::new();
    for book in &snapshot.books {
        for head in &book.heads {
            let Some(stat) = snapshot.directory.get(head.stat) else { continue };
            let tags: Vec<&str> = stat.name.split("::").collect();
            let ["lwlock", tranche, event, _, mode] = tags[..] else { continue };
            if head.count == 0 {
                continue;
            }
            let event = PROBES.iter().map(|(_, ours, _)| *ours).find(|ours| *ours == event);
            let event = event.unwrap_or_else(|| panic!("{}", stat.name));
            let mode = match (event, mode) {
                ("held", "exclusive" | "shared") => "",
                // The server's probe calls a wait for a variable a wait for the lock.
                (_, "exclusive") | ("wait", "variable") => "exclusive",
                (_, "shared") => "shared",
                _ => panic!("{}", stat.name),
            };
            let key = Key { pid: book.pid, tranche: tranche.into(), event, mode };
            *counts.entry(key).or_default() += head.count;
        }
    }
    counts
}

/// Errors, among them one that is raised while a lightweight lock is held: pg_xact_status
/// looks at a transaction yet to come under XactTruncationLock.
fn fail(client: &mut Client) {
    client.batch_execute("select 1/0").unwrap_err();
    client.batch_execute("select pg_xact_status('9000000000')").unwrap_err();
    client.batch_execute("begin; savepoint a; insert into pgbench_history values (1)").unwrap();
    client.batch_execute("select pg_xact_status('9000000000')").unwrap_err();
    client.batch_execute("rollback to a; select txid_current(); rollback").unwrap();
}

#[test]
fn our_counts_of_lightweight_locks_are_those_of_the_servers_own_probes_to_the_last_one() {
    let least: u64 =
        std::env::var("PGTALLY_EVENTS").map_or(200_000, |text| text.parse().expect("a number"));
    // Few buffers, so that pages are read and evicted; commits that wait for the disk.
    let cluster = support::start(
        support::plain()
            .fsync(true)
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.level", "locks")
            .setting("shared_buffers", "2MB")
            .setting("deadlock_timeout", "10min")
            .setting("autovacuum", "off"),
    );
    cluster.pgbench_init(2).unwrap();
    let postmaster = cluster.postmaster_pid().unwrap();
    let postgres = cluster.binaries().program("postgres");
    let mut segment = Segment::open(&support::segment(&cluster)).unwrap();
    let mut gate = Gate::new(&cluster);
    let pgbench = gate::pgbench(&cluster, SESSIONS, &gate::tpcb());
    let mut failing = cluster.connect().unwrap();
    let failing_pid: i32 = failing.query_one("select pg_backend_pid()", &[]).unwrap().get(0);

    let mut pids = gate.assembled(SESSIONS as usize);
    pids.push(failing_pid);
    let readings = Readings::around(
        || ours(&mut segment),
        || Witness::start(&program(postgres.to_str().unwrap())),
        |counted| {
            let mut events = || -> u64 {
                let counts = counted();
                counts.iter().filter(|(key, _)| pids.contains(&key.pid)).map(|(_, n)| n).sum()
            };
            gate.open();
            let mut seen_so_far = 0;
            support::eventually("the witness's presence does not stop the load", || {
                let now = events();
                fail(&mut failing);
                std::mem::replace(&mut seen_so_far, now) < now
            });
            while events() < least {
                fail(&mut failing);
                std::thread::sleep(std::time::Duration::from_millis(200));
            }
            gate.close();
            gate.assembled(SESSIONS as usize);
        },
        Witness::stop,
    );
    let Some((readings, seen)) = readings else { return };
    drop(pgbench);

    let (gained, judged) = (readings.gained(), readings.judged());
    readings.judged_of(&pids);
    let wrong = differences(&gained, &theirs(postmaster, &judged, seen), &judged);
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
    let mut by_event = BTreeMap::<(&str, &str), u64>::new();
    for (key, count) in gained.iter().filter(|(key, _)| judged.contains(&key.pid)) {
        *by_event.entry((key.event, key.mode)).or_default() += count;
    }
    let total: u64 = by_event.values().sum();
    println!("{total} events of {} processes: {by_event:?}", judged.len());
    assert!(total >= least * 3 / 4, "only {total} events");
    for event in ["acquire", "held", "wait", "failed"] {
        assert!(by_event.keys().any(|(of, _)| *of == event), "no {event} at all");
    }
    let failing = |event| {
        let of = |key: &&Key| key.pid == failing_pid && key.tranche == "XactTruncation";
        gained
            .keys()
            .filter(of)
            .filter(|key| key.event == event)
            .map(|key| gained[key])
            .sum::<u64>()
    };
    assert!(failing("held") > 0 && failing("held") == failing("acquire"), "errors under a lock");
}
