// SPDX-License-Identifier: PostgreSQL
//! Creates pg_tally's views in a scratch server, so that reads and listings can query them.

use std::path::{Path, PathBuf};

use scratch::Cluster;

use error::Error;
use live::library::Library;

/// Creates the views: as an extension if the installed library is used, otherwise with the script in the
/// directory of the built library. With neither, there are no views, and the server rejects queries on
/// them.
pub fn create(cluster: &Cluster) -> Result<(), Error> {
    let mut client = cluster.client()?;
    let script = match Library::find(cluster.binaries())? {
        Library::Installed(_) => {
            let known = "select 1 from pg_available_extensions where name = 'pg_tally'";
            if client.query_opt(known, &[])?.is_some() {
                client.batch_execute("create extension pg_tally")?;
            }
            return Ok(());
        }
        Library::Built(file) => file.parent().and_then(script_in),
    };
    let Some(script) = script else { return Ok(()) };
    let text = std::fs::read_to_string(script)?;
    let sql: String = text
        .lines()
        .filter(|line| !line.starts_with('\\'))
        .map(|line| line.replace("MODULE_PATHNAME", "pg_tally") + "\n")
        .collect();
    client.batch_execute(&sql)?;
    Ok(())
}

/// The extension's script in the directory of its library, which only a build directory has.
fn script_in(folder: &Path) -> Option<PathBuf> {
    std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Scripts of updates have two versions in their names.
        name.starts_with("pg_tally--") && name.ends_with(".sql") && name.matches("--").count() == 1
    })
}
