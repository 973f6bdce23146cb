// SPDX-License-Identifier: PostgreSQL
//! Sort orders of rows.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::ValueEnum;
use error::Error;
use segment::{wait_names, Segment};

/// A sort order of rows. A pane without the column in question sorts by time.
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
    /// Most time in this activity first; holds its canonical name in lower case
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
            true => Self::by_activity(text),
            false => {
                Self::from_str(text, false).map_err(|_| format!("\"{text}\" is not a sort order"))
            }
        }
    }

    /// The order by an activity, under any name that a server version uses for it.
    fn by_activity(name: &str) -> Result<Self, String> {
        wait_names::check(name)?;
        Ok(Self::Activity(wait_names::canonical(name).to_lowercase()))
    }

    /// Fails, and proposes other orders, if this is the order by an activity that the server does not have.
    pub fn check_on(&self, segment: &Segment) -> Result<(), Error> {
        let Self::Activity(name) = self else { return Ok(()) };
        let there = segment.activities()?;
        let there: Vec<&str> = there.iter().map(String::as_str).collect();
        wait_names::check_on(name, &there).map_err(Error::Usage)
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
            Some(text) if text.contains(':') => Sort::by_activity(text).map_err(|why| {
                let option = arg.map_or_else(String::new, |arg| format!(" for '{arg}'"));
                let text = format!("invalid value '{text}'{option}: {why}");
                command.clone().error(ErrorKind::ValueValidation, text)
            }),
            _ => clap::builder::EnumValueParser::new().parse_ref(command, arg, value),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Sort::value_variants().iter().filter_map(ValueEnum::to_possible_value)))
    }
}
