// SPDX-License-Identifier: PostgreSQL
//! The processor registers needed to unwind a stack, and how to recognise a function that keeps a frame pointer.

/// The registers of a sample, as bits of `sample_regs_user` (arch/*/include/uapi/asm/perf_regs.h); none on processors
/// whose stacks are not unwound.
#[cfg(target_arch = "x86_64")]
pub const SAMPLED: u64 = 1 << 6 | 1 << 7 | 1 << 8;
/// The registers of a sample.
#[cfg(target_arch = "aarch64")]
pub const SAMPLED: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;
/// The registers of a sample.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub const SAMPLED: u64 = 0;

#[cfg(target_arch = "aarch64")]
pub use framehop::aarch64::{
    CacheAarch64 as WalkCache, UnwindRegsAarch64 as WalkRegisters, UnwinderAarch64 as Walk,
};
#[cfg(not(target_arch = "aarch64"))]
pub use framehop::x86_64::{
    CacheX86_64 as WalkCache, UnwindRegsX86_64 as WalkRegisters, UnwinderX86_64 as Walk,
};

/// Registers of a process at a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    /// The instruction pointer.
    pub ip: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The frame pointer, or whatever else the code keeps there.
    pub fp: u64,
    /// The return address, on processors whose calls leave it in a register.
    #[cfg_attr(not(target_arch = "aarch64"), allow(dead_code))]
    pub lr: u64,
}

impl Registers {
    /// Builds the registers from the values of a sample, in the order of [`SAMPLED`]'s bits.
    pub fn from_values(values: &[u64]) -> Option<Registers> {
        match *values {
            #[cfg(target_arch = "x86_64")]
            [fp, sp, ip] => Some(Registers { ip, sp, fp, lr: 0 }),
            #[cfg(target_arch = "aarch64")]
            [fp, lr, sp, ip] => Some(Registers { ip, sp, fp, lr }),
            _ => None,
        }
    }
}

/// Whether this rule of an unwind table belongs to a function that keeps a frame pointer: on x86-64 the frame is found
/// through rbp, on arm64 x29 is saved with the return address.
pub fn keeps_frame_pointer<T: gimli::ReaderOffset>(rule: &gimli::CallFrameInstruction<T>) -> bool {
    use gimli::CallFrameInstruction::{DefCfa, DefCfaRegister, Offset};
    match rule {
        DefCfa { register, .. } | DefCfaRegister { register } if cfg!(target_arch = "x86_64") => {
            *register == gimli::X86_64::RBP
        }
        Offset { register, .. } if cfg!(target_arch = "aarch64") => {
            *register == gimli::AArch64::X29
        }
        _ => false,
    }
}
