// SPDX-License-Identifier: PostgreSQL
//! The rules, one concern a module. Each returns what it finds, or nothing.

mod checkpoints;
mod clients;
mod commits;
mod ledger;
mod locks;
mod memory;
mod plans;
mod reads;
mod statements;
mod vacuum;

use crate::case::Case;
use crate::diagnosis::Diagnosis;

/// A rule.
type Find = fn(&Case<'_>) -> Vec<Diagnosis>;

/// All of them.
pub const ALL: &[Find] = &[
    locks::heavyweight,
    locks::idle_in_transaction,
    locks::lightweight,
    plans::changed,
    statements::missing_index,
    statements::temporary_files,
    statements::planning,
    statements::flood,
    checkpoints::too_often,
    commits::slow,
    commits::replication,
    reads::misses,
    clients::many_small_statements,
    clients::slow,
    clients::connections,
    vacuum::behind,
    ledger::log_pipe,
    ledger::processors,
    ledger::unexplained,
    memory::small_file_system,
];

/// What takes less than this many sessions on average is no trouble for anybody, whatever part of the load it is ...
const SESSIONS: f64 = 0.05;
/// ... nor what takes less time than this in a short interval, seconds.
const SHORT: f64 = 0.2;

/// Whether `seconds` are much by themselves.
fn much(case: &Case<'_>, seconds: f64) -> bool {
    seconds >= (SESSIONS * case.length()).max(SHORT)
}

/// Whether `seconds` are much by themselves, and at least this part of the load.
fn matters(case: &Case<'_>, seconds: f64, part: f64) -> bool {
    much(case, seconds) && seconds >= part * case.load()
}
