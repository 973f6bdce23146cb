// SPDX-License-Identifier: PostgreSQL
//! The statements of a reading or an interval.

use crate::statements::current::CurrentRow;
use crate::statements::flood::Flood;
use crate::statements::plans::PlanRow;
use crate::statements::row::StatementFigures;
use crate::statements::slow_executions::SlowExecutionFigures;
use serde::Serialize;
use std::sync::Arc;

/// The statements of a segment, in an interval or since the last reset (docs/reference-json.md).
#[derive(Debug, Clone, Default, Serialize)]
pub struct StatementsTable {
    /// When this was read, seconds since 1970.
    pub time: f64,
    /// Length of the interval; `None` for the time since the last reset.
    pub interval_seconds: Option<f64>,
    /// The mean distance between samples, in seconds, if the times are estimates from samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_seconds: Option<f64>,
    /// Time spent on clients' own statements, including unidentified ones.
    pub seconds: f64,
    /// If any of it was estimated from samples: half the width of its 95 % interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_width_seconds: Option<f64>,
    /// The table that all sessions share.
    pub table: TableRow,
    /// What fills the table, if statements of one kind evict others.
    pub flood: Option<Flood>,
    /// Whether counting is paused, because `tally cost` measures its cost.
    pub paused: bool,
    /// The statements that were active, most time first.
    #[serde(serialize_with = "crate::known::statements")]
    pub rows: Vec<StatementFigures>,
    /// The statements that sessions are working for, by slot.
    pub current: Vec<CurrentRow>,
    /// What sessions called often, as far as their own counts tell.
    #[serde(skip)]
    pub of_sessions: Vec<SessionCalls>,
    /// Their plans; empty if none were recorded, or if they were not requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<PlanRow>,
    /// Their slowest executions with parameters; empty unless a recording has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slow_executions: Vec<SlowExecutionFigures>,
    /// The readings from which these were computed.
    #[serde(skip)]
    pub source: Option<Arc<segment::StatementsReading>>,
}

/// Calls of a statement by one session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionCalls {
    /// The session's slot.
    pub slot: u32,
    /// The statement.
    pub key: segment::StatementKey,
    /// Its calls, at least.
    pub calls: u64,
}

/// The table of statements that all sessions share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TableRow {
    /// Statements in it.
    pub used: u32,
    /// Its capacity.
    pub capacity: u32,
    /// Statements evicted since the segment was created.
    pub evicted: u64,
    /// Counts that did not fit since the segment was created.
    pub dropped: u64,
    /// Statements left inconsistent by a process that died, since the segment was created.
    pub lost: u64,
    /// Texts truncated for lack of space since the segment was created.
    pub texts_cut: u64,
    /// Maximum size of all texts together, bytes.
    pub text_bytes: u64,
}
