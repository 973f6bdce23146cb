// SPDX-License-Identifier: PostgreSQL
//! What is kept of a cell: one line of cells.jsonl.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::plan::Point;
use crate::host::Disturbance;

/// Figures by the read's name.
pub(crate) type Values = BTreeMap<String, Option<f64>>;

/// One arm at one point, measured once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) arm: String,
    pub(crate) point: Point,
    /// Number of the block, from 0 on.
    pub(crate) block: usize,
    /// When its measuring began, seconds since 1970.
    pub(crate) began: f64,
    /// How long it was measured.
    pub(crate) seconds: f64,
    pub(crate) values: Values,
    pub(crate) series: Option<Series>,
    pub(crate) machine: Machine,
    pub(crate) proof: Proof,
    #[serde(default)]
    pub(crate) marks: Vec<Mark>,
    #[serde(default)]
    pub(crate) listings: Vec<String>,
}

/// Figures over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Series {
    /// Ends of the parts, seconds since the measuring began.
    pub(crate) times: Vec<f64>,
    pub(crate) values: BTreeMap<String, Vec<Option<f64>>>,
}

/// What the machine was like meanwhile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    #[serde(flatten)]
    pub(crate) disturbance: Disturbance,
    /// Processor time used by what is not of the study, per cent of one processor.
    pub(crate) foreign_percent: Option<f64>,
    /// How often the cell was taken.
    pub(crate) tries: u32,
    /// Why it is still beyond the gate; nothing when it is not.
    pub(crate) disturbed: Option<String>,
}

/// How it is known that the arm was what it says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Proof {
    /// Settings as the server shows them.
    pub(crate) settings: BTreeMap<String, String>,
    /// Extensions with their versions; preloaded libraries without one.
    pub(crate) extensions: BTreeMap<String, String>,
    /// The level in the segment, before and after.
    pub(crate) level: Option<String>,
    /// Whether statements were kept.
    pub(crate) statements: Option<bool>,
    /// Processes of the instrument.
    pub(crate) instrument: Option<String>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// Seconds since the measuring began.
    pub(crate) time: f64,
    /// "checkpoint", "slow", ...
    pub(crate) kind: String,
    pub(crate) text: String,
}
