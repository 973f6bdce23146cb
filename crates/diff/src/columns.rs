// SPDX-License-Identifier: PostgreSQL
//! Divides the time of a recording into columns that are short enough to estimate its noise and long enough to be
//! few, and selects those that can be compared.

use recording::{FrameRow, Range};

/// Minimum number of columns, that is, of blocks from which the noise is estimated.
const FEW: u64 = 32;
/// Maximum number of columns.
const MANY: u64 = 1024;
/// Older statements are stored once a minute.
const ROLLED_UP_US: u64 = 3_600_000_000;
const MINUTE_US: u64 = 60_000_000;

/// Bounds and states of the columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    /// One more than there are columns; microseconds since 1970, ascending.
    pub bounds_us: Vec<i64>,
    /// One per column.
    pub states: Vec<State>,
}

/// The state of a column.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct State {
    /// Recorded time, ns.
    pub covered_ns: u64,
    /// Recorded time at level locks, ns.
    pub locks_ns: u64,
    /// Recorded time with timed functions, ns.
    pub functions_ns: u64,
    /// Session time while the level was off, ns.
    pub off_ns: u64,
    /// Whether any of its intervals is not exact.
    pub torn: bool,
}

impl State {
    /// Whether it was recorded completely and exactly.
    pub fn is_whole(&self) -> bool {
        self.covered_ns > 0 && !self.torn
    }
}

impl Columns {
    /// Columns for the intervals of a recording whose details are `detail_ns` long.
    pub fn divide(range: Range, heads: &[FrameRow], detail_ns: u64) -> Columns {
        let us = |ns: u64| (ns / 1000).max(1);
        let length = range.to_us.abs_diff(range.from_us);
        let (interval, oldest) = match length > ROLLED_UP_US {
            true => (us(longest(heads)), MINUTE_US),
            false => (us(usual(heads)), 0),
        };
        let detail = us(detail_ns).max(oldest).max(interval);
        let step = step(length, interval, detail);
        // Shifted by half an interval, so that an interval that ends a little late still falls into its column.
        let late = (interval / 2) as i64;
        let mut bounds_us = vec![range.from_us];
        let mut bound = range.from_us.saturating_add(step as i64 + late);
        while bound < range.to_us {
            bounds_us.push(bound);
            bound = bound.saturating_add(step as i64);
        }
        bounds_us.push(range.to_us);
        let mut states = vec![State::default(); bounds_us.len() - 1];
        for head in heads {
            let at = bounds_us.partition_point(|bound| *bound < head.time_us);
            let Some(state) = at.checked_sub(1).and_then(|at| states.get_mut(at)) else { continue };
            state.covered_ns += head.interval_ns;
            state.locks_ns += head.locks_ns;
            state.functions_ns += if head.functions_probed > 0 { head.interval_ns } else { 0 };
            state.off_ns += head.uninstrumented_ns;
            state.torn |= !head.exact || head.partial;
        }
        Columns { bounds_us, states }
    }

    /// The columns to compare, and whether they are exact: all exact ones or, if there are none, all columns in
    /// which anything was recorded.
    pub fn kept(&self) -> (Vec<usize>, bool) {
        let those = |wanted: fn(&State) -> bool| -> Vec<usize> {
            (0..self.states.len()).filter(|at| wanted(&self.states[*at])).collect()
        };
        let whole = those(State::is_whole);
        match whole.is_empty() {
            false => (whole, true),
            true => (those(|state| state.covered_ns > 0), false),
        }
    }
}

fn longest(heads: &[FrameRow]) -> u64 {
    heads.iter().map(|head| head.interval_ns).max().unwrap_or(0)
}

/// The median length of an interval; a late recorder makes a few longer ones.
fn usual(heads: &[FrameRow]) -> u64 {
    let mut lengths: Vec<u64> = heads.iter().map(|head| head.interval_ns).collect();
    lengths.sort_unstable();
    let length = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
    // Rounded to a millisecond, so that columns do not drift.
    (length + 500_000) / 1_000_000 * 1_000_000
}

/// The length of a column, microseconds: a fraction or a multiple of `detail`.
fn step(length: u64, interval: u64, detail: u64) -> u64 {
    if length / FEW >= detail {
        return detail * length.div_ceil(MANY * detail).max(1);
    }
    let parts = (detail / interval).max(1);
    let wanted = (length / FEW / interval).max(1);
    let whole = (1..=wanted.min(parts)).rev().find(|n| parts.is_multiple_of(*n));
    interval * whole.unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    fn head(time_us: i64) -> FrameRow {
        FrameRow {
            time_us,
            interval_ns: 1_000_000_000,
            exact: true,
            locks_ns: 1_000_000_000,
            ..FrameRow::default()
        }
    }

    fn of_seconds(n: i64) -> (Range, Vec<FrameRow>) {
        // Intervals end a little early or late.
        let heads = (1..=n).map(|at| head(at * SECOND + at * 7_919 % 9_000 - 4_500)).collect();
        (Range { from_us: 0, to_us: n * SECOND + 4_500 }, heads)
    }

    #[test]
    fn each_column_has_the_same_number_of_intervals() {
        for (seconds, step) in [(20, 1), (64, 2), (200, 5), (600, 10), (20_000, 20)] {
            let (range, heads) = of_seconds(seconds);
            let detail = if seconds > 3600 { 60 } else { 10 };
            let columns = Columns::divide(range, &heads, 10_000_000_000);
            let step = if detail == 60 { 60 } else { step };
            let each: Vec<u64> =
                columns.states.iter().map(|state| state.covered_ns / 1_000_000_000).collect();
            let (last, all) = each.split_last().unwrap();
            assert!(all.iter().all(|n| *n == step), "{seconds}: {each:?}");
            assert!(*last <= step);
        }
        assert!(
            Columns::divide(of_seconds(90_000).0, &of_seconds(90_000).1, 1).states.len() <= 1024
        );
    }

    #[test]
    fn inexact_columns_are_left_out_unless_all_are_inexact() {
        let (range, mut heads) = of_seconds(20);
        heads[3].exact = false;
        heads[7].partial = true;
        let columns = Columns::divide(range, &heads, 10_000_000_000);
        let (kept, exact) = columns.kept();
        assert!(exact && kept.len() == 18 && !kept.contains(&3) && !kept.contains(&7));
        heads.iter_mut().for_each(|head| head.exact = false);
        let (kept, exact) = Columns::divide(range, &heads, 10_000_000_000).kept();
        assert!(!exact && kept.len() == 20);
    }

    #[test]
    fn columns_within_gaps_are_not_compared() {
        let (range, mut heads) = of_seconds(40);
        heads.drain(10..25);
        assert_eq!(Columns::divide(range, &heads, 10_000_000_000).kept().0.len(), 25);
    }
}
