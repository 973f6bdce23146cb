// SPDX-License-Identifier: PostgreSQL
//! Arguments of `tally diff`.

use super::comparison::DiffUnit;
use super::selection::Selection;
use clap::Args;

use command::DocumentOutput;

/// Arguments of `tally diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
A and B are recordings (`tally record -o DIR`), or parts of them: DIR@FROM..TO, where FROM and TO have the \
same form as in `tally report`, and either may be omitted. Changes that the recordings' own noise \
could explain are listed separately.

Examples:
  tally diff before after
  tally diff before after -o diff.html
  tally diff recording@14:00..14:30 recording@15:00..15:30
  tally diff before after --per command --json | jq '.accounts[0]'")]
pub struct DiffArgs {
    /// Baseline recording (before)
    #[arg(value_name = "A", value_parser = Selection::parse)]
    pub a: Selection,
    /// Recording to compare with it (after)
    #[arg(value_name = "B", value_parser = Selection::parse)]
    pub b: Selection,
    /// Express time per commit, per command or per second [default: per commit if there are enough commits, else
    /// per command; per second if no clients were recorded]
    #[arg(long, value_enum)]
    pub per: Option<DiffUnit>,
    /// With recordings of several machines: the machine to compare
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// With a bucket of several clusters: the cluster of the machine
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// The machine of B, if it differs from A's
    #[arg(long, value_name = "NAME")]
    pub host_b: Option<String>,
    /// Where to write it, and in which format.
    #[command(flatten)]
    pub output: DocumentOutput,
}
