// SPDX-License-Identifier: PostgreSQL
//! A series: one statistic of one kind of process, over time.

use segment::directory::{Stat, StatKind};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A statistic of the processes of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Series {
    /// "client backend", ...
    pub process: Arc<str>,
    /// Its name, kind and unit. Times have the unit "ticks" here, as in segments; in the tables
    /// it is "ns".
    pub stat: Arc<Stat>,
}

/// A series as files name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SeriesText {
    pub process: Arc<str>,
    pub name: Arc<str>,
    pub kind: Arc<str>,
    pub unit: Arc<str>,
}

fn kind_name(kind: StatKind) -> &'static str {
    match kind {
        StatKind::Account => "account",
        StatKind::Timer => "timer",
        StatKind::Value => "value",
    }
}

impl Series {
    /// Whether its totals are times.
    pub fn is_time(&self) -> bool {
        self.stat.kind != StatKind::Value
    }

    pub(crate) fn text(&self) -> SeriesText {
        let unit = if self.is_time() { "ns" } else { &self.stat.unit };
        SeriesText {
            process: self.process.clone(),
            name: self.stat.name.as_str().into(),
            kind: kind_name(self.stat.kind).into(),
            unit: unit.into(),
        }
    }

    pub(crate) fn of_text(text: &SeriesText) -> Series {
        let kind = match &*text.kind {
            "account" => StatKind::Account,
            "timer" => StatKind::Timer,
            _ => StatKind::Value,
        };
        let unit = if kind == StatKind::Value { &*text.unit } else { "ticks" };
        let stat = Stat::new(text.name.to_string(), kind, unit.to_string());
        Series { process: text.process.clone(), stat: Arc::new(stat) }
    }

    /// The order of series in a file.
    pub(crate) fn order(&self) -> (&str, &str, &'static str) {
        (&self.stat.name, &self.process, kind_name(self.stat.kind))
    }
}
