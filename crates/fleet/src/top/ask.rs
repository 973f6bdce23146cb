// SPDX-License-Identifier: PostgreSQL
//! Runs the query of a pane, or diagnoses the hosts.

use crate::args::FleetTopArgs;
use crate::asking::{asked, window, Asking};
use crate::doctor;
use error::Error;
use fleet_sql::{HostFilter, Query};
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
    only: &HostFilter,
) -> Result<FleetQueryResult<Table>, Failure> {
    let begun = Instant::now();
    let window = range(args);
    let answer =
        asked(window, None, only, args.limit).and_then(|params| asking.query(query, &params));
    match answer {
        Ok(value) => Ok(FleetQueryResult { value, window, seconds: begun.elapsed().as_secs_f64() }),
        Err(error) => Err(failure(&error)),
    }
}

/// Diagnoses the hosts over the time until now; `None`: given up, because `wanted` does not hold any more.
pub(super) fn diagnose(
    args: &FleetTopArgs,
    only: &HostFilter,
    wanted: impl Fn() -> bool,
) -> Option<Result<FleetQueryResult<Table>, Failure>> {
    let begun = Instant::now();
    let window = range(args);
    let Some(root) = &args.root else {
        let text = "diagnoses are made from recordings: specify --root, their directory or bucket";
        return Some(Err(failure(&Error::Usage(text.into()))));
    };
    let hosts =
        doctor::hosts(root, (only.cluster.as_deref(), only.host.as_deref()), window, wanted);
    Some(match hosts {
        Ok(hosts) => {
            let value = doctor::table(&hosts?);
            Ok(FleetQueryResult { value, window, seconds: begun.elapsed().as_secs_f64() })
        }
        Err(error) => Err(failure(&error)),
    })
}

/// The time range, seconds since 1970.
fn range(args: &FleetTopArgs) -> (f64, f64) {
    match args.since {
        Some(since) => window(Some(since), None),
        None => {
            let (_, until) = window(None, None);
            (until - LENGTH.as_secs_f64(), until)
        }
    }
}

fn failure(error: &Error) -> Failure {
    Failure { time: realtime_ns() as f64 * 1e-9, text: error.to_string() }
}
