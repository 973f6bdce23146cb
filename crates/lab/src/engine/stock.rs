// SPDX-License-Identifier: PostgreSQL
//! Finds a study: a built-in one by its name, or the user's own by its file.

use std::path::{Path, PathBuf};

use error::Error;

/// A study's file and its origin.
#[derive(Debug, Clone)]
pub struct Files {
    /// Text of the file.
    pub study: String,
    /// Directory of the user's own file; `None` for a built-in study.
    pub folder: Option<PathBuf>,
}

/// The one of `built_in` (names and texts) that has this name, or the one in this file or directory,
/// where it is called `KIND.toml`.
pub fn find(built_in: &[(&str, &str)], kind: &str, name: &str) -> Result<Files, Error> {
    if let Some((_, study)) = built_in.iter().find(|(known, _)| *known == name) {
        return Ok(Files { study: (*study).into(), folder: None });
    }
    let path = Path::new(name);
    let path = if path.is_dir() { path.join(format!("{kind}.toml")) } else { path.to_path_buf() };
    match files::read_named_text(&path, 16 << 20) {
        Ok(study) => {
            let folder = path.canonicalize()?.parent().map(Path::to_path_buf);
            Ok(Files { study, folder })
        }
        Err(error) => {
            let known: Vec<&str> = built_in.iter().map(|(name, _)| *name).collect();
            Err(Error::Usage(format!(
                "{name}: neither a built-in {kind} ({}) nor a file of one ({error})",
                known.join(", ")
            )))
        }
    }
}
