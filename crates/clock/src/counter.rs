// SPDX-License-Identifier: PostgreSQL
//! The processor's own counter, and the instructions that read it.

use crate::source::{Scope, Source};

/// The counter, read in order with other instructions or not. A value exists only if it can be read.
#[derive(Debug, Clone, Copy)]
pub struct Counter<const ORDERED: bool>(());

/// Why the counter cannot be read; `None` if it can.
#[cfg(target_arch = "x86_64")]
fn refused() -> Option<String> {
    use rustix::process::{time_stamp_counter_readability, TimeStampCounterReadability};
    match time_stamp_counter_readability() {
        // A kernel without this prctl does not forbid it either.
        Ok(TimeStampCounterReadability::Readable) | Err(_) => None,
        Ok(TimeStampCounterReadability::RaiseSIGSEGV) => {
            Some("this process may not read it (PR_SET_TSC)".into())
        }
    }
}

#[cfg(target_arch = "aarch64")]
fn refused() -> Option<String> {
    None
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn refused() -> Option<String> {
    Some("not implemented for this processor architecture".into())
}

/// The counter as pg_tally reads it.
pub type Plain = Counter<false>;
/// The counter, read after all earlier instructions.
pub type Ordered = Counter<true>;

impl<const ORDERED: bool> Counter<ORDERED> {
    /// The counter, or why it cannot be read.
    pub fn new() -> Result<Self, String> {
        refused().map_or(Ok(Self(())), Err)
    }

    /// Its name.
    pub const NAME: &'static str = match (cfg!(target_arch = "aarch64"), ORDERED) {
        (false, false) => "rdtsc",
        (false, true) => "rdtscp",
        (true, false) => "cntvct",
        (true, true) => "isb_cntvct",
    };
}

impl<const ORDERED: bool> Source for Counter<ORDERED> {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn call(&self) -> &str {
        match (cfg!(target_arch = "aarch64"), ORDERED) {
            (false, false) => "instruction rdtsc",
            (false, true) => "instruction rdtscp",
            (true, false) => "register cntvct_el0",
            (true, true) => "register cntvct_el0 after isb",
        }
    }

    fn scope(&self) -> Scope {
        Scope::Machine
    }

    fn ns_per_tick(&self) -> Option<f64> {
        None
    }

    #[inline(always)]
    fn read(&self) -> u64 {
        if ORDERED {
            arch::ordered()
        } else {
            arch::plain()
        }
    }

    fn read_in_order(&self) -> u64 {
        arch::in_order()
    }
}

/// Whether the processor reports that the counter has the same rate in every power state.
pub fn invariant() -> bool {
    arch::invariant()
}

#[cfg(target_arch = "x86_64")]
mod arch {
    use core::arch::x86_64::{__cpuid, __rdtscp, _mm_lfence, _rdtsc};

    #[inline(always)]
    pub fn plain() -> u64 {
        // SAFETY: every x86-64 processor has rdtsc; it touches no memory, and a Counter exists
        // only where the process is allowed to.
        unsafe { _rdtsc() }
    }

    #[inline(always)]
    pub fn ordered() -> u64 {
        let mut processor = 0;
        // SAFETY: as for rdtsc; every processor since 2008 has rdtscp, and it writes nothing but
        // this variable.
        unsafe { __rdtscp(&mut processor) }
    }

    pub fn in_order() -> u64 {
        // SAFETY: every x86-64 processor has lfence and rdtsc; they touch no memory.
        unsafe {
            _mm_lfence();
            _rdtsc()
        }
    }

    #[allow(unused_unsafe)] // newer compilers know that every x86-64 processor has cpuid
    pub fn invariant() -> bool {
        const POWER: u32 = 0x8000_0007;
        // SAFETY: every x86-64 processor has cpuid; it touches no memory.
        let leaf = |leaf| unsafe { __cpuid(leaf) };
        leaf(0x8000_0000).eax >= POWER && leaf(POWER).edx & (1 << 8) != 0
    }
}

#[cfg(target_arch = "aarch64")]
mod arch {
    use core::arch::asm;

    #[inline(always)]
    pub fn plain() -> u64 {
        let ticks;
        // SAFETY: Linux lets programs read this register; it touches no memory.
        unsafe { asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        ticks
    }

    #[inline(always)]
    pub fn ordered() -> u64 {
        let ticks;
        // SAFETY: as above; isb has no operands.
        unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack)) };
        ticks
    }

    pub fn in_order() -> u64 {
        ordered()
    }

    pub fn invariant() -> bool {
        true
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod arch {
    pub fn plain() -> u64 {
        0
    }
    pub fn ordered() -> u64 {
        0
    }
    pub fn in_order() -> u64 {
        0
    }
    pub fn invariant() -> bool {
        false
    }
}
