// SPDX-License-Identifier: PostgreSQL
//! `--from` and `--to`: a time of day, a date, both, or so long before the recording's end.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// An end of a range, as it was asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Edge {
    /// At this instant, seconds since 1970.
    At(f64),
    /// At this time of the day on which the recording ends, or the day before if that is later
    /// than its end.
    Clock(Time),
    /// So many seconds before its end.
    Before(f64),
}

impl Edge {
    /// What the words say; dates and times are local.
    pub fn parse(text: &str) -> Result<Edge, String> {
        let wrong = || {
            format!(
                "\"{text}\" is no time; try 14:30, 2026-03-01, \"2026-03-01 14:30:00\", \
                 2026-03-01T14:30:00Z, or -10m (before the end)"
            )
        };
        let trimmed = text.trim();
        if let Some(length) = trimmed.strip_prefix('-') {
            return seconds(length).map(Edge::Before).ok_or_else(wrong);
        }
        if let Ok(at) = trimmed.parse::<Timestamp>() {
            return Ok(Edge::At(at.as_millisecond() as f64 / 1e3));
        }
        let zone = TimeZone::system();
        let at = |local: DateTime| {
            let zoned = local.to_zoned(zone.clone()).map_err(|_| wrong())?;
            Ok(Edge::At(zoned.timestamp().as_millisecond() as f64 / 1e3))
        };
        // A time of day before a date and time: that would be taken for midnight.
        if let Ok(date) = trimmed
            .parse::<Date>()
            .map_err(|_| ())
            .and_then(|date| (trimmed.len() <= 10).then_some(date).ok_or(()))
        {
            return at(date.at(0, 0, 0, 0));
        }
        if let Ok(local) = trimmed.parse::<DateTime>() {
            return at(local);
        }
        clock(trimmed).map(Edge::Clock).ok_or_else(wrong)
    }

    /// As an instant, for a recording that ends then; both in seconds since 1970.
    pub fn resolve(self, end: f64) -> f64 {
        match self {
            Edge::At(at) => at,
            Edge::Before(seconds) => end - seconds,
            Edge::Clock(time) => on_last_day(time, end).unwrap_or(end),
        }
    }
}

/// "14:30" or "14:30:05", hours from 0 to 23.
fn clock(text: &str) -> Option<Time> {
    let parts: Vec<i8> = text.split(':').map(|p| p.parse().ok()).collect::<Option<_>>()?;
    match parts[..] {
        [hour, minute] => Time::new(hour, minute, 0, 0).ok(),
        [hour, minute, second] => Time::new(hour, minute, second, 0).ok(),
        _ => None,
    }
}

fn on_last_day(time: Time, end: f64) -> Option<f64> {
    let last = Timestamp::from_millisecond((end * 1e3) as i64).ok()?.to_zoned(TimeZone::system());
    let at = |date: Date| {
        let zoned = date.to_datetime(time).to_zoned(TimeZone::system()).ok()?;
        Some(zoned.timestamp().as_millisecond() as f64 / 1e3)
    };
    let same = at(last.date())?;
    if same <= end {
        return Some(same);
    }
    at(last.date().checked_sub(1.day()).ok()?)
}

/// "90", "90s", "10m", "2h", "1d".
fn seconds(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    digits.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0).map(|n| n * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_understood_in_many_forms() {
        assert_eq!(Edge::parse("-10m").unwrap().resolve(1000.0), 400.0);
        assert_eq!(Edge::parse("-1.5h").unwrap().resolve(10_000.0), 4_600.0);
        assert_eq!(Edge::parse("2026-07-01T12:00:00Z").unwrap(), Edge::At(1_782_907_200.0));
        let same = ["2026-07-01 12:30:00", "2026-07-01T12:30", "2026-07-01 12:30"]
            .map(|text| Edge::parse(text).unwrap());
        assert!(same.iter().all(|edge| *edge == same[0]), "{same:?}");
        let (day, noon) = (Edge::parse("2026-07-01").unwrap(), same[0]);
        assert_eq!(noon.resolve(0.0) - day.resolve(0.0), 45_000.0);
        // The latest 12:30 that the recording can hold.
        let end = noon.resolve(0.0) + 600.0;
        assert_eq!(Edge::parse("12:30").unwrap().resolve(end), noon.resolve(0.0));
        assert_eq!(
            Edge::parse("12:30:00").unwrap().resolve(end - 601.0),
            noon.resolve(0.0) - 86_400.0
        );
    }

    #[test]
    fn what_is_no_time_is_said_with_examples() {
        for odd in ["", "-", "-x", "yesterday", "25:00", "12:60", "-5y", "2026-13-01", "12", "-inf"]
        {
            let error = Edge::parse(odd).unwrap_err();
            assert!(error.contains("14:30"), "{odd}: {error}");
        }
    }
}
