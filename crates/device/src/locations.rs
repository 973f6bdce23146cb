// SPDX-License-Identifier: PostgreSQL
//! Where a server keeps its files.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::problem::{lossy, lossy_option, Problem};
use crate::root::Root;
use crate::system::System;

/// A directory or file of the server.
#[derive(Debug, Clone, Serialize)]
pub struct Location {
    /// The kind of files there.
    #[serde(flatten)]
    pub kind: LocationKind,
    /// Its path in the server's root.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// The path without symbolic links.
    #[serde(serialize_with = "lossy_option")]
    pub real_path: Option<PathBuf>,
    /// Its mount: an index into [`crate::Devices::file_systems`].
    pub file_system: Option<usize>,
    /// Why the mount is unknown.
    pub problem: Option<Problem>,
}

/// The kind of files in a location.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LocationKind {
    /// The data directory.
    Data,
    /// The write-ahead log.
    Wal,
    /// A tablespace, including a temporary one.
    Tablespace {
        /// Its OID in pg_tablespace.
        oid: u32,
    },
    /// The server's log.
    Log,
    /// A directory or file below the data directory that is on a different mount.
    Below {
        /// Its path relative to the data directory.
        #[serde(serialize_with = "lossy")]
        name: PathBuf,
    },
}

impl Location {
    pub(crate) fn new(kind: LocationKind, path: impl Into<PathBuf>) -> Location {
        Location { kind, path: path.into(), real_path: None, file_system: None, problem: None }
    }
}

/// The locations that every server has. Failures to list are added to `notes`.
pub(crate) fn usual(
    system: &System,
    root: &Root,
    data: &Path,
    pid: Option<u32>,
    notes: &mut Vec<String>,
) -> Vec<Location> {
    let mut locations = vec![
        Location::new(LocationKind::Data, data),
        Location::new(LocationKind::Wal, data.join("pg_wal")),
    ];
    let tablespaces = data.join("pg_tblspc");
    match root.list(&tablespaces) {
        Ok(names) => {
            let mut oids: Vec<u32> =
                names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect();
            oids.sort_unstable();
            locations.extend(oids.into_iter().map(|oid| {
                let path = tablespaces.join(oid.to_string());
                Location::new(LocationKind::Tablespace { oid }, path)
            }));
        }
        Err(problem) => notes.push(format!("could not list the tablespaces: {problem}")),
    }
    locations
        .extend(log(system, root, data, pid).map(|path| Location::new(LocationKind::Log, path)));
    locations
}

/// The directory of the server log: from current_logfiles, otherwise `log`, otherwise that of the postmaster's
/// standard error.
fn log(system: &System, root: &Root, data: &Path, pid: Option<u32>) -> Option<PathBuf> {
    let current = root.read(&data.join("current_logfiles")).ok().and_then(|text| {
        let line = text.split(|&b| b == b'\n').next()?;
        let file = line.splitn(2, |&b| b == b' ').nth(1)?;
        // A relative path starts at the data directory.
        Some(data.join(OsStr::from_bytes(file)).parent()?.to_path_buf())
    });
    if current.is_some() {
        return current;
    }
    let usual = data.join("log");
    if root.find(&usual).is_ok() {
        return Some(usual);
    }
    let errors = system.proc.path(pid?, "fd/2");
    let is_file = std::fs::metadata(&errors).is_ok_and(|meta| meta.is_file());
    let file = std::fs::read_link(&errors).ok().filter(|_| is_file)?;
    file.parent().map(Path::to_path_buf)
}

/// Paths below the data directory that may be on a different mount: its entries, which may be symbolic links, and
/// mount points.
pub(crate) fn candidates<'a>(
    root: &Root,
    data: &Path,
    real_data: &'a Path,
    mounted: impl Iterator<Item = &'a Path>,
) -> Vec<Location> {
    let mut names: Vec<PathBuf> = root.list(data).unwrap_or_default();
    names.retain(|name| name.as_os_str() != "pg_wal" && name.as_os_str() != "pg_tblspc");
    names.extend(mounted.filter_map(|point| Some(point.strip_prefix(real_data).ok()?.into())));
    let mut met = HashSet::new();
    names.retain(|name| met.insert(name.clone()));
    names.sort_unstable();
    names
        .into_iter()
        .map(|name| {
            let path = data.join(&name);
            Location::new(LocationKind::Below { name }, path)
        })
        .collect()
}
