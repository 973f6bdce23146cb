// SPDX-License-Identifier: PostgreSQL
//! A histogram of execution times, and its drawing in a few rows.

use segment::layout::{bucket_low, HIST_BUCKETS};
use segment::{Clock, Histogram};
use serde::Serialize;

use crate::rows::{right, texts};
use crate::table::{Row, Table, Tone};
use crate::units::{duration, percent, whole};

/// Maximum number of rows of a drawn histogram.
const ROWS: usize = 20;

/// One bucket of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bucket {
    /// Lower bound, inclusive, seconds.
    pub from_seconds: f64,
    /// Upper bound, exclusive, seconds; `None` for the last bucket, which has no upper bound.
    pub to_seconds: Option<f64>,
    /// Number of executions.
    pub count: u64,
    /// The bucket's number in the segment.
    #[serde(skip)]
    number: usize,
}

impl Bucket {
    /// The buckets that are not empty.
    pub fn all(histogram: &Histogram, clock: &Clock) -> Vec<Bucket> {
        let bucket = |(number, count)| Bucket {
            from_seconds: clock.seconds(bucket_low(number)),
            to_seconds: (number < HIST_BUCKETS - 1).then(|| clock.seconds(bucket_low(number + 1))),
            count,
            number,
        };
        histogram.buckets().map(bucket).collect()
    }
}

/// Draws the buckets as bars. Adjacent buckets are merged, always the same number, so that the ratio of bounds is
/// the same for all rows.
pub fn drawing(buckets: &[Bucket], seconds_per_tick: f64) -> Table {
    let (Some(first), Some(last)) = (buckets.first(), buckets.last()) else {
        return Table::default();
    };
    let rows_of = |width: usize| last.number / width - first.number / width + 1;
    let width = [1, 2, 4, 8, 16].into_iter().find(|&w| rows_of(w) <= ROWS).unwrap_or(32);
    let begin = first.number / width;
    let mut counts = vec![0u64; rows_of(width)];
    for bucket in buckets {
        if let Some(count) = counts.get_mut(bucket.number / width - begin) {
            *count = count.saturating_add(bucket.count);
        }
    }
    let all = counts.iter().fold(0u64, |sum, n| sum.saturating_add(*n)).max(1) as f64;
    let most = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let edge = |row: usize| match (begin + row) * width {
        bucket if bucket >= HIST_BUCKETS => "and longer".to_string(),
        bucket => duration(bucket_low(bucket) as f64 * seconds_per_tick),
    };
    let mut so_far = 0.0;
    let row = |(at, count): (usize, &u64)| {
        so_far += *count as f64;
        Row {
            key: at.to_string(),
            cells: texts(vec![
                edge(at),
                edge(at + 1),
                whole(*count),
                percent(*count as f64 / all),
                percent(so_far / all),
            ]),
            bar: Some(*count as f64 / most),
            tone: Tone::Plain,
            ..Row::default()
        }
    };
    Table {
        rows: counts.iter().enumerate().map(row).collect(),
        columns: vec![
            right("FROM", 0),
            right("TO", 0),
            right("CALLS", 0),
            right("%", 0),
            right("UP TO %", 1),
        ],
        bars_after: Some(4),
        ..Table::default()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use segment::ClockKind;

    use crate::table::Cell;

    use super::*;

    fn buckets(values: &[(u64, u64)]) -> Vec<Bucket> {
        let mut histogram = Histogram::new();
        values.iter().for_each(|&(value, n)| histogram.add(value, n));
        let clock = Clock::new(Path::new(""), ClockKind::Monotonic, 0, 0, false).unwrap();
        Bucket::all(&histogram, &clock)
    }

    fn drawn(values: &[(u64, u64)]) -> Vec<Vec<String>> {
        let rows = drawing(&buckets(values), 1e-9).rows;
        rows.into_iter().map(|row| row.cells.iter().map(Cell::exact).collect()).collect()
    }

    #[test]
    fn few_buckets_are_drawn_separately() {
        let rows = drawn(&[(1000, 3), (1300, 1)]);
        assert_eq!(rows[0], ["960 ns", "1.02 us", "3", "75.0", "75.0"]);
        assert_eq!(rows[1], ["1.02 us", "1.15 us", "0", "0.0", "75.0"]);
        assert_eq!(rows.last().unwrap()[2..], ["1", "25.0", "100.0"]);
    }

    #[test]
    fn many_buckets_are_merged_and_none_is_lost() {
        for spread in 1..43 {
            let values: Vec<_> = (0..=spread).map(|octave| (1u64 << octave, 7)).collect();
            let rows = drawn(&values);
            assert!(rows.len() <= ROWS, "{spread}: {}", rows.len());
            let sum: u64 = rows.iter().map(|row| row[2].parse::<u64>().unwrap()).sum();
            assert_eq!(sum, 7 * (spread + 1));
        }
        assert!(drawn(&[]).is_empty());
    }

    #[test]
    fn the_last_bucket_has_no_upper_bound() {
        let rows = drawn(&[(u64::MAX, 1)]);
        assert_eq!(rows.last().unwrap()[1], "and longer");
        assert_eq!(buckets(&[(u64::MAX, 1)])[0].to_seconds, None);
    }
}
