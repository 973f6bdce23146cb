// SPDX-License-Identifier: PostgreSQL
//! Histograms as Prometheus wants them: counts up to bounds, and its native buckets.
//!
//! Ours are 1/16 wide. Each goes as a whole to where its middle lies, so that counts are exact
//! and a bound is, by 6.25 % at most, not.

use std::collections::BTreeMap;

use super::family::Spread;

/// The upper bounds of the classic buckets, seconds; +Inf follows.
pub const BOUNDS: [f64; 25] = [
    1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1,
    0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0,
];

/// Eight native buckets to a doubling: 9 % wide, wider than ours, so that none stays empty
/// between two that are full.
pub const SCHEMA: i32 = 3;
const A_DOUBLING: f64 = 8.0;
/// What is not above this counts as zero.
pub const ZERO: f64 = 1e-12;

/// How many are not above each of the bounds.
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

/// Native buckets as they are sent: stretches of buckets that follow each other, and each
/// bucket's difference from the one before.
#[derive(Debug, Default, PartialEq)]
pub struct Native {
    /// Values not above [`ZERO`].
    pub zero: u64,
    /// Buckets left out before it, and how many it has; the first counts from bucket 0.
    pub spans: Vec<(i32, u32)>,
    /// Of every bucket.
    pub deltas: Vec<i64>,
}

/// `None`: some values have no bucket, so that the sum would not be the count.
pub fn native(spread: &Spread) -> Option<Native> {
    if spread.placed() != spread.count {
        return None;
    }
    let mut native = Native::default();
    let mut counts: BTreeMap<i32, u64> = BTreeMap::new();
    for (middle, n) in &spread.buckets {
        if *middle <= ZERO {
            native.zero = native.zero.saturating_add(*n);
        } else {
            let index = (middle.log2() * A_DOUBLING).ceil() as i32;
            let count = counts.entry(index).or_default();
            *count = count.saturating_add(*n);
        }
    }
    let (mut next, mut before) = (0, 0i64);
    for (index, count) in counts {
        match native.spans.last_mut() {
            Some((_, length)) if index == next => *length += 1,
            _ => native.spans.push((index - next, 1)),
        }
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        native.deltas.push(count - before);
        (next, before) = (index + 1, count);
    }
    if native.spans.is_empty() {
        // Without one it would be taken for a classic histogram.
        native.spans.push((0, 0));
    }
    Some(native)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(buckets: &[(f64, u64)]) -> Spread {
        let count = buckets.iter().map(|b| b.1).sum();
        Spread { count, sum: 1.0, buckets: buckets.to_vec() }
    }

    #[test]
    fn classic_counts_never_fall_and_what_is_above_all_bounds_is_left_to_infinity() {
        let counts = classic(&of(&[(0.0, 1), (1e-6, 2), (1.1e-6, 4), (0.3, 8), (1_000.0, 16)]));
        assert_eq!((counts[0], counts[1], counts[24]), (3, 7, 15));
        assert_eq!(counts[17], 15, "0.3 s is within half a second");
        assert_eq!(counts[16], 7);
        assert!(counts.windows(2).all(|pair| pair[0] <= pair[1]));
    }

    #[test]
    fn native_buckets_hold_what_lies_between_their_edges() {
        // 1 s is the upper edge of bucket 0; above it begins bucket 1, which ends at 2^(1/8).
        let one = native(&of(&[(0.0, 5), (1.0, 3), (1.05, 2), (2.0, 7)])).unwrap();
        assert_eq!(one.zero, 5);
        assert_eq!(one.spans, [(0, 2), (6, 1)]);
        assert_eq!(one.deltas, [3, -1, 5]);
        let below = native(&of(&[(0.5, 3)])).unwrap();
        assert_eq!((below.spans, below.deltas), (vec![(-8, 1)], vec![3]));
        assert_eq!(native(&of(&[(0.0, 1)])).unwrap().spans, [(0, 0)]);
        assert_eq!(native(&Spread { count: 9, ..of(&[(1.0, 3)]) }), None);
    }
}
