// SPDX-License-Identifier: PostgreSQL
//! Start times of series. A receiver takes a series with a new start time as one that has started again at zero.
//! Therefore a series that falls (because an entry was evicted) gets a new start time, and one that was passed on
//! to the next run of the server keeps its own.

use std::collections::HashMap;

use super::super::metrics::MetricSample;

/// Number of series that are remembered although they were not in the last reading.
const ABSENT: usize = 10_000;

/// Start times of all series.
#[derive(Debug, Default)]
pub struct Starts {
    /// When those counters started that do not have a start of their own, ns since 1970.
    counted: u64,
    /// The last two readings.
    last: u64,
    now: u64,
    series: HashMap<(&'static str, Vec<String>), Series>,
}

#[derive(Debug, Clone, Copy)]
struct Series {
    /// Since when it counts, according to its source.
    since: u64,
    /// Since when it has not fallen.
    start: u64,
    value: f64,
    seen: u64,
}

/// Nanoseconds of seconds since 1970.
fn nanoseconds(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1e9).round() as u64
}

impl Starts {
    /// Starts a reading at `now`, ns since 1970, of counters that count since `counted`, seconds since 1970.
    pub fn begin(&mut self, counted: f64, now: u64) {
        let last = self.now;
        if self.series.len() > ABSENT {
            self.series.retain(|_, series| series.seen == last);
        }
        (self.counted, self.last, self.now) = (nanoseconds(counted), last, now);
    }

    /// When this sample of `name` started, ns since 1970; `value` only grows while it counts.
    pub fn start_of(&mut self, name: &'static str, sample: &MetricSample, value: f64) -> u64 {
        let labels = sample.labels.iter().map(|(_, value)| value.clone()).collect();
        let since = sample.since.map_or(self.counted, nanoseconds);
        let (last, now) = (self.last, self.now);
        let anew = Series { since, start: since, value, seen: now };
        let series = self.series.entry((name, labels)).or_insert(anew);
        if series.since != since {
            // The server's start, or a reset: even series that did not fall have started again.
            *series = anew;
        } else if value < series.value {
            series.start = last.max(series.start);
        }
        (series.value, series.seen) = (value, now);
        // Clocks can be set; a point cannot start after its end.
        series.start.min(now)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::metrics::Value;
    use super::*;

    fn sample(label: &str, since: Option<f64>) -> MetricSample {
        let labels = vec![("activity", label.to_string())];
        MetricSample { labels, value: Value::Number(0.0), since }
    }

    #[test]
    fn after_a_reset_all_series_start_again_even_those_that_do_not_fall() {
        let mut starts = Starts::default();
        let (a, own) = (sample("a", None), sample("own", Some(15e-9)));
        starts.begin(10e-9, 20);
        assert_eq!((starts.start_of("m", &a, 5.0), starts.start_of("m", &own, 5.0)), (10, 15));
        starts.begin(24e-9, 30);
        assert_eq!((starts.start_of("m", &a, 9.0), starts.start_of("m", &own, 9.0)), (24, 15));
        starts.begin(24e-9, 40);
        assert_eq!(starts.start_of("m", &a, 10.0), 24);
        assert_eq!(
            starts.start_of("m", &sample("own", Some(24e-9)), 9.0),
            24,
            "reset with the rest"
        );
    }

    #[test]
    fn a_series_that_falls_starts_again_at_the_reading_before() {
        let mut starts = Starts::default();
        let (a, b) = (sample("a", None), sample("b", None));
        for (now, of_a, of_b) in [(20, 5.0, 1.0), (30, 7.0, 1.0)] {
            starts.begin(10e-9, now);
            assert_eq!(starts.start_of("m", &a, of_a), 10);
            assert_eq!(starts.start_of("m", &b, of_b), 10);
        }
        starts.begin(10e-9, 40);
        assert_eq!(starts.start_of("m", &a, 2.0), 30);
        assert_eq!(starts.start_of("m", &b, 2.0), 10);
        starts.begin(10e-9, 50);
        assert_eq!(starts.start_of("m", &a, 3.0), 30, "it keeps its new start");
    }

    /// If the series had a new start, a receiver would add everything that was passed on once more.
    #[test]
    fn another_run_starts_all_series_again_but_what_was_handed_on() {
        let mut starts = Starts::default();
        let (handed_on, evicted) = (sample("on", Some(12e-9)), sample("evicted", Some(12e-9)));
        starts.begin(10e-9, 20);
        assert_eq!(starts.start_of("m", &sample("a", None), 5.0), 10);
        assert_eq!(
            (starts.start_of("m", &handed_on, 1000.0), starts.start_of("m", &evicted, 9.0)),
            (12, 12)
        );
        starts.begin(10e-9, 22);
        assert_eq!(starts.start_of("m", &evicted, 2.0), 20);
        starts.begin(25e-9, 30);
        assert_eq!(starts.start_of("m", &sample("a", None), 9.0), 25);
        assert_eq!(starts.start_of("m", &handed_on, 1010.0), 12);
        assert_eq!(starts.start_of("m", &evicted, 3.0), 20);
    }
}
