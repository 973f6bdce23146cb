// SPDX-License-Identifier: PostgreSQL
//! Errors. Each names the file or option, and the remedy.

use std::io;
use std::path::{Path, PathBuf};

/// A recording could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no recording in this directory.
    #[error(
        "{}: not a recording (it has no recording.json); `tally record -o DIR` creates one",
        path.display()
    )]
    NotARecording {
        /// The directory.
        path: PathBuf,
    },
    /// A later version wrote the recording.
    #[error(
        "{}: recording format {found} is newer than {known}, the newest that this version of tally reads; \
         use a later version",
        path.display()
    )]
    Newer {
        /// The directory.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The latest format that this version reads.
        known: u32,
    },
    /// recording.json is malformed.
    #[error(
        "{}: malformed ({reason}); the data in the directory may be intact: to read it, replace the file \
         with the recording.json of another recording",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The directory is in use.
    #[error("{}: another tally is recording into this directory; specify another one", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// The directory holds something else.
    #[error(
        "{}: the directory is not empty and not a recording; specify a new directory", path.display()
    )]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// The directory holds a recording of another server.
    #[error(
        "{}: this is a recording of {found}, not of {wanted}; a directory holds one server of a machine; \
         specify another directory", path.display()
    )]
    OtherServer {
        /// The directory.
        path: PathBuf,
        /// The server of the recording.
        found: String,
        /// The server to record.
        wanted: String,
    },
    /// Several machines have recorded, and none was selected.
    #[error(
        "{}: contains recordings of several machines ({}); select one with --host", path.display(),
        hosts.join(", ")
    )]
    SeveralHosts {
        /// The directory.
        path: PathBuf,
        /// Their names.
        hosts: Vec<String>,
    },
    /// No machine of that name has recorded.
    #[error(
        "{}: no recording of host {host}; recorded hosts: {}", path.display(), hosts.join(", ")
    )]
    NoSuchHost {
        /// The directory.
        path: PathBuf,
        /// The name.
        host: String,
        /// The machines that have recorded.
        hosts: Vec<String>,
    },
    /// Nothing has been recorded.
    #[error("{}: nothing has been recorded yet", path.display())]
    Empty {
        /// The directory.
        path: PathBuf,
    },
    /// The range ends before it starts.
    #[error("the range ends ({to}) before it begins ({from}); swap --since and --until")]
    Backwards {
        /// Its start, UTC.
        from: String,
        /// Its end, UTC.
        to: String,
    },
    /// Nothing has been recorded in the range.
    #[error("nothing was recorded from {from} to {to}; the recording covers {begin} to {end}")]
    EmptyRange {
        /// Its start, UTC.
        from: String,
        /// Its end, UTC.
        to: String,
        /// The start of the recording, UTC.
        begin: String,
        /// The end of the recording, UTC.
        end: String,
    },
    /// The file system is full.
    #[error(
        "{}: no space left on device; everything recorded so far is readable. Free some space, or \
         set --retention, and start again: the recording continues in the same directory", path.display()
    )]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The system returned an error.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file could not be written or read.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

impl Error {
    /// Wraps an error of the operating system on a file.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Error::Full { path: path.to_path_buf() }
            }
            _ => Error::Io { path: path.to_path_buf(), source },
        }
    }
}

/// A range or host that does not exist is a usage error.
impl From<Error> for ::error::Error {
    fn from(error: Error) -> Self {
        use Error::{Backwards, EmptyRange, NoSuchHost, SeveralHosts};
        match error {
            Backwards { .. } | EmptyRange { .. } | NoSuchHost { .. } | SeveralHosts { .. } => {
                Self::Usage(error.to_string())
            }
            _ => Self::from_cause(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_or_a_host_that_is_not_there_is_a_mistake_of_the_command_line() {
        use Error::{Backwards, EmptyRange, NoSuchHost, SeveralHosts};
        let (text, path) = (String::new, PathBuf::new);
        for (error, is_usage) in [
            (Backwards { from: text(), to: text() }, true),
            (EmptyRange { from: text(), to: text(), begin: text(), end: text() }, true),
            (NoSuchHost { path: path(), host: text(), hosts: Vec::new() }, true),
            (SeveralHosts { path: path(), hosts: Vec::new() }, true),
            (Error::Empty { path: path() }, false),
        ] {
            let message = error.to_string();
            let error = ::error::Error::from(error);
            assert_eq!((error.is_usage(), error.to_string()), (is_usage, message));
        }
    }
}
