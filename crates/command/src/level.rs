// SPDX-License-Identifier: PostgreSQL
//! How much is measured.

use clap::ValueEnum;

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// Nothing; a probe is one load and one branch
    Off,
    /// Ledger: phases, waits, commands, statements, files
    Waits,
    /// Also lightweight and heavyweight locks: held, acquired, waited for
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
