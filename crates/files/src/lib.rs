// SPDX-License-Identifier: PostgreSQL
//! The only way to create files and directories (script/one-place checks this).
//!
//! Files that the command writes contain texts of statements, so their mode is set on creation, whatever the umask is.
//! Files are written neither through a link, nor into a file that another user has put under that name. Root, a
//! worthwhile target of such redirections, writes only where no other user can change a part of the path ([`place`]).
//!
//! Files that others may have created, such as those of a recording, are read safely: links are not followed, pipes do
//! not block the reader, and the size is limited ([`read`]).

mod lock;
mod place;
mod read;

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tempfile::{NamedTempFile, TempDir};

pub use lock::Lock;
pub use place::check;
pub use read::{open, read, read_all, read_named, read_named_text, read_text};

/// Who may read a file, besides its owner and root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Nobody.
    #[default]
    Owner,
    /// Its group, if the group may also read the server's data directory.
    Group,
    /// Everybody: the file is the same on every machine, such as a manual page, or a directory that others work in.
    Everybody,
}

impl Access {
    /// Access for the group if it may read this file or directory and others may not; otherwise for the owner.
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
        // Whoever may read a directory may also enter it.
        self.file() | (self.file() & 0o444) >> 2
    }
}

/// Creates a file, replacing a file of ours with an empty one. A device or a pipe is opened as it is.
pub fn create(path: &Path, access: Access) -> io::Result<File> {
    match create_new(path, access) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => return made,
    }
    // Open only once, because the reader of a pipe would take the first close as the end.
    if let Some(file) = special(path) {
        return Ok(file);
    }
    let file = own(path, OpenOptions::new().write(true), access)?;
    file.set_len(0)?;
    Ok(file)
}

/// Creates a file, which must not exist.
pub fn create_new(path: &Path, access: Access) -> io::Result<File> {
    check(path)?;
    // O_EXCL does not follow links.
    let file = OpenOptions::new().write(true).create_new(true).mode(access.file()).open(path)?;
    with_mode(file, access)
}

/// Opens a file for appending: a new one, or one of ours.
pub fn append(path: &Path, access: Access) -> io::Result<File> {
    match append_new(path, access) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            own(path, OpenOptions::new().append(true), access)
        }
        made => made,
    }
}

/// Creates a file for appending, which must not exist.
pub fn append_new(path: &Path, access: Access) -> io::Result<File> {
    check(path)?;
    let file = OpenOptions::new().append(true).create_new(true).mode(access.file()).open(path)?;
    with_mode(file, access)
}

/// Creates a file with [`create`], and writes this content.
pub fn write(path: &Path, content: &[u8], access: Access) -> io::Result<()> {
    create(path, access)?.write_all(content)
}

/// Replaces the file at `path` with one that has this content: readers see either the old content or the new one. With
/// `durable`, the new content is on disk on return. The temporary file next to it, whose name ends with `unfinished`,
/// stays only if this process is killed.
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

/// Creates a file with an unpredictable name, which is removed on drop.
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

/// Creates a directory and its missing parents. An existing directory stays as it is.
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
        // Another process may have created it meanwhile.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// Creates a directory, which must not exist.
pub fn new_folder(path: &Path, access: Access) -> io::Result<()> {
    check(path)?;
    std::fs::DirBuilder::new().mode(access.folder()).create(path)?;
    // The umask may have removed more permissions.
    let flags = (OFlags::NOFOLLOW | OFlags::DIRECTORY).bits() as i32;
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(made) => made.set_permissions(Permissions::from_mode(access.folder())),
        Err(_) => std::fs::set_permissions(path, Permissions::from_mode(access.folder())),
    }
}

/// Changes the mode of a file or directory of ours.
pub fn set_access(path: &Path, access: Access) -> io::Result<()> {
    check(path)?;
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let mode = if file.metadata()?.is_dir() { access.folder() } else { access.file() };
    file.set_permissions(Permissions::from_mode(mode))
}

/// Creates a directory with an unpredictable name in this one; it is not removed.
pub fn unique_folder(parent: &Path, prefix: &str, access: Access) -> io::Result<PathBuf> {
    temporary_folder(parent, prefix, access).map(TempDir::keep)
}

/// The same, but removed on drop.
pub fn temporary_folder(parent: &Path, prefix: &str, access: Access) -> io::Result<TempDir> {
    check(&parent.join("folder"))?;
    let mode = Permissions::from_mode(access.folder());
    let made =
        tempfile::Builder::new().prefix(prefix).permissions(mode.clone()).tempdir_in(parent)?;
    // The umask may have removed more permissions.
    std::fs::set_permissions(made.path(), mode)?;
    Ok(made)
}

/// Writes to an existing file of the kernel, such as a setting in /sys.
pub fn write_to_kernel(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

/// Sets the mode again, because the umask may have removed more permissions.
fn with_mode(file: File, access: Access) -> io::Result<File> {
    file.set_permissions(Permissions::from_mode(access.file()))?;
    Ok(file)
}

/// Opens an existing regular file of ours.
fn own(path: &Path, options: &mut OpenOptions, access: Access) -> io::Result<File> {
    check(path)?;
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = read::regular(options.custom_flags(flags), path)?;
    let meta = file.metadata()?;
    // Another hard link may be the name of a file that must not be overwritten.
    if !place::is_trusted(meta.uid()) || meta.nlink() > 1 {
        return Err(io::Error::new(
            ErrorKind::PermissionDenied,
            format!(
                "it already exists and belongs to user {}, or has other hard links",
                meta.uid()
            ),
        ));
    }
    // Users who could read the earlier content may still have it open, but cannot open the file again.
    with_mode(file, access)
}

/// Opens a device or a pipe, such as /dev/stdout. Only links of ours, root's or the kernel's are followed.
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
