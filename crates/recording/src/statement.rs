// SPDX-License-Identifier: PostgreSQL
//! Statements as rows, and rows as statements.

use crate::rows::{RecordedStatementKey, RecordedStatementRow, StatementAccountRow, TextRow};
use segment::statements::{
    counter, AccountRecord, StatementRecord, Sums, Text, Times, Unit, COUNTERS,
};
use segment::Histogram;

/// The columns of the counters, group by group, in the order of [`Sums::counters`].
macro_rules! numbers {
    ($($group:ident: $($field:ident)*;)*) => {
        fn numbers(row: &RecordedStatementRow) -> [u64; COUNTERS] {
            [$($(row.$field),*),*]
        }

        fn numbers_mut(row: &mut RecordedStatementRow) -> [&mut u64; COUNTERS] {
            [$($(&mut row.$field),*),*]
        }

        /// Each group is where the segment's reader has it.
        const _: () = {
            let mut at = 0;
            $(
                assert!(at == counter::$group);
                at += [$(stringify!($field)),*].len();
            )*
            assert!(at == COUNTERS);
        };
    };
}

numbers! {
    ROWS: rows;
    BLOCKS: shared_hit shared_read shared_dirtied shared_written local_hit local_read local_dirtied
        local_written temp_read temp_written;
    WAL: wal_records wal_fpi wal_bytes;
    IO_TICKS: read_ns write_ns temp_read_ns temp_write_ns;
    WAL_BUFFERS_FULL: wal_buffers_full;
    IO_NS: server_read_ns server_write_ns server_temp_read_ns server_temp_write_ns server_local_read_ns
        server_local_write_ns;
    TEMP_FILES: temp_files;
    TEMP_BYTES: temp_bytes;
    ERRORS: errors;
    CANCELS: cancels;
    WORKERS: workers;
    WORKER_TICKS: worker_ns;
    JIT: jit_functions jit_generation_ns jit_inlinings jit_inlining_ns jit_optimizations
        jit_optimization_ns jit_emissions jit_emission_ns jit_deformings jit_deforming_ns;
    WORKERS_PLANNED: workers_planned;
    WORKERS_LAUNCHED: workers_launched;
    GENERIC_PLANS: generic_plans;
    CUSTOM_PLANS: custom_plans;
    USER_NS: user_ns;
    SYSTEM_NS: system_ns;
    FAILED: failed_connection failed_data failed_integrity failed_transaction failed_rollback
        failed_syntax failed_resources failed_object failed_system failed_other;
}

fn scaled(n: u64, ratio: f64) -> u64 {
    (n as f64 * ratio).round() as u64
}

/// Binary digits of a sum of squares: a deviation of 3 % of the mean is right within 4 % of itself.
/// Further digits are noise, which does not compress.
pub(crate) const DIGITS: u32 = 14;

/// A sum of squares, rounded to these digits.
pub(crate) fn shortened(squares: f64) -> f64 {
    const STEP: u64 = 1 << (f64::MANTISSA_DIGITS - DIGITS);
    // A carry out of the mantissa raises the exponent, as it should.
    f64::from_bits((squares.to_bits() + STEP / 2) & !(STEP - 1))
}

/// The row of a statement, without interval and time.
pub(crate) fn row_of(it: &StatementRecord, ns_per_tick: f64) -> RecordedStatementRow {
    let ns = |ticks: u64| scaled(ticks, ns_per_tick);
    let Sums { exec, plan, counters, first_us, last_us, histogram } = &it.sums;
    let mut row = RecordedStatementRow {
        queryid: it.key.query_id(),
        database_id: it.key.database_id,
        user_id: it.key.user_id,
        toplevel: it.key.toplevel,
        database: it.database.clone(),
        user: it.user.clone(),
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
    for (index, (to, from)) in numbers_mut(&mut row).into_iter().zip(counters).enumerate() {
        *to = if Unit::from_index(index) == Unit::Ticks { ns(*from) } else { *from };
    }
    row
}

/// The statement of a row, in ticks of a clock, without accounts and text.
pub(crate) fn record_of(row: &RecordedStatementRow, ticks_per_second: f64) -> StatementRecord {
    let ticks_per_ns = ticks_per_second * 1e-9;
    let ticks = |ns: u64| scaled(ns, ticks_per_ns);
    let times = |count, total, [min, max]: [Option<u64>; 2], squares: f64| Times {
        count,
        total: ticks(total),
        min: min.map(ticks),
        max: max.map(ticks),
        squares: squares * ticks_per_ns * ticks_per_ns,
    };
    let mut counters = numbers(row);
    for (index, number) in counters.iter_mut().enumerate() {
        if Unit::from_index(index) == Unit::Ticks {
            *number = ticks(*number);
        }
    }
    StatementRecord {
        key: key_of(row.key()),
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

/// A statement of which only accounts are known.
pub(crate) fn empty(key: RecordedStatementKey) -> StatementRecord {
    let (queryid, database_id, user_id, toplevel) = key;
    record_of(
        &RecordedStatementRow { queryid, database_id, user_id, toplevel, ..Default::default() },
        1e9,
    )
}

fn key_of(
    (queryid, database_id, user_id, toplevel): RecordedStatementKey,
) -> segment::StatementKey {
    segment::StatementKey { id: queryid as u64, database_id, user_id, toplevel }
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
