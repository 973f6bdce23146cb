// SPDX-License-Identifier: PostgreSQL
//! The counters of a statement, and their form in `--json`.
//!
//! Generated from format/counters.toml by `make generate`; do not edit.

use std::collections::BTreeMap;

use serde::Serialize;

use super::counted::{failed_by_class, Counter, Unit};
use crate::layout::counts;

/// Number of counters.
pub const COUNTERS: usize = 58;

/// All counters.
pub static COUNTER: [Counter; COUNTERS] = [
    Counter { name: "rows", at: counts::ROWS, wide: true, unit: Unit::Count },
    Counter { name: "shared_hit", at: counts::SHARED_HIT, wide: true, unit: Unit::Count },
    Counter { name: "shared_read", at: counts::SHARED_READ, wide: true, unit: Unit::Count },
    Counter { name: "shared_dirtied", at: counts::SHARED_DIRTIED, wide: true, unit: Unit::Count },
    Counter { name: "shared_written", at: counts::SHARED_WRITTEN, wide: true, unit: Unit::Count },
    Counter { name: "local_hit", at: counts::LOCAL_HIT, wide: true, unit: Unit::Count },
    Counter { name: "local_read", at: counts::LOCAL_READ, wide: true, unit: Unit::Count },
    Counter { name: "local_dirtied", at: counts::LOCAL_DIRTIED, wide: true, unit: Unit::Count },
    Counter { name: "local_written", at: counts::LOCAL_WRITTEN, wide: true, unit: Unit::Count },
    Counter { name: "temp_read", at: counts::TEMP_READ, wide: true, unit: Unit::Count },
    Counter { name: "temp_written", at: counts::TEMP_WRITTEN, wide: true, unit: Unit::Count },
    Counter { name: "wal_records", at: counts::WAL_RECORDS, wide: true, unit: Unit::Count },
    Counter { name: "wal_fpi", at: counts::WAL_FPI, wide: true, unit: Unit::Count },
    Counter { name: "wal_bytes", at: counts::WAL_BYTES, wide: true, unit: Unit::Count },
    Counter { name: "read_ticks", at: counts::READ_TICKS, wide: true, unit: Unit::Ticks },
    Counter { name: "write_ticks", at: counts::WRITE_TICKS, wide: true, unit: Unit::Ticks },
    Counter { name: "temp_read_ticks", at: counts::TEMP_READ_TICKS, wide: true, unit: Unit::Ticks },
    Counter { name: "temp_write_ticks", at: counts::TEMP_WRITE_TICKS, wide: true, unit: Unit::Ticks },
    Counter { name: "server_read_ns", at: counts::SERVER_READ_NS, wide: true, unit: Unit::Nanos },
    Counter { name: "server_write_ns", at: counts::SERVER_WRITE_NS, wide: true, unit: Unit::Nanos },
    Counter { name: "server_temp_read_ns", at: counts::SERVER_TEMP_READ_NS, wide: true, unit: Unit::Nanos },
    Counter { name: "server_temp_write_ns", at: counts::SERVER_TEMP_WRITE_NS, wide: true, unit: Unit::Nanos },
    Counter { name: "temp_files", at: counts::TEMP_FILES, wide: true, unit: Unit::Count },
    Counter { name: "temp_bytes", at: counts::TEMP_BYTES, wide: true, unit: Unit::Count },
    Counter { name: "errors", at: counts::ERRORS, wide: true, unit: Unit::Count },
    Counter { name: "cancels", at: counts::CANCELS, wide: true, unit: Unit::Count },
    Counter { name: "workers", at: counts::WORKERS, wide: true, unit: Unit::Count },
    Counter { name: "worker_ticks", at: counts::WORKER_TICKS, wide: true, unit: Unit::Ticks },
    Counter { name: "jit_functions", at: counts::JIT_FUNCTIONS, wide: true, unit: Unit::Count },
    Counter { name: "jit_generation_ns", at: counts::JIT_GENERATION_NS, wide: true, unit: Unit::Nanos },
    Counter { name: "jit_inlinings", at: counts::JIT_INLININGS, wide: true, unit: Unit::Count },
    Counter { name: "jit_inlining_ns", at: counts::JIT_INLINING_NS, wide: true, unit: Unit::Nanos },
    Counter { name: "jit_optimizations", at: counts::JIT_OPTIMIZATIONS, wide: true, unit: Unit::Count },
    Counter { name: "jit_optimization_ns", at: counts::JIT_OPTIMIZATION_NS, wide: true, unit: Unit::Nanos },
    Counter { name: "jit_emissions", at: counts::JIT_EMISSIONS, wide: true, unit: Unit::Count },
    Counter { name: "jit_emission_ns", at: counts::JIT_EMISSION_NS, wide: true, unit: Unit::Nanos },
    Counter { name: "jit_deformings", at: counts::JIT_DEFORMINGS, wide: true, unit: Unit::Count },
    Counter { name: "jit_deforming_ns", at: counts::JIT_DEFORMING_NS, wide: true, unit: Unit::Nanos },
    Counter { name: "wal_buffers_full", at: counts::WAL_BUFFERS_FULL, wide: true, unit: Unit::Count },
    Counter { name: "server_local_read_ns", at: counts::SERVER_LOCAL_READ_NS, wide: true, unit: Unit::Nanos },
    Counter { name: "server_local_write_ns", at: counts::SERVER_LOCAL_WRITE_NS, wide: true, unit: Unit::Nanos },
    Counter { name: "workers_planned", at: counts::WORKERS_PLANNED, wide: true, unit: Unit::Count },
    Counter { name: "workers_launched", at: counts::WORKERS_LAUNCHED, wide: true, unit: Unit::Count },
    Counter { name: "generic_plans", at: counts::GENERIC_PLANS, wide: true, unit: Unit::Count },
    Counter { name: "custom_plans", at: counts::CUSTOM_PLANS, wide: true, unit: Unit::Count },
    Counter { name: "user_ns", at: counts::USER_NS, wide: true, unit: Unit::Nanos },
    Counter { name: "system_ns", at: counts::SYSTEM_NS, wide: true, unit: Unit::Nanos },
    Counter { name: "failed_connection", at: counts::FAILED_CONNECTION, wide: false, unit: Unit::Count },
    Counter { name: "failed_data", at: counts::FAILED_DATA, wide: false, unit: Unit::Count },
    Counter { name: "failed_integrity", at: counts::FAILED_INTEGRITY, wide: false, unit: Unit::Count },
    Counter { name: "failed_transaction", at: counts::FAILED_TRANSACTION, wide: false, unit: Unit::Count },
    Counter { name: "failed_rollback", at: counts::FAILED_ROLLBACK, wide: false, unit: Unit::Count },
    Counter { name: "failed_syntax", at: counts::FAILED_SYNTAX, wide: false, unit: Unit::Count },
    Counter { name: "failed_resources", at: counts::FAILED_RESOURCES, wide: false, unit: Unit::Count },
    Counter { name: "failed_object", at: counts::FAILED_OBJECT, wide: false, unit: Unit::Count },
    Counter { name: "failed_system", at: counts::FAILED_SYSTEM, wide: false, unit: Unit::Count },
    Counter { name: "failed_other", at: counts::FAILED_OTHER, wide: false, unit: Unit::Count },
    Counter { name: "deadlocks", at: counts::DEADLOCKS, wide: true, unit: Unit::Count },
];

/// Indexes of the counters.
pub mod counter {
    /// Rows returned or changed.
    pub const ROWS: usize = 0;
    /// Shared block cache hits.
    pub const SHARED_HIT: usize = 1;
    /// Shared blocks read.
    pub const SHARED_READ: usize = 2;
    /// Shared blocks dirtied.
    pub const SHARED_DIRTIED: usize = 3;
    /// Shared blocks written.
    pub const SHARED_WRITTEN: usize = 4;
    /// Local block (temporary table) cache hits.
    pub const LOCAL_HIT: usize = 5;
    /// Local blocks read.
    pub const LOCAL_READ: usize = 6;
    /// Local blocks dirtied.
    pub const LOCAL_DIRTIED: usize = 7;
    /// Local blocks written.
    pub const LOCAL_WRITTEN: usize = 8;
    /// Temporary file blocks read.
    pub const TEMP_READ: usize = 9;
    /// Temporary file blocks written.
    pub const TEMP_WRITTEN: usize = 10;
    /// WAL records generated.
    pub const WAL_RECORDS: usize = 11;
    /// WAL full-page images generated.
    pub const WAL_FPI: usize = 12;
    /// WAL generated, in bytes.
    pub const WAL_BYTES: usize = 13;
    /// Time reading blocks, measured by pg_tally.
    pub const READ_TICKS: usize = 14;
    /// Time writing blocks, measured by pg_tally.
    pub const WRITE_TICKS: usize = 15;
    /// Time reading temporary files, measured by pg_tally.
    pub const TEMP_READ_TICKS: usize = 16;
    /// Time writing temporary files, measured by pg_tally.
    pub const TEMP_WRITE_TICKS: usize = 17;
    /// Time reading blocks, measured by the server (`track_io_timing`).
    pub const SERVER_READ_NS: usize = 18;
    /// Time writing blocks, measured by the server (`track_io_timing`).
    pub const SERVER_WRITE_NS: usize = 19;
    /// Time reading temporary files, measured by the server (`track_io_timing`).
    pub const SERVER_TEMP_READ_NS: usize = 20;
    /// Time writing temporary files, measured by the server (`track_io_timing`).
    pub const SERVER_TEMP_WRITE_NS: usize = 21;
    /// Temporary files created.
    pub const TEMP_FILES: usize = 22;
    /// Size of the temporary files created.
    pub const TEMP_BYTES: usize = 23;
    /// Executions that failed with an error.
    pub const ERRORS: usize = 24;
    /// Executions cancelled or timed out.
    pub const CANCELS: usize = 25;
    /// Parallel workers that took part in the execution.
    pub const WORKERS: usize = 26;
    /// Total lifetime of these workers.
    pub const WORKER_TICKS: usize = 27;
    /// Functions compiled by JIT.
    pub const JIT_FUNCTIONS: usize = 28;
    /// Time generating JIT code.
    pub const JIT_GENERATION_NS: usize = 29;
    /// Executions that inlined functions.
    pub const JIT_INLININGS: usize = 30;
    /// Time inlining functions.
    pub const JIT_INLINING_NS: usize = 31;
    /// Executions that optimized JIT code.
    pub const JIT_OPTIMIZATIONS: usize = 32;
    /// Time optimizing JIT code.
    pub const JIT_OPTIMIZATION_NS: usize = 33;
    /// Executions that emitted JIT code.
    pub const JIT_EMISSIONS: usize = 34;
    /// Time emitting JIT code.
    pub const JIT_EMISSION_NS: usize = 35;
    /// Executions that compiled tuple deforming; 0 before 17.
    pub const JIT_DEFORMINGS: usize = 36;
    /// Time compiling tuple deforming, part of `jit_generation_ns`; 0 before 17.
    pub const JIT_DEFORMING_NS: usize = 37;
    /// Number of times the WAL buffers became full; 0 before 18.
    pub const WAL_BUFFERS_FULL: usize = 38;
    /// Part of `server_read_ns` spent on local blocks; 0 before 17.
    pub const SERVER_LOCAL_READ_NS: usize = 39;
    /// Part of `server_write_ns` spent on local blocks; 0 before 17.
    pub const SERVER_LOCAL_WRITE_NS: usize = 40;
    /// Parallel workers planned; 0 before 18.
    pub const WORKERS_PLANNED: usize = 41;
    /// Parallel workers launched; 0 before 18.
    pub const WORKERS_LAUNCHED: usize = 42;
    /// Executions with a generic plan; 0 before 19.
    pub const GENERIC_PLANS: usize = 43;
    /// Executions of a cached statement with a custom plan; 0 before 19.
    pub const CUSTOM_PLANS: usize = 44;
    /// CPU time in user mode; 0 if it was not measured.
    pub const USER_NS: usize = 45;
    /// CPU time in the kernel; 0 if it was not measured.
    pub const SYSTEM_NS: usize = 46;
    /// Part of `errors` with SQLSTATE class 08: connection exceptions.
    pub const FAILED_CONNECTION: usize = 47;
    /// Class 22: data exceptions.
    pub const FAILED_DATA: usize = 48;
    /// Class 23: integrity constraints.
    pub const FAILED_INTEGRITY: usize = 49;
    /// Class 25: invalid transaction state.
    pub const FAILED_TRANSACTION: usize = 50;
    /// Class 40: serialization failures, deadlocks.
    pub const FAILED_ROLLBACK: usize = 51;
    /// Class 42: syntax errors, access rule violations.
    pub const FAILED_SYNTAX: usize = 52;
    /// Classes 53 and 54: insufficient resources, program limits exceeded.
    pub const FAILED_RESOURCES: usize = 53;
    /// Class 55: object not in prerequisite state, such as a lock not available.
    pub const FAILED_OBJECT: usize = 54;
    /// Classes 57 and 58: operator intervention, system errors.
    pub const FAILED_SYSTEM: usize = 55;
    /// All other classes.
    pub const FAILED_OTHER: usize = 56;
    /// Executions that the server cancelled to resolve a deadlock, part of `errors`.
    pub const DEADLOCKS: usize = 57;
}

/// `blocks` of [`StatementCounters`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Blocks {
    /// Shared block cache hits.
    pub shared_hit: u64,
    /// Shared blocks read.
    pub shared_read: u64,
    /// Shared blocks dirtied.
    pub shared_dirtied: u64,
    /// Shared blocks written.
    pub shared_written: u64,
    /// Local block (temporary table) cache hits.
    pub local_hit: u64,
    /// Local blocks read.
    pub local_read: u64,
    /// Local blocks dirtied.
    pub local_dirtied: u64,
    /// Local blocks written.
    pub local_written: u64,
    /// Temporary file blocks read.
    pub temp_read: u64,
    /// Temporary file blocks written.
    pub temp_written: u64,
}

impl Blocks {
    pub(super) fn from_counters(counters: &[u64; COUNTERS], _second: f64) -> Blocks {
        Blocks {
            shared_hit: counters[counter::SHARED_HIT],
            shared_read: counters[counter::SHARED_READ],
            shared_dirtied: counters[counter::SHARED_DIRTIED],
            shared_written: counters[counter::SHARED_WRITTEN],
            local_hit: counters[counter::LOCAL_HIT],
            local_read: counters[counter::LOCAL_READ],
            local_dirtied: counters[counter::LOCAL_DIRTIED],
            local_written: counters[counter::LOCAL_WRITTEN],
            temp_read: counters[counter::TEMP_READ],
            temp_written: counters[counter::TEMP_WRITTEN],
        }
    }
}

/// `io` of [`StatementCounters`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Io {
    /// Time reading blocks, measured by pg_tally.
    pub read_seconds: f64,
    /// Time writing blocks, measured by pg_tally.
    pub write_seconds: f64,
    /// Time reading temporary files, measured by pg_tally.
    pub temp_read_seconds: f64,
    /// Time writing temporary files, measured by pg_tally.
    pub temp_write_seconds: f64,
    /// Part of `server_read_ns` spent on local blocks; 0 before 17.
    pub server_local_read_seconds: f64,
    /// Part of `server_write_ns` spent on local blocks; 0 before 17.
    pub server_local_write_seconds: f64,
}

impl Io {
    pub(super) fn from_counters(counters: &[u64; COUNTERS], second: f64) -> Io {
        Io {
            read_seconds: counters[counter::READ_TICKS] as f64 * second + counters[counter::SERVER_READ_NS] as f64 * 1e-9,
            write_seconds: counters[counter::WRITE_TICKS] as f64 * second + counters[counter::SERVER_WRITE_NS] as f64 * 1e-9,
            temp_read_seconds: counters[counter::TEMP_READ_TICKS] as f64 * second + counters[counter::SERVER_TEMP_READ_NS] as f64 * 1e-9,
            temp_write_seconds: counters[counter::TEMP_WRITE_TICKS] as f64 * second + counters[counter::SERVER_TEMP_WRITE_NS] as f64 * 1e-9,
            server_local_read_seconds: counters[counter::SERVER_LOCAL_READ_NS] as f64 * 1e-9,
            server_local_write_seconds: counters[counter::SERVER_LOCAL_WRITE_NS] as f64 * 1e-9,
        }
    }
}

/// `wal` of [`StatementCounters`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Wal {
    /// WAL records generated.
    pub records: u64,
    /// WAL full-page images generated.
    pub fpi: u64,
    /// WAL generated, in bytes.
    pub bytes: u64,
}

impl Wal {
    pub(super) fn from_counters(counters: &[u64; COUNTERS], _second: f64) -> Wal {
        Wal {
            records: counters[counter::WAL_RECORDS],
            fpi: counters[counter::WAL_FPI],
            bytes: counters[counter::WAL_BYTES],
        }
    }
}

/// `jit` of [`StatementCounters`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Jit {
    /// Functions compiled by JIT.
    pub functions: u64,
    /// Time generating JIT code.
    pub generation_seconds: f64,
    /// Executions that inlined functions.
    pub inlinings: u64,
    /// Time inlining functions.
    pub inlining_seconds: f64,
    /// Executions that optimized JIT code.
    pub optimizations: u64,
    /// Time optimizing JIT code.
    pub optimization_seconds: f64,
    /// Executions that emitted JIT code.
    pub emissions: u64,
    /// Time emitting JIT code.
    pub emission_seconds: f64,
    /// Executions that compiled tuple deforming; 0 before 17.
    pub deformings: u64,
    /// Time compiling tuple deforming, part of `jit_generation_ns`; 0 before 17.
    pub deforming_seconds: f64,
}

impl Jit {
    pub(super) fn from_counters(counters: &[u64; COUNTERS], _second: f64) -> Jit {
        Jit {
            functions: counters[counter::JIT_FUNCTIONS],
            generation_seconds: counters[counter::JIT_GENERATION_NS] as f64 * 1e-9,
            inlinings: counters[counter::JIT_INLININGS],
            inlining_seconds: counters[counter::JIT_INLINING_NS] as f64 * 1e-9,
            optimizations: counters[counter::JIT_OPTIMIZATIONS],
            optimization_seconds: counters[counter::JIT_OPTIMIZATION_NS] as f64 * 1e-9,
            emissions: counters[counter::JIT_EMISSIONS],
            emission_seconds: counters[counter::JIT_EMISSION_NS] as f64 * 1e-9,
            deformings: counters[counter::JIT_DEFORMINGS],
            deforming_seconds: counters[counter::JIT_DEFORMING_NS] as f64 * 1e-9,
        }
    }
}

/// The counters of a statement, as `--json` prints them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct StatementCounters {
    /// Rows returned or changed.
    pub rows: u64,
    /// See [`Blocks`].
    pub blocks: Blocks,
    /// See [`Io`].
    pub io: Io,
    /// See [`Wal`].
    pub wal: Wal,
    /// See [`Jit`].
    pub jit: Jit,
    /// Temporary files created.
    pub temp_files: u64,
    /// Size of the temporary files created.
    pub temp_bytes: u64,
    /// Executions that failed with an error.
    pub errors: u64,
    /// Part of `errors`, by class of SQLSTATE.
    pub failed: BTreeMap<&'static str, u64>,
    /// Executions cancelled or timed out.
    pub cancels: u64,
    /// CPU time in user mode; 0 if it was not measured.
    pub user_seconds: Option<f64>,
    /// CPU time in the kernel; 0 if it was not measured.
    pub system_seconds: Option<f64>,
    /// Parallel workers that took part in the execution.
    pub workers: u64,
    /// Total lifetime of these workers.
    pub worker_seconds: f64,
    /// Parallel workers planned; 0 before 18.
    pub workers_planned: u64,
    /// Parallel workers launched; 0 before 18.
    pub workers_launched: u64,
    /// Number of times the WAL buffers became full; 0 before 18.
    pub wal_buffers_full: u64,
    /// Executions with a generic plan; 0 before 19.
    pub generic_plans: u64,
    /// Executions of a cached statement with a custom plan; 0 before 19.
    pub custom_plans: u64,
    /// Executions that the server cancelled to resolve a deadlock, part of `errors`.
    pub deadlocks: u64,
}

impl StatementCounters {
    pub(super) fn from_counters(counters: &[u64; COUNTERS], second: f64) -> StatementCounters {
        let measured = counters[counter::USER_NS] != 0 || counters[counter::SYSTEM_NS] != 0;
        StatementCounters {
            rows: counters[counter::ROWS],
            blocks: Blocks::from_counters(counters, second),
            io: Io::from_counters(counters, second),
            wal: Wal::from_counters(counters, second),
            jit: Jit::from_counters(counters, second),
            temp_files: counters[counter::TEMP_FILES],
            temp_bytes: counters[counter::TEMP_BYTES],
            errors: counters[counter::ERRORS],
            failed: failed_by_class(&counters[counter::FAILED_CONNECTION..]),
            cancels: counters[counter::CANCELS],
            user_seconds: measured.then(|| counters[counter::USER_NS] as f64 * 1e-9),
            system_seconds: measured.then(|| counters[counter::SYSTEM_NS] as f64 * 1e-9),
            workers: counters[counter::WORKERS],
            worker_seconds: counters[counter::WORKER_TICKS] as f64 * second,
            workers_planned: counters[counter::WORKERS_PLANNED],
            workers_launched: counters[counter::WORKERS_LAUNCHED],
            wal_buffers_full: counters[counter::WAL_BUFFERS_FULL],
            generic_plans: counters[counter::GENERIC_PLANS],
            custom_plans: counters[counter::CUSTOM_PLANS],
            deadlocks: counters[counter::DEADLOCKS],
        }
    }
}
