// SPDX-License-Identifier: PostgreSQL
//! Errors of opening and reading a segment, each with its remedy.

use std::path::PathBuf;

/// Why a segment could not be read, or its level could not be set.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such file.
    #[error("{path}: no such segment; is the server running, and is pg_tally loaded?")]
    NotFound {
        /// The path of the file.
        path: PathBuf,
    },
    /// The file exists, but this user may not open it.
    #[error("{path}: no permission to {wish}; it belongs to user {owner} (mode {mode:04o}): run this as that user or as root{hint}")]
    Permission {
        /// The path of the file.
        path: PathBuf,
        /// The attempted operation: "read it", "change its level" or "trace its processes".
        wish: &'static str,
        /// The owner's name, or UID if it has no name.
        owner: String,
        /// Permission bits of the file.
        mode: u32,
        /// Another remedy, or empty.
        hint: &'static str,
    },
    /// The file belongs to the wrong user: any user could have created it.
    #[error("{path}: not trusted, so not read: it belongs to user {owner}, {why}")]
    Foreign {
        /// The path of the file.
        path: PathBuf,
        /// The owner's name, or UID if it has no name.
        owner: String,
        /// Who should own it, and the remedy.
        why: String,
    },
    /// The path is a directory, device, pipe or symbolic link.
    #[error("{path}: not a regular file, so not a segment; symbolic links are not followed")]
    NotAFile {
        /// The path of the file.
        path: PathBuf,
    },
    /// The file does not start like a segment.
    #[error("{path}: not a segment (it does not begin with \"TALLYSEG\")")]
    NotASegment {
        /// The path of the file.
        path: PathBuf,
    },
    /// A machine with the other byte order wrote the file.
    #[error("{path}: this segment has the other byte order; read it on a machine of the architecture that wrote it")]
    ByteOrder {
        /// The path of the file.
        path: PathBuf,
    },
    /// The file has a format version that this reader does not support.
    #[error("{path}: this segment has format version {found}, but this tally reads version {known}; use the tally that came with the extension that wrote it")]
    Version {
        /// The path of the file.
        path: PathBuf,
        /// The version in its header.
        found: u32,
        /// The version that this reader supports.
        known: u32,
    },
    /// The file is shorter than its header says.
    #[error("{path}: truncated: {found} bytes instead of {expected}; its writer will replace it when it restarts")]
    Truncated {
        /// The path of the file.
        path: PathBuf,
        /// Size according to the header, in bytes.
        expected: u64,
        /// Actual size, in bytes.
        found: u64,
    },
    /// A field of the header has an impossible value.
    #[error("{path}: damaged: {what}; its writer will replace it when it restarts")]
    Damaged {
        /// The path of the file.
        path: PathBuf,
        /// The field and its value.
        what: String,
    },
    /// The clock of the segment does not exist on this machine.
    #[error("{path}: its times come from a CPU time-stamp counter that this machine does not have; read it on the machine that wrote it")]
    Clock {
        /// The path of the file.
        path: PathBuf,
    },
    /// The segment has no trace rings.
    #[error("{path}: tracing is not available in this server (pg_tally.max_traces is 0, or pg_tally is an older version); set pg_tally.max_traces and restart the server")]
    NoTraces {
        /// The path of the file.
        path: PathBuf,
    },
    /// The segment changed faster than it could be read.
    #[error("{path}: could not get a consistent reading in {tries} attempts; the machine is very busy, try again")]
    Unstable {
        /// The path of the file.
        path: PathBuf,
        /// Number of attempts.
        tries: u32,
    },
    /// The server did not deliver the segment.
    #[error("{server}: {why}")]
    Remote {
        /// The server.
        server: String,
        /// The reason and the remedy.
        why: String,
    },
    /// Any other failure of the operating system.
    #[error("{path}: cannot {wish}: {source}")]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The attempted operation.
        wish: &'static str,
        /// The error that the system reported.
        source: std::io::Error,
    },
}

impl From<Error> for ::error::Error {
    fn from(error: Error) -> Self {
        Self::from_cause(error)
    }
}
