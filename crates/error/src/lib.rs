// SPDX-License-Identifier: PostgreSQL
//! What can fail, and how the process then ends: 2 when the command line is at fault, else 1.
//!
//! A reader that closes the pipe (`tally ls | head -1`) has seen enough: that ends quietly.

use std::io::ErrorKind;

/// A failed verb. The text names the thing and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line asks for what cannot be.
    #[error("{0}")]
    Usage(String),
    /// Anything else, in words.
    #[error("{0}")]
    Failed(String),
    /// A segment cannot be found or read.
    #[error(transparent)]
    Segment(#[from] segment::Error),
    /// A scratch cluster or its load failed.
    #[error(transparent)]
    Scratch(#[from] scratch::Error),
    /// The server refused.
    #[error("{}", server_says(.0))]
    Postgres(#[from] postgres::Error),
    /// Reading, or writing the output, failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// A recording cannot be written or read.
    #[error(transparent)]
    Recording(#[from] recording::Error),
    /// A command that was run for the caller ended so; it has said why.
    #[error("the command ended with exit status {0}")]
    Command(u8),
    /// JSON could not be written.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
}

impl Error {
    /// Whether the command line is at fault.
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

    /// Whether the reader of the output closed it, which ends a command quietly.
    pub fn is_broken_pipe(&self) -> bool {
        match self {
            Self::Io(error) => error.kind() == ErrorKind::BrokenPipe,
            Self::Json(error) => error.io_error_kind() == Some(ErrorKind::BrokenPipe),
            _ => false,
        }
    }
}

/// The server's own words; without them the crate says just "db error".
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
