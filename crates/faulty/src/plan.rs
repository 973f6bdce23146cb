// SPDX-License-Identifier: PostgreSQL
//! Plans of faults in the system calls of a thread, and their state.

use std::cell::Cell;
use std::marker::PhantomData;

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
    /// The calls that change a file system. An open counts if it creates or truncates a file.
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

/// A fault in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call fails with this error; later calls work. A write has written its first half.
    Fails(i32),
    /// The call, and every later call that would change a file system, fails, as if the process had been killed. A
    /// write has written its first half.
    Kill,
}

/// The faults in the system calls of a thread.
#[derive(Debug, Clone, Copy)]
pub struct FaultPlan {
    kinds: u32,
    /// Whether opening a file for reading also counts.
    reads: bool,
    at: u64,
    fault: Fault,
    space: Option<u64>,
}

impl FaultPlan {
    /// No call fails; calls that change a file system are counted.
    pub const COUNT: FaultPlan = FaultPlan::nth(Call::CHANGES, u64::MAX, Fault::Kill);

    /// The `n`-th call of these kinds has this fault, counted from 1.
    pub const fn nth(kinds: &[Call], n: u64, fault: Fault) -> FaultPlan {
        let mut mask = 0;
        let mut at = 0;
        while at < kinds.len() {
            mask |= kinds[at] as u32;
            at += 1;
        }
        FaultPlan { kinds: mask, reads: mask & Call::Read as u32 != 0, at: n, fault, space: None }
    }

    /// The process is killed at its `n`-th call that changes a file system.
    pub const fn kill(n: u64) -> FaultPlan {
        FaultPlan::nth(Call::CHANGES, n, Fault::Kill)
    }

    /// The file system has space for this many more bytes. After that, there is no space for new files or directories
    /// either.
    pub const fn full_after(bytes: u64) -> FaultPlan {
        FaultPlan { space: Some(bytes), ..FaultPlan::COUNT }
    }
}

/// A plan and its state.
#[derive(Clone, Copy)]
pub(crate) struct State {
    plan: FaultPlan,
    calls: u64,
    hit: Option<&'static str>,
    killed: bool,
}

thread_local! {
    static STATE: Cell<Option<State>> = const { Cell::new(None) };
}

/// Takes the plan of this thread, which then has none.
pub(crate) fn take() -> Option<State> {
    STATE.take()
}

/// Gives this thread the plan of another.
pub(crate) fn set(state: Option<State>) {
    STATE.set(state);
}

/// The plan of this thread, until it is dropped.
#[derive(Debug)]
pub struct Armed(PhantomData<*const ()>);

/// Gives this thread a plan.
pub(crate) fn begin(plan: FaultPlan) -> Armed {
    STATE.set(Some(State { plan, calls: 0, hit: None, killed: false }));
    Armed(PhantomData)
}

impl Armed {
    /// The calls of the plan's kinds so far.
    pub fn calls(&self) -> u64 {
        STATE.get().map_or(0, |state| state.calls)
    }

    /// The remaining space, if the plan limits it.
    pub fn space(&self) -> Option<u64> {
        STATE.get().and_then(|state| state.plan.space)
    }

    /// The first call that had a fault, if there was one.
    pub fn hit(&self) -> Option<&'static str> {
        STATE.get().and_then(|state| state.hit)
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        STATE.set(None);
    }
}

/// The verdict on a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallVerdict {
    Make,
    Fail(i32),
    /// Write at most this many bytes, then fail if `then` is set.
    Part {
        bytes: usize,
        then: Option<i32>,
    },
}

/// Decide about a call of this thread. `changes`: whether it changes a file system; `bytes`: how many it writes.
pub(crate) fn judge(name: &'static str, kind: Call, changes: bool, bytes: usize) -> CallVerdict {
    let Ok(Some(mut state)) = STATE.try_with(Cell::get) else { return CallVerdict::Make };
    let counts =
        state.plan.kinds & kind as u32 != 0 && (changes || state.plan.reads || kind != Call::Open);
    state.calls += u64::from(counts);
    let mut verdict = CallVerdict::Make;
    if state.killed {
        if changes {
            verdict = CallVerdict::Fail(libc::EIO);
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
            0 => CallVerdict::Fail(errno),
            _ => CallVerdict::Part { bytes: bytes / 2, then: Some(errno) },
        };
    } else if let Some(left) = state.plan.space {
        let creates = matches!(kind, Call::Open | Call::MakeDirectory) && changes;
        if left == 0 && (creates || bytes > 0) {
            verdict = CallVerdict::Fail(libc::ENOSPC);
        } else if bytes as u64 > left {
            state.plan.space = Some(0);
            verdict = CallVerdict::Part { bytes: left as usize, then: None };
        } else {
            state.plan.space = Some(left - bytes as u64);
        }
    }
    if verdict != CallVerdict::Make {
        state.hit = state.hit.or(Some(name));
    }
    STATE.set(Some(state));
    verdict
}
