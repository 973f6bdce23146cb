// SPDX-License-Identifier: PostgreSQL
//! The status, as `--json` prints it.

use scratch::Process;
use segment::interval::{ClockInfo, ServerInfo};
use segment::kernel::KernelView;
use segment::{Level, Overflows, Probe};
use serde::Serialize;
use view::statements::TableRow;

/// The status, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(super) struct Status {
    pub(super) server: ServerInfo,
    /// `null` when the server's processes cannot be seen from here.
    pub(super) running: Option<bool>,
    pub(super) mode: Option<Mode>,
    pub(super) level: Level,
    /// Time until the level changes to `level_then`; `null` if it does not end.
    pub(super) level_left_seconds: Option<f64>,
    pub(super) level_then: Option<Level>,
    pub(super) clock: ClockInfo,
    pub(super) segment: File,
    pub(super) slots: Slots,
    /// `null` when the segment keeps no statements.
    pub(super) statements: Option<TableRow>,
    /// `null` when the segment keeps no relations.
    pub(super) relations: Option<RelationTable>,
    /// Files that were evicted before their writes were synced.
    pub(super) files_given_up: u64,
    /// Whether `tally cost` is running, or was killed.
    pub(super) statements_paused: bool,
    /// `null` when the processes cannot be seen.
    pub(super) processes: Option<Processes>,
    pub(super) overflow: Overflows,
    /// Whether nothing is missing in the interval.
    pub(super) exact: bool,
    pub(super) probes: Vec<Probe>,
    /// Busy time in the interval that is compared with the kernel's figures.
    pub(super) busy_seconds: f64,
    pub(super) witness: KernelView,
    pub(super) events: Vec<EventRow>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    /// Through shared_preload_libraries.
    Shared,
    /// Through session_preload_libraries or LOAD.
    Session,
}

#[derive(Debug, Serialize)]
pub(super) struct File {
    pub(super) format: u32,
    /// `null`: the file is on another machine.
    pub(super) resident_bytes: Option<u64>,
    /// The most memory that it can take: its size, or its share of a small file system.
    pub(super) limit_bytes: Option<u64>,
    pub(super) file_bytes: u64,
    pub(super) age_seconds: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct Slots {
    pub(super) used: u32,
    pub(super) capacity: u32,
}

#[derive(Debug, Serialize)]
pub(super) struct RelationTable {
    pub(super) used: u32,
    pub(super) capacity: u32,
    /// How often a relation did not fit and was counted as one of the others.
    pub(super) overflow: u64,
}

impl RelationTable {
    pub(super) fn from_relations(relations: &segment::Relations) -> Self {
        Self {
            used: relations.entries(),
            capacity: relations.capacity(),
            overflow: relations.overflow(),
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Processes {
    pub(super) covered: usize,
    pub(super) not_covered: Vec<ProcessRow>,
}

#[derive(Debug, Serialize)]
pub(super) struct ProcessRow {
    pub(super) pid: u32,
    pub(super) title: String,
}

impl From<&Process> for ProcessRow {
    fn from(process: &Process) -> Self {
        Self { pid: process.pid, title: process.title.clone() }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct EventRow {
    /// Seconds since 1970; `null` if the segment's clock cannot be read.
    pub(super) time: Option<f64>,
    pub(super) seconds_ago: Option<f64>,
    pub(super) pid: i32,
    pub(super) warning: bool,
    /// As in `tally events`.
    pub(super) kind: String,
    pub(super) text: String,
}
