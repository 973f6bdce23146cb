// SPDX-License-Identifier: PostgreSQL
//! Measures CPU time of running backends while something is toggled, for `tally cost` and for studies
//! with toggled arms.

pub mod contrast;
pub mod design;
pub mod meter;

use clap::ValueEnum;

/// What `tally cost` toggles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CostOf {
    /// The level, compared with off
    Level,
    /// Statements, compared with the same level without statements
    Statements,
    /// Something outside pgtally that follows the same switch, as in bench/peers
    #[value(hide = true)]
    Outside,
}

impl CostOf {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Level => "level",
            Self::Statements => "statements",
            Self::Outside => "outside",
        }
    }
}
