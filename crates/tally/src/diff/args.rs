// SPDX-License-Identifier: PostgreSQL
//! Arguments of `tally diff`.

use std::path::PathBuf;

use super::comparison::Per;
use super::place::Place;
use clap::Args;

/// Arguments of `tally diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
A and B are recordings (`tally record -o DIR`), or parts of them: DIR@FROM..TO, where FROM and TO are
as for `tally report` and either may be left out. What differs by more than the recordings' own
noise is told apart from what does not.

Examples:
  tally diff before after
  tally diff before after -o diff.html
  tally diff recording@14:00..14:30 recording@15:00..15:30
  tally diff before after --per command --json | jq '.accounts[0]'")]
pub struct DiffArgs {
    /// What B is compared with
    #[arg(value_name = "A", value_parser = Place::parse)]
    pub a: Place,
    /// What is compared
    #[arg(value_name = "B", value_parser = Place::parse)]
    pub b: Place,
    /// Count time by these; without it by commits where there are enough of them, else by commands
    #[arg(long, value_enum)]
    pub per: Option<Per>,
    /// Of recordings of several machines, compare this one
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// The same of B alone
    #[arg(long, value_name = "NAME")]
    pub host_b: Option<String>,
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
