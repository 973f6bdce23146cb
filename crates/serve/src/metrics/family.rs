// SPDX-License-Identifier: PostgreSQL
//! Metrics, independent of their output format.

use segment::layout::bucket_middle;
use segment::Histogram;
use view::escape::visible;

/// All samples of one name.
#[derive(Debug, Clone)]
pub struct Family {
    /// Its name; counters end in `_total`.
    pub name: &'static str,
    /// Help text, one line.
    pub help: &'static str,
    /// Type of its samples.
    pub kind: Kind,
    /// One sample for each combination of labels.
    pub samples: Vec<MetricSample>,
}

/// Type of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Grows since the segment was created.
    Counter,
    /// Current value.
    Gauge,
    /// Count and sum; no quantiles.
    Summary,
    /// Count, sum and buckets.
    Histogram,
}

/// A sample.
#[derive(Debug, Clone)]
pub struct MetricSample {
    /// Label names and values.
    pub labels: Vec<(&'static str, String)>,
    /// Its value.
    pub value: Value,
    /// When it started, seconds since 1970; `None` if it started when the segment was created.
    pub since: Option<f64>,
}

/// The value of a sample.
#[derive(Debug, Clone)]
pub enum Value {
    /// A number.
    Number(f64),
    /// For a summary.
    Timed {
        /// Count.
        count: u64,
        /// Sum.
        sum: f64,
    },
    /// For a histogram.
    Spread(Spread),
}

/// The distribution of times.
#[derive(Debug, Clone, Default)]
pub struct Spread {
    /// Count.
    pub count: u64,
    /// Sum, seconds.
    pub sum: f64,
    /// Middle of each bucket in seconds, ascending, and its count.
    pub buckets: Vec<(f64, u64)>,
}

impl MetricSample {
    /// Adds another one with the same labels.
    fn add(&mut self, other: &MetricSample) {
        self.since = self.since.zip(other.since).map(|(a, b)| a.min(b));
        match (&mut self.value, &other.value) {
            (Value::Number(sum), Value::Number(more)) => *sum += more,
            (Value::Timed { count, sum }, Value::Timed { count: calls, sum: more }) => {
                *count = count.saturating_add(*calls);
                *sum += more;
            }
            (Value::Spread(sum), Value::Spread(more)) => sum.add(more),
            // All samples of a family are of one kind.
            _ => {}
        }
    }
}

impl Spread {
    fn add(&mut self, other: &Spread) {
        self.count = self.count.saturating_add(other.count);
        self.sum += other.sum;
        self.buckets.extend(&other.buckets);
        self.buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.buckets.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            is_same
        });
    }

    /// The distribution of `count` times, from a histogram in ticks.
    pub fn from_histogram(
        count: u64,
        sum: f64,
        histogram: &Histogram,
        ticks_per_second: f64,
    ) -> Spread {
        let middle = |bucket| bucket_middle(bucket) as f64 / ticks_per_second;
        let buckets = histogram.buckets().map(|(bucket, n)| (middle(bucket), n)).collect();
        Spread { count: count.max(histogram.count()), sum, buckets }
    }

    /// Number of values in buckets.
    pub fn placed(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, (_, n)| sum.saturating_add(*n))
    }
}

impl Family {
    /// A family without samples.
    pub fn new(name: &'static str, kind: Kind, help: &'static str) -> Family {
        Family { name, help, kind, samples: Vec::new() }
    }

    /// Adds a number.
    pub fn number<const N: usize>(&mut self, labels: [(&'static str, &str); N], value: f64) {
        self.push(labels, Value::Number(value));
    }

    /// Adds a count and a sum.
    pub fn timed<const N: usize>(
        &mut self,
        labels: [(&'static str, &str); N],
        count: u64,
        sum: f64,
    ) {
        self.push(labels, Value::Timed { count, sum });
    }

    /// Adds a sample.
    pub fn push<const N: usize>(&mut self, labels: [(&'static str, &str); N], value: Value) {
        let labels =
            labels.into_iter().map(|(name, value)| (name, visible(value).into_owned())).collect();
        self.samples.push(MetricSample { labels, value, since: None });
    }

    /// Adds a number that started at `since`, seconds since 1970.
    pub fn number_since<const N: usize>(
        &mut self,
        labels: [(&'static str, &str); N],
        value: f64,
        since: f64,
    ) {
        self.number(labels, value);
        if let Some(sample) = self.samples.last_mut() {
            sample.since = Some(since);
        }
    }

    /// Orders the samples by their labels, and adds up samples with equal labels, because a receiver refuses a
    /// reading with duplicates.
    pub fn settle(&mut self) {
        self.samples.sort_by(|a, b| a.labels.cmp(&b.labels));
        self.samples.dedup_by(|next, kept| {
            let is_same = next.labels == kept.labels;
            if is_same {
                kept.add(next);
            }
            is_same
        });
    }

    /// Its name without `_total`, as OpenMetrics requires.
    pub fn base(&self) -> &'static str {
        match self.kind {
            Kind::Counter => self.name.strip_suffix("_total").unwrap_or(self.name),
            _ => self.name,
        }
    }

    /// Its unit, if the name contains one.
    pub fn unit(&self) -> Option<&'static str> {
        ["seconds", "bytes"].into_iter().find(|unit| self.base().ends_with(unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_equal_labels_are_added_up() {
        let labels = |name| [("name", name)];
        let mut numbers = Family::new("a_total", Kind::Counter, "");
        numbers.number_since(labels("x"), 1.0, 20.0);
        numbers.number(labels("y"), 2.0);
        numbers.number_since(labels("x"), 4.0, 10.0);
        numbers.settle();
        let of = |sample: &MetricSample| match &sample.value {
            Value::Number(value) => (sample.labels[0].1.clone(), *value, sample.since),
            other => panic!("{other:?}"),
        };
        let found: Vec<_> = numbers.samples.iter().map(of).collect();
        assert_eq!(found, [("x".to_string(), 5.0, Some(10.0)), ("y".to_string(), 2.0, None)]);

        let mut times = Family::new("a_seconds", Kind::Summary, "");
        times.timed(labels("x"), 2, 1.5);
        times.timed(labels("x"), 3, 2.5);
        times.settle();
        let [MetricSample { value: Value::Timed { count: 5, sum }, .. }] = &times.samples[..]
        else {
            panic!("{times:?}")
        };
        assert_eq!(*sum, 4.0);

        let mut spreads = Family::new("a_seconds", Kind::Histogram, "");
        for buckets in [vec![(1.0, 2), (4.0, 1)], vec![(1.0, 3), (2.0, 5)]] {
            let count = buckets.iter().map(|(_, n)| n).sum();
            spreads.push(labels("x"), Value::Spread(Spread { count, sum: 8.0, buckets }));
        }
        spreads.settle();
        let [MetricSample { value: Value::Spread(both), .. }] = &spreads.samples[..] else {
            panic!("{spreads:?}")
        };
        assert_eq!((both.count, both.sum), (11, 16.0));
        assert_eq!(both.buckets, [(1.0, 5), (2.0, 5), (4.0, 1)]);
    }
}
