// SPDX-License-Identifier: PostgreSQL
//! The built-in studies, and the user's own.

use std::path::{Path, PathBuf};

use error::Error;

/// A built-in study: the name of its directory, and its file.
macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../studies/", $name, "/study.toml")))),*]
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

/// A study's file and its origin.
#[derive(Debug, Clone)]
pub struct Files {
    /// Text of the file.
    pub study: String,
    /// Directory of the user's own file; `None` for a built-in study.
    pub folder: Option<PathBuf>,
}

/// Names and files of the built-in studies.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    BUILT_IN.iter().copied()
}

/// The built-in study of this name, or the study in this file or directory.
pub fn find(name: &str) -> Result<Files, Error> {
    if let Some((_, study)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
        return Ok(Files { study: (*study).into(), folder: None });
    }
    let path = Path::new(name);
    let path = if path.is_dir() { path.join("study.toml") } else { path.to_path_buf() };
    match std::fs::read_to_string(&path) {
        Ok(study) => {
            let folder = path.canonicalize()?.parent().map(Path::to_path_buf);
            Ok(Files { study, folder })
        }
        Err(error) => {
            let known: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
            Err(Error::Usage(format!(
                "{name}: neither a built-in study ({}) nor a study file ({error})",
                known.join(", ")
            )))
        }
    }
}
