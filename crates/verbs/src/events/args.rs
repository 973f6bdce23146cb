// SPDX-License-Identifier: PostgreSQL
//! Arguments of `tally events`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use view::duration::parse as duration;

use command::ConnectionFlags;

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
    /// Segment, data directory or connection string
    pub target: Option<String>,
    /// Connection options
    #[command(flatten)]
    pub connection: ConnectionFlags,
    /// Keep printing new events until interrupted, even if the server restarts
    #[arg(long, short)]
    pub follow: bool,
    /// Only events after this number (`number` in --json), or within this time (10min, 90s, ...)
    #[arg(long, value_name = "NUMBER|TIME", conflicts_with = "last")]
    pub since: Option<Since>,
    /// Print only the last N stored events; with --follow, then continue with new ones
    #[arg(long, short = 'n', value_name = "N")]
    pub last: Option<usize>,
    /// Only events of these kinds
    #[arg(long, value_enum, value_delimiter = ',', value_name = "KIND")]
    pub kind: Vec<EventKind>,
    /// Only events of this process; can be repeated
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..))]
    pub pid: Vec<i32>,
    /// Print JSON, one line for each event (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

/// Where the list of events starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// After the event with this number.
    Number(u64),
    /// This long ago.
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

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EventKind {
    /// Information
    Note,
    /// Something was left out or lost
    Warning,
    /// A process waited long for a lock, and who held it
    Blocked,
    /// An operation or wait that took longer than pg_tally.slow_threshold
    Slow,
    /// A checkpoint starts or ends
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
    fn since_is_a_number_or_a_time() {
        let since = |text: &str| text.parse::<Since>();
        assert_eq!(since("42"), Ok(Since::Number(42)));
        assert_eq!(since("10min"), Ok(Since::Ago(Duration::from_secs(600))));
        for bad in ["", "-1", "soon", "10weeks"] {
            assert!(since(bad).is_err(), "{bad}");
        }
    }
}
