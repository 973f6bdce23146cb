// SPDX-License-Identifier: PostgreSQL
//! Where root may write: only where no other user can change a part of the path, so that the check stays valid.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Maximum number of links to follow, as in the kernel.
const LINKS: u32 = 40;

/// Fails if we are root and another user could redirect this path: every directory on the way must belong to root, or
/// to the user who became root by sudo, and others must not be able to write to it, except to add names (as in /tmp).
/// Parts that do not exist yet will be created by us.
pub fn check(path: &Path) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let Some(folder) = std::path::absolute(path)?.parent().map(Path::to_path_buf) else {
        return Ok(());
    };
    walk(&folder)
}

/// Whether this user is root, ourselves, or the user who became root by sudo.
pub(crate) fn is_trusted(uid: u32) -> bool {
    let sudo = || std::env::var("SUDO_UID").ok()?.parse().ok();
    uid == 0
        || uid == rustix::process::geteuid().as_raw()
        || (rustix::process::geteuid().is_root() && sudo() == Some(uid))
}

fn walk(folder: &Path) -> io::Result<()> {
    let (mut at, mut links) = (PathBuf::from("/"), 0);
    let mut here = std::fs::symlink_metadata(&at)?;
    let mut left = parts(folder);
    while let Some(part) = left.pop() {
        if part == ".." {
            // `at` does not contain links.
            at.pop();
            here = std::fs::symlink_metadata(&at)?;
            continue;
        }
        let next = at.join(&part);
        let meta = match std::fs::symlink_metadata(&next) {
            Err(error) if error.kind() == ErrorKind::NotFound => break,
            found => found?,
        };
        if others_write(&at, &here) && !(is_sticky(&here) && is_trusted(meta.uid())) {
            return Err(refused(&next, &here));
        }
        if meta.is_symlink() {
            links += 1;
            if links > LINKS {
                return Err(rustix::io::Errno::LOOP.into());
            }
            let to = std::fs::read_link(&next)?;
            if to.is_absolute() {
                at = PathBuf::from("/");
                here = std::fs::symlink_metadata(&at)?;
            }
            left.extend(parts(&to));
            continue;
        }
        if !is_trusted(meta.uid()) {
            return Err(refused(&next, &meta));
        }
        (at, here) = (next, meta);
    }
    match others_write(&at, &here) && !is_sticky(&here) {
        true => Err(refused(&at, &here)),
        false => Ok(()),
    }
}

/// The parts of a path, the first one last.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    });
    let mut parts: Vec<OsString> = parts.collect();
    parts.reverse();
    parts
}

/// Whether users other than the owner may write to the directory. Root's group is root.
fn others_write(path: &Path, meta: &Metadata) -> bool {
    meta.mode() & 0o002 != 0 || (meta.mode() & 0o020 != 0 && (meta.gid() != 0 || has_list(path)))
}

/// Whether there is an access control list. If so, the group bits are the mask of all users and groups in the list.
fn has_list(path: &Path) -> bool {
    let length = rustix::fs::getxattr_query(path, "system.posix_acl_access");
    length.is_ok_and(|length| length > 0)
}

fn is_sticky(meta: &Metadata) -> bool {
    meta.mode() & 0o1000 != 0
}

fn refused(path: &Path, meta: &Metadata) -> io::Error {
    let why = match is_trusted(meta.uid()) {
        true => "other users may write there".to_string(),
        false => format!("it belongs to user {}", meta.uid()),
    };
    io::Error::new(
        ErrorKind::PermissionDenied,
        format!(
            "refusing to write under {} as root, because {why}, so its contents could be redirected; run this as that \
             user, or choose another directory",
            path.display()
        ),
    )
}
