// SPDX-License-Identifier: PostgreSQL
//! perf_event_open(2): a clock that samples the processes on one CPU.
//!
//! It is the software clock `cpu-clock`, which every machine has, including virtual ones. It samples at equal
//! intervals of non-idle CPU time.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::registers;

/// The processes that a clock samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockTarget {
    /// Everything that runs on the CPU.
    Everything,
    /// One process.
    Process(i32),
}

/// How a clock samples.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// Time between samples, ns.
    pub period_ns: u64,
    /// Whether to sample the kernel too.
    pub kernel: bool,
    /// Whether samples have the registers and a copy of the top of the process's stack.
    pub stacks: bool,
}

/// `struct perf_event_attr` as of Linux 4.8 (PERF_ATTR_SIZE_VER5), which all later kernels accept.
#[repr(C)]
#[derive(Default)]
struct PerfEventAttributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

const SOFTWARE: u32 = 1;
const CPU_CLOCK: u64 = 0;
const DUMMY: u64 = 9;

/// The fields of each sample, in the order in which [`crate::ring`] decodes them.
const SAMPLE: u64 = SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_CALLCHAIN;
const SAMPLE_IP: u64 = 1;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_CALLCHAIN: u64 = 1 << 5;

const SAMPLE_REGS_USER: u64 = 1 << 12;
const SAMPLE_STACK_USER: u64 = 1 << 13;

/// Bytes to copy of a stack: deep stacks of a server have 5 to 12 kB. A multiple of 8.
const STACK_BYTES: u32 = 16 << 10;

const DISABLED: u64 = 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const EXCLUDE_IDLE: u64 = 1 << 7;
const USE_CLOCKID: u64 = 1 << 25;

const ENABLE: libc::c_ulong = 0x2400;
const DISABLE: libc::c_ulong = 0x2401;
const SET_OUTPUT: libc::c_ulong = 0x2405;
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// An event of the kernel.
#[derive(Debug)]
pub struct Event(OwnedFd);

impl Event {
    /// A clock on one CPU, stopped.
    pub fn clock(cpu: u32, whom: ClockTarget, clock: Clock) -> io::Result<Event> {
        let mut attributes = attributes(CPU_CLOCK);
        attributes.sample_period = clock.period_ns;
        attributes.flags |= DISABLED | EXCLUDE_IDLE;
        if !clock.kernel {
            attributes.flags |= EXCLUDE_KERNEL;
        }
        if clock.stacks {
            attributes.sample_type |= SAMPLE_REGS_USER | SAMPLE_STACK_USER;
            attributes.sample_regs_user = registers::SAMPLED;
            attributes.sample_stack_user = STACK_BYTES;
        }
        open(&attributes, cpu, whom)
    }

    /// An event without samples that owns the ring of a CPU while clocks come and go.
    pub fn holder(cpu: u32) -> io::Result<Event> {
        let mut attributes = attributes(DUMMY);
        attributes.flags |= EXCLUDE_KERNEL;
        open(&attributes, cpu, ClockTarget::Process(0))
    }

    /// Sends its samples to the ring of another event on the same CPU.
    pub fn output_to(&self, other: &Event) -> io::Result<()> {
        self.control(SET_OUTPUT, other.raw() as libc::c_ulong)
    }

    /// Starts the clock.
    pub fn enable(&self) -> io::Result<()> {
        self.control(ENABLE, 0)
    }

    /// Stops the clock.
    pub fn disable(&self) -> io::Result<()> {
        self.control(DISABLE, 0)
    }

    /// Its file descriptor.
    pub fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    fn control(&self, request: libc::c_ulong, argument: libc::c_ulong) -> io::Result<()> {
        // SAFETY: these requests take a number and access no memory of ours.
        match unsafe { libc::ioctl(self.raw(), request, argument) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

fn attributes(config: u64) -> PerfEventAttributes {
    PerfEventAttributes {
        kind: SOFTWARE,
        size: size_of::<PerfEventAttributes>() as u32,
        config,
        sample_type: SAMPLE,
        flags: EXCLUDE_HYPERVISOR | USE_CLOCKID,
        // The account of the process is read right after each sample.
        wakeup_events: 1,
        clockid: libc::CLOCK_MONOTONIC,
        ..PerfEventAttributes::default()
    }
}

fn open(attributes: &PerfEventAttributes, cpu: u32, whom: ClockTarget) -> io::Result<Event> {
    let pid = match whom {
        ClockTarget::Everything => -1,
        ClockTarget::Process(pid) => pid,
    };
    // SAFETY: the kernel reads `size` bytes of the structure, which lives until the call returns.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attributes),
            pid,
            cpu as libc::c_int,
            -1 as libc::c_int,
            CLOSE_ON_EXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new file descriptor that nobody else has.
    Ok(Event(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attributes_have_the_size_of_their_version() {
        assert_eq!(size_of::<PerfEventAttributes>(), 112);
    }
}
