// SPDX-License-Identifier: PostgreSQL
//! The direction of a change.

use serde::Serialize;

/// The verdict about a change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeVerdict {
    /// B takes more.
    More,
    /// B takes less.
    Less,
    /// Only B has it.
    New,
    /// Only A has it.
    Absent,
    /// Chance could explain it.
    #[default]
    Noise,
    /// There are too few blocks to tell.
    Unknown,
}

impl ChangeVerdict {
    /// Whether the change is beyond the noise.
    pub fn is_real(self) -> bool {
        !matches!(self, ChangeVerdict::Noise | ChangeVerdict::Unknown)
    }

    /// The verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            ChangeVerdict::More => "more",
            ChangeVerdict::Less => "less",
            ChangeVerdict::New => "new in B",
            ChangeVerdict::Absent => "absent in B",
            ChangeVerdict::Noise | ChangeVerdict::Unknown => "inconclusive",
        }
    }
}
