// SPDX-License-Identifier: PostgreSQL
//! What is kept of a cell: one line of cells.jsonl.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::plan::Point;
use live::host::Disturbance;

/// Figures by the read's name.
pub type Values = BTreeMap<String, Option<f64>>;

/// One arm at one point, measured once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    pub arm: String,
    pub point: Point,
    /// Number of the block, from 0 on.
    pub block: usize,
    /// When its measuring began, seconds since 1970.
    pub began: f64,
    /// How long it was measured.
    pub seconds: f64,
    pub values: Values,
    pub series: Option<Series>,
    pub machine: Machine,
    pub proof: Proof,
    #[serde(default)]
    pub marks: Vec<Mark>,
    #[serde(default)]
    pub listings: Vec<String>,
}

/// Figures over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Ends of the parts, seconds since the measuring began.
    pub times: Vec<f64>,
    pub values: BTreeMap<String, Vec<Option<f64>>>,
}

/// What the machine was like meanwhile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    #[serde(flatten)]
    pub disturbance: Disturbance,
    /// Processor time used by what is not of the study, per cent of one processor.
    pub foreign_percent: Option<f64>,
    /// How often the cell was taken.
    pub tries: u32,
    /// Why it is still beyond the gate; nothing when it is not.
    pub disturbed: Option<String>,
}

/// How it is known that the arm was what it says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Settings as the server shows them.
    pub settings: BTreeMap<String, String>,
    /// Extensions with their versions; preloaded libraries without one.
    pub extensions: BTreeMap<String, String>,
    /// The level in the segment, before and after.
    pub level: Option<String>,
    /// Whether statements were kept.
    pub statements: Option<bool>,
    /// Processes of the instrument.
    pub instrument: Option<String>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// Seconds since the measuring began.
    pub time: f64,
    /// "checkpoint", "slow", ...
    pub kind: String,
    pub text: String,
}
