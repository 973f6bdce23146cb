// SPDX-License-Identifier: PostgreSQL
//! Errors of commands, and the exit status they lead to: 2 for an invalid command line, else 1.
//!
//! A closed pipe (`tally ls | head -1`) is no error: the command ends without a message.

use std::io::ErrorKind;

/// Why a command failed. The text names the object and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line is invalid.
    #[error("{0}")]
    Usage(String),
    /// Any other failure; holds the message.
    #[error("{0}")]
    Failed(String),
    /// A segment cannot be found or read.
    #[error(transparent)]
    Segment(#[from] segment::Error),
    /// A scratch cluster or its load failed.
    #[error(transparent)]
    Scratch(#[from] scratch::Error),
    /// The server reported an error, or the connection failed.
    #[error(transparent)]
    Server(#[from] pq::Error),
    /// The same of a scratch server.
    #[cfg(feature = "postgres")]
    #[error("{}", server_says(.0))]
    Postgres(#[from] postgres::Error),
    /// Reading input or writing output failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// A recording cannot be written or read.
    #[error(transparent)]
    Recording(#[from] recording::Error),
    /// A command run on behalf of the user ended with this exit status; it has printed the reason itself.
    #[error("the command ended with exit status {0}")]
    Command(u8),
    /// JSON could not be written.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
}

impl Error {
    /// Whether the command line is invalid.
    pub fn is_usage(&self) -> bool {
        use recording::Error::{Backwards, EmptyRange, NoSuchHost, SeveralHosts};
        match self {
            Self::Usage(_) => true,
            Self::Recording(error) => matches!(
                error,
                Backwards { .. } | EmptyRange { .. } | NoSuchHost { .. } | SeveralHosts { .. }
            ),
            _ => false,
        }
    }

    /// Whether the reader closed the output; the command then ends without a message.
    pub fn is_broken_pipe(&self) -> bool {
        match self {
            Self::Io(error) => error.kind() == ErrorKind::BrokenPipe,
            Self::Json(error) => error.io_error_kind() == Some(ErrorKind::BrokenPipe),
            _ => false,
        }
    }
}

/// The server's message and hint; `postgres::Error` itself prints only "db error".
#[cfg(feature = "postgres")]
fn server_says(error: &postgres::Error) -> String {
    if let Some(db) = error.as_db_error() {
        let hint = db.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        return format!("the server says: {}{hint}", db.message());
    }
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_or_a_host_that_is_not_there_is_a_mistake_of_the_command_line() {
        use recording::Error::{Backwards, EmptyRange, NoSuchHost, SeveralHosts};
        let (text, path) = (String::new, std::path::PathBuf::new);
        for (error, is_usage) in [
            (Backwards { from: text(), to: text() }, true),
            (EmptyRange { from: text(), to: text(), begin: text(), end: text() }, true),
            (NoSuchHost { path: path(), host: text(), hosts: Vec::new() }, true),
            (SeveralHosts { path: path(), hosts: Vec::new() }, true),
            (recording::Error::Empty { path: path() }, false),
        ] {
            assert_eq!(Error::from(error).is_usage(), is_usage);
        }
        assert!(Error::Usage(text()).is_usage() && !Error::Failed(text()).is_usage());
    }

    #[test]
    fn a_closed_pipe_is_none_however_it_is_met() {
        struct Fails(ErrorKind);
        impl std::io::Write for Fails {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(self.0.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        for (kind, is) in [(ErrorKind::BrokenPipe, true), (ErrorKind::StorageFull, false)] {
            let json = serde_json::to_writer(Fails(kind), &1).unwrap_err();
            assert_eq!(
                [Error::from(json), std::io::Error::from(kind).into()]
                    .map(|it| it.is_broken_pipe()),
                [is; 2]
            );
        }
    }
}
