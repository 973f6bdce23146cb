// SPDX-License-Identifier: PostgreSQL
//! Measures processor time of live backends while something is toggled: what `tally cost` and studies
//! with alternating arms share.

pub mod contrast;
pub mod design;
pub mod meter;

use clap::ValueEnum;

/// What `tally cost` toggles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CostOf {
    /// The level, against off
    Level,
    /// Statements, against the same level without them
    Statements,
    /// Something outside pgtally that follows the same switch, such as bench/peers has it
    #[value(hide = true)]
    Outside,
}

impl CostOf {
    /// As it is written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Level => "level",
            Self::Statements => "statements",
            Self::Outside => "outside",
        }
    }
}
