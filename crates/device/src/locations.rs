// SPDX-License-Identifier: PostgreSQL
//! The locations in which a server keeps its files.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::problem::{lossy, lossy_option, Problem};
use crate::root::Root;
use crate::system::System;

/// One location.
#[derive(Debug, Clone, Serialize)]
pub struct Location {
    /// What is kept there.
    #[serde(flatten)]
    pub kind: LocationKind,
    /// Where the server finds it.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// The same without symbolic links.
    #[serde(serialize_with = "lossy_option")]
    pub real_path: Option<PathBuf>,
    /// The mount it lies on: an index in [`crate::Devices::file_systems`].
    pub file_system: Option<usize>,
    /// Why that is not known.
    pub problem: Option<Problem>,
}

/// What is kept in a location.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LocationKind {
    /// The data directory.
    Data,
    /// The write-ahead log.
    Wal,
    /// A tablespace, a temporary one included.
    Tablespace {
        /// Its number in pg_tablespace.
        oid: u32,
    },
    /// The server's log.
    Log,
    /// A directory or file below the data directory that lies on a mount of its own.
    Below {
        /// Its path from the data directory.
        #[serde(serialize_with = "lossy")]
        name: PathBuf,
    },
}

impl Location {
    pub(crate) fn new(kind: LocationKind, path: impl Into<PathBuf>) -> Location {
        Location { kind, path: path.into(), real_path: None, file_system: None, problem: None }
    }
}

/// The locations that every server has. What could not be listed is told in `notes`.
pub(crate) fn usual(
    system: &System,
    view: &Root,
    data: &Path,
    pid: Option<u32>,
    notes: &mut Vec<String>,
) -> Vec<Location> {
    let mut locations = vec![
        Location::new(LocationKind::Data, data),
        Location::new(LocationKind::Wal, data.join("pg_wal")),
    ];
    let tablespaces = data.join("pg_tblspc");
    match view.list(&tablespaces) {
        Ok(names) => {
            let mut oids: Vec<u32> =
                names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect();
            oids.sort_unstable();
            locations.extend(oids.into_iter().map(|oid| {
                let path = tablespaces.join(oid.to_string());
                Location::new(LocationKind::Tablespace { oid }, path)
            }));
        }
        Err(problem) => notes.push(format!("tablespaces are not known: {problem}")),
    }
    locations
        .extend(log(system, view, data, pid).map(|path| Location::new(LocationKind::Log, path)));
    locations
}

/// Where the log goes: what the log collector notes down, its usual folder, or the file that
/// is the first process's standard error.
fn log(system: &System, view: &Root, data: &Path, pid: Option<u32>) -> Option<PathBuf> {
    let noted = view.read(&data.join("current_logfiles")).ok().and_then(|text| {
        let line = text.split(|&b| b == b'\n').next()?;
        let file = line.splitn(2, |&b| b == b' ').nth(1)?;
        // One that is not absolute begins in the data directory.
        Some(data.join(OsStr::from_bytes(file)).parent()?.to_path_buf())
    });
    if noted.is_some() {
        return noted;
    }
    let usual = data.join("log");
    if view.find(&usual).is_ok() {
        return Some(usual);
    }
    let errors = system.proc.path(pid?, "fd/2");
    let is_file = std::fs::metadata(&errors).is_ok_and(|meta| meta.is_file());
    let file = std::fs::read_link(&errors).ok().filter(|_| is_file)?;
    file.parent().map(Path::to_path_buf)
}

/// What may be elsewhere though it seems to lie in the data directory: its direct entries,
/// which may be symbolic links, and whatever is mounted below it.
pub(crate) fn candidates<'a>(
    view: &Root,
    data: &Path,
    real_data: &'a Path,
    mounted: impl Iterator<Item = &'a Path>,
) -> Vec<Location> {
    let mut names: Vec<PathBuf> = view.list(data).unwrap_or_default();
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
