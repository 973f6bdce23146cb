// SPDX-License-Identifier: PostgreSQL
//! The overhead of `tally profile` for the server that it samples: CPU time per command of the server's sessions,
//! and the CPU time of the samplers themselves.
//!
//!     cargo run --release -p tally --example profile_cost [ROUNDS [CLIENTS]]
//!
//! Runs a scratch server with a select-only load of 4 clients, and `tally profile` of the same build at 99 and
//! 999 Hz, and at 999 Hz without copies of stacks. The profile's events are disabled and enabled from here in
//! slices of 50 ms, off-on-on-off or on-off-off-on, so that disturbances of the machine affect both. A round has
//! 20 such groups of four for each way, and for no profile as the control, in random order; 12 rounds take four
//! minutes. Prints how much more CPU time a command takes with events than without, with the half-width of its 95
//! % interval. Run it as root, or as the user that runs the server.

mod bench;

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use process::Proc;
use rand::seq::SliceRandom;
use rand::Rng;
use rustix::process::{pidfd_getfd, pidfd_open, Pid, PidfdFlags, PidfdGetfdFlags};
use scratch::{Cluster, Load};
use segment::{Interval, Segment};
use stats::Estimate;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Samples per second, and how stacks are found; `None` for the control, without a profile.
const ARMS: [(&str, Option<(u32, &str)>); 4] = [
    ("control", None),
    ("99 Hz", Some((99, "auto"))),
    ("999 Hz", Some((999, "auto"))),
    ("999 Hz, frame pointers", Some((999, "frame-pointer"))),
];
const SLICE: Duration = Duration::from_millis(50);
const FOURS: usize = 20;
// <linux/perf_event.h>
const ENABLE: libc::Ioctl = 0x2400;
const DISABLE: libc::Ioctl = 0x2401;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let rounds: u32 = args.next().map_or(Ok(12), |text| text.parse())?;
    let clients: u32 = args.next().map_or(Ok(4), |text| text.parse())?;
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut cluster = Cluster::builder()
        .library(root.join("pg_tally/pg_tally.so"))
        .setting("shared_preload_libraries", "pg_tally")
        .create()?;
    let path = bench::segment(&mut cluster)?;
    cluster.start()?;
    cluster.pgbench_init(1)?;
    // Each way has its groups of four slices, between the start and the end of a profile.
    let length = (SLICE * 4 * FOURS as u32 + Duration::from_secs(5)) * ARMS.len() as u32 * rounds;
    let load = cluster.pgbench().load(Load::Select).clients(clients).duration(length);
    let mut load = load.spawn()?;
    std::thread::sleep(Duration::from_secs(2));
    let mut server = Server::new(Segment::open(&path)?);
    let mut logs = vec![Vec::new(); ARMS.len()];
    let mut own = vec![Vec::new(); ARMS.len()];
    let mut off = Vec::new();
    let mut order: Vec<usize> = (0..ARMS.len()).collect();
    for round in 0..rounds {
        order.shuffle(&mut rand::rng());
        for &arm in &order {
            let mut profile = ARMS[arm].1.map(|how| Profile::start(&path, how)).transpose()?;
            for _ in 0..FOURS {
                let first: bool = rand::rng().random();
                let (mut with, mut without) = (Slices::default(), Slices::default());
                for on in [first, !first, !first, first] {
                    let slices = if on { &mut with } else { &mut without };
                    slices.add(server.slice(profile.as_ref(), on)?);
                }
                logs[arm].push((with.per_command() / without.per_command()).ln());
                own[arm].push(with.profile as f64 / with.took.as_nanos() as f64 * 100.0);
                off.push(without.per_command());
            }
            if let Some(profile) = &mut profile {
                profile.end()?;
            }
        }
        eprint!("\rround {} of {rounds} ", round + 1);
    }
    eprintln!();
    if !load.running() {
        return Err("the load has ended before the last round".into());
    }
    load.kill();
    println!("{rounds} rounds, select-only, {clients} clients");
    println!("without: {}", bench::median(off, "ns a command", 0));
    for (arm, (name, _)) in ARMS.iter().enumerate() {
        let estimate = Estimate::of_repeats(&logs[arm]).ok_or("too few rounds")?;
        let (mean, half) = (estimate.mean.exp_m1() * 100.0, estimate.half_width * 100.0);
        let own = bench::median(own[arm].clone(), "%", 2);
        println!("{name}: {mean:+.2} % ±{half:.2}; the samplers take {own} of a CPU");
    }
    Ok(())
}

/// The figures of slices of one kind.
#[derive(Default)]
struct Slices {
    commands: u64,
    /// CPU time of the sessions, ns.
    sessions: u64,
    /// CPU time of the profile, ns.
    profile: u64,
    took: Duration,
}

impl Slices {
    fn add(&mut self, other: Slices) {
        self.commands += other.commands;
        self.sessions += other.sessions;
        self.profile += other.profile;
        self.took += other.took;
    }

    fn per_command(&self) -> f64 {
        self.sessions as f64 / self.commands.max(1) as f64
    }
}

struct Server {
    segment: Segment,
    processes: BTreeSet<u32>,
}

impl Server {
    fn new(segment: Segment) -> Server {
        let processes = Proc::default().children(segment.header().server_pid);
        Server { segment, processes }
    }

    /// Waits for the end of a slice in which the profile's events are enabled or disabled.
    fn slice(&mut self, profile: Option<&Profile>, on: bool) -> Result<Slices> {
        profile.map(|profile| profile.enable(on)).transpose()?;
        let begun = Instant::now();
        let before = (self.segment.snapshot(None)?, self.on_cpu());
        let own = profile.map_or(Ok(0), Profile::on_cpu)?;
        std::thread::sleep(SLICE);
        let after = (self.segment.snapshot(Some(&before.0))?, self.on_cpu());
        Ok(Slices {
            commands: Interval::between(&self.segment, Some(&before.0), &after.0).commands_handled,
            sessions: after.1 - before.1,
            profile: profile.map_or(Ok(0), Profile::on_cpu)? - own,
            took: begun.elapsed(),
        })
    }

    fn on_cpu(&self) -> u64 {
        let processes = Proc::default();
        self.processes
            .iter()
            .filter_map(|pid| processes.schedstat(*pid))
            .map(|schedstat| schedstat.on_cpu_ns)
            .sum()
    }
}

/// A running `tally profile`.
struct Profile {
    child: Child,
    events: Vec<OwnedFd>,
}

impl Profile {
    /// Waits until it takes samples.
    fn start(segment: &Path, (hertz, unwind): (u32, &str)) -> Result<Profile> {
        let mut child = Command::new(bench::program()?)
            .args(["profile", "--json", "--hertz", &hertz.to_string(), "--unwind", unwind])
            .args(["--for", "60"])
            .arg(segment)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let maps = format!("/proc/{}/maps", child.id());
        while !std::fs::read_to_string(&maps)?.contains("[perf_event]") {
            if child.try_wait()?.is_some() {
                return Err("tally profile has ended; run it by hand to see why".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(500));
        let events = events(child.id())?;
        Ok(Profile { child, events })
    }

    fn enable(&self, on: bool) -> Result<()> {
        for event in &self.events {
            // SAFETY: an ioctl without an argument of a descriptor that is open.
            if unsafe { libc::ioctl(event.as_raw_fd(), if on { ENABLE } else { DISABLE }, 0) } != 0
            {
                return Err(std::io::Error::last_os_error().into());
            }
        }
        Ok(())
    }

    fn on_cpu(&self) -> Result<u64> {
        bench::processor_ns(self.child.id())
    }

    fn end(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            return Err(format!("tally profile has ended: {status}").into());
        }
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

/// Our own descriptors for a process's performance events.
fn events(pid: u32) -> Result<Vec<OwnedFd>> {
    let process = pidfd_open(Pid::from_raw(pid as i32).ok_or("no process")?, PidfdFlags::empty())?;
    let mut events = Vec::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))? {
        let entry = entry?;
        let of = std::fs::read_link(entry.path())?;
        if of.to_string_lossy().contains("[perf_event]") {
            let number = entry.file_name().to_string_lossy().parse()?;
            events.push(pidfd_getfd(&process, number, PidfdGetfdFlags::empty())?);
        }
    }
    match events.is_empty() {
        true => Err(format!("process {pid} has no performance events").into()),
        false => Ok(events),
    }
}
