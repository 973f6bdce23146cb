// SPDX-License-Identifier: PostgreSQL
//! The built-in studies of storage, and the user's own.

use crate::engine::stock::Files;
use error::Error;

/// Names and texts, in the order of lists.
const BUILT_IN: &[(&str, &str)] = &[
    ("storage-victim", include_str!("../../../../studies/storage/storage-victim.toml")),
    ("backup-hurts", include_str!("../../../../studies/storage/backup-hurts.toml")),
];

/// Names and texts of the built-in studies.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    BUILT_IN.iter().copied()
}

/// The built-in study of this name, or the study in this file or directory.
pub fn find(name: &str) -> Result<Files, Error> {
    crate::engine::stock::find(BUILT_IN, "storage", name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_studies_have_the_names_of_their_files_and_quick_variants() {
        for (name, text) in all() {
            let study = crate::storage::Study::parse(text).unwrap();
            assert_eq!(study.name, name);
            assert!(study.clone().quick().expected_seconds() <= 20.0 * 60.0, "{name}");
        }
    }
}
