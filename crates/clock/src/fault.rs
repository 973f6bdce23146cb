// SPDX-License-Identifier: PostgreSQL
//! The kinds of faults of a clock.

use serde::Serialize;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// It cannot be read.
    Refused,
    /// It went back on one processor.
    Back,
    /// It went back when a thread moved to another processor.
    BackMigrating,
    /// Processors disagree.
    Skewed,
    /// Its steps are too large.
    Coarse,
    /// Reading it takes too long.
    Slow,
    /// It runs faster or slower than it should.
    Wrong,
    /// Its rate changes.
    Unsteady,
}

impl FaultKind {
    /// Its name in tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Back => "goes back",
            Self::BackMigrating => "goes back migrating",
            Self::Skewed => "skewed",
            Self::Coarse => "coarse",
            Self::Slow => "slow",
            Self::Wrong => "wrong rate",
            Self::Unsteady => "unsteady",
        }
    }
}

/// A fault of a clock.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fault {
    /// Its kind.
    pub kind: FaultKind,
    /// A description with figures.
    pub text: String,
}
