// SPDX-License-Identifier: PostgreSQL
//! Metrics before they are written in one form or another.

use segment::layout::bucket_middle;
use segment::Histogram;
use view::escape::visible;

/// All samples of one name.
#[derive(Debug, Clone)]
pub struct Family {
    /// Its name, with `_total` where it is a counter.
    pub name: &'static str,
    /// What it says, in one line.
    pub help: &'static str,
    /// What its samples are.
    pub kind: Kind,
    /// One for each combination of labels.
    pub samples: Vec<Sample>,
}

/// What samples are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Grows since the segment was made.
    Counter,
    /// Is so now.
    Gauge,
    /// Count and sum; no quantiles.
    Summary,
    /// Count, sum and how they are spread.
    Histogram,
}

/// One of them.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Names and values.
    pub labels: Vec<(&'static str, String)>,
    /// What it is.
    pub value: Value,
}

/// What a sample is.
#[derive(Debug, Clone)]
pub enum Value {
    /// A number.
    Number(f64),
    /// Of a summary.
    Timed {
        /// How many.
        count: u64,
        /// Their sum.
        sum: f64,
    },
    /// Of a histogram.
    Spread(Spread),
}

/// How some times are spread.
#[derive(Debug, Clone, Default)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// Their sum, seconds.
    pub sum: f64,
    /// Middle of a bucket in seconds, and how many lie there; rising.
    pub buckets: Vec<(f64, u64)>,
}

impl Spread {
    /// Of `count` times whose histogram is of ticks.
    pub fn of(count: u64, sum: f64, histogram: &Histogram, ticks_per_second: f64) -> Spread {
        let middle = |bucket| bucket_middle(bucket) as f64 / ticks_per_second;
        let buckets = histogram.buckets().map(|(bucket, n)| (middle(bucket), n)).collect();
        Spread { count: count.max(histogram.count()), sum, buckets }
    }

    /// Values that lie in a bucket.
    pub fn placed(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, (_, n)| sum.saturating_add(*n))
    }
}

impl Family {
    /// One without samples.
    pub fn new(name: &'static str, kind: Kind, help: &'static str) -> Family {
        Family { name, help, kind, samples: Vec::new() }
    }

    /// One more number.
    pub fn number<const N: usize>(&mut self, labels: [(&'static str, &str); N], value: f64) {
        self.push(labels, Value::Number(value));
    }

    /// One more count and sum.
    pub fn timed<const N: usize>(
        &mut self,
        labels: [(&'static str, &str); N],
        count: u64,
        sum: f64,
    ) {
        self.push(labels, Value::Timed { count, sum });
    }

    /// One more sample.
    pub fn push<const N: usize>(&mut self, labels: [(&'static str, &str); N], value: Value) {
        let labels =
            labels.into_iter().map(|(name, value)| (name, visible(value).into_owned())).collect();
        self.samples.push(Sample { labels, value });
    }

    /// Its name without the counter's ending, as OpenMetrics has it.
    pub fn base(&self) -> &'static str {
        match self.kind {
            Kind::Counter => self.name.strip_suffix("_total").unwrap_or(self.name),
            _ => self.name,
        }
    }

    /// Its unit, where the name tells one.
    pub fn unit(&self) -> Option<&'static str> {
        ["seconds", "bytes"].into_iter().find(|unit| self.base().ends_with(unit))
    }
}
