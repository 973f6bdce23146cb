// SPDX-License-Identifier: PostgreSQL
//! Arguments of `tally demo`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use command::Workload;
use view::duration::within;

/// Arguments of `tally demo`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tally demo
  tally demo --workload select --clients 16 --seconds 20
  tally demo --once > interval.txt")]
pub struct DemoArgs {
    /// Duration of the load in seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = whole_seconds)]
    pub seconds: Duration,
    /// Number of client connections
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub clients: u32,
    /// Workload: select, tpcb, txid (one contended lock), or a pgbench script
    #[arg(long, value_name = "select|tpcb|txid|FILE", default_value = "tpcb")]
    pub workload: Workload,
    /// Print one interval as text and exit; without a terminal, tally prints all intervals
    #[arg(long)]
    pub once: bool,
    /// Write the report to this file [default: a new file in the temporary directory]
    #[arg(long, value_name = "FILE", conflicts_with = "once")]
    pub report: Option<PathBuf>,
}

fn whole_seconds(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(1), Duration::from_secs(86_400))
}
