// SPDX-License-Identifier: PostgreSQL
//! Samples the processes on one CPU, in a thread on that CPU that each sample wakes.
//!
//! The purpose is to join each sample with the segment. The clock's interrupt wakes the thread, which runs on the same
//! CPU before the sampled process continues, so the process does not run while its slot is read. This is verified for
//! each sample: an account that has been running since before the sample was running at the sample. Otherwise the
//! sample's account counts as unknown; it is never guessed.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use error::Error;
use segment::clock::monotonic_ns;
use segment::{Doing, Segment};

use crate::event::{Clock, ClockTarget, Event};
use crate::processes::Processes;
use crate::ring::{Record, Ring, RingSample};
use crate::thread;
use crate::unwinder::Unwinder;

/// Longest sleep of a thread before it checks whether to stop.
const NAP_MS: i32 = 50;
/// A process without a slot is looked up again after this time, because it may have just started.
const FOREIGN_NS: u64 = 20_000_000;

/// A stack of addresses: the kernel's part, then the process's, innermost first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Addresses {
    /// All addresses.
    pub frames: Box<[u64]>,
    /// Number of addresses in the kernel.
    pub kernel: u32,
}

/// Account and statement of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Account {
    /// As recorded in the segment.
    Known(Doing),
    /// It changed between the sample and the reading.
    Moved,
    /// The process has no slot.
    NoSlot,
}

/// A sample of a CPU.
#[derive(Debug, Clone, Copy)]
pub struct CpuSample {
    /// The process.
    pub pid: i32,
    /// When, CLOCK_MONOTONIC in ns.
    pub time: u64,
    /// Index of the stack.
    pub stack: u32,
    /// Its account.
    pub account: Account,
}

/// The samples of one CPU.
#[derive(Debug, Default)]
pub struct CpuSamples {
    /// The samples, in order.
    pub samples: Vec<CpuSample>,
    /// The stacks of the samples.
    pub stacks: Vec<Addresses>,
    /// Samples lost for lack of space.
    pub lost: u64,
    /// How often the kernel throttled the clock.
    pub throttled: u64,
    /// Whether the thread ran before the processes that it sampled.
    pub first: bool,
    /// Samples of processes outside the server that were not kept.
    pub others: u64,
    /// Stacks unwound with tables instead of frame pointers.
    pub unwound: u64,
}

/// A sampler of one CPU.
#[derive(Debug)]
pub struct CpuSampler {
    cpu: u32,
    clock: Clock,
    /// The clock for everything on this CPU, or the owner of the ring if processes have their own clocks.
    owner: Event,
    everything: bool,
    ring: Mutex<Ring>,
}

impl CpuSampler {
    /// A sampler of everything on this CPU, stopped.
    pub fn of_everything(cpu: u32, clock: Clock) -> io::Result<CpuSampler> {
        CpuSampler::open(cpu, clock, Event::clock(cpu, ClockTarget::Everything, clock)?, true)
    }

    /// A sampler of processes that are added later.
    pub fn of_processes(cpu: u32, clock: Clock) -> io::Result<CpuSampler> {
        CpuSampler::open(cpu, clock, Event::holder(cpu)?, false)
    }

    fn open(cpu: u32, clock: Clock, owner: Event, everything: bool) -> io::Result<CpuSampler> {
        let ring = Mutex::new(Ring::map(&owner, clock.stacks)?);
        Ok(CpuSampler { cpu, clock, owner, everything, ring })
    }

    /// Starts a clock for a process on this CPU; dropping it ends its samples.
    pub fn add(&self, pid: i32) -> io::Result<Event> {
        let event = Event::clock(self.cpu, ClockTarget::Process(pid), self.clock)?;
        event.output_to(&self.owner)?;
        event.enable()?;
        Ok(event)
    }

    /// Starts the clock for everything.
    pub fn start(&self) -> io::Result<()> {
        match self.everything {
            true => self.owner.enable(),
            false => Ok(()),
        }
    }

    /// Stops it.
    pub fn end(&self) -> io::Result<()> {
        match self.everything {
            true => self.owner.disable(),
            false => Ok(()),
        }
    }

    /// Collects samples until `stop` is set; samples outside the server only if `all`.
    pub fn collect(
        &self,
        segment: &Segment,
        processes: &Processes,
        mut unwinder: Unwinder<'_>,
        all: bool,
        stop: &AtomicBool,
    ) -> Result<CpuSamples, Error> {
        thread::stay_on(self.cpu);
        let mut found = CpuSamples { first: thread::go_first(), ..CpuSamples::default() };
        let mut stacks = HashMap::new();
        let mut foreign = HashMap::new();
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            // Read this before the ring, so that samples from before the end are still collected.
            let ends = stop.load(Ordering::Acquire);
            if !ends && ring.is_empty() {
                wait(&self.owner);
            }
            let mut failure = None;
            ring.drain(|record| match record {
                Record::Lost(count) => found.lost += count,
                Record::Throttled => found.throttled += 1,
                Record::Sample(sample) => {
                    let account = match account_of(segment, processes, &sample, &mut foreign) {
                        Ok(account) => account,
                        Err(error) => return failure = Some(error),
                    };
                    let ours = account != Account::NoSlot || processes.is_ours(sample.pid);
                    if !ours && !all {
                        return found.others += 1;
                    }
                    let user = if ours { unwinder.frames(&sample) } else { sample.user };
                    let stack = intern(&mut stacks, &mut found.stacks, sample.kernel, user);
                    let RingSample { pid, time, .. } = sample;
                    found.samples.push(CpuSample { pid, time, stack, account });
                }
            });
            match failure {
                Some(error) => return Err(error),
                None if ends => {
                    found.unwound = unwinder.by_table;
                    return Ok(found);
                }
                None => {}
            }
        }
    }
}

/// Sleeps until there is a sample, or for a while.
fn wait(event: &Event) {
    let mut poll = libc::pollfd { fd: event.raw(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, which the call reads and writes.
    unsafe { libc::poll(&mut poll, 1, NAP_MS) };
}

fn account_of(
    segment: &Segment,
    processes: &Processes,
    sample: &RingSample<'_>,
    foreign: &mut HashMap<i32, u64>,
) -> Result<Account, Error> {
    let slot = match processes.slot(sample.pid) {
        Some(slot) => Some(slot),
        None if foreign.get(&sample.pid).is_some_and(|at| sample.time < at + FOREIGN_NS) => None,
        None => {
            let slot = processes.look_up(segment, sample.pid)?;
            if slot.is_none() {
                foreign.insert(sample.pid, sample.time);
            }
            slot
        }
    };
    let Some(slot) = slot else { return Ok(Account::NoSlot) };
    let Some(doing) = segment.doing(&slot)? else { return Ok(Account::NoSlot) };
    // The sample's instant in ticks. Little time has passed since, so the error is far below a switch.
    let clock = segment.clock();
    let (tick, ns) = (clock.now(), monotonic_ns());
    let passed = clock.ticks(ns.saturating_sub(sample.time) as f64 * 1e-9);
    Ok(match doing.steady && doing.since <= tick.saturating_sub(passed) {
        true => Account::Known(doing),
        false => Account::Moved,
    })
}

fn intern(
    known: &mut HashMap<Addresses, u32>,
    stacks: &mut Vec<Addresses>,
    kernel: &[u64],
    user: &[u64],
) -> u32 {
    let addresses =
        Addresses { frames: [kernel, user].concat().into(), kernel: kernel.len() as u32 };
    if let Some(number) = known.get(&addresses) {
        return *number;
    }
    let number = stacks.len() as u32;
    stacks.push(addresses.clone());
    known.insert(addresses, number);
    number
}
