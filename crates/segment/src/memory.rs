// SPDX-License-Identifier: PostgreSQL
//! How much memory the segment's file takes, and may take.

use crate::segment::Segment;

/// What writers take of a small file system at least, bytes (`libtally/src/memory.c`).
const SHARE_MIN: u64 = 4 << 20;

/// Memory of a segment's file, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentMemory {
    /// What it takes now.
    pub held: u64,
    /// The most that writers let it take: a quarter of its file system, at least 4 MB, or its size.
    pub limit: u64,
    /// Its size, most of which is a hole.
    pub size: u64,
}

impl SegmentMemory {
    /// Whether the file system limits it.
    pub fn is_limited(&self) -> bool {
        self.limit < self.size
    }
}

impl Segment {
    /// `None`: the file is on another machine.
    pub fn memory(&self) -> Option<SegmentMemory> {
        let size = self.header().size;
        let held = self.remote.is_none().then(|| rustix::fs::fstat(&self.file).ok())??.st_blocks;
        let share = rustix::fs::fstatvfs(&self.file)
            .ok()
            .filter(|it| it.f_blocks > 0)
            .map(|it| (it.f_blocks.saturating_mul(it.f_frsize) / 4).max(SHARE_MIN));
        Some(SegmentMemory {
            held: u64::try_from(held).unwrap_or(0).saturating_mul(512),
            limit: share.unwrap_or(size).min(size),
            size,
        })
    }
}
