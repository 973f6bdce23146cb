// SPDX-License-Identifier: PostgreSQL
//! The directories of the kernel's files.

use std::path::PathBuf;

use process::Proc;

/// The roots of /proc and /sys.
#[derive(Debug, Clone)]
pub struct System {
    pub(crate) proc: Proc,
    pub(crate) sys: PathBuf,
    /// Whether they belong to this kernel, so that they have its numbers of mounts and devices.
    pub(crate) own: bool,
}

impl System {
    /// This machine's.
    pub fn live() -> Self {
        Self { proc: Proc::default(), sys: "/sys".into(), own: true }
    }

    /// The files of another machine, whose mounts are found only by their paths.
    pub fn at(proc: impl Into<PathBuf>, sys: impl Into<PathBuf>) -> Self {
        Self { proc: Proc::at(proc), sys: sys.into(), own: false }
    }

    /// The start time of a process, clock ticks since boot; `None` if it has ended.
    pub(crate) fn started(&self, pid: u32) -> Option<u64> {
        Some(self.proc.stat(pid)?.started_ticks)
    }
}
