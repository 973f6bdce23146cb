// SPDX-License-Identifier: PostgreSQL
//! A value of a table or a chart, its unit, and how it is formatted.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::tz::TimeZone;
use jiff::Timestamp;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

use super::Tone;
use crate::measured::{behind, relative, Measured};
use crate::units::{bytes, count, duration, percent, two, whole};

/// Bytes per MB.
const MEGABYTE: f64 = 1024.0 * 1024.0;

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Text.
    Text,
    /// Text shown in a fixed-width font.
    Id,
    /// A whole number.
    Count,
    /// Seconds.
    Seconds,
    /// A fraction of a whole, 0 to 1.
    Share,
    /// A change relative to what was there before: 0.2 for a fifth more.
    Change,
    /// Events per second.
    PerSecond,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Average number of sessions: seconds per second.
    Sessions,
    /// Any other figure.
    Number,
    /// A time of day: seconds since 1970.
    Time,
}

impl Unit {
    /// Whether values of this unit are right-aligned.
    pub fn is_figure(self) -> bool {
        !matches!(self, Unit::Text | Unit::Id | Unit::Time)
    }
}

/// A value.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// No value.
    Empty,
    /// Text.
    Text(Arc<str>),
    /// A whole number.
    Whole(u64),
    /// A number.
    Number(f64),
    /// An estimate from samples. A program reads its value; its half-width is beside the value (see [`super::Table`]).
    Estimate(#[serde(serialize_with = "only_value")] Measured),
    /// A figure that is already rounded for people.
    #[serde(serialize_with = "only_exact")]
    Rounded {
        /// The text for people: "12.3 ± 0.4".
        text: Arc<str>,
        /// Its exact value; `None` if unknown.
        exact: Option<f64>,
        /// Its significance.
        tone: Tone,
    },
}

fn only_exact<S: Serializer>(
    _: &Arc<str>,
    exact: &Option<f64>,
    _: &Tone,
    to: S,
) -> Result<S::Ok, S::Error> {
    exact.serialize(to)
}

fn only_value<S: Serializer>(estimate: &Measured, to: S) -> Result<S::Ok, S::Error> {
    estimate.value.serialize(to)
}

/// "~12.3 s ± 0.80". Tables have many shares, so these have their half-widths only where a program reads them.
fn estimated(estimate: Measured, unit: Unit, shares: impl Fn(f64) -> String) -> String {
    let text = match unit {
        Unit::Seconds => estimate.duration(),
        Unit::Sessions => estimate.number(),
        Unit::Share => shares(estimate.value),
        _ => behind(number(estimate.value, unit), estimate.half_width.map(|n| number(n, unit))),
    };
    format!("~{text}")
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.into())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text.into())
    }
}

impl From<&Arc<str>> for Cell {
    fn from(text: &Arc<str>) -> Cell {
        Cell::Text(text.clone())
    }
}

impl From<u64> for Cell {
    fn from(n: u64) -> Cell {
        Cell::Whole(n)
    }
}

impl From<f64> for Cell {
    fn from(n: f64) -> Cell {
        if n.is_finite() {
            // The sum of no numbers is -0, which would be shown as such.
            Cell::Number(n + 0.0)
        } else {
            Cell::Empty
        }
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Empty, Into::into)
    }
}

impl Cell {
    /// Whether it is not a figure, or zero.
    pub fn is_nothing(&self) -> bool {
        match self {
            Cell::Empty | Cell::Whole(0) => true,
            Cell::Text(text) => text.is_empty(),
            Cell::Number(number) => *number == 0.0,
            _ => false,
        }
    }

    /// The value for people; times of day are in `zone`.
    pub fn shown(&self, unit: Unit, zone: &TimeZone) -> String {
        match self {
            Cell::Empty => String::new(),
            Cell::Text(text) | Cell::Rounded { text, .. } => text.to_string(),
            Cell::Estimate(estimate) => estimated(*estimate, unit, |n| number(n, unit)),
            Cell::Whole(n) if matches!(unit, Unit::Count | Unit::Number) => whole(*n),
            Cell::Whole(n) => shown(*n as f64, unit, zone),
            Cell::Number(n) => shown(*n, unit, zone),
        }
    }

    /// The value below this title, without the unit if the title has it; "-" if there is no value.
    pub fn below(&self, title: &str, unit: Unit) -> Cow<'_, str> {
        // "%IO", "Images%"; "CALLS/S", "A a second"; "MB/S".
        let has_unit = match unit {
            Unit::Share => title.contains('%'),
            Unit::PerSecond => ["/s", "/S", "a second"].iter().any(|of| title.contains(of)),
            Unit::BytesPerSecond => title.contains("MB/"),
            _ => true,
        };
        let n = match self {
            Cell::Empty => return "-".into(),
            Cell::Text(text) | Cell::Rounded { text, .. } => return text.as_ref().into(),
            Cell::Estimate(estimate) => {
                let share = |n| if has_unit { percent(n) } else { number(n, unit) };
                return estimated(*estimate, unit, share).into();
            }
            Cell::Whole(n) => *n as f64,
            Cell::Number(n) => *n,
        };
        Cow::Owned(match unit {
            _ if !has_unit => number(n, unit),
            Unit::Share => percent(n),
            Unit::PerSecond => count(n),
            Unit::BytesPerSecond => two(n / MEGABYTE),
            _ => number(n, unit),
        })
    }

    /// Half the width of the 95 % interval of an estimate.
    pub fn half_width(&self) -> Option<f64> {
        match self {
            Cell::Estimate(estimate) => estimate.half_width,
            _ => None,
        }
    }

    /// The value as a program reads it; empty if there is no value.
    pub fn exact(&self) -> String {
        match self {
            Cell::Empty => String::new(),
            Cell::Text(text) => text.to_string(),
            Cell::Whole(n) => n.to_string(),
            Cell::Number(n) => n.to_string(),
            Cell::Estimate(estimate) => estimate.value.to_string(),
            Cell::Rounded { exact, .. } => exact.map_or_else(String::new, |n| n.to_string()),
        }
    }
}

/// Formats a number for people.
pub fn number(n: f64, unit: Unit) -> String {
    shown(n, unit, &TimeZone::UTC)
}

fn shown(n: f64, unit: Unit, zone: &TimeZone) -> String {
    match unit {
        Unit::Seconds => duration(n),
        Unit::Share => format!("{} %", percent(n)),
        Unit::Change => relative(n),
        Unit::PerSecond => format!("{}/s", count(n)),
        Unit::Bytes => bytes(n),
        Unit::BytesPerSecond => format!("{}/s", bytes(n)),
        Unit::Sessions => two(n),
        Unit::Time => time(n, zone),
        Unit::Count | Unit::Number | Unit::Text | Unit::Id => count(n),
    }
}

/// "2026-03-01 17:30:00 CET"; "-" if out of range.
pub fn time(seconds: f64, zone: &TimeZone) -> String {
    match Timestamp::from_millisecond((seconds * 1e3).floor() as i64) {
        Ok(at) => at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string(),
        Err(_) => "-".to_string(),
    }
}

/// "2026-03-01 17:30:00 to 18:00:00 CET": date and zone appear once if both times share them.
pub fn span(from: f64, to: f64, zone: &TimeZone) -> String {
    let (from, to) = (time(from, zone), time(to, zone));
    let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
    match (words(&from).as_slice(), words(&to).as_slice()) {
        ([day, begin, zone], [end_day, end, end_zone]) if zone == end_zone => {
            let end_day = if day == end_day { String::new() } else { format!("{end_day} ") };
            format!("{day} {begin} to {end_day}{end} {zone}")
        }
        _ => format!("{from} to {to}"),
    }
}

/// Six digits: more than any chart can show, at a third of the bytes.
fn rounded(n: f64) -> Option<f64> {
    format!("{n:.5e}").parse().ok().filter(|n: &f64| n.is_finite())
}

pub(crate) fn write_short(n: Option<f64>) -> Number {
    match n.and_then(rounded) {
        None => Number::None,
        Some(n) if n.fract() == 0.0 && n.abs() < 1e15 => Number::Whole(n as i64),
        Some(n) => Number::Figure(n),
    }
}

/// A number with few digits.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Number {
    None,
    Whole(i64),
    Figure(f64),
}

/// Serialises numbers with few digits.
pub fn short<S: Serializer>(values: &[Option<f64>], to: S) -> Result<S::Ok, S::Error> {
    let mut list = to.serialize_seq(Some(values.len()))?;
    values.iter().try_for_each(|n| list.serialize_element(&write_short(*n)))?;
    list.end()
}

/// As [`short`], for series without gaps.
pub fn short_all<S: Serializer>(values: &[f64], to: S) -> Result<S::Ok, S::Error> {
    let mut list = to.serialize_seq(Some(values.len()))?;
    values.iter().try_for_each(|n| list.serialize_element(&write_short(Some(*n))))?;
    list.end()
}

/// Serialises times to the millisecond.
pub fn times<S: Serializer>(values: &[f64], to: S) -> Result<S::Ok, S::Error> {
    let mut list = to.serialize_seq(Some(values.len()))?;
    values.iter().try_for_each(|n| list.serialize_element(&((n * 1e3).round() / 1e3)))?;
    list.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_printed_with_its_unit() {
        let zone = &TimeZone::UTC;
        for (cell, unit, text) in [
            (Cell::Empty, Unit::Seconds, ""),
            (Cell::from(0.0123), Unit::Seconds, "12.3 ms"),
            (Cell::from(1_234_567), Unit::Count, "1,234,567"),
            (Cell::from(0.123), Unit::Share, "12.3 %"),
            (Cell::from(0.123), Unit::Change, "+12.3 %"),
            (Cell::from(1023.7), Unit::Change, "1,025 times"),
            (Cell::from(12_345.0), Unit::PerSecond, "12.3k/s"),
            (Cell::from(8192), Unit::Bytes, "8 kB"),
            (Cell::from(2.0), Unit::Sessions, "2.00"),
            (Cell::from(1_782_907_200.9), Unit::Time, "2026-07-01 12:00:00 UTC"),
            (Cell::from("<b>"), Unit::Text, "<b>"),
            (Cell::from(f64::NAN), Unit::Number, ""),
            (Cell::Estimate(Measured::new(12.34, 0.8)), Unit::Seconds, "~12.3 s ± 0.80"),
            (Cell::Estimate(Measured::new(2.0, 0.5)), Unit::Sessions, "~2.00 ± 0.50"),
            (Cell::Estimate(Measured::new(0.123, 0.01)), Unit::Share, "~12.3 %"),
        ] {
            assert_eq!(cell.shown(unit, zone), text);
        }
        assert_eq!(time(1e30, zone), "-");
        let at = 1_782_907_200.0;
        assert_eq!(span(at, at + 60.0, zone), "2026-07-01 12:00:00 to 12:01:00 UTC");
        let later = at + 86_400.0;
        assert_eq!(span(at, later, zone), "2026-07-01 12:00:00 to 2026-07-02 12:00:00 UTC");
        assert_eq!(span(at, 1e30, zone), "2026-07-01 12:00:00 UTC to -");
    }

    #[test]
    fn a_chart_is_serialised_with_six_digits() {
        #[derive(Serialize)]
        struct ShortNumbers(#[serde(serialize_with = "short")] Vec<Option<f64>>);
        let all = ShortNumbers(vec![
            Some(1.0 / 3.0),
            None,
            Some(2.0),
            Some(f64::NAN),
            Some(123_456_789.0),
        ]);
        assert_eq!(serde_json::to_string(&all).unwrap(), "[0.333333,null,2,null,123457000]");
    }
}
