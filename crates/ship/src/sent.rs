// SPDX-License-Identifier: PostgreSQL
//! Keeps track of the objects of a recording that a bucket has received.
//!
//! The log has one line for each object that has arrived or has been removed, appended when the bucket has
//! confirmed it. A line that is lost in a crash does no harm: the same bytes are sent again under the same name.

use crate::error::Error;
use files::Access;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Identifies the contents of a file by its metadata: a finished file is replaced, but never changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Version {
    inode: u64,
    changed_ns: i64,
    pub bytes: u64,
}

impl Version {
    pub fn from_metadata(file: &Metadata) -> Version {
        let changed_ns = file.mtime().saturating_mul(1_000_000_000) + file.mtime_nsec();
        Version { inode: file.ino(), changed_ns, bytes: file.len() }
    }
}

/// An object that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Arrived {
    #[serde(flatten)]
    pub version: Version,
    /// Time of arrival, microseconds since 1970.
    pub at_us: i64,
}

#[derive(Debug, Serialize, Deserialize)]
struct SentEntry {
    key: String,
    /// `None`: the object was removed or forgotten.
    #[serde(flatten)]
    arrived: Option<Arrived>,
}

/// All objects that have arrived, and the log.
#[derive(Debug)]
pub(crate) struct Sent {
    path: PathBuf,
    log: File,
    lines: usize,
    /// Whether the last line of the log may be incomplete, so that nothing may be appended.
    is_cut: bool,
    objects: HashMap<String, Arrived>,
}

/// Maximum size of a log to read, bytes.
const LARGEST: u64 = 1 << 30;
/// A log with this many more lines than objects is rewritten.
const SLACK: usize = 1000;

impl Sent {
    /// Read the log, or start one.
    pub fn open(path: &Path) -> Result<Sent, Error> {
        let text = match files::read(path, LARGEST) {
            Ok(text) => String::from_utf8_lossy(&text).into_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Error::io(path)(error)),
        };
        let mut objects = HashMap::new();
        for line in text.lines() {
            // A line that a crash has truncated or damaged is ignored.
            let Ok(SentEntry { key, arrived }) = serde_json::from_str(line) else { continue };
            match arrived {
                Some(arrived) => objects.insert(key, arrived),
                None => objects.remove(&key),
            };
        }
        // The rewritten log has no incomplete line.
        let log = rewrite(path, &objects)?;
        Ok(Sent { path: path.to_path_buf(), log, lines: objects.len(), is_cut: false, objects })
    }

    /// The object that has arrived under this name.
    pub fn get(&self, key: &str) -> Option<Arrived> {
        self.objects.get(key).copied()
    }

    /// All names.
    pub fn keys(&self) -> Vec<String> {
        self.objects.keys().cloned().collect()
    }

    /// Note that an object has arrived.
    pub fn arrived(&mut self, key: &str, version: Version, at_us: i64) -> Result<(), Error> {
        let arrived = Arrived { version, at_us };
        self.append(&SentEntry { key: key.to_string(), arrived: Some(arrived) })?;
        self.objects.insert(key.to_string(), arrived);
        Ok(())
    }

    /// Note that an object was removed, or no longer belongs to the recording.
    pub fn forget(&mut self, key: &str) -> Result<(), Error> {
        self.append(&SentEntry { key: key.to_string(), arrived: None })?;
        self.objects.remove(key);
        Ok(())
    }

    fn append(&mut self, line: &SentEntry) -> Result<(), Error> {
        if self.is_cut || self.lines > 4 * self.objects.len() + SLACK {
            self.log = rewrite(&self.path, &self.objects)?;
            self.lines = self.objects.len();
        }
        let written = self.log.write_all(text(line).as_bytes());
        self.is_cut = written.is_err();
        self.lines += 1;
        written.map_err(Error::io(&self.path))
    }
}

fn text(line: &SentEntry) -> String {
    // A structure of strings and numbers always becomes JSON.
    serde_json::to_string(line).unwrap_or_default() + "\n"
}

/// Replace the log with one that has these objects, and open it for appending.
fn rewrite(path: &Path, objects: &HashMap<String, Arrived>) -> Result<File, Error> {
    let mut all: Vec<_> = objects.iter().collect();
    all.sort_by_key(|(key, _)| *key);
    let lines = all
        .into_iter()
        .map(|(key, arrived)| text(&SentEntry { key: key.clone(), arrived: Some(*arrived) }));
    let lines: String = lines.collect();
    let write = || {
        files::replace(path, lines.as_bytes(), Access::Owner, "", false)?;
        files::append(path, Access::Owner)
    };
    write().map_err(Error::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_was_cut_anywhere_has_its_complete_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sent.log");
        let version = |bytes| Version { inode: 7, changed_ns: -5, bytes };
        let mut sent = Sent::open(&path).unwrap();
        for n in 0..5 {
            sent.arrived(&format!("k{n}"), version(n), 1000).unwrap();
        }
        sent.forget("k1").unwrap();
        let text = std::fs::read(&path).unwrap();
        for cut in 0..=text.len() {
            std::fs::write(&path, &text[..cut]).unwrap();
            let whole = text[..cut].iter().filter(|b| **b == b'\n').count();
            // The last line is complete even without its newline.
            let whole = whole.max(usize::from(text.get(cut) == Some(&b'\n')) + whole);
            let mut sent = Sent::open(&path).unwrap();
            let expected = if whole == 6 { 4 } else { whole };
            assert_eq!(sent.keys().len(), expected, "cut at {cut}");
            sent.arrived("more", version(9), 1).unwrap();
            assert_eq!(Sent::open(&path).unwrap().get("more").unwrap().version, version(9));
        }
    }

    #[test]
    fn a_log_does_not_grow_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sent.log");
        let version = Version { inode: 7, changed_ns: 5, bytes: 3 };
        let mut sent = Sent::open(&path).unwrap();
        for _ in 0..2000 {
            sent.arrived("a", version, 1).unwrap();
            sent.forget("a").unwrap();
        }
        assert!(std::fs::read_to_string(&path).unwrap().lines().count() <= SLACK + 5);
    }
}
