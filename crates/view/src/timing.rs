// SPDX-License-Identifier: PostgreSQL
//! The columns of a timing, which many tables share.

use segment::interval::Timing;

use crate::table::field::{per, rate, Field};
use crate::table::Unit;

type F = Field<Timing>;

/// Count, total, rates and distribution.
pub const FIELDS: &[F] = &[
    F::new("count", "Count", Unit::Count, |row, _| row.count.into()),
    F::new("per_second", "Rate", Unit::PerSecond, |row, s| rate(row.count, s)).head("COUNT/S"),
    F::new("seconds", "Time", Unit::Seconds, |row, _| row.seconds.into()).head("TOTAL"),
    F::new("sessions", "Sessions", Unit::Sessions, |row, s| per(row.seconds, s))
        .head("S/S")
        .help("average number: seconds per second"),
    F::new("mean_seconds", "Mean", Unit::Seconds, |row, _| row.mean_seconds.into()),
    F::new("min_seconds", "Min", Unit::Seconds, |row, _| row.min_seconds.into()),
    F::new("p50_seconds", "p50", Unit::Seconds, |row, _| row.p50_seconds.into()),
    F::new("p99_seconds", "p99", Unit::Seconds, |row, _| row.p99_seconds.into()),
    F::new("max_seconds", "Max", Unit::Seconds, |row, _| row.max_seconds.into()),
];
