// SPDX-License-Identifier: PostgreSQL
//! The built-in studies, and the user's own.

use crate::engine::stock::Files;
use error::Error;

/// A built-in study: the name of its directory, and its file.
macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../studies/", $name, "/study.toml")))),*]
    };
}

/// In the order of lists.
const BUILT_IN: &[(&str, &str)] = built_in![
    "track-activities",
    "lwlock-partial-full",
    "users-sweep",
    "overhead-matrix",
    "io-timing-clock",
    "checkpoint",
    "commit-delay",
    "file-systems",
    "slow-fsync",
];

/// Names and files of the built-in studies.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    BUILT_IN.iter().copied()
}

/// The built-in study of this name, or the study in this file or directory.
pub fn find(name: &str) -> Result<Files, Error> {
    crate::engine::stock::find(BUILT_IN, "study", name)
}
