// SPDX-License-Identifier: PostgreSQL
//! Arguments of `tally report`.

use std::path::PathBuf;

use clap::Args;

use command::DocumentOutput;
use report::Edge;

/// Arguments of `tally report`.
#[derive(Debug, Args)]
#[command(after_help = "\
DIR is a recording made by `tally record -o DIR`, which may still be running, or the URL of a bucket that \
recordings are shipped to (s3://BUCKET/PREFIX, gs://, az://, file:///DIRECTORY). T is a time of day (14:30), \
a date (2026-03-01), both (\"2026-03-01 14:30:00\"), an instant (2026-03-01T14:30:00Z), or a time \
before the end (-10m). An HTML page is one file without dependencies.

Examples:
  tally report /srv/recording
  tally report /srv/recording -o report.html
  tally report /srv/recording --since -1h -o last-hour.html
  tally report s3://bucket/pgtally --host db1 --since -1h
  tally cost --json /srv/data > cost.json
  tally report /srv/recording --cost cost.json
  tally report /srv/recording --client /srv/shop -o report.html
  tally report /srv/recording --trace slow.jsonl -o report.html
  tally report /srv/recording --since 14:30 --until 14:45 --json | jq .totals")]
pub struct ReportArgs {
    /// Directory of the recording, or a bucket
    #[arg(value_name = "DIR|URL")]
    pub directory: PathBuf,
    /// Start of the time range to report
    #[arg(long = "since", alias = "from", value_name = "T", allow_hyphen_values = true, value_parser = Edge::parse)]
    pub from: Option<Edge>,
    /// End of the time range to report
    #[arg(long = "until", alias = "to", value_name = "T", allow_hyphen_values = true, value_parser = Edge::parse)]
    pub to: Option<Edge>,
    /// With a recording of several machines: the machine to report on
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// With a bucket of several clusters: the cluster of the machine
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// Recording of a client of this server over the same time, made from the client's segment [default:
    /// DIR/client, if it exists]
    #[arg(long, value_name = "DIR")]
    pub client: Option<PathBuf>,
    /// Trace of sessions over the same time, written by `tally trace -o FILE.jsonl`
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Also report the overhead that `tally cost --json` measured, from this file
    #[arg(long, value_name = "FILE")]
    pub cost: Option<PathBuf>,
    /// Where to write it, and in which format.
    #[command(flatten)]
    pub output: DocumentOutput,
}
