// SPDX-License-Identifier: PostgreSQL
//! Where the kernel's own files are.

use std::path::PathBuf;

/// The roots of /proc and /sys.
#[derive(Debug, Clone)]
pub struct System {
    pub(crate) proc: PathBuf,
    pub(crate) sys: PathBuf,
    /// Whether they are this kernel's, so that what it says of a file can be found in them.
    pub(crate) own: bool,
}

impl System {
    /// This machine's.
    pub fn live() -> Self {
        Self { proc: "/proc".into(), sys: "/sys".into(), own: true }
    }

    /// Others, of another machine: mounts are found by their paths alone.
    pub fn at(proc: impl Into<PathBuf>, sys: impl Into<PathBuf>) -> Self {
        Self { proc: proc.into(), sys: sys.into(), own: false }
    }

    /// A file of a process.
    pub(crate) fn process(&self, pid: u32, file: &str) -> PathBuf {
        self.proc.join(pid.to_string()).join(file)
    }
}
