// SPDX-License-Identifier: PostgreSQL
//! Errors of scratch clusters. Each names the file or program, and the remedy.

use std::path::PathBuf;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// PostgreSQL's programs were not found.
    #[error("no PostgreSQL server found: {0}; install one, or set PG_CONFIG=/path/to/pg_config")]
    NoBinaries(String),
    /// The user that should run the server does not exist.
    #[error(
        "PostgreSQL does not run as root, and user \"{0}\" does not exist; \
         set PGTALLY_USER to an unprivileged user"
    )]
    NoUser(String),
    /// A file or directory could not be created, read or changed.
    #[error("{what} {path}: {source}")]
    File {
        /// The failed operation, e.g. "cannot create".
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A program could not be started.
    #[error("cannot run {program}: {source}")]
    Spawn {
        /// The program.
        program: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A program ended with an error.
    #[error("{program} failed ({status}):\n{output}")]
    Program {
        /// The program.
        program: PathBuf,
        /// Its exit status.
        status: std::process::ExitStatus,
        /// The end of its output.
        output: String,
    },
    /// The server did not start, did not stop, or exited.
    #[error("the scratch server {what}; the end of its log:\n{log}")]
    Server {
        /// What happened.
        what: String,
        /// The last lines of the server's log.
        log: String,
    },
    /// The operation needs a running server.
    #[error("the scratch server is not running")]
    NotRunning,
    /// The path of the Unix socket would be too long for the kernel.
    #[error("{0} is too long for a Unix socket; set TMPDIR to a shorter path")]
    LongPath(PathBuf),
    /// The server refused a connection or a statement.
    #[error("{0}")]
    Refused(#[from] pq::Error),
    /// The same, through the crate `postgres`.
    #[cfg(feature = "postgres")]
    #[error("{}", describe(.0))]
    Postgres(#[from] postgres::Error),
    /// pgbench's output could not be parsed.
    #[error("pgbench printed no \"{missing}\":\n{output}")]
    PgbenchOutput {
        /// The missing line.
        missing: &'static str,
        /// The end of its output.
        output: String,
    },
}

impl From<Error> for ::error::Error {
    fn from(error: Error) -> Self {
        Self::from_cause(error)
    }
}

/// The server's message if there is one, because the crate's own text is just "db error".
#[cfg(feature = "postgres")]
fn describe(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => format!("{}: {}", db.severity(), db.message()),
        None => match std::error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    }
}

impl Error {
    pub(crate) fn file(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { what, path, source }
    }
}
