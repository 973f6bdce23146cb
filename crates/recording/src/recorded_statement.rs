// SPDX-License-Identifier: PostgreSQL
//! The table of statements.
//!
//! Generated from format/counters.toml by `make generate`; do not edit.

use std::sync::Arc;

use segment::statements::COUNTERS;

use crate::table::{table, Cell, Cells, Column, Columns, Table, Unit};

table! {
    /// A statement in a detail interval.
    RecordedStatementRow in "statements" by |a, b| {
        (a.key(), a.frame).cmp(&(b.key(), b.frame))
    }, histogram buckets counts;
    interval_ns: u64, Ns, sum, "Time since the previous detail interval.";
    queryid: i64, Id, "Query identifier, as PostgreSQL prints it; 0: work for which no statement is known.";
    database_id: u32, Id, "OID of the database.";
    user_id: u32, Id, "OID of the user who ran the statement.";
    toplevel: bool, Flag, "Whether the client sent the statement itself; false: nested in another statement.";
    database: Arc<str>, Text, "Name of the database, or empty.";
    user: Arc<str>, Text, "Name of the user, or empty.";
    application: Arc<str>, Text, "The application_name of its sessions, with `pg_tally.statements_application`; or empty.";
    calls: u64, Count, sum, "Executions that ended without an error.";
    exec_ns: u64, Ns, sum, "Total execution time.";
    exec_min_ns: Option<u64>, Ns, min, "Minimum execution time.";
    exec_max_ns: Option<u64>, Ns, max, "Maximum execution time.";
    exec_squares: f64, NsSquared, sum, "Sum of squared execution times, rounded to 14 significant bits.";
    plans: u64, Count, sum, "Number of times the statement was planned.";
    plan_ns: u64, Ns, sum, "Total planning time.";
    plan_min_ns: Option<u64>, Ns, min, "Minimum planning time.";
    plan_max_ns: Option<u64>, Ns, max, "Maximum planning time.";
    plan_squares: f64, NsSquared, sum, "Sum of squared planning times.";
    rows: u64, Count, sum, "Rows returned or changed.";
    shared_hit: u64, Count, sum, "Shared block cache hits.";
    shared_read: u64, Count, sum, "Shared blocks read.";
    shared_dirtied: u64, Count, sum, "Shared blocks dirtied.";
    shared_written: u64, Count, sum, "Shared blocks written.";
    local_hit: u64, Count, sum, "Local block (temporary table) cache hits.";
    local_read: u64, Count, sum, "Local blocks read.";
    local_dirtied: u64, Count, sum, "Local blocks dirtied.";
    local_written: u64, Count, sum, "Local blocks written.";
    temp_read: u64, Count, sum, "Temporary file blocks read.";
    temp_written: u64, Count, sum, "Temporary file blocks written.";
    wal_records: u64, Count, sum, "WAL records generated.";
    wal_fpi: u64, Count, sum, "WAL full-page images generated.";
    wal_bytes: u64, Bytes, sum, "WAL generated, in bytes.";
    read_ns: u64, Ns, sum, "Time reading blocks, measured by pg_tally.";
    write_ns: u64, Ns, sum, "Time writing blocks, measured by pg_tally.";
    temp_read_ns: u64, Ns, sum, "Time reading temporary files, measured by pg_tally.";
    temp_write_ns: u64, Ns, sum, "Time writing temporary files, measured by pg_tally.";
    server_read_ns: u64, Ns, sum, "Time reading blocks, measured by the server (`track_io_timing`).";
    server_write_ns: u64, Ns, sum, "Time writing blocks, measured by the server (`track_io_timing`).";
    server_temp_read_ns: u64, Ns, sum, "Time reading temporary files, measured by the server (`track_io_timing`).";
    server_temp_write_ns: u64, Ns, sum, "Time writing temporary files, measured by the server (`track_io_timing`).";
    temp_files: u64, Count, sum, "Temporary files created.";
    temp_bytes: u64, Bytes, sum, "Size of the temporary files created.";
    errors: u64, Count, sum, "Executions that failed with an error.";
    cancels: u64, Count, sum, "Executions cancelled or timed out.";
    workers: u64, Count, sum, "Parallel workers that took part in the execution.";
    worker_ns: u64, Ns, sum, "Total lifetime of these workers.";
    jit_functions: u64, Count, sum, "Functions compiled by JIT.";
    jit_generation_ns: u64, Ns, sum, "Time generating JIT code.";
    jit_inlinings: u64, Count, sum, "Executions that inlined functions.";
    jit_inlining_ns: u64, Ns, sum, "Time inlining functions.";
    jit_optimizations: u64, Count, sum, "Executions that optimized JIT code.";
    jit_optimization_ns: u64, Ns, sum, "Time optimizing JIT code.";
    jit_emissions: u64, Count, sum, "Executions that emitted JIT code.";
    jit_emission_ns: u64, Ns, sum, "Time emitting JIT code.";
    jit_deformings: u64, Count, sum, "Executions that compiled tuple deforming; 0 before 17.";
    jit_deforming_ns: u64, Ns, sum, "Time compiling tuple deforming, part of `jit_generation_ns`; 0 before 17.";
    wal_buffers_full: u64, Count, sum, "Number of times the WAL buffers became full; 0 before 18.";
    server_local_read_ns: u64, Ns, sum, "Part of `server_read_ns` spent on local blocks; 0 before 17.";
    server_local_write_ns: u64, Ns, sum, "Part of `server_write_ns` spent on local blocks; 0 before 17.";
    workers_planned: u64, Count, sum, "Parallel workers planned; 0 before 18.";
    workers_launched: u64, Count, sum, "Parallel workers launched; 0 before 18.";
    generic_plans: u64, Count, sum, "Executions with a generic plan; 0 before 19.";
    custom_plans: u64, Count, sum, "Executions of a cached statement with a custom plan; 0 before 19.";
    user_ns: u64, Ns, sum, "CPU time in user mode; 0 if it was not measured.";
    system_ns: u64, Ns, sum, "CPU time in the kernel; 0 if it was not measured.";
    failed_connection: u64, Count, sum, "Part of `errors` with SQLSTATE class 08: connection exceptions.";
    failed_data: u64, Count, sum, "Class 22: data exceptions.";
    failed_integrity: u64, Count, sum, "Class 23: integrity constraints.";
    failed_transaction: u64, Count, sum, "Class 25: invalid transaction state.";
    failed_rollback: u64, Count, sum, "Class 40: serialization failures, deadlocks.";
    failed_syntax: u64, Count, sum, "Class 42: syntax errors, access rule violations.";
    failed_resources: u64, Count, sum, "Classes 53 and 54: insufficient resources, program limits exceeded.";
    failed_object: u64, Count, sum, "Class 55: object not in prerequisite state, such as a lock not available.";
    failed_system: u64, Count, sum, "Classes 57 and 58: operator intervention, system errors.";
    failed_other: u64, Count, sum, "All other classes.";
    deadlocks: u64, Count, sum, "Executions that the server cancelled to resolve a deadlock, part of `errors`.";
    first_us: i64, Time, earliest, "Start of the first execution; 0: unknown.";
    last_us: i64, Time, max, "Start of the last execution.";
    sampled_ns: u64, Ns, sum, "Time of the statement in samples, in all accounts; 0: it was measured.";
    buckets: Vec<u64>, Id, "Histogram of execution times: numbers of the buckets that are not empty.";
    counts: Vec<u64>, Count, "Number of executions in each of these buckets.";
}

impl RecordedStatementRow {
    /// The counters, in the order of [`segment::statements::COUNTER`].
    pub(crate) fn counters(&self) -> [u64; COUNTERS] {
        [
            self.rows,
            self.shared_hit,
            self.shared_read,
            self.shared_dirtied,
            self.shared_written,
            self.local_hit,
            self.local_read,
            self.local_dirtied,
            self.local_written,
            self.temp_read,
            self.temp_written,
            self.wal_records,
            self.wal_fpi,
            self.wal_bytes,
            self.read_ns,
            self.write_ns,
            self.temp_read_ns,
            self.temp_write_ns,
            self.server_read_ns,
            self.server_write_ns,
            self.server_temp_read_ns,
            self.server_temp_write_ns,
            self.temp_files,
            self.temp_bytes,
            self.errors,
            self.cancels,
            self.workers,
            self.worker_ns,
            self.jit_functions,
            self.jit_generation_ns,
            self.jit_inlinings,
            self.jit_inlining_ns,
            self.jit_optimizations,
            self.jit_optimization_ns,
            self.jit_emissions,
            self.jit_emission_ns,
            self.jit_deformings,
            self.jit_deforming_ns,
            self.wal_buffers_full,
            self.server_local_read_ns,
            self.server_local_write_ns,
            self.workers_planned,
            self.workers_launched,
            self.generic_plans,
            self.custom_plans,
            self.user_ns,
            self.system_ns,
            self.failed_connection,
            self.failed_data,
            self.failed_integrity,
            self.failed_transaction,
            self.failed_rollback,
            self.failed_syntax,
            self.failed_resources,
            self.failed_object,
            self.failed_system,
            self.failed_other,
            self.deadlocks,
        ]
    }

    /// The counters, in the order of [`segment::statements::COUNTER`].
    pub(crate) fn counters_mut(&mut self) -> [&mut u64; COUNTERS] {
        [
            &mut self.rows,
            &mut self.shared_hit,
            &mut self.shared_read,
            &mut self.shared_dirtied,
            &mut self.shared_written,
            &mut self.local_hit,
            &mut self.local_read,
            &mut self.local_dirtied,
            &mut self.local_written,
            &mut self.temp_read,
            &mut self.temp_written,
            &mut self.wal_records,
            &mut self.wal_fpi,
            &mut self.wal_bytes,
            &mut self.read_ns,
            &mut self.write_ns,
            &mut self.temp_read_ns,
            &mut self.temp_write_ns,
            &mut self.server_read_ns,
            &mut self.server_write_ns,
            &mut self.server_temp_read_ns,
            &mut self.server_temp_write_ns,
            &mut self.temp_files,
            &mut self.temp_bytes,
            &mut self.errors,
            &mut self.cancels,
            &mut self.workers,
            &mut self.worker_ns,
            &mut self.jit_functions,
            &mut self.jit_generation_ns,
            &mut self.jit_inlinings,
            &mut self.jit_inlining_ns,
            &mut self.jit_optimizations,
            &mut self.jit_optimization_ns,
            &mut self.jit_emissions,
            &mut self.jit_emission_ns,
            &mut self.jit_deformings,
            &mut self.jit_deforming_ns,
            &mut self.wal_buffers_full,
            &mut self.server_local_read_ns,
            &mut self.server_local_write_ns,
            &mut self.workers_planned,
            &mut self.workers_launched,
            &mut self.generic_plans,
            &mut self.custom_plans,
            &mut self.user_ns,
            &mut self.system_ns,
            &mut self.failed_connection,
            &mut self.failed_data,
            &mut self.failed_integrity,
            &mut self.failed_transaction,
            &mut self.failed_rollback,
            &mut self.failed_syntax,
            &mut self.failed_resources,
            &mut self.failed_object,
            &mut self.failed_system,
            &mut self.failed_other,
            &mut self.deadlocks,
        ]
    }
}
