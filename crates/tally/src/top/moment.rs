// SPDX-License-Identifier: PostgreSQL
//! A time as people type it.

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::Timestamp;

use crate::cli;

/// What a time may look like.
pub const FORMS: &str = "14:03, 14:03:30, 2026-03-01 14:03 or -5min";

/// Seconds since 1970 of what was typed: a time of day on the day of `shown`, or on the day before
/// where that is later than `last`; a date with a time; or so long before or after `shown`.
///
/// # Errors
///
/// In words, where it is none of these.
pub fn parse(text: &str, shown: f64, last: f64, zone: &TimeZone) -> Result<f64, String> {
    let text = text.trim();
    let problem = || format!("{text}: not a time; type {FORMS}");
    for (sign, factor) in [('-', -1.0), ('+', 1.0)] {
        if let Some(length) = text.strip_prefix(sign) {
            let length = cli::duration(length).map_err(|_| problem())?;
            return Ok(shown + factor * length.as_secs_f64());
        }
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at.as_millisecond() as f64 / 1e3);
    }
    let seconds = |at: DateTime| {
        let at = at.to_zoned(zone.clone()).map_err(|_| problem())?;
        Ok(at.timestamp().as_millisecond() as f64 / 1e3)
    };
    if let Ok(time) = text.parse::<Time>() {
        let shown = Timestamp::from_millisecond((shown * 1e3) as i64).map_err(|_| problem())?;
        let today = shown.to_zoned(zone.clone()).date();
        let at = seconds(today.to_datetime(time))?;
        if at <= last {
            return Ok(at);
        }
        return seconds(today.yesterday().map_err(|_| problem())?.to_datetime(time));
    }
    text.parse::<DateTime>().map_err(|_| problem()).and_then(seconds)
}

/// The time of day, "14:03:30"; of what is no time at all, "-".
pub fn of_day(seconds: f64, zone: &TimeZone) -> String {
    formatted(seconds, zone, "%H:%M:%S")
}

/// With its date and zone, "2026-03-01 14:03:30 CET".
pub fn full(seconds: f64, zone: &TimeZone) -> String {
    formatted(seconds, zone, "%Y-%m-%d %H:%M:%S %Z")
}

/// As a part of a file's name, "20260301-140330".
pub fn stamp(seconds: f64, zone: &TimeZone) -> String {
    formatted(seconds, zone, "%Y%m%d-%H%M%S")
}

fn formatted(seconds: f64, zone: &TimeZone, format: &str) -> String {
    match Timestamp::from_millisecond((seconds * 1e3).floor() as i64) {
        Ok(at) => at.to_zoned(zone.clone()).strftime(format).to_string(),
        Err(_) => "-".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_in_all_of_its_forms() {
        // 2023-11-14 22:13:20 UTC.
        let (shown, last) = (1_700_000_000.0, 1_700_000_100.0);
        let parse = |text: &str| parse(text, shown, last, &TimeZone::UTC);
        for (text, wanted) in [
            ("22:13:20", shown),
            (" 22:13 ", shown - 20.0),
            ("22:15", shown + 100.0),
            ("23:13:20", shown + 3600.0 - 86_400.0),
            ("2023-11-14 22:13:20", shown),
            ("2023-11-14T22:13", shown - 20.0),
            ("2023-11-14T23:13:20+01:00", shown),
            ("-5min", shown - 300.0),
            ("-90", shown - 90.0),
            ("+30s", shown + 30.0),
        ] {
            assert_eq!(parse(text), Ok(wanted), "{text}");
        }
        for text in ["", "soon", "25:00", "-", "-5weeks", "2023-02-30 10:00", "é"] {
            assert!(parse(text).unwrap_err().contains(FORMS), "{text}");
        }
        assert_eq!(of_day(shown, &TimeZone::UTC), "22:13:20");
        assert_eq!(full(shown, &TimeZone::UTC), "2023-11-14 22:13:20 UTC");
        assert_eq!(stamp(shown, &TimeZone::UTC), "20231114-221320");
        assert_eq!(of_day(f64::INFINITY, &TimeZone::UTC), "-");
    }

    #[test]
    fn a_time_of_day_is_of_the_zone() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        assert_eq!(parse("00:13:20", 1_700_000_000.0, 1_700_000_000.0, &zone), Ok(1_700_000_000.0));
        assert_eq!(of_day(1_700_000_000.0, &zone), "00:13:20");
    }
}
