// SPDX-License-Identifier: PostgreSQL
//! The temporary directory of a cluster.

use std::path::{Path, PathBuf};

use files::Access;

use crate::error::Error;
use crate::os_user::OsUser;
use crate::watchdog::Watchdog;

/// The limit on the length of a socket's path (sizeof sun_path, minus the terminating null byte).
const SOCKET_PATH_MAX: usize = 107;

/// The subdirectories of the temporary directory that belong to the server's user.
pub(crate) const DATA: &str = "data";
pub(crate) const RUN: &str = "run";

/// Create a temporary directory, and a watchdog that removes it. The directory belongs to the caller, so that the
/// server's user, who may have fewer privileges, cannot replace files that the caller creates or opens in it with
/// links. It has two subdirectories that belong to the server's user: [`DATA`], which is empty, and [`RUN`].
pub(crate) fn create(
    os_user: &OsUser,
    parent: Option<&Path>,
) -> Result<(PathBuf, Watchdog), Error> {
    let wanted = parent.map_or_else(std::env::temp_dir, Path::to_path_buf);
    // The path of the socket's lock file must fit.
    let fits = |dir: &Path| dir.as_os_str().len() + "/tally.XXXXXX/run/.s.PGSQL.5432.lock".len();
    let parent = match () {
        () if fits(&wanted) <= SOCKET_PATH_MAX => wanted,
        () if parent.is_none() => PathBuf::from("/tmp"),
        () => return Err(Error::LongPath(wanted)),
    };
    // Everybody may traverse it, because the server's user has to; the subdirectories have their own mode.
    let dir = files::unique_folder(&parent, "tally.", Access::Everybody)
        .map_err(Error::file("cannot create a directory in", &parent))?;
    let watchdog = Watchdog::start(&dir)?;
    // Anyone who can reach the socket can become superuser, and run programs as the server's user.
    for name in [DATA, RUN] {
        let path = dir.join(name);
        files::new_folder(&path, Access::Owner).map_err(Error::file("cannot create", &path))?;
        os_user.chown(&path)?;
    }
    Ok((dir, watchdog))
}
