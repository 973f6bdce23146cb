// SPDX-License-Identifier: PostgreSQL
//! Errors between a path and a snapshot, each with its remedy.

use std::path::PathBuf;

/// Why a segment cannot be read, or its level cannot be set.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such file.
    #[error("{path}: there is no segment; is the server running, and is pg_tally loaded?")]
    NotFound {
        /// The file that was to be opened.
        path: PathBuf,
    },
    /// The file exists, but not for this user.
    #[error("{path}: no permission to {wish}; it belongs to user {owner} (mode {mode:04o}): run this as that user or as root{hint}")]
    Permission {
        /// The file that was to be opened.
        path: PathBuf,
        /// "read it", "change its level" or "trace its processes".
        wish: &'static str,
        /// The owner's name, or number where it has no name.
        owner: String,
        /// Permission bits of the file.
        mode: u32,
        /// A further remedy, or empty.
        hint: &'static str,
    },
    /// The file belongs to the wrong user: any user could have created it.
    #[error("{path}: foreign, so not read: it belongs to user {owner}, {why}")]
    Foreign {
        /// The file that was opened.
        path: PathBuf,
        /// Its owner's name, or number where it has no name.
        owner: String,
        /// Whose it should be, and the remedy.
        why: String,
    },
    /// The path is a directory, device, pipe or symbolic link.
    #[error("{path}: not a regular file, so not a segment; links are not followed")]
    NotAFile {
        /// The file that was to be opened.
        path: PathBuf,
    },
    /// The file does not start like a segment.
    #[error("{path}: not a segment (it does not begin with \"TALLYSEG\")")]
    NotASegment {
        /// The file that was opened.
        path: PathBuf,
    },
    /// The file was written by a machine of the other byte order.
    #[error("{path}: a segment of a machine of the other byte order; read it on a machine like the one that wrote it")]
    ByteOrder {
        /// The file that was opened.
        path: PathBuf,
    },
    /// The file is of a format that this reader does not know.
    #[error("{path}: a segment of format version {found}, and this reader knows version {known}; use the tally that came with the extension that wrote it")]
    Version {
        /// The file that was opened.
        path: PathBuf,
        /// The version in its header.
        found: u32,
        /// The version that this reader knows.
        known: u32,
    },
    /// The file is shorter than its header promises.
    #[error("{path}: cut short: {found} bytes where {expected} are needed; its writer will replace it when it restarts")]
    Truncated {
        /// The file that was opened.
        path: PathBuf,
        /// Bytes that the header promises.
        expected: u64,
        /// Its actual bytes.
        found: u64,
    },
    /// A field of the header has an impossible value.
    #[error("{path}: damaged: {what}; its writer will replace it when it restarts")]
    Damaged {
        /// The file that was opened.
        path: PathBuf,
        /// The field and its value.
        what: String,
    },
    /// The clock of the segment does not exist on this machine.
    #[error("{path}: its times are of the processor's time-stamp counter, which this machine does not have; read it where it was written")]
    Clock {
        /// The file that was opened.
        path: PathBuf,
    },
    /// The server keeps no rings for traces.
    #[error("{path}: this server traces no processes (pg_tally.max_traces = 0, or an older pg_tally); set it and restart the server")]
    NoTraces {
        /// The file that was opened.
        path: PathBuf,
    },
    /// The segment changed faster than it could be read.
    #[error("{path}: could not be read consistently in {tries} tries; the machine is very busy, try again")]
    Unstable {
        /// The file that was opened.
        path: PathBuf,
        /// How often it was tried.
        tries: u32,
    },
    /// The server that was to bring it does not.
    #[error("{server}: {why}")]
    Remote {
        /// The server.
        server: String,
        /// Why not, and the remedy.
        why: String,
    },
    /// Any other failure of the operating system.
    #[error("{path}: cannot {wish}: {source}")]
    Io {
        /// The file that was opened.
        path: PathBuf,
        /// What was attempted.
        wish: &'static str,
        /// What the system reported.
        source: std::io::Error,
    },
}

impl From<Error> for ::error::Error {
    fn from(error: Error) -> Self {
        Self::from_cause(error)
    }
}
