// SPDX-License-Identifier: PostgreSQL
//! Metrics, independent of the format they are written in.

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
    /// One for each combination of labels.
    pub samples: Vec<Sample>,
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
pub struct Sample {
    /// Label names and values.
    pub labels: Vec<(&'static str, String)>,
    /// Its value.
    pub value: Value,
    /// When it started, seconds since 1970; `None`: when the segment was created.
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
    /// Middle of each bucket in seconds, rising, and its count.
    pub buckets: Vec<(f64, u64)>,
}

impl Spread {
    /// The distribution of `count` times with a histogram in ticks.
    pub fn of(count: u64, sum: f64, histogram: &Histogram, ticks_per_second: f64) -> Spread {
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
        self.samples.push(Sample { labels, value, since: None });
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
