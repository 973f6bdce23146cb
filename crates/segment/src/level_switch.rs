// SPDX-License-Identifier: PostgreSQL
//! Reading and setting the level of a segment, and pausing statements: the only words that this crate
//! writes.

use crate::clock::Clock;
use crate::error::Error;
use crate::layout::{header, u32_at, u64_at, HEADER_SIZE};
use crate::level::{Level, LevelEnd, LevelSetting, LEVEL};
use crate::segment::Segment;
use crate::segment_path::ToSegmentPath;
use rustix::fs::OFlags;
use rustix::mm::{MapFlags, ProtFlags};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

impl Segment {
    /// The level in force.
    pub fn level(&self) -> Result<Level, Error> {
        Ok(Level::of_word(self.level_word()?))
    }

    /// The level in force and how it ends.
    pub fn level_setting(&self) -> Result<LevelSetting, Error> {
        let live = self.read_live()?;
        let level = Level::of_word(u32_at(&live, header::LEVEL_WORD));
        Ok(LevelSetting { level, end: LevelEnd::of(&live) })
    }

    /// Ticks at level locks or above from the last reset to `now`.
    pub(crate) fn locks_ticks(&self, now: u64) -> Result<u64, Error> {
        // A process that sets the level counts the time right after that. In between, and for good if
        // it was killed there, level and time do not match.
        for _ in 0..100 {
            let live = self.read_live()?;
            let since = u64_at(&live, header::LOCKS_SINCE);
            let level = Level::of_word(u32_at(&live, header::LEVEL_WORD));
            if (since != 0) == level.has_locks() {
                let running = if since == 0 { 0 } else { now.saturating_sub(since) };
                return Ok(u64_at(&live, header::LOCKS_TICKS).saturating_add(running));
            }
            std::thread::yield_now();
        }
        Ok(u64_at(&self.read_live()?, header::LOCKS_TICKS))
    }

    /// A switch for the level of this file, even if another file replaces it.
    ///
    /// Needs the right to write the file, so the server's user or root.
    pub fn level_switch(&self) -> Result<LevelSwitch, Error> {
        LevelSwitch::open(self.segment_path())
    }
}

/// Set the level of the segment at `path`, for all its writers at once and until it is set
/// again. They act on it at their next probe. Returns the level that was in force.
///
/// Needs the right to write the file, so the server's user or root. A symbolic link is not
/// followed, and a file of another owner (see [`crate::SegmentPath`]) not written.
pub fn set_level(path: &(impl ToSegmentPath + ?Sized), level: Level) -> Result<Level, Error> {
    Ok(LevelSwitch::open(path)?.set(level))
}

/// Bit of the pause word: statements are not measured.
const PAUSE_STATEMENTS: u32 = 1;
/// Bit of the pause word: statements are not kept over a restart of the server.
const PAUSE_KEEPING: u32 = 2;

/// The level and the pause word of one segment, open for writing.
///
/// Other processes set it too, so its word is changed by compare-and-swap, and the process that changed
/// it counts the time. This needs the first page of the file mapped. Writers never truncate a segment;
/// a user who may write the file and truncates it kills this process.
#[derive(Debug)]
pub struct LevelSwitch {
    page: NonNull<u8>,
    clock: Clock,
}

// SAFETY: the page belongs to the switch until it is dropped, and is only accessed by atomic
// operations.
unsafe impl Send for LevelSwitch {}
// SAFETY: as above.
unsafe impl Sync for LevelSwitch {}

impl LevelSwitch {
    /// For the segment at a path, with the checks of a reader.
    pub fn open(path: &(impl ToSegmentPath + ?Sized)) -> Result<LevelSwitch, Error> {
        let segment_path = path.to_segment_path();
        let path = segment_path.path();
        let wish = "change its level";
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32)
            .open(path)
            .map_err(|e| crate::segment::open_error(path, wish, e))?;
        let io = |source| Error::Io { path: path.to_path_buf(), wish, source };
        // The checks of a reader, on the very file that will be written.
        let segment = Segment::from_file(file.try_clone().map_err(io)?, segment_path.clone())?;
        // SAFETY: a new mapping, of nothing that this process has; the file was just found to
        // be longer than its header.
        let page = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                HEADER_SIZE,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &file,
                0,
            )
        };
        let page = NonNull::new(page.map_err(|e| io(e.into()))?.cast());
        let page = page.ok_or_else(|| io(std::io::ErrorKind::OutOfMemory.into()))?;
        Ok(LevelSwitch { page, clock: *segment.clock() })
    }

    /// The clock whose ticks an end is given in.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    fn u32(&self, offset: usize) -> &AtomicU32 {
        debug_assert!(offset.is_multiple_of(4) && offset + 4 <= HEADER_SIZE);
        // SAFETY: within the page, which stays mapped as long as self lives, and aligned. All
        // processes access these words by atomic operations.
        unsafe { self.page.add(offset).cast::<AtomicU32>().as_ref() }
    }

    fn u64(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset.is_multiple_of(8) && offset + 8 <= HEADER_SIZE);
        // SAFETY: as above.
        unsafe { self.page.add(offset).cast::<AtomicU64>().as_ref() }
    }

    /// The level in force.
    pub fn level(&self) -> Level {
        Level::of_word(self.u32(header::LEVEL_WORD).load(Ordering::Acquire))
    }

    /// The level in force and how it ends.
    pub fn level_setting(&self) -> LevelSetting {
        let tick = self.u64(header::LEVEL_UNTIL).load(Ordering::Acquire);
        let then = Level::of_word(self.u32(header::LEVEL_THEN).load(Ordering::Relaxed));
        let end = (tick != 0).then_some(LevelEnd { tick, then });
        LevelSetting { level: self.level(), end }
    }

    /// Set the level for all writers at once, until it is set again; they act on it at their
    /// next probe. Returns the level that was in force.
    pub fn set(&self, level: Level) -> Level {
        self.apply(LevelSetting { level, end: None })
    }

    /// The same with an end.
    pub fn apply(&self, setting: LevelSetting) -> Level {
        let LevelSetting { level, end } = setting;
        let then = end.map_or(level, |end| end.then);
        self.u32(header::LEVEL_THEN).store(u32::from(then.number()), Ordering::Relaxed);
        self.u64(header::LEVEL_UNTIL).store(end.map_or(0, |end| end.tick), Ordering::Release);
        let word = self.u32(header::LEVEL_WORD);
        // The upper bits count resets, which may be made in the same instant.
        let before = word
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |word| {
                Some(word & !LEVEL | u32::from(level.number()) & LEVEL)
            })
            .unwrap_or_else(|word| word);
        let before = Level::of_word(before);
        self.count_locks(before, level);
        before
    }

    /// Whether statements are paused.
    pub fn statements_paused(&self) -> bool {
        self.u32(header::PAUSE).load(Ordering::Acquire) & PAUSE_STATEMENTS != 0
    }

    /// Pause or resume statements for all writers at once, to measure their cost. Writers follow at
    /// their next statement.
    pub fn pause_statements(&self, paused: bool) {
        self.set_pause(PAUSE_STATEMENTS, paused);
    }

    /// Whether the server is to keep its statements over its next restart.
    pub fn keep_statements(&self, keep: bool) {
        self.set_pause(PAUSE_KEEPING, !keep);
    }

    fn set_pause(&self, bit: u32, on: bool) {
        let word = self.u32(header::PAUSE);
        if on {
            word.fetch_or(bit, Ordering::AcqRel);
        } else {
            word.fetch_and(!bit, Ordering::AcqRel);
        }
    }

    /// Start or end counting the time at level locks or above.
    fn count_locks(&self, before: Level, after: Level) {
        let now = self.clock.now();
        let since = self.u64(header::LOCKS_SINCE);
        match (before.has_locks(), after.has_locks()) {
            (false, true) => since.store(now, Ordering::Release),
            (true, false) => {
                let since = since.swap(0, Ordering::AcqRel);
                if since != 0 && now > since {
                    self.u64(header::LOCKS_TICKS).fetch_add(now - since, Ordering::Release);
                }
            }
            _ => {}
        }
    }
}

impl Drop for LevelSwitch {
    fn drop(&mut self) {
        // SAFETY: nothing refers into the page any more: references borrow self. Unmapping a
        // page that was mapped does not fail.
        let _ = unsafe { rustix::mm::munmap(self.page.as_ptr().cast(), HEADER_SIZE) };
    }
}
