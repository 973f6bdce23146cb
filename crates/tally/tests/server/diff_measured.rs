// SPDX-License-Identifier: PostgreSQL
//! Not a test but a measurement (docs/results.md): what `tally diff` says of pairs of recordings of the
//! same server and load, 40 s each, and of a dropped index, after 40 s and after 90 s on each side.
//!
//! One recording is cut into pieces by the range options: a comparison reads a piece as it reads a
//! recording of its own, only that statements are read each ten seconds, from the whole's begin on.

use crate::support;
use std::path::Path;
use std::time::Duration;

use crate::support::recordings::{changed, findings, number, rows, Recordings};
use crate::support::{output, tally};
use scratch::{Cluster, Load, RunningPgbench};
use serde_json::Value;

/// Pairs of pieces of the same recording, and seconds of a piece.
const PAIRS: u64 = 20;
const SECONDS: u64 = 40;
/// Seconds on each side of the longer comparison with and without the index.
const LONG: u64 = 90;

/// The statement that loses its index.
const SLOWED: &str = "from orders where customer";

/// A server with orders of customers, found by an index, and pgbench's tables.
fn server() -> Cluster {
    let cluster = support::start(support::plain().setting("shared_preload_libraries", "pg_tally"));
    cluster.pgbench_init(5).unwrap();
    cluster
        .psql(
            "create table orders as select n id, n % 20000 customer from generate_series(1, 200000) n; \
             create index by_customer on orders (customer); analyze orders; checkpoint",
        )
        .unwrap();
    cluster
}

/// Four clients, 100 transactions a second: one in five looks for a customer's orders, the others are TPC-B.
fn load(cluster: &Cluster, seconds: u64) -> RunningPgbench {
    let orders = format!(
        "\\set c random(1, 20000)\nbegin;\nselect count(*) {SLOWED} = :c;\n\
         update pgbench_branches set bbalance = bbalance + 1 where bid = 1 + :c % 5;\ncommit;\n"
    );
    let load = cluster.pgbench().load(Load::Script(orders)).arg("-b").arg("tpcb-like@4");
    load.clients(4).rate(100.0).duration(Duration::from_secs(seconds)).spawn().unwrap()
}

fn record(cluster: &Cluster, seconds: u64, to: &Path) {
    let load = load(cluster, seconds + 5);
    std::thread::sleep(Duration::from_secs(2));
    let mut command = tally();
    command.timeout(Duration::from_secs(seconds + 60));
    command.arg("record").arg(support::segment(cluster)).arg("-o").arg(to);
    output(command.args(["--duration", &format!("{seconds}s")]));
    load.wait().unwrap();
}

/// The recording that the environment variable names a directory for, or a new one.
fn recordings() -> Recordings {
    match std::env::var_os("PGTALLY_DIFF_RECORDINGS") {
        Some(directory) => Recordings::at(directory.into()),
        None => Recordings::new(),
    }
}

/// Seconds of a recording, rounded: its last piece of a length ends with it.
fn seconds(recordings: &Recordings, name: &str) -> u64 {
    let all = recordings.json(&format!("{name}@..-1"), &format!("{name}@-1.."), &[]);
    (number(&all["b"]["to"]) - number(&all["a"]["from"])).round() as u64
}

fn verdict_of_the_index(recordings: &Recordings, length: u64) -> Value {
    let piece = |name: &str| format!("{name}@-{length}..");
    recordings.json(&piece("with"), &piece("without"), &[])
}

#[test]
#[ignore = "takes half an hour, on an otherwise idle machine"]
fn pairs_of_the_same_load_and_a_dropped_index_measured() {
    let recordings = recordings();
    if !recordings.path("without").exists() {
        let cluster = server();
        record(&cluster, 2 * PAIRS * SECONDS, &recordings.path("with"));
        cluster.psql("drop index by_customer").unwrap();
        record(&cluster, LONG, &recordings.path("without"));
    }
    let (mut found, mut compared, mut totals) = (0, 0, Vec::new());
    let pairs = seconds(&recordings, "with") / SECONDS / 2;
    for pair in 0..pairs {
        let piece = |at: u64| {
            let from = (at + 1) * SECONDS;
            match at {
                0 => format!("with@-{from}.."),
                _ => format!("with@-{from}..-{}", from - SECONDS),
            }
        };
        let diff = recordings.json(&piece(2 * pair + 1), &piece(2 * pair), &[]);
        let what = changed(&diff);
        found += u64::from(!what.is_empty());
        println!("pair {pair}: {} changed", what.len());
        what.iter().for_each(|row| println!("    {row}"));
        let tables = ["totals", "accounts", "processes", "files", "statements"];
        compared += tables.iter().map(|table| rows(&diff, table).len()).sum::<usize>();
        let total = &diff["totals"][0];
        let percent = |key: &str| 100.0 * number(&total[key]).abs() / number(&total["a_seconds"]);
        totals.push((percent("change_seconds"), percent("half_width_seconds")));
    }
    println!("of {pairs} pairs of {SECONDS} s ({compared} rows), with a change: {found}");
    totals.sort_by(|a, b| a.0.total_cmp(&b.0));
    println!("time per commit, change and half-width, %: {totals:.0?}");
    for length in [SECONDS, LONG] {
        let diff = verdict_of_the_index(&recordings, length);
        let first = diff["findings"][0]["text"].as_str().unwrap();
        println!("the index, {length} s: {}", findings(&diff).replace('\n', "\n    "));
        for row in rows(&diff, "statements").iter().take(5) {
            println!("    {row}");
        }
        assert!(first.contains(SLOWED), "{first}");
    }
}
