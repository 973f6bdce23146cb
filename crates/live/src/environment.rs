// SPDX-License-Identifier: PostgreSQL
//! Environment variables that libpq also reads.

/// Whether the environment variable is set and not empty.
pub(crate) fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}
