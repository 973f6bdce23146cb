// SPDX-License-Identifier: PostgreSQL
//! Finds the frames of a process's stack at a sample.
//!
//! The kernel follows frame pointers. Functions that have none are left out or end the stack, and a function that
//! such a function calls hides its caller. Whether that happened shows: of functions without frame pointers that
//! follow each other in a stack, the innermost is either the one that was interrupted, or the one to which its callee
//! returns, and the kernel finds both. So only such stacks are unwound by .eh_frame, from the sample's registers and its
//! copy of the end of the stack.

use framehop::{MayAllocateDuringUnwind, Unwinder as _};

use crate::address_space::{AddressSpace, AddressSpaces};
use crate::registers::{Registers, WalkCache, WalkRegisters};
use crate::ring::RingSample;

/// Frames of a stack at most, as the kernel's kernel.perf_event_max_stack.
const MOST_FRAMES: usize = 127;

/// How the stack of a process is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unwind {
    /// By frame pointers, and by unwind tables where code on the stack keeps none.
    Auto,
    /// By frame pointers.
    FramePointer,
    /// By unwind tables (.eh_frame).
    Dwarf,
}

/// Unwinds for one sampler.
pub struct Unwinder<'s> {
    spaces: &'s AddressSpaces,
    how: Unwind,
    cache: WalkCache<MayAllocateDuringUnwind>,
    frames: Vec<u64>,
    /// Stacks that were unwound by tables.
    pub by_table: u64,
}

impl<'s> Unwinder<'s> {
    /// With what is known of the server's processes.
    pub fn new(spaces: &'s AddressSpaces, how: Unwind) -> Unwinder<'s> {
        Unwinder { spaces, how, cache: WalkCache::<_>::new(), frames: Vec::new(), by_table: 0 }
    }

    /// The frames of the process, innermost first.
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
        // What ended too early may still be more than the kernel found.
        if !whole && self.frames.len() < sample.user.len() {
            return sample.user;
        }
        self.by_table += 1;
        &self.frames
    }

    /// Returns whether it reached the stack's beginning.
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

/// Return addresses may be signed: what is above the highest address of code is no part of them.
#[cfg(target_arch = "aarch64")]
fn native(space: &AddressSpace, from: Registers) -> WalkRegisters {
    let highest = space.unwinder.max_known_code_address();
    let mask = framehop::aarch64::PtrAuthMask::from_max_known_address(highest);
    WalkRegisters::new_with_ptr_auth_mask(mask, from.lr, from.sp, from.fp)
}
