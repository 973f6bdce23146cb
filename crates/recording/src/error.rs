// SPDX-License-Identifier: PostgreSQL
//! What can fail. Each text names the thing and what to do.

use std::io;
use std::path::{Path, PathBuf};

/// A recording could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no recording in this directory.
    #[error(
        "{}: not a recording (no recording.json in it); `tally record -o DIR` makes one",
        path.display()
    )]
    NotARecording {
        /// The directory.
        path: PathBuf,
    },
    /// A later version has written it.
    #[error(
        "{}: a recording of format {found}, and this version of tally reads up to {known}; use a \
         later one",
        path.display()
    )]
    Newer {
        /// The directory.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The latest that we know.
        known: u32,
    },
    /// recording.json cannot be understood.
    #[error(
        "{}: cannot be understood ({reason}); the data beside it may well be whole: with a \
         recording.json of another recording in its place it can be read",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The directory is in use.
    #[error("{}: another tally is recording into it; give another directory", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// The directory holds something else.
    #[error(
        "{}: the directory is not empty and not a recording; give a new directory", path.display()
    )]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// The directory holds a recording of another server.
    #[error(
        "{}: a recording of {found}, not of {wanted}; one directory holds one server of a machine, \
         give another", path.display()
    )]
    OtherServer {
        /// The directory.
        path: PathBuf,
        /// Whose it is.
        found: String,
        /// Whose it should be.
        wanted: String,
    },
    /// Several machines have recorded, and none was named.
    #[error(
        "{}: recordings of several machines ({}); name one with --host", path.display(),
        hosts.join(", ")
    )]
    SeveralHosts {
        /// The directory.
        path: PathBuf,
        /// They.
        hosts: Vec<String>,
    },
    /// Nobody of that name has recorded.
    #[error(
        "{}: nothing of host {host} in it; there is {}", path.display(), hosts.join(", ")
    )]
    NoSuchHost {
        /// The directory.
        path: PathBuf,
        /// Who was asked for.
        host: String,
        /// Who is there.
        hosts: Vec<String>,
    },
    /// Nothing has been recorded.
    #[error("{}: nothing has been recorded yet", path.display())]
    Empty {
        /// The directory.
        path: PathBuf,
    },
    /// The range ends before it begins.
    #[error("the range ends ({to}) before it begins ({from}); exchange --from and --to")]
    Backwards {
        /// Its begin, UTC.
        from: String,
        /// Its end, UTC.
        to: String,
    },
    /// Nothing has been recorded in the range.
    #[error("nothing was recorded from {from} to {to}; there is {begin} to {end}")]
    EmptyRange {
        /// Its begin, UTC.
        from: String,
        /// Its end, UTC.
        to: String,
        /// When the recording begins.
        begin: String,
        /// When it ends.
        end: String,
    },
    /// There is no room any more.
    #[error(
        "{}: no space left on the device; what was recorded until now can be read. Make room, or \
         give --retention, and start again: it goes on in the same directory", path.display()
    )]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A part could not be written or read.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl Error {
    /// What the system says of a file.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Error::Full { path: path.to_path_buf() }
            }
            _ => Error::Io { path: path.to_path_buf(), source },
        }
    }
}
