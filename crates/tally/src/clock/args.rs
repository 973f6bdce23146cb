// SPDX-License-Identifier: PostgreSQL
//! Arguments of `tally clock`.

use std::time::Duration;

use crate::arguments::interval;
use clap::Args;

/// Arguments of `tally clock`.
#[derive(Debug, Args)]
#[command(after_help = "\
Needs no server, and no right; the tested processors are busy meanwhile, one or two at a time. Where
there are many processors it takes longer than --seconds: every two are compared.

--verify makes a scratch server and measures there what was estimated; that takes some 40 s more.

Exit status: 0 fit, 1 unfit (or failed), 2 wrong usage.

Examples:
  tally clock
  tally clock --seconds 30
  tally clock --verify
  tally clock --json | jq '.sources[] | {name, cost: .loop_cost.typical_seconds}'
  taskset -c 0,1 tally clock        only these processors")]
pub struct ClockArgs {
    /// How long to test, in seconds or with a unit (500ms, 1min)
    #[arg(long, short, value_name = "TIME", default_value = "3", value_parser = interval)]
    pub seconds: Duration,
    /// Check the estimates of what timing costs against a scratch server
    #[arg(long)]
    pub verify: bool,
    /// Print JSON (docs/clock.md)
    #[arg(long)]
    pub json: bool,
}
