// SPDX-License-Identifier: PostgreSQL
//! The level: how much is looked at. The only thing that this crate ever writes.

use crate::error::Error;
use crate::layout::header;
use crate::segment::Segment;
use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// How much the writers of a segment look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Nothing: a probe is one load and one branch.
    Off,
    /// The ledger and the commands: all that costs only at a blocking call or a message.
    Waits,
    /// And every lightweight lock.
    Locks,
    /// A level of a later version.
    Other(u8),
}

impl Level {
    /// The level in a level word.
    pub fn of_word(word: u32) -> Level {
        match word & 0xFF {
            0 => Level::Off,
            1 => Level::Waits,
            2 => Level::Locks,
            other => Level::Other(other as u8),
        }
    }

    /// Its number in the level word.
    pub fn number(self) -> u8 {
        match self {
            Level::Off => 0,
            Level::Waits => 1,
            Level::Locks => 2,
            Level::Other(number) => number,
        }
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Level::Off => f.pad("off"),
            Level::Waits => f.pad("waits"),
            Level::Locks => f.pad("locks"),
            Level::Other(number) => write!(f, "level {number}"),
        }
    }
}

impl std::str::FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Level, String> {
        match text {
            "off" => Ok(Level::Off),
            "waits" => Ok(Level::Waits),
            "locks" => Ok(Level::Locks),
            _ => Err(format!("\"{text}\" is not a level; levels are off, waits and locks")),
        }
    }
}

impl serde::Serialize for Level {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The number of resets in a level word.
pub fn resets_of_word(word: u32) -> u32 {
    word >> 8
}

/// Set the level of the segment at `path`, for all its writers at once. They act on it at
/// their next probe. Returns the level that was in force.
///
/// Needs the right to write the file, so the server's user or root. A symbolic link is not
/// followed.
pub fn set_level(path: &Path, level: Level) -> Result<Level, Error> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags((rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits() as i32)
        .open(path)
        .map_err(|e| crate::segment::open_error(path, "change its level", e))?;
    let io = |source| Error::Io { path: path.to_path_buf(), wish: "change its level", source };
    // The checks of a reader, on the very file that will be written.
    let segment = Segment::from_file(file.try_clone().map_err(io)?, path)?;
    let word = segment.level_word()?;
    // Only the byte of the level is written, so that a reset made in the same instant,
    // which counts in the other three, is not undone.
    let byte = if cfg!(target_endian = "little") { 0 } else { 3 };
    file.write_all_at(&[level.number()], header::LEVEL_WORD as u64 + byte).map_err(io)?;
    Ok(Level::of_word(word))
}
