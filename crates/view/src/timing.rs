// SPDX-License-Identifier: PostgreSQL
//! The columns of a timing, which many tables share.

use segment::interval::Timing;

use crate::measured::Measured;
use crate::table::field::{per, rate, Field};
use crate::table::{Cell, Tone, Unit};

type F = Field<Timing>;

/// Count, total, rates and distribution.
pub const FIELDS: &[F] = &[
    F::new("count", "Count", Unit::Count, |row, _| row.known_count().into()),
    F::new("per_second", "Rate", Unit::PerSecond, |row, s| {
        row.known_count().map_or(Cell::Empty, |count| rate(count, s))
    })
    .head("COUNT/S"),
    F::new("seconds", "Time", Unit::Seconds, |row, _| seconds(row)).head("TOTAL"),
    F::new("sessions", "Sessions", Unit::Sessions, sessions)
        .head("S/S")
        .help("average number: seconds per second"),
    F::new("mean_seconds", "Mean", Unit::Seconds, |row, _| row.mean_seconds.into()),
    F::new("min_seconds", "Min", Unit::Seconds, |row, _| row.min_seconds.into()),
    F::new("p50_seconds", "p50", Unit::Seconds, |row, _| row.p50_seconds.into()),
    F::new("p99_seconds", "p99", Unit::Seconds, |row, _| row.p99_seconds.into()),
    F::new("max_seconds", "Max", Unit::Seconds, |row, _| row.max_seconds.into()),
];

/// In place of a figure that samples cannot tell apart.
pub const UNKNOWN: &str = "?";

/// The same as a cell.
pub fn refused() -> Cell {
    Cell::Rounded { text: UNKNOWN.into(), exact: None, tone: Tone::Plain }
}

/// A figure, unless samples cannot tell it apart.
pub fn told(figure: f64, is_unknown: bool) -> Cell {
    if is_unknown {
        refused()
    } else {
        figure.into()
    }
}

/// The time; of samples, with its half-width.
pub fn seconds(row: &Timing) -> Cell {
    if row.refused {
        return refused();
    }
    row.half_width_seconds
        .map_or_else(|| row.seconds.into(), |half| Cell::Estimate(Measured::new(row.seconds, half)))
}

/// The average number of sessions over this time, in the same way.
pub fn sessions(row: &Timing, length: f64) -> Cell {
    if row.refused {
        return refused();
    }
    let average = row.seconds / length.max(1e-9);
    row.half_width_seconds.map_or_else(
        || per(row.seconds, length),
        |half| Cell::Estimate(Measured::new(average, half / length.max(1e-9))),
    )
}
