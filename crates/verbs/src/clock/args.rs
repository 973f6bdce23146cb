// SPDX-License-Identifier: PostgreSQL
//! Arguments of `tally clock`.

use std::time::Duration;

use clap::Args;
use command::interval;

/// Arguments of `tally clock`.
#[derive(Debug, Args)]
#[command(after_help = "\
Needs no server and no privileges. It keeps one or two CPUs busy at a time. With many CPUs it takes \
longer than --seconds, because every pair is compared.

--verify measures the estimates on a scratch server, which takes about 40 s more.

Exit status: 0 fit (the clocks are reliable), 1 unfit or failure, 2 usage error.

Examples:
  tally clock
  tally clock --seconds 30
  tally clock --verify
  tally clock --json | jq '.sources[] | [.name, .loop_cost.typical_seconds]'
  taskset -c 0,1 tally clock        test only these CPUs")]
pub struct ClockArgs {
    /// How long to test: seconds, or with a unit (500ms, 1min)
    #[arg(long, short, value_name = "TIME", default_value = "3", value_parser = interval)]
    pub seconds: Duration,
    /// Also check the estimated cost of timing on a scratch server
    #[arg(long)]
    pub verify: bool,
    /// Print JSON (docs/clock.md)
    #[arg(long)]
    pub json: bool,
}
