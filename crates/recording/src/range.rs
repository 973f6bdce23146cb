// SPDX-License-Identifier: PostgreSQL
//! A range of time, and times as text.

/// The intervals that end after `from_us` and at or before `to_us`, microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Range {
    /// Its start.
    pub from_us: i64,
    /// Its end.
    pub to_us: i64,
}

impl Range {
    /// All of time.
    pub const ALL: Range = Range { from_us: i64::MIN, to_us: i64::MAX };

    /// Whether the range contains an interval that ended, or an event that happened, at this time.
    pub fn contains(&self, time_us: i64) -> bool {
        self.from_us < time_us && time_us <= self.to_us
    }

    /// Whether the range overlaps `from_us ..= to_us`.
    pub(crate) fn meets(&self, from_us: i64, to_us: i64) -> bool {
        self.from_us < to_us && from_us <= self.to_us
    }

    /// Its length, seconds.
    pub fn seconds(&self) -> f64 {
        self.to_us.saturating_sub(self.from_us) as f64 * 1e-6
    }
}

/// Nanoseconds since 1970 in a recording's unit: microseconds, truncated to milliseconds.
pub fn time_us(realtime_ns: u64) -> i64 {
    i64::try_from(realtime_ns / 1_000_000).unwrap_or(i64::MAX / 1000).saturating_mul(1000)
}

/// A time as text: "2026-03-01 17:30:00 UTC".
pub fn format_utc(time_us: i64) -> String {
    match jiff::Timestamp::from_microsecond(time_us) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => format!("{time_us} us"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_its_end_and_not_its_beginning() {
        let range = Range { from_us: 10, to_us: 20 };
        let within = [9, 10, 11, 20, 21].map(|time| range.contains(time));
        assert_eq!(within, [false, false, true, true, false]);
        // A file has rows from its first time to its last one.
        for (from, to, meets) in [
            (0, 10, false),
            (0, 11, true),
            (10, 10, false),
            (20, 30, true),
            (21, 30, false),
            (0, 30, true),
        ] {
            assert_eq!(range.meets(from, to), meets, "{from} {to}");
        }
        assert!((range.seconds() - 1e-5).abs() < 1e-15);
        assert!(Range::ALL.contains(i64::MAX) && Range::ALL.seconds() > 9e12);
    }

    #[test]
    fn times_are_whole_milliseconds() {
        assert_eq!(time_us(1_999_999), 1_000);
        assert_eq!(time_us(2_000_000), 2_000);
        assert_eq!(time_us(u64::MAX), 18_446_744_073_709_000);
        assert_eq!(format_utc(1_772_323_200_999_999), "2026-03-01 00:00:00 UTC");
        assert_eq!(format_utc(i64::MAX), "9223372036854775807 us");
    }
}
