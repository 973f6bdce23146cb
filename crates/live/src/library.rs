// SPDX-License-Identifier: PostgreSQL
//! The extension's library: installed with PostgreSQL, or from the build.

use std::path::{Path, PathBuf};

use scratch::Binaries;

use error::Error;

const NAME: &str = "pg_tally.so";

/// The library for a scratch server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Library {
    /// This file; the server gets a copy that its user can read.
    Built(PathBuf),
    /// The installed library, which the server finds by itself. A copy would load the library twice.
    Installed(PathBuf),
}

impl Library {
    /// The library that `PGTALLY_LIBRARY` names, otherwise that of the build that this program belongs to, otherwise
    /// the installed one.
    pub fn find(binaries: &Binaries) -> Result<Self, Error> {
        if let Some(path) = std::env::var_os("PGTALLY_LIBRARY") {
            let path = PathBuf::from(path);
            return if path.is_file() {
                Ok(Self::Built(path))
            } else {
                Err(Error::Failed(format!("PGTALLY_LIBRARY={}: no such file", path.display())))
            };
        }
        if let Some(path) = of_build().filter(|path| path.is_file()) {
            return Ok(Self::Built(path));
        }
        let folder = binaries.config("--pkglibdir").unwrap_or_default();
        let installed = Path::new(&folder).join(NAME);
        if installed.is_file() {
            return Ok(Self::Installed(installed));
        }
        Err(Error::Failed(format!(
            "the extension is neither built nor installed ({} does not exist); run `make` or \
             `make install` in pgtally's source directory",
            installed.display()
        )))
    }
}

/// `pg_tally/pg_tally.so` of the source tree, if this program is in its `target/`.
fn of_build() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?.canonicalize().ok()?;
    let target =
        own.ancestors().find(|folder| folder.file_name().is_some_and(|n| n == "target"))?;
    Some(target.parent()?.join("pg_tally").join(NAME))
}
