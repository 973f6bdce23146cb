// SPDX-License-Identifier: PostgreSQL
//! The directories in which the kernel's files are found.

use std::path::PathBuf;

use process::Proc;

/// The roots of /proc and /sys.
#[derive(Debug, Clone)]
pub struct System {
    pub(crate) proc: Proc,
    pub(crate) sys: PathBuf,
    /// Whether they are this kernel's, so that its numbers of mounts and devices occur in them.
    pub(crate) own: bool,
}

impl System {
    /// This machine's.
    pub fn live() -> Self {
        Self { proc: Proc::default(), sys: "/sys".into(), own: true }
    }

    /// Those of another machine: mounts are found by their paths alone.
    pub fn at(proc: impl Into<PathBuf>, sys: impl Into<PathBuf>) -> Self {
        Self { proc: Proc::at(proc), sys: sys.into(), own: false }
    }

    /// When a process started, clock ticks since boot; `None` when it has ended.
    pub(crate) fn started(&self, pid: u32) -> Option<u64> {
        Some(self.proc.stat(pid)?.started_ticks)
    }
}
