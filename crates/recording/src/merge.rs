// SPDX-License-Identifier: PostgreSQL
//! How a field of a later row is merged into the field of an earlier one.

use std::sync::Arc;

/// Values that can be added.
pub(crate) trait Addable {
    /// Add a value, saturating.
    fn add(&mut self, more: Self);
}

impl Addable for u64 {
    fn add(&mut self, more: u64) {
        *self = self.saturating_add(more);
    }
}

impl Addable for i64 {
    fn add(&mut self, more: i64) {
        *self = self.saturating_add(more);
    }
}

impl Addable for f64 {
    fn add(&mut self, more: f64) {
        *self += more;
    }
}

impl Addable for Option<u64> {
    fn add(&mut self, more: Option<u64>) {
        *self = both(*self, more, u64::saturating_add);
    }
}

fn both(a: Option<u64>, b: Option<u64>, with: fn(u64, u64) -> u64) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(with(a, b)),
        _ => a.or(b),
    }
}

/// The sum of both.
pub(crate) fn sum<T: Addable>(field: &mut T, later: T) {
    field.add(later);
}

/// Keep the later value.
pub(crate) fn last<T>(field: &mut T, later: T) {
    *field = later;
}

/// Keep the larger value.
pub(crate) fn max<T: Ord>(field: &mut T, later: T) {
    if later > *field {
        *field = later;
    }
}

/// Keep the smaller value; an unknown one is ignored.
pub(crate) fn min(field: &mut Option<u64>, later: Option<u64>) {
    *field = both(*field, later, u64::min);
}

/// Whether both are true.
pub(crate) fn all(field: &mut bool, later: bool) {
    *field &= later;
}

/// Whether any is true.
pub(crate) fn any(field: &mut bool, later: bool) {
    *field |= later;
}

/// Keep the earlier time; 0 is unknown.
pub(crate) fn earliest(field: &mut i64, later: i64) {
    *field = match (*field, later) {
        (0, time) | (time, 0) => time,
        (a, b) => a.min(b),
    };
}

/// Keep the first text that is not empty.
pub(crate) fn known(field: &mut Arc<str>, later: Arc<str>) {
    if field.is_empty() {
        *field = later;
    }
}

/// Merge buckets and their counts; both are sorted by bucket.
pub(crate) fn buckets(
    (buckets, counts): (&mut Vec<u64>, &mut Vec<u64>),
    (more, more_counts): (&[u64], &[u64]),
) {
    for (bucket, count) in more.iter().zip(more_counts) {
        match buckets.binary_search(bucket) {
            Ok(at) => counts[at] = counts[at].saturating_add(*count),
            Err(at) => {
                buckets.insert(at, *bucket);
                counts.insert(at, *count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged<T>(rule: impl Fn(&mut T, T), mut field: T, later: T) -> T {
        rule(&mut field, later);
        field
    }

    #[test]
    fn each_rule_takes_what_its_name_says() {
        assert_eq!(merged(sum, 3u64, 4), 7);
        assert_eq!(merged(sum, u64::MAX - 1, 4), u64::MAX);
        assert_eq!(merged(sum, -3i64, 1), -2);
        assert_eq!(merged(sum, 0.5, 0.25), 0.75);
        for (a, b, added, smaller) in [
            (Some(3), Some(4), Some(7), Some(3)),
            (Some(4), Some(3), Some(7), Some(3)),
            (None, Some(4), Some(4), Some(4)),
            (Some(3), None, Some(3), Some(3)),
            (None, None, None, None),
        ] {
            assert_eq!(merged(sum, a, b), added);
            assert_eq!(merged(min, a, b), smaller);
        }
        assert_eq!((merged(last, 3, 4), merged(last, 4, 3)), (4, 3));
        assert_eq!((merged(max, 3, 4), merged(max, 4, 3)), (4, 4));
        assert_eq!(merged(max, None, Some(3)), Some(3));
        for (a, b) in [(true, true), (true, false), (false, true), (false, false)] {
            assert_eq!((merged(all, a, b), merged(any, a, b)), (a && b, a || b));
        }
        for (a, b, first) in [(0, 5, 5), (5, 0, 5), (5, 7, 5), (7, 5, 5), (0, 0, 0)] {
            assert_eq!(merged(earliest, a, b), first);
        }
        assert_eq!(&*merged(known, "".into(), "b".into()), "b");
        assert_eq!(&*merged(known, "a".into(), "b".into()), "a");
    }

    #[test]
    fn buckets_stay_sorted_with_their_counts() {
        let mut both = (vec![2, 5], vec![20, 50]);
        buckets((&mut both.0, &mut both.1), (&[1, 5, 3, 9], &[10, 1, 30, u64::MAX]));
        assert_eq!(both, (vec![1, 2, 3, 5, 9], vec![10, 20, 30, 51, u64::MAX]));
        buckets((&mut both.0, &mut both.1), (&[9], &[1]));
        assert_eq!(both.1[4], u64::MAX);
    }
}
