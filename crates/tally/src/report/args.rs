// SPDX-License-Identifier: PostgreSQL
//! Arguments of `tally report`.

use std::path::PathBuf;

use clap::Args;
use report::Edge;

/// Arguments of `tally report`.
#[derive(Debug, Args)]
#[command(after_help = "\
DIR is what `tally record -o DIR` has written, or is writing. T is a time of day (14:30), a date
(2026-03-01), both (\"2026-03-01 14:30:00\"), an instant (2026-03-01T14:30:00Z), or so long before
the recording's end (-10m). A page holds everything that it needs and can be sent as it is.

Examples:
  tally report /srv/recording
  tally report /srv/recording -o report.html
  tally report /srv/recording --from -1h -o last-hour.html
  tally cost --json /srv/data >cost.json; tally report /srv/recording --cost cost.json
  tally report /srv/recording --from 14:30 --to 14:45 --json | jq .totals")]
pub struct ReportArgs {
    /// The recording's directory
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Tell of the time from here on
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = Edge::parse)]
    pub from: Option<Edge>,
    /// Tell of the time until then
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = Edge::parse)]
    pub to: Option<Edge>,
    /// Of a recording of several machines, tell of this one
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Tell the cost that `tally cost --json` has measured, rather than one that is reckoned
    #[arg(long, value_name = "FILE")]
    pub cost: Option<PathBuf>,
    /// Write it into this file: a page, unless --text or --json is given
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print text, as without -o
    #[arg(long, conflicts_with = "json")]
    pub text: bool,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}
