// SPDX-License-Identifier: PostgreSQL
//! study.toml as it is written; docs/studies.md says what each key means.

mod check;
mod read;
mod show;
mod time;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub(crate) use read::{Better, From, Measured, Per, Read, Source, Take, When};
pub(crate) use show::{Chart, ChartKind, Fit, FitKind, Listing, Rows, Show, Table};
pub(crate) use time::Time;

/// A study as its file has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Study {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) question: String,
    pub(crate) source: Option<String>,
    #[serde(default)]
    pub(crate) server: Server,
    #[serde(rename = "arm")]
    pub(crate) arms: Vec<Arm>,
    pub(crate) workload: Workload,
    #[serde(default)]
    pub(crate) measure: Measure,
    #[serde(default)]
    pub(crate) quick: Quick,
    #[serde(default)]
    pub(crate) gate: Gate,
    #[serde(rename = "read")]
    pub(crate) reads: Vec<Read>,
    pub(crate) compare: Option<Compare>,
    #[serde(rename = "table", default)]
    pub(crate) tables: Vec<Table>,
    #[serde(rename = "chart", default)]
    pub(crate) charts: Vec<Chart>,
    #[serde(rename = "listing", default)]
    pub(crate) listings: Vec<Listing>,
    #[serde(rename = "fit", default)]
    pub(crate) fits: Vec<Fit>,
}

/// Settings by name.
pub(crate) type Settings = BTreeMap<String, String>;

/// The server of all arms.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Server {
    pub(crate) settings: Settings,
    pub(crate) extensions: Vec<String>,
    pub(crate) level: ArmLevel,
    pub(crate) statements: bool,
    pub(crate) fsync: bool,
    pub(crate) scale: u32,
    pub(crate) setup: Option<String>,
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
pub(crate) enum ArmLevel {
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
    pub(crate) fn of_segment(self) -> Option<segment::Level> {
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
pub(crate) struct Arm {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    #[serde(default)]
    pub(crate) settings: Settings,
    #[serde(default)]
    pub(crate) extensions: Vec<String>,
    pub(crate) level: Option<ArmLevel>,
    pub(crate) statements: Option<bool>,
    pub(crate) directory: Option<String>,
    pub(crate) wal_directory: Option<String>,
    pub(crate) file_system: Option<String>,
    pub(crate) file_system_size: Option<String>,
    pub(crate) wal_file_system: Option<String>,
    pub(crate) wal_file_system_size: Option<String>,
    pub(crate) clock_source: Option<String>,
    /// Names for expressions.
    #[serde(default)]
    pub(crate) given: BTreeMap<String, f64>,
    pub(crate) before: Option<Vec<String>>,
    pub(crate) after: Option<Vec<String>>,
    pub(crate) script: Option<String>,
    pub(crate) command: Option<Vec<String>>,
    pub(crate) quick: Option<bool>,
    pub(crate) instrument: Option<Instrument>,
}

impl Arm {
    /// As it is called in tables.
    pub(crate) fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    /// Whether it says where the server's files are to be.
    pub(crate) fn has_place(&self) -> bool {
        self.directory.is_some() || self.file_system.is_some()
    }
}

/// What runs beside the server.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Instrument {
    pub(crate) command: Vec<String>,
    pub(crate) ready: Option<String>,
    #[serde(default = "yes")]
    pub(crate) optional: bool,
    #[serde(default)]
    pub(crate) stop: Stop,
}

/// The signal that ends an instrument.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Stop {
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
pub(crate) struct Workload {
    pub(crate) builtin: Option<Builtin>,
    pub(crate) script: Option<String>,
    pub(crate) command: Option<Vec<String>>,
    pub(crate) clients: Option<Vec<u32>>,
    pub(crate) jobs: Option<u32>,
    #[serde(default)]
    pub(crate) protocol: Protocol,
    pub(crate) think: Option<Time>,
    pub(crate) rate: Option<f64>,
    pub(crate) rates: Option<Vec<f64>>,
    pub(crate) transactions: Option<u64>,
    #[serde(default)]
    pub(crate) options: Vec<String>,
    pub(crate) commands: Option<u32>,
}

/// pgbench's own scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Builtin {
    TpcbLike,
    SelectOnly,
    SimpleUpdate,
}

/// How statements are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Protocol {
    #[default]
    Simple,
    Extended,
    Prepared,
}

impl Protocol {
    pub(crate) fn name(self) -> &'static str {
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
pub(crate) enum Design {
    #[default]
    Restart,
    Toggle,
}

/// How it is measured.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Measure {
    pub(crate) design: Design,
    pub(crate) seconds: f64,
    pub(crate) warm_up: f64,
    pub(crate) repeats: usize,
    pub(crate) half_width: Option<f64>,
    pub(crate) again: bool,
    pub(crate) every: Option<f64>,
    pub(crate) slice: Time,
    pub(crate) discard: Time,
    pub(crate) seed: u64,
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
pub(crate) struct Quick {
    pub(crate) seconds: Option<f64>,
    pub(crate) warm_up: Option<f64>,
    pub(crate) repeats: Option<usize>,
    pub(crate) half_width: Option<f64>,
    pub(crate) every: Option<f64>,
    pub(crate) slice: Option<Time>,
    pub(crate) clients: Option<Vec<u32>>,
    pub(crate) rates: Option<Vec<f64>>,
    pub(crate) transactions: Option<u64>,
    pub(crate) scale: Option<u32>,
}

/// What a cell may be disturbed by, per cent.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Gate {
    pub(crate) steal: f64,
    pub(crate) foreign: f64,
    pub(crate) frequency: f64,
    pub(crate) retries: u32,
}

impl Default for Gate {
    fn default() -> Self {
        Self { steal: 5.0, foreign: 15.0, frequency: 20.0, retries: 2 }
    }
}

/// What is compared with what.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Compare {
    pub(crate) base: Option<String>,
    pub(crate) reads: Vec<String>,
}

impl Study {
    /// Read a study file; the error names its place in it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let study: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        study.check()?;
        Ok(study)
    }

    /// The read of that name.
    pub(crate) fn read(&self, name: &str) -> Option<&Read> {
        self.reads.iter().find(|read| read.name == name)
    }
}

impl Quick {
    /// Lay it over the rest.
    pub(crate) fn apply(&self, study: &mut Study) {
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
