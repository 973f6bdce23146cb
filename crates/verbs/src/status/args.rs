// SPDX-License-Identifier: PostgreSQL
//! Arguments of `tally status`.

use clap::Args;

use command::ConnectionFlags;

/// Arguments of `tally status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tally status
  tally status /var/lib/postgresql/15/main
  tally status --json | jq .witness.unexplained_share")]
pub struct StatusArgs {
    /// Segment, data directory or connection string
    pub target: Option<String>,
    /// Connection options
    #[command(flatten)]
    pub connection: ConnectionFlags,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}
