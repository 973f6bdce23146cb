// SPDX-License-Identifier: PostgreSQL
//! Variables that libpq reads, too.

/// Whether the environment has a value; an empty one is none.
pub(crate) fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}
