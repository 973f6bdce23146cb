// SPDX-License-Identifier: PostgreSQL
//! The temporary directory of a cluster.

use std::path::{Path, PathBuf};

use files::Access;

use crate::error::Error;
use crate::os_user::OsUser;
use crate::watchdog::Watchdog;

/// The server's limit on the length of a socket's path (sizeof sun_path, less the NUL).
const SOCKET_PATH_MAX: usize = 107;

/// Below the temporary directory, what belongs to the server's user.
pub(crate) const DATA: &str = "data";
pub(crate) const RUN: &str = "run";

/// Create a temporary directory, and a watchdog that removes it. It stays the caller's: so the server's user, who may be
/// less than the caller, cannot replace by a link what the caller creates or opens in it. That user has two directories
/// of its own below it: [`DATA`], still empty, and [`RUN`].
pub(crate) fn create(
    os_user: &OsUser,
    parent: Option<&Path>,
) -> Result<(PathBuf, Watchdog), Error> {
    let wanted = parent.map_or_else(std::env::temp_dir, Path::to_path_buf);
    // The socket's lock file must fit.
    let fits = |dir: &Path| dir.as_os_str().len() + "/tally.XXXXXX/run/.s.PGSQL.5432.lock".len();
    let parent = match () {
        () if fits(&wanted) <= SOCKET_PATH_MAX => wanted,
        () if parent.is_none() => PathBuf::from("/tmp"),
        () => return Err(Error::LongPath(wanted)),
    };
    // Everybody may pass, for the server's user has to; what belongs to that user has its own mode.
    let dir = files::unique_folder(&parent, "tally.", Access::Everybody)
        .map_err(Error::file("cannot create a directory in", &parent))?;
    let watchdog = Watchdog::start(&dir)?;
    // Whoever reaches the socket is the superuser, who runs programs with the rights of the server's user.
    for name in [DATA, RUN] {
        let path = dir.join(name);
        files::new_folder(&path, Access::Owner).map_err(Error::file("cannot create", &path))?;
        os_user.chown(&path)?;
    }
    Ok((dir, watchdog))
}
