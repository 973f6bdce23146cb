// SPDX-License-Identifier: PostgreSQL
//! The result of a cell: one line of cells.jsonl.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::plan::LoadPoint;
use live::host::Disturbance;

/// Figures by the read's name.
pub type Values = BTreeMap<String, Option<f64>>;

/// One arm at one point, measured once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Name of the arm.
    pub arm: String,
    /// The load.
    pub point: LoadPoint,
    /// Number of the block, from 0.
    pub block: usize,
    /// Start of the measurement, seconds since 1970.
    pub began: f64,
    /// Duration of the measurement, seconds.
    pub seconds: f64,
    /// The reads.
    pub values: Values,
    /// The reads over time, if the study keeps any.
    pub series: Option<CellSeries>,
    /// State of the machine.
    pub machine: Machine,
    /// Evidence that the server was what the arm describes.
    pub proof: Proof,
    /// Events to mark in charts.
    #[serde(default)]
    pub marks: Vec<Mark>,
    /// Text of the study's listings, in their order.
    #[serde(default)]
    pub listings: Vec<String>,
}

/// Figures over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CellSeries {
    /// Ends of the parts of the cell, seconds since the measurement began.
    pub times: Vec<f64>,
    /// Figures of each part, by the read's name.
    pub values: BTreeMap<String, Vec<Option<f64>>>,
}

/// The machine during a cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Stolen time, frequency and other work of the machine.
    #[serde(flatten)]
    pub disturbance: Disturbance,
    /// CPU time of processes outside the study, percent of one CPU.
    pub foreign_percent: Option<f64>,
    /// How often the cell was measured.
    pub tries: u32,
    /// How the last try exceeded the study's gate; `None` if it did not.
    pub disturbed: Option<String>,
}

/// Evidence that the server was what the arm describes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Settings as the server shows them.
    pub settings: BTreeMap<String, String>,
    /// Extensions with their versions; preloaded libraries without one.
    pub extensions: BTreeMap<String, String>,
    /// The level in the segment.
    pub level: Option<String>,
    /// Whether statements were kept.
    pub statements: Option<bool>,
    /// Processes of the instrument.
    pub instrument: Option<String>,
}

/// An event during a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// Seconds since the measurement began.
    pub time: f64,
    /// Kind of event: "checkpoint", "slow", ...
    pub kind: String,
    /// Description of the event.
    pub text: String,
}
