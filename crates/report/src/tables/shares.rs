// SPDX-License-Identifier: PostgreSQL
//! Columns and figures that several tables share.

use segment::interval::{Interval, Timing};
use view::choose;
use view::document::{Column, Unit};
use view::table::field::Picked;
use view::timing::FIELDS;

/// Share of the time in which sessions were not idle.
pub(super) fn share(seconds: f64, interval: &Interval) -> Option<f64> {
    (interval.busy_seconds > 0.0).then(|| seconds / interval.busy_seconds)
}

/// Per item; `None` without items.
pub(super) fn each(seconds: f64, of: u64) -> Option<f64> {
    (of > 0).then(|| seconds / of as f64)
}

pub(super) const SECONDS: Column = Column::new("seconds", "Time", Unit::Seconds);

/// Count, rate, mean, median, 99th percentile, maximum.
pub(super) fn timing() -> Picked<Timing> {
    Picked::of_document(choose!(
        FIELDS,
        "count:4, per_second:5, mean_seconds:1, p50_seconds:7, p99_seconds:2, max_seconds:3"
    ))
}
