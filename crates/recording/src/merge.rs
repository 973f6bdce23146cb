// SPDX-License-Identifier: PostgreSQL
//! How a field of a later row is merged into the field of an earlier one.

use std::sync::Arc;

/// Values that can be added.
pub(crate) trait Sum {
    /// Add a value, saturating.
    fn add(&mut self, more: Self);
}

impl Sum for u64 {
    fn add(&mut self, more: u64) {
        *self = self.saturating_add(more);
    }
}

impl Sum for i64 {
    fn add(&mut self, more: i64) {
        *self = self.saturating_add(more);
    }
}

impl Sum for f64 {
    fn add(&mut self, more: f64) {
        *self += more;
    }
}

impl Sum for Option<u64> {
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
pub(crate) fn sum<T: Sum>(field: &mut T, later: T) {
    field.add(later);
}

/// The later one.
pub(crate) fn last<T>(field: &mut T, later: T) {
    *field = later;
}

/// The larger one.
pub(crate) fn max<T: Ord>(field: &mut T, later: T) {
    if later > *field {
        *field = later;
    }
}

/// The smaller one, if both are known.
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

/// The earlier time; 0 is unknown.
pub(crate) fn earliest(field: &mut i64, later: i64) {
    *field = match (*field, later) {
        (0, time) | (time, 0) => time,
        (a, b) => a.min(b),
    };
}

/// The first text that is not empty.
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
