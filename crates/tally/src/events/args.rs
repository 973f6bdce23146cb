// SPDX-License-Identifier: PostgreSQL
//! Arguments of `tally events`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use view::duration::parse as duration;

/// Arguments of `tally events`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sudo -u postgres tally events
  tally events --follow
  tally events -f --last 0 --kind slow,blocked
  tally events --since 10min --pid 4711
  tally events --json | jq -r 'select(.kind == \"slow\") | .text'")]
pub struct EventsArgs {
    /// The segment, data directory or connection string
    pub target: Option<String>,
    /// Go on with what comes, until interrupted; also across restarts of the server
    #[arg(long, short)]
    pub follow: bool,
    /// Only those after the event of this number (--json tells it), or of this last time (10min, 90s)
    #[arg(long, value_name = "NUMBER|TIME", conflicts_with = "last")]
    pub since: Option<Since>,
    /// Only the last N of those there are; with --follow, before those that come
    #[arg(long, short = 'n', value_name = "N")]
    pub last: Option<usize>,
    /// Only of these kinds
    #[arg(long, value_enum, value_delimiter = ',', value_name = "KIND")]
    pub kind: Vec<EventKind>,
    /// Only of this process; may be repeated
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..))]
    pub pid: Vec<i32>,
    /// Print JSON, one line per event (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

/// Where events begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// After this one.
    Number(u64),
    /// So long ago.
    Ago(Duration),
}

impl std::str::FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(number) => Ok(Self::Number(number)),
            Err(_) => duration(text).map(Self::Ago),
        }
    }
}

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EventKind {
    /// Information
    Note,
    /// Something was left out or lost
    Warning,
    /// One process kept another waiting for long
    Blocked,
    /// An operation that took long
    Slow,
    /// A checkpoint begins or ends
    Checkpoint,
}

impl From<EventKind> for segment::EventKind {
    fn from(kind: EventKind) -> Self {
        match kind {
            EventKind::Note => Self::Note,
            EventKind::Warning => Self::Warning,
            EventKind::Blocked => Self::Blocked,
            EventKind::Slow => Self::Slow,
            EventKind::Checkpoint => Self::Checkpoint,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_begin_after_a_number_or_some_time_ago() {
        let since = |text: &str| text.parse::<Since>();
        assert_eq!(since("42"), Ok(Since::Number(42)));
        assert_eq!(since("10min"), Ok(Since::Ago(Duration::from_secs(600))));
        for bad in ["", "-1", "soon", "10weeks"] {
            assert!(since(bad).is_err(), "{bad}");
        }
    }
}
