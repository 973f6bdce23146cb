// SPDX-License-Identifier: PostgreSQL
//! The rules, one concern per module. Each returns what it finds, or nothing.

mod checkpoints;
mod clients;
mod commits;
mod conditions;
mod deadlocks;
mod indexes;
mod ledger;
mod locks;
mod memory;
mod names;
mod plan_change;
mod plans;
mod reads;
mod settings;
mod statements;
mod stopped;
mod threshold;
mod vacuum;

use crate::case::Case;
use crate::diagnosis::Diagnosis;
pub use settings::changed_settings;
use threshold::{bounds, harms, much};

/// A rule.
type Find = fn(&Case<'_>) -> Vec<Diagnosis>;

/// All of them.
pub const ALL: &[Find] = &[
    stopped::processes,
    locks::heavyweight,
    locks::idle_in_transaction,
    locks::lightweight,
    plan_change::changed,
    indexes::missing,
    statements::temporary_files,
    statements::planning,
    statements::jit,
    statements::long,
    statements::flood,
    checkpoints::too_often,
    commits::slow,
    commits::replication,
    reads::misses,
    clients::many_small_statements,
    clients::bursts,
    clients::slow,
    clients::connections,
    conditions::full_disk,
    conditions::lost_slots,
    conditions::slots,
    conditions::archiver,
    conditions::prepared_transactions,
    conditions::wraparound,
    deadlocks::deadlocks,
    conditions::throttled_vacuum,
    conditions::catalog_bloat,
    conditions::stale_statistics,
    vacuum::behind,
    ledger::log_pipe,
    ledger::processors,
    ledger::unexplained,
    memory::small_file_system,
    settings::not_applied,
    settings::pending_restart,
    settings::changed,
];
