// SPDX-License-Identifier: PostgreSQL
//! The studies that the command carries within itself, and those of the user's own.

use std::path::{Path, PathBuf};

use error::Error;

/// A study as the command carries it: the name of its folder, and its file.
macro_rules! carried {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../studies/", $name, "/study.toml")))),*]
    };
}

/// In the order in which they are listed and run.
const CARRIED: &[(&str, &str)] = carried![
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

/// A study's file, and where it is from.
#[derive(Debug, Clone)]
pub struct Files {
    pub study: String,
    /// The folder of a file of the user's own.
    pub folder: Option<PathBuf>,
}

/// Names and files of the carried ones.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    CARRIED.iter().copied()
}

/// The study of that name, or in that file.
pub fn find(name: &str) -> Result<Files, Error> {
    if let Some((_, study)) = CARRIED.iter().find(|(known, _)| *known == name) {
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
            let known: Vec<&str> = CARRIED.iter().map(|(name, _)| *name).collect();
            Err(Error::Usage(format!(
                "{name}: neither a study ({}) nor a study's file ({error})",
                known.join(", ")
            )))
        }
    }
}
