// SPDX-License-Identifier: PostgreSQL
//! The level of measurement in the header, and when it ends by itself.

use crate::layout::{header, level, u32_at, u64_at};

/// Bits of the level word that hold the level. The twelve bits above change when traces are armed or withdrawn, and
/// when the extremes of statements are reset.
pub(crate) const LEVEL: u32 = 0xF;

/// What the writers of a segment measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Nothing: most probes are one load and one branch; messages are still counted, and their phase followed.
    Off,
    /// The ledger and the commands, which cost only at blocking calls and messages.
    Waits,
    /// In addition, every lightweight lock.
    Locks,
    /// A level of a later version.
    Other(u8),
}

impl Level {
    /// The level in a level word.
    pub fn of_word(word: u32) -> Level {
        match word & LEVEL {
            level::OFF => Level::Off,
            level::WAITS => Level::Waits,
            level::LOCKS => Level::Locks,
            other => Level::Other(other as u8),
        }
    }

    /// Its number in the level word.
    pub fn number(self) -> u8 {
        match self {
            Level::Off => level::OFF as u8,
            Level::Waits => level::WAITS as u8,
            Level::Locks => level::LOCKS as u8,
            Level::Other(number) => number,
        }
    }

    /// Whether lightweight locks are measured.
    pub fn has_locks(self) -> bool {
        self.number() >= Level::Locks.number()
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
            _ => Err(format!("invalid level \"{text}\"; levels are off, waits and locks")),
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
    word >> 16
}

/// How a level ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelEnd {
    /// The tick at which it ends, set by the first writer that notices.
    pub tick: u64,
    /// The level after that.
    pub then: Level,
}

impl LevelEnd {
    /// The end of the level in the live part of a header; `None`: the level stays.
    pub(crate) fn decode(live: &[u8]) -> Option<LevelEnd> {
        let tick = u64_at(live, header::LEVEL_UNTIL);
        let then = Level::of_word(u32_at(live, header::LEVEL_THEN));
        (tick != 0).then_some(LevelEnd { tick, then })
    }
}

/// A level, and how it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelSetting {
    /// The current level.
    pub level: Level,
    /// When it ends automatically; `None`: it does not.
    pub end: Option<LevelEnd>,
}
