// SPDX-License-Identifier: PostgreSQL
//! The space on a file system.

use rustix::fs::StatVfs;
use serde::Serialize;

/// The space on a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Space {
    /// Its size.
    pub total_bytes: u64,
    /// Free bytes.
    pub free_bytes: u64,
    /// Free bytes that are not reserved for root.
    pub available_bytes: u64,
    /// Inodes; 0 if there is no limit.
    pub inodes: u64,
    /// Free inodes.
    pub inodes_free: u64,
    /// Free inodes that are not reserved for root.
    pub inodes_available: u64,
}

impl Space {
    pub(crate) fn from_statvfs(stat: &StatVfs) -> Space {
        let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
        Space {
            total_bytes: bytes(stat.f_blocks),
            free_bytes: bytes(stat.f_bfree),
            available_bytes: bytes(stat.f_bavail),
            inodes: stat.f_files,
            inodes_free: stat.f_ffree,
            inodes_available: stat.f_favail,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_fragments_and_what_is_reserved_is_not_available() {
        let stat = StatVfs {
            f_bsize: 4096,
            f_frsize: 512,
            f_blocks: 10,
            f_bfree: 6,
            f_bavail: 4,
            f_files: 30,
            f_ffree: 20,
            f_favail: 15,
            f_fsid: 0,
            f_flag: rustix::fs::StatVfsMountFlags::empty(),
            f_namemax: 255,
        };
        let expected = Space {
            total_bytes: 5120,
            free_bytes: 3072,
            available_bytes: 2048,
            inodes: 30,
            inodes_free: 20,
            inodes_available: 15,
        };
        assert_eq!(Space::from_statvfs(&stat), expected);
    }
}
