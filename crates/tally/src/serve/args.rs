// SPDX-License-Identifier: PostgreSQL
//! Arguments of `tally serve`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use view::duration::within;

/// Arguments of `tally serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
The page shows the last minutes, which are kept in memory; /metrics has everything since the
segment was made (docs/reference-metrics.md). Nothing can be changed by what is served.

Whoever can reach the address could read the server's statements, so a token is asked for: a random
one, in the line that says how to open the page, or the one in --token-file, which stays the same.
Scrapers send it as \"Authorization: Bearer TOKEN\". A socket (unix:PATH) is its owner's alone and
needs none. Only this machine can reach it, unless --listen names another address; then
--token-file is needed.

Examples:
  tally serve
  tally serve --listen 127.0.0.1:0 --history 30min /var/lib/postgresql/15/main
  tally serve --statements 20
  openssl rand -hex 32 >token; chmod 600 token; tally serve --listen 0.0.0.0:9188 --token-file token
  tally serve --listen unix:/run/pgtally.sock")]
pub struct ServeArgs {
    /// The segment, data directory or connection string
    pub target: Option<String>,
    /// The address to listen on, or unix:PATH; port 0: one that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9188")]
    pub listen: super::Place,
    /// Let in who knows the token in this file, instead of one made at random
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Ask for no token: any user of this machine can read the page and the metrics
    #[arg(long, conflicts_with = "token_file")]
    pub no_token: bool,
    /// Length of an interval
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = served_interval)]
    pub interval: Duration,
    /// How long intervals are kept for the page, at least
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = served_history)]
    pub history: Duration,
    /// Tell of so many statements by name in the metrics, and of all others together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=500))]
    pub statements: Option<u32>,
    /// Print where it is served as JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

fn served_interval(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(100), Duration::from_secs(60))
}

fn served_history(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(60), Duration::from_secs(3600))
}
