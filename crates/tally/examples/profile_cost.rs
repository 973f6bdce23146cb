// SPDX-License-Identifier: PostgreSQL
//! What `tally profile` costs the server that it samples: CPU time per command of the server's processes, and
//! the CPU time of the samplers themselves.
//!
//!     cargo run --release -p tally --example profile_cost [ROUNDS [SECONDS]]
//!
//! Runs a scratch server with a select-only load, and `target/release/tally profile` at 99 and 999 Hz, and at 999 Hz without
//! copies of stacks. A round has SECONDS (3) of each, of no profile, and of no profile again as control, in
//! random order; 13 rounds take less than four minutes. Prints the change of CPU time per command against no profile, with the half-width of its 95 % interval.

mod bench;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use process::Proc;
use rand::seq::SliceRandom;
use scratch::{Cluster, Load};
use segment::{Interval, Segment};
use stats::Estimate;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Samples per second, and how stacks are found; `None`: no profile. The second of those is the control.
const ARMS: [(&str, Option<(u32, &str)>); 5] = [
    ("no profile", None),
    ("control", None),
    ("99 Hz", Some((99, "auto"))),
    ("999 Hz", Some((999, "auto"))),
    ("999 Hz, frame pointers", Some((999, "frame-pointer"))),
];

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let rounds: u32 = args.next().map_or(Ok(13), |text| text.parse())?;
    let seconds: u32 = args.next().map_or(Ok(3), |text| text.parse())?;
    let block = Duration::from_secs(seconds.into());
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut cluster = Cluster::builder()
        .library(root.join("pg_tally/pg_tally.so"))
        .setting("shared_preload_libraries", "pg_tally")
        .create()?;
    let path = bench::segment(&mut cluster)?;
    cluster.start()?;
    cluster.pgbench_init(1)?;
    // Each arm takes its block and the start and end of a profile.
    let length = (block + Duration::from_secs(5)) * ARMS.len() as u32 * rounds;
    let load = cluster.pgbench().load(Load::Select).clients(4).duration(length);
    let mut load = load.spawn()?;
    std::thread::sleep(Duration::from_secs(2));
    let mut segment = Segment::open(&path)?;
    let mut per_command = vec![Vec::new(); ARMS.len()];
    let mut own = vec![Vec::new(); ARMS.len()];
    let mut order: Vec<usize> = (0..ARMS.len()).collect();
    for _ in 0..rounds {
        order.shuffle(&mut rand::rng());
        for &arm in &order {
            let mut profile = ARMS[arm].1.map(|how| start(root, &path, how, block)).transpose()?;
            let tally = profile.as_ref().map(Child::id);
            let processor = || tally.map_or(Ok(0), bench::processor_ns);
            let (before, begun) =
                ((segment.snapshot(None)?, on_cpu(&segment), processor()?), Instant::now());
            std::thread::sleep(block);
            let after = (segment.snapshot(Some(&before.0))?, on_cpu(&segment), processor()?);
            let took = begun.elapsed().as_nanos() as f64;
            let commands = Interval::between(&segment, Some(&before.0), &after.0).commands_handled;
            per_command[arm].push((after.1 - before.1) as f64 / commands.max(1) as f64);
            own[arm].push((after.2 - before.2) as f64 / took * 100.0);
            if let Some(profile) = &mut profile {
                profile.kill()?;
                profile.wait()?;
            }
        }
    }
    if !load.running() {
        return Err("the load has ended before the last round".into());
    }
    load.kill();
    println!("{rounds} rounds of {seconds} s, select-only, 4 clients");
    println!("no profile: {}", bench::median(per_command[0].clone(), "ns a command", 0));
    for arm in 1..ARMS.len() {
        let ratios: Vec<f64> = per_command[arm]
            .iter()
            .zip(&per_command[0])
            .map(|(with, without)| (with / without).ln())
            .collect();
        let Some(estimate) = Estimate::of_repeats(&ratios) else {
            return Err("too few rounds".into());
        };
        println!(
            "{}: {:+.2} % ±{:.2}, the samplers {} of a CPU",
            ARMS[arm].0,
            estimate.mean * 100.0,
            estimate.half_width * 100.0,
            bench::median(own[arm].clone(), "%", 2)
        );
    }
    Ok(())
}

/// On-CPU time of the server's processes, ns.
fn on_cpu(segment: &Segment) -> u64 {
    let processes = Proc::default();
    let children = processes.children(segment.header().server_pid);
    children.iter().filter_map(|pid| processes.schedstat(*pid)).map(|it| it.on_cpu_ns).sum()
}

/// A profile that samples already and lasts longer than a block.
fn start(
    root: &Path,
    segment: &Path,
    (hertz, unwind): (u32, &str),
    block: Duration,
) -> Result<Child> {
    let mut profile = Command::new(root.join("target/release/tally"))
        .args(["profile", "--json", "--hertz", &hertz.to_string(), "--unwind", unwind])
        .args(["--seconds", &(block.as_secs() + 10).to_string()])
        .arg(segment)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let maps = format!("/proc/{}/maps", profile.id());
    while !std::fs::read_to_string(&maps)?.contains("[perf_event]") {
        if profile.try_wait()?.is_some() {
            return Err("tally profile has ended; run it by hand to see why".into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(200));
    Ok(profile)
}
