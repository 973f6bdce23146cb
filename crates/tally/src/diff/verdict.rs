// SPDX-License-Identifier: PostgreSQL
//! Which way something changed.

use serde::Serialize;

/// The verdict about a change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
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

impl Verdict {
    /// Whether the change is beyond the noise.
    pub fn is_real(self) -> bool {
        !matches!(self, Verdict::Noise | Verdict::Unknown)
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::More => "more",
            Verdict::Less => "less",
            Verdict::New => "new in B",
            Verdict::Absent => "absent in B",
            Verdict::Noise | Verdict::Unknown => "inconclusive",
        }
    }
}
