// SPDX-License-Identifier: PostgreSQL
//! The witness: what the kernel says of the same processes.

use serde::Serialize;

/// What the kernel says of an interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Witness {
    /// Whether it was asked and could answer.
    pub available: bool,
}
