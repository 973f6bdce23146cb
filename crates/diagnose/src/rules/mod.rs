// SPDX-License-Identifier: PostgreSQL
//! The rules, one concern a module. Each returns what it finds, or nothing.

mod checkpoints;
mod clients;
mod commits;
mod ledger;
mod locks;
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
    checkpoints::too_often,
    commits::slow,
    commits::replication,
    reads::misses,
    clients::many_small_statements,
    clients::slow,
    clients::connections,
    vacuum::behind,
    ledger::processors,
    ledger::unexplained,
];

/// Less load than this many sessions on average is no trouble for anybody.
const LOAD: f64 = 0.05;

/// Whether `seconds` are at least this part of the load, and the load matters.
fn matters(case: &Case<'_>, seconds: f64, part: f64) -> bool {
    case.load() >= LOAD * case.length() && seconds >= part * case.load()
}
