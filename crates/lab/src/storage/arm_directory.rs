// SPDX-License-Identifier: PostgreSQL
//! The directory of an arm's files: a new directory in an existing one, or a file system made for the arm. It is
//! removed at the end, even if this process is killed.

use files::Access;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};
use scratch::Undo;

use crate::engine::file_systems::FileSystem;

use crate::storage::file::StorageArm;

const UNDO: &str = "rm -rf --one-file-system -- \"$1\"";

/// The directory of an arm.
#[derive(Debug)]
pub struct ArmDirectory {
    path: PathBuf,
    // Dropped in this order.
    _directory: Option<Undo>,
    _file_system: Option<FileSystem>,
}

impl ArmDirectory {
    /// Makes the directory of an arm, by default in `near`, which also gets images. The error says why that is not
    /// possible.
    pub fn make(arm: &StorageArm, near: &Path) -> Result<ArmDirectory, String> {
        let Some(kind) = &arm.file_system else {
            return ArmDirectory::directory(arm.directory.as_deref().unwrap_or(near));
        };
        let bytes = arm.size.map_or(crate::engine::file_systems::USUAL_BYTES, |size| size.0);
        let made = FileSystem::make_with(kind, bytes, near, arm.mount.as_deref(), arm.raid)?;
        let path = made.path().to_path_buf();
        let place = ArmDirectory { path, _directory: None, _file_system: Some(made) };
        if let Some(scheduler) = &arm.scheduler {
            place.set_scheduler(scheduler)?;
        }
        Ok(place)
    }

    /// A new directory in an existing one.
    pub fn directory(parent: &Path) -> Result<ArmDirectory, String> {
        let at = |error: std::io::Error| format!("{}: {error}", parent.display());
        // Servers run as a different user.
        let path = files::unique_folder(parent, "tally-storage.", Access::Everybody).map_err(at)?;
        let undo = Undo::start(UNDO, &[path.as_os_str()]).map_err(|e| e.to_string())?;
        Ok(ArmDirectory { path, _directory: Some(undo), _file_system: None })
    }

    /// The directory for its files.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Major and minor number of its device.
    pub fn device(&self) -> Result<(u32, u32), String> {
        let meta = std::fs::metadata(&self.path)
            .map_err(|error| format!("{}: {error}", self.path.display()))?;
        Ok((major(meta.dev()), minor(meta.dev())))
    }

    /// Free space, bytes.
    pub fn free_bytes(&self) -> Result<u64, String> {
        let stat = rustix::fs::statvfs(&self.path)
            .map_err(|error| format!("{}: {error}", self.path.display()))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn set_scheduler(&self, name: &str) -> Result<(), String> {
        let (major, minor) = self.device()?;
        let path = format!("/sys/dev/block/{major}:{minor}/queue/scheduler");
        files::write_to_kernel(Path::new(&path), name).map_err(|error| {
            let known = std::fs::read_to_string(&path).unwrap_or_default();
            format!(
                "could not set I/O scheduler \"{name}\": {error}; the device has: {}",
                known.trim()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_removed_with_all_that_is_in_it() {
        let near = tempfile::tempdir().unwrap();
        let place = ArmDirectory::directory(near.path()).unwrap();
        std::fs::create_dir(place.path().join("a")).unwrap();
        std::fs::write(place.path().join("a/b"), "c").unwrap();
        assert!(place.free_bytes().unwrap() > 0);
        drop(place);
        assert_eq!(std::fs::read_dir(near.path()).unwrap().count(), 0);
        let error = ArmDirectory::directory(&near.path().join("none")).unwrap_err();
        assert!(error.contains("none"), "{error}");
    }
}
