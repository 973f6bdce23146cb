// SPDX-License-Identifier: PostgreSQL
//! The metrics of `/metrics` as OTLP: the same figures under OpenTelemetry's names and types, with cumulative
//! temporality.
//!
//! `pgtally_wait_seconds` becomes `pgtally.wait` with unit `s`; the rules by which collectors name metrics for
//! Prometheus reverse this. Histograms become exponential ones of scale [`SCHEMA`]; a metric with only a count
//! and a sum becomes a histogram of one bucket.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram,
    HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

use super::super::metrics::{exponential, Family, Kind, MetricSample, Spread, Value, SCHEMA, ZERO};
use super::starts::Starts;
use otlp::attribute::{of_label, scope};

const CUMULATIVE: i32 = AggregationTemporality::Cumulative as i32;

/// A request with all families, as of `time`, ns since 1970.
pub fn request(
    families: &[Family],
    starts: &mut Starts,
    time: u64,
    resource: &Resource,
) -> Vec<u8> {
    let metrics = families.iter().flat_map(|family| metrics_of(family, starts, time)).collect();
    let scope_metrics =
        vec![ScopeMetrics { scope: Some(scope()), metrics, ..ScopeMetrics::default() }];
    let resource = Some(resource.clone());
    let of_resource = ResourceMetrics { resource, scope_metrics, ..ResourceMetrics::default() };
    ExportMetricsServiceRequest { resource_metrics: vec![of_resource] }.encode_to_vec()
}

/// Its name without `_total` and `_seconds`. `_bytes` stays, because bytes are what is counted.
fn name(family: &Family) -> String {
    let base = family.base();
    // Some statistics are numbers, not times.
    let bare = base.strip_suffix("_seconds").filter(|bare| *bare != "pgtally_statistic");
    bare.unwrap_or(base).replacen('_', ".", 1)
}

/// The data points of a family by type.
#[derive(Default)]
struct Points {
    numbers: Vec<NumberDataPoint>,
    exponential: Vec<ExponentialHistogramDataPoint>,
    /// Points with a count and a sum.
    sums: Vec<HistogramDataPoint>,
}

fn metrics_of(family: &Family, starts: &mut Starts, time: u64) -> Vec<Metric> {
    let mut points = Points::default();
    for sample in &family.samples {
        points.add(family, sample, starts, time);
    }
    let Points { numbers, exponential, sums } = points;
    let mut data = Vec::new();
    if !numbers.is_empty() {
        data.push(match family.kind {
            Kind::Counter => Data::Sum(Sum {
                data_points: numbers,
                aggregation_temporality: CUMULATIVE,
                is_monotonic: true,
            }),
            _ => Data::Gauge(Gauge { data_points: numbers }),
        });
    }
    if !exponential.is_empty() {
        let aggregation_temporality = CUMULATIVE;
        data.push(Data::ExponentialHistogram(ExponentialHistogram {
            data_points: exponential,
            aggregation_temporality,
        }));
    }
    if !sums.is_empty() {
        let aggregation_temporality = CUMULATIVE;
        data.push(Data::Histogram(Histogram { data_points: sums, aggregation_temporality }));
    }
    let unit = match family.unit() {
        Some("seconds") => "s",
        Some("bytes") => "By",
        _ => "",
    };
    let metric = |data| Metric {
        name: name(family),
        description: family.help.to_string(),
        unit: unit.to_string(),
        data: Some(data),
        ..Metric::default()
    };
    data.into_iter().map(metric).collect()
}

impl Points {
    fn add(&mut self, family: &Family, sample: &MetricSample, starts: &mut Starts, time: u64) {
        let attributes = sample.labels.iter().map(of_label).collect();
        let mut start = |value: f64| starts.start_of(family.name, sample, value);
        match &sample.value {
            Value::Number(value) => self.numbers.push(NumberDataPoint {
                attributes,
                // A gauge has no start.
                start_time_unix_nano: if family.kind == Kind::Counter { start(*value) } else { 0 },
                time_unix_nano: time,
                value: Some(Number::AsDouble(*value)),
                ..NumberDataPoint::default()
            }),
            Value::Timed { count, sum } => self.sums.push(HistogramDataPoint {
                attributes,
                start_time_unix_nano: start(*count as f64),
                time_unix_nano: time,
                ..one_bucket(*count, *sum)
            }),
            Value::Spread(spread) => match of_spread(spread) {
                Some(point) => self.exponential.push(ExponentialHistogramDataPoint {
                    attributes,
                    start_time_unix_nano: start(spread.count as f64),
                    time_unix_nano: time,
                    ..point
                }),
                // Some of its values have no bucket, but its count must equal the sum of its buckets.
                None => self.sums.push(HistogramDataPoint {
                    attributes,
                    start_time_unix_nano: start(spread.count as f64),
                    time_unix_nano: time,
                    ..one_bucket(spread.count, spread.sum)
                }),
            },
        }
    }
}

fn one_bucket(count: u64, sum: f64) -> HistogramDataPoint {
    let bucket_counts = vec![count];
    HistogramDataPoint { count, sum: Some(sum), bucket_counts, ..HistogramDataPoint::default() }
}

fn of_spread(spread: &Spread) -> Option<ExponentialHistogramDataPoint> {
    let exponential = exponential(spread)?;
    let used = exponential.counts.keys().next().zip(exponential.counts.keys().next_back());
    // Our bucket 1 begins at 1; here it is number 0.
    let positive = used.map(|(first, last)| Buckets {
        offset: first - 1,
        bucket_counts: (*first..=*last)
            .map(|index| exponential.counts.get(&index).copied().unwrap_or(0))
            .collect(),
    });
    Some(ExponentialHistogramDataPoint {
        count: spread.count,
        sum: Some(spread.sum),
        scale: SCHEMA,
        zero_count: exponential.zero,
        zero_threshold: ZERO,
        positive,
        ..ExponentialHistogramDataPoint::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(family: Family) -> Vec<Metric> {
        let mut starts = Starts::default();
        starts.begin(1.0, 3_000_000_000);
        metrics_of(&family, &mut starts, 3_000_000_000)
    }

    #[test]
    fn units_leave_the_names() {
        for (ours, kind, theirs) in [
            ("pgtally_time_seconds_total", Kind::Counter, ("pgtally.time", "s")),
            ("pgtally_wal_bytes_total", Kind::Counter, ("pgtally.wal_bytes", "By")),
            ("pgtally_commits_total", Kind::Counter, ("pgtally.commits", "")),
            ("pgtally_up", Kind::Gauge, ("pgtally.up", "")),
        ] {
            let mut family = Family::new(ours, kind, "");
            family.number([], 1.0);
            let metric = sent(family).remove(0);
            assert_eq!((&*metric.name, &*metric.unit), theirs);
        }
    }

    #[test]
    fn no_two_metrics_have_the_same_name() {
        let documented = include_str!("../../../../docs/reference-metrics.md");
        let mut names = std::collections::BTreeMap::new();
        for row in documented.lines().filter(|line| line.starts_with("| `pgtally_")) {
            let cells: Vec<&str> =
                row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
            let kind = if cells[2] == "counter" { Kind::Counter } else { Kind::Summary };
            let family = Family::new(cells[1].to_string().leak(), kind, "");
            let before = names.insert(name(&family), cells[1]);
            assert_eq!(before, None, "{row}");
        }
        assert!(names.len() > 30);
    }

    #[test]
    fn a_bucket_has_the_values_above_its_lower_edge_up_to_its_upper_edge() {
        // In OTLP, bucket i contains the values in (base^i, base^(i + 1)], base = 2^(2^-scale).
        let base = 2f64.powf(0.125);
        let values = [1e-6, 0.999, 1.0, 1.001, 2.0, 3.7, 100.0];
        for value in values {
            let spread = Spread { count: 7, sum: 7.0 * value, buckets: vec![(value, 7)] };
            let point = of_spread(&spread).unwrap();
            let buckets = point.positive.unwrap();
            assert_eq!(buckets.bucket_counts, [7]);
            let (below, above) = (base.powi(buckets.offset), base.powi(buckets.offset + 1));
            let slack = 1.0 + 1e-12;
            assert!(below < value * slack && value <= above * slack, "{value}: {below}..{above}");
        }
    }

    #[test]
    fn empty_buckets_between_used_ones_are_sent_and_counts_add_up() {
        let buckets = vec![(0.0, 4), (1.0, 3), (2.0, 5)];
        let point = of_spread(&Spread { count: 12, sum: 13.0, buckets }).unwrap();
        assert_eq!((point.count, point.sum, point.zero_count), (12, Some(13.0), 4));
        let buckets = point.positive.unwrap();
        assert_eq!(buckets.offset, -1);
        assert_eq!(buckets.bucket_counts, [3, 0, 0, 0, 0, 0, 0, 0, 5]);
    }

    #[test]
    fn values_without_a_bucket_count_in_a_histogram_of_one_bucket() {
        let mut family = Family::new("pgtally_wait_seconds", Kind::Histogram, "");
        let (whole, cut) = (vec![(1.0, 2)], vec![(1.0, 2)]);
        family.push(
            [("activity", "a")],
            Value::Spread(Spread { count: 2, sum: 2.0, buckets: whole }),
        );
        family
            .push([("activity", "b")], Value::Spread(Spread { count: 9, sum: 9.0, buckets: cut }));
        let metrics = sent(family);
        assert_eq!(metrics.len(), 2);
        let Some(Data::ExponentialHistogram(exponential)) = &metrics[0].data else { panic!() };
        assert_eq!(exponential.data_points[0].count, 2);
        assert_eq!(exponential.data_points[0].start_time_unix_nano, 1_000_000_000);
        let Some(Data::Histogram(sums)) = &metrics[1].data else { panic!() };
        assert_eq!((sums.data_points[0].count, &*sums.data_points[0].bucket_counts), (9, &[9][..]));
    }
}
