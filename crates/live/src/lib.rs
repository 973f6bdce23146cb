// SPDX-License-Identifier: PostgreSQL
//! Follows a running server: finds its segment, connects to it, and gives one interval after the
//! other, with events and host metrics, across its restarts.

mod attachment;
pub mod coverage;
pub mod events;
pub mod extension;
pub mod feed;
pub mod hangup;
pub mod host;
pub mod instrumented;
pub mod library;
pub mod library_list;
pub mod machine;
mod postmaster_file;
mod relation_names;
pub mod server;
pub mod source;
pub mod spec;
mod tablespaces;
pub mod target;
mod watch;
