// SPDX-License-Identifier: PostgreSQL
//! The overhead of statement statistics: pg_tally compared with pg_stat_statements, by the same method.
//!
//!     make -C bench/peers/statements
//!     cargo build --release -p tally
//!     cargo run --release -p tally --example statement_peers [MINUTES [RUNS [WORKLOAD ...]]]
//!
//! WORKLOAD is select, tpcb, distinct or evicting (default: all). With the suffix ":planning", planning is
//! tracked as well. There are two servers: one with pg_tally only, and one with pg_stat_statements, in which
//! pg_tally only counts messages and provides the switch. Both compute the query ID whether statements are on or
//! off. Each workload runs RUNS times on each server, MINUTES each, alternately, with new connections for each
//! run.
//!
//! `tally cost` toggles and measures both, with the same code. Each should count about half of the messages,
//! since it is off half of the time. When pg_stat_statements evicts a statement, its calls are lost.

mod bench;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use scratch::{Cluster, Load};
use segment::Segment;
use serde_json::Value;

const CLIENTS: u32 = 2;
const SCALE: u32 = 10;
const WARM_UP: Duration = Duration::from_secs(8);

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A workload and its settings.
struct Workload {
    name: String,
    load: Load,
    messages_per_transaction: f64,
    max_statements: &'static str,
    planning: bool,
}

impl Workload {
    fn parse(name: &str) -> Result<Self> {
        let (kind, planning) = match name.strip_suffix(":planning") {
            Some(kind) => (kind, true),
            None => (name, false),
        };
        let (load, messages, max_statements) = match kind {
            "select" => (Load::Select, 1.0, "5000"),
            "tpcb" => (Load::TpcB, 7.0, "5000"),
            "distinct" => (Load::Distinct { hundreds: 50 }, 1.0, "6000"),
            "evicting" => (Load::Distinct { hundreds: 100 }, 1.0, "5000"),
            other => return Err(format!("\"{other}\": select, tpcb, distinct or evicting").into()),
        };
        Ok(Self {
            name: name.into(),
            load,
            messages_per_transaction: messages,
            max_statements,
            planning,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Ours,
    Theirs,
}

/// One run of `tally cost`.
struct Run {
    percent: f64,
    half_width: f64,
    placebo: f64,
    /// CPU time of a transaction while statements are off, microseconds.
    base: f64,
    /// Share of the messages that were counted as statements.
    counted: f64,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let minutes: f64 = arguments.next().map_or(Ok(2.0), |text| text.parse())?;
    let runs: usize = arguments.next().map_or(Ok(4), |text| text.parse())?;
    let mut names: Vec<String> = arguments.collect();
    if names.is_empty() {
        let all = ["select", "tpcb", "distinct", "evicting"];
        names = all.iter().flat_map(|name| [(*name).into(), format!("{name}:planning")]).collect();
    }
    let tally = bench::program()?;
    println!(
        "CPU of a transaction, us, 95 %; {runs} runs of {minutes} min each, {CLIENTS} clients"
    );
    for name in names {
        let workload = Workload::parse(&name)?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let servers = [Side::Ours, Side::Theirs].map(|side| (side, server(side, &workload)));
        for run in 0..runs {
            for turn in 0..2 {
                // ours theirs, theirs ours, ...
                let (side, server) = &servers[(run + turn) % 2];
                let (cluster, path) = server.as_ref().map_err(ToString::to_string)?;
                let figure = measure(&tally, *side, cluster, path, &workload, minutes)?;
                eprintln!(
                    "{name} {side:?}: {:+.2} % ± {:.2} of {:.2} us, placebo {:+.2} %, counted {:.2}",
                    figure.percent, figure.half_width, figure.base, figure.placebo, figure.counted
                );
                if *side == Side::Ours { &mut ours } else { &mut theirs }.push(figure);
            }
        }
        print(&workload, &ours, &theirs);
    }
    Ok(())
}

/// A server with one of the two extensions, its tables filled.
fn server(side: Side, workload: &Workload) -> Result<(Cluster, PathBuf)> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let planning = if workload.planning { "on" } else { "off" };
    let mut builder = Cluster::builder()
        .library(root.join("pg_tally/pg_tally.so"))
        .setting("shared_buffers", "256MB")
        .setting("compute_query_id", "on")
        .fsync(true);
    builder = match side {
        Side::Ours => builder.settings([
            ("shared_preload_libraries", "pg_tally"),
            ("pg_tally.statements_planning", planning),
            ("pg_tally.max_statements", workload.max_statements),
        ]),
        Side::Theirs => {
            builder.library(root.join("bench/peers/statements/statement_peer.so")).settings([
                ("shared_preload_libraries", "pg_tally, pg_stat_statements, statement_peer"),
                ("pg_tally.statements", "none"),
                ("pg_stat_statements.track_planning", planning),
                ("pg_stat_statements.max", workload.max_statements),
            ])
        }
    };
    let mut cluster = builder.create()?;
    let path = bench::segment(&mut cluster)?;
    cluster.start()?;
    cluster.fill(&workload.load, SCALE)?;
    if side == Side::Theirs {
        cluster.psql("create extension pg_stat_statements")?;
    }
    Ok((cluster, path))
}

fn measure(
    tally: &Path,
    side: Side,
    cluster: &Cluster,
    path: &Path,
    workload: &Workload,
    minutes: f64,
) -> Result<Run> {
    let mut load = cluster
        .pgbench()
        .load(workload.load.clone())
        .clients(CLIENTS)
        .jobs(2)
        .duration(WARM_UP + Duration::from_secs_f64(minutes * 60.0 + 60.0))
        .spawn()?;
    std::thread::sleep(WARM_UP);
    let before = counted(side, cluster, path)?;
    let output = Command::new(tally)
        .args(["cost", "--json", "--of"])
        .arg(if side == Side::Ours { "statements" } else { "outside" })
        .args(["--minutes", &minutes.to_string()])
        .arg(path)
        .stderr(Stdio::inherit())
        .output()?;
    let after = counted(side, cluster, path)?;
    if !output.status.success() {
        return Err(format!("{side:?}: {}", output.status).into());
    }
    load.kill();
    let result: Value = serde_json::from_slice(&output.stdout)?;
    let number = |path: &str| {
        result.pointer(path).and_then(Value::as_f64).ok_or_else(|| format!("there is no {path}"))
    };
    let counts = (after.0 - before.0, after.1 - before.1);
    Ok(Run {
        percent: number("/cpu/percent")?,
        half_width: number("/cpu/half_width")?,
        placebo: number("/placebo/cpu/percent")?,
        base: number("/off/cpu_seconds_per_unit")? * workload.messages_per_transaction * 1e6,
        counted: counts.0 / counts.1,
    })
}

/// Executions counted by the measured extension, and messages handled, so far.
fn counted(side: Side, cluster: &Cluster, path: &Path) -> Result<(f64, f64)> {
    let mut segment = Segment::open(path)?;
    let messages: u64 = segment
        .snapshot(None)?
        .books
        .iter()
        .filter(|book| book.identity.kind == "client backend")
        .map(|book| book.calls[0])
        .sum();
    let statements = match side {
        Side::Ours => {
            let all = segment.statements()?.ok_or("the segment keeps no statements")?;
            all.statements().iter().map(segment::Statement::calls).sum::<u64>() as f64
        }
        Side::Theirs => cluster.psql("select sum(calls) from pg_stat_statements")?.parse()?,
    };
    Ok((statements, messages as f64))
}

/// Mean of the runs and its half-width, computed from the half-widths of the independent runs.
fn pooled(runs: &[Run], what: impl Fn(&Run) -> (f64, f64)) -> (f64, f64) {
    let n = runs.len() as f64;
    let mean = runs.iter().map(|run| what(run).0).sum::<f64>() / n;
    let square = runs.iter().map(|run| what(run).1.powi(2)).sum::<f64>();
    (mean, square.sqrt() / n)
}

fn print(workload: &Workload, ours: &[Run], theirs: &[Run]) {
    let percent = |runs: &[Run]| pooled(runs, |run| (run.percent, run.half_width));
    let us = |runs: &[Run]| {
        pooled(runs, |run| (run.percent * run.base / 100.0, run.half_width * run.base / 100.0))
    };
    let ((our_percent, our_half), (their_percent, their_half)) = (percent(ours), percent(theirs));
    let ((our_us, our_us_half), (their_us, their_us_half)) = (us(ours), us(theirs));
    let ratio = our_us / their_us;
    let half =
        ratio.abs() * ((our_us_half / our_us).powi(2) + (their_us_half / their_us).powi(2)).sqrt();
    println!(
        "{:18} ours {our_percent:+.2} % ± {our_half:.2} ({our_us:.3} ± {our_us_half:.3} us)   \
         pg_stat_statements {their_percent:+.2} % ± {their_half:.2} ({their_us:.3} ± \
         {their_us_half:.3} us)   ours/theirs {:.0} % ± {:.0}",
        workload.name,
        100.0 * ratio,
        100.0 * half
    );
}
