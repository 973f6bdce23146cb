// SPDX-License-Identifier: PostgreSQL
//! TARGET: what the user names, and the segment it leads to.
//!
//! A segment's path, a server's data directory, a connection string or URI, or nothing when
//! exactly one server with pg_tally runs on this machine.
//!
//! Whose the segment has to be follows from what was named: with a data directory (or a
//! connection, which tells it) that directory's owner, else see [`segment::SegmentPath`].

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use segment::segment_path::{name_of as named, NAME_PREFIX};
use segment::{Segment, SegmentPath, ToSegmentPath};

use crate::postmaster_file::PostmasterFile;
use crate::server;
use error::Error;

/// Where segments lie unless `pg_tally.directory` says otherwise.
pub const DEFAULT_FOLDER: &str = "/dev/shm";

/// What a TARGET was meant as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spec {
    /// Nothing was given.
    Only,
    /// A file.
    Segment(PathBuf),
    /// A directory.
    DataDirectory(PathBuf),
    /// A connection string or URI.
    Connection(String),
}

impl Spec {
    /// Tell the forms apart.
    pub fn parse(target: Option<&str>) -> Result<Self, Error> {
        let Some(text) = target else { return Ok(Self::Only) };
        let path = Path::new(text);
        // A file may have an equals sign in its name: what exists is a path.
        if path.is_dir() {
            return Ok(Self::DataDirectory(path.into()));
        }
        if path.exists() {
            return Ok(Self::Segment(path.into()));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Connection(text.into()));
        }
        if !text.starts_with('/') && text.contains('=') {
            return Ok(Self::Connection(text.into()));
        }
        Err(match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                Error::Failed(format!("{text}: {error}; run this as the server's user or as root"))
            }
            _ => Error::Usage(format!(
                "{text}: no such file or directory, and not a connection string (\"host=... \
                 user=...\" or postgresql://...)"
            )),
        })
    }
}

/// Open the segment that TARGET leads to.
pub fn open(target: Option<&str>) -> Result<Segment, Error> {
    Ok(Segment::open(&place(target)?)?)
}

/// Where the segment is that TARGET leads to, and whose it has to be.
pub fn place(target: Option<&str>) -> Result<SegmentPath, Error> {
    match Spec::parse(target)? {
        Spec::Segment(path) => Ok(path.to_segment_path()),
        Spec::DataDirectory(data) => of_data_directory(&data),
        Spec::Connection(string) => of_connection(&string),
        Spec::Only => only(),
    }
}

/// The place of a data directory's segment in this folder. Its name is by the directory's
/// identity, not by its name, so that every way to write its path leads to the same file; its
/// owner must be the directory's.
pub fn place_in(folder: &Path, data: &Path) -> Result<SegmentPath, Error> {
    let meta = std::fs::metadata(data)
        .map_err(|error| Error::Failed(format!("data directory {}: {error}", data.display())))?;
    let name = format!("{NAME_PREFIX}{:x}.{:x}", meta.dev(), meta.ino());
    Ok(SegmentPath::of_owner(folder.join(name), meta.uid()))
}

fn of_data_directory(data: &Path) -> Result<SegmentPath, Error> {
    let usual = place_in(Path::new(DEFAULT_FOLDER), data)?;
    if usual.is_owners() {
        return Ok(usual);
    }
    // The setting pg_tally.directory may have put it elsewhere.
    if let Some(place) = opened_by_server(data, &usual) {
        return Ok(place);
    }
    // Not its owner's: opening it says so.
    if usual.path().symlink_metadata().is_ok() {
        return Ok(usual);
    }
    let what = data.display();
    Err(Error::Failed(if !data.join("PG_VERSION").exists() && readable(data) {
        format!("{what}: not a data directory (it has no PG_VERSION)")
    } else if PostmasterFile::read(data).is_none() && readable(data) {
        format!("{what}: no server runs there")
    } else {
        format!(
            "{what}: its server has no segment ({} does not exist); `tally enable {what}` puts \
             pg_tally to work",
            usual.path().display()
        )
    }))
}

/// A file of that name in another folder which the server has mapped or open.
fn opened_by_server(data: &Path, usual: &SegmentPath) -> Option<SegmentPath> {
    let name = usual.path().file_name()?.to_str()?;
    let process = PathBuf::from(format!("/proc/{}", PostmasterFile::read(data)?.pid));
    let maps = std::fs::read_to_string(process.join("maps")).unwrap_or_default();
    let mapped = maps.lines().filter_map(|line| line.splitn(6, ' ').nth(5));
    let mapped = mapped.map(|path| PathBuf::from(path.trim_start()));
    let open = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    let open = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    // The kernel may know it by the name under which it was written first.
    mapped
        .chain(open)
        .filter(|path| path.file_name().is_some_and(|it| it.to_string_lossy().starts_with(name)))
        .find_map(|path| place_in(path.parent()?, data).ok().filter(SegmentPath::is_owners))
}

fn readable(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok()
}

fn of_connection(string: &str) -> Result<SegmentPath, Error> {
    let mut client = server::connect(string)?;
    match server::segment_place(&mut client)? {
        Some(place) if place.path().symlink_metadata().is_ok() => Ok(place),
        Some(place) => Err(Error::Failed(format!(
            "this server has no segment ({} does not exist); `tally enable` puts pg_tally to work",
            place.path().display()
        ))),
        None => Err(Error::Failed(
            "this role may not see where the server's segment is; GRANT pg_read_all_settings to \
             it, or name the segment or the data directory instead"
                .into(),
        )),
    }
}

/// A file that may be a segment.
#[derive(Debug)]
pub struct Found {
    /// Where it is.
    pub path: PathBuf,
    /// It, or why it cannot be read.
    pub segment: Result<Segment, segment::Error>,
}

/// All files in a folder that are named like a server's segment, by name.
pub fn in_folder(folder: &Path) -> Vec<Found> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_str().and_then(named).is_some())
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths.into_iter().map(|path| Found { segment: Segment::open(&path), path }).collect()
}

fn only() -> Result<SegmentPath, Error> {
    choose(in_folder(Path::new(DEFAULT_FOLDER)), DEFAULT_FOLDER)
}

fn choose(found: Vec<Found>, folder: &str) -> Result<SegmentPath, Error> {
    let mut running = Vec::new();
    let mut passed_over = Vec::new();
    for Found { path, segment } in found {
        match segment {
            // A server that cannot be seen (another pid namespace) may well run.
            Ok(segment) if segment.server_runs() != Some(false) => {
                running.push((path, segment.segment_path().clone(), segment.header().host.clone()));
            }
            Ok(_) => {}
            Err(error) => passed_over.push(format!("\n  {error}")),
        }
    }
    match running.as_slice() {
        [(_, place, _)] => Ok(place.clone()),
        [] if passed_over.is_empty() => Err(Error::Failed(format!(
            "no server with pg_tally runs on this machine ({folder} holds no segment of a running \
             one); `tally enable` puts it to work, `tally demo` shows it"
        ))),
        [] => Err(Error::Failed(format!(
            "no segment in {folder} can be read:{}",
            passed_over.concat()
        ))),
        several => {
            let list: String = several
                .iter()
                .map(|(path, _, host)| format!("\n  {}  {host}", path.display()))
                .collect();
            Err(Error::Usage(format!(
                "several servers with pg_tally run on this machine; name one:{list}"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_strings_are_told_from_paths() {
        let connection = |text: &str| Ok::<_, ()>(Spec::Connection(text.into()));
        for text in ["host=/tmp user=me", "postgresql://localhost/db", "postgres://u@h:1/d"] {
            assert_eq!(Spec::parse(Some(text)).map_err(drop), connection(text));
        }
        assert_eq!(Spec::parse(None).map_err(drop), Ok(Spec::Only));
        assert_eq!(Spec::parse(Some("/tmp")).map_err(drop), Ok(Spec::DataDirectory("/tmp".into())));
        assert!(matches!(Spec::parse(Some("nonsense")), Err(Error::Usage(_))));
        assert!(matches!(Spec::parse(Some("/no/such=file")), Err(Error::Usage(_))));
    }

    #[test]
    fn no_segment_at_all_is_said_with_the_remedy() {
        let empty = tempfile::tempdir().unwrap();
        let error = choose(in_folder(empty.path()), "there").unwrap_err().to_string();
        assert!(error.contains("tally enable"), "{error}");
    }

    #[test]
    fn unreadable_segments_are_named_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("pg_tally.1.2"), "nothing of the kind").unwrap();
        let error = choose(in_folder(folder.path()), "there").unwrap_err().to_string();
        assert!(error.contains("pg_tally.1.2"), "{error}");
    }
}
