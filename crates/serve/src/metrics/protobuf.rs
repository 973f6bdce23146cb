// SPDX-License-Identifier: PostgreSQL
//! Metrics in Prometheus' protocol buffers: length-delimited messages `io.prometheus.client.MetricFamily`
//! (metrics.proto of prometheus/client_model). Of the three formats, only this one has native histograms.

use prost::Message;

use super::buckets::{classic, native, BOUNDS, SCHEMA, ZERO};
use super::family::{Family, Kind, MetricSample, Spread, Value};

/// Writes all families; `created` is when the counters started, seconds since 1970.
pub fn write(families: &[Family], created: Option<f64>) -> Vec<u8> {
    families
        .iter()
        .flat_map(|family| family_of(family, created).encode_length_delimited_to_vec())
        .collect()
}

fn family_of(family: &Family, created: Option<f64>) -> MetricFamily {
    let kind = match family.kind {
        Kind::Counter => 0,
        Kind::Gauge => 1,
        Kind::Summary => 2,
        Kind::Histogram => 4,
    };
    MetricFamily {
        name: Some(family.name.to_string()),
        help: Some(family.help.to_string()),
        kind: Some(kind),
        metric: family
            .samples
            .iter()
            .map(|sample| metric_of(sample, family.kind, created))
            .collect(),
    }
}

fn metric_of(sample: &MetricSample, kind: Kind, created: Option<f64>) -> Metric {
    let label = |(name, value): &(&str, String)| LabelPair {
        name: Some(name.to_string()),
        value: Some(value.clone()),
    };
    let mut metric =
        Metric { label: sample.labels.iter().map(label).collect(), ..Metric::default() };
    let created = sample.since.or(created).map(timestamp);
    match &sample.value {
        Value::Number(number) if kind == Kind::Counter => {
            metric.counter = Some(Counter { value: Some(*number), created });
        }
        Value::Number(number) => metric.gauge = Some(Gauge { value: Some(*number) }),
        Value::Timed { count, sum } => {
            metric.summary = Some(SummaryMessage { count: Some(*count), sum: Some(*sum), created });
        }
        Value::Spread(spread) => {
            metric.histogram = Some(Histogram { created, ..histogram_of(spread) });
        }
    }
    metric
}

fn histogram_of(spread: &Spread) -> Histogram {
    // For a scraper that does not store native histograms.
    let bucket = BOUNDS
        .iter()
        .zip(classic(spread))
        .map(|(bound, count)| Bucket { cumulative_count: Some(count), upper_bound: Some(*bound) });
    let mut histogram = Histogram {
        sample_count: Some(spread.count),
        sample_sum: Some(spread.sum),
        bucket: bucket.collect(),
        ..Histogram::default()
    };
    if let Some(native) = native(spread) {
        histogram.schema = Some(SCHEMA);
        histogram.zero_threshold = Some(ZERO);
        histogram.zero_count = Some(native.zero);
        let span = |(offset, length)| BucketSpan { offset: Some(offset), length: Some(length) };
        histogram.positive_span = native.spans.into_iter().map(span).collect();
        histogram.positive_delta = native.deltas;
    }
    histogram
}

fn timestamp(seconds: f64) -> Timestamp {
    let seconds = seconds.max(0.0);
    Timestamp { seconds: Some(seconds as i64), nanos: Some((seconds.fract() * 1e9) as i32) }
}

#[derive(Message)]
struct MetricFamily {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(string, optional, tag = "2")]
    help: Option<String>,
    /// A value of the enumeration MetricType.
    #[prost(int32, optional, tag = "3")]
    kind: Option<i32>,
    #[prost(message, repeated, tag = "4")]
    metric: Vec<Metric>,
}

#[derive(Message)]
struct Metric {
    #[prost(message, repeated, tag = "1")]
    label: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    gauge: Option<Gauge>,
    #[prost(message, optional, tag = "3")]
    counter: Option<Counter>,
    #[prost(message, optional, tag = "4")]
    summary: Option<SummaryMessage>,
    #[prost(message, optional, tag = "7")]
    histogram: Option<Histogram>,
}

#[derive(Message)]
struct LabelPair {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(string, optional, tag = "2")]
    value: Option<String>,
}

#[derive(Message)]
struct Gauge {
    #[prost(double, optional, tag = "1")]
    value: Option<f64>,
}

#[derive(Message)]
struct Counter {
    #[prost(double, optional, tag = "1")]
    value: Option<f64>,
    #[prost(message, optional, tag = "3")]
    created: Option<Timestamp>,
}

#[derive(Message)]
struct SummaryMessage {
    #[prost(uint64, optional, tag = "1")]
    count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    sum: Option<f64>,
    #[prost(message, optional, tag = "4")]
    created: Option<Timestamp>,
}

#[derive(Message)]
struct Histogram {
    #[prost(uint64, optional, tag = "1")]
    sample_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    sample_sum: Option<f64>,
    #[prost(message, repeated, tag = "3")]
    bucket: Vec<Bucket>,
    #[prost(sint32, optional, tag = "5")]
    schema: Option<i32>,
    #[prost(double, optional, tag = "6")]
    zero_threshold: Option<f64>,
    #[prost(uint64, optional, tag = "7")]
    zero_count: Option<u64>,
    #[prost(message, repeated, tag = "12")]
    positive_span: Vec<BucketSpan>,
    #[prost(sint64, repeated, tag = "13")]
    positive_delta: Vec<i64>,
    #[prost(message, optional, tag = "15")]
    created: Option<Timestamp>,
}

#[derive(Message)]
struct Bucket {
    #[prost(uint64, optional, tag = "1")]
    cumulative_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    upper_bound: Option<f64>,
}

#[derive(Message)]
struct BucketSpan {
    #[prost(sint32, optional, tag = "1")]
    offset: Option<i32>,
    #[prost(uint32, optional, tag = "2")]
    length: Option<u32>,
}

#[derive(Message)]
struct Timestamp {
    #[prost(int64, optional, tag = "1")]
    seconds: Option<i64>,
    #[prost(int32, optional, tag = "2")]
    nanos: Option<i32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_encoded_as_the_wire_format_defines() {
        let mut family = Family::new("a", Kind::Counter, "b");
        family.number([("l", "v")], 1.0);
        let expected: Vec<u8> = [
            &[35][..],
            &[0x0a, 1, b'a', 0x12, 1, b'b', 0x18, 0],
            &[0x22, 25],
            &[0x0a, 6, 0x0a, 1, b'l', 0x12, 1, b'v'],
            &[0x1a, 15, 0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f],
            &[0x1a, 4, 0x08, 7, 0x10, 0],
        ]
        .concat();
        assert_eq!(write(&[family], Some(7.0)), expected);
    }
}
