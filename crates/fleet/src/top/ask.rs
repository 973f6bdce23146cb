// SPDX-License-Identifier: PostgreSQL
//! Runs the query of a pane.

use crate::args::FleetTopArgs;
use crate::asking::{asked, window, Asking};
use fleet_sql::{Only, Query};
use report::fleet::{Failure, FleetQueryResult};
use segment::clock::realtime_ns;
use std::time::{Duration, Instant};
use view::table::Table;

/// Length of the time range, unless its start is given.
pub(super) const LENGTH: Duration = Duration::from_secs(15 * 60);

/// Runs a query over the time until now.
pub(super) fn ask(
    args: &FleetTopArgs,
    asking: &Asking,
    query: &Query,
    only: &Only,
) -> Result<FleetQueryResult<Table>, Failure> {
    let begun = Instant::now();
    let window = match args.since {
        Some(since) => window(Some(since), None),
        None => {
            let (_, until) = window(None, None);
            (until - LENGTH.as_secs_f64(), until)
        }
    };
    let answer =
        asked(window, None, only, args.limit).and_then(|params| asking.query(query, &params));
    match answer {
        Ok(value) => Ok(FleetQueryResult { value, window, seconds: begun.elapsed().as_secs_f64() }),
        Err(error) => Err(Failure { time: realtime_ns() as f64 * 1e-9, text: error.to_string() }),
    }
}
