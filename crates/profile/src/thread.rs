// SPDX-License-Identifier: PostgreSQL
//! CPU affinity and priority of a sampler's thread.

/// Binds this thread to one CPU. Has no effect if this process may not use the CPU.
pub fn stay_on(cpu: u32) {
    // SAFETY: a set of CPUs is plain data; the calls read and write it within its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if (cpu as usize) < 8 * size_of::<libc::cpu_set_t>() {
            libc::CPU_SET(cpu as usize, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
        }
    }
}

/// Makes this thread run as soon as it is ready, before the processes that it samples. Returns whether real-time
/// priority is allowed, which requires CAP_SYS_NICE or a limit (RLIMIT_RTPRIO). Otherwise the thread requests short
/// slices, which since Linux 6.12 lets it start earlier.
pub fn go_first() -> bool {
    let parameters = libc::sched_param { sched_priority: 1 };
    let mode = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the call reads the structure.
    if unsafe { libc::sched_setscheduler(0, mode, &parameters) == 0 } {
        return true;
    }
    let slice = SchedAttributes {
        size: size_of::<SchedAttributes>() as u32,
        runtime_ns: SLICE_NS,
        ..SchedAttributes::default()
    };
    // SAFETY: the call reads `size` bytes of the structure. Earlier kernels ignore the slice.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, std::ptr::from_ref(&slice), 0) };
    false
}

/// The shortest slice that the kernel accepts.
const SLICE_NS: u64 = 100_000;

/// `struct sched_attr`, SCHED_ATTR_SIZE_VER0, for the normal policy.
#[repr(C)]
#[derive(Default)]
struct SchedAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}
