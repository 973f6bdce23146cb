// SPDX-License-Identifier: PostgreSQL
//! How much memory the segment's file uses, and may use.

use crate::segment::Segment;

/// Minimum that writers may use of a small file system, bytes (`libtally/src/memory.c`).
const SHARE_MIN: u64 = 4 << 20;

/// Memory of a segment's file, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentMemory {
    /// Memory in use.
    pub held: u64,
    /// Maximum that writers let the file use: a quarter of its file system, at least 4 MB, or its size.
    pub limit: u64,
    /// Size of the file, which is sparse.
    pub size: u64,
}

impl SegmentMemory {
    /// Whether the file system limits the file.
    pub fn is_limited(&self) -> bool {
        self.limit < self.size
    }
}

impl Segment {
    /// The memory of the file; `None`: the file is on another machine.
    pub fn memory(&self) -> Option<SegmentMemory> {
        let size = self.header().size;
        let held = self.remote.is_none().then(|| rustix::fs::fstat(&self.file).ok())??.st_blocks;
        let share = rustix::fs::fstatvfs(&self.file)
            .ok()
            .filter(|system| system.f_blocks > 0)
            .map(|system| (system.f_blocks.saturating_mul(system.f_frsize) / 4).max(SHARE_MIN));
        Some(SegmentMemory {
            held: u64::try_from(held).unwrap_or(0).saturating_mul(512),
            limit: share.unwrap_or(size).min(size),
            size,
        })
    }
}
