// SPDX-License-Identifier: PostgreSQL
//! The kernel's clocks, read by clock_gettime.

use rustix::time::{clock_gettime, clock_gettime_dynamic, ClockId, DynamicClockId};

use crate::source::{Scope, Source};

/// One of them. There is one only where the kernel lets it be read.
#[derive(Debug, Clone, Copy)]
pub struct KernelClock {
    id: ClockId,
    name: &'static str,
    call: &'static str,
    scope: Scope,
}

/// The one that the server times with: INSTR_TIME is CLOCK_MONOTONIC on Linux
/// (src/include/portability/instr_time.h).
pub const SERVERS: &str = "monotonic";
/// The one that no time service adjusts, which others are compared with.
pub const REFERENCE: &str = "monotonic_raw";

/// All that are tested. CLOCK_TAI is CLOCK_REALTIME and a constant.
pub const KERNEL_CLOCKS: [KernelClock; 8] = {
    use Scope::{Machine, Own};
    const fn clock(
        id: ClockId,
        name: &'static str,
        call: &'static str,
        scope: Scope,
    ) -> KernelClock {
        KernelClock { id, name, call, scope }
    }
    [
        clock(ClockId::Monotonic, SERVERS, "clock_gettime(CLOCK_MONOTONIC)", Machine),
        clock(ClockId::MonotonicRaw, REFERENCE, "clock_gettime(CLOCK_MONOTONIC_RAW)", Machine),
        clock(
            ClockId::MonotonicCoarse,
            "monotonic_coarse",
            "clock_gettime(CLOCK_MONOTONIC_COARSE)",
            Machine,
        ),
        clock(ClockId::Boottime, "boottime", "clock_gettime(CLOCK_BOOTTIME)", Machine),
        clock(ClockId::Realtime, "realtime", "clock_gettime(CLOCK_REALTIME)", Machine),
        clock(
            ClockId::RealtimeCoarse,
            "realtime_coarse",
            "clock_gettime(CLOCK_REALTIME_COARSE)",
            Machine,
        ),
        clock(
            ClockId::ProcessCPUTime,
            "process_cpu",
            "clock_gettime(CLOCK_PROCESS_CPUTIME_ID)",
            Own,
        ),
        clock(ClockId::ThreadCPUTime, "thread_cpu", "clock_gettime(CLOCK_THREAD_CPUTIME_ID)", Own),
    ]
};

impl KernelClock {
    /// Why it cannot be read, a system call filter perhaps; None when it can.
    pub fn refused(&self) -> Option<String> {
        let answer = clock_gettime_dynamic(DynamicClockId::Known(self.id));
        answer.err().map(|errno| format!("the kernel refuses it: {}", std::io::Error::from(errno)))
    }
}

impl Source for KernelClock {
    fn name(&self) -> &str {
        self.name
    }

    fn call(&self) -> &str {
        self.call
    }

    fn scope(&self) -> Scope {
        self.scope
    }

    fn ns_per_tick(&self) -> Option<f64> {
        Some(1.0)
    }

    #[inline(always)]
    fn read(&self) -> u64 {
        let time = clock_gettime(self.id);
        (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clock_can_be_read_here_and_goes_on() {
        for clock in KERNEL_CLOCKS {
            assert_eq!(clock.refused(), None, "{}", clock.name());
            let before = clock.read();
            assert!(clock.read() >= before, "{}", clock.name());
        }
    }
}
