// SPDX-License-Identifier: PostgreSQL
//! How a row of a later interval is added to one of an earlier.

use crate::rows::{
    DeviceRow, FrameRow, KernelRow, RelationRow, ServerIoRow, StatementAccountRow, StatementRow,
};
use crate::statistics::{HistogramRow, StatRow};
use crate::table::Table;

/// A row to which that of a later interval can be added.
pub(crate) trait Add: Table {
    /// Add it, but for its stamp.
    fn add(&mut self, later: Self);
    /// Set the interval and its end.
    fn stamp(&mut self, frame: u64, time_us: i64);
}

/// Add a row; the sum is of the later interval.
pub(crate) fn stamped<R: Add>(sum: &mut R, later: R) {
    let (frame, time_us) = (later.frame(), later.time_us());
    sum.add(later);
    sum.stamp(frame, time_us);
}

fn least(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        _ => a.or(b),
    }
}

fn both(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        _ => a.or(b),
    }
}

/// Add buckets and counts to others; both are in the order of the buckets.
pub(crate) fn add_buckets(
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

macro_rules! add {
    ($row:ty; sum $($sum:ident)*; last $($last:ident)*; $more:expr) => {
        impl Add for $row {
            fn add(&mut self, later: Self) {
                $(self.$sum = self.$sum.saturating_add(later.$sum);)*
                let more: fn(&mut Self, &Self) = $more;
                more(self, &later);
                $(self.$last = later.$last;)*
            }

            fn stamp(&mut self, frame: u64, time_us: i64) {
                (self.frame, self.time_us) = (frame, time_us);
            }
        }
    };
}

add! { StatRow; sum count total amount follows; last; |_, _| () }

add! { HistogramRow; sum; last; |sum, later| {
    sum.min = least(sum.min, later.min);
    sum.max = sum.max.max(later.max);
    add_buckets((&mut sum.buckets, &mut sum.counts), (&later.buckets, &later.counts));
} }

add! { FrameRow;
    sum interval_ns wall_ns busy_ns uninstrumented_ns locks_ns commands ended_sessions ended_ns
        overflow_slots overflow_statistics overflow_directory overflow_groups overflow_memory
        overflow_lost_merges overflow_statements_dropped overflow_statements_lost
        overflow_texts_cut overflow_relations_lost host_user_ns host_system_ns host_idle_ns
        host_iowait_ns host_steal_ns;
    last monotonic_ns level level_left_ns level_then ticks_per_second cores sessions_active
        sessions_idle sessions_idle_in_transaction sessions_background sessions_dead
        functions_probed host_runnable;
    |sum, later| {
        sum.exact &= later.exact;
        sum.partial |= later.partial;
        sum.torn_sessions = sum.torn_sessions.max(later.torn_sessions);
        sum.nameless = sum.nameless.max(later.nameless);
    }
}

add! { KernelRow;
    sum interval_ns cpu_account_ns on_cpu_ns run_queue_ns unexplained_ns; last sessions;
    |_, _| ()
}

add! { ServerIoRow;
    sum interval_ns reads read_bytes writes written_bytes device_read_bytes device_written_bytes;
    last processes;
    |sum, later| sum.refused = sum.refused.max(later.refused)
}

add! { DeviceRow;
    sum interval_ns reads read_bytes read_ns writes written_bytes write_ns busy_ns queue_ns;
    last in_flight direct;
    |sum, later| {
        sum.flushes = both(sum.flushes, later.flushes);
        sum.flush_ns = both(sum.flush_ns, later.flush_ns);
    }
}

add! { StatementAccountRow; sum count total_ns; last; |_, _| () }

add! { RelationRow;
    sum interval_ns failed reads read_bytes read_ns writes written_bytes write_ns extends
        extend_bytes extend_ns syncs sync_ns truncates truncate_ns;
    last;
    |sum, later| {
        sum.read_max_ns = sum.read_max_ns.max(later.read_max_ns);
        sum.write_max_ns = sum.write_max_ns.max(later.write_max_ns);
        sum.extend_max_ns = sum.extend_max_ns.max(later.extend_max_ns);
        sum.sync_max_ns = sum.sync_max_ns.max(later.sync_max_ns);
        sum.truncate_max_ns = sum.truncate_max_ns.max(later.truncate_max_ns);
        if sum.database.is_empty() {
            sum.database.clone_from(&later.database);
        }
    }
}

add! { StatementRow;
    sum interval_ns calls exec_ns plans plan_ns rows shared_hit shared_read shared_dirtied
        shared_written local_hit local_read local_dirtied local_written temp_read temp_written
        wal_records wal_fpi wal_bytes read_ns write_ns temp_read_ns temp_write_ns server_read_ns
        server_write_ns server_temp_read_ns server_temp_write_ns temp_files temp_bytes errors
        cancels workers worker_ns jit_functions jit_generation_ns jit_inlinings jit_inlining_ns
        jit_optimizations jit_optimization_ns jit_emissions jit_emission_ns;
    last;
    |sum, later| {
        sum.exec_min_ns = least(sum.exec_min_ns, later.exec_min_ns);
        sum.exec_max_ns = sum.exec_max_ns.max(later.exec_max_ns);
        sum.exec_squares += later.exec_squares;
        sum.plan_min_ns = least(sum.plan_min_ns, later.plan_min_ns);
        sum.plan_max_ns = sum.plan_max_ns.max(later.plan_max_ns);
        sum.plan_squares += later.plan_squares;
        sum.first_us = match (sum.first_us, later.first_us) {
            (0, first) | (first, 0) => first,
            (a, b) => a.min(b),
        };
        sum.last_us = sum.last_us.max(later.last_us);
        add_buckets((&mut sum.buckets, &mut sum.counts), (&later.buckets, &later.counts));
    }
}
