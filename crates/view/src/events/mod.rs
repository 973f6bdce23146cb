// SPDX-License-Identifier: PostgreSQL
//! Events of a segment or a recording, as text and as JSON.

mod row;
mod when;

pub use row::{rows, Row};
pub use when::{local, When};
