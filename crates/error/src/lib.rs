// SPDX-License-Identifier: PostgreSQL
//! Errors of commands, and the exit statuses they lead to: 2 for an invalid command line, otherwise 1.
//!
//! A closed pipe (`tally ls | head -1`) is not an error: the command ends without a message.

use std::io::ErrorKind;

/// Why a command failed. The text names the object and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line is invalid.
    #[error("{0}")]
    Usage(String),
    /// Any other failure, with its message.
    #[error("{0}")]
    Failed(String),
    /// Reading input or writing output failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// A command that was run on behalf of the user ended with this exit status; it has printed the reason
    /// itself.
    #[error("the command ended with exit status {0}")]
    Command(u8),
    /// JSON could not be written.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// An error of another crate. Each crate implements `From` to convert its errors to this one.
    #[error(transparent)]
    Cause(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Wraps the error of another crate.
    pub fn from_cause(cause: impl std::error::Error + Send + Sync + 'static) -> Error {
        Self::Cause(Box::new(cause))
    }

    /// The cause, if it is an error of type `E`.
    pub fn cause<E: std::error::Error + 'static>(&self) -> Option<&E> {
        match self {
            Self::Cause(cause) => cause.downcast_ref(),
            _ => None,
        }
    }

    /// Whether the command line is invalid.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Usage(_))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_found_by_its_type_and_speaks_for_itself() {
        let error = Error::from_cause(std::fmt::Error);
        assert_eq!(error.cause::<std::fmt::Error>(), Some(&std::fmt::Error));
        assert!(error.cause::<std::io::Error>().is_none());
        assert_eq!(error.to_string(), std::fmt::Error.to_string());
        assert!(Error::Usage(String::new()).is_usage() && !error.is_usage());
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
                    .map(|error| error.is_broken_pipe()),
                [is; 2]
            );
        }
    }
}
