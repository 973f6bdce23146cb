// SPDX-License-Identifier: PostgreSQL
//! The statements of a reading or an interval.

use crate::statements::current::CurrentRow;
use crate::statements::flood::Flood;
use crate::statements::plans::PlanRow;
use crate::statements::row::StatementFigures;
use serde::Serialize;
use std::sync::Arc;

/// The statements of a segment, in an interval or since the last reset (docs/reference-json.md).
#[derive(Debug, Clone, Default, Serialize)]
pub struct StatementsTable {
    /// When this was read, seconds since 1970.
    pub time: f64,
    /// Length of the interval; `None`: since the last reset.
    pub interval_seconds: Option<f64>,
    /// Time worked for clients' own statements, unidentified ones included.
    pub seconds: f64,
    /// The table that all sessions share.
    pub table: TableRow,
    /// What the table is full of, where statements of one kind evict others.
    pub flood: Option<Flood>,
    /// Statements are not counted at the moment: `tally cost` measures their cost.
    pub paused: bool,
    /// The statements that were active, most time first.
    pub rows: Vec<StatementFigures>,
    /// The statements that sessions work for now, by slot.
    pub current: Vec<CurrentRow>,
    /// Their plans; empty: none were noted, or nobody asked for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<PlanRow>,
    /// The readings from which these were computed.
    #[serde(skip)]
    pub source: Option<Arc<segment::StatementsReading>>,
}

/// The table of statements that all sessions share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TableRow {
    /// Statements in it.
    pub used: u32,
    /// Its capacity.
    pub capacity: u32,
    /// Statements evicted, ever.
    pub evicted: u64,
    /// Counts that did not fit, ever.
    pub dropped: u64,
    /// Statements left inconsistent by a process that died, ever.
    pub lost: u64,
    /// Texts cut for lack of space, ever.
    pub texts_cut: u64,
    /// Bytes that all texts together may have.
    pub text_bytes: u64,
}
