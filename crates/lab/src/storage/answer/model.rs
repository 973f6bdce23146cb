// SPDX-License-Identifier: PostgreSQL
//! The results of a study, as in results.json.

use crate::engine::experiment::{ArmRow, StudyHeading};
use crate::engine::journal::RunRecord;
use crate::storage::answer::impact::Impact;
use crate::storage::answer::steadiness::Loss;
use crate::storage::answer::waits::WaitRow;
use serde::Serialize;

/// A cell: an arm measured once.
#[derive(Debug, Clone, Serialize)]
pub struct CellRow {
    /// Name of the arm.
    pub arm: String,
    /// Number of the block, from 0.
    pub block: usize,
    /// Why it is incomplete; `null` if it is complete.
    pub incomplete: Option<String>,
    /// Why the warm-up ended.
    pub warm_up: Option<String>,
    /// Length of the measured part, seconds.
    pub seconds: f64,
    /// Operations that became due per second; `null` for a load without a schedule.
    pub wanted_per_second: Option<f64>,
    /// Operations (or transactions) completed per second.
    pub made_per_second: f64,
    /// Share of reads among them, 0 to 1.
    pub reads: Option<f64>,
    /// Operations owed at the end.
    pub owed: u64,
    /// Operations dropped.
    pub dropped: u64,
    /// Bytes read and written per second.
    pub bytes_per_second: f64,
    /// Mean response time from the scheduled start, seconds.
    pub response_mean: Option<f64>,
    /// Share of the time in which some task on the machine waited for I/O, 0 to 1; `null` if the kernel does
    /// not report it.
    pub io_stalled: Option<f64>,
    /// The loss of steadiness, if there was one.
    pub lost: Option<Loss>,
}

/// A run of a victim.
#[derive(Debug, Clone, Serialize)]
pub struct RunRow {
    /// Name of the arm.
    pub arm: String,
    /// Number of the block, from 0.
    pub block: usize,
    /// Name of the victim.
    pub victim: String,
    /// Its time in the study, seconds since measuring began; `null` without background.
    pub at: Option<f64>,
    /// When it began, seconds since measuring began; later than `at` if another one was still running.
    pub began: Option<f64>,
    /// How long it took, seconds.
    pub seconds: f64,
    /// CPU time of the victim and its descendants, seconds.
    pub cpu_seconds: f64,
    /// Bytes read by system calls.
    pub read_bytes: Option<u64>,
    /// Bytes written by system calls.
    pub written_bytes: Option<u64>,
    /// Bytes read from devices.
    pub device_read_bytes: Option<u64>,
    /// Bytes written to devices, immediately or later.
    pub device_written_bytes: Option<u64>,
    /// Operations per second of the background during the run.
    pub background_per_second: Option<f64>,
    /// Why it failed; `null` if it succeeded.
    pub failure: Option<String>,
}

/// How much longer a victim takes with background than without.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Slowdown {
    /// Name of the arm.
    pub arm: String,
    /// Name of the victim.
    pub victim: String,
    /// Which runs: "all", or those "before" and "after" the loss of steadiness.
    pub when: &'static str,
    /// Number of runs with background.
    pub runs: usize,
    /// Geometric mean of the ratios of the runs' durations to those without background in the same cell.
    pub factor: f64,
    /// The 95 % interval of the factor, low and high end; `null` for fewer than three runs.
    pub interval: Option<(f64, f64)>,
}

/// A victim's duration in an arm compared with the first arm, in pairs of runs of the same time and block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VictimComparison {
    /// Name of the arm.
    pub arm: String,
    /// Name of the victim.
    pub victim: String,
    /// Number of pairs.
    pub pairs: usize,
    /// The change, percent.
    pub percent: f64,
    /// Half the width of its 95 % interval, percentage points; `null` for fewer than three pairs.
    pub half_width: Option<f64>,
    /// Whether Student's t and signed ranks agree that it is not chance.
    pub resolved: bool,
}

/// The answer to a study.
#[derive(Debug, Clone, Serialize)]
pub struct StorageResults {
    /// What the study is about.
    #[serde(flatten)]
    pub heading: StudyHeading,
    /// How and where it ran.
    #[serde(flatten)]
    pub run: RunRecord,
    /// Length of each cell's measured part, seconds.
    pub seconds: f64,
    /// Number of cells in the plan.
    pub cells_planned: usize,
    /// The arms, including those left out.
    pub arms: Vec<ArmRow>,
    /// The cells, including incomplete ones.
    pub cells: Vec<CellRow>,
    /// All runs of victims.
    pub runs: Vec<RunRow>,
    /// Slowdown of each victim in each arm.
    pub slowdowns: Vec<Slowdown>,
    /// Effects of victims on the background.
    pub impacts: Vec<Impact>,
    /// Waits that grow while victims run, from the server's ledger.
    pub waits: Vec<WaitRow>,
    /// The arms compared with the first one.
    pub comparisons: Vec<VictimComparison>,
    /// The answer in words.
    pub sentences: Vec<String>,
}
