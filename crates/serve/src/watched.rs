// SPDX-License-Identifier: PostgreSQL
//! Files that may be replaced while they are in use, as Kubernetes and certbot do.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use error::Error;

/// A file, and the version of it that was seen last.
#[derive(Debug)]
pub struct WatchedFile {
    path: PathBuf,
    seen: Option<FileVersion>,
}

/// Differs if a file was changed or replaced.
#[derive(Debug, PartialEq, Eq)]
struct FileVersion {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl WatchedFile {
    /// A file that was not seen yet.
    pub fn new(path: &Path) -> WatchedFile {
        WatchedFile { path: path.to_path_buf(), seen: None }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is another version than at the last call. A missing file is not.
    pub fn has_changed(&mut self) -> bool {
        let Ok(meta) = std::fs::metadata(&self.path) else { return false };
        let now = FileVersion {
            inode: meta.ino(),
            bytes: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
        };
        let changed = self.seen.as_ref() != Some(&now);
        self.seen = Some(now);
        changed
    }
}

/// An error about a file.
pub fn named(path: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::Failed(format!("{}: {why}", path.display()))
}

/// Fails if other users can read a file with a secret.
pub fn check_secret(path: &Path, what: &str) -> Result<(), Error> {
    let meta = std::fs::metadata(path).map_err(|error| named(path, &error))?;
    // As PostgreSQL has it for keys: the group may read a file of root's, such as a Secret in Kubernetes.
    let others = if meta.uid() == 0 { 0o037 } else { 0o077 };
    if meta.is_file() && meta.permissions().mode() & others != 0 {
        let why = format!("other users can read this {what}; run chmod 600 on the file");
        return Err(named(path, &why));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_changes_when_it_is_written_or_replaced_and_not_when_it_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let mut file = WatchedFile::new(&path);
        assert!(!file.has_changed());
        std::fs::write(&path, "a").unwrap();
        assert!(file.has_changed());
        assert!(!file.has_changed());
        std::fs::write(&path, "ab").unwrap();
        assert!(file.has_changed());
        // Another file of the same length.
        std::fs::write(folder.path().join("next"), "xy").unwrap();
        std::fs::rename(folder.path().join("next"), &path).unwrap();
        assert!(file.has_changed());
        std::fs::remove_file(&path).unwrap();
        assert!(!file.has_changed());
    }
}
