// SPDX-License-Identifier: PostgreSQL
//! Arguments of `tally top`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::arguments::interval;
use clap::{Args, ValueEnum};
use report::Edge;
use view::{Sort, SortParser};

/// Arguments of `tally top`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tally top
  tally top --interval 5 --view waits
  tally top --once --view lwlocks --per-second --interval 60
  tally top --once --json /var/lib/postgresql/15/main | jq '.ledger[0]'
  tally top --json --count 60 > minute.jsonl
  tally top --replay /srv/recording --from 14:30 --speed 10
  tally top --replay /srv/recording --from -1h --once --view statements

Of a recording, --once is all of it as one interval. T is a time of day (14:30), a date (2026-03-01),
both (\"2026-03-01 14:30:00\"), an instant (2026-03-01T14:30:00Z), or so long before its end (-10m).")]
pub struct TopArgs {
    /// The segment, data directory or connection string
    pub target: Option<String>,
    /// Length of an interval: seconds, or with a unit (500ms, 2s, 1min); 1 s unless said otherwise
    #[arg(long, short, value_name = "TIME", value_parser = interval)]
    pub interval: Option<Duration>,
    /// Print one interval as text and end
    #[arg(long)]
    pub once: bool,
    /// Print JSON, one line per interval (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
    /// End after so many intervals; as text unless --json is given
    #[arg(long, short = 'n', value_name = "N", conflicts_with = "once",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// What to show first; as text, all of it unless this says otherwise
    #[arg(long, value_enum)]
    pub view: Option<View>,
    /// With --view lwlocks: one table a lock and context, held, acquired and waited for, per second
    /// of level locks, and the commands below it
    #[arg(long, requires = "view", conflicts_with = "json")]
    pub per_second: bool,
    /// Order of the rows, by time unless said otherwise; of statements also an activity, such as
    /// IO:DataFileRead
    #[arg(long, value_name = "KEY", value_parser = SortParser)]
    pub sort: Option<Sort>,
    /// The other way round
    #[arg(long, short)]
    pub reverse: bool,
    /// Only rows that contain this text
    #[arg(long, short, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Show the idle accounts as well, and the statements nested in others
    #[arg(long)]
    pub idle: bool,
    /// Count parallel workers with their leaders
    #[arg(long)]
    pub leaders: bool,
    /// Do not compare with the kernel's own accounts (/proc/PID/schedstat)
    #[arg(long)]
    pub no_witness: bool,
    /// Play a recording that `tally record` has made, or is making, instead of watching a server;
    /// --interval puts its intervals together to this length
    #[arg(long, value_name = "DIR", conflicts_with_all = ["target", "leaders", "no_witness"])]
    pub replay: Option<PathBuf>,
    /// Of a recording: from here on
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = Edge::parse,
          requires = "replay")]
    pub from: Option<Edge>,
    /// Of a recording: until then
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = Edge::parse,
          requires = "replay")]
    pub to: Option<Edge>,
    /// Of a recording of several machines: this one
    #[arg(long, value_name = "NAME", requires = "replay")]
    pub host: Option<String>,
    /// Play a recording so many times as fast as it was, from 0.125 to 1024; 1 unless said
    /// otherwise
    #[arg(long, value_name = "TIMES", value_parser = speed, requires = "replay")]
    pub speed: Option<f64>,
    /// Listen to the mouse: click a pane, a column (its order) or a row; key m does the same
    #[arg(long)]
    pub mouse: bool,
    /// Pass over what the key W of the full-screen view saved ($XDG_CONFIG_HOME/pgtally/top.toml)
    #[arg(long)]
    pub no_config: bool,
    /// When the full-screen view ends by itself; `tally demo` sets it to the end of its load
    #[arg(skip)]
    pub until: Option<Instant>,
}

/// A pane of the live view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum View {
    /// Phases and activities
    Ledger,
    /// Waits over all phases
    Waits,
    /// Messages by kind: read and handle times
    Commands,
    /// The sessions and what each is in the middle of
    Sessions,
    /// Lightweight locks: held, acquired, waited for (level locks)
    Lwlocks,
    /// Heavyweight locks waited for, deadlock checks, spinlocks (level locks)
    Locks,
    /// Functions with a probe: calls, inclusive and exclusive time
    Functions,
    /// Statements: time, calls, how long they take and on what
    Statements,
    /// Files, commits, checkpoints, the devices below, and what was slow
    Io,
    /// All of these, one after the other
    All,
}

fn speed(text: &str) -> Result<f64, String> {
    let speeds = crate::top::SPEEDS;
    match text.parse::<f64>() {
        Ok(times) if speeds.contains(&times) => Ok(times),
        _ => Err(format!("must be from {} to {}", speeds.start(), speeds.end())),
    }
}
