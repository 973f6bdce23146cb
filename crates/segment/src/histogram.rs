// SPDX-License-Identifier: PostgreSQL
//! A histogram stored without its empty ends: merging, subtraction, quantiles.

use crate::layout::{bucket, bucket_middle, HIST_BUCKETS};

/// Counts per bucket, from the first stored bucket to the last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    first: usize,
    counts: Vec<u64>,
}

/// Counts of consecutive buckets. Most counts are below 2^32 and take half the memory.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Counts<'a> {
    /// All counts are below 2^32.
    Narrow(&'a [u32]),
    /// Counts of any size.
    Wide(&'a [u64]),
}

impl<'a> Counts<'a> {
    /// Number of buckets.
    pub fn len(&self) -> usize {
        match self {
            Counts::Narrow(counts) => counts.len(),
            Counts::Wide(counts) => counts.len(),
        }
    }

    /// The counts.
    pub fn iter(self) -> impl Iterator<Item = u64> + 'a {
        let (narrow, wide): (&[u32], &[u64]) = match self {
            Counts::Narrow(counts) => (counts, &[]),
            Counts::Wide(counts) => (&[], counts),
        };
        narrow.iter().map(|&n| u64::from(n)).chain(wide.iter().copied())
    }
}

/// Add the growth from `then` to `now` to `sums`; `sums` and `now` start at bucket `first`.
fn add_growth<N: Copy + Into<u64>, T: Copy + Into<u64>>(
    sums: &mut [u64],
    first: usize,
    now: &[N],
    first_then: usize,
    then: &[T],
) -> (Option<usize>, Option<usize>) {
    let (mut lowest, mut highest) = (None, None);
    let mut add = |bucket, sum: &mut u64, more| {
        if more > 0 {
            *sum = sum.saturating_add(more);
            lowest = lowest.or(Some(bucket));
            highest = Some(bucket);
        }
    };
    // The buckets below those of `then`, the common ones, and those above.
    let then = then.get(first.saturating_sub(first_then)..).unwrap_or(&[]);
    let below = first_then.saturating_sub(first).min(now.len());
    let above = (below + then.len()).min(now.len());
    let mut counted = sums.iter_mut().zip(now).zip(first..);
    for ((sum, &now), bucket) in counted.by_ref().take(below) {
        add(bucket, sum, now.into());
    }
    for (((sum, &now), bucket), &then) in counted.by_ref().take(above - below).zip(then) {
        add(bucket, sum, now.into().saturating_sub(then.into()));
    }
    for ((sum, &now), bucket) in counted {
        add(bucket, sum, now.into());
    }
    (lowest, highest)
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Histogram {
        Histogram::default()
    }

    /// A histogram with these buckets and counts; impossible buckets are ignored.
    pub fn of_buckets(buckets: impl IntoIterator<Item = (usize, u64)>) -> Histogram {
        let mut histogram = Histogram::new();
        histogram.add_buckets(buckets);
        histogram
    }

    /// Add these counts to their buckets; impossible buckets are ignored.
    pub fn add_buckets(&mut self, buckets: impl IntoIterator<Item = (usize, u64)>) {
        for (bucket, n) in buckets {
            let known = bucket.checked_sub(self.first).and_then(|at| self.counts.get_mut(at));
            match known {
                Some(count) => *count = count.saturating_add(n),
                None => self.add_counts(bucket, Counts::Wide(&[n])),
            }
        }
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, &n| sum.saturating_add(n))
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|&n| n == 0)
    }

    /// Make space for the buckets `first .. first + len`.
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

    /// The buckets `first .. first + len`, which must be covered, as far as they exist.
    fn part(&mut self, first: usize, len: usize) -> &mut [u64] {
        let end = (first + len).min(HIST_BUCKETS).saturating_sub(self.first);
        self.counts.get_mut(first - self.first..end).unwrap_or(&mut [])
    }

    /// Count `n` more values in the bucket of `value`.
    pub fn add(&mut self, value: u64, n: u64) {
        self.add_counts(bucket(value), Counts::Wide(&[n]));
    }

    /// Add the counts of the buckets from `first` on.
    pub(crate) fn add_counts(&mut self, first: usize, counts: Counts<'_>) {
        self.add_growth((first, counts), (0, Counts::Wide(&[])));
    }

    /// Add the growth from the second to the first of two histograms, each given by its first bucket
    /// and the counts from there on. Returns the lowest and the highest bucket that grew.
    pub(crate) fn add_growth(
        &mut self,
        (first, now): (usize, Counts<'_>),
        then: (usize, Counts<'_>),
    ) -> (Option<usize>, Option<usize>) {
        let len = now.len();
        if len == 0 || first >= HIST_BUCKETS {
            return (None, None);
        }
        self.cover(first, len);
        let sums = self.part(first, len);
        match (now, then.1) {
            (Counts::Narrow(n), Counts::Narrow(t)) => add_growth(sums, first, n, then.0, t),
            (Counts::Narrow(n), Counts::Wide(t)) => add_growth(sums, first, n, then.0, t),
            (Counts::Wide(n), Counts::Narrow(t)) => add_growth(sums, first, n, then.0, t),
            (Counts::Wide(n), Counts::Wide(t)) => add_growth(sums, first, n, then.0, t),
        }
    }

    /// Subtract the counts of the buckets from `first` on; no count falls below zero.
    pub(crate) fn subtract_counts(&mut self, first: usize, counts: Counts<'_>) {
        for (i, n) in counts.iter().enumerate() {
            if let Some(slot) =
                (first + i).checked_sub(self.first).and_then(|at| self.counts.get_mut(at))
            {
                *slot = slot.saturating_sub(n);
            }
        }
    }

    /// The first bucket, and the counts from there on.
    pub(crate) fn whole(&self) -> (usize, Counts<'_>) {
        (self.first, Counts::Wide(&self.counts))
    }

    /// Add another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        self.add_counts(other.first, Counts::Wide(&other.counts));
    }

    /// A histogram of values that are `ratio` times as large. Each bucket moves with its middle, so an
    /// error of 6.25 % may become 13 %.
    pub fn rescaled(&self, ratio: f64) -> Histogram {
        let mut histogram = Histogram::new();
        for (bucket, n) in self.buckets() {
            histogram.add((bucket_middle(bucket) as f64 * ratio).round() as u64, n);
        }
        histogram
    }

    /// The buckets that are not empty, with their counts.
    pub fn buckets(&self) -> impl DoubleEndedIterator<Item = (usize, u64)> + '_ {
        self.counts.iter().enumerate().filter(|(_, &n)| n > 0).map(|(i, &n)| (self.first + i, n))
    }

    /// The quantile `q` of `count` events whose extremes may be unknown: [`Histogram::quantile`]. `None` if the histogram has
    /// less than half of the events: not all writers keep one.
    pub(crate) fn quantile_of(
        &self,
        count: u64,
        q: f64,
        min: Option<u64>,
        max: Option<u64>,
    ) -> Option<u64> {
        if self.count() < count / 2 {
            return None;
        }
        self.quantile(q, min.unwrap_or(0), max.unwrap_or(u64::MAX))
    }

    /// The quantile `q`: the middle of its bucket, so within 6.25 %, and never outside `min ..= max`; `format/FORMAT.md`,
    /// section 7, has the definition. `None` when empty.
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

    /// The lowest bucket that is not empty.
    pub fn lowest(&self) -> Option<usize> {
        self.buckets().next().map(|b| b.0)
    }

    /// The highest bucket that is not empty.
    pub fn highest(&self) -> Option<usize> {
        self.buckets().next_back().map(|b| b.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn histogram_of_values(values: &[u64]) -> Histogram {
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
            let h = histogram_of_values(&values);
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
            let mut merged = histogram_of_values(&a);
            merged.merge(&histogram_of_values(&b));
            let both: Vec<u64> = a.iter().chain(&b).copied().collect();
            let expected: Vec<_> = histogram_of_values(&both).buckets().collect();
            prop_assert_eq!(merged.buckets().collect::<Vec<_>>(), expected);
            let only_b = histogram_of_values(&b);
            merged.subtract_counts(only_b.first, Counts::Wide(&only_b.counts));
            prop_assert_eq!(
                merged.buckets().collect::<Vec<_>>(),
                histogram_of_values(&a).buckets().collect::<Vec<_>>()
            );
        }
    }

    proptest! {
        #[test]
        fn growth_is_the_difference_bucket_by_bucket(
            (first, now) in (0..400usize, prop::collection::vec(0u32..3, 0..60)),
            (first_then, then) in (0..400usize, prop::collection::vec(0u32..3, 0..60)),
            close in any::<bool>(),
            begun in any::<bool>(),
        ) {
            let first_then = if close { first + first_then % 20 } else { first_then };
            let before = |bucket: usize| {
                bucket.checked_sub(first_then).and_then(|at| then.get(at)).map_or(0, |&n| n)
            };
            let more: Vec<(usize, u64)> = (first..HIST_BUCKETS)
                .zip(&now)
                .map(|(bucket, &n)| (bucket, u64::from(n.saturating_sub(before(bucket)))))
                .filter(|&(_, more)| more > 0)
                .collect();
            let wide = |counts: &[u32]| counts.iter().map(|&n| u64::from(n)).collect::<Vec<_>>();
            let (wide_now, wide_then) = (wide(&now), wide(&then));
            for (now, then) in [
                (Counts::Narrow(&now), Counts::Narrow(&then)),
                (Counts::Narrow(&now), Counts::Wide(&wide_then)),
                (Counts::Wide(&wide_now), Counts::Narrow(&then)),
                (Counts::Wide(&wide_now), Counts::Wide(&wide_then)),
            ] {
                let mut h = if begun { histogram_of_values(&[1 << 20]) } else { Histogram::new() };
                let ends = h.add_growth((first, now), (first_then, then));
                prop_assert_eq!(ends, (more.first().map(|m| m.0), more.last().map(|m| m.0)));
                if begun {
                    h.subtract_counts(bucket(1 << 20), Counts::Wide(&[1]));
                }
                prop_assert_eq!(h.buckets().collect::<Vec<_>>(), more.clone());
            }
        }
    }

    #[test]
    fn a_quantile_is_the_value_of_its_rank_within_the_extremes() {
        // Below 16, each value has its own bucket.
        let of_ten = histogram_of_values(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        for (q, value) in
            [(-1.0, 1), (0.0, 1), (0.1, 1), (0.11, 2), (0.5, 5), (0.9, 9), (0.91, 10), (2.0, 10)]
        {
            assert_eq!(of_ten.quantile(q, 0, 100), Some(value), "{q}");
        }
        // The middle of a bucket may be above or below its only value; if the extremes are torn, the maximum counts.
        let (low, high) = (1 << 20, (1 << 20) + (1 << 16) - 1);
        assert_eq!(histogram_of_values(&[low]).quantile(0.5, low, low), Some(low));
        assert_eq!(histogram_of_values(&[high]).quantile(0.5, high, high), Some(high));
        assert_eq!(histogram_of_values(&[low]).quantile(0.5, 1 << 40, 7), Some(7));
    }

    /// Cases that all readers share; their expected figures come from the values, by `format/golden/quantiles.py`.
    #[test]
    fn quantiles_are_those_of_the_golden_file() {
        let golden = include_str!("../../../format/golden/quantiles.tsv");
        let number = |text: &str| text.parse::<u64>().unwrap();
        let cases: Vec<&str> = golden.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(cases.len() > 20);
        for case in cases {
            let fields: Vec<&str> = case.split('\t').collect();
            let [name, values, parts, expected @ ..] = &fields[..] else { panic!("{case}") };
            let (mut all, mut min, mut max) = (Histogram::new(), None, None);
            for part in parts.split('|').filter(|part| *part != "-") {
                let mut words = part.split(',');
                let [low, high] = [0; 2].map(|_| words.next().map(number));
                min = min.or(low).min(low);
                max = max.max(high);
                let counts = words.map(|word| word.split_once(':').unwrap());
                let buckets = counts.map(|(bucket, n)| (number(bucket) as usize, number(n)));
                all.merge(&Histogram::of_buckets(buckets));
            }
            assert_eq!(all.count(), number(values), "{name}");
            for (q, expected) in [0.5, 0.9, 0.95, 0.99, 0.999].into_iter().zip(expected) {
                let found = all.quantile_of(number(values), q, min, max);
                assert_eq!(found, expected.parse().ok(), "{name} {q}");
            }
        }
    }

    #[test]
    fn a_histogram_with_less_than_half_of_the_events_has_no_quantile() {
        let of_three = histogram_of_values(&[5, 5, 7]);
        assert_eq!(of_three.quantile_of(7, 0.5, Some(5), Some(7)), Some(5));
        assert_eq!(of_three.quantile_of(8, 0.5, Some(5), Some(7)), None);
    }

    #[test]
    fn an_empty_histogram_has_no_quantile() {
        assert_eq!(Histogram::new().quantile(0.5, 0, 10), None);
        assert!(Histogram::new().is_empty());
    }
}
