// SPDX-License-Identifier: PostgreSQL
//! A histogram without its empty ends: merge, subtract, quantile.

use crate::layout::{bucket, bucket_middle, HIST_BUCKETS};

/// Counts per bucket, from the first bucket kept to the last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    first: usize,
    counts: Vec<u64>,
}

impl Histogram {
    /// An empty one.
    pub fn new() -> Histogram {
        Histogram::default()
    }

    /// Values in it.
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, &n| sum.saturating_add(n))
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|&n| n == 0)
    }

    /// Make room for the buckets `first .. first + len`.
    fn cover(&mut self, first: usize, len: usize) {
        let end = (first + len).min(HIST_BUCKETS);
        if first >= end {
            return;
        }
        if self.counts.is_empty() {
            self.first = first;
        }
        if first < self.first {
            let more = self.first - first;
            self.counts.splice(0..0, std::iter::repeat_n(0, more));
            self.first = first;
        }
        if end > self.first + self.counts.len() {
            self.counts.resize(end - self.first, 0);
        }
    }

    /// Count `n` more values in the bucket of `value`.
    pub fn add(&mut self, value: u64, n: u64) {
        self.add_counts(bucket(value), &[n]);
    }

    /// Add counts of the buckets from `first` on.
    pub fn add_counts(&mut self, first: usize, counts: &[u64]) {
        self.cover(first, counts.len());
        for (i, &n) in counts.iter().enumerate() {
            if let Some(slot) =
                (first + i).checked_sub(self.first).and_then(|at| self.counts.get_mut(at))
            {
                *slot = slot.saturating_add(n);
            }
        }
    }

    /// Take away counts of the buckets from `first` on; none falls below zero.
    pub fn subtract_counts(&mut self, first: usize, counts: &[u64]) {
        for (i, &n) in counts.iter().enumerate() {
            if let Some(slot) =
                (first + i).checked_sub(self.first).and_then(|at| self.counts.get_mut(at))
            {
                *slot = slot.saturating_sub(n);
            }
        }
    }

    /// Add another one.
    pub fn merge(&mut self, other: &Histogram) {
        self.add_counts(other.first, &other.counts);
    }

    /// The buckets that hold something, with their counts.
    pub fn buckets(&self) -> impl DoubleEndedIterator<Item = (usize, u64)> + '_ {
        self.counts.iter().enumerate().filter(|(_, &n)| n > 0).map(|(i, &n)| (self.first + i, n))
    }

    /// The value below which the share `q` of all values lies: the middle of its bucket, so
    /// within 6.25 %, and never outside of `min ..= max`. `None` when empty.
    pub fn quantile(&self, q: f64, min: u64, max: u64) -> Option<u64> {
        let total = self.count();
        if total == 0 {
            return None;
        }
        let rank = ((q.clamp(0.0, 1.0) * total as f64).ceil() as u64).clamp(1, total);
        let mut seen = 0u64;
        for (bucket, n) in self.buckets() {
            seen = seen.saturating_add(n);
            if seen >= rank {
                return Some(bucket_middle(bucket).min(max).max(min.min(max)));
            }
        }
        None
    }

    /// The lowest bucket that holds something.
    pub fn lowest(&self) -> Option<usize> {
        self.buckets().next().map(|b| b.0)
    }

    /// The highest bucket that holds something.
    pub fn highest(&self) -> Option<usize> {
        self.buckets().next_back().map(|b| b.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut h = Histogram::new();
        for &v in values {
            h.add(v, 1);
        }
        h
    }

    proptest! {
        #[test]
        fn a_quantile_is_within_a_sixteenth_of_the_sorted_values(
            mut values in prop::collection::vec(0u64..1 << 43, 1..200),
            q in 0.0f64..=1.0,
        ) {
            let h = of(&values);
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1];
            let found = h.quantile(q, values[0], values[values.len() - 1]).unwrap();
            prop_assert!(
                found.abs_diff(exact) as f64 <= exact as f64 / 16.0,
                "{found} for {exact}"
            );
        }

        #[test]
        fn merging_and_taking_away_are_as_counting_one_by_one(
            a in prop::collection::vec(0u64..u64::MAX, 0..60),
            b in prop::collection::vec(0u64..u64::MAX, 0..60),
        ) {
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let both: Vec<u64> = a.iter().chain(&b).copied().collect();
            let expected: Vec<_> = of(&both).buckets().collect();
            prop_assert_eq!(merged.buckets().collect::<Vec<_>>(), expected);
            let only_b = of(&b);
            merged.subtract_counts(only_b.first, &only_b.counts);
            prop_assert_eq!(
                merged.buckets().collect::<Vec<_>>(),
                of(&a).buckets().collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn an_empty_histogram_has_no_quantile() {
        assert_eq!(Histogram::new().quantile(0.5, 0, 10), None);
        assert!(Histogram::new().is_empty());
    }
}
