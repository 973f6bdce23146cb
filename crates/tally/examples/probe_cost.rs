// SPDX-License-Identifier: PostgreSQL
//! The cost of a probe in a running server, in ns: to acquire and release a lock at each level, and to call a
//! function without a probe, with a probe of pg_tally, and with bpftrace's uprobes.
//!
//!     cargo run --release -p tally --example probe_cost [ROUNDS]
//!
//! The loops, in bench/probes, do nothing else, so caches and branch predictors are at their best. The arms
//! of a round run in random order. Prints the medians and the median differences to the first arm of the
//! same round, with 95 % intervals.

mod bench;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bench::median;
use postgres::Client;
use rand::seq::SliceRandom;
use scratch::Cluster;
use segment::{Level, LevelSwitch};

const LOCKS_EACH: i64 = 20_000;
/// Below the rate at which a function is called too often to be timed.
const CALLS_EACH: i64 = 4_000;
const FUNCTION: &str = "bench_callee";

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let rounds: usize = std::env::args().nth(1).map_or(Ok(400), |text| text.parse())?;
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let bench = build(&root.join("bench/probes"))?;
    let mut cluster = Cluster::builder()
        .library(root.join("pg_tally/pg_tally.so"))
        .setting("shared_preload_libraries", "pg_tally")
        .create()?;
    let segment = bench::segment(&mut cluster)?;
    cluster.start()?;
    let mut client = cluster.connect()?;
    let library = cluster.dir().join("probes_bench.so");
    std::fs::copy(&bench, &library)?;
    for (name, arguments) in [("bench_lwlock", "bigint, boolean"), ("bench_function", "bigint")] {
        client.batch_execute(&format!(
            "create function {name}({arguments}) returns float8 as '{}' language c",
            library.display()
        ))?;
    }

    let level = LevelSwitch::open(&segment)?;
    for (mode, exclusive) in [("shared", false), ("exclusive", true)] {
        println!("a lightweight lock, {mode}, acquired and released without contention");
        report(rounds, &["off", "waits", "locks"], |arm| {
            level.set([Level::Off, Level::Waits, Level::Locks][arm]);
            let row =
                client.query_one("select bench_lwlock($1, $2)", &[&LOCKS_EACH, &exclusive])?;
            Ok(row.get(0))
        })?;
    }
    level.set(Level::Waits);

    println!("the call of a function");
    report(rounds, &["plain", "probed"], |arm| {
        let list = ["", FUNCTION][arm];
        client.batch_execute(&format!("set pg_tally.functions = '{list}'"))?;
        let took = call(&mut client)?;
        client.batch_execute("set pg_tally.functions = ''")?;
        Ok(took)
    })?;
    match bpftrace(&library) {
        Some(mut tracer) => {
            println!("the call of a function under a uprobe and a uretprobe that time it");
            report(rounds.min(100), &["bpftrace"], |_| call(&mut client))?;
            tracer.kill()?;
            tracer.wait()?;
        }
        None => println!("bpftrace is not available"),
    }
    Ok(())
}

fn call(client: &mut Client) -> Result<f64> {
    Ok(client.query_one("select bench_function($1)", &[&CALLS_EACH])?.get(0))
}

fn build(folder: &Path) -> Result<PathBuf> {
    let made = Command::new("make").arg("-s").arg("-C").arg(folder).status()?;
    if !made.success() {
        return Err(format!("make failed in {}", folder.display()).into());
    }
    Ok(folder.join("probes_bench.so"))
}

/// Attaches to the function in every process that has mapped the library.
fn bpftrace(library: &Path) -> Option<Child> {
    let at = format!("{}:{FUNCTION}", library.display());
    let program = format!(
        "uprobe:{at} {{ @start[tid] = nsecs; }} \
         uretprobe:{at} /@start[tid]/ {{ @time = stats(nsecs - @start[tid]); delete(@start[tid]); }}"
    );
    let mut tracer = Command::new("bpftrace")
        .args(["-q", "-e", &program])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    std::thread::sleep(Duration::from_secs(5));
    match tracer.try_wait() {
        Ok(None) => Some(tracer),
        _ => None,
    }
}

/// Runs the arms in random order, `rounds` times, and prints the results.
fn report(rounds: usize, arms: &[&str], mut run: impl FnMut(usize) -> Result<f64>) -> Result<()> {
    let mut times = vec![Vec::with_capacity(rounds); arms.len()];
    let mut order: Vec<usize> = (0..arms.len()).collect();
    for _ in 0..rounds {
        order.shuffle(&mut rand::rng());
        for &arm in &order {
            times[arm].push(run(arm)?);
        }
    }
    for (name, times_of) in arms.iter().zip(&times) {
        println!("  {name:10} {}", median(times_of.clone(), "ns", 1));
    }
    for (arm, name) in arms.iter().enumerate().skip(1) {
        let differences = times[arm].iter().zip(&times[0]).map(|(a, b)| a - b).collect();
        println!("  {name:10} adds {}", median(differences, "ns", 1));
    }
    Ok(())
}
