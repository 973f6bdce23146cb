// SPDX-License-Identifier: PostgreSQL
//! Converts statements to rows, and rows to statements.

use crate::recorded_statement::RecordedStatementRow;
use crate::rows::{RecordedStatementKey, StatementAccountRow, TextRow};
use segment::statements::{AccountRecord, StatementRecord, Sums, Text, Times, Unit, COUNTER};
use segment::Histogram;

/// Clocks whose rates differ by less than this share are treated as having the same buckets.
pub(crate) const NEARLY: f64 = 0.01;

fn scaled(n: u64, ratio: f64) -> u64 {
    (n as f64 * ratio).round() as u64
}

/// Binary digits of a sum of squares. With these, a deviation of 3 % of the mean is accurate to 4 % of its
/// value. Further digits are noise, which does not compress.
pub(crate) const DIGITS: u32 = 14;

/// A sum of squares, rounded to these digits.
pub(crate) fn shortened(squares: f64) -> f64 {
    const STEP: u64 = 1 << (f64::MANTISSA_DIGITS - DIGITS);
    // A carry out of the mantissa increments the exponent, as it should.
    f64::from_bits((squares.to_bits() + STEP / 2) & !(STEP - 1))
}

/// The row of a statement, without interval and time.
pub(crate) fn row_of(statement: &StatementRecord, ns_per_tick: f64) -> RecordedStatementRow {
    let ns = |ticks: u64| scaled(ticks, ns_per_tick);
    let Sums { exec, plan, counters, first_us, last_us, histogram } = &statement.sums;
    let mut row = RecordedStatementRow {
        queryid: statement.key.query_id(),
        database_id: statement.key.database_id,
        user_id: statement.key.user_id,
        toplevel: statement.key.toplevel,
        database: statement.database.clone(),
        user: statement.user.clone(),
        application: statement.key.application.name().unwrap_or_default().into(),
        calls: exec.count,
        exec_ns: ns(exec.total),
        exec_min_ns: exec.min.map(ns),
        exec_max_ns: exec.max.map(ns),
        exec_squares: shortened(exec.squares * ns_per_tick * ns_per_tick),
        plans: plan.count,
        plan_ns: ns(plan.total),
        plan_min_ns: plan.min.map(ns),
        plan_max_ns: plan.max.map(ns),
        plan_squares: shortened(plan.squares * ns_per_tick * ns_per_tick),
        first_us: *first_us,
        last_us: *last_us,
        ..RecordedStatementRow::default()
    };
    (row.buckets, row.counts) = histogram.buckets().map(|(b, n)| (b as u64, n)).unzip();
    for (index, (to, from)) in row.counters_mut().into_iter().zip(counters).enumerate() {
        *to = if COUNTER[index].unit == Unit::Ticks { ns(*from) } else { *from };
    }
    row
}

/// The statement of that key with the figures of a row, in ticks of a clock, without accounts and text.
pub(crate) fn record_of(
    key: RecordedStatementKey,
    row: &RecordedStatementRow,
    ticks_per_second: f64,
) -> StatementRecord {
    let ticks_per_ns = ticks_per_second * 1e-9;
    let ticks = |ns: u64| scaled(ns, ticks_per_ns);
    let times = |count, total, [min, max]: [Option<u64>; 2], squares: f64| Times {
        count,
        total: ticks(total),
        min: min.map(ticks),
        max: max.map(ticks),
        squares: squares * ticks_per_ns * ticks_per_ns,
    };
    let mut counters = row.counters();
    for (index, number) in counters.iter_mut().enumerate() {
        if COUNTER[index].unit == Unit::Ticks {
            *number = ticks(*number);
        }
    }
    StatementRecord {
        key: key_of(key),
        database: row.database.clone(),
        user: row.user.clone(),
        text: None,
        sums: Sums {
            exec: times(
                row.calls,
                row.exec_ns,
                [row.exec_min_ns, row.exec_max_ns],
                row.exec_squares,
            ),
            plan: times(
                row.plans,
                row.plan_ns,
                [row.plan_min_ns, row.plan_max_ns],
                row.plan_squares,
            ),
            counters,
            first_us: row.first_us,
            last_us: row.last_us,
            histogram: histogram(&row.buckets, &row.counts),
        },
        parts: Vec::new(),
    }
}

/// A statement without figures, for accounts that have no row in `statements`.
pub(crate) fn empty(key: RecordedStatementKey) -> StatementRecord {
    record_of(key, &RecordedStatementRow::default(), 1e9)
}

fn key_of(
    (queryid, database_id, user_id, toplevel, application): RecordedStatementKey,
) -> segment::StatementKey {
    segment::StatementKey { id: queryid as u64, database_id, user_id, toplevel, application }
}

pub(crate) fn account_of(row: &StatementAccountRow, ticks_per_second: f64) -> AccountRecord {
    AccountRecord {
        account: row.account.clone(),
        count: row.count,
        ticks: (row.total_ns as f64 * ticks_per_second * 1e-9).round() as i64,
    }
}

pub(crate) fn text_of(row: &TextRow) -> Text {
    Text { shown: row.text.clone(), kept: row.kept_bytes, whole: row.whole_bytes }
}

/// The histogram of these buckets and counts.
pub(crate) fn histogram(buckets: &[u64], counts: &[u64]) -> Histogram {
    Histogram::of_buckets(self::buckets(buckets, counts))
}

/// These buckets with their counts.
pub(crate) fn buckets<'r>(
    buckets: &'r [u64],
    counts: &'r [u64],
) -> impl Iterator<Item = (usize, u64)> + 'r {
    buckets.iter().map(|b| *b as usize).zip(counts.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_sums_of_squares_keep_the_deviation() {
        assert_eq!((shortened(0.0), shortened(12.0)), (0.0, 12.0));
        assert_eq!(shortened(16.0 - 1e-9), 16.0);
        // A thousand calls whose times deviate by 3 % of their mean, in ns.
        for mean in (100_000..200_000).map(f64::from) {
            let (calls, deviation) = (1000.0, 0.03 * mean);
            let squares = shortened(calls * (mean * mean + deviation * deviation));
            let found = (squares / calls - mean * mean).sqrt();
            assert!((found / deviation - 1.0).abs() < 0.04, "{mean}: {found}");
        }
    }
}
