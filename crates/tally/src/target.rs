// SPDX-License-Identifier: PostgreSQL
//! TARGET: what the user names, and the segment it leads to.
//!
//! A segment's path, a server's data directory, a connection string or URI, or nothing when
//! exactly one server with pg_tally runs on this machine.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use segment::Segment;

use crate::error::Error;
use crate::server::{self, PostmasterFile};

/// Where segments lie unless `pg_tally.directory` says otherwise.
pub const DEFAULT_FOLDER: &str = "/dev/shm";
/// How a server's segment's name begins.
pub const NAME_PREFIX: &str = "pg_tally.";

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
    Ok(Segment::open(&path(target)?)?)
}

/// The path of the segment that TARGET leads to.
pub fn path(target: Option<&str>) -> Result<PathBuf, Error> {
    match Spec::parse(target)? {
        Spec::Segment(path) => Ok(path),
        Spec::DataDirectory(data) => of_data_directory(&data),
        Spec::Connection(string) => of_connection(&string),
        Spec::Only => only(),
    }
}

/// The name of the segment of a data directory: by its identity, not by its name, so that
/// every way to write its path leads to the same file.
pub fn name_of(data: &Path) -> Result<String, Error> {
    let meta = std::fs::metadata(data)
        .map_err(|error| Error::Failed(format!("data directory {}: {error}", data.display())))?;
    Ok(format!("{NAME_PREFIX}{:x}.{:x}", meta.dev(), meta.ino()))
}

fn of_data_directory(data: &Path) -> Result<PathBuf, Error> {
    let name = name_of(data)?;
    let usual = Path::new(DEFAULT_FOLDER).join(&name);
    // The setting pg_tally.directory may have put it elsewhere: see what the server has mapped.
    let elsewhere = || {
        let file = PostmasterFile::read(data)?;
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", file.pid)).ok()?;
        maps.lines().find_map(|line| {
            let mapped = Path::new(line.splitn(6, ' ').nth(5)?.trim_start());
            // The kernel may know it by the name under which it was written first.
            mapped.file_name()?.to_str()?.starts_with(&name).then_some(())?;
            Some(mapped.with_file_name(&name)).filter(|path| path.exists())
        })
    };
    if usual.exists() {
        return Ok(usual);
    }
    if let Some(path) = elsewhere() {
        return Ok(path);
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
            usual.display()
        )
    }))
}

fn readable(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok()
}

fn of_connection(string: &str) -> Result<PathBuf, Error> {
    let mut client = server::connect(string)?;
    match server::segment_path(&mut client)? {
        Some(path) if path.exists() => Ok(path),
        Some(path) => Err(Error::Failed(format!(
            "this server has no segment ({} does not exist); `tally enable` puts pg_tally to work",
            path.display()
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
        .filter(|entry| is_segment_name(&entry.file_name().to_string_lossy()))
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths.into_iter().map(|path| Found { segment: Segment::open(&path), path }).collect()
}

/// `pg_tally.<device>.<inode>`, both in hexadecimal; not a creator's half-made file.
fn is_segment_name(name: &str) -> bool {
    let hex = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.strip_prefix(NAME_PREFIX)
        .and_then(|rest| rest.split_once('.'))
        .is_some_and(|(device, inode)| hex(device) && hex(inode))
}

fn only() -> Result<PathBuf, Error> {
    choose(in_folder(Path::new(DEFAULT_FOLDER)), DEFAULT_FOLDER)
}

fn choose(found: Vec<Found>, folder: &str) -> Result<PathBuf, Error> {
    let mut running = Vec::new();
    let mut passed_over = Vec::new();
    for Found { path, segment } in found {
        match segment {
            // A server that cannot be seen (another pid namespace) may well run.
            Ok(segment) if segment.server_runs() != Some(false) => {
                running.push((path, segment.header().host.clone()));
            }
            Ok(_) => {}
            Err(error) => passed_over.push(format!("\n  {error}")),
        }
    }
    match running.as_slice() {
        [(path, _)] => Ok(path.clone()),
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
                .map(|(path, host)| format!("\n  {}  {host}", path.display()))
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
    fn only_complete_segments_bear_the_name() {
        assert!(is_segment_name("pg_tally.fe00.2a5f31"));
        for other in ["pg_tally.fe00", "pg_tally.fe00.2a5f31.tmp.77", "pg_tally..1", "pg_tallyx"] {
            assert!(!is_segment_name(other), "{other}");
        }
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
