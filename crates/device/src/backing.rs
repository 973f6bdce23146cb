// SPDX-License-Identifier: PostgreSQL
//! The storage under a file system: a device, several devices, another file system, or something unknown.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::number::DeviceNumber;
use crate::problem::lossy;

/// The storage under a file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Backing {
    /// One block device.
    Device {
        /// Its number.
        device: DeviceNumber,
    },
    /// Several block devices, over which the file system itself spreads its data.
    Devices {
        /// Their numbers.
        devices: Vec<DeviceNumber>,
        /// Why the device of a file is unknown.
        text: String,
    },
    /// Another file system.
    FileSystem {
        /// An index into [`crate::Devices::file_systems`].
        file_system: usize,
        /// The directory on it.
        #[serde(serialize_with = "lossy")]
        path: PathBuf,
    },
    /// No device was found.
    None {
        /// Why.
        reason: NoDevice,
        /// The reason in words.
        text: String,
    },
}

/// Why a file system has no device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoDevice {
    /// It is in memory.
    Memory,
    /// It is on another machine, or on the host of this virtual machine.
    Network,
    /// A program serves it.
    Program,
    /// A pool that the kernel does not show.
    Pool,
    /// Its upper directory cannot be found.
    Overlay,
    /// The kernel does not show the device that the file system names.
    Hidden,
    /// An unknown file system type.
    Unknown,
}

impl Backing {
    pub(crate) fn none(reason: NoDevice, kind: &str, source: &Path) -> Backing {
        let source = source.to_string_lossy();
        let text = match reason {
            NoDevice::Memory => format!("{kind} is in memory and has no device"),
            NoDevice::Network => {
                format!(
                    "{kind} from {source}: the device is on a remote machine and not visible here"
                )
            }
            NoDevice::Program => {
                format!("{kind} is served by a program; its device is not visible here")
            }
            NoDevice::Pool => {
                let pool = source.split('/').next().unwrap_or_default().to_string();
                format!(
                    "{kind} pool {pool} spans several devices; `zpool status {pool}` lists them"
                )
            }
            NoDevice::Overlay => {
                format!("{kind}: the upper directory is not visible here; run tally on the host")
            }
            NoDevice::Hidden => format!("/sys has no device for {source}; is it mounted?"),
            NoDevice::Unknown => format!("{kind} from {source} does not name a block device"),
        };
        Backing::None { reason, text }
    }

    /// Its block devices, if known.
    pub fn devices(&self) -> &[DeviceNumber] {
        match self {
            Backing::Device { device } => std::slice::from_ref(device),
            Backing::Devices { devices, .. } => devices,
            _ => &[],
        }
    }
}

impl NoDevice {
    /// The reason for a file system type that never has a device of its own.
    pub(crate) fn by_kind(kind: &str) -> NoDevice {
        match kind {
            "tmpfs" | "ramfs" | "rootfs" | "devtmpfs" | "hugetlbfs" => NoDevice::Memory,
            "nfs" | "nfs4" | "cifs" | "smb3" | "smbfs" | "ceph" | "9p" | "virtiofs" | "afs"
            | "glusterfs" | "lustre" | "beegfs" | "gpfs" | "orangefs" | "vboxsf" | "prl_fs" => {
                NoDevice::Network
            }
            "zfs" => NoDevice::Pool,
            "overlay" | "aufs" => NoDevice::Overlay,
            _ if kind == "fuse" || kind.starts_with("fuse.") => NoDevice::Program,
            _ => NoDevice::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_text() {
        let text = |kind: &str, source: &str| match Backing::none(
            NoDevice::by_kind(kind),
            kind,
            Path::new(source),
        ) {
            Backing::None { text, .. } => text,
            other => panic!("{other:?}"),
        };
        assert!(text("nfs4", "filer:/vol/pg").contains("filer:/vol/pg"));
        assert!(text("zfs", "tank/pg/data").contains("`zpool status tank`"));
        assert!(text("fuse.sshfs", "x").contains("program"));
        assert!(text("tmpfs", "none").contains("memory"));
        assert!(text("bcachefs", "/dev/sda:/dev/sdb").contains("/dev/sda:/dev/sdb"));
        assert_eq!(NoDevice::by_kind("fuseblk"), NoDevice::Unknown);
    }
}
