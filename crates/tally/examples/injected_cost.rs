// SPDX-License-Identifier: PostgreSQL
//! Tests whether `tally cost` finds a known overhead, and none if there is none.
//!
//!     make -C bench/peers/spin
//!     cargo build --release -p tally
//!     cargo run --release -p tally --example injected_cost [MINUTES [RUNS [PERCENT]]]
//!
//! Each statement of a select-only load spins for PERCENT of its duration; `tally cost --of outside` toggles
//! that. RUNS runs of MINUTES each with the spin alternate with as many runs without it. Prints how often the
//! confidence interval contains the injected cost, and how often a cost is found where none was injected.

mod bench;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use scratch::{Cluster, Load};
use serde_json::Value;

const CLIENTS: u32 = 2;
const SCALE: u32 = 10;
const WARM_UP: Duration = Duration::from_secs(5);

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The result of one run of `tally cost`.
struct Run {
    percent: f64,
    half_width: f64,
    differs: bool,
    /// CPU time of a transaction while the spin is off, seconds.
    base: f64,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let minutes: f64 = arguments.next().map_or(Ok(2.0), |text| text.parse())?;
    let runs: usize = arguments.next().map_or(Ok(20), |text| text.parse())?;
    let wanted: f64 = arguments.next().map_or(Ok(0.5), |text| text.parse())?;
    let (cluster, path) = server()?;
    // The duration of a transaction without the spin.
    let base = measure(&cluster, &path, 0, 0.25)?.base;
    println!("a transaction takes {:.2} us; {runs} runs of {minutes} min each, 95 %", base * 1e6);
    let (mut contained, mut false_alarms) = (0, 0);
    for number in 0..runs {
        let nanoseconds = (base * 1e9 * wanted / 100.0).round() as u64;
        for spin in if number % 2 == 0 { [nanoseconds, 0] } else { [0, nanoseconds] } {
            let run = measure(&cluster, &path, spin, minutes)?;
            let injected = 100.0 * spin as f64 * 1e-9 / run.base;
            let holds = (run.percent - injected).abs() <= run.half_width;
            if spin > 0 {
                contained += usize::from(holds);
            } else {
                false_alarms += usize::from(run.differs);
            }
            println!(
                "injected {injected:.3} %: found {:+.3} % ± {:.3}{}{}",
                run.percent,
                run.half_width,
                if holds { "" } else { ", outside" },
                if run.differs { ", differs from zero" } else { "" }
            );
        }
    }
    println!("the interval contains the injected cost in {contained} of {runs} runs; false alarms in {false_alarms} of {runs}");
    Ok(())
}

fn server() -> Result<(Cluster, PathBuf)> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut cluster = Cluster::builder()
        .library(root.join("pg_tally/pg_tally.so"))
        .library(root.join("bench/peers/spin/spin.so"))
        .settings([
            ("shared_preload_libraries", "pg_tally, spin"),
            ("pg_tally.statements", "none"),
            ("shared_buffers", "256MB"),
        ])
        .create()?;
    let path = bench::segment(&mut cluster)?;
    cluster.start()?;
    cluster.fill(&Load::Select, SCALE)?;
    Ok((cluster, path))
}

fn measure(cluster: &Cluster, path: &Path, spin: u64, minutes: f64) -> Result<Run> {
    cluster.append_config(&format!("\nspin.nanoseconds = {spin}\n"))?;
    cluster.reload()?;
    let mut load = cluster
        .pgbench()
        .load(Load::Select)
        .clients(CLIENTS)
        .jobs(2)
        .duration(WARM_UP + Duration::from_secs_f64(minutes * 60.0 + 60.0))
        .spawn()?;
    std::thread::sleep(WARM_UP);
    let output = Command::new(bench::program()?)
        .args(["cost", "--json", "--of", "outside", "--minutes", &minutes.to_string()])
        .arg(path)
        .stderr(Stdio::inherit())
        .output()?;
    load.kill();
    if !output.status.success() {
        return Err(format!("tally cost: {}", output.status).into());
    }
    let result: Value = serde_json::from_slice(&output.stdout)?;
    let number = |path: &str| {
        result.pointer(path).and_then(Value::as_f64).ok_or_else(|| format!("there is no {path}"))
    };
    Ok(Run {
        percent: number("/cpu/percent")?,
        half_width: number("/cpu/half_width")?,
        differs: result["differs_from_zero"].as_bool().unwrap_or(false),
        base: number("/off/cpu_seconds_per_unit")?,
    })
}
