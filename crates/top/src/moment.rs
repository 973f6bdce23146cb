// SPDX-License-Identifier: PostgreSQL
//! Parses and prints times.

use jiff::tz::TimeZone;
use jiff::Timestamp;

use view::moment::Moment;

/// The accepted forms of a time.
pub const FORMS: &str = "14:03, 14:03:30, 2026-03-01 14:03 or -5min";

/// Parses a time to seconds since 1970: a time of day on the day of `shown`, or on the previous day if it would
/// be later than `last`; a date with a time; or an offset from `shown`.
///
/// # Errors
///
/// Quotes what was typed, if it is none of these.
pub fn parse(text: &str, shown: f64, last: f64, zone: &TimeZone) -> Result<f64, String> {
    Moment::parse(text, zone)
        .and_then(|moment| moment.resolve(shown, last, zone))
        .ok_or_else(|| format!("\"{}\" is not a time; enter {FORMS}", text.trim()))
}

/// The time of day, "14:03:30"; "-" if out of range.
pub fn of_day(seconds: f64, zone: &TimeZone) -> String {
    formatted(seconds, zone, "%H:%M:%S")
}

/// The time with date and zone, "2026-03-01 14:03:30 CET".
pub fn full(seconds: f64, zone: &TimeZone) -> String {
    formatted(seconds, zone, "%Y-%m-%d %H:%M:%S %Z")
}

/// The time for a file name, "20260301-140330".
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
    fn a_wrong_time_is_reported_with_examples() {
        // 2023-11-14 22:13:20 UTC.
        let shown = 1_700_000_000.0;
        assert_eq!(parse("22:13", shown, shown, &TimeZone::UTC), Ok(shown - 20.0));
        for text in ["", "soon", "25:00"] {
            assert!(parse(text, shown, shown, &TimeZone::UTC).unwrap_err().contains(FORMS));
        }
    }

    #[test]
    fn a_time_is_printed_in_the_zone() {
        let shown = 1_700_000_000.0;
        assert_eq!(of_day(shown, &TimeZone::UTC), "22:13:20");
        assert_eq!(full(shown, &TimeZone::UTC), "2023-11-14 22:13:20 UTC");
        assert_eq!(stamp(shown, &TimeZone::UTC), "20231114-221320");
        assert_eq!(of_day(f64::INFINITY, &TimeZone::UTC), "-");
        assert_eq!(of_day(shown, &TimeZone::fixed(jiff::tz::offset(2))), "00:13:20");
    }
}
