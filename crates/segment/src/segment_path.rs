// SPDX-License-Identifier: PostgreSQL
//! Where a segment is, and whose it has to be.
//!
//! Segments lie in a directory where anybody may create files, under names that anybody can
//! predict. So a file is a server's segment only if it belongs to whom the server runs as, which
//! is the owner of its data directory: PostgreSQL does not start in a directory of another owner.
//! The question is asked of the open file, each time one is opened.

use crate::error::Error;
use crate::header::Header;
use crate::this_host;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How a server's segment's name begins; device and inode of the data directory follow.
pub const NAME_PREFIX: &str = "pg_tally.";
const ROOT: u32 = 0;

/// A segment's path, and the owner that it must have where that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentPath {
    path: PathBuf,
    owner: Option<u32>,
}

impl SegmentPath {
    /// A server's, by its data directory: the file must belong to `owner`, the owner of that
    /// directory, or to root.
    pub fn of_owner(path: impl Into<PathBuf>, owner: u32) -> SegmentPath {
        SegmentPath { path: path.into(), owner: Some(owner) }
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether something stands there that the owner, or root, has put there. For choosing
    /// between paths; what is opened is checked again.
    pub fn is_owners(&self) -> bool {
        let owner = std::fs::symlink_metadata(&self.path).map(|meta| meta.uid());
        owner.is_ok_and(|uid| uid == ROOT || Some(uid) == self.owner)
    }

    /// Whether the file that was opened there may be trusted. Where nothing is known of the
    /// owner it must be our own, root's, or that of the data directory which the segment names.
    pub(crate) fn check(&self, file: &Metadata, header: &Header) -> Result<(), Error> {
        let uid = file.uid();
        let name = this_host::user;
        let why = match self.owner {
            _ if uid == ROOT => return Ok(()),
            Some(owner) if uid == owner => return Ok(()),
            Some(owner) => format!(
                "while the data directory belongs to {}; remove it, then restart the server",
                name(owner)
            ),
            None if uid == own_uid() => return Ok(()),
            None => match (std::fs::metadata(&header.host), self.named()) {
                (Ok(data), _) if data.uid() != uid => format!(
                    "while the data directory that it names, {}, belongs to {}; remove it",
                    header.host,
                    name(data.uid())
                ),
                (Ok(data), Some(named)) if named != (data.dev(), data.ino()) => format!(
                    "and its name is that of another data directory than {}, which it names; \
                     remove it",
                    header.host
                ),
                (Ok(data), _) if data.is_dir() => return Ok(()),
                _ => format!(
                    "and the data directory that it names, \"{}\", cannot be seen from here; run \
                     this as that user, or give the data directory",
                    header.host
                ),
            },
        };
        Err(Error::Foreign { path: self.path.clone(), owner: name(uid), why })
    }

    /// Device and inode in the file's name, where it is a name for a server's segment.
    fn named(&self) -> Option<(u64, u64)> {
        name_of(self.path.file_name()?.to_str()?)
    }
}

/// Device and inode of the data directory in the name `pg_tally.<device>.<inode>`, both in
/// hexadecimal; `None` for other names, such as a creator's half-made file.
pub fn name_of(name: &str) -> Option<(u64, u64)> {
    let hex = |part: &str| {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        digits.then(|| u64::from_str_radix(part, 16).ok()).flatten()
    };
    let (device, inode) = name.strip_prefix(NAME_PREFIX)?.split_once('.')?;
    Some((hex(device)?, hex(inode)?))
}

/// Whom this process acts as.
pub(crate) fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether a file of this owner is as good as our own: ours, or root's.
pub(crate) fn is_own(uid: u32) -> bool {
    uid == ROOT || uid == own_uid()
}

/// What says where a segment is: a plain path, of which no owner is known, or more.
pub trait ToSegmentPath {
    /// The same as a segment's path.
    fn to_segment_path(&self) -> SegmentPath;
}

impl ToSegmentPath for Path {
    fn to_segment_path(&self) -> SegmentPath {
        SegmentPath { path: self.to_path_buf(), owner: None }
    }
}

impl ToSegmentPath for PathBuf {
    fn to_segment_path(&self) -> SegmentPath {
        self.as_path().to_segment_path()
    }
}

impl ToSegmentPath for SegmentPath {
    fn to_segment_path(&self) -> SegmentPath {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_segments_bear_the_name() {
        assert_eq!(name_of("pg_tally.fe00.2a5f31"), Some((0xfe00, 0x2a5f31)));
        for other in ["pg_tally.fe00", "pg_tally.fe00.2a5f31.tmp.77", "pg_tally..1", "pg_tallyx"] {
            assert_eq!(name_of(other), None, "{other}");
        }
    }
}
