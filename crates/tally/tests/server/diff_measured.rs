// SPDX-License-Identifier: PostgreSQL
//! Claims about `tally diff` on a real server (docs/results.md): pairs of recordings of the same load show no
//! change, and one statement of five that takes 10 or 20 % longer is found as often as the comparison predicts.
//!
//! PGTALLY_DIFF_PAIRS is the number of pairs of each kind; the default is 10.

use crate::support;
use std::time::Duration;

use crate::support::recordings::{changed, findings, number, rows, Recordings};
use crate::support::synthetic::Dice;
use crate::support::verify::{Claim, Trial};
use crate::support::{output, tally};
use scratch::{Cluster, Load, RunningPgbench};
use serde_json::Value;

/// The statement that gets slower.
const SLOWED: &str = "count(g)";
/// What is said of a change that the machine's other processes made.
const WAITED: [&str; 2] =
    ["Waiting for a CPU accounts for the change", "this is no evidence of a change of the server"];
/// Recordings are up to this many seconds longer, by chance.
const MORE: f64 = 5.0;

fn pairs_of_each() -> u64 {
    let number = std::env::var("PGTALLY_DIFF_PAIRS").ok();
    number.map_or(10, |number| number.parse().expect("PGTALLY_DIFF_PAIRS is a number"))
}

/// Four clients, 150 transactions a second of five statements that compute for 0.1 to 0.6 ms; the first one takes `first` times
/// as long.
fn load(cluster: &Cluster, first: f64) -> RunningPgbench {
    let of =
        |what: &str, rows: f64| format!("select {what} from generate_series(1, {rows:.0}) g;\n");
    let script = [
        of(SLOWED, 3000.0 * first),
        of("sum(g)", 4000.0),
        of("max(g)", 1500.0),
        of("avg(g)", 800.0),
        of("min(g)", 500.0),
    ];
    let load = cluster.pgbench().load(Load::Script(script.concat())).clients(4).rate(150.0);
    load.duration(Duration::from_secs(24 * 3600)).spawn().unwrap()
}

/// Records the server under this load this many times, as NAME0, NAME1, ...
fn record(
    recordings: &Recordings,
    cluster: &Cluster,
    (name, number, seconds): (&str, u64, f64),
    (first, dice): (f64, &mut Dice),
) {
    let mut load = load(cluster, first);
    std::thread::sleep(Duration::from_secs(2));
    for at in 0..number {
        let length = seconds + MORE * dice.throw();
        let mut command = tally();
        command.timeout(Duration::from_secs_f64(length + 60.0));
        command.arg("record").arg(support::segment(cluster));
        command.arg("-o").arg(recordings.path(&format!("{name}{at}")));
        output(command.args(["--for", &format!("{:.0}ms", length * 1000.0)]));
    }
    assert!(load.running(), "{}", load.so_far());
    load.kill();
}

fn is_slowed(row: &Value) -> bool {
    row["query"].as_str().is_some_and(|query| query.contains(SLOWED))
}

/// The results about the calls of the statements of some pairs.
#[derive(Debug, Default)]
struct Outcome {
    pairs: usize,
    /// Rows that have not changed, but are reported as changed.
    wrong: usize,
    /// Statements, and those whose change is outside its interval.
    statements: usize,
    outside: usize,
    /// Pairs whose change is said to be waiting for a CPU.
    waited: usize,
    /// Pairs in which the slower statement was found, was reported as detectable, and both.
    found: usize,
    promised: usize,
    kept: usize,
}

impl Outcome {
    fn add(&mut self, diff: &Value, planted: f64) {
        self.pairs += 1;
        for row in rows(diff, "statements").iter().filter(|row| row["call_p"].is_f64()) {
            let figure = |key: &str| number(&row[format!("call_{key}")]);
            let own = if is_slowed(row) { planted } else { 0.0 };
            let is_real = row["call_verdict"] != "noise";
            self.statements += 1;
            self.outside += usize::from((figure("relative") - own).abs() > figure("half_width"));
            if own == 0.0 {
                self.wrong += usize::from(is_real);
                continue;
            }
            let promised = figure("detectable") <= planted;
            self.found += usize::from(is_real);
            self.promised += usize::from(promised);
            self.kept += usize::from(promised && is_real);
        }
        if planted == 0.0 {
            // The machine is not the server's alone: a change that the comparison says is waiting for a CPU is no false one.
            let of_cpu = |row: &Value| row["activity"].is_null() || row["activity"] == "cpu";
            let explained = |row: &Value| {
                WAITED.iter().any(|text| findings(diff).contains(text)) && of_cpu(row)
            };
            let others = changed(diff).into_iter().filter(|row| row["query"].is_null());
            self.waited += usize::from(WAITED.iter().any(|text| findings(diff).contains(text)));
            for row in others.filter(|row| !explained(row)) {
                println!("changed: {row}\n{}", findings(diff));
                self.wrong += 1;
            }
        }
    }

    /// At most 5 % on average; the bound is 2.5 standard deviations higher.
    fn intervals_hold(&self) -> bool {
        let n = self.statements as f64;
        self.outside as f64 <= 0.05 * n + 2.5 * (0.05 * 0.95 * n).sqrt()
    }
}

fn server() -> Cluster {
    support::start(support::plain().setting("shared_preload_libraries", "pg_tally"))
}

#[test]
#[ignore = "verify: tally diff finds nothing in pairs of short recordings of the same load"]
fn verify_pairs_of_the_same_load() {
    let (cluster, pairs) = (server(), pairs_of_each());
    let check = |seed: u64, seconds: f64| {
        let recordings = Recordings::new();
        let all = ("same", pairs + 1, seconds);
        record(&recordings, &cluster, all, (1.0, &mut Dice(seed)));
        let mut outcome = Outcome::default();
        for at in 0..pairs {
            outcome
                .add(&recordings.json(&format!("same{at}"), &format!("same{}", at + 1), &[]), 0.0);
        }
        outcome
    };
    let text =
        "tally diff finds nothing in pairs of recordings of 20 s and of 60 s of the same load";
    Claim { text, alarm: 0.05, n: 1, m: 2 }.check(|seed| {
        let outcome = [20.0, 60.0].map(|seconds| check(seed, seconds));
        Trial {
            holds: outcome.iter().all(|outcome| outcome.wrong == 0 && outcome.intervals_hold()),
            result: format!("{outcome:?}"),
            half_width: "-".into(),
        }
    });
}

#[test]
#[ignore = "verify: tally diff finds a statement that takes 10 or 20 % longer as often as it says"]
fn verify_a_slower_statement_of_five() {
    let (cluster, pairs) = (server(), pairs_of_each());
    let text =
        "tally diff finds one statement of five that takes 10 or 20 % longer as often as it says";
    Claim { text, alarm: 0.05, n: 1, m: 2 }.check(|seed| {
        let mut dice = Dice(seed);
        let mut all = Vec::new();
        for seconds in [20.0, 60.0] {
            let recordings = Recordings::new();
            let mut make = |name: &str, first: f64| {
                record(&recordings, &cluster, (name, pairs, seconds), (first, &mut dice));
            };
            make("a", 1.0);
            for (name, planted) in [("ten", 0.1), ("twenty", 0.2)] {
                make(name, 1.0 + planted);
                let mut outcome = Outcome::default();
                for at in 0..pairs {
                    let diff = recordings.json(&format!("a{at}"), &format!("{name}{at}"), &[]);
                    outcome.add(&diff, planted);
                }
                all.push((seconds, planted, outcome));
            }
        }
        let kept = |outcome: &Outcome| outcome.kept as f64 >= 0.8 * outcome.promised as f64;
        Trial {
            holds: all.iter().all(|(.., outcome)| outcome.wrong == 0 && kept(outcome)),
            result: format!("{all:?}"),
            half_width: "-".into(),
        }
    });
}
