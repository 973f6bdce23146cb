// SPDX-License-Identifier: PostgreSQL
//! The definition of a counter of a statement; `counters.rs` has all of them.

use std::collections::BTreeMap;

/// The unit of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A plain number.
    Count,
    /// Time, in ticks.
    Ticks,
    /// Time, in nanoseconds.
    Nanos,
}

/// A counter: its offset in the counts, and its unit.
#[derive(Debug)]
pub struct Counter {
    /// Its name.
    pub name: &'static str,
    /// Its offset in the counts.
    pub at: usize,
    /// Whether it has eight bytes rather than four.
    pub(super) wide: bool,
    /// Its unit.
    pub unit: Unit,
}

/// Why executions failed: the class of their SQLSTATE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// 08: connection exceptions.
    Connection,
    /// 22: data exceptions.
    Data,
    /// 23: integrity constraints.
    Integrity,
    /// 25: invalid transaction state.
    Transaction,
    /// 40: serialization failures and deadlocks.
    Rollback,
    /// 42: syntax errors, access rule violations.
    Syntax,
    /// 53 and 54: insufficient resources, program limits exceeded.
    Resources,
    /// 55: object not in prerequisite state, such as a lock not available.
    Object,
    /// 57 and 58: operator intervention, system errors.
    System,
    /// All other classes.
    Other,
}

impl Failure {
    /// In the order of the file.
    pub const ALL: [Failure; 10] = [
        Failure::Connection,
        Failure::Data,
        Failure::Integrity,
        Failure::Transaction,
        Failure::Rollback,
        Failure::Syntax,
        Failure::Resources,
        Failure::Object,
        Failure::System,
        Failure::Other,
    ];

    /// The SQLSTATE class; if there are several, the first.
    pub fn class(self) -> &'static str {
        match self {
            Failure::Connection => "08",
            Failure::Data => "22",
            Failure::Integrity => "23",
            Failure::Transaction => "25",
            Failure::Rollback => "40",
            Failure::Syntax => "42",
            Failure::Resources => "53",
            Failure::Object => "55",
            Failure::System => "57",
            Failure::Other => "other",
        }
    }
}

/// Failed executions by SQLSTATE class, without classes that did not occur. `failed` has the counts in the order of
/// [`Failure::ALL`].
pub(super) fn failed_by_class(failed: &[u64]) -> BTreeMap<&'static str, u64> {
    let all = Failure::ALL.into_iter().map(Failure::class).zip(failed.iter().copied());
    all.filter(|(_, count)| *count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classes_are_those_of_the_format_and_of_the_sql_views() {
        let own: Vec<&str> = Failure::ALL.into_iter().map(Failure::class).collect();
        let format = include_str!("../../../../format/counters.toml");
        let counters = format.lines().filter(|line| line.contains("[\"failed_"));
        let classes: Vec<&str> = counters
            .map(|line| {
                let meaning = line.rsplit('"').nth(1).unwrap();
                match meaning.split_once("class ").or_else(|| meaning.split_once("classes ")) {
                    Some((_, class)) => &class[..2],
                    None => "other",
                }
            })
            .collect();
        assert_eq!(classes, own);
        let views = include_str!("../../../../pg_tally/sql/statement_views.c");
        let list =
            views.split("classes[TALLY_FAILED] = {").nth(1).unwrap().split('}').next().unwrap();
        let shown: Vec<&str> =
            list.split(',').map(|class| class.trim().trim_matches('"')).collect();
        assert_eq!(shown, own);
    }
}
