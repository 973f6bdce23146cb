// SPDX-License-Identifier: PostgreSQL
//! study.toml as it is written; docs/studies.md says what each key means.

mod check;
mod read;
mod show;
mod time;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use read::{Better, From, Measured, Per, Read, Source, Take, When};
pub use show::{Chart, ChartKind, Fit, FitKind, Listing, Rows, Show, Table};
pub use time::Time;

/// A study as its file has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    pub name: String,
    pub title: String,
    pub question: String,
    pub source: Option<String>,
    #[serde(default)]
    pub server: Server,
    #[serde(rename = "arm")]
    pub arms: Vec<Arm>,
    pub workload: Workload,
    #[serde(default)]
    pub measure: Measure,
    #[serde(default)]
    pub quick: Quick,
    #[serde(default)]
    pub gate: Gate,
    #[serde(rename = "read")]
    pub reads: Vec<Read>,
    pub compare: Option<Compare>,
    #[serde(rename = "table", default)]
    pub tables: Vec<Table>,
    #[serde(rename = "chart", default)]
    pub charts: Vec<Chart>,
    #[serde(rename = "listing", default)]
    pub listings: Vec<Listing>,
    #[serde(rename = "fit", default)]
    pub fits: Vec<Fit>,
}

/// Settings by name.
pub type Settings = BTreeMap<String, String>;

/// The server of all arms.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    pub settings: Settings,
    pub extensions: Vec<String>,
    pub level: ArmLevel,
    pub statements: bool,
    pub fsync: bool,
    pub scale: u32,
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

/// How much pg_tally looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ArmLevel {
    /// It is not loaded.
    None,
    Off,
    Waits,
    Locks,
    /// Waits to begin with; something of the arm's own changes it, and it is not checked.
    Any,
}

impl ArmLevel {
    /// The level of a segment; none where there is no segment.
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
    /// Names for expressions.
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
    /// As it is called in tables.
    pub fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    /// Whether it says where the server's files are to be.
    pub fn has_place(&self) -> bool {
        self.directory.is_some() || self.file_system.is_some()
    }
}

/// What runs beside the server.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instrument {
    pub command: Vec<String>,
    pub ready: Option<String>,
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

/// What the clients do.
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

/// pgbench's own scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Builtin {
    TpcbLike,
    SelectOnly,
    SimpleUpdate,
}

/// How statements are sent.
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

/// How cells follow each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Design {
    #[default]
    Restart,
    Toggle,
}

/// How it is measured.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Measure {
    pub design: Design,
    pub seconds: f64,
    pub warm_up: f64,
    pub repeats: usize,
    pub half_width: Option<f64>,
    pub again: bool,
    pub every: Option<f64>,
    pub slice: Time,
    pub discard: Time,
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

/// What differs when it is to be quick.
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

/// What a cell may be disturbed by, per cent.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Gate {
    pub steal: f64,
    pub foreign: f64,
    pub frequency: f64,
    pub retries: u32,
}

impl Default for Gate {
    fn default() -> Self {
        Self { steal: 5.0, foreign: 15.0, frequency: 20.0, retries: 2 }
    }
}

/// What is compared with what.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compare {
    pub base: Option<String>,
    pub reads: Vec<String>,
}

impl Study {
    /// Read a study file; the error names its place in it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let study: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        study.check()?;
        Ok(study)
    }

    /// The read of that name.
    pub fn read(&self, name: &str) -> Option<&Read> {
        self.reads.iter().find(|read| read.name == name)
    }
}

impl Quick {
    /// Lay it over the rest.
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
