// SPDX-License-Identifier: PostgreSQL
//! Processes that are killed under load: the server recovers as it would without us, what
//! was counted stays counted, and no slot is lost.
//!
//! 10 kills by default; PGTALLY_KILLS sets another number.

mod support;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scratch::{Cluster, Load};
use segment::{Segment, Snapshot};

/// One kill in so many is of the server's first process.
const POSTMASTER: u32 = 4;

/// All sessions and groups together: count and total by name.
fn totals(snapshot: &Snapshot) -> BTreeMap<String, (u64, u64)> {
    let mut totals = BTreeMap::<String, (u64, u64)>::new();
    for book in snapshot.books.iter().chain(&snapshot.groups) {
        for head in &book.heads {
            if let Some(stat) = snapshot.directory.get(head.stat) {
                let sum = totals.entry(stat.name.clone()).or_default();
                sum.0 += head.count;
                sum.1 += head.total;
            }
        }
    }
    totals
}

/// The segment as it stands: which file, and what it holds.
struct Look {
    file: (u64, u64),
    totals: BTreeMap<String, (u64, u64)>,
    claimed: u32,
    lost_merges: u64,
}

impl Look {
    fn at(path: &Path) -> Self {
        let meta = std::fs::metadata(path).unwrap();
        let mut segment = Segment::open(path).unwrap();
        let snapshot = segment.snapshot(None).unwrap();
        Self {
            file: (meta.ino(), segment.header().created_realtime_ns),
            totals: totals(&snapshot),
            claimed: segment.population().unwrap(),
            lost_merges: snapshot.overflows.lost_merges,
        }
    }

    fn follows(&self, earlier: &Self, kill: u32) {
        assert_eq!(self.lost_merges, 0, "kill {kill}: a slot was found damaged");
        if self.file != earlier.file {
            return;
        }
        for (name, before) in &earlier.totals {
            let now = self.totals.get(name).copied().unwrap_or_default();
            // What runs after the wait for a command moves to the command's account as soon
            // as that is known; a busy machine can make a look fall in between.
            let may_move = matches!(name.as_str(), "idle::cpu" | "idle in transaction::cpu");
            assert!(
                now.0 >= before.0 && (now.1 >= before.1 || may_move),
                "kill {kill}: {name} went from {before:?} to {now:?}"
            );
        }
    }
}

/// Wait until sessions are taken again.
fn recovered(cluster: &Cluster) {
    support::eventually("the server takes sessions", || {
        cluster.connect().is_ok_and(|mut client| client.simple_query("select 1").is_ok())
    });
}

#[test]
fn killed_processes_cost_neither_totals_nor_slots_nor_the_server() {
    let kills: u32 =
        std::env::var("PGTALLY_KILLS").map_or(10, |text| text.parse().expect("a number"));
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let mut cluster = support::start(
        support::plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("max_connections", "30"),
    );
    cluster.pgbench_init(2).unwrap();
    let path = support::segment(&cluster);
    let mut before = Look::at(&path);
    let (mut of_postmaster, mut survived) = (0, 0);
    for kill in 0..kills {
        let mut load = cluster.pgbench().load(Load::TpcB).clients(8).jobs(2).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(rng.random_range(100..600)));
        let under_load = Look::at(&path);
        under_load.follows(&before, kill);
        if rng.random_ratio(1, POSTMASTER) {
            of_postmaster += 1;
            cluster.kill9_postmaster().unwrap();
            load.kill();
            cluster.start().unwrap();
        } else {
            let processes = cluster.processes();
            let victim = &processes[rng.random_range(0..processes.len())];
            cluster.kill9(victim.pid).unwrap();
            // The server drops all sessions and begins anew.
            support::eventually("the load has lost its server", || !load.running());
        }
        recovered(&cluster);
        let after = Look::at(&path);
        after.follows(&under_load, kill);
        survived += u32::from(after.file == under_load.file);
        support::eventually("no more slots are claimed than there are processes", || {
            Look::at(&path).claimed as usize <= cluster.processes().len() + 1
        });
        before = Look::at(&path);
        before.follows(&after, kill);
    }
    println!("{kills} kills, {of_postmaster} of the first process; {survived} segments survived");
    assert!(!cluster.log().contains("PANIC"), "{}", cluster.log_tail(50));
    let accounts = cluster.psql("select count(*) from pgbench_accounts").unwrap();
    assert_eq!(accounts, "200000");
}
