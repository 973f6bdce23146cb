// SPDX-License-Identifier: PostgreSQL
//! The kernel's clocks, read by clock_gettime.

use rustix::time::{clock_gettime, clock_gettime_dynamic, ClockId, DynamicClockId};

use crate::source::{Scope, Source};

/// A clock of the kernel.
#[derive(Debug, Clone, Copy)]
pub struct KernelClock {
    id: ClockId,
    name: &'static str,
    call: &'static str,
    scope: Scope,
}

/// The server's clock: INSTR_TIME is CLOCK_MONOTONIC on Linux
/// (src/include/portability/instr_time.h).
pub const SERVERS: &str = "monotonic";
/// The reference: no time service adjusts it.
pub const REFERENCE: &str = "monotonic_raw";

macro_rules! clocks {
    ($($id:ident $name:expr, $constant:literal, $scope:ident;)*) => {
        [$(KernelClock {
            id: ClockId::$id,
            name: $name,
            call: concat!("clock_gettime(CLOCK_", $constant, ")"),
            scope: Scope::$scope,
        }),*]
    };
}

/// All tested clocks. CLOCK_TAI is CLOCK_REALTIME plus a constant.
pub const KERNEL_CLOCKS: [KernelClock; 8] = clocks! {
    Monotonic SERVERS, "MONOTONIC", Machine;
    MonotonicRaw REFERENCE, "MONOTONIC_RAW", Machine;
    MonotonicCoarse "monotonic_coarse", "MONOTONIC_COARSE", Machine;
    Boottime "boottime", "BOOTTIME", Machine;
    Realtime "realtime", "REALTIME", Machine;
    RealtimeCoarse "realtime_coarse", "REALTIME_COARSE", Machine;
    ProcessCPUTime "process_cpu", "PROCESS_CPUTIME_ID", Own;
    ThreadCPUTime "thread_cpu", "THREAD_CPUTIME_ID", Own;
};

impl KernelClock {
    /// Why it cannot be read (a system call filter, perhaps); `None` if it can.
    pub fn refused(&self) -> Option<String> {
        let answer = clock_gettime_dynamic(DynamicClockId::Known(self.id));
        answer
            .err()
            .map(|errno| format!("the kernel does not support it: {}", std::io::Error::from(errno)))
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
    fn every_clock_can_be_read_here_and_advances() {
        for clock in KERNEL_CLOCKS {
            assert_eq!(clock.refused(), None, "{}", clock.name());
            let before = clock.read();
            assert!(clock.read() >= before, "{}", clock.name());
        }
    }
}
