// SPDX-License-Identifier: PostgreSQL
//! The directories of an arm's server: checks the free space, and moves the WAL.

use std::path::{Path, PathBuf};

use scratch::Cluster;

use error::Error;

/// Size of a server without tables, with some WAL, bytes.
const EMPTY_SERVER: u64 = 250 << 20;
/// Size per unit of pgbench's scale, with the WAL of filling the tables, bytes.
const PER_SCALE: u64 = 32 << 20;

/// Checks that `folder` has space for pgbench's tables of this scale.
pub fn check_free_space(folder: &Path, scale: u32) -> Result<(), Error> {
    let stat = rustix::fs::statvfs(folder)
        .map_err(|error| Error::Failed(format!("{}: {error}", folder.display())))?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let wanted = EMPTY_SERVER + PER_SCALE * u64::from(scale);
    if free >= wanted {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "{}: {} MB free, about {} MB needed (scale {scale}); choose another directory with TMPDIR, or \
         with `directory` in the study file",
        folder.display(),
        free >> 20,
        wanted >> 20
    )))
}

/// Moves the WAL of a server that has not started yet to a new directory below `folder`, and leaves a
/// symbolic link. Returns the new directory.
pub fn move_wal(cluster: &mut Cluster, folder: &Path) -> Result<PathBuf, Error> {
    let name = cluster.dir().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let to = folder.join(name + ".wal");
    cluster.move_directory("pg_wal", &to)?;
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_too_little_space_names_the_directory_and_a_remedy() {
        let message = check_free_space(Path::new("/tmp"), 4_000_000_000).unwrap_err().to_string();
        assert!(message.contains("/tmp") && message.contains("TMPDIR"), "{message}");
        assert!(check_free_space(Path::new("/no/such/directory"), 1).is_err());
    }
}
