// SPDX-License-Identifier: PostgreSQL
//! The content of study.toml. docs/studies.md explains every key.

mod check;
mod read;
mod show;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::engine::experiment::StudyHeading;

pub use crate::engine::time::Time;
pub use read::{Better, Divisor, From, MeasuredProcesses, Read, ReadSource, Take, When};
pub use show::{Chart, ChartKind, Fit, FitKind, Listing, Rows, Show, Table};

/// A study as written in its file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Letters, digits and hyphens.
    pub name: String,
    /// Title of the report.
    pub title: String,
    /// The question that the study answers.
    pub question: String,
    /// Where the question comes from.
    pub source: Option<String>,
    /// Settings of the server that all arms share.
    #[serde(default)]
    pub server: Server,
    /// The variants of the server that are compared.
    #[serde(rename = "arm")]
    pub arms: Vec<Arm>,
    /// The load of the clients.
    pub workload: Workload,
    /// How to measure.
    #[serde(default)]
    pub measure: Measure,
    /// Changes with `--quick`.
    #[serde(default)]
    pub quick: Quick,
    /// Limits beyond which a cell is repeated.
    #[serde(default)]
    pub gate: Gate,
    /// The figures taken from each cell.
    #[serde(rename = "read")]
    pub reads: Vec<Read>,
    /// The comparison of the arms.
    pub compare: Option<Compare>,
    /// Tables of the report.
    #[serde(rename = "table", default)]
    pub tables: Vec<Table>,
    /// Charts of the report.
    #[serde(rename = "chart", default)]
    pub charts: Vec<Chart>,
    /// Texts from an arm's last cell.
    #[serde(rename = "listing", default)]
    pub listings: Vec<Listing>,
    /// Curves fitted through a read's points.
    #[serde(rename = "fit", default)]
    pub fits: Vec<Fit>,
}

/// Values of PostgreSQL settings, by name.
pub type Settings = BTreeMap<String, String>;

/// Settings common to the servers of all arms.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    pub settings: Settings,
    pub extensions: Vec<String>,
    pub level: ArmLevel,
    pub statements: bool,
    pub fsync: bool,
    /// Scale of pgbench's tables; 0 creates none.
    pub scale: u32,
    /// SQL to run once, after the tables exist.
    pub setup: Option<String>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            settings: Settings::new(),
            extensions: Vec::new(),
            level: ArmLevel::Waits,
            statements: true,
            fsync: true,
            scale: 10,
            setup: None,
        }
    }
}

/// How much pg_tally measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ArmLevel {
    /// pg_tally is not loaded.
    None,
    Off,
    Waits,
    Locks,
    /// Starts at waits. The arm itself may change the level, so it is not checked.
    Any,
}

impl ArmLevel {
    /// The corresponding level of a segment; `None` without a segment.
    pub fn of_segment(self) -> Option<segment::Level> {
        match self {
            Self::None => None,
            Self::Off => Some(segment::Level::Off),
            Self::Waits | Self::Any => Some(segment::Level::Waits),
            Self::Locks => Some(segment::Level::Locks),
        }
    }
}

/// One way of running the server.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    pub name: String,
    pub title: Option<String>,
    #[serde(default)]
    pub settings: Settings,
    #[serde(default)]
    pub extensions: Vec<String>,
    pub level: Option<ArmLevel>,
    pub statements: Option<bool>,
    pub directory: Option<String>,
    pub wal_directory: Option<String>,
    pub file_system: Option<String>,
    pub file_system_size: Option<String>,
    pub wal_file_system: Option<String>,
    pub wal_file_system_size: Option<String>,
    pub clock_source: Option<String>,
    /// Values that expressions can use by name.
    #[serde(default)]
    pub given: BTreeMap<String, f64>,
    pub before: Option<Vec<String>>,
    pub after: Option<Vec<String>>,
    pub script: Option<String>,
    pub command: Option<Vec<String>>,
    pub quick: Option<bool>,
    pub instrument: Option<Instrument>,
}

impl Arm {
    /// Its name in tables.
    pub fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    /// Whether it sets the location of the server's files.
    pub fn has_location(&self) -> bool {
        self.directory.is_some() || self.file_system.is_some()
    }
}

/// A program that runs next to the server while a cell is measured.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instrument {
    pub command: Vec<String>,
    /// Text in its output that shows that it is ready.
    pub ready: Option<String>,
    /// Whether the arm is left out if the program cannot run; otherwise the study fails.
    #[serde(default = "yes")]
    pub optional: bool,
    #[serde(default)]
    pub stop: Stop,
}

/// The signal that ends an instrument.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Stop {
    #[default]
    Int,
    Term,
}

fn yes() -> bool {
    true
}

/// The load of the clients.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    pub builtin: Option<Builtin>,
    pub script: Option<String>,
    pub command: Option<Vec<String>>,
    pub clients: Option<Vec<u32>>,
    pub jobs: Option<u32>,
    #[serde(default)]
    pub protocol: Protocol,
    pub think: Option<Time>,
    pub rate: Option<f64>,
    pub rates: Option<Vec<f64>>,
    pub transactions: Option<u64>,
    #[serde(default)]
    pub options: Vec<String>,
    pub commands: Option<u32>,
}

/// pgbench's built-in scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Builtin {
    TpcbLike,
    SelectOnly,
    SimpleUpdate,
}

/// pgbench's query mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    #[default]
    Simple,
    Extended,
    Prepared,
}

impl Protocol {
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Extended => "extended",
            Self::Prepared => "prepared",
        }
    }
}

/// How the study changes from one arm to another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Design {
    /// Every arm has a server of its own; a block measures each arm once.
    #[default]
    Restart,
    /// One server changes between the arms in short slices.
    Toggle,
}

/// How cells are measured.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Measure {
    pub design: Design,
    /// Measured time of a cell, seconds.
    pub seconds: f64,
    /// Load before the measurement, seconds.
    pub warm_up: f64,
    /// Number of blocks; with `half_width` the maximum.
    pub repeats: usize,
    /// Precision at which the study stops, percent.
    pub half_width: Option<f64>,
    /// Whether the base runs a second time, as an A/A control.
    pub again: bool,
    /// Time step of series, seconds.
    pub every: Option<f64>,
    /// Length of a slice of toggled arms.
    pub slice: Time,
    /// Start of a slice that is not measured.
    pub discard: Time,
    /// Seed of the random order.
    pub seed: u64,
}

impl Default for Measure {
    fn default() -> Self {
        Self {
            design: Design::Restart,
            seconds: 20.0,
            warm_up: 3.0,
            repeats: 8,
            half_width: None,
            again: true,
            every: None,
            slice: Time(Duration::from_secs(1)),
            discard: Time(Duration::from_millis(10)),
            seed: 1,
        }
    }
}

/// Values that replace others with `--quick`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quick {
    pub seconds: Option<f64>,
    pub warm_up: Option<f64>,
    pub repeats: Option<usize>,
    pub half_width: Option<f64>,
    pub every: Option<f64>,
    pub slice: Option<Time>,
    pub clients: Option<Vec<u32>>,
    pub rates: Option<Vec<f64>>,
    pub transactions: Option<u64>,
    pub scale: Option<u32>,
}

/// How much a cell may be disturbed, percent.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Gate {
    /// Time stolen by the hypervisor.
    pub steal: f64,
    /// CPU time used by processes outside the study, of one CPU's time.
    pub foreign: f64,
    /// CPU frequency below the median of the study's cells.
    pub frequency: f64,
    /// How often a disturbed cell is repeated.
    pub retries: u32,
}

impl Default for Gate {
    fn default() -> Self {
        Self { steal: 5.0, foreign: 15.0, frequency: 20.0, retries: 2 }
    }
}

/// The comparison of the arms.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compare {
    /// The arm that the others are compared with; the first unless given.
    pub base: Option<String>,
    pub reads: Vec<String>,
}

impl Study {
    /// What it is about.
    pub fn heading(&self) -> StudyHeading {
        StudyHeading::new(&self.name, &self.title, &self.question, self.source.as_deref())
    }

    /// Parses and checks a study file. The error names the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let study: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        study.check()?;
        Ok(study)
    }

    /// The read with this name.
    pub fn read(&self, name: &str) -> Option<&Read> {
        self.reads.iter().find(|read| read.name == name)
    }
}

impl Quick {
    /// Replaces the values of `study` that are set here, and drops arms with `quick = false`.
    pub fn apply(&self, study: &mut Study) {
        fn put<T: Clone>(to: &mut T, from: &Option<T>) {
            if let Some(value) = from {
                *to = value.clone();
            }
        }
        put(&mut study.measure.seconds, &self.seconds);
        put(&mut study.measure.warm_up, &self.warm_up);
        put(&mut study.measure.repeats, &self.repeats);
        put(&mut study.measure.slice, &self.slice);
        put(&mut study.server.scale, &self.scale);
        let measure = &mut study.measure;
        measure.half_width = self.half_width.or(measure.half_width);
        measure.every = self.every.or(measure.every);
        let workload = &mut study.workload;
        workload.clients = self.clients.clone().or(workload.clients.take());
        workload.rates = self.rates.clone().or(workload.rates.take());
        workload.transactions = self.transactions.or(workload.transactions);
        study.arms.retain(|arm| arm.quick != Some(false));
    }
}
