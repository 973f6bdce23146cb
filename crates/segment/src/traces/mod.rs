// SPDX-License-Identifier: PostgreSQL
//! Traces: what single processes do, in order, from the rings that they write while a reader asks for it.
//!
//! A [`TraceSwitch`] arms rings for a [`TraceRequest`] and keeps them armed; a [`TraceReader`] follows one ring; a
//! [`Ledger`] is what the accounts of the same process say meanwhile, to compare.

mod ledger;
mod reader;
mod record;
mod switch;

pub use ledger::{Ledger, SlotTexts};
pub use reader::{TraceNode, TraceReader, Traced};
pub use record::{TraceEnd, TraceFile, TraceKind, TraceParent, TraceRecord, TraceStep};
pub use switch::{TraceRequest, TraceSwitch};

/// State of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceState {
    /// Nobody has armed it, or it was withdrawn.
    Free,
    /// It waits for a process that the request is for.
    Armed,
    /// A process writes it.
    Running,
    /// The process has left.
    Ended,
}

impl TraceState {
    /// The state in a claim.
    fn from_claim(claim: u32) -> TraceState {
        match claim & 0xFF {
            1 => TraceState::Armed,
            2 => TraceState::Running,
            3 => TraceState::Ended,
            _ => TraceState::Free,
        }
    }

    fn number(self) -> u32 {
        match self {
            TraceState::Free => 0,
            TraceState::Armed => 1,
            TraceState::Running => 2,
            TraceState::Ended => 3,
        }
    }
}

/// The generation in a claim.
fn generation_of(claim: u32) -> u32 {
    claim >> 8
}

/// The claim of a generation in a state.
fn claim_of(generation: u32, state: TraceState) -> u32 {
    generation << 8 | state.number()
}
