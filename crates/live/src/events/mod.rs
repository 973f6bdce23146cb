// SPDX-License-Identifier: PostgreSQL
//! The event ring of a segment, read as it grows.

mod feed;
mod tail;

pub use feed::Feed;
pub use tail::{Item, Tail};
