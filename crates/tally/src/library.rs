// SPDX-License-Identifier: PostgreSQL
//! The extension's library: installed beside PostgreSQL, or fresh from the build.

use std::path::{Path, PathBuf};

use scratch::Binaries;

use crate::error::Error;

const NAME: &str = "pg_tally.so";

/// The library for a scratch server: of `PGTALLY_LIBRARY`, of the build this program comes
/// from, or the installed one. The build comes first, so that what was just built is what runs.
pub fn find(binaries: &Binaries) -> Result<PathBuf, Error> {
    if let Some(path) = std::env::var_os("PGTALLY_LIBRARY") {
        let path = PathBuf::from(path);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(Error::Failed(format!("PGTALLY_LIBRARY={}: no such file", path.display())))
        };
    }
    let installed = binaries.config("--pkglibdir").map(|folder| Path::new(&folder).join(NAME));
    of_build().into_iter().chain(installed.clone()).find(|path| path.is_file()).ok_or_else(|| {
        let place = installed.unwrap_or_else(|| NAME.into());
        Error::Failed(format!(
            "the extension is neither built nor installed ({} does not exist); run `make` in \
             pgtally's source, or `make install`",
            place.display()
        ))
    })
}

/// `pg_tally/pg_tally.so` of the source tree in whose `target/` this program lies.
fn of_build() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?.canonicalize().ok()?;
    let target =
        own.ancestors().find(|folder| folder.file_name().is_some_and(|n| n == "target"))?;
    Some(target.parent()?.join("pg_tally").join(NAME))
}
