// SPDX-License-Identifier: PostgreSQL
//! Throw-away PostgreSQL clusters and pgbench runs.
//!
//! A [`Cluster`] lives in a temporary directory of its own, listens on nothing but a Unix
//! socket in that directory, and is gone when the value is dropped. It is also gone when
//! the process that made it dies in any other way, be it by Ctrl-C, a panic or SIGKILL:
//! a watchdog (see `watchdog.rs`) holds the other end of a pipe. No name, port or path is
//! fixed, so any number of clusters run side by side.
//!
//! PostgreSQL refuses to run as root; for root the server runs as the user `postgres`, or
//! as the one named by `PGTALLY_USER`.

mod binaries;
mod cluster;
mod directory;
mod distinct;
mod error;
mod os_user;
mod pgbench;
mod process;
mod program;
mod template;
mod undo;
mod watchdog;

pub use binaries::Binaries;
pub use cluster::{Builder, Cluster, StopMode};
pub use error::Error;
pub use os_user::OsUser;
pub use pgbench::{Load, Pgbench, PgbenchResult, RunningPgbench};
pub use process::{alive, children, Process};
pub use undo::Undo;
