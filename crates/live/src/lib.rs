// SPDX-License-Identifier: PostgreSQL
//! Follows a running server: finds its segment, connects to it, and delivers its figures and
//! events step by step, across restarts.

pub mod backend;
mod backoff;
pub mod blocking;
mod condition_queries;
pub mod coverage;
mod default_server;
pub mod device_rows;
pub mod devices;
pub mod ended_clients;
pub mod extension;
pub mod follower;
pub mod hangup;
mod health_queries;
pub mod host;
mod indexes;
pub mod instrumented;
mod io;
pub mod library;
pub mod library_list;
pub mod local_server;
pub mod lock_names;
pub mod machine;
mod postmaster_file;
mod reach;
mod recent;
pub mod relation_names;
pub mod remote;
mod run;
mod sampled;
mod segment_source;
pub mod server;
mod session_limits;
pub mod session_samples;
pub mod settings;
pub mod slow_executions;
pub mod spec;
pub mod switch;
mod tablespaces;
mod tail;
pub mod target;
pub mod vacuum;
