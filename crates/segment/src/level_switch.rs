// SPDX-License-Identifier: PostgreSQL
//! Reads and sets the level of a segment, and pauses statements.

use crate::clock::Clock;
use crate::error::Error;
use crate::layout::{header, u32_at, u64_at};
use crate::level::{Level, LevelEnd, LevelSetting, LEVEL};
use crate::segment::Segment;
use crate::segment_path::ToSegmentPath;
use crate::shared_page::{self, SharedPage};
use std::sync::atomic::Ordering;

impl Segment {
    /// The current level.
    pub fn level(&self) -> Result<Level, Error> {
        Ok(Level::of_word(self.level_word()?))
    }

    /// The current level, and how it ends.
    pub fn level_setting(&self) -> Result<LevelSetting, Error> {
        let live = self.read_live()?;
        let level = Level::of_word(u32_at(&live, header::LEVEL_WORD));
        Ok(LevelSetting { level, end: LevelEnd::decode(&live) })
    }

    /// Ticks at level locks or above from the last reset to `now`.
    pub(crate) fn locks_ticks(&self, now: u64) -> Result<u64, Error> {
        // A process that sets the level counts the time right afterwards. In between, and permanently if it
        // was killed there, level and time do not match.
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
    /// Requires permission to write the file, so only the server's user and root can do this.
    pub fn level_switch(&self) -> Result<LevelSwitch, Error> {
        LevelSwitch::open(self.segment_path())
    }
}

/// Set the level of the segment at `path`, for all its writers at once, until it is set again. Writers
/// follow at their next probe. Returns the previous level.
///
/// Requires permission to write the file, so only the server's user and root can do this. Symbolic links
/// are not followed, and files of another owner (see [`crate::SegmentPath`]) are not written.
pub fn set_level(path: &(impl ToSegmentPath + ?Sized), level: Level) -> Result<Level, Error> {
    Ok(LevelSwitch::open(path)?.set(level))
}

/// Bit of the pause word: statements are not counted.
const PAUSE_STATEMENTS: u32 = 1;
/// Bit of the pause word: statements are not saved for the server's next start.
const PAUSE_KEEPING: u32 = 2;

/// The level and the pause word of one segment, open for writing.
///
/// Other processes also set them, so words are changed by compare-and-swap, and the process that changed
/// the level counts the time.
#[derive(Debug)]
pub struct LevelSwitch {
    page: SharedPage,
    clock: Clock,
}

impl LevelSwitch {
    /// The switch of the segment at a path, opened with the checks of a reader.
    pub fn open(path: &(impl ToSegmentPath + ?Sized)) -> Result<LevelSwitch, Error> {
        let place = path.to_segment_path();
        let wish = "change its level";
        let (file, segment) = shared_page::open(&place, wish)?;
        let io = |source| Error::Io { path: place.path().to_path_buf(), wish, source };
        Ok(LevelSwitch { page: SharedPage::map(&file, 0).map_err(io)?, clock: *segment.clock() })
    }

    /// The clock in whose ticks an end is given.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The current level.
    pub fn level(&self) -> Level {
        Level::of_word(self.page.u32(header::LEVEL_WORD).load(Ordering::Acquire))
    }

    /// The current level, and how it ends.
    pub fn level_setting(&self) -> LevelSetting {
        let tick = self.page.u64(header::LEVEL_UNTIL).load(Ordering::Acquire);
        let then = Level::of_word(self.page.u32(header::LEVEL_THEN).load(Ordering::Relaxed));
        let end = (tick != 0).then_some(LevelEnd { tick, then });
        LevelSetting { level: self.level(), end }
    }

    /// Set the level for all writers at once, until it is set again; they follow at their next
    /// probe. Returns the previous level.
    pub fn set(&self, level: Level) -> Level {
        self.apply(LevelSetting { level, end: None })
    }

    /// Set the level with an end.
    pub fn apply(&self, setting: LevelSetting) -> Level {
        let LevelSetting { level, end } = setting;
        let then = end.map_or(level, |end| end.then);
        self.page.u32(header::LEVEL_THEN).store(u32::from(then.number()), Ordering::Relaxed);
        self.page.u64(header::LEVEL_UNTIL).store(end.map_or(0, |end| end.tick), Ordering::Release);
        let word = self.page.u32(header::LEVEL_WORD);
        // The upper bits count resets, which may happen at the same instant.
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
        self.page.u32(header::PAUSE).load(Ordering::Acquire) & PAUSE_STATEMENTS != 0
    }

    /// Pause or resume statements for all writers at once, to measure their cost. Writers follow at
    /// their next statement.
    pub fn pause_statements(&self, paused: bool) {
        self.set_pause(PAUSE_STATEMENTS, paused);
    }

    /// Set whether the server saves its statements for its next start.
    pub fn keep_statements(&self, keep: bool) {
        self.set_pause(PAUSE_KEEPING, !keep);
    }

    fn set_pause(&self, bit: u32, on: bool) {
        let word = self.page.u32(header::PAUSE);
        if on {
            word.fetch_or(bit, Ordering::AcqRel);
        } else {
            word.fetch_and(!bit, Ordering::AcqRel);
        }
    }

    /// Start or stop counting the time at level locks or above.
    fn count_locks(&self, before: Level, after: Level) {
        let now = self.page.now(&self.clock);
        let since = self.page.u64(header::LOCKS_SINCE);
        match (before.has_locks(), after.has_locks()) {
            (false, true) => since.store(now, Ordering::Release),
            (true, false) => {
                let since = since.swap(0, Ordering::AcqRel);
                if since != 0 && now > since {
                    self.page.u64(header::LOCKS_TICKS).fetch_add(now - since, Ordering::Release);
                }
            }
            _ => {}
        }
    }
}
