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

    /// Whether an interval that ended, or an event, at this time is in it.
    pub fn contains(&self, time_us: i64) -> bool {
        self.from_us < time_us && time_us <= self.to_us
    }

    /// Whether it overlaps `from_us ..= to_us`.
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
