// SPDX-License-Identifier: PostgreSQL
//! Throw-away PostgreSQL clusters and pgbench runs.
//!
//! A [`Cluster`] has a temporary directory and listens only on a Unix-domain socket in it. Dropping
//! the value stops the server and removes the directory. Clusters are removed even after Ctrl-C, a
//! panic or SIGKILL: a shell reads from a pipe and cleans up when the pipe closes (`watchdog.rs`).
//! No name, port or path is fixed, so any number of clusters can run at a time.
//!
//! PostgreSQL refuses to run as root, so for root the server runs as the user `postgres`, or as the
//! user that `PGTALLY_USER` names.

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

pub use self::error::Error;
pub use binaries::Binaries;
pub use cluster::{Builder, Cluster, StopMode};
pub use os_user::{apart, OsUser};
pub use pgbench::{Load, Pgbench, PgbenchResult, RunningPgbench};
pub use process::{alive, children, Process};
pub use template::password;
pub use undo::Undo;
