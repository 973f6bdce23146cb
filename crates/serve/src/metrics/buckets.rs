// SPDX-License-Identifier: PostgreSQL
//! Converts histograms to classic buckets and to exponential ones, which Prometheus' native histograms and
//! OpenTelemetry use.
//!
//! Our buckets are 1/16 wide. Each is assigned as a whole by its middle, so counts are exact and bounds are off
//! by at most 6.25 %.

use std::collections::BTreeMap;

use super::family::Spread;

/// Upper bounds of the classic buckets, seconds; +Inf follows.
pub const BOUNDS: [f64; 25] = [
    1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1,
    0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0,
];

/// Eight native buckets per doubling: each is 9 % wide and therefore wider than ours, which leaves no empty
/// bucket between two used ones.
pub const SCHEMA: i32 = 3;
const A_DOUBLING: f64 = 8.0;
/// Values up to this count as zero, seconds.
pub const ZERO: f64 = 1e-12;

/// Number of values up to each bound.
pub fn classic(spread: &Spread) -> [u64; BOUNDS.len()] {
    let mut counts = [0u64; BOUNDS.len()];
    for (middle, n) in &spread.buckets {
        let at = BOUNDS.partition_point(|bound| bound < middle);
        if let Some(count) = counts.get_mut(at) {
            *count = count.saturating_add(*n);
        }
    }
    let mut sum = 0u64;
    counts.map(|n| {
        sum = sum.saturating_add(n);
        sum
    })
}

/// Native buckets in wire form: spans of adjacent buckets, and the difference of each bucket from the previous
/// one.
#[derive(Debug, Default, PartialEq)]
pub struct Native {
    /// Number of values up to [`ZERO`].
    pub zero: u64,
    /// Buckets skipped before each span, and its length; the first offset counts from bucket 0.
    pub spans: Vec<(i32, u32)>,
    /// Difference of each bucket's count from the previous one.
    pub deltas: Vec<i64>,
}

/// Exponential buckets. Native buckets are one notation for them, OpenTelemetry's another.
#[derive(Debug, Default, PartialEq)]
pub struct Exponential {
    /// Number of values up to [`ZERO`].
    pub zero: u64,
    /// Used buckets. Bucket `i` ends at `2^(i / 2^SCHEMA)`, inclusive.
    pub counts: BTreeMap<i32, u64>,
}

/// Exponential buckets; `None` if some values have no bucket, because the buckets would not add up.
pub fn exponential(spread: &Spread) -> Option<Exponential> {
    if spread.placed() != spread.count {
        return None;
    }
    let mut exponential = Exponential::default();
    for (middle, n) in &spread.buckets {
        let count = if *middle <= ZERO {
            &mut exponential.zero
        } else {
            let index = (middle.log2() * A_DOUBLING).ceil() as i32;
            exponential.counts.entry(index).or_default()
        };
        *count = count.saturating_add(*n);
    }
    Some(exponential)
}

/// Native buckets; `None` if some values have no bucket.
pub fn native(spread: &Spread) -> Option<Native> {
    let exponential = exponential(spread)?;
    let mut native = Native { zero: exponential.zero, ..Native::default() };
    let (mut next, mut before) = (0, 0i64);
    for (index, count) in exponential.counts {
        match native.spans.last_mut() {
            Some((_, length)) if index == next => *length += 1,
            _ => native.spans.push((index - next, 1)),
        }
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        native.deltas.push(count - before);
        (next, before) = (index + 1, count);
    }
    if native.spans.is_empty() {
        // Without a span, it would be mistaken for a classic histogram.
        native.spans.push((0, 0));
    }
    Some(native)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread_of_buckets(buckets: &[(f64, u64)]) -> Spread {
        let count = buckets.iter().map(|b| b.1).sum();
        Spread { count, sum: 1.0, buckets: buckets.to_vec() }
    }

    #[test]
    fn classic_counts_never_fall_and_values_above_all_bounds_count_only_in_infinity() {
        let counts = classic(&spread_of_buckets(&[
            (0.0, 1),
            (1e-6, 2),
            (1.1e-6, 4),
            (0.3, 8),
            (1_000.0, 16),
        ]));
        assert_eq!((counts[0], counts[1], counts[24]), (3, 7, 15));
        assert_eq!(counts[17], 15, "0.3 s is within half a second");
        assert_eq!(counts[16], 7);
        assert!(counts.windows(2).all(|pair| pair[0] <= pair[1]));
    }

    #[test]
    fn native_buckets_contain_the_values_between_their_edges() {
        // 1 s is the upper edge of bucket 0; above it begins bucket 1, which ends at 2^(1/8).
        let one = native(&spread_of_buckets(&[(0.0, 5), (1.0, 3), (1.05, 2), (2.0, 7)])).unwrap();
        assert_eq!(one.zero, 5);
        assert_eq!(one.spans, [(0, 2), (6, 1)]);
        assert_eq!(one.deltas, [3, -1, 5]);
        let below = native(&spread_of_buckets(&[(0.5, 3)])).unwrap();
        assert_eq!((below.spans, below.deltas), (vec![(-8, 1)], vec![3]));
        assert_eq!(native(&spread_of_buckets(&[(0.0, 1)])).unwrap().spans, [(0, 0)]);
        assert_eq!(native(&Spread { count: 9, ..spread_of_buckets(&[(1.0, 3)]) }), None);
    }
}
