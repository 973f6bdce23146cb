// SPDX-License-Identifier: PostgreSQL
//! `[[read]]`: the figures taken from each cell.

use serde::{Deserialize, Serialize};

/// A figure taken from each cell.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Read {
    pub name: String,
    pub title: Option<String>,
    #[serde(default)]
    pub unit: String,
    pub better: Option<Better>,
    #[serde(default)]
    pub series: bool,
    #[serde(default = "four")]
    pub digits: usize,
    pub of: Option<MeasuredProcesses>,
    pub interval: Option<String>,
    pub per: Option<Divisor>,
    pub sql: Option<String>,
    pub when: Option<When>,
    pub line: Option<String>,
    pub from: Option<From>,
    pub value: Option<String>,
    pub over_base: Option<String>,
    pub series_of: Option<String>,
    pub take: Option<Take>,
}

fn four() -> usize {
    4
}

/// Which direction of change is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    More,
    Less,
}

/// Figures that every study can measure; docs/studies.md lists their units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MeasuredProcesses {
    Throughput,
    LatencyMean,
    LatencyP50,
    LatencyP90,
    LatencyP95,
    LatencyP99,
    LatencyP999,
    LatencyMax,
    Cpu,
    User,
    Kernel,
    Dispatches,
    LoadCpu,
    LoadDispatches,
    InstrumentCpu,
    MachineCpu,
    Seconds,
    Transactions,
    ClockReading,
}

impl MeasuredProcesses {
    /// Its unit; "1" for a plain number.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Throughput => "1/s",
            Self::LatencyMean
            | Self::LatencyP50
            | Self::LatencyP90
            | Self::LatencyP95
            | Self::LatencyP99
            | Self::LatencyP999
            | Self::LatencyMax => "ms",
            Self::Cpu
            | Self::User
            | Self::Kernel
            | Self::LoadCpu
            | Self::InstrumentCpu
            | Self::MachineCpu => "µs",
            Self::Dispatches | Self::LoadDispatches | Self::Transactions => "1",
            Self::Seconds => "s",
            Self::ClockReading => "ns",
        }
    }

    /// Whether it needs pgbench's log of single transactions.
    pub fn is_latency(self) -> bool {
        matches!(
            self,
            Self::LatencyMean
                | Self::LatencyP50
                | Self::LatencyP90
                | Self::LatencyP95
                | Self::LatencyP99
                | Self::LatencyP999
                | Self::LatencyMax
        )
    }

    /// Whether sums over slices are enough to compute it.
    pub fn is_of_slices(self) -> bool {
        matches!(self, Self::Throughput | Self::Cpu | Self::Dispatches | Self::Transactions)
    }
}

/// The divisor of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Divisor {
    Second,
    Transaction,
    Command,
}

/// When a query runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// Before and after the cell; the figure is the difference.
    #[default]
    Change,
    /// After the cell.
    End,
}

/// The program whose output contains the line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum From {
    #[default]
    Instrument,
    Workload,
}

/// How a series becomes one figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Take {
    /// Coefficient of variation: standard deviation / mean.
    Cv,
    Mean,
    Median,
    Min,
    Max,
    P5,
    P95,
}

/// Where a read's figure comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReadSource<'a> {
    Of(MeasuredProcesses),
    Interval(&'a str),
    Sql(&'a str, When),
    Line(&'a str, From),
    Value(&'a str),
    OverBase(&'a str),
    Series(&'a str, Take),
}

impl Read {
    /// Its name in tables.
    pub fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    /// Its title with the unit.
    pub fn heading(&self) -> String {
        match self.unit.as_str() {
            "" | "1" => self.title().to_string(),
            unit => format!("{}, {unit}", self.title()),
        }
    }

    /// Its unit: from the file, or that of a figure that every study measures; `None` if unknown.
    pub fn unit(&self) -> Option<&str> {
        match self.unit.as_str() {
            "" => self.of.map(MeasuredProcesses::unit),
            unit => Some(unit),
        }
    }

    /// Where its figure comes from. Fails unless exactly one of the seven keys is given.
    pub fn source(&self) -> Result<ReadSource<'_>, String> {
        let ways = [
            self.of.map(ReadSource::Of),
            self.interval.as_deref().map(ReadSource::Interval),
            self.sql.as_deref().map(|sql| ReadSource::Sql(sql, self.when.unwrap_or_default())),
            self.line.as_deref().map(|line| ReadSource::Line(line, self.from.unwrap_or_default())),
            self.value.as_deref().map(ReadSource::Value),
            self.over_base.as_deref().map(ReadSource::OverBase),
            self.series_of
                .as_deref()
                .map(|of| ReadSource::Series(of, self.take.unwrap_or(Take::Mean))),
        ];
        let mut given = ways.into_iter().flatten();
        match (given.next(), given.next()) {
            (Some(source), None) => Ok(source),
            _ => Err(format!(
                "read \"{}\": set exactly one of of, interval, sql, line, value, over_base and \
                 series_of",
                self.name
            )),
        }
    }
}
