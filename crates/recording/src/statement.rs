// SPDX-License-Identifier: PostgreSQL
//! Statements as rows, and rows as statements.

use crate::rows::{self, StatementAccountRow, StatementRow, TextRow};
use segment::statements::{AccountRecord, StatementRecord, Text, TimesRecord, Unit, COUNTERS};
use segment::{Histogram, StatementKey};

/// Number of counters of a statement.
const NUMBERS: usize = COUNTERS.len();

macro_rules! numbers {
    ($($field:ident)*) => {
        /// The counters in the order of [`COUNTERS`].
        fn numbers(row: &StatementRow) -> [u64; NUMBERS] {
            [$(row.$field),*]
        }

        fn numbers_mut(row: &mut StatementRow) -> [&mut u64; NUMBERS] {
            [$(&mut row.$field),*]
        }
    };
}

numbers! {
    rows shared_hit shared_read shared_dirtied shared_written local_hit local_read local_dirtied
    local_written temp_read temp_written wal_records wal_fpi wal_bytes read_ns write_ns
    temp_read_ns temp_write_ns server_read_ns server_write_ns server_temp_read_ns
    server_temp_write_ns temp_files temp_bytes errors cancels workers worker_ns jit_functions
    jit_generation_ns jit_inlinings jit_inlining_ns jit_optimizations jit_optimization_ns
    jit_emissions jit_emission_ns
}

fn scaled(n: u64, ratio: f64) -> u64 {
    (n as f64 * ratio).round() as u64
}

/// Binary digits of a sum of squares: enough for a deviation of a thousandth of the mean. Further
/// digits are noise, which does not compress.
const DIGITS: u32 = 24;

/// A sum of squares, truncated to these digits.
pub(crate) fn shortened(squares: f64) -> f64 {
    f64::from_bits(squares.to_bits() & !((1 << (f64::MANTISSA_DIGITS - DIGITS)) - 1))
}

/// The row of a statement, without interval and time.
pub(crate) fn row_of(it: &StatementRecord, ns_per_tick: f64) -> StatementRow {
    let ns = |ticks: u64| scaled(ticks, ns_per_tick);
    let mut row = StatementRow {
        queryid: it.key.query_id(),
        database_id: it.key.database_id,
        user_id: it.key.user_id,
        toplevel: it.key.toplevel,
        database: it.database.clone(),
        user: it.user.clone(),
        calls: it.exec.count,
        exec_ns: ns(it.exec.total),
        exec_min_ns: it.exec.min.map(ns),
        exec_max_ns: it.exec.max.map(ns),
        exec_squares: shortened(it.exec.squares * ns_per_tick * ns_per_tick),
        plans: it.plan.count,
        plan_ns: ns(it.plan.total),
        plan_min_ns: it.plan.min.map(ns),
        plan_max_ns: it.plan.max.map(ns),
        plan_squares: shortened(it.plan.squares * ns_per_tick * ns_per_tick),
        first_us: it.first_us,
        last_us: it.last_us,
        ..StatementRow::default()
    };
    (row.buckets, row.counts) = it.histogram.buckets().map(|(b, n)| (b as u64, n)).unzip();
    for ((to, from), (_, unit)) in numbers_mut(&mut row).into_iter().zip(it.counters).zip(COUNTERS)
    {
        *to = if unit == Unit::Ticks { ns(from) } else { from };
    }
    row
}

/// The statement of a row, in ticks of a clock, without accounts and text.
pub(crate) fn record_of(row: &StatementRow, ticks_per_second: f64) -> StatementRecord {
    let ticks_per_ns = ticks_per_second * 1e-9;
    let ticks = |ns: u64| scaled(ns, ticks_per_ns);
    let mut counters = numbers(row);
    for (number, (_, unit)) in counters.iter_mut().zip(COUNTERS) {
        if unit == Unit::Ticks {
            *number = ticks(*number);
        }
    }
    StatementRecord {
        key: key_of((row.queryid, row.database_id, row.user_id, row.toplevel)),
        database: row.database.clone(),
        user: row.user.clone(),
        text: None,
        exec: TimesRecord {
            count: row.calls,
            total: ticks(row.exec_ns),
            min: row.exec_min_ns.map(ticks),
            max: row.exec_max_ns.map(ticks),
            squares: row.exec_squares * ticks_per_ns * ticks_per_ns,
        },
        plan: TimesRecord {
            count: row.plans,
            total: ticks(row.plan_ns),
            min: row.plan_min_ns.map(ticks),
            max: row.plan_max_ns.map(ticks),
            squares: row.plan_squares * ticks_per_ns * ticks_per_ns,
        },
        counters,
        first_us: row.first_us,
        last_us: row.last_us,
        histogram: histogram(&row.buckets, &row.counts),
        parts: Vec::new(),
    }
}

/// A statement of which only accounts are known.
pub(crate) fn empty(key: StatementKey) -> StatementRecord {
    let row = StatementRow {
        queryid: key.query_id(),
        database_id: key.database_id,
        user_id: key.user_id,
        toplevel: key.toplevel,
        ..StatementRow::default()
    };
    record_of(&row, 1e9)
}

pub(crate) fn key_of(
    (queryid, database_id, user_id, toplevel): rows::StatementKey,
) -> StatementKey {
    StatementKey { id: queryid as u64, database_id, user_id, toplevel }
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
    Histogram::of_buckets(buckets.iter().map(|b| *b as usize).zip(counts.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_sums_of_squares_keep_the_deviation() {
        assert_eq!((shortened(0.0), shortened(12.0)), (0.0, 12.0));
        let off = shortened(1.0 / 3.0) * 3.0 - 1.0;
        assert!(off != 0.0 && off.abs() < 1e-6, "{off}");
    }
}
