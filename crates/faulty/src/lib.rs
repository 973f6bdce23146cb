// SPDX-License-Identifier: PostgreSQL
//! System calls that fail when a test wants them to.
//!
//! A test program that uses this crate has its own `write`, `fsync`, `rename` and so on (`interposed.rs`):
//! the linker prefers them to those of libc, for the standard library and for rustix. They make the
//! real call unless the thread that calls has a [`Plan`]. No other thread is affected, so tests may run side by
//! side. Standard input, output and error never fail.

mod interposed;
mod unsynced;

use std::cell::Cell;
use std::marker::PhantomData;

pub use unsynced::Unsynced;

impl Unsynced {
    /// Begin; what was written before is on the disk.
    pub fn begin() -> Unsynced {
        interposed::link();
        unsynced::begin()
    }
}

/// A kind of system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Call {
    /// open, openat
    Open = 1 << 0,
    /// read, pread, readv
    Read = 1 << 1,
    /// write, pwrite, writev
    Write = 1 << 2,
    /// fsync, fdatasync
    Sync = 1 << 3,
    /// ftruncate
    Truncate = 1 << 4,
    /// rename, renameat, link, linkat
    Rename = 1 << 5,
    /// unlink, unlinkat, rmdir
    Remove = 1 << 6,
    /// mkdir, mkdirat
    MakeDirectory = 1 << 7,
    /// mmap
    Map = 1 << 8,
    /// statvfs, fstatvfs
    Space = 1 << 9,
}

impl Call {
    /// Those that change a file system. An open is one of them if it creates or truncates a file.
    pub const CHANGES: &'static [Call] = &[
        Call::Open,
        Call::Write,
        Call::Sync,
        Call::Truncate,
        Call::Rename,
        Call::Remove,
        Call::MakeDirectory,
    ];
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails with this error; later ones work. A write has written its first half.
    Fails(i32),
    /// It and every later call that would change a file system fail, as if the process had been killed. A write has
    /// written its first half.
    Kill,
}

/// What shall happen to the system calls of a thread.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    kinds: u32,
    /// An open for reading counts, too.
    reads: bool,
    at: u64,
    fault: Fault,
    space: Option<u64>,
}

impl Plan {
    /// Nothing fails; calls that change a file system are counted.
    pub const COUNT: Plan = Plan::nth(Call::CHANGES, u64::MAX, Fault::Kill);

    /// The `n`-th call of these kinds has this fault, counted from 1.
    pub const fn nth(kinds: &[Call], n: u64, fault: Fault) -> Plan {
        let mut mask = 0;
        let mut at = 0;
        while at < kinds.len() {
            mask |= kinds[at] as u32;
            at += 1;
        }
        Plan { kinds: mask, reads: mask & Call::Read as u32 != 0, at: n, fault, space: None }
    }

    /// The process is killed at its `n`-th call that changes a file system.
    pub const fn kill(n: u64) -> Plan {
        Plan::nth(Call::CHANGES, n, Fault::Kill)
    }

    /// The file system has space for so many bytes more, then none for another file or directory either.
    pub const fn full_after(bytes: u64) -> Plan {
        Plan { space: Some(bytes), ..Plan::COUNT }
    }
}

/// A plan and what has happened.
#[derive(Clone, Copy)]
struct State {
    plan: Plan,
    calls: u64,
    hit: Option<&'static str>,
    killed: bool,
}

thread_local! {
    static STATE: Cell<Option<State>> = const { Cell::new(None) };
}

/// The plan of this thread, until it is dropped.
#[derive(Debug)]
pub struct Armed(PhantomData<*const ()>);

/// Give this thread a plan.
pub fn arm(plan: Plan) -> Armed {
    interposed::link();
    STATE.set(Some(State { plan, calls: 0, hit: None, killed: false }));
    Armed(PhantomData)
}

impl Armed {
    /// The calls of the plan's kinds so far.
    pub fn calls(&self) -> u64 {
        STATE.get().map_or(0, |state| state.calls)
    }

    /// The space that is left, if the plan limits it.
    pub fn space(&self) -> Option<u64> {
        STATE.get().and_then(|state| state.plan.space)
    }

    /// The call that first had a fault, if it was reached.
    pub fn hit(&self) -> Option<&'static str> {
        STATE.get().and_then(|state| state.hit)
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        STATE.set(None);
    }
}

/// Does `work` in a thread of its own, under the plan of this thread, which waits for it. There is no asynchronous
/// runtime in that thread, so a library that would hand its calls to the runtime's threads makes them itself.
pub fn in_another_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let state = STATE.take();
    let working = || {
        STATE.set(state);
        let done = work();
        (done, STATE.take())
    };
    let joined = std::thread::scope(|scope| scope.spawn(working).join());
    let (done, state) = joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    STATE.set(state);
    done
}

/// What `work` returns under a plan, and the call that was hit.
pub fn under<T>(plan: Plan, work: impl FnOnce() -> T) -> (T, Option<&'static str>) {
    let armed = arm(plan);
    let returned = work();
    (returned, armed.hit())
}

/// Names the plan if a test fails by it.
struct Tried(Plan);

impl Drop for Tried {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("with {:?}", self.0);
        }
    }
}

/// Runs `work` with the plans for 1, 2, ... until it is untouched: it uses the plan and returns the call that was
/// hit. Panics if fewer than `min_faults` runs were hit: then the calls are not made where the plan is.
pub fn until_untouched(
    min_faults: u64,
    plan: impl Fn(u64) -> Plan,
    mut work: impl FnMut(Plan) -> Option<&'static str>,
) {
    for n in 1.. {
        let tried = Tried(plan(n));
        if work(tried.0).is_none() {
            assert!(n > min_faults, "only {} faults", n - 1);
            return;
        }
    }
}

/// Runs `work` with each call that changes a file system failing by each of two errors, and with a file system that
/// has space for 0, `step`, 2 * `step`, ... bytes more.
pub fn each_fault(step: u64, mut work: impl FnMut(Plan) -> Option<&'static str>) {
    for errno in [libc::ENOSPC, libc::EIO] {
        until_untouched(5, |n| Plan::nth(Call::CHANGES, n, Fault::Fails(errno)), &mut work);
    }
    until_untouched(1, |n| Plan::full_after((n - 1) * step), &mut work);
}

/// Runs `work` with each call that reads a file failing.
pub fn each_failed_read(work: impl FnMut(Plan) -> Option<&'static str>) {
    const READS: &[Call] = &[Call::Open, Call::Read, Call::Map];
    until_untouched(5, |n| Plan::nth(READS, n, Fault::Fails(libc::EIO)), work);
}

/// What to do with a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Make,
    Fail(i32),
    /// Write so many bytes at most, then fail if `then` is set.
    Part {
        bytes: usize,
        then: Option<i32>,
    },
}

/// Look at a call that the thread makes. `changes`: it changes a file system; `bytes`: that it writes.
fn judge(name: &'static str, kind: Call, changes: bool, bytes: usize) -> Verdict {
    let Ok(Some(mut state)) = STATE.try_with(Cell::get) else { return Verdict::Make };
    let counts =
        state.plan.kinds & kind as u32 != 0 && (changes || state.plan.reads || kind != Call::Open);
    state.calls += u64::from(counts);
    let mut verdict = Verdict::Make;
    if state.killed {
        if changes {
            verdict = Verdict::Fail(libc::EIO);
        }
    } else if counts && state.calls == state.plan.at {
        let errno = match state.plan.fault {
            Fault::Fails(errno) => errno,
            Fault::Kill => {
                state.killed = true;
                libc::EIO
            }
        };
        verdict = match bytes {
            0 => Verdict::Fail(errno),
            _ => Verdict::Part { bytes: bytes / 2, then: Some(errno) },
        };
    } else if let Some(left) = state.plan.space {
        let creates = matches!(kind, Call::Open | Call::MakeDirectory) && changes;
        if left == 0 && (creates || bytes > 0) {
            verdict = Verdict::Fail(libc::ENOSPC);
        } else if bytes as u64 > left {
            state.plan.space = Some(0);
            verdict = Verdict::Part { bytes: left as usize, then: None };
        } else {
            state.plan.space = Some(left - bytes as u64);
        }
    }
    if verdict != Verdict::Make {
        state.hit = state.hit.or(Some(name));
    }
    STATE.set(Some(state));
    verdict
}
