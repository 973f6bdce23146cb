// SPDX-License-Identifier: PostgreSQL
//! Connections to servers that the user has named, through libpq: so flags, environment, service files,
//! passfiles, certificates and URIs mean what they mean to psql.
//!
//! A [`Client`] belongs to one thread at a time; it may move to another. Results are asked for in binary form.

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
