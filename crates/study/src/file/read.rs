// SPDX-License-Identifier: PostgreSQL
//! What is read in a cell.

use serde::{Deserialize, Serialize};

/// A figure of each cell.
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
    pub of: Option<Measured>,
    pub interval: Option<String>,
    pub per: Option<Per>,
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

/// Which way is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    More,
    Less,
}

/// What the engine itself measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measured {
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

impl Measured {
    /// Of single transactions, so that pgbench must keep its log of them.
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

    /// What follows from sums over slices.
    pub fn is_of_slices(self) -> bool {
        matches!(self, Self::Throughput | Self::Cpu | Self::Dispatches | Self::Transactions)
    }
}

/// What a figure is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Per {
    Second,
    Transaction,
    Command,
}

/// When a query is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    #[default]
    Change,
    End,
}

/// Whose output a line is looked for in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum From {
    #[default]
    Instrument,
    Workload,
}

/// What is taken of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Take {
    Cv,
    Mean,
    Median,
    Min,
    Max,
    P5,
    P95,
}

/// Where a read has its figure from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Source<'a> {
    Of(Measured),
    Interval(&'a str),
    Sql(&'a str, When),
    Line(&'a str, From),
    Value(&'a str),
    OverBase(&'a str),
    Series(&'a str, Take),
}

impl Read {
    /// As it is called in tables.
    pub fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    /// With its unit.
    pub fn heading(&self) -> String {
        match self.unit.as_str() {
            "" | "1" => self.title().to_string(),
            unit => format!("{}, {unit}", self.title()),
        }
    }

    /// Where its figure comes from: exactly one of the seven, or the error in words.
    pub fn source(&self) -> Result<Source<'_>, String> {
        let ways = [
            self.of.map(Source::Of),
            self.interval.as_deref().map(Source::Interval),
            self.sql.as_deref().map(|sql| Source::Sql(sql, self.when.unwrap_or_default())),
            self.line.as_deref().map(|line| Source::Line(line, self.from.unwrap_or_default())),
            self.value.as_deref().map(Source::Value),
            self.over_base.as_deref().map(Source::OverBase),
            self.series_of.as_deref().map(|of| Source::Series(of, self.take.unwrap_or(Take::Mean))),
        ];
        let mut given = ways.into_iter().flatten();
        match (given.next(), given.next()) {
            (Some(source), None) => Ok(source),
            _ => Err(format!(
                "read \"{}\": exactly one of of, interval, sql, line, value, over_base and \
                 series_of says what it is",
                self.name
            )),
        }
    }
}
