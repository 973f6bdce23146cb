// SPDX-License-Identifier: PostgreSQL
//! Arguments of `tally cost`.

use std::time::Duration;

use crate::arguments::{positive, Level, Workload};
use clap::Args;
use study::cost::CostOf;
use view::duration::within;

/// Arguments of `tally cost`.
#[derive(Debug, Args)]
#[command(after_help = "\
Without TARGET a scratch server is made and loaded by pgbench. With TARGET that server is
toggled under its own load, and CPU is counted per command handled; this needs the
right to write its segment (the server's user or root).

Examples:
  tally cost
  tally cost --workload select --minutes 10 --margin 0.3
  tally cost --level locks --margin 1.5
  tally cost --of statements --workload distinct
  tally cost --workload misses --set pg_tally.statements=none
  tally cost --minutes 5 /var/lib/postgresql/15/main")]
pub struct CostArgs {
    /// Measure this server under its own load: a segment, data directory or connection string
    pub target: Option<String>,
    /// What is toggled: the level, or the statements alone while the level stays
    #[arg(long, value_enum, default_value_t = CostOf::Level)]
    pub of: CostOf,
    /// The level whose cost is asked, or at which that of the statements is
    #[arg(long, value_enum, default_value_t = Level::Waits)]
    pub level: Level,
    /// How long to measure, placebo included
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = minutes)]
    pub minutes: f64,
    /// What the scratch server's clients do: select, tpcb, txid (one contended lock), distinct
    /// (5,000 statements at random), evicting (10,000, of which 5,000 find room), misses (select with
    /// 2 MB of buffers), or a pgbench script
    #[arg(
        long,
        value_name = "select|tpcb|txid|distinct|evicting|misses|FILE",
        default_value = "tpcb",
        conflicts_with = "target"
    )]
    pub workload: Workload,
    /// Connections of the load
    #[arg(long, value_name = "N", default_value_t = 2, conflicts_with = "target",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub clients: u32,
    /// A setting of the scratch server, the server's own or ours; may be given more than once
    #[arg(long = "set", value_name = "NAME=VALUE", conflicts_with = "target", value_parser = setting)]
    pub settings: Vec<(String, String)>,
    /// The margin for the verdict, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.3, value_parser = percent)]
    pub margin: f64,
    /// Length of a slice; four of them make a quad, on-off-off-on or off-on-on-off
    #[arg(long, value_name = "TIME", default_value = "4ms", value_parser = slice)]
    pub slice: Duration,
    /// Beginning of each slice that is not measured: the caches are still the other level's
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = discard)]
    pub discard: Duration,
    /// Seed of the random order, to repeat a run
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

fn minutes(text: &str) -> Result<f64, String> {
    positive(text, 1440.0)
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("not of the form NAME=VALUE".into()),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    positive(text, 100.0)
}
