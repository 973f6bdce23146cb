// SPDX-License-Identifier: PostgreSQL
//! Finds the frames of a process's stack at a sample.
//!
//! The kernel follows frame pointers. Functions without one are missing or end the stack, and a function called by such
//! a function hides its caller. This can be detected: in a run of functions without frame pointers, the innermost is
//! either the interrupted one or the one to which its callee returns, and the kernel finds both. Only such stacks are
//! therefore unwound with .eh_frame, from the sample's registers and its copy of the top of the stack.

use framehop::{MayAllocateDuringUnwind, Unwinder as _};

use crate::address_space::{AddressSpace, AddressSpaces};
use crate::registers::{Registers, WalkCache, WalkRegisters};
use crate::ring::RingSample;

/// Maximum number of frames in a stack, the default of kernel.perf_event_max_stack.
const MOST_FRAMES: usize = 127;

/// How to unwind the stack of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unwind {
    /// Frame pointers, and unwind tables for code without frame pointers.
    Auto,
    /// Frame pointers only.
    FramePointer,
    /// Unwind tables (.eh_frame).
    Dwarf,
}

/// Unwinds stacks for one sampler.
pub struct Unwinder<'s> {
    spaces: &'s AddressSpaces,
    how: Unwind,
    cache: WalkCache<MayAllocateDuringUnwind>,
    frames: Vec<u64>,
    /// Number of stacks unwound with tables.
    pub by_table: u64,
}

impl<'s> Unwinder<'s> {
    /// An unwinder with the address spaces of the server's processes.
    pub fn new(spaces: &'s AddressSpaces, how: Unwind) -> Unwinder<'s> {
        Unwinder { spaces, how, cache: WalkCache::<_>::new(), frames: Vec::new(), by_table: 0 }
    }

    /// The user-space frames of a sample, innermost first.
    pub fn frames<'f>(&'f mut self, sample: &'f RingSample<'f>) -> &'f [u64] {
        let (Some(registers), false) = (sample.registers, self.how == Unwind::FramePointer) else {
            return sample.user;
        };
        let Some(space) = self.spaces.space_of(sample.pid) else { return sample.user };
        let mut is_known = true;
        let mut is_pointed = true;
        for (at, address) in sample.user.iter().enumerate() {
            let kept = space.keeps_frame_pointer(address.saturating_sub(u64::from(at > 0)));
            is_known &= kept.is_some();
            is_pointed &= kept == Some(true);
        }
        if !is_known {
            self.spaces.is_stale(sample.pid);
        }
        if is_pointed && self.how == Unwind::Auto {
            return sample.user;
        }
        let whole = self.walk(&space, registers, sample);
        // Even a truncated stack may be longer than what the kernel found.
        if !whole && self.frames.len() < sample.user.len() {
            return sample.user;
        }
        self.by_table += 1;
        &self.frames
    }

    /// Walks the stack. Returns whether it reached the stack's beginning.
    fn walk(&mut self, space: &AddressSpace, from: Registers, sample: &RingSample<'_>) -> bool {
        self.frames.clear();
        let mut read = |address: u64| {
            let at = usize::try_from(address.checked_sub(from.sp).ok_or(())?).map_err(|_| ())?;
            let end = at.checked_add(8).ok_or(())?;
            let bytes = sample.stack.get(at..end).ok_or(())?;
            Ok(u64::from_ne_bytes(bytes.try_into().map_err(|_| ())?))
        };
        let start = native(space, from);
        let mut walk = space.unwinder.iter_frames(from.ip, start, &mut self.cache, &mut read);
        while self.frames.len() < MOST_FRAMES {
            match walk.next() {
                Ok(Some(frame)) => self.frames.push(frame.address()),
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
        false
    }
}

#[cfg(not(target_arch = "aarch64"))]
fn native(_: &AddressSpace, from: Registers) -> WalkRegisters {
    WalkRegisters::new(from.ip, from.sp, from.fp)
}

/// Registers for the walk. Return addresses may be signed; bits above the highest code address are not part of them.
#[cfg(target_arch = "aarch64")]
fn native(space: &AddressSpace, from: Registers) -> WalkRegisters {
    let highest = space.unwinder.max_known_code_address();
    let mask = framehop::aarch64::PtrAuthMask::from_max_known_address(highest);
    WalkRegisters::new_with_ptr_auth_mask(mask, from.lr, from.sp, from.fp)
}
