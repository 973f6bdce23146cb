// SPDX-License-Identifier: PostgreSQL
//! Traces: the activity of single processes, in order, from the rings that they write while a reader requests it.
//!
//! A [`TraceSwitch`] arms rings for a [`TraceRequest`] and keeps them armed; a [`TraceReader`] follows one ring; a
//! [`Ledger`] has the accounts of the same process, for comparison. [`SlowExecutions`] follows the ring into which all
//! sessions write their slow executions.

mod ledger;
mod parameters;
mod reader;
mod record;
mod slow_executions;
mod switch;

pub use ledger::{Ledger, SlotTexts};
pub use parameters::{ExecutionParameters, ParameterJson};
pub use reader::{TraceNode, TraceReader, Traced};
pub use record::{
    TraceEnd, TraceFile, TraceKind, TraceParameter, TraceParent, TraceRecord, TraceStep,
};
pub use slow_executions::{SlowExecution, SlowExecutions};
pub use switch::{TraceRequest, TraceSwitch};

use crate::layout::trace_state;

/// State of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceState {
    /// The ring is not armed, or the request was withdrawn.
    Free,
    /// The ring waits for a process that matches the request.
    Armed,
    /// A process writes to the ring.
    Running,
    /// The process has stopped recording.
    Ended,
}

impl TraceState {
    /// The state in a claim.
    fn from_claim(claim: u32) -> TraceState {
        match claim & 0xFF {
            trace_state::ARMED => TraceState::Armed,
            trace_state::RUNNING => TraceState::Running,
            trace_state::ENDED => TraceState::Ended,
            _ => TraceState::Free,
        }
    }

    fn number(self) -> u32 {
        match self {
            TraceState::Free => trace_state::FREE,
            TraceState::Armed => trace_state::ARMED,
            TraceState::Running => trace_state::RUNNING,
            TraceState::Ended => trace_state::ENDED,
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
