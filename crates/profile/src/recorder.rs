// SPDX-License-Identifier: PostgreSQL
//! Takes a profile: runs the samplers for some time between two snapshots.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use error::Error;
use segment::clock::monotonic_ns;
use segment::kernel::Watch;
use segment::{Frame, Interval, Segment, SegmentPath, Snapshot};

use crate::address_space::{AddressSpaces, Learner};
use crate::assemble::{self, ProfileSamples, SamplingMethod, SeenProcesses};
use crate::event::Event;
use crate::maps::Maps;
use crate::permission::{self, Allowed};
use crate::processes::Processes;
use crate::profile::{Profile, Scope};
use crate::registers;
use crate::timeline::Timeline;
use crate::unwinder::Unwinder;

pub use crate::unwinder::Unwind;
use crate::wall_sampler;

/// How to sample.
#[derive(Debug, Clone, Copy)]
pub struct ProfileOptions {
    /// How long to sample.
    pub duration: Duration,
    /// Samples per second of each CPU and each session.
    pub hertz: f64,
    /// Whether to sample all processes on the machine.
    pub system: bool,
    /// How to unwind the stacks of the server's processes.
    pub unwind: Unwind,
}

/// How often to look for new processes.
const TURN: Duration = Duration::from_millis(50);

/// A profile, and its samples in order of time.
#[derive(Debug)]
pub struct Recorded {
    /// The profile.
    pub profile: Profile,
    /// Its samples and waits in order.
    pub timeline: Timeline,
    /// Whether the server stopped before the end.
    pub server_stopped: bool,
}

/// Takes a profile of the segment's server, which must be running and measuring. Calls `turn` several times per second
/// with the elapsed time; `turn` ends the profile by returning false.
pub fn record(
    path: &SegmentPath,
    options: &ProfileOptions,
    mut turn: impl FnMut(Duration) -> bool,
) -> Result<Recorded, Error> {
    let mut segment = Segment::open(path)?;
    need_pids(&segment)?;
    // Samplers read through their own segment, since a snapshot changes what is known of the directory.
    let shared = Segment::open(path)?;
    let processes = Processes::default();
    let mut seen = SeenProcesses::default();
    seen.add(&segment, &processes.refresh(&segment)?)?;
    let period_ns = (1e9 / options.hertz).round() as u64;
    let unwind = if registers::SAMPLED == 0 { Unwind::FramePointer } else { options.unwind };
    let stacks = unwind != Unwind::FramePointer;
    let allowed = permission::open(period_ns, options.system, stacks)?;
    let spaces = AddressSpaces::default();
    let mut learner = Learner::new(&spaces);
    if stacks {
        seen.teach(&mut learner, &processes, &processes.running());
    }
    let mut clocks = Clocks::new(&allowed);
    clocks.follow(&processes)?;
    let stop = AtomicBool::new(false);
    let mut server_stopped = false;
    let (found, interval) = std::thread::scope(|scope| -> Result<_, Error> {
        // The samplers end however this function returns.
        let _end = Ends(&stop);
        let samplers: Vec<_> = allowed
            .samplers
            .iter()
            .map(|sampler| {
                scope.spawn(|| {
                    let unwinder = Unwinder::new(&spaces, unwind);
                    sampler.collect(&shared, &processes, unwinder, options.system, &stop)
                })
            })
            .collect();
        let mut kernel = Watch::without_samples(&segment);
        let before = segment.snapshot(None)?;
        kernel.observe(None, &before, 0.0);
        let (begun, begun_ns) = (Instant::now(), monotonic_ns());
        let wall = scope.spawn(|| wall_sampler::collect(&shared, period_ns, &stop));
        allowed.start()?;
        while let Some(left) = options.duration.checked_sub(begun.elapsed()) {
            if !turn(begun.elapsed()) {
                break;
            }
            if segment.server_runs() == Some(false) || segment.replaced() {
                server_stopped = true;
                break;
            }
            std::thread::sleep(left.min(TURN));
            let mut new: HashSet<i32> = processes.refresh(&segment)?.into_iter().collect();
            // Processes that have loaded code since they were last read.
            new.extend(spaces.take_stale());
            seen.add(&segment, &new.iter().copied().collect::<Vec<_>>())?;
            if stacks {
                seen.teach(&mut learner, &processes, &new);
            }
            let others = processes.others();
            if options.system {
                seen.add_others(&others);
            }
            clocks.follow(&processes)?;
        }
        allowed.end()?;
        stop.store(true, Ordering::Release);
        let after = segment.snapshot(Some(&before))?;
        let interval = interval(&segment, &mut kernel, &before, &after);
        let cpus =
            samplers.into_iter().map(|sampler| joined(sampler.join())).collect::<Result<_, _>>()?;
        let found = ProfileSamples { cpus, wall: joined(wall.join())?, begun_ns };
        Ok((found, interval))
    })?;
    seen.again(&processes);
    let scope = if options.system { Scope::System } else { Scope::Server };
    let how = SamplingMethod { hertz: options.hertz, scope, kernel: allowed.kernel };
    let (profile, timeline) = assemble::assemble(&mut segment, &found, &seen, &interval, how)?;
    Ok(Recorded { profile, timeline, server_stopped })
}

/// Fails if the segment's PIDs are unknown here: samples have PIDs.
fn need_pids(segment: &Segment) -> Result<(), Error> {
    match segment.knows_pids() {
        true => Ok(()),
        false => Err(Error::Failed(format!(
            "{}: the server's processes are in another PID namespace; run tally where the server runs",
            segment.path().display()
        ))),
    }
}

fn interval(
    segment: &Segment,
    kernel: &mut Watch,
    before: &Snapshot,
    after: &Snapshot,
) -> Interval {
    let frame = Frame::between(segment, Some(before), after);
    let busy = frame.busy_seconds();
    let mut interval = Interval::from(frame);
    interval.kernel = kernel.observe(Some(before), after, busy);
    interval
}

fn joined<T>(result: std::thread::Result<Result<T, Error>>) -> Result<T, Error> {
    result.unwrap_or_else(|_| Err(Error::Failed("a sampling thread failed".into())))
}

/// Tells samplers to end when it is dropped.
struct Ends<'s>(&'s AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Allowed {
    fn start(&self) -> Result<(), Error> {
        Ok(self.samplers.iter().try_for_each(|sampler| sampler.start())?)
    }

    fn end(&self) -> Result<(), Error> {
        Ok(self.samplers.iter().try_for_each(|sampler| sampler.end())?)
    }
}

/// Clocks of single processes, used if not everything may be sampled.
struct Clocks<'a> {
    allowed: &'a Allowed,
    running: HashMap<i32, Vec<Event>>,
}

impl<'a> Clocks<'a> {
    fn new(allowed: &'a Allowed) -> Clocks<'a> {
        Clocks { allowed, running: HashMap::new() }
    }

    /// Adds clocks for new processes and removes those of ended ones.
    fn follow(&mut self, processes: &Processes) -> Result<(), Error> {
        if self.allowed.everything {
            return Ok(());
        }
        let now = processes.running();
        self.running.retain(|pid, _| now.contains(pid));
        for pid in now {
            if self.running.contains_key(&pid) {
                continue;
            }
            let clocks: std::io::Result<Vec<Event>> =
                self.allowed.samplers.iter().map(|sampler| sampler.add(pid)).collect();
            match clocks {
                Ok(clocks) => drop(self.running.insert(pid, clocks)),
                // It has just ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => {
                    return Err(permission::refused(&error, &format!("server process {pid}")))
                }
            }
        }
        Ok(())
    }
}

impl SeenProcesses {
    /// Reads new processes of the server.
    fn add(&mut self, segment: &Segment, pids: &[i32]) -> Result<(), Error> {
        if pids.is_empty() {
            return Ok(());
        }
        for owner in segment.owners(pids)? {
            self.kinds.insert(owner.pid, owner.identity.kind.clone());
        }
        for pid in pids {
            if let Some(maps) = Maps::read(*pid) {
                self.maps.insert(*pid, maps);
            }
        }
        Ok(())
    }

    /// Prepares the unwinding of these processes' stacks.
    fn teach(&self, learner: &mut Learner<'_>, processes: &Processes, pids: &HashSet<i32>) {
        for pid in pids {
            if let Some(maps) = self.maps.get(pid) {
                learner.learn(*pid, maps, processes.postmaster());
            }
        }
    }

    fn add_others(&mut self, pids: &[i32]) {
        for pid in pids {
            if let Ok(name) = std::fs::read_to_string(format!("/proc/{pid}/comm")) {
                self.names.insert(*pid, name.trim_end().to_string());
            }
            if let Some(maps) = Maps::read(*pid) {
                self.maps.insert(*pid, maps);
            }
        }
    }

    /// Reads the files that running processes have loaded meanwhile.
    fn again(&mut self, processes: &Processes) {
        for (pid, maps) in &mut self.maps {
            if let Some(now) = Maps::read(*pid) {
                *maps = now;
            }
        }
        self.ours = processes.ours().into_iter().collect();
        self.postmaster = processes.postmaster();
    }
}
