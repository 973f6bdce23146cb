// SPDX-License-Identifier: PostgreSQL
//! Why a figure is unknown, while others are known.

use std::io;
use std::path::Path;

use rustix::io::Errno;
use serde::{Serialize, Serializer};

/// Why something is unknown; its text in JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// No such file or directory.
    #[error("does not exist")]
    Missing,
    /// A dangling symbolic link.
    #[error("symbolic link to {0}, which does not exist")]
    Dangling(String),
    /// Permission denied.
    #[error("permission denied; run tally as the server's user or as root")]
    Permission,
    /// The table of mounts does not list its mount, and the kernel reports no device.
    #[error("mount not found")]
    NoMount,
    /// The file system mounted there differs from the one when the devices were resolved.
    #[error("another file system is mounted there now")]
    MountChanged,
    /// A network or user-space file system that does not respond in time.
    #[error("the file system does not respond")]
    NoAnswer,
    /// /proc/diskstats has no line for the device.
    #[error("the kernel has no counters for it; it may have been removed")]
    NotListed,
    /// The counters of the device are switched off.
    #[error("the kernel does not count its requests (queue/iostats is 0)")]
    NotCounted,
    /// Counters decreased: the device was removed and added again.
    #[error("its counters restarted during the interval")]
    BeganAgain,
    /// There is a reading at only one end of the interval.
    #[error("not present at both ends of the interval")]
    OneEnd,
    /// The process has ended, or its PID was reused.
    #[error("the postmaster has exited")]
    Ended,
    /// The postmaster's PID was not given.
    #[error("the server is not running, or its PID is unknown")]
    NoPid,
    /// The kernel was built without I/O accounting of processes.
    #[error("this kernel has no /proc/PID/io (CONFIG_TASK_IO_ACCOUNTING)")]
    NoAccounting,
    /// Processes started and ended so fast that the sums are inconsistent.
    #[error("processes started and exited while they were read")]
    Restless,
    /// Any other system error.
    #[error("{0}")]
    System(String),
}

impl From<Errno> for Problem {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::NOTDIR => Self::Missing,
            Errno::ACCESS | Errno::PERM => Self::Permission,
            other => Self::System(io::Error::from(other).to_string()),
        }
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => errno.into(),
            None => Self::System(error.to_string()),
        }
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Serializes a path. Paths are bytes and JSON is text, so bytes that are not UTF-8 are replaced.
pub(crate) fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// The same for a path that may be unknown.
pub(crate) fn lossy_option<S: Serializer>(
    path: &Option<std::path::PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => serializer.serialize_some(&path.to_string_lossy()),
        None => serializer.serialize_none(),
    }
}
