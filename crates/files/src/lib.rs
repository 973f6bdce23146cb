// SPDX-License-Identifier: PostgreSQL
//! How a file or directory of ours is made: the only way (script/one-place checks that).
//!
//! What the command writes contains texts of statements. So its mode is given when it is made, whatever the umask is.
//! And it is written by the one who asked for it: neither through a link, nor into a file that another user has put under
//! that name. Root, whom everybody would like to lead elsewhere, writes only where no other user can change a part of the
//! path ([`place`]).
//!
//! And how files are read that others may have made, as those of a recording: no link leads elsewhere, no pipe keeps the
//! reader waiting, and none is larger than a limit ([`read`]).

mod place;
mod read;

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tempfile::{NamedTempFile, TempDir};

pub use place::check;
pub use read::{open, read, read_all, read_named, read_named_text, read_text};

/// Who may read it, besides its owner and root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Nobody.
    #[default]
    Owner,
    /// Its group, where that may read the server's data directory too.
    Group,
    /// Everybody: it is the same on every machine, such as a manual page, or others work in it.
    Everybody,
}

impl Access {
    /// The group's if it may read this file or directory, and others may not.
    pub fn like(path: &Path) -> Access {
        match std::fs::metadata(path) {
            Ok(meta) if meta.mode() & 0o044 == 0o040 => Access::Group,
            _ => Access::Owner,
        }
    }

    fn file(self) -> u32 {
        match self {
            Access::Owner => 0o600,
            Access::Group => 0o640,
            Access::Everybody => 0o644,
        }
    }

    fn folder(self) -> u32 {
        // Who may read may enter.
        self.file() | (self.file() & 0o444) >> 2
    }
}

/// A new file, or an empty one in place of our own. A device or a pipe is opened as it is.
pub fn create(path: &Path, access: Access) -> io::Result<File> {
    match create_new(path, access) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => return made,
    }
    // Opened once: the reader of a pipe would take the first close for the end.
    if let Some(file) = special(path) {
        return Ok(file);
    }
    let file = own(path, OpenOptions::new().write(true), access)?;
    file.set_len(0)?;
    Ok(file)
}

/// A new file.
pub fn create_new(path: &Path, access: Access) -> io::Result<File> {
    check(path)?;
    // O_EXCL follows no link.
    let file = OpenOptions::new().write(true).create_new(true).mode(access.file()).open(path)?;
    with_mode(file, access)
}

/// A file to append to: a new one, or our own.
pub fn append(path: &Path, access: Access) -> io::Result<File> {
    match append_new(path, access) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            own(path, OpenOptions::new().append(true), access)
        }
        made => made,
    }
}

/// A new file to append to.
pub fn append_new(path: &Path, access: Access) -> io::Result<File> {
    check(path)?;
    let file = OpenOptions::new().append(true).create_new(true).mode(access.file()).open(path)?;
    with_mode(file, access)
}

/// Create it with [`create`], and write this.
pub fn write(path: &Path, content: &[u8], access: Access) -> io::Result<()> {
    create(path, access)?.write_all(content)
}

/// Replace the file at `path` by one with this content: readers see the old content or the new one. With `durable` the new
/// content is on disk on return. A temporary file next to it never stays, unless this process is killed; its name ends
/// with `unfinished`.
pub fn replace(
    path: &Path,
    content: &[u8],
    access: Access,
    unfinished: &str,
    durable: bool,
) -> io::Result<()> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut file = temporary(folder, &format!(".{name}."), unfinished, access)?;
    file.write_all(content)?;
    if durable {
        file.as_file().sync_all()?;
    }
    file.persist(path)?;
    if durable {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// A new file of an unpredictable name, removed on drop.
pub fn temporary(
    folder: &Path,
    prefix: &str,
    suffix: &str,
    access: Access,
) -> io::Result<NamedTempFile> {
    check(&folder.join("file"))?;
    let file = tempfile::Builder::new().prefix(prefix).suffix(suffix).tempfile_in(folder)?;
    file.as_file().set_permissions(Permissions::from_mode(access.file()))?;
    Ok(file)
}

/// A directory, with those above it that do not exist. One that exists stays as it is.
pub fn folder(path: &Path, access: Access) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    match new_folder(path, access) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let above = path.parent().filter(|above| !above.as_os_str().is_empty());
            folder(above.ok_or(error)?, access)?;
            new_folder(path, access)
        }
        // Another process may have made it meanwhile.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// A new directory.
pub fn new_folder(path: &Path, access: Access) -> io::Result<()> {
    check(path)?;
    std::fs::DirBuilder::new().mode(access.folder()).create(path)?;
    // The umask may have taken more.
    let flags = (OFlags::NOFOLLOW | OFlags::DIRECTORY).bits() as i32;
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(made) => made.set_permissions(Permissions::from_mode(access.folder())),
        Err(_) => std::fs::set_permissions(path, Permissions::from_mode(access.folder())),
    }
}

/// Change the mode of a file or directory of ours.
pub fn set_access(path: &Path, access: Access) -> io::Result<()> {
    check(path)?;
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let mode = if file.metadata()?.is_dir() { access.folder() } else { access.file() };
    file.set_permissions(Permissions::from_mode(mode))
}

/// A new directory of an unpredictable name below this one; it is not removed.
pub fn unique_folder(parent: &Path, prefix: &str, access: Access) -> io::Result<PathBuf> {
    temporary_folder(parent, prefix, access).map(TempDir::keep)
}

/// The same, removed on drop.
pub fn temporary_folder(parent: &Path, prefix: &str, access: Access) -> io::Result<TempDir> {
    check(&parent.join("folder"))?;
    let mode = Permissions::from_mode(access.folder());
    let made =
        tempfile::Builder::new().prefix(prefix).permissions(mode.clone()).tempdir_in(parent)?;
    // The umask may have taken more.
    std::fs::set_permissions(made.path(), mode)?;
    Ok(made)
}

/// Write to a file that exists: one of the kernel, such as a setting in /sys.
pub fn write_to_kernel(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

/// The umask may have taken more than the access leaves out.
fn with_mode(file: File, access: Access) -> io::Result<File> {
    file.set_permissions(Permissions::from_mode(access.file()))?;
    Ok(file)
}

/// An existing regular file of ours.
fn own(path: &Path, options: &mut OpenOptions, access: Access) -> io::Result<File> {
    check(path)?;
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = read::regular(options.custom_flags(flags), path)?;
    let meta = file.metadata()?;
    // A further name may be one of a file that is not meant.
    if !place::is_trusted(meta.uid()) || meta.nlink() > 1 {
        return Err(io::Error::new(
            ErrorKind::PermissionDenied,
            format!(
                "it already exists and belongs to user {}, or has other hard links",
                meta.uid()
            ),
        ));
    }
    // What was written before stays readable to whom it was until now, what follows does not.
    with_mode(file, access)
}

/// A device or a pipe, such as /dev/stdout. Only a link of our own, root's or the kernel's leads to it.
fn special(path: &Path) -> Option<File> {
    let link = std::fs::symlink_metadata(path).ok()?;
    let kind = std::fs::metadata(path).ok()?.file_type();
    let is_special = kind.is_char_device() || kind.is_fifo() || kind.is_socket();
    if !is_special || !place::is_trusted(link.uid()) {
        return None;
    }
    let file = OpenOptions::new().write(true).open(path).ok()?;
    (!file.metadata().ok()?.is_file()).then_some(file)
}

#[cfg(test)]
mod tests;
