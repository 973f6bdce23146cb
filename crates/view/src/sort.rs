// SPDX-License-Identifier: PostgreSQL
//! Orders of rows.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::ValueEnum;

/// An order of rows. A pane without the column in question orders by time.
#[derive(Debug, Clone, Default, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Most time first
    #[default]
    #[value(alias = "total")]
    Time,
    /// Most calls first
    #[value(name = "calls", alias = "count")]
    Count,
    /// Largest mean first
    Mean,
    /// Largest 99th percentile first
    P99,
    /// Largest maximum first
    Max,
    /// Most rows first
    Rows,
    /// Most CPU time first
    Cpu,
    /// Most I/O time first
    Io,
    /// Most time waiting for heavyweight locks first
    Lock,
    /// Most time waiting for lightweight locks first
    Lwlock,
    /// Most time waiting for the client first
    Client,
    /// Most time waiting for other processes first
    Ipc,
    /// By name
    Name,
    /// Most time in this activity first, in small letters
    #[value(skip)]
    Activity(String),
}

impl Sort {
    /// Its name on the command line.
    pub fn name(&self) -> String {
        match (self, self.to_possible_value()) {
            (Self::Activity(name), _) => name.clone(),
            (_, value) => value.map_or_else(String::new, |value| value.get_name().to_string()),
        }
    }

    /// Parses a name from the command line.
    pub fn named(text: &str) -> Result<Self, String> {
        match text.contains(':') {
            true => Ok(Self::Activity(text.to_lowercase())),
            false => Self::from_str(text, false).map_err(|_| format!("\"{text}\" is no order")),
        }
    }
}

/// Parses one of the orders, or an activity.
#[derive(Debug, Clone, Copy)]
pub struct SortParser;

impl TypedValueParser for SortParser {
    type Value = Sort;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Sort, clap::Error> {
        match value.to_str() {
            Some(text) if text.contains(':') => Ok(Sort::Activity(text.to_lowercase())),
            _ => clap::builder::EnumValueParser::new().parse_ref(command, arg, value),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Sort::value_variants().iter().filter_map(ValueEnum::to_possible_value)))
    }
}
