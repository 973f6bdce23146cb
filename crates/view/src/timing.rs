// SPDX-License-Identifier: PostgreSQL
//! The columns of a timing, which many tables have.

use segment::interval::Timing;

use crate::table::field::{per, rate, Field};
use crate::table::Unit;

type F = Field<Timing>;

/// Count, total, rates and distribution.
pub const FIELDS: &[F] = &[
    F::new("count", "Count", Unit::Count, |it, _| it.count.into()),
    F::new("per_second", "Rate", Unit::PerSecond, |it, s| rate(it.count, s)).head("COUNT/S"),
    F::new("seconds", "Time", Unit::Seconds, |it, _| it.seconds.into()).head("TOTAL"),
    F::new("sessions", "Sessions", Unit::Sessions, |it, s| per(it.seconds, s))
        .head("S/S")
        .help("average number: seconds per second"),
    F::new("mean_seconds", "Mean", Unit::Seconds, |it, _| it.mean_seconds.into()),
    F::new("min_seconds", "Min", Unit::Seconds, |it, _| it.min_seconds.into()),
    F::new("p50_seconds", "p50", Unit::Seconds, |it, _| it.p50_seconds.into()),
    F::new("p99_seconds", "p99", Unit::Seconds, |it, _| it.p99_seconds.into()),
    F::new("max_seconds", "Max", Unit::Seconds, |it, _| it.max_seconds.into()),
];
