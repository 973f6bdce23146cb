// SPDX-License-Identifier: PostgreSQL
//! A lazily bound server, as `./configure && make` links it: each probe stays in its entry of the import table,
//! whatever is called through it, and each process has its own slot in the segment.
//!
//! The tests read the import table from the process's memory.

use crate::support;
use std::collections::BTreeSet;

use crate::support::lazy::{held, lazily_bound, mapped};
use postgres::Client;
use scratch::Cluster;
use segment::{ProbeState, Segment};

/// Runs statements that call most of the functions with probes.
fn call_imports(client: &mut Client) {
    client
        .batch_execute(
            "create temporary table t as select g from generate_series(1, 10000) g; \
             select count(*) from t; checkpoint; select pg_sleep(0.01); \
             select count(*) from pg_ls_dir('.'); select pg_stat_file('PG_VERSION'); \
             do $$ begin perform 1 / 0; exception when division_by_zero then null; end $$; \
             drop table t",
        )
        .unwrap();
}

fn pid(client: &mut Client) -> u32 {
    client.query_one("select pg_backend_pid()", &[]).unwrap().get::<_, i32>(0) as u32
}

/// Checks that every probe that is reported as installed is in its import table entry.
fn probes_are_in_place(cluster: &Cluster, segment: &Segment, pid: u32, minimum: usize) {
    let program = cluster.binaries().program("postgres");
    let ours = mapped(pid, "/pg_tally.so");
    assert!(!ours.is_empty(), "process {pid} has not loaded the extension");
    let table = held(pid, &program);
    let mut checked = BTreeSet::new();
    for probe in segment.probes().unwrap() {
        let Some(name) = probe.name.strip_prefix("import ") else { continue };
        let Some(&value) = table.get(name) else { continue };
        assert_eq!(probe.state, ProbeState::Installed, "{name}: {}", probe.reason);
        assert!(
            ours.iter().any(|range| range.contains(&value)),
            "process {pid}: the slot of {name} leads to {value:#x}, which is none of ours"
        );
        checked.insert(name.to_string());
    }
    assert!(checked.len() >= minimum, "only {checked:?}");
    assert!(checked.contains("fork"));
}

#[test]
fn in_a_lazily_bound_server_probes_stay_and_each_process_has_its_slot() {
    let Some((_folder, binaries)) = lazily_bound() else { return };
    let cluster = support::start(
        support::plain().binaries(binaries).setting("shared_preload_libraries", "pg_tally"),
    );
    let mut clients: Vec<Client> = (0..3).map(|_| cluster.connect().unwrap()).collect();
    let pids: Vec<u32> = clients.iter_mut().map(pid).collect();
    for client in &mut clients {
        call_imports(client);
    }
    let mut segment = Segment::open(&support::segment(&cluster)).unwrap();
    let snapshot = segment.snapshot(None).unwrap();
    for pid in &pids {
        let books: Vec<_> = snapshot.books.iter().filter(|book| book.pid == *pid as i32).collect();
        assert_eq!(books.len(), 1, "process {pid} has {} slots", books.len());
        // It waits for its client now, so it has waited for its client before.
        assert!(books[0].calls.iter().sum::<u64>() > 0, "process {pid} has counted nothing");
    }
    for process in cluster.processes() {
        probes_are_in_place(&cluster, &segment, process.pid, 25);
    }
    probes_are_in_place(&cluster, &segment, cluster.postmaster_pid().unwrap(), 25);
}

#[test]
fn a_session_that_loads_the_extension_binds_its_own_calls() {
    let Some((_folder, binaries)) = lazily_bound() else { return };
    let cluster = support::start(support::plain().binaries(binaries));
    let mut client = cluster.connect().unwrap();
    client.batch_execute("load 'pg_tally'").unwrap();
    call_imports(&mut client);
    let segment = Segment::open(&support::segment(&cluster)).unwrap();
    probes_are_in_place(&cluster, &segment, pid(&mut client), 25);
}
