// SPDX-License-Identifier: PostgreSQL
//! The time range, cluster and hosts of a query.

use jiff::Timestamp;

use crate::Dialect;

/// A cluster, a host, or both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostFilter {
    /// Only this cluster.
    pub cluster: Option<String>,
    /// Only this host.
    pub host: Option<String>,
}

/// The intervals that ended after `since_ms` and no later than `until_ms`, milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Its start, which is excluded.
    pub since_ms: i64,
    /// Its end, which is included.
    pub until_ms: i64,
    /// The selected cluster and host.
    pub only: HostFilter,
}

/// A file covers at most one hour and belongs to the day on which its first interval ended.
const HOUR_MS: i64 = 3_600_000;

/// Maximum number of steps in a chart.
const STEPS: i64 = 60;
/// Lengths of steps, seconds.
const LENGTHS: [i64; 15] =
    [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 86_400];

/// Whether this is a name in a file's path, as the recorder writes it.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// "2026-03-02 11"
fn hour(ms: i64) -> String {
    let at = Timestamp::from_millisecond(ms);
    at.map_or_else(|_| "9999-12-31 23".into(), |at| at.strftime("%Y-%m-%d %H").to_string())
}

impl Window {
    /// Makes a window; the error says what is wrong.
    pub fn new(since_ms: i64, until_ms: i64, only: HostFilter) -> Result<Window, String> {
        if since_ms >= until_ms {
            return Err("the time range is empty: its start is not before its end".into());
        }
        for name in [&only.cluster, &only.host].into_iter().flatten() {
            if !is_plain(name) {
                return Err(format!(
                    "\"{name}\" cannot be the name of a cluster or host; names consist of letters, digits, \"-\", \"_\" and \".\""
                ));
            }
        }
        Ok(Window { since_ms, until_ms, only })
    }

    /// Its length, seconds.
    pub fn seconds(&self) -> f64 {
        (self.until_ms - self.since_ms) as f64 / 1e3
    }

    /// The length of a chart's step, milliseconds: a round length that gives at most 60 steps.
    pub(crate) fn step_ms(&self) -> i64 {
        let wanted = (self.until_ms - self.since_ms) / STEPS;
        let lengths = LENGTHS.map(|seconds| seconds * 1000);
        let day = 24 * HOUR_MS;
        lengths
            .into_iter()
            .find(|length| *length >= wanted)
            .unwrap_or((wanted + day - 1) / day * day)
    }

    /// The first and the last hour of files with its rows: "2026-03-02 11".
    pub(crate) fn hours(&self) -> [String; 2] {
        [hour(self.since_ms - HOUR_MS), hour(self.until_ms)]
    }

    fn dates(&self) -> [String; 2] {
        self.hours().map(|hour| hour[..10].to_string())
    }

    /// Whether a file of this day ("2026-03-02") whose name begins like this may contain rows of it.
    pub fn has_file(&self, day: &str, name: &str) -> bool {
        let [first, last] = self.hours();
        let hour = format!("{day} {}", name.get(..2).unwrap_or_default());
        (first..=last).contains(&hour)
    }

    /// The same window with one more day before and after.
    pub(crate) fn with_days_around(&self) -> Window {
        let day = 24 * HOUR_MS;
        Window {
            since_ms: self.since_ms - day,
            until_ms: self.until_ms + day,
            only: self.only.clone(),
        }
    }

    /// The smallest window that contains both.
    pub fn with(&self, other: &Window) -> Window {
        Window {
            since_ms: self.since_ms.min(other.since_ms),
            until_ms: self.until_ms.max(other.until_ms),
            only: self.only.clone(),
        }
    }

    /// Patterns for the names of cluster, host and date, and for the start of a file's name.
    pub(crate) fn pattern(&self, dialect: Dialect) -> [String; 4] {
        let [first, last] = self.dates();
        let same = first.bytes().zip(last.bytes()).take_while(|(a, b)| a == b).count();
        let any = |name: &Option<String>| name.clone().unwrap_or_else(|| "*".into());
        let [cluster, host] = [any(&self.only.cluster), any(&self.only.host)];
        if same < first.len() {
            return [cluster, host, format!("{}*", &first[..same]), "*".into()];
        }
        let [begin, end] = self.hours().map(|hour| hour[11..].to_string());
        let hours = match dialect {
            Dialect::ClickHouse => {
                let all = (0..24).map(|hour| format!("{hour:02}"));
                let wanted: Vec<String> =
                    all.filter(|hour| (&begin..=&end).contains(&hour)).collect();
                format!("{{{}}}*", wanted.join(","))
            }
            _ if begin[..1] == end[..1] => {
                format!("{}[{}-{}]*", &begin[..1], &begin[1..], &end[1..])
            }
            _ => format!("[{}-{}]*", &begin[..1], &end[..1]),
        };
        [cluster, host, first, hours]
    }

    /// The condition for rows of a view.
    pub(crate) fn condition(&self) -> String {
        let [first, last] = self.dates();
        let [begin, end] = self.hours();
        let mut condition = format!(
            "date >= '{first}' AND date <= '{last}' AND concat(date, ' ', hour) >= '{begin}' \
             AND concat(date, ' ', hour) <= '{end}' AND time_ms > {} AND time_ms <= {}",
            self.since_ms, self.until_ms
        );
        for (column, name) in [("cluster", &self.only.cluster), ("host", &self.only.host)] {
            if let Some(name) = name {
                condition.push_str(&format!(" AND {column} = '{name}'"));
            }
        }
        condition
    }
}

/// The parameters of a query.
#[derive(Debug, Clone)]
pub struct QueryParams {
    /// The window.
    pub window: Window,
    /// The window to compare with.
    pub against: Window,
    /// Maximum number of rows.
    pub limit: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    // 2026-03-01 00:00:00 UTC.
    const MIDNIGHT: i64 = 1_772_323_200_000;

    #[test]
    fn files_of_the_evening_before_may_have_the_first_intervals() {
        let window = Window::new(MIDNIGHT, MIDNIGHT + HOUR_MS, HostFilter::default()).unwrap();
        assert!(
            window.has_file("2026-02-28", "235959-hour")
                && window.has_file("2026-03-01", "010000-60s")
        );
        assert!(
            !window.has_file("2026-02-28", "225959-hour")
                && !window.has_file("2026-03-01", "020000-60s")
        );
        assert_eq!(window.pattern(Dialect::DuckDb), ["*", "*", "2026-0*", "*"]);
        let noon =
            Window::new(MIDNIGHT + 12 * HOUR_MS, MIDNIGHT + 13 * HOUR_MS, HostFilter::default())
                .unwrap();
        assert_eq!(noon.pattern(Dialect::DuckDb), ["*", "*", "2026-03-01", "1[1-3]*"]);
        assert_eq!(noon.pattern(Dialect::ClickHouse)[3], "{11,12,13}*");
        let morning = Window { since_ms: MIDNIGHT + 9 * HOUR_MS, ..noon.clone() };
        assert_eq!(morning.pattern(Dialect::Spark)[3], "[0-1]*");
        assert_eq!(noon.with(&window).dates(), window.dates());
    }

    #[test]
    fn a_chart_has_at_most_sixty_steps() {
        for (seconds, step) in [(6, 1), (60, 1), (61, 2), (900, 15), (3600, 60), (86_400, 1800)] {
            let window = Window::new(0, seconds * 1000, HostFilter::default()).unwrap();
            assert_eq!(window.step_ms(), step * 1000, "{seconds}");
        }
        let year = Window::new(0, 365 * 24 * HOUR_MS, HostFilter::default()).unwrap();
        assert_eq!(year.step_ms(), 7 * 24 * HOUR_MS);
    }

    #[test]
    fn names_cannot_end_the_text_that_they_are_in() {
        for odd in ["", "a'b", "a*", "a b", "ä"] {
            let only = HostFilter { host: Some(odd.into()), ..HostFilter::default() };
            assert!(Window::new(0, 1, only).unwrap_err().contains("letters"), "{odd}");
        }
        let only = HostFilter { host: Some("db-1.example".into()), cluster: Some("shop".into()) };
        let condition = Window::new(0, 1, only).unwrap().condition();
        assert!(
            condition.ends_with("AND cluster = 'shop' AND host = 'db-1.example'"),
            "{condition}"
        );
        assert!(Window::new(1, 1, HostFilter::default()).is_err());
    }

    #[test]
    fn the_beginning_does_not_belong_to_a_window_and_its_end_does() {
        let condition =
            Window::new(MIDNIGHT, MIDNIGHT + 1, HostFilter::default()).unwrap().condition();
        assert_eq!(
            condition,
            "date >= '2026-02-28' AND date <= '2026-03-01' AND concat(date, ' ', hour) >= '2026-02-28 23' \
             AND concat(date, ' ', hour) <= '2026-03-01 00' AND time_ms > 1772323200000 AND time_ms <= 1772323200001"
        );
    }

    #[test]
    fn patterns_have_every_hour_of_a_window() {
        let pattern = |from: i64, to: i64, dialect| {
            let only = HostFilter { cluster: Some("c".into()), host: None };
            let at = |hour: i64| MIDNIGHT + hour * HOUR_MS;
            Window::new(at(from), at(to), only).unwrap().pattern(dialect)
        };
        let day = "2026-03-01";
        assert_eq!(pattern(1, 2, Dialect::DuckDb), ["c", "*", day, "0[0-2]*"]);
        assert_eq!(pattern(20, 23, Dialect::Spark), ["c", "*", day, "[1-2]*"]);
        assert_eq!(pattern(21, 23, Dialect::Spark), ["c", "*", day, "2[0-3]*"]);
        assert_eq!(pattern(21, 23, Dialect::ClickHouse)[3], "{20,21,22,23}*");
        assert_eq!(pattern(21, 24, Dialect::DuckDb), ["c", "*", "2026-03-0*", "*"]);
        assert_eq!(pattern(0, 1, Dialect::DuckDb), ["c", "*", "2026-0*", "*"]);
        // A day of the next month has only the year in common.
        let year =
            Window::new(MIDNIGHT, MIDNIGHT + 300 * 24 * HOUR_MS, HostFilter::default()).unwrap();
        assert_eq!(year.pattern(Dialect::DuckDb)[2], "2026-*");
    }

    #[test]
    fn windows_are_joined_and_widened_by_days() {
        let window = |from, to| Window::new(from, to, HostFilter::default()).unwrap();
        assert_eq!(window(10, 20).with(&window(15, 30)), window(10, 30));
        assert_eq!(window(10, 20).with(&window(5, 12)), window(5, 20));
        let wide = window(MIDNIGHT, MIDNIGHT + 1).with_days_around();
        assert_eq!(wide, window(MIDNIGHT - 24 * HOUR_MS, MIDNIGHT + 1 + 24 * HOUR_MS));
        assert_eq!(window(500, 2000).seconds(), 1.5);
    }
}
