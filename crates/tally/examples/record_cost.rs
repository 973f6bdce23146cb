// SPDX-License-Identifier: PostgreSQL
//! The CPU time, memory and disk space that recording takes.
//!
//!     cargo build --release -p tally
//!     cargo run --release -p tally --example record_cost [SESSIONS [SECONDS [DIR [LEVEL]]]]
//!
//! Runs a scratch server with SESSIONS (200) sessions and `target/release/tally record` with its defaults.
//! A tenth of the sessions draw from 500 distinct reads; the others run a TPC-B transaction every 1.5
//! seconds. Prints
//! - CPU time of all threads, the writing of each minute's files included: mean over whole minutes, with
//!   the half-width of its 95 % interval;
//! - CPU time for ending the recording, which merges all files;
//! - maximum resident memory.
//!
//! SECONDS (600) is rounded up to minutes; one more minute comes first and is not counted. With DIR the
//! recording is kept: `cargo run --release -p recording --example day` makes a day from it.

mod bench;

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use scratch::{Cluster, Load};

type Failed = Box<dyn std::error::Error>;

const MINUTE: Duration = Duration::from_secs(60);
/// One session in this many runs distinct statements.
const READERS: u32 = 10;
/// Distinct reads, in hundreds, and transactions per second of each reader.
const HUNDREDS: u32 = 5;
const READS: f64 = 12.0;
/// TPC-B transactions per second of each other session.
const UPDATES: f64 = 1.0 / 1.5;

/// A recorder that is killed when dropped.
struct Recorder(Child);

impl Drop for Recorder {
    fn drop(&mut self) {
        // Fails if it has ended normally.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Recorder {
    /// The fields of /proc/PID/stat after the name.
    fn stat(&self) -> Result<Vec<String>, Failed> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id()))?;
        let after = stat.rsplit(')').next().unwrap_or("");
        Ok(after.split_ascii_whitespace().map(String::from).collect())
    }

    /// CPU time of all its threads, seconds, in steps of 10 ms.
    fn processor_seconds(&self) -> Result<f64, Failed> {
        let fields = self.stat()?;
        let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
        Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }

    /// Whether it has ended. Its figures stay readable until it is waited for.
    fn has_ended(&self) -> Result<bool, Failed> {
        Ok(self.stat()?.first().is_some_and(|state| state == "Z"))
    }

    fn check_running(&self) -> Result<(), Failed> {
        if self.has_ended()? {
            return Err("the recorder ended early; see its messages".into());
        }
        Ok(())
    }
}

fn bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |path: PathBuf| if path.is_dir() { bytes(&path) } else { size_of(&path) };
    entries.map(|entry| size(entry.path())).sum()
}

fn size_of(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |m| m.len())
}

fn main() -> Result<(), Failed> {
    let mut args = std::env::args().skip(1);
    let sessions: u32 = args.next().map_or(Ok(200), |text| text.parse())?;
    let seconds: u64 = args.next().map_or(Ok(600), |text| text.parse())?;
    let kept = args.next().map(PathBuf::from);
    let level = args.next().unwrap_or_else(|| "waits".to_string());
    let minutes = seconds.div_ceil(60).max(2);
    let tally = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/release/tally");
    let library = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../pg_tally/pg_tally.so"));
    let mut cluster = Cluster::builder()
        .library(library)
        .setting("shared_preload_libraries", "pg_tally")
        .setting("pg_tally.level", &level)
        .setting("max_connections", &(sessions + 20).to_string())
        .create()?;
    let segment = bench::segment(&mut cluster)?;
    cluster.start()?;
    cluster.pgbench_init(10)?;
    let distinct = Load::Distinct { hundreds: HUNDREDS };
    cluster.fill(&distinct, 1)?;
    let folder = std::env::temp_dir().join(format!("record_cost.{}", std::process::id()));
    let directory = kept.clone().unwrap_or(folder);
    let readers = (sessions / READERS).max(1);
    let lasts = MINUTE * u32::try_from(minutes + 2)?;
    let load = |load, clients: u32, each: f64| {
        let rate = f64::from(clients) * each;
        cluster.pgbench().load(load).clients(clients).rate(rate).duration(lasts).spawn()
    };
    let mut loads = vec![load(distinct, readers, READS)?];
    if sessions > readers {
        loads.push(load(Load::TpcB, sessions - readers, UPDATES)?);
    }
    std::thread::sleep(Duration::from_secs(4));
    let mut command = Command::new(tally);
    command.arg("record").arg("-o").arg(&directory).arg(&segment);
    let mut recorder = Recorder(command.spawn()?);
    let mut readings = Vec::new();
    let begun = Instant::now();
    for minute in 1..=u32::try_from(minutes + 1)? {
        std::thread::sleep((begun + MINUTE * minute).saturating_duration_since(Instant::now()));
        recorder.check_running()?;
        readings.push((recorder.processor_seconds()?, Instant::now()));
    }
    let shares: Vec<f64> = readings
        .windows(2)
        .map(|pair| 100.0 * (pair[1].0 - pair[0].0) / (pair[1].1 - pair[0].1).as_secs_f64())
        .collect();
    let memory = bench::max_memory(recorder.0.id()).unwrap_or_default();
    let before = recorder.processor_seconds()?;
    if let Some(pid) = rustix::process::Pid::from_raw(i32::try_from(recorder.0.id())?) {
        rustix::process::kill_process(pid, rustix::process::Signal::INT)?;
    }
    while !recorder.has_ended()? {
        std::thread::sleep(Duration::from_millis(20));
    }
    let closing = recorder.processor_seconds()? - before;
    recorder.0.wait()?;
    for mut load in loads {
        load.kill();
    }
    println!(
        "{sessions} sessions, level {level}: {} of a core over {minutes} minutes; ending took \
         {closing:.2} s of CPU time; maximum resident memory {memory}; {} bytes",
        bench::mean(&shares, "%", 2),
        bytes(&directory)
    );
    if kept.is_none() {
        std::fs::remove_dir_all(&directory)?;
    }
    Ok(())
}
