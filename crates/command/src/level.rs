// SPDX-License-Identifier: PostgreSQL
//! The measuring level.

use clap::ValueEnum;

/// The measuring level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// Nothing; client messages are still counted, and their phase followed
    Off,
    /// The ledger: phases, waits, commands, statements, files
    Waits,
    /// Also lightweight and heavyweight locks: acquired, held, waited for
    Locks,
}

impl Level {
    /// The value of pg_tally.level.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Waits => "waits",
            Self::Locks => "locks",
        }
    }
}

impl From<Level> for segment::Level {
    fn from(level: Level) -> Self {
        match level {
            Level::Off => Self::Off,
            Level::Waits => Self::Waits,
            Level::Locks => Self::Locks,
        }
    }
}
