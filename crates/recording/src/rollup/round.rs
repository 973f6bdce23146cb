// SPDX-License-Identifier: PostgreSQL
//! Rounds the times of old intervals to the digits that matter; sums stay exact.
//!
//! The last digits of a time are noise, which does not compress: without rounding they made up two
//! thirds of a recording. So each time of a rolled-up hour keeps [`DIGITS`] binary digits. The
//! remainder is added to later, larger times of the same series, and the final remainder to the
//! largest time, so that the sum of the hour stays the same to the nanosecond.

use crate::batch::Batch;
use crate::recorded_statement::RecordedStatementRow;
use crate::statement;
use segment::statements::{Unit, COUNTER};
use std::collections::HashMap;
use std::hash::Hash;

/// Binary digits of a rounded time, which is off by half a step, and by another half if a remainder
/// was added, so by at most 1/1,024.
const DIGITS: u32 = 11;
const SECOND_US: i64 = 1_000_000;

/// The step to which a time is rounded for this number of binary digits.
fn step(n: i128, digits: u32) -> i128 {
    let all = i128::BITS - n.unsigned_abs().leading_zeros();
    1 << all.saturating_sub(digits)
}

/// Round the times of one series, in chronological order, to this number of digits.
fn round(times: &mut [i128], digits: u32) {
    let mut left = 0;
    for time in times.iter_mut() {
        let step = step(*time, digits);
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
    if let Some(largest) = times.iter_mut().max_by_key(|time| time.unsigned_abs()) {
        *largest += left;
    }
}

/// Round times series by series to this number of digits; the times of a series come in chronological order.
fn each<'r, K: Hash + Eq, N: Copy + Into<i128> + TryFrom<i128> + 'r>(
    cells: impl Iterator<Item = (K, &'r mut N)>,
    digits: u32,
) {
    let mut groups: HashMap<K, Vec<&mut N>> = HashMap::new();
    // Zeros stay zeros, and most columns are zero in most rows.
    for (key, cell) in cells.filter(|(_, cell)| Into::<i128>::into(**cell) != 0) {
        groups.entry(key).or_default().push(cell);
    }
    for cells in groups.into_values() {
        let mut times: Vec<i128> = cells.iter().map(|cell| (**cell).into()).collect();
        round(&mut times, digits);
        for (cell, time) in cells.into_iter().zip(times) {
            // Rounding leaves the range of the type only if the time was corrupt.
            *cell = N::try_from(time).unwrap_or(*cell);
        }
    }
}

/// Rounds a time whose sum need not be exact.
fn rounded(time: u64) -> u64 {
    let step = step(i128::from(time), DIGITS) as u64;
    time.saturating_add(step / 2) / step * step
}

fn counter_mut(row: &mut RecordedStatementRow, at: usize) -> Option<&mut u64> {
    row.counters_mut().into_iter().nth(at)
}

/// Round the times of statements. Total times keep as many digits as the sums of squares, because the
/// deviation is computed from both. Minima and maxima stay exact, because a remainder of theirs could
/// not go anywhere.
fn statements(rows: &mut [RecordedStatementRow]) {
    macro_rules! sums {
        ($digits:expr; $($field:ident)*) => {
            $(each(rows.iter_mut().map(|row| (row.key(), &mut row.$field)), $digits);)*
        };
    }
    sums! { statement::DIGITS; exec_ns plan_ns }
    for (at, _) in COUNTER.iter().enumerate().filter(|(_, counter)| counter.unit != Unit::Count) {
        each(rows.iter_mut().filter_map(|row| Some((row.key(), counter_mut(row, at)?))), DIGITS);
    }
    for row in rows {
        let second = row.last_us.div_euclid(SECOND_US) * SECOND_US;
        row.last_us = second.max(row.first_us);
        // A sum of rows has more digits than its terms.
        row.exec_squares = statement::shortened(row.exec_squares);
        row.plan_squares = statement::shortened(row.plan_squares);
    }
}

/// Round the times of statistics, statements and sessions: most of an hour's rows.
pub(super) fn apply(batch: &mut Batch) {
    let times = batch.statistics.iter_mut().filter(|row| row.series.is_time());
    each(times.map(|row| (row.series.clone(), &mut row.total)), DIGITS);
    let parts = batch.statement_accounts.iter_mut();
    each(parts.map(|row| ((row.key(), row.account.clone()), &mut row.total_ns)), DIGITS);
    statements(&mut batch.statements);
    let sessions = &mut batch.session_history;
    sessions.sort_by_key(|row| row.frame);
    each(sessions.iter_mut().map(|row| (row.pid, &mut row.busy_ns)), DIGITS);
    each(sessions.iter_mut().map(|row| (row.pid, &mut row.cpu_ns)), DIGITS);
    for row in sessions {
        row.since_ns = rounded(row.since_ns);
        row.transaction_ns = row.transaction_ns.map(rounded);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_times_stay_and_long_ones_lose_their_last_digits() {
        let mut times = [0, 1, 2047, 1_000_000_007, 17, 0];
        round(&mut times, DIGITS);
        assert_eq!((times[0], times[1], times[2], times[4], times[5]), (0, 1, 2047, 17, 0));
        assert_eq!(times[3], 1_000_000_007, "the largest takes the final remainder");
        let mut times = [1_000_000_007, 1_000_000_007, 5];
        round(&mut times, DIGITS);
        assert_eq!(times.iter().sum::<i128>(), 2_000_000_019);
        assert!(times.contains(&(1907 * 524_288)), "{times:?}");
    }

    #[test]
    fn a_remainder_that_is_large_for_the_next_time_waits_for_a_larger_one() {
        let mut times = [2077 << 2, 3085 << 3, 2099 << 1];
        round(&mut times, DIGITS);
        assert!((times[2] - 4198).abs() <= 4, "{times:?}");
    }

    proptest! {
        #[test]
        fn sums_stay_exact_and_times_nearly_so(
            times in prop::collection::vec((0u32..50, -1i64..1 << 12), 1..500)
        ) {
            let times: Vec<i128> = times
                .into_iter()
                .map(|(up, n)| i128::from(n) << up)
                .collect();
            let mut rounded = times.clone();
            round(&mut rounded, DIGITS);
            prop_assert_eq!(times.iter().sum::<i128>(), rounded.iter().sum::<i128>());
            let largest = rounded.iter().map(|n| n.abs()).max().unwrap_or(0);
            let off = |(before, after): (&i128, &i128)| ((before - after).abs(), before.abs());
            let exceeding: Vec<_> = times.iter().zip(&rounded).map(off).filter(|(off, time)| *off > (time / 1000).max(1)).collect();
            // Only the largest time takes the final remainder, after which it need no longer be the largest.
            prop_assert!(exceeding.len() <= 1, "{:?}", exceeding);
            for (off, time) in exceeding {
                prop_assert!(off <= time / 100 && time >= largest / 100 * 99, "{} {}", off, time);
            }
        }
    }
}
