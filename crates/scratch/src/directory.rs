// SPDX-License-Identifier: PostgreSQL
//! The temporary directory of a cluster.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::os_user::OsUser;
use crate::watchdog::Watchdog;

/// The server's limit on the length of a socket's path (sizeof sun_path, less the NUL).
const SOCKET_PATH_MAX: usize = 107;

/// Create a temporary directory of the server's user, and a watchdog that removes it.
pub(crate) fn create(
    os_user: &OsUser,
    parent: Option<&Path>,
) -> Result<(PathBuf, Watchdog), Error> {
    let wanted = parent.map_or_else(std::env::temp_dir, Path::to_path_buf);
    // The socket's lock file must fit.
    let fits = |dir: &Path| dir.as_os_str().len() + "/tally.XXXXXX/.s.PGSQL.5432.lock".len();
    let parent = match () {
        () if fits(&wanted) <= SOCKET_PATH_MAX => wanted,
        () if parent.is_none() => PathBuf::from("/tmp"),
        () => return Err(Error::LongPath(wanted)),
    };
    let made = tempfile::Builder::new()
        .prefix("tally.")
        .tempdir_in(&parent)
        .map_err(Error::file("cannot create a directory in", &parent))?;
    let watchdog = Watchdog::start(made.path())?;
    let dir = made.keep();
    // Others may reach the socket; the data directory has its own mode.
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755))
        .map_err(Error::file("cannot change the mode of", &dir))?;
    os_user.chown(&dir)?;
    Ok((dir, watchdog))
}
