// SPDX-License-Identifier: PostgreSQL
//! Arguments of `tally cost`.

use std::time::Duration;

use crate::study::cost::CostOf;
use clap::Args;
use command::ConnectionFlags;
use command::{positive, Level, Workload};
use view::duration::within;

/// Arguments of `tally cost`.
#[derive(Debug, Args)]
#[command(after_help = "\
Without TARGET, pgbench runs on a scratch server. With TARGET, tally toggles that server's level \
under its own load and reports CPU time per command; this requires write access to its segment (run \
it as the server's user or root).

Examples:
  tally cost
  tally cost --workload select --for 10min --margin 0.3
  tally cost --level locks --margin 1.5
  tally cost --of statements --workload distinct
  tally cost --workload misses --set pg_tally.statements=none
  tally cost --for 5min /var/lib/postgresql/15/main")]
pub struct CostArgs {
    /// Server to measure under its own load: a segment, data directory or connection string
    pub target: Option<String>,
    /// How to connect to the server
    #[command(flatten)]
    pub connection: ConnectionFlags,
    /// What to toggle: the level, or statements only, at a fixed level
    #[arg(long, value_enum, default_value_t = CostOf::Level)]
    pub of: CostOf,
    /// Level to measure; with --of statements, the level to hold
    #[arg(long, value_enum, default_value_t = Level::Waits)]
    pub level: Level,
    /// Total measurement time, including the placebo
    #[arg(long = "for", value_name = "TIME", default_value = "10min", value_parser = length)]
    pub length: Duration,
    /// The same in minutes, for scripts that were written for earlier versions
    #[arg(long, hide = true, value_name = "N", value_parser = minutes, conflicts_with = "length")]
    pub minutes: Option<f64>,
    /// Workload on the scratch server: select, tpcb, txid (one contended lock), distinct (5,000
    /// random statements), evicting (10,000, twice as many as fit), misses (select with 2 MB of
    /// shared buffers), or a pgbench script
    #[arg(
        long,
        value_name = "select|tpcb|txid|distinct|evicting|misses|FILE",
        default_value = "tpcb",
        conflicts_with = "target"
    )]
    pub workload: Workload,
    /// Number of client connections
    #[arg(long, value_name = "N", default_value_t = 2, conflicts_with = "target",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub clients: u32,
    /// Set a parameter of the scratch server; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", conflicts_with = "target", value_parser = setting)]
    pub settings: Vec<(String, String)>,
    /// Largest acceptable cost, in percent, for the verdict
    #[arg(long, value_name = "PERCENT", default_value_t = 0.3, value_parser = percent)]
    pub margin: f64,
    /// Length of a slice; four slices make a quad, on-off-off-on or off-on-on-off
    #[arg(long, value_name = "TIME", default_value = "4ms", value_parser = slice)]
    pub slice: Duration,
    /// Time to discard at the start of each slice, while caches still hold the other level's code
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = discard)]
    pub discard: Duration,
    /// Seed for the random order, to repeat a run
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print JSON (docs/cost.md)
    #[arg(long)]
    pub json: bool,
}

fn slice(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(1), Duration::from_secs(10))
}

fn discard(text: &str) -> Result<Duration, String> {
    within(text, Duration::ZERO, Duration::from_secs(10))
}

fn length(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(1), Duration::from_secs(86_400))
}

fn minutes(text: &str) -> Result<f64, String> {
    positive(text, 1440.0)
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("must have the form NAME=VALUE".into()),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    positive(text, 100.0)
}
