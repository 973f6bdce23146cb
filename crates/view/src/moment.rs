// SPDX-License-Identifier: PostgreSQL
//! A time as people type it: a time of day, a date, both, an instant, or an offset from another time.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::Timestamp;

/// A parsed time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Moment {
    /// An instant, seconds since 1970.
    At(f64),
    /// A time of day.
    Clock(Time),
    /// An offset in seconds; negative means before.
    Off(f64),
}

impl Moment {
    /// Parses a time; dates and times of day are in `zone`. `None` if it is not a time.
    pub fn parse(text: &str, zone: &TimeZone) -> Option<Moment> {
        let text = text.trim();
        for (sign, factor) in [('-', -1.0), ('+', 1.0)] {
            if let Some(length) = text.strip_prefix(sign) {
                let length = crate::duration::parse(length).ok()?;
                return Some(Moment::Off(factor * length.as_secs_f64()));
            }
        }
        if let Ok(at) = text.parse::<Timestamp>() {
            return Some(Moment::At(seconds(at)));
        }
        let at = |local| instant(local, zone).map(Moment::At);
        // A date with a time would also parse as a date, that is, its midnight.
        if let Some(date) = text.parse::<Date>().ok().filter(|_| text.len() <= 10) {
            return at(date.at(0, 0, 0, 0));
        }
        if let Ok(local) = text.parse::<DateTime>() {
            return at(local);
        }
        clock(text).map(Moment::Clock)
    }

    /// The instant, seconds since 1970. An offset is relative to `around`. A time of day is on the day of
    /// `around`, or on the previous day if it would be later than `last`. `None` if there is no such time.
    pub fn resolve(self, around: f64, last: f64, zone: &TimeZone) -> Option<f64> {
        let time = match self {
            Moment::At(at) => return Some(at),
            Moment::Off(seconds) => return Some(around + seconds),
            Moment::Clock(time) => time,
        };
        let around = Timestamp::from_millisecond((around * 1e3).floor() as i64).ok()?;
        let day = around.to_zoned(zone.clone()).date();
        match instant(day.to_datetime(time), zone)? {
            at if at <= last => Some(at),
            _ => instant(day.yesterday().ok()?.to_datetime(time), zone),
        }
    }
}

fn seconds(at: Timestamp) -> f64 {
    at.as_millisecond() as f64 / 1e3
}

fn instant(local: DateTime, zone: &TimeZone) -> Option<f64> {
    Some(seconds(local.to_zoned(zone.clone()).ok()?.timestamp()))
}

/// "14:30" or "14:30:05", with hours from 0 to 23.
fn clock(text: &str) -> Option<Time> {
    let parts: Vec<i8> = text.split(':').map(|p| p.parse().ok()).collect::<Option<_>>()?;
    match parts[..] {
        [hour, minute] => Time::new(hour, minute, 0, 0).ok(),
        [hour, minute, second] => Time::new(hour, minute, second, 0).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_parsed_in_all_its_forms() {
        // 2023-11-14 22:13:20 UTC.
        let (around, last) = (1_700_000_000.0, 1_700_000_100.0);
        let parse =
            |text: &str| Moment::parse(text, &TimeZone::UTC)?.resolve(around, last, &TimeZone::UTC);
        for (text, wanted) in [
            ("22:13:20", around),
            (" 22:13 ", around - 20.0),
            ("22:15", around + 100.0),
            ("23:13:20", around + 3600.0 - 86_400.0),
            ("2023-11-14", around - 80_000.0),
            ("2023-11-14 22:13:20", around),
            ("2023-11-14T22:13", around - 20.0),
            ("2023-11-14T23:13:20+01:00", around),
            ("2023-11-14T22:13:20Z", around),
            ("-5min", around - 300.0),
            ("-5m", around - 300.0),
            ("-1.5h", around - 5_400.0),
            ("-2d", around - 172_800.0),
            ("-90", around - 90.0),
            ("+30s", around + 30.0),
        ] {
            assert_eq!(parse(text), Some(wanted), "{text}");
        }
        for text in [
            "",
            "-",
            "-x",
            "-inf",
            "-5y",
            "-5weeks",
            "soon",
            "yesterday",
            "25:00",
            "12:60",
            "12",
            "2026-13-01",
            "2023-02-30 10:00",
            "é",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_time_of_day_is_in_the_zone() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let time = Moment::parse("00:13:20", &zone).unwrap();
        assert_eq!(time.resolve(1_700_000_000.0, 1_700_000_000.0, &zone), Some(1_700_000_000.0));
    }
}
