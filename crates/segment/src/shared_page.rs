// SPDX-License-Identifier: PostgreSQL
//! The only write access to a segment: single pages of its file, mapped.
//!
//! Writers never truncate a segment. A user who may write the file, and truncates it, kills processes that have mapped
//! a page.

use crate::clock::Clock;
use crate::error::Error;
use crate::layout::header;
use crate::layout::TEXT_MAX;
use crate::segment::{open_error, Segment};
use crate::segment_path::SegmentPath;
use rustix::fs::OFlags;
use rustix::mm::{MapFlags, ProtFlags};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicU8, Ordering};

/// Length of a page, bytes.
pub(crate) const PAGE: usize = 4096;

/// Open the segment for writing, with the checks of a reader on exactly the file that will be written. `wish` names the
/// purpose in errors. Symbolic links are not followed.
pub(crate) fn open(place: &SegmentPath, wish: &'static str) -> Result<(File, Segment), Error> {
    let path = place.path();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32)
        .open(path)
        .map_err(|error| open_error(path, wish, error))?;
    let io = |source| Error::Io { path: path.to_path_buf(), wish, source };
    let checked = Segment::from_file(file.try_clone().map_err(io)?, place.clone())?;
    Ok((file, checked))
}

/// A page of a segment's file, mapped for writing. Other processes also write to it.
#[derive(Debug)]
pub(crate) struct SharedPage {
    at: NonNull<u8>,
}

// SAFETY: the page belongs to its owner until it is dropped, and is only accessed by atomic operations.
unsafe impl Send for SharedPage {}
// SAFETY: as above.
unsafe impl Sync for SharedPage {}

impl SharedPage {
    /// Map the page at an offset, which is a multiple of its length. The caller must have checked that the file is long
    /// enough.
    pub(crate) fn map(file: &File, offset: u64) -> io::Result<SharedPage> {
        // SAFETY: this is a new mapping, which does not replace anything.
        let at = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                PAGE,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                file,
                offset,
            )
        }?;
        let at = NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(SharedPage { at })
    }

    /// The number at an offset in the page.
    pub(crate) fn u32(&self, offset: usize) -> &AtomicU32 {
        debug_assert!(offset.is_multiple_of(4) && offset + 4 <= PAGE);
        // SAFETY: the offset is aligned and within the page, which stays mapped as long as self lives. All processes
        // access it by atomic operations.
        unsafe { self.at.add(offset).cast::<AtomicU32>().as_ref() }
    }

    /// The number at an offset in the page.
    pub(crate) fn u64(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset.is_multiple_of(8) && offset + 8 <= PAGE);
        // SAFETY: as above.
        unsafe { self.at.add(offset).cast::<AtomicU64>().as_ref() }
    }

    /// For the page of the header: the current tick of the segment's clock.
    pub(crate) fn now(&self, clock: &Clock) -> u64 {
        match clock.is_virtual() {
            true => self.u64(header::VIRTUAL_TICK).load(Ordering::Acquire),
            false => clock.now(),
        }
    }

    /// Write a text, truncated to the available space, and fill the rest with zeros.
    pub(crate) fn set_text(&self, offset: usize, text: &str) {
        for i in 0..TEXT_MAX {
            let byte =
                if i < TEXT_MAX - 1 { text.as_bytes().get(i).copied().unwrap_or(0) } else { 0 };
            debug_assert!(offset + i < PAGE);
            // SAFETY: as above.
            unsafe { self.at.add(offset + i).cast::<AtomicU8>().as_ref() }
                .store(byte, Ordering::Relaxed);
        }
    }
}

impl Drop for SharedPage {
    fn drop(&mut self) {
        // SAFETY: references into the page borrow self, so none is left. Unmapping a mapped page does not fail.
        let _ = unsafe { rustix::mm::munmap(self.at.as_ptr().cast(), PAGE) };
    }
}
