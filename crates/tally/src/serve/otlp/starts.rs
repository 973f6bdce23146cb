// SPDX-License-Identifier: PostgreSQL
//! Start times of series. A receiver takes a series with a new start time for one that has begun
//! again at zero, so whatever falls (a reset, an entry that was evicted) gets one.

use std::collections::HashMap;

use super::super::metrics::Sample;

/// Series that are remembered although they were not in the last reading.
const ABSENT: usize = 10_000;

/// What the counters of a reading are.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counted {
    /// When the segment was created, seconds since 1970.
    pub since: f64,
    /// How often all of them were reset.
    pub resets: u32,
}

/// Start times of all series of a run of the server.
#[derive(Debug, Default)]
pub struct Starts {
    counted: Counted,
    /// When the counters of this run started, or were last reset, ns since 1970.
    run: u64,
    /// The last two readings.
    last: u64,
    now: u64,
    series: HashMap<(&'static str, Vec<String>), Series>,
}

#[derive(Debug)]
struct Series {
    start: u64,
    value: f64,
    seen: u64,
}

/// Nanoseconds of seconds since 1970.
fn nanoseconds(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1e9).round() as u64
}

impl Starts {
    /// A reading at `now`, ns since 1970.
    pub fn begin(&mut self, counted: Counted, now: u64) {
        let last = self.now;
        if counted.since != self.counted.since {
            self.series.clear();
            self.run = nanoseconds(counted.since);
        } else if counted.resets != self.counted.resets {
            // After the reading before, whose points end there; even what does not fall has begun again.
            self.series.clear();
            self.run = last;
        } else if self.series.len() > ABSENT {
            self.series.retain(|_, series| series.seen == last);
        }
        (self.counted, self.last, self.now) = (counted, last, now);
    }

    /// When this sample of `name` started, ns since 1970; `value` only grows while it counts.
    pub fn of(&mut self, name: &'static str, sample: &Sample, value: f64) -> u64 {
        let labels = sample.labels.iter().map(|(_, value)| value.clone()).collect();
        let run = sample.since.map_or(self.run, nanoseconds);
        let (last, now) = (self.last, self.now);
        let series =
            self.series.entry((name, labels)).or_insert(Series { start: run, value, seen: now });
        if value < series.value {
            // It began again, as after a reset.
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

    fn sample(label: &str, since: Option<f64>) -> Sample {
        let labels = vec![("activity", label.to_string())];
        Sample { labels, value: Value::Number(0.0), since }
    }

    fn counted(since: f64, resets: u32) -> Counted {
        Counted { since, resets }
    }

    #[test]
    fn after_a_reset_all_series_start_again_even_those_that_do_not_fall() {
        let mut starts = Starts::default();
        let (a, own) = (sample("a", None), sample("own", Some(15e-9)));
        starts.begin(counted(10e-9, 0), 20);
        assert_eq!((starts.of("m", &a, 5.0), starts.of("m", &own, 5.0)), (10, 15));
        starts.begin(counted(10e-9, 1), 30);
        assert_eq!((starts.of("m", &a, 9.0), starts.of("m", &own, 9.0)), (20, 15));
        starts.begin(counted(10e-9, 1), 40);
        assert_eq!(starts.of("m", &a, 10.0), 20);
        // The first reading of a segment that was reset before.
        let mut starts = Starts::default();
        starts.begin(counted(10e-9, 7), 20);
        assert_eq!(starts.of("m", &a, 5.0), 10);
    }

    #[test]
    fn a_series_that_falls_starts_again_at_the_reading_before() {
        let mut starts = Starts::default();
        let (a, b) = (sample("a", None), sample("b", None));
        for (now, of_a, of_b) in [(20, 5.0, 1.0), (30, 7.0, 1.0)] {
            starts.begin(counted(10e-9, 0), now);
            assert_eq!(starts.of("m", &a, of_a), 10);
            assert_eq!(starts.of("m", &b, of_b), 10);
        }
        starts.begin(counted(10e-9, 0), 40);
        assert_eq!(starts.of("m", &a, 2.0), 30);
        assert_eq!(starts.of("m", &b, 2.0), 10);
        starts.begin(counted(10e-9, 0), 50);
        assert_eq!(starts.of("m", &a, 3.0), 30, "it keeps its new start");
    }

    #[test]
    fn another_run_starts_all_series_again() {
        let mut starts = Starts::default();
        starts.begin(counted(10e-9, 0), 20);
        assert_eq!(starts.of("m", &sample("a", None), 5.0), 10);
        starts.begin(counted(25e-9, 0), 30);
        assert_eq!(starts.of("m", &sample("a", None), 9.0), 25);
        assert_eq!(starts.of("m", &sample("own", Some(15e-9)), 9.0), 15, "its own start");
    }
}
