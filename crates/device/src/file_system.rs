// SPDX-License-Identifier: PostgreSQL
//! A mounted file system that holds files of the server.

use std::path::PathBuf;

use serde::Serialize;

use crate::backing::{Backing, NoDevice};
use crate::mounts::{text, Mount};
use crate::number::DeviceNumber;
use crate::problem::lossy;
use crate::root::FileIdentity;

/// One mount. A file system that is mounted twice appears twice, with the same `number`.
#[derive(Debug, Clone, Serialize)]
pub struct FileSystem {
    /// The kernel's number of the mount.
    pub mount_id: u64,
    /// The number of the file system's device; major 0 if it has none of its own.
    pub number: DeviceNumber,
    /// Where it is mounted.
    #[serde(serialize_with = "lossy")]
    pub mount_point: PathBuf,
    /// The directory of the file system that is mounted: `/`, except for bind mounts and subvolumes.
    #[serde(serialize_with = "lossy")]
    pub root: PathBuf,
    /// Its type: `ext4`, `overlay`, ...
    pub kind: String,
    /// Its source: a device file, `server:/export`, a pool, or just a word.
    #[serde(serialize_with = "lossy")]
    pub source: PathBuf,
    /// Mount options.
    pub options: String,
    /// Options of the file system.
    pub super_options: String,
    /// Whether it is read-only.
    pub read_only: bool,
    /// Whether it is a mount of this process that is outside the server's namespace, such as the upper
    /// directory of a container's overlay.
    pub outside: bool,
    /// Whether a table of mounts lists it. After a chroot into a directory that is not a mount point, none
    /// does; then the device is that of the files on it, the mount point is `/`, and most options are
    /// unknown.
    pub listed: bool,
    /// The storage under it.
    pub backing: Backing,
    /// A path on it, used to query its space.
    #[serde(skip)]
    pub(crate) path: PathBuf,
    /// The kernel's number of this mount alone, if it reports one.
    #[serde(skip)]
    pub(crate) unique_mount_id: Option<u64>,
}

impl FileSystem {
    pub(crate) fn from_mount(mount: &Mount, outside: bool, found: &FileIdentity) -> FileSystem {
        let super_options = text(&mount.super_options);
        let read_only = |options: &str| options.split(',').any(|option| option == "ro");
        FileSystem {
            mount_id: mount.id,
            number: mount.number,
            mount_point: mount.point.clone(),
            root: mount.root.clone(),
            kind: mount.kind.clone(),
            source: mount.source.clone(),
            read_only: read_only(&mount.options) || read_only(&super_options),
            options: mount.options.clone(),
            super_options,
            outside,
            listed: mount.listed,
            // Replaced once it is known.
            backing: Backing::none(NoDevice::Unknown, &mount.kind, &mount.source),
            path: found.path.clone(),
            unique_mount_id: found.unique_mount_id,
        }
    }

    /// Whether it may never respond.
    pub(crate) fn may_hang(&self) -> bool {
        self.kind.starts_with("fuse")
            || matches!(
                self.backing,
                Backing::None {
                    reason: NoDevice::Network | NoDevice::Program | NoDevice::Unknown,
                    ..
                }
            )
    }
}
