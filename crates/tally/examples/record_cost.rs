// SPDX-License-Identifier: PostgreSQL
//! What recording takes of the machine, and what of the disk.
//!
//!     cargo run --release -p tally --example record_cost [SESSIONS [SECONDS [DIR]]]
//!
//! A scratch server with so many sessions, each of which runs a TPC-B transaction every one and
//! a half seconds, and `target/release/tally record` at its defaults beside it. Reported is the processor's time that it took, as /proc tells it,
//! all threads and the making of files included, and its greatest resident memory. With DIR
//! the recording stays.

mod bench;

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use scratch::Cluster;

/// Processor time of a process and its threads, seconds.
fn processor_seconds(child: &Child) -> Result<f64, Box<dyn std::error::Error>> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
    let after = stat.rsplit(')').next().unwrap_or("");
    let fields: Vec<&str> = after.split_ascii_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

fn most_memory(child: &Child) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    status.lines().find_map(|line| Some(line.strip_prefix("VmHWM:")?.trim().to_string()))
}

fn bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |path: PathBuf| if path.is_dir() { bytes(&path) } else { size_of(&path) };
    entries.map(|entry| size(entry.path())).sum()
}

fn size_of(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |m| m.len())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let sessions: u32 = args.next().map_or(Ok(200), |text| text.parse())?;
    let seconds: u64 = args.next().map_or(Ok(120), |text| text.parse())?;
    let kept = args.next().map(PathBuf::from);
    let library = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../pg_tally/pg_tally.so"));
    let mut cluster = Cluster::builder()
        .library(library)
        .setting("shared_preload_libraries", "pg_tally")
        .setting("max_connections", &(sessions + 20).to_string())
        .create()?;
    let segment = bench::segment(&mut cluster)?;
    cluster.start()?;
    cluster.pgbench_init(1)?;
    let folder = std::env::temp_dir().join(format!("record_cost.{}", std::process::id()));
    let directory = kept.clone().unwrap_or(folder);
    let load = cluster
        .pgbench()
        .clients(sessions)
        .rate(f64::from(sessions) / 1.5)
        .duration(Duration::from_secs(seconds + 10))
        .spawn()?;
    std::thread::sleep(Duration::from_secs(4));
    let tally = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/release/tally");
    let mut recorder =
        Command::new(tally).arg("record").arg("-o").arg(&directory).arg(&segment).spawn()?;
    let begun = Instant::now();
    std::thread::sleep(Duration::from_secs(seconds));
    let (took, ran) = (processor_seconds(&recorder)?, begun.elapsed().as_secs_f64());
    let memory = most_memory(&recorder).unwrap_or_default();
    if let Some(pid) = rustix::process::Pid::from_raw(recorder.id() as i32) {
        rustix::process::kill_process(pid, rustix::process::Signal::INT)?;
    }
    recorder.wait()?;
    load.wait()?;
    println!(
        "{sessions} sessions, {ran:.0} s: {took:.2} s of a processor, {:.2} % of a core; at most \
         {memory} resident; {} bytes",
        100.0 * took / ran,
        bytes(&directory)
    );
    if kept.is_none() {
        std::fs::remove_dir_all(&directory)?;
    }
    Ok(())
}
