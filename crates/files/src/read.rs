// SPDX-License-Identifier: PostgreSQL
//! Reads files that another user may have created.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file, not through a link. A pipe would block the reader, and a device could do anything.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    regular(OpenOptions::new().read(true).custom_flags(flags), path)
}

/// The content of such a file; fails if it is larger than `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_all(open(path)?, limit)
}

/// The content of a file that the user specified, which may be a link or a pipe; fails if it is larger than `limit`
/// bytes.
pub fn read_named(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_all(File::open(path)?, limit)
}

/// The content of such a file as text.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    text(read(path, limit)?)
}

/// The text of a file that the user specified.
pub fn read_named_text(path: &Path, limit: u64) -> io::Result<String> {
    text(read_named(path, limit)?)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not valid UTF-8 text"))
}

/// Everything that can be read; fails if it is more than `limit` bytes.
pub fn read_all(from: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let most = match limit >> 20 {
            0 => format!("{limit} bytes"),
            mb => format!("{mb} MB"),
        };
        let what = format!("it is larger than {most}, the limit for such a file");
        return Err(io::Error::new(ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}

/// Opens a file if it is a regular one; with O_NOFOLLOW among the options, the error names a link as such.
pub(crate) fn regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.open(path).map_err(|error| {
        match error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
            true => io::Error::new(
                ErrorKind::PermissionDenied,
                "it is a symbolic link, and links are not followed",
            ),
            false => error,
        }
    })?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")),
    }
}
