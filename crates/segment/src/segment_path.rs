// SPDX-License-Identifier: PostgreSQL
//! The path of a segment, its required owner, and what led to it: a data directory, a connection.
//!
//! Segments are in a directory where every user may create files, and their names are predictable. So a file is
//! a server's segment only if it belongs to the server's user, the owner of the data directory:
//! PostgreSQL does not start in a directory of another owner. Each time a file is opened, the open file
//! is checked.

use crate::error::Error;
use crate::header::Header;
use crate::this_host;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The prefix of the name of a server's segment; the device and inode of the data directory follow.
pub const NAME_PREFIX: &str = "pg_tally.";
/// The prefixes of the names of clients' segments, for Java and for libpq; the PID follows.
const CLIENT_PREFIXES: [&str; 2] = ["pg_tally.java.", "pg_tally.libpq."];
const ROOT: u32 = 0;

/// A segment's path, its required owner if that is known, and the data directory and the connection that led to it.
#[derive(Clone, PartialEq, Eq)]
pub struct SegmentPath {
    path: PathBuf,
    owner: Option<u32>,
    data_directory: Option<PathBuf>,
    conninfo: Option<String>,
}

/// Without the connection string, which may contain a password.
impl std::fmt::Debug for SegmentPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SegmentPath { path, owner, data_directory: _, conninfo: _ } = self;
        f.debug_struct("SegmentPath")
            .field("path", path)
            .field("owner", owner)
            .finish_non_exhaustive()
    }
}

impl SegmentPath {
    /// The path of a server's segment, which must belong to `owner`, the owner of the data directory, or
    /// to root.
    pub fn of_owner(path: impl Into<PathBuf>, owner: u32) -> SegmentPath {
        SegmentPath { owner: Some(owner), ..path.into().to_segment_path() }
    }

    /// The same path, as found by the data directory of its server.
    pub fn found_in(self, data_directory: impl Into<PathBuf>) -> SegmentPath {
        SegmentPath { data_directory: Some(data_directory.into()), ..self }
    }

    /// The data directory by which it was found.
    pub fn data_directory(&self) -> Option<&Path> {
        self.data_directory.as_deref()
    }

    /// The same path, as found through the connection with this connection string.
    pub fn found_through(self, conninfo: impl Into<String>) -> SegmentPath {
        SegmentPath { conninfo: Some(conninfo.into()), ..self }
    }

    /// The connection string of the connection that led to it: how the user wants to connect to its server.
    pub fn conninfo(&self) -> Option<&str> {
        self.conninfo.as_deref()
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a file of the owner, or of root, exists there. Use this only to choose between paths: the opened
    /// file is checked again.
    pub fn is_owners(&self) -> bool {
        let owner = std::fs::symlink_metadata(&self.path).map(|meta| meta.uid());
        owner.is_ok_and(|uid| uid == ROOT || Some(uid) == self.owner)
    }

    /// Check that the opened file can be trusted. If the owner is unknown, it must be our own, root's, or
    /// that of the data directory named in the segment.
    pub(crate) fn check(&self, file: &Metadata, header: &Header) -> Result<(), Error> {
        let uid = file.uid();
        let name = this_host::user_name;
        let why = match self.owner {
            _ if uid == ROOT => return Ok(()),
            Some(owner) if uid == owner => return Ok(()),
            Some(owner) => format!(
                "but the data directory belongs to {}; remove the segment, then restart the server",
                name(owner)
            ),
            None if uid == own_uid() => return Ok(()),
            None if self.client().is_some_and(|pid| this_host::user_of(pid) == Some(uid)) => {
                return Ok(())
            }
            None if self.client().is_some() => {
                "but no process of that user has the PID in its name; run this as that user".into()
            }
            None => match (std::fs::metadata(&header.host), self.named()) {
                (Ok(data), _) if data.uid() != uid => format!(
                    "but its data directory, {}, belongs to {}; remove the segment",
                    header.host,
                    name(data.uid())
                ),
                (Ok(data), Some(named)) if named != (data.dev(), data.ino()) => format!(
                    "but its file name does not match its data directory, {}; \
                     remove the segment",
                    header.host
                ),
                (Ok(data), _) if data.is_dir() => return Ok(()),
                (Err(error), _) if error.kind() == std::io::ErrorKind::NotFound => {
                    absent(&header.host, has_ended(header))
                }
                _ => format!(
                    "and its data directory, \"{}\", is not accessible from here; run \
                     this as that user, or specify the data directory",
                    header.host
                ),
            },
        };
        Err(Error::Foreign { path: self.path.clone(), owner: name(uid), why })
    }

    /// The PID in the file's name, if it is a client's segment.
    fn client(&self) -> Option<i32> {
        client_of(self.path.file_name()?.to_str()?)
    }

    /// The device and inode in the file's name, if it is a server's segment.
    fn named(&self) -> Option<(u64, u64)> {
        name_of(self.path.file_name()?.to_str()?)
    }
}

/// What to do about a segment whose data directory does not exist. Running as another user would not help.
fn absent(host: &str, ended: bool) -> String {
    let what = match ended {
        true => "and its server has ended; remove the file",
        false => {
            "here; if the server runs in a container, run this there, otherwise remove the file"
        }
    };
    format!("and its data directory, \"{host}\", does not exist {what}")
}

/// Whether a segment's server is known to have ended: before this boot, or in this PID namespace.
fn has_ended(header: &Header) -> bool {
    let (boot, namespace) = (this_host::own_boot_id(), this_host::own_namespace());
    let pid = i32::try_from(header.server_pid).unwrap_or(0);
    (!boot.is_empty() && boot != header.boot_id)
        || (namespace != 0 && namespace == header.pid_namespace && !this_host::runs(pid))
}

/// The device and inode of the data directory in the name `pg_tally.<device>.<inode>`, both in
/// hexadecimal; `None` for other names, such as that of an unfinished file.
pub fn name_of(name: &str) -> Option<(u64, u64)> {
    let hex = |part: &str| {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        digits.then(|| u64::from_str_radix(part, 16).ok()).flatten()
    };
    let (device, inode) = name.strip_prefix(NAME_PREFIX)?.split_once('.')?;
    Some((hex(device)?, hex(inode)?))
}

/// The PID in the name of a client's segment, such as `pg_tally.java.<pid>`; `None` for other names.
pub fn client_of(name: &str) -> Option<i32> {
    let pid = CLIENT_PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix))?;
    pid.bytes().all(|byte| byte.is_ascii_digit()).then(|| pid.parse().ok()).flatten()
}

/// The effective user of this process.
pub(crate) fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether files of this owner are trusted: the owner is ourselves or root.
pub(crate) fn is_own(uid: u32) -> bool {
    uid == ROOT || uid == own_uid()
}

/// Conversion to a segment's path. A plain path has no required owner.
pub trait ToSegmentPath {
    /// The segment's path.
    fn to_segment_path(&self) -> SegmentPath;
}

impl ToSegmentPath for Path {
    fn to_segment_path(&self) -> SegmentPath {
        SegmentPath { path: self.to_path_buf(), owner: None, data_directory: None, conninfo: None }
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
    fn the_segment_of_a_removed_server_is_to_be_removed_and_by_no_other_user() {
        let why = absent("/srv/data", true);
        assert!(
            why.contains("server has ended; remove the file") && !why.contains("user"),
            "{why}"
        );
        let why = absent("/srv/data", false);
        assert!(why.contains("does not exist here; if the server runs in a container"), "{why}");
    }

    #[test]
    fn only_complete_segments_have_the_name() {
        assert_eq!(name_of("pg_tally.fe00.2a5f31"), Some((0xfe00, 0x2a5f31)));
        for other in ["pg_tally.fe00", "pg_tally.fe00.2a5f31.tmp.77", "pg_tally..1", "pg_tallyx"] {
            assert_eq!(name_of(other), None, "{other}");
        }
    }

    #[test]
    fn a_clients_segment_is_named_by_its_process() {
        assert_eq!(client_of("pg_tally.java.4711"), Some(4711));
        assert_eq!(client_of("pg_tally.libpq.4711"), Some(4711));
        for other in ["pg_tally.java.", "pg_tally.java.4711.new.4711", "pg_tally.fe00.2a5f31"] {
            assert_eq!(client_of(other), None, "{other}");
        }
        assert_eq!(name_of("pg_tally.java.4711"), None);
    }
}
