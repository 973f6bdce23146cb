// SPDX-License-Identifier: PostgreSQL
//! System calls that fail when a test wants them to.
//!
//! A test program that uses this crate has its own `write`, `fsync`, `rename` and so on (`interposed.rs`):
//! the linker prefers them to those of libc, for the standard library and for rustix. They make the
//! real call unless the calling thread has a [`FaultPlan`]. Other threads are not affected, so tests may run in
//! parallel. Standard input, output and error never fail.

mod interposed;
mod plan;
mod unsynced;

pub use plan::{Armed, Call, Fault, FaultPlan};
pub use unsynced::Unsynced;

impl Unsynced {
    /// Begin; earlier writes count as being on disk.
    pub fn begin() -> Unsynced {
        interposed::link();
        unsynced::begin()
    }
}

/// Give this thread a plan.
pub fn arm(plan: FaultPlan) -> Armed {
    interposed::link();
    plan::begin(plan)
}

/// Does `work` in a separate thread, under the plan of this thread, which waits for it. That thread has no asynchronous
/// runtime, so a library that would otherwise pass its calls to the runtime's threads makes them itself.
pub fn in_another_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let state = plan::take();
    let working = || {
        plan::set(state);
        let done = work();
        (done, plan::take())
    };
    let joined = std::thread::scope(|scope| scope.spawn(working).join());
    let (done, state) = joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    plan::set(state);
    done
}

/// The result of `work` under a plan, and the call that was hit.
pub fn under<T>(plan: FaultPlan, work: impl FnOnce() -> T) -> (T, Option<&'static str>) {
    let armed = arm(plan);
    let returned = work();
    (returned, armed.hit())
}

/// Prints the plan if a test fails under it.
struct Tried(FaultPlan);

impl Drop for Tried {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("with {:?}", self.0);
        }
    }
}

/// Runs `work` with the plans for 1, 2, ... until no call is hit; `work` uses the plan and returns the call that was
/// hit. Panics if fewer than `min_faults` runs were hit, because then the calls are not made in the thread with the
/// plan.
pub fn until_untouched(
    min_faults: u64,
    plan: impl Fn(u64) -> FaultPlan,
    mut work: impl FnMut(FaultPlan) -> Option<&'static str>,
) {
    for n in 1.. {
        let tried = Tried(plan(n));
        if work(tried.0).is_none() {
            assert!(n > min_faults, "only {} faults", n - 1);
            return;
        }
    }
}

/// Runs `work` with each call that changes a file system failing with each of two errors, and with a file system that
/// has space for 0, `step`, 2 * `step`, ... more bytes.
pub fn each_fault(step: u64, mut work: impl FnMut(FaultPlan) -> Option<&'static str>) {
    for errno in [libc::ENOSPC, libc::EIO] {
        until_untouched(5, |n| FaultPlan::nth(Call::CHANGES, n, Fault::Fails(errno)), &mut work);
    }
    until_untouched(1, |n| FaultPlan::full_after((n - 1) * step), &mut work);
}

/// Runs `work` with each call that reads a file failing.
pub fn each_failed_read(work: impl FnMut(FaultPlan) -> Option<&'static str>) {
    const READS: &[Call] = &[Call::Open, Call::Read, Call::Map];
    until_untouched(5, |n| FaultPlan::nth(READS, n, Fault::Fails(libc::EIO)), work);
}
