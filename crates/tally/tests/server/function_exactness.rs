// SPDX-License-Identifier: PostgreSQL
//! Function calls are counted exactly: our counts equal those of bpftrace's uprobes on the same functions
//! in the same processes, with recursion and errors.
//!
//! Runs at least 100,000 calls; PGTALLY_EVENTS sets another number. bpftrace requires root; if it cannot run, the
//! test prints a message and passes.

use crate::support;
use std::collections::BTreeMap;

use crate::support::gate::{self, Gate};
use crate::support::lazy;
use crate::support::readings::{differences, get, Counts as CountsOf, Readings};
use crate::support::witness::Witness;
use segment::{ProbeState, Segment};

const SESSIONS: u32 = 8;

/// ExecInitNode recurses down the plan tree, copyObjectImpl and LockAcquireExtended are called all the
/// time, XLogFlush sleeps, and an error leaves int4div at each division by zero. Each begins with a push,
/// an instruction that can have both a uprobe and our detour.
const FUNCTIONS: [&str; 6] = [
    "ExecInitNode",
    "int4div",
    "XLogFlush",
    "heap_update",
    "LockAcquireExtended",
    "copyObjectImpl",
];

/// Some compilers place the cases of their switches in front of the rest, so that they cannot be redirected.
const SWITCHES: [&str; 2] = ["ExecInitNode", "copyObjectImpl"];

type Counts = CountsOf<(i32, String)>;

fn program(postgres: &str, functions: &[&str]) -> String {
    functions
        .iter()
        .map(|name| {
            format!(
                "uprobe:{postgres}:{name} /comm == \"postgres\"/ \
                 {{ @[pid, \"{name}\"] = count(); }}\n"
            )
        })
        .collect()
}

/// Calls by process and function, summed over phases, timed or only counted.
fn ours(segment: &mut Segment) -> Counts {
    let snapshot = segment.snapshot(None).unwrap();
    let mut counts = Counts::new();
    for book in &snapshot.books {
        for head in &book.heads {
            let Some(stat) = snapshot.directory.get(head.stat) else { continue };
            let tags: Vec<&str> = stat.name.split("::").collect();
            let ["function", name, "inclusive" | "counted", _] = tags[..] else { continue };
            *counts.entry((book.pid, name.into())).or_default() += head.count;
        }
    }
    counts
}

#[test]
fn function_call_counts_equal_those_of_uprobes() {
    let wanted: u64 =
        std::env::var("PGTALLY_EVENTS").map_or(100_000, |text| text.parse().expect("a number"));
    // bpftrace's breakpoints are only in this server.
    let (_folder, binaries) = lazy::copied();
    let cluster = support::start(
        support::plain()
            .binaries(binaries)
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.functions", &FUNCTIONS.join(", "))
            .setting("deadlock_timeout", "10min")
            .setting("autovacuum", "off"),
    );
    cluster.pgbench_init(2).unwrap();
    let postgres = cluster.binaries().program("postgres");
    let mut segment = Segment::open(&support::segment(&cluster)).unwrap();
    let probes = segment.probes().unwrap();
    let mut probed = FUNCTIONS.to_vec();
    probed.retain(|name| {
        let probe = probes.iter().find(|probe| probe.name == format!("function {name}"));
        let probe = probe.unwrap_or_else(|| panic!("{name} is not in the table of probes"));
        let refused = SWITCHES.contains(name)
            && probe.reason == "the function may branch into its first instructions";
        assert!(refused || probe.state == ProbeState::Installed, "{name}: {}", probe.reason);
        !refused
    });

    // Every fourth division is by zero; the session survives the error.
    cluster
        .psql(
            "create function try(n int) returns int language plpgsql as $$ \
             begin return 100 / n; exception when division_by_zero then return null; end $$",
        )
        .unwrap();
    let mut gate = Gate::new(&cluster);
    let script = gate::tpcb()
        + "select try(n % 4) from generate_series(1, 20) n;\n\
           select count(*) from pgbench_branches a join (select distinct tid from pgbench_tellers) b \
           on a.bid = b.tid where exists (select from pgbench_history h where h.bid = a.bid);\n";
    let pgbench = gate::pgbench(&cluster, SESSIONS, &script);
    let mut failing = cluster.connect().unwrap();
    let failing_pid = support::pid_of(&mut failing);

    let mut pids = gate.assembled(SESSIONS as usize);
    pids.push(failing_pid);
    let readings = Readings::around(
        || ours(&mut segment),
        || Witness::start(&program(postgres.to_str().unwrap(), &probed)),
        |counted| {
            let mut calls = || -> u64 {
                let counts = counted();
                counts.iter().filter(|((pid, _), _)| pids.contains(pid)).map(|(_, n)| n).sum()
            };
            gate.open();
            while calls() < wanted {
                for _ in 0..50 {
                    failing.query_one("select 1 / $1::int", &[&0i32]).unwrap_err();
                }
            }
            gate.close();
            gate.assembled(SESSIONS as usize);
        },
        Witness::stop,
    );
    let Some((readings, seen)) = readings else { return };
    let seen: Counts = seen
        .into_iter()
        .map(|(key, count)| ((key[0].parse().unwrap(), key[1].clone()), count))
        .collect();

    let (gained, judged) = (readings.gained(), readings.judged_of(&pids));
    let wrong = differences(&gained, &seen, &judged);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let mut by_function = BTreeMap::<&str, u64>::new();
    for ((_, name), count) in gained.iter().filter(|((pid, _), _)| judged.contains(pid)) {
        *by_function.entry(name).or_default() += count;
    }
    println!("{} calls: {by_function:?}", by_function.values().sum::<u64>());
    for name in &probed {
        assert!(by_function.contains_key(name), "no call of {name}");
    }
    let divisions = get(&gained, &(failing_pid, "int4div".into()));
    assert!(divisions >= 50, "{divisions} divisions that ended in an error");

    // bpftrace has removed its breakpoints; our counting continues.
    gate.open();
    let ended = ours(&mut segment);
    support::eventually("calls are counted after bpftrace has ended", || {
        let now = ours(&mut segment);
        let grown = |name: &&str| {
            pids[..SESSIONS as usize].iter().any(|&pid| {
                let key = (pid, name.to_string());
                get(&now, &key) > get(&ended, &key)
            })
        };
        probed.iter().all(grown)
    });
    drop(pgbench);
    assert!(!cluster.log().contains("terminated by signal"), "{}", cluster.log_tail(30));
}
