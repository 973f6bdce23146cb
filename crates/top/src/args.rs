// SPDX-License-Identifier: PostgreSQL
//! Arguments of `tally top`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use command::interval;
use command::{ConnectionFlags, SamplingFlags};
use report::Edge;
use view::{Sort, SortParser};

/// Arguments of `tally top`.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Examples:
  tally top
  tally top --interval 5 --view waits
  tally top --once --view lwlocks --per-second --interval 60
  tally top --once --json /var/lib/postgresql/15/main | jq '.ledger[0]'
  tally top --json --count 60 > minute.jsonl
  tally top --replay /srv/recording --since 14:30 --speed 10
  tally top --replay /srv/recording --since -1h --once --view statements

With --replay, --once prints the whole recording as a single interval. T is a time of day (14:30), a date \
(2026-03-01), both (\"2026-03-01 14:30:00\"), an instant (2026-03-01T14:30:00Z), or a time before the \
end (-10m).")]
pub struct TopArgs {
    /// Segment, data directory or connection string
    pub target: Option<String>,
    /// Connection options
    #[command(flatten)]
    pub connection: ConnectionFlags,
    /// How to sample a server
    #[command(flatten)]
    pub sampling: SamplingFlags,
    /// Length of an interval: seconds, or with a unit (500ms, 2s, 1min) [default: 1s]
    #[arg(long, short, value_name = "TIME", value_parser = interval)]
    pub interval: Option<Duration>,
    /// Print one interval as text and exit
    #[arg(long)]
    pub once: bool,
    /// Print JSON, one line for each interval (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
    /// Exit after N intervals; prints text unless --json is given
    #[arg(long, short = 'n', value_name = "N", conflicts_with = "once",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Pane to show first; in text output, the only one to print [default in text output: all]
    #[arg(long, value_enum)]
    pub view: Option<View>,
    /// With --view lwlocks: print one table by lock and context, with HELD, ACQUIRE and WAIT per second at level
    /// locks, then the commands
    #[arg(long, requires = "view", conflicts_with = "json")]
    pub per_second: bool,
    /// Sort order; for statements, can also be an activity, such as IO:DataFileRead [default: time]
    #[arg(long, value_name = "KEY", value_parser = SortParser)]
    pub sort: Option<Sort>,
    /// Reverse the sort order
    #[arg(long, short)]
    pub reverse: bool,
    /// Show only rows that contain this text
    #[arg(long, short, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Also show idle accounts, and nested statements
    #[arg(long)]
    pub idle: bool,
    /// Count parallel workers with their leaders
    #[arg(long)]
    pub leaders: bool,
    /// Show the slowest executions of the last hour with their parameters on the page of a statement and in JSON, if the
    /// setting pg_tally.trace_parameters is on. Needs the server's machine, and its user or root. A recording has them if it was
    /// made with record --parameters
    #[arg(long, conflicts_with = "replay")]
    pub parameters: bool,
    /// Do not compare with the kernel's figures (/proc/PID/schedstat)
    #[arg(long)]
    pub no_witness: bool,
    /// Replay a recording made by `tally record`, which may still be running; --interval merges its intervals to
    /// this length, --host selects one of several machines
    #[arg(long, value_name = "DIR|URL", conflicts_with_all = ["target", "leaders", "no_witness"])]
    pub replay: Option<PathBuf>,
    /// With --replay of a bucket of several clusters: the cluster of the machine
    #[arg(long, value_name = "NAME", requires = "replay")]
    pub cluster: Option<String>,
    /// With --replay: start of the time range
    #[arg(long = "since", alias = "from", value_name = "T", allow_hyphen_values = true, value_parser = Edge::parse,
          requires = "replay")]
    pub from: Option<Edge>,
    /// With --replay: end of the time range
    #[arg(long = "until", alias = "to", value_name = "T", allow_hyphen_values = true, value_parser = Edge::parse,
          requires = "replay")]
    pub to: Option<Edge>,
    /// With --replay: speed relative to the original, 0.125 to 1024 [default: 1]
    #[arg(long, value_name = "TIMES", value_parser = speed, requires = "replay")]
    pub speed: Option<f64>,
    /// Use the mouse: click a pane, a column title to sort, a row to open it; the same as key m
    #[arg(long)]
    pub mouse: bool,
    /// Ignore the saved view (saved with key W in $XDG_CONFIG_HOME/pgtally/top.toml)
    #[arg(long)]
    pub no_config: bool,
    /// When the full-screen view ends by itself; `tally demo` sets this to the end of its load.
    #[arg(skip)]
    pub until: Option<Instant>,
}

/// A pane of the live view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum View {
    /// Problems in the last 10 seconds, their causes, and what to do
    Diagnoses,
    /// Phases and activities
    Ledger,
    /// Waits, over all phases
    Waits,
    /// Client messages by kind: time to read and handle them
    Commands,
    /// Sessions and their current activity
    Sessions,
    /// Lightweight locks: held, acquired, waited for (level locks)
    Lwlocks,
    /// Waits for heavyweight locks, deadlock checks, spinlocks (level locks)
    Locks,
    /// Timed functions: calls, inclusive and exclusive time
    Functions,
    /// Statements: time, calls, distribution, and where the time goes
    Statements,
    /// Files, commits, checkpoints, devices, slow operations
    Io,
    /// All panes, one after the other
    All,
}

fn speed(text: &str) -> Result<f64, String> {
    let speeds = SPEEDS;
    match text.parse::<f64>() {
        Ok(times) if speeds.contains(&times) => Ok(times),
        _ => Err(format!("must be between {} and {}", speeds.start(), speeds.end())),
    }
}

/// The time that diagnoses cover.
pub const DIAGNOSED: Duration = Duration::from_secs(10);

/// Default length of an interval.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// The slowest and the fastest replay.
pub const SPEEDS: std::ops::RangeInclusive<f64> = 0.125..=1024.0;
