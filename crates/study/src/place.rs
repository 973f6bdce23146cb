// SPDX-License-Identifier: PostgreSQL
//! Where an arm's server lives: whether there is room, and its WAL's own directory.

use std::path::{Path, PathBuf};
use std::process::Command;

use scratch::Cluster;

use error::Error;

/// What a server takes without any table, with some WAL.
const BARE: u64 = 250 << 20;
/// What a unit of pgbench's scale takes, with the WAL of filling it.
const SCALE: u64 = 32 << 20;

/// Refuse at once where the tables would not fit.
pub fn check_room(folder: &Path, scale: u32) -> Result<(), Error> {
    let stat = rustix::fs::statvfs(folder)
        .map_err(|error| Error::Failed(format!("{}: {error}", folder.display())))?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let wanted = BARE + SCALE * u64::from(scale);
    if free >= wanted {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "{}: {} MB are free and about {} MB are wanted (scale {scale}); TMPDIR, or directory in the \
         study file, names another place",
        folder.display(),
        free >> 20,
        wanted >> 20
    )))
}

/// Move the WAL of a server that has not started yet into a new directory below `folder`, and leave a
/// link to it. Returns the directory.
pub fn move_wal(cluster: &mut Cluster, folder: &Path) -> Result<PathBuf, Error> {
    let from = cluster.data_dir().join("pg_wal");
    let name = cluster.dir().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let to = folder.join(name + ".wal");
    cluster.also_remove(&to);
    let copied = Command::new("cp").arg("-a").arg("--").arg(&from).arg(&to).output()?;
    if !copied.status.success() {
        return Err(Error::Failed(String::from_utf8_lossy(&copied.stderr).trim().to_string()));
    }
    std::fs::remove_dir_all(&from)?;
    std::os::unix::fs::symlink(&to, &from)?;
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_room_is_said_with_what_is_wanted() {
        let said = check_room(Path::new("/tmp"), 4_000_000_000).unwrap_err().to_string();
        assert!(said.contains("/tmp") && said.contains("TMPDIR"), "{said}");
        assert!(check_room(Path::new("/no/such/place"), 1).is_err());
    }
}
