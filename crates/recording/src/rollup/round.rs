// SPDX-License-Identifier: PostgreSQL
//! Times of old intervals are kept in so many figures as anybody looks at; sums lose none.
//!
//! The nanoseconds of a second's time are chance, and chance takes room: two thirds of a recording
//! were made of it. So each time of a rolled-up hour has at most [`DIGITS`] binary digits of its
//! own. What is cut off goes to later times of the same series that it is small against, and what
//! is then left to the greatest: the sum of the hour is what it was, to the nanosecond.

use crate::batch::Batch;
use std::collections::HashMap;
use std::hash::Hash;

/// Binary digits that are kept of a time: it is off by half a step, and by another half where it took
/// over what was cut off before, so by 1 in 1,024 at most.
const DIGITS: u32 = 11;

/// The step in which a time is kept.
fn step(n: i128) -> i128 {
    let digits = i128::BITS - n.unsigned_abs().leading_zeros();
    1 << digits.saturating_sub(DIGITS)
}

/// Round the times of one series, which are in the order of time.
fn round(times: &mut [i128]) {
    let mut left = 0;
    for time in times.iter_mut() {
        let step = step(*time);
        if step == 1 {
            continue;
        }
        let mut exact = *time;
        if i128::abs(left) <= step / 2 {
            exact += std::mem::take(&mut left);
        }
        *time = (exact + step / 2).div_euclid(step) * step;
        left += exact - *time;
    }
    if let Some(greatest) = times.iter_mut().max_by_key(|time| time.unsigned_abs()) {
        *greatest += left;
    }
}

/// Round times, series by series; those of a series come in the order of time.
fn each<'r, K: Hash + Eq, N: Copy + Into<i128> + TryFrom<i128> + 'r>(
    cells: impl Iterator<Item = (K, &'r mut N)>,
) {
    let mut all: HashMap<K, Vec<&mut N>> = HashMap::new();
    for (key, cell) in cells {
        all.entry(key).or_default().push(cell);
    }
    for cells in all.into_values() {
        let mut times: Vec<i128> = cells.iter().map(|cell| (**cell).into()).collect();
        round(&mut times);
        for (cell, time) in cells.into_iter().zip(times) {
            // Rounding may lead over the end of the type only where that was damaged.
            *cell = N::try_from(time).unwrap_or(*cell);
        }
    }
}

/// Round what is most of an hour's rows.
pub(super) fn apply(batch: &mut Batch) {
    let times = batch.statistics.iter_mut().filter(|row| row.series.is_time());
    each(times.map(|row| (row.series.clone(), &mut row.total)));
    let parts = batch.statement_accounts.iter_mut();
    each(parts.map(|row| ((row.key(), row.account.clone()), &mut row.total_ns)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_times_stay_and_long_ones_lose_their_last_figures() {
        let mut times = [0, 1, 2047, 1_000_000_007, 17, 0];
        round(&mut times);
        assert_eq!((times[0], times[1], times[2], times[4], times[5]), (0, 1, 2047, 17, 0));
        assert_eq!(times[3], 1_000_000_007, "the greatest has what is left");
        let mut times = [1_000_000_007, 1_000_000_007, 5];
        round(&mut times);
        assert_eq!(times.iter().sum::<i128>(), 2_000_000_019);
        assert!(times.contains(&(1907 * 524_288)), "{times:?}");
    }

    #[test]
    fn what_a_longer_time_has_left_is_not_too_much_for_a_shorter_one() {
        let mut times = [2077 << 2, 3085 << 3, 2099 << 1];
        round(&mut times);
        assert!((times[2] - 4198).abs() <= 4, "{times:?}");
    }

    proptest! {
        #[test]
        fn sums_stay_and_no_time_is_off_by_much(
            times in prop::collection::vec((0u32..50, -1i64..1 << 12), 1..500)
        ) {
            let times: Vec<i128> = times
                .into_iter()
                .map(|(up, n)| i128::from(n) << up)
                .collect();
            let mut rounded = times.clone();
            round(&mut rounded);
            prop_assert_eq!(times.iter().sum::<i128>(), rounded.iter().sum::<i128>());
            let greatest = rounded.iter().map(|n| n.abs()).max().unwrap_or(0);
            for (before, after) in times.iter().zip(&rounded) {
                let off = (before - after).abs();
                let allowed = if after.abs() == greatest { before.abs() / 100 } else { before.abs() / 1000 };
                prop_assert!(off <= allowed.max(1), "{} {}", before, after);
            }
        }
    }
}
