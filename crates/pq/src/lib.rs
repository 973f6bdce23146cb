// SPDX-License-Identifier: PostgreSQL
//! Connections to servers through libpq, so that flags, environment, service files, password files,
//! certificates and URIs work as in psql.
//!
//! A [`Client`] belongs to one thread at a time, and may move to another. Results are requested in binary form.

mod bundled;
mod client;
mod conninfo;
mod error;
mod ffi;
mod param;
mod row;
mod value;

pub use self::error::Error;
pub use client::{Client, Peer, Table};
pub use conninfo::Conninfo;
pub use param::Param;
pub use row::Row;
pub use value::FromValue;

/// Prepares libpq for the system that the process runs on. Must be called before other threads start.
///
/// Does something only if libpq is in the executable (feature `bundled`).
pub fn adopt_system() {
    if cfg!(feature = "bundled") {
        bundled::adopt_system();
    }
}
