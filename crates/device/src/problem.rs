// SPDX-License-Identifier: PostgreSQL
//! What stood in the way of one answer, while the others were given.

use std::io;
use std::path::Path;

use rustix::io::Errno;
use serde::{Serialize, Serializer};

/// Why something is not known; in JSON its text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// No such file or directory.
    #[error("it is not there")]
    Missing,
    /// A symbolic link that leads nowhere.
    #[error("its symbolic link leads to {0}, which is not there")]
    Dangling(String),
    /// The kernel refused.
    #[error("permission denied; run this as the server's user or as root")]
    Permission,
    /// The table of mounts does not hold the one it lies on, and the kernel told no device.
    #[error("no mount is listed for it")]
    NoMount,
    /// Another file system is mounted there than when the devices were resolved.
    #[error("another file system is mounted there by now")]
    MountChanged,
    /// A network's or a user program's file system that is slow to answer.
    #[error("its file system does not answer")]
    NoAnswer,
    /// /proc/diskstats has no line of the device.
    #[error("the kernel lists no counters of it; it may be gone")]
    NotListed,
    /// Somebody has switched the counters of the device off.
    #[error("its requests are not counted (queue/iostats is 0)")]
    NotCounted,
    /// Counters went back: the device went and came again.
    #[error("its counters began again within the interval")]
    BeganAgain,
    /// There is no reading of the interval's other end.
    #[error("it was not there at both ends of the interval")]
    OneEnd,
    /// The process is no more, or another one has its number.
    #[error("the server's first process has ended")]
    Ended,
    /// The server's pid was not given.
    #[error("the server does not run, or its pid is not known")]
    NoPid,
    /// The kernel was built without accounts of processes' input and output.
    #[error("this kernel keeps no /proc/PID/io")]
    NoAccounting,
    /// Processes of the server came and went so fast that the sums are not of one moment.
    #[error("processes came and went while they were read")]
    Restless,
    /// Anything else that the system said.
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

/// A path in JSON. Paths are bytes and JSON is not: what is no UTF-8 is replaced.
pub(crate) fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// The same of a path that may not be known.
pub(crate) fn lossy_option<S: Serializer>(
    path: &Option<std::path::PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => serializer.serialize_some(&path.to_string_lossy()),
        None => serializer.serialize_none(),
    }
}
